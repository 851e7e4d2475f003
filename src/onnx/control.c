/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop, Scan and SequenceMap over bodies (graph_run.h). Conditions and trip counts may be scalars or have one
 * element, whatever a body declares; a negative count makes no step; Loop without a condition goes on to its count.
 * Source: ONNX If, Loop, Scan, SequenceMap; docs/onnx.md tells where engines differ. A run belongs to its caller. */
#include "onnx/graph_run.h"

#include "base/memory.h"
#include "value/map.h"

#include <string.h>

static graphi_status read_number(const struct interpreter *run, const struct model_node *node, int number, int64_t *out)
{
    struct value_text text;
    const graphi_tensor *value = interpreter_value(run, number);
    if (!value || value->kind != GRAPHI_KIND_TENSOR || value->count != 1)
        return fail(GRAPHI_INVALID, node->where, "found %s, expected one element", value_describe(value, &text));
    *out = value_int(value, 0);
    return GRAPHI_OK;
}

static graphi_status take_output(struct interpreter *run, const struct model_node *node, const struct model_graph *body,
                                 size_t i, graphi_tensor **out)
{
    graphi_tensor *value = i < body->outputs.count ? interpreter_value(run, body->outputs.data[i]) : NULL;
    if (!value)
        return fail(GRAPHI_INVALID, node->where, "found no output %zu of the body, expected one", i);
    *out = value_keep(value);
    return GRAPHI_OK;
}

/* What a body's inputs and outputs still hold. */
static void clear(struct interpreter *run, const struct model_graph *body)
{
    for (size_t i = 0; i < body->inputs.count; i++)
        interpreter_set(run, body->inputs.data[i], NULL);
    for (size_t i = 0; i < body->nodes.count; i++)
        for (int k = 0; k < body->nodes.data[i].outs; k++)
            if (body->nodes.data[i].out[k] >= 0)
                interpreter_set(run, body->nodes.data[i].out[k], NULL);
}

static graphi_status run_if(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    int64_t condition;
    TRY(read_number(run, node, node->ins ? node->in[0] : -1, &condition));
    const struct model_graph *body = node->body[condition ? 0 : 1];
    TRY(graph_run(run, body));
    for (int i = 0; i < node->outs; i++) {
        graphi_tensor *value;
        TRY(take_output(run, node, body, (size_t)i, &value));
        if (node->out[i] >= 0)
            interpreter_set(run, node->out[i], value);
        else
            value_drop(value);
    }
    clear(run, body);
    return GRAPHI_OK;
}

/* What Loop and Scan carry and collect. */
struct steps {
    struct interpreter *run;
    const struct model_node *node;
    const struct model_graph *body;
    size_t carried, collected, first; /* of the body's outputs: `first` is the one of the first carried value */
    graphi_tensor **state;            /* carried values */
    graphi_tensor *const *given;      /* the node's inputs; NULL: those of the run */
    ARRAY(graphi_tensor *) * lists;   /* one a collected output */
};

static void steps_free(struct steps *s)
{
    for (size_t i = 0; s->state && i < s->carried; i++)
        value_drop(s->state[i]);
    for (size_t i = 0; s->lists && i < s->collected; i++) {
        for (size_t k = 0; k < s->lists[i].count; k++)
            value_drop(s->lists[i].data[k]);
        array_free(&s->lists[i]);
    }
    mem_free(s->state);
    mem_free(s->lists);
}

static graphi_tensor *steps_input(const struct steps *s, size_t i)
{
    return s->given ? s->given[i] : interpreter_value(s->run, s->node->in[i]);
}

static graphi_status steps_begin(struct steps *s, size_t first_input)
{
    if (s->body->outputs.count < s->first + s->carried || s->node->outs > (int)(s->body->outputs.count - s->first))
        return fail(GRAPHI_INVALID, s->node->where,
                    "found %zu outputs of the body for %zu carried values, expected more", s->body->outputs.count,
                    s->carried);
    s->collected = s->body->outputs.count - s->first - s->carried;
    s->state = mem_zalloc_array(s->carried + 1, sizeof *s->state);
    s->lists = mem_zalloc_array(s->collected + 1, sizeof *s->lists);
    if (!s->state || !s->lists)
        return fail_memory(s->node->where, s->carried * sizeof *s->state);
    for (size_t i = 0; i < s->carried; i++) {
        s->state[i] = value_keep(steps_input(s, first_input + i));
        if (!s->state[i])
            return fail(GRAPHI_INVALID, s->node->where, "found no initial value %zu, expected one", i);
    }
    return GRAPHI_OK;
}

