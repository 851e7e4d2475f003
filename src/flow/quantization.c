/* SPDX-License-Identifier: Apache-2.0 */
/* Lowerings of QuantizeLinear and DequantizeLinear with constant scales: float32 arithmetic between whole numbers of 8
 * or 16 bits, so quantized models stay in one plan. One thread lowers. */
#include "flow/lower.h"

#include "base/memory.h"

#include <string.h>

/* The numbers of a constant input as float32: one, or one for each element along an axis of a value of that rank. */
static graphi_status numbers(struct lower_call *c, int i, int axis, bool last, graphi_value *out)
{
    const graphi_tensor *x = c->call.in[0], *list = op_in(&c->call, i);
    int64_t dims[VALUE_RANK];
    *out = GRAPHI_NONE;
    if (!list)
        return GRAPHI_OK;
    if (list->count != 1 && (list->rank != 1 || list->count != x->dims[axis]))
        return lower_fail(c, "found %lld numbers as input %d, expected one, or one for each of axis %d",
                          (long long)list->count, i, axis);
    for (int k = 0; k < x->rank; k++)
        dims[last ? lower_axis(k, x->rank) : k] = k == axis ? list->count : 1;
    float *data = mem_alloc((size_t)list->count * sizeof *data);
    if (!data)
        return fail_memory(c->node->where, (size_t)list->count * sizeof *data);
    for (int64_t k = 0; k < list->count; k++)
        data[k] = (float)value_double(list, k);
    *out = graphi_constant(c->l->graph, GRAPHI_F32, list->count == 1 ? 0 : x->rank, dims, data);
    mem_free(data);
    return GRAPHI_OK;
}

struct quantized {
    int axis;
    bool last;
    graphi_value x, scale, zero;
};

static graphi_status find(struct lower_call *c, struct quantized *q)
{
    const graphi_tensor *scale = c->call.in[1];
    const int rank = c->call.in[0]->rank;
    struct flow_value *x = lower_in(c, 0);
    TRY(lower_constants(c, 1));
    q->axis = 0;
    if (scale->count != 1)
        TRY(op_axis(&c->call, op_int(&c->call, "axis", 1), rank, &q->axis));
    if (op_int(&c->call, "block_size", 0) || scale->type != T_F32)
        return lower_fail(c, "found blocks or scales of %s, expected float32 for a plan",
                          graphi_element_name(scale->type));
    q->last = lower_is_last(x);
    q->x = q->last ? x->last : lower_plain(c->l, x);
    TRY(numbers(c, 1, q->axis, q->last, &q->scale));
    return numbers(c, 2, q->axis, q->last, &q->zero);
}

/* Halves to even, for what is not beyond 2^22 anyway. */
static graphi_value rounded(struct lower_call *c, graphi_value x)
{
    graphi_graph *g = c->l->graph;
    const graphi_value big = lower_number(c->l, 0x1.8p23), most = lower_number(c->l, 0x1p21);
    x = graphi_max(g, graphi_min(g, x, most), graphi_neg(g, most));
    return graphi_sub(g, graphi_add(g, x, big), big);
}

static graphi_status lower_quantize(struct lower_call *c)
{
    static const struct {
        graphi_element type;
        double least, most;
    } ranges[] = {{T_U8, 0, 255}, {T_I8, -128, 127}, {T_U16, 0, 65535}, {T_I16, -32768, 32767}};
    struct quantized q;
    graphi_dtype dtype;
    size_t at = 0;
    TRY(lower_floats(c, 0));
    if (c->call.in[0]->type != T_F32)
        return lower_fail(c, "found %s, expected float32 for a plan", graphi_element_name(c->call.in[0]->type));
    const graphi_element asked = (graphi_element)op_int(&c->call, "output_dtype", 0);
    const graphi_element to = op_in(&c->call, 2) ? c->call.in[2]->type : asked ? asked : T_U8;
    while (at < 4 && ranges[at].type != to)
        at++;
    if (at == 4 || !element_dtype(to, &dtype))
        return lower_fail(c, "found numbers of %s, expected 8 or 16 bits for a plan", graphi_element_name(to));
    TRY(find(c, &q));
    graphi_graph *g = c->l->graph;
    graphi_value y = rounded(c, graphi_div(g, q.x, q.scale));
    if (q.zero != GRAPHI_NONE)
        y = graphi_add(g, y, q.zero);
    y = graphi_max(g, graphi_min(g, y, lower_number(c->l, ranges[at].most)), lower_number(c->l, ranges[at].least));
    return lower_set(c, 0, graphi_cast(g, y, dtype), q.last);
}

static graphi_status lower_dequantize(struct lower_call *c)
{
    struct quantized q;
    TRY(lower_movable(c, 0));
    const graphi_element from = c->call.in[0]->type;
    if (from != T_U8 && from != T_I8 && from != T_U16 && from != T_I16 && from != T_I32)
        return lower_fail(c, "found numbers of %s, expected 8 to 32 bits for a plan", graphi_element_name(from));
    TRY(find(c, &q));
    graphi_graph *g = c->l->graph;
    graphi_value y = graphi_cast(g, q.x, GRAPHI_F32);
    if (q.zero != GRAPHI_NONE)
        y = graphi_sub(g, y, q.zero);
    c->type = T_F32;
    return lower_set(c, 0, graphi_mul(g, y, q.scale), q.last);
}

const struct lower_row lower_quantization[] = {
    {"QuantizeLinear", lower_quantize, NULL},
    {"DequantizeLinear", lower_dequantize, NULL},
    {0},
};
