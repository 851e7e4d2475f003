/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs of an ONNX model (onnx_random.h): the same in every run of the command. */
#include "cli/onnx_random.h"

#include "tool/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static graphi_status read_shape(const char *word, int *rank, int64_t *dims)
{
    const char *at = word;
    for (*rank = 0; *at; (*rank)++) {
        char *end;
        const long long size = strtoll(at, &end, 10);
        if (end == at || size < 0 || (*end && *end != 'x') || (*end == 'x' && !end[1]) || *rank == GRAPHI_TENSOR_RANK)
            return report_usage("--shape", word, "sizes as 1x3x224x224, at most %d", GRAPHI_TENSOR_RANK);
        dims[*rank] = size;
        at = *end ? end + 1 : end;
    }
    return GRAPHI_OK;
}

/* A number from its place: the same every time. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static graphi_status fill(graphi_element element, size_t bytes, uint64_t seed, void *data)
{
    for (size_t i = 0; element == GRAPHI_ELEMENT_FLOAT32 && i < bytes / 4; i++)
        ((float *)data)[i] = (float)(mixed(seed + i) >> 40) * 0x1p-24f;
    for (size_t i = 0; element == GRAPHI_ELEMENT_FLOAT64 && i < bytes / 8; i++)
        ((double *)data)[i] = (double)(mixed(seed + i) >> 11) * 0x1p-53;
    /* 16-bit floats: a pattern of 0.5 to 1 */
    for (size_t i = 0; i < bytes / 2 && (element == GRAPHI_ELEMENT_FLOAT16 || element == GRAPHI_ELEMENT_BFLOAT16); i++)
        ((uint16_t *)data)[i] = element == GRAPHI_ELEMENT_FLOAT16 ? (uint16_t)(0x3800 | (mixed(seed + i) & 0x3ff))
                                                                  : (uint16_t)(0x3f00 | (mixed(seed + i) & 0x7f));
    return GRAPHI_OK;
}

static size_t element_bytes(graphi_element element)
{
    static const struct {
        graphi_element element;
        size_t bytes;
    } sizes[] = {
#define X(name, number, bytes, text) {GRAPHI_ELEMENT_##name, bytes},
        GRAPHI_ELEMENT_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].element == element)
            return sizes[i].bytes;
    return 0;
}

graphi_status onnx_random(const graphi_session_port *port, const char *shape, size_t seed, graphi_tensor **out)
{
    int64_t dims[GRAPHI_TENSOR_RANK];
    int rank = port->rank < 0 ? 0 : port->rank;
    size_t bytes = element_bytes(port->element);
    if (port->kind != GRAPHI_KIND_TENSOR || !bytes)
        return report_usage("run", port->name, "--input or --inputs for it: no random one is made");
    for (int i = 0; i < rank; i++)
        dims[i] = port->dims[i] < 0 ? 1 : port->dims[i];
    if (shape) {
        const graphi_status status = read_shape(shape, &rank, dims);
        if (status != GRAPHI_OK)
            return status;
    }
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bytes, (size_t)dims[i], &bytes) || bytes > (size_t)1 << 40)
            return report_usage("--shape", port->name, "fewer elements");
    void *data = calloc(bytes ? bytes : 1, 1);
    if (!data)
        return report_error(GRAPHI_MEMORY, port->name, "found no memory for %zu bytes, expected some", bytes);
    fill(port->element, bytes, mixed(seed + 1), data);
    const graphi_status status = graphi_tensor_create(port->element, rank, dims, data, out);
    free(data);
    return status == GRAPHI_OK ? status : report_failure(status);
}

void onnx_shape(const graphi_tensor *value, char *text, size_t size)
{
    graphi_tensor_info info;
    graphi_tensor_get_info(value, &info);
    if (info.kind != GRAPHI_KIND_TENSOR) {
        if (info.kind == GRAPHI_KIND_SEQUENCE)
            snprintf(text, size, "a sequence of %lld", (long long)info.count);
        else
            snprintf(text, size, "nothing");
        return;
    }
    size_t at = (size_t)snprintf(text, size, "%s [", graphi_element_name(info.element));
    for (int i = 0; i < info.rank && at + 24 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? ", " : "", (long long)info.dims[i]);
    snprintf(text + at, size - at, "]");
}