/* The body once, whose own inputs are set: carried values go round, the others are collected. */
static graphi_status steps_one(struct steps *s, size_t first_input, graph_run_fn *graph_run)
{
    for (size_t i = 0; i < s->carried; i++)
        interpreter_set(s->run, s->body->inputs.data[first_input + i], value_keep(s->state[i]));
    TRY(graph_run(s->run, s->body));
    for (size_t i = 0; i < s->carried; i++) {
        graphi_tensor *next;
        TRY(take_output(s->run, s->node, s->body, s->first + i, &next));
        value_drop(s->state[i]);
        s->state[i] = next;
    }
    for (size_t i = 0; i < s->collected; i++) {
        graphi_tensor *one;
        TRY(take_output(s->run, s->node, s->body, s->first + s->carried + i, &one));
        if (!array_push(&s->lists[i], one)) {
            value_drop(one);
            return fail_memory(s->node->where, sizeof one);
        }
    }
    return GRAPHI_OK;
}

/* Tensors of one shape beside each other along a new axis. None: the declared type, unknown sizes 0. */
static graphi_status stack(const struct steps *s, size_t list, int64_t axis, bool reverse, graphi_tensor **out)
{
    const struct model_value *declared =
        &s->run->model->values.data[s->body->outputs.data[s->first + s->carried + list]];
    graphi_tensor *const *rows = s->lists[list].data;
    const int64_t count = (int64_t)s->lists[list].count;
    struct value_text a, b;
    int64_t dims[VALUE_RANK + 1], strides[VALUE_RANK];
    const int inner = count ? rows[0]->rank : declared->rank > 0 ? declared->rank : 0;
    const int64_t *sizes = count ? rows[0]->dims : declared->dims;
    axis = axis < 0 ? axis + inner + 1 : axis;
    if (axis < 0 || axis > inner || inner == VALUE_RANK)
        return fail(GRAPHI_INVALID, s->node->where, "found axis %lld for a scan output of rank %d, expected one of it",
                    (long long)axis, inner + 1);
    for (int i = 0; i <= inner; i++)
        dims[i] = i == axis ? count : sizes[i - (i > axis)] < 0 ? 0 : sizes[i - (i > axis)];
    TRY(value_new(s->node->where,
                  count            ? rows[0]->type
                  : declared->type ? declared->type
                                   : T_F32,
                  inner + 1, dims, out));
    dims_strides(inner + 1, dims, strides);
    const int64_t stride = strides[axis];
    memmove(strides + axis, strides + axis + 1, (size_t)(inner - axis) * sizeof *strides);
    for (int64_t k = 0; k < count; k++) {
        const graphi_tensor *row = rows[reverse ? count - 1 - k : k];
        if (row->kind != GRAPHI_KIND_TENSOR || row->type != rows[0]->type || row->rank != inner ||
            memcmp(row->dims, rows[0]->dims, (size_t)inner * sizeof *dims) != 0)
            return fail(GRAPHI_INVALID, s->node->where, "found the scan output %s after %s, expected one shape",
                        value_describe(row, &a), value_describe(rows[0], &b));
        struct map map = map_over(inner, row->dims);
        map_strided(&map, strides);
        map_broadcast(&map, inner, row->dims);
        map_copy(map, element_size(row->type), (char *)(*out)->data + k * stride * (int64_t)element_size(row->type),
                 row->data);
    }
    return GRAPHI_OK;
}

static graphi_status steps_end(struct steps *s, const int64_t *axes, size_t axis_count, const int64_t *directions,
                               size_t direction_count)
{
    for (size_t i = 0; i < (size_t)s->node->outs; i++) {
        graphi_tensor *value = NULL;
        if (s->node->out[i] < 0)
            continue;
        if (i < s->carried)
            value = value_keep(s->state[i]);
        else {
            const size_t k = i - s->carried;
            graphi_status status =
                stack(s, k, k < axis_count ? axes[k] : 0, k < direction_count && directions[k], &value);
            if (status != GRAPHI_OK) {
                value_drop(value);
                return status;
            }
        }
        interpreter_set(s->run, s->node->out[i], value);
    }
    clear(s->run, s->body);
    return GRAPHI_OK;
}

