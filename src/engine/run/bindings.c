/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the caller in place of a run's own. An input's buffer is its own, so that all its arguments move. An
 * output's is where the value is all of its buffer, and no other output lies in it; views, parameters, parts of a
 * concatenation and second names of a value are copied. What works in place on the way to an output does so in the
 * caller's memory, which has the same size. Usual size: 1 to 10 ports, each with 1 to 4 arguments. */
#include "engine/run/bindings.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/op.h"

#include <string.h>

/* May the output be written in place? */
static bool has_own_buffer(const struct compiled *c, size_t output)
{
    const struct place *place = &c->place[c->outputs.data[output].value];
    const struct buffer *buffer = &c->buffers.data[place->buffer];
    const int64_t bytes = type_bytes(&graph_value(c->graph, c->outputs.data[output].value)->type);
    return buffer->kind == BUFFER_ARENA && place->offset == 0 && buffer->bytes == bytes && array_is_dense(&place->desc);
}

/* The port whose memory may stand for each buffer; -1: none. */
static void find_ports(const struct compiled *c, int32_t *port_of)
{
    enum { SHARED = -2 };
    for (size_t b = 0; b < c->buffers.count; b++)
        port_of[b] = -1;
    for (size_t i = 0; i < c->inputs.count; i++)
        port_of[c->place[c->inputs.data[i].value].buffer] = (int32_t)i;
    for (size_t i = 0; i < c->outputs.count; i++) {
        int32_t *port = &port_of[c->place[c->outputs.data[i].value].buffer];
        *port = *port != -1 ? SHARED : has_own_buffer(c, i) ? (int32_t)(c->inputs.count + i) : SHARED;
    }
    for (size_t b = 0; b < c->buffers.count; b++)
        port_of[b] = port_of[b] == SHARED ? -1 : port_of[b];
}

/* Lists of arguments by key: begin[] of `keys` + 1, then the arguments themselves in `list`. key: of each argument, or
 * -1. */
static void fill_lists(const int32_t *key, size_t arguments, size_t keys, int32_t *begin, int32_t *list)
{
    memset(begin, 0, (keys + 1) * sizeof *begin);
    for (size_t a = 0; a < arguments; a++)
        if (key[a] >= 0)
            begin[key[a] + 1]++;
    for (size_t k = 0; k < keys; k++)
        begin[k + 1] += begin[k];
    for (size_t a = 0; a < arguments; a++)
        if (key[a] >= 0)
            list[begin[key[a]]++] = (int32_t)a;
    for (size_t k = keys; k > 0; k--) /* each has moved to the end of its list, which is where the next begins */
        begin[k] = begin[k - 1];
    begin[0] = 0;
}

static void make_lists(const struct compiled *c, struct bindings *b, int32_t *port_of, int32_t *key)
{
    const size_t arguments = c->arguments.count, ports = c->inputs.count + c->outputs.count;
    const size_t symbols = c->graph->symbols.count;
    b->port_begin = b->list;
    b->symbol_begin = b->port_begin + ports + 1;
    b->reads = b->symbol_begin + symbols + 1;
    b->follows = b->reads + arguments;
    find_ports(c, port_of);
    for (size_t a = 0; a < arguments; a++)
        key[a] = c->arguments.data[a].buffer >= 0 ? port_of[c->arguments.data[a].buffer] : -1;
    fill_lists(key, arguments, ports, b->port_begin, b->reads);
    for (size_t a = 0; a < arguments; a++)
        key[a] = c->arguments.data[a].symbol;
    fill_lists(key, arguments, symbols, b->symbol_begin, b->follows);
}

graphi_status bindings_create(const struct compiled *c, struct bindings *out)
{
    const size_t arguments = c->arguments.count, ports = c->inputs.count + c->outputs.count;
    const size_t words = 2 * arguments + ports + c->graph->symbols.count + 2;
    out->base = mem_zalloc_array(c->buffers.count + 1, sizeof *out->base);
    out->port = mem_zalloc_array(ports + 1, sizeof *out->port);
    out->list = mem_zalloc_array(words, sizeof *out->list);
    int32_t *work = mem_zalloc_array(c->buffers.count + arguments + 1, sizeof *work);
    const bool enough = out->base && out->port && out->list && work;
    if (enough)
        make_lists(c, out, work, work + c->buffers.count);
    mem_free(work);
    return enough ? GRAPHI_OK : fail_memory("run", words * sizeof *out->list);
}

void bindings_free(struct bindings *bindings)
{
    mem_free(bindings->base);
    mem_free(bindings->port);
    mem_free(bindings->list);
}
