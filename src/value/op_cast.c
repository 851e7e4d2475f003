/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike, Identity and the like: a value in another type, or as it is. Source: ONNX Cast, CastLike, BitCast,
 * Identity, Dropout (inference). Any thread. */
#include "value/elementwise.h"
#include "value/families.h"
#include "value/small_float.h"

#include <string.h>

static bool is_small(graphi_element type)
{
    return element_is_float(type) && type >= GRAPHI_ELEMENT_FLOAT8E4M3FN;
}

static graphi_status cast_to(struct op_call *call, graphi_element to)
{
    graphi_tensor *from = call->in[0], *out;
    union block room;
    if (from->type == to)
        return op_view(call, 0, from, from->rank, from->dims);
    TRY(op_new(call, 0, to, from->rank, from->dims, &out));
    const bool saturate = op_int(call, "saturate", 1) != 0;
    const size_t size = element_size(from->type);
    const enum domain domain = element_domain(from->type);
    for (int64_t at = 0; at < from->count; at += BLOCK) {
        const int64_t n = from->count - at < BLOCK ? from->count - at : BLOCK;
        const char *source = (const char *)from->data + (size_t)at * size;
        char *target = (char *)out->data + (size_t)at * element_size(to);
        if (is_small(to) && !saturate) {
            const float *numbers = element_load(DOMAIN_F32, from->type, source, 1, n, &room);
            for (int64_t i = 0; i < n; i++)
                ((uint8_t *)target)[i] = small_float_from(to, numbers[i], false);
        } else
            element_store(domain, to, element_load(domain, from->type, source, 1, n, &room), n, target);
    }
    return GRAPHI_OK;
}

static graphi_status run_cast(struct op_call *call)
{
    TRY(op_tensor(call, 0, 0));
    return cast_to(call, (graphi_element)op_int(call, "to", 0));
}

static graphi_status run_cast_like(struct op_call *call)
{
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, 0));
    return cast_to(call, call->in[1]->type);
}

static graphi_status run_bit_cast(struct op_call *call)
{
    graphi_tensor *out;
    const graphi_element to = (graphi_element)op_int(call, "to", 0);
    TRY(op_tensor(call, 0, 0));
    if (element_size(to) != element_size(call->in[0]->type))
        return op_fail(call, "found %s for %s, expected a type of as many bits", graphi_element_name(to),
                       graphi_element_name(call->in[0]->type));
    TRY(op_new(call, 0, to, call->in[0]->rank, call->in[0]->dims, &out));
    memcpy(out->data, call->in[0]->data, out->bytes);
    return GRAPHI_OK;
}

static graphi_status run_identity(struct op_call *call)
{
    call->out[0] = value_keep(call->in[0]);
    return GRAPHI_OK;
}

/* Nothing is dropped at inference. A training mode that is on with a ratio above 0 would be random. */
static graphi_status run_dropout(struct op_call *call)
{
    graphi_tensor *mask;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *mode = op_in(call, 2), *ratio = op_in(call, 1);
    if (mode && mode->count == 1 && value_int(mode, 0) && (!ratio || value_double(ratio, 0) != 0))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found Dropout in training mode, expected inference");
    call->out[0] = value_keep(call->in[0]);
    if (!op_wants(call, 1))
        return GRAPHI_OK;
    TRY(op_new(call, 1, T_BOOL, call->in[0]->rank, call->in[0]->dims, &mask));
    memset(mask->data, 1, mask->bytes);
    return GRAPHI_OK;
}

const struct host_op host_ops_cast[] = {
    {"Cast", 1, 1, 1, "to saturate round_mode", run_cast, 0},
    {"CastLike", 2, 2, 1, "saturate round_mode", run_cast_like, 0},
    {"BitCast", 1, 1, 1, "to", run_bit_cast, 0},
    {"Identity", 1, 1, 1, "", run_identity, 0},
    {"Dropout", 1, 3, 2, "seed ratio", run_dropout, 0},
    {0},
};