static graphi_status loop_steps(struct steps *s, int64_t trips, bool going, graph_run_fn *graph_run)
{
    struct interpreter *run = s->run;
    for (int64_t i = 0; i < trips && going; i++) {
        graphi_tensor *number, *condition;
        int64_t more;
        if (i == run->loop_limit)
            return fail(GRAPHI_INVALID, s->node->where,
                        "found more than %lld trips of a Loop, expected an end "
                        "(loop_limit of the session)",
                        (long long)i);
        TRY(value_number(s->node->where, T_I64, 0, &number));
        *(int64_t *)number->data = i;
        interpreter_set(run, s->body->inputs.data[0], number);
        TRY(value_number(s->node->where, T_BOOL, 1, &condition));
        interpreter_set(run, s->body->inputs.data[1], condition);
        TRY(steps_one(s, 2, graph_run));
        TRY(read_number(run, s->node, s->body->outputs.data[0], &more));
        going = more != 0;
    }
    return GRAPHI_OK;
}

static graphi_status run_loop(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    struct steps s = {.run = run,
                      .node = node,
                      .body = node->body[0],
                      .first = 1,
                      .carried = node->ins > 2 ? (size_t)node->ins - 2 : 0};
    int64_t trips = INT64_MAX, condition = 1;
    if (s.body->inputs.count != s.carried + 2 || s.body->outputs.count < 1)
        return fail(GRAPHI_INVALID, node->where, "found %zu inputs of the body, expected %zu", s.body->inputs.count,
                    s.carried + 2);
    if (node->ins > 0 && node->in[0] >= 0)
        TRY(read_number(run, node, node->in[0], &trips));
    if (node->ins > 1 && node->in[1] >= 0)
        TRY(read_number(run, node, node->in[1], &condition));
    graphi_status status = steps_begin(&s, 2);
    if (status == GRAPHI_OK)
        status = loop_steps(&s, trips, condition != 0, graph_run);
    if (status == GRAPHI_OK)
        status = steps_end(&s, NULL, 0, NULL, 0);
    steps_free(&s);
    return status;
}

/* Row `at` of a scan input, without the axis. */
static graphi_status slice_row(const struct model_node *node, const graphi_tensor *from, int axis, int64_t at,
                               graphi_tensor **out)
{
    int64_t dims[VALUE_RANK], strides[VALUE_RANK];
    dims_strides(from->rank, from->dims, strides);
    const int64_t stride = strides[axis];
    for (int i = 0, k = 0; i < from->rank; i++)
        if (i != axis) {
            strides[k] = strides[i];
            dims[k++] = from->dims[i];
        }
    TRY(value_new(node->where, from->type, from->rank - 1, dims, out));
    struct map map = map_over(from->rank - 1, dims);
    map_broadcast(&map, from->rank - 1, dims);
    map_strided(&map, strides);
    map_copy(map, element_size(from->type), (*out)->data,
             (const char *)from->data + at * stride * (int64_t)element_size(from->type));
    return GRAPHI_OK;
}

struct scan {
    struct op_call call; /* for the attributes */
    size_t scanned, axis_count, direction_count;
    const int64_t *axes, *directions;
    int64_t length;
};

static graphi_status scan_input(const struct steps *s, const struct scan *scan, size_t i, graphi_tensor **value,
                                int *axis)
{
    struct value_text text;
    *value = steps_input(s, s->carried + i);
    if (!*value || (*value)->kind != GRAPHI_KIND_TENSOR || (*value)->rank < 1)
        return fail(GRAPHI_INVALID, s->node->where, "found %s to scan, expected a tensor",
                    value_describe(*value, &text));
    return op_axis(&scan->call, i < scan->axis_count ? scan->axes[i] : 0, (*value)->rank, axis);
}

static graphi_status scan_length(const struct steps *s, struct scan *scan)
{
    for (size_t i = 0; i < scan->scanned; i++) {
        graphi_tensor *value;
        int axis;
        TRY(scan_input(s, scan, i, &value, &axis));
        if (i && value->dims[axis] != scan->length)
            return fail(GRAPHI_INVALID, s->node->where, "found %lld and %lld steps, expected as many",
                        (long long)scan->length, (long long)value->dims[axis]);
        scan->length = value->dims[axis];
    }
    return GRAPHI_OK;
}

static graphi_status scan_steps(struct steps *s, const struct scan *scan, graph_run_fn *graph_run)
{
    for (int64_t t = 0; t < scan->length; t++) {
        for (size_t i = 0; i < scan->scanned; i++) {
            graphi_tensor *value, *row = NULL;
            int axis;
            TRY(scan_input(s, scan, i, &value, &axis));
            const bool back = i < scan->direction_count && scan->directions[i];
            TRY(slice_row(s->node, value, axis, back ? scan->length - 1 - t : t, &row));
            interpreter_set(s->run, s->body->inputs.data[s->carried + i], row);
        }
        TRY(steps_one(s, 0, graph_run));
    }
    return GRAPHI_OK;
}

/* Scan of opset 8: dimension 0 of all is a batch, whose rows are scanned one after the other, each to its length. */
struct batches {
    struct interpreter *run;
    const struct model_node *node;
    int ins, outs;        /* without the lengths */
    int64_t count, steps; /* rows; steps of the longest that there may be */
    size_t scanned;
    graphi_tensor **in;             /* one row's inputs */
    ARRAY(graphi_tensor *) results; /* rows one after the other, `outs` each */
};

static graphi_status batches_find(struct batches *b, int64_t scanned)
{
    const struct model_node *node = b->node;
    struct value_text text;
    if (b->ins < 1 || scanned < 1 || scanned > b->ins || node->body[0]->inputs.count != (size_t)b->ins)
        return fail(GRAPHI_INVALID, node->where, "found %lld scan inputs of %d, and %zu of the body, expected as many",
                    (long long)scanned, b->ins, node->body[0]->inputs.count);
    b->scanned = (size_t)scanned;
    for (int i = 0; i < b->ins; i++) {
        const graphi_tensor *value = interpreter_value(b->run, node->in[i + 1]);
        const int least = i < b->ins - (int)scanned ? 1 : 2;
        if (!value || value->kind != GRAPHI_KIND_TENSOR || value->rank < least || (i && value->dims[0] != b->count))
            return fail(GRAPHI_INVALID, node->where, "found %s as input %d, expected a batch like that of the others",
                        value_describe(value, &text), i + 1);
        b->count = value->dims[0];
        b->steps = least == 2 ? value->dims[1] : 0;
    }
    return GRAPHI_OK;
}

static graphi_status batch_length(const struct batches *b, int64_t row, int64_t *length)
{
    const graphi_tensor *lengths = interpreter_value(b->run, b->node->in[0]);
    if (!lengths)
        return GRAPHI_OK;
    if (lengths->kind != GRAPHI_KIND_TENSOR || lengths->type != T_I64 || lengths->count != b->count ||
        value_int(lengths, row) < 0 || value_int(lengths, row) > *length)
        return fail(GRAPHI_INVALID, b->node->where, "found sequence_lens that do not fit, expected %lld of 0 to %lld",
                    (long long)b->count, (long long)*length);
    *length = value_int(lengths, row);
    return GRAPHI_OK;
}

static graphi_status batch_results(struct batches *b, struct steps *s)
{
    for (int i = 0; i < b->outs; i++) {
        const size_t at = (size_t)i;
        graphi_tensor *value = NULL;
        if (at < s->carried)
            value = value_keep(s->state[at]);
        else
            TRY(stack(s, at - s->carried, 0, false, &value));
        if (!array_push(&b->results, value)) {
            value_drop(value);
            return fail_memory(b->node->where, sizeof value);
        }
    }
    return GRAPHI_OK;
}

static graphi_status batch_row(struct batches *b, int64_t row, graph_run_fn *graph_run)
{
    static const struct host_op itself = {.name = "Scan"};
    struct steps s = {.run = b->run, .node = b->node, .body = b->node->body[0], .given = b->in};
    struct scan scan = {.call = {.op = &itself,
                                 .where = b->node->where,
                                 .attributes = b->node->attributes,
                                 .attribute_count = b->node->attribute_count},
                        .scanned = b->scanned};
    scan.directions = op_ints(&scan.call, "directions", &scan.direction_count);
    s.carried = (size_t)b->ins - b->scanned;
    for (int i = 0; i < b->ins; i++) {
        value_drop(b->in[i]);
        b->in[i] = NULL;
        TRY(slice_row(b->node, interpreter_value(b->run, b->node->in[i + 1]), 0, row, &b->in[i]));
    }
    TRY(scan_length(&s, &scan));
    TRY(batch_length(b, row, &scan.length));
    graphi_status status = steps_begin(&s, 0);
    if (status == GRAPHI_OK)
        status = scan_steps(&s, &scan, graph_run);
    if (status == GRAPHI_OK)
        status = batch_results(b, &s);
    steps_free(&s);
    return status;
}

/* Output i of all rows, beside each other; shorter scan outputs end in zeros. */
static graphi_status batch_join(const struct batches *b, int i, graphi_tensor **out)
{
    graphi_tensor *const *rows = b->results.data + i;
    struct value_text x, y;
    const bool scan = i >= b->ins - (int)b->scanned;
    const graphi_tensor *first = rows[0];
    int64_t dims[VALUE_RANK + 1] = {b->count};
    if (first->kind != GRAPHI_KIND_TENSOR || first->rank >= VALUE_RANK)
        return fail(GRAPHI_INVALID, b->node->where, "found %s as output %d, expected a tensor of rank below %d",
                    value_describe(first, &x), i, VALUE_RANK);
    for (int k = 0; k < first->rank; k++)
        dims[k + 1] = k == 0 && scan ? b->steps : first->dims[k];
    TRY(value_new(b->node->where, first->type, first->rank + 1, dims, out));
    memset((*out)->data, 0, (*out)->bytes);
    const size_t each = (*out)->bytes / (size_t)b->count;
    for (int64_t r = 0; r < b->count; r++) {
        const graphi_tensor *row = rows[r * b->outs];
        bool fits = row->kind == GRAPHI_KIND_TENSOR && row->type == first->type && row->rank == first->rank;
        for (int k = 0; k < first->rank && fits; k++)
            fits = (k == 0 && scan) || row->dims[k] == first->dims[k];
        if (!fits || row->bytes > each)
            return fail(GRAPHI_INVALID, b->node->where, "found %s after %s as output %d, expected one shape",
                        value_describe(row, &x), value_describe(first, &y), i);
        memcpy((char *)(*out)->data + (size_t)r * each, row->data, row->bytes);
    }
    return GRAPHI_OK;
}

static graphi_status run_batches(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    static const struct host_op itself = {.name = "Scan"};
    struct batches b = {.run = run, .node = node, .ins = node->ins - 1, .outs = node->outs};
    const struct op_call call = {
        .op = &itself, .attributes = node->attributes, .attribute_count = node->attribute_count};
    TRY(batches_find(&b, op_int(&call, "num_scan_inputs", 0)));
    if (b.count < 1)
        return fail(GRAPHI_INVALID, node->where, "found an empty batch, expected a row");
    b.in = mem_zalloc_array((size_t)b.ins, sizeof *b.in);
    graphi_status status = b.in ? GRAPHI_OK : fail_memory(node->where, (size_t)b.ins * sizeof *b.in);
    for (int64_t r = 0; r < b.count && status == GRAPHI_OK; r++)
        status = batch_row(&b, r, graph_run);
    for (int i = 0; i < b.outs && status == GRAPHI_OK; i++) {
        graphi_tensor *value = NULL;
        status = node->out[i] < 0 ? GRAPHI_OK : batch_join(&b, i, &value);
        if (status == GRAPHI_OK && node->out[i] >= 0)
            interpreter_set(run, node->out[i], value);
        else
            value_drop(value);
    }
    for (int i = 0; b.in && i < b.ins; i++)
        value_drop(b.in[i]);
    for (size_t i = 0; i < b.results.count; i++)
        value_drop(b.results.data[i]);
    array_free(&b.results);
    mem_free(b.in);
    if (status == GRAPHI_OK)
        clear(run, node->body[0]);
    return status;
}

static graphi_status run_scan(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    static const struct host_op itself = {.name = "Scan"};
    struct steps s = {.run = run, .node = node, .body = node->body[0]};
    struct scan scan = {.call = {.op = &itself,
                                 .where = node->where,
                                 .attributes = node->attributes,
                                 .attribute_count = node->attribute_count}};
    size_t out_axes, out_directions;
    const int64_t scanned = op_int(&scan.call, "num_scan_inputs", 0);
    if (node->version < 9)
        return run_batches(run, node, graph_run);
    if (scanned < 1 || scanned > node->ins || s.body->inputs.count != (size_t)node->ins)
        return fail(GRAPHI_INVALID, node->where, "found %lld scan inputs of %d, and %zu of the body, expected as many",
                    (long long)scanned, node->ins, s.body->inputs.count);
    scan.scanned = (size_t)scanned;
    s.carried = (size_t)node->ins - scan.scanned;
    scan.axes = op_ints(&scan.call, "scan_input_axes", &scan.axis_count);
    scan.directions = op_ints(&scan.call, "scan_input_directions", &scan.direction_count);
    const int64_t *axes = op_ints(&scan.call, "scan_output_axes", &out_axes);
    const int64_t *directions = op_ints(&scan.call, "scan_output_directions", &out_directions);
    TRY(scan_length(&s, &scan));
    graphi_status status = steps_begin(&s, 0);
    if (status == GRAPHI_OK)
        status = scan_steps(&s, &scan, graph_run);
    if (status == GRAPHI_OK)
        status = steps_end(&s, axes, out_axes, directions, out_directions);
    steps_free(&s);
    return status;
}

/* One step of SequenceMap: item `at` of each sequence; tensors go to every step. */
static graphi_status map_step(struct interpreter *run, const struct model_node *node, int64_t at, graphi_tensor **out,
                              graph_run_fn *graph_run)
{
    const struct model_graph *body = node->body[0];
    for (int i = 0; i < node->ins; i++) {
        graphi_tensor *value = interpreter_value(run, node->in[i]);
        const bool list = value && value->kind == GRAPHI_KIND_SEQUENCE;
        if (!value || (list && at >= value->count))
            return fail(GRAPHI_INVALID, node->where, "found input %d of fewer values, expected sequences of one length",
                        i);
        interpreter_set(run, body->inputs.data[i], value_keep(list ? value->items[at] : value));
    }
    TRY(graph_run(run, body));
    for (int i = 0; i < node->outs; i++)
        TRY(take_output(run, node, body, (size_t)i, &out[i]->items[at]));
    return GRAPHI_OK;
}

static graphi_status run_map(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    struct value_text text;
    enum { MOST = 64 };
    graphi_tensor *out[MOST] = {NULL};
    const graphi_tensor *first = node->ins ? interpreter_value(run, node->in[0]) : NULL;
    if (!first || first->kind != GRAPHI_KIND_SEQUENCE || node->body[0]->inputs.count != (size_t)node->ins ||
        node->outs > MOST)
        return fail(GRAPHI_INVALID, node->where, "found %s and %d outputs, expected a sequence and at most %d",
                    value_describe(first, &text), node->outs, MOST);
    const int64_t count = first->count;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < node->outs && status == GRAPHI_OK; i++)
        status = value_sequence(node->where, count, &out[i]);
    for (int64_t at = 0; at < count && status == GRAPHI_OK; at++)
        status = map_step(run, node, at, out, graph_run);
    for (int i = 0; i < node->outs; i++)
        if (status == GRAPHI_OK && node->out[i] >= 0)
            interpreter_set(run, node->out[i], out[i]);
        else
            value_drop(out[i]);
    if (status == GRAPHI_OK)
        clear(run, node->body[0]);
    return status;
}

graphi_status control_run(struct interpreter *run, const struct model_node *node, graph_run_fn *graph_run)
{
    static graphi_status (*const runs[])(struct interpreter *, const struct model_node *, graph_run_fn *) = {
        [NODE_IF] = run_if, [NODE_LOOP] = run_loop, [NODE_SCAN] = run_scan, [NODE_MAP] = run_map};
    return runs[node->kind](run, node, graph_run);
}
