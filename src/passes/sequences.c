/* SPDX-License-Identifier: Apache-2.0 */
/* The lowering of recurrences that was asked for (deepcpu.txt 5): a loop operation stays one, with its parts told, is
 * cut in time, or is unrolled. Where a form does not apply the loop stays: lengths, and activations or limits of other
 * makers, are its own. Linear in the graph that comes out. Usual size: 1 to 8 recurrences. */
#include "passes/sequences.h"

#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/successor.h"

#include "base/number.h"
#include "base/status.h"
#include "graph/op.h"
#include "graphi/ops.h"
#include "ops/matmul.h"
#include "ops/recurrence.h"
#include "ops/recurrence_unroll.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

static graphi_status refuse(const char *text)
{
    return fail(GRAPHI_USAGE, "sequences",
                "found '%.80s', expected auto, streamlined, partitioned, partitioned:IxJxK, chunked:STEPS, unrolled, "
                "eight, fused or across, of loops with +:WIDTH behind it",
                text);
}

static bool whole(const char **text, int *number)
{
    char *end;
    const long value = strtol(*text, &end, 10);
    if (end == *text || value < 1 || value > 1 << 20 || **text < '0' || **text > '9')
        return false;
    *text = end;
    *number = (int)value;
    return true;
}

static bool parts(const char **text, int cut[3])
{
    for (int i = 0; i < 3; i++) {
        if (i && *(*text)++ != 'x')
            return false;
        if (!whole(text, &cut[i]))
            return false;
    }
    return true;
}

graphi_status sequences_parse(const char *text, bool rounding, struct sequences *out)
{
    struct sequences s = {0};
    const char *at = text ? text : "auto";
    const size_t size = strcspn(at, ":+");
    int which = 0;
    while (which < GRAPHI_LOWERINGS && (strlen(graphi_lowering_name((graphi_lowering)which)) != size ||
                                        strncmp(graphi_lowering_name((graphi_lowering)which), at, size)))
        which++;
    if (which == GRAPHI_LOWERINGS)
        return refuse(text);
    s.lowering = (graphi_lowering)which;
    at += size;
    const bool chunked = which == GRAPHI_LOWERING_CHUNKED, partitioned = which == GRAPHI_LOWERING_PARTITIONED;
    if (*at == ':' || chunked) {
        if (*at++ != ':' || !(chunked ? whole(&at, &s.chunk) : partitioned && parts(&at, s.cut)))
            return refuse(text);
    }
    const bool loop = which <= GRAPHI_LOWERING_STREAMLINED || chunked;
    if (strncmp(at, "+:", 2) == 0) {
        at += 2;
        if (!loop || !whole(&at, &s.cut[1]))
            return refuse(text);
    }
    if (*at)
        return refuse(text);
    if (s.cut[2] > 1 && !rounding)
        return fail(GRAPHI_USAGE, "sequences",
                    "found '%.80s' without allow_rounding, expected it beside k in several parts, which rounds "
                    "otherwise",
                    text);
    *out = s;
    return GRAPHI_OK;
}

/* --- the analytic partition --- */

double sequences_moved(const struct sequences_work *w, const int cut[3])
{
    const double a = 4 * w->rows * w->units, b = 4 * w->units * w->columns, c = 4 * w->rows * w->columns;
    const bool stays = b / ((double)cut[1] * cut[2]) <= w->cache;
    return w->steps * (cut[1] * a + 2 * cut[2] * c) + (stays ? 1 : w->steps) * cut[0] * b;
}

void sequences_partition(const struct sequences_work *w, int cut[3])
{
    double least_bytes = INFINITY;
    for (int i = 1; i <= w->workers && i <= w->rows; i++)
        for (int k = 1; w->workers % i == 0 && k <= (w->rounding ? w->workers / i : 1); k++) {
            if (w->workers / i % k)
                continue;
            const int tried[3] = {i, w->workers / i / k, k};
            const double bytes = sequences_moved(w, tried);
            if (bytes < least_bytes) {
                least_bytes = bytes;
                memcpy(cut, tried, sizeof tried);
            }
        }
}

/* --- the pass --- */

/* A recurrence that is lowered. Inputs are those of the graph as it becomes. */
struct target {
    graphi_graph *graph;
    const struct sequences *asked;
    const struct pass_options *options;
    struct node node; /* building appends nodes */
    struct recurrence_node places;
    graphi_value in[16], x, w; /* x, w: of the product that its input is; NONE: it is none */
    bool w_rows;
    bool wanted[8]; /* which results are read */
    int64_t batch, steps, units;
};

/* A product of one left and one right operand, as builders write it. */
static void find_product(struct target *t, const struct value_map *map)
{
    const struct value *value = graph_value(t->graph, t->in[RECURRENT_X]);
    const struct node *node = value->node >= 0 ? graph_node(t->graph, value->node) : NULL;
    t->x = t->w = GRAPHI_NONE;
    if (!node || !is_plain_product(node) || product_pairs(node) != 1 || product_trans_a(node))
        return;
    t->x = map_follow(map, product_left(node, 0));
    t->w = map_follow(map, product_right(node, 0));
    t->w_rows = product_trans_b(node);
}

static bool find_target(struct target *t, int32_t id, const struct uses *uses, const struct value_map *map)
{
    t->node = *graph_node(t->graph, id);
    t->places = recurrence_node(&t->node);
    if (t->node.inputs > 16 || t->node.outputs > 8)
        return false;
    for (int i = 0; i < t->node.inputs; i++)
        t->in[i] = map_follow(map, t->node.input[i]);
    for (int i = 0; i < t->node.outputs; i++)
        t->wanted[i] = uses_count(uses, t->node.output + i) > 0 || uses->output[t->node.output + i];
    const struct value_type *x = &graph_value(t->graph, t->in[RECURRENT_X])->type;
    t->batch = graph_value(t->graph, t->in[RECURRENT_H0])->type.dims[0];
    t->units = attr_int(&t->node, "units");
    t->steps = t->batch > 0 ? x->dims[0] / t->batch : 0;
    find_product(t, map);
    return t->steps > 0 && x->symbol < 0 && graph_value(t->graph, t->in[RECURRENT_H0])->type.symbol < 0;
}

/* Steps can be taken apart: all sequences have as many, and the cell is that of the builders. */
static bool may_unroll(const struct target *t)
{
    const struct recurrence_spec spec = recurrence_spec_of(&t->node);
    const struct recurrence_activation *f = spec.options.activation;
    const bool gated = f[0].function == RECURRENCE_SIGMOID && f[1].function == RECURRENCE_TANH;
    const bool usual = spec.cell == RECURRENCE_LSTM ? gated && f[2].function == RECURRENCE_TANH
                       : spec.cell == RECURRENCE_GRU
                           ? gated
                           : f[0].function == RECURRENCE_TANH || f[0].function == RECURRENCE_RELU;
    return usual && !spec.offsets && !spec.peepholes && !spec.options.input_forget && !(spec.options.clip > 0) &&
           t->steps <= UNROLLED_MOST;
}

static graphi_status place(struct target *t, int output, graphi_value value, struct value_map *map)
{
    return output < 0 || value == GRAPHI_NONE ? GRAPHI_OK : map_set(map, t->graph, t->node.output + output, value);
}

static graphi_status unroll(struct target *t, struct value_map *map)
{
    const struct recurrence_node *n = &t->places;
    const struct recurrence_spec spec = recurrence_spec_of(&t->node);
    const int32_t first = (int32_t)t->graph->nodes.count;
    const struct unrolled of = {.graph = t->graph,
                                .cell = (graphi_cell)n->cell,
                                .lowering = t->x == GRAPHI_NONE ? GRAPHI_LOWERING_ACROSS : t->asked->lowering,
                                .units = t->units,
                                .steps = t->steps,
                                .batch = t->batch,
                                .reverse = spec.reverse,
                                .relu = spec.options.activation[0].function == RECURRENCE_RELU,
                                .w_rows = t->w_rows,
                                .u_rows = attr_int(&t->node, "trans") != 0,
                                .x = t->x,
                                .w = t->w,
                                .xw = t->x == GRAPHI_NONE ? t->in[RECURRENT_X] : GRAPHI_NONE,
                                .u = t->in[RECURRENT_U],
                                .b = t->in[RECURRENT_B],
                                .inner = n->inner >= 0 ? t->in[n->inner] : GRAPHI_NONE,
                                .gates = n->gates >= 0 && t->wanted[n->gates],
                                .kept = n->kept >= 0 && t->wanted[n->kept] &&
                                        (n->cell == RECURRENCE_LSTM || n->reset_after)};
    graphi_value h = t->in[RECURRENT_H0], c = n->c0 >= 0 ? t->in[n->c0] : GRAPHI_NONE;
    const struct unrolled_results r = recurrence_unroll(&of, &h, &c);
    TRY(t->graph->status);
    adopt(t->graph, first, &t->node);
    TRY(place(t, RECURRENT_Y, r.y, map));
    TRY(place(t, RECURRENT_LAST_H, h, map));
    TRY(place(t, n->last_c, c, map));
    TRY(place(t, n->gates, r.gates, map));
    return place(t, n->kept, r.kept, map);
}

/* The recurrence over steps begin .. end - 1, states going on from in[]. */
static graphi_value chunk(struct target *t, int64_t begin, int64_t end)
{
    graphi_graph *g = t->graph;
    graphi_attribute attributes[RECURRENCE_SHARED + 4];
    for (int i = 0; i < t->node.attributes && i < RECURRENCE_SHARED + 4; i++) {
        attributes[i] = t->node.attribute[i];
        if (strcmp(attributes[i].name, "steps") == 0)
            attributes[i].i = end - begin;
    }
    graphi_value in[16];
    memcpy(in, t->in, sizeof in);
    in[RECURRENT_X] = t->x == GRAPHI_NONE ? graphi_slice(g, t->in[RECURRENT_X], 0, begin * t->batch, end * t->batch)
                                          : graphi_matmul(g, unrolled_rows(g, t->x, begin * t->batch, end * t->batch),
                                                          t->w, 0, t->w_rows);
    return graphi_op(g, t->node.kind->name, t->node.inputs, in, t->node.attributes, attributes);
}

/* So that products of later steps, and layers above, run beside the steps before (graphi.txt 5.2: the diagonal). */
static graphi_status cut_in_time(struct target *t, struct value_map *map)
{
    enum { MOST = 256 };
    const struct recurrence_node *n = &t->places;
    const int64_t chunks = divide_up(t->steps, t->asked->chunk);
    const bool reverse = attr_int(&t->node, "reverse") != 0;
    const int32_t first = (int32_t)t->graph->nodes.count;
    graphi_value part[8][MOST];
    if (chunks < 2 || chunks > MOST)
        return GRAPHI_OK;
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t k = reverse ? chunks - 1 - i : i;
        const graphi_value y = chunk(t, k * t->asked->chunk, least((k + 1) * t->asked->chunk, t->steps));
        TRY(t->graph->status);
        for (int o = 0; o < t->node.outputs; o++)
            part[o][k] = y + o;
        t->in[RECURRENT_H0] = y + RECURRENT_LAST_H;
        if (n->c0 >= 0)
            t->in[n->c0] = y + n->last_c;
    }
    const int rows[] = {RECURRENT_Y, n->gates, n->kept};
    for (int i = 0; i < 3; i++)
        if (rows[i] >= 0 && t->wanted[rows[i]])
            TRY(place(t, rows[i], graphi_concat(t->graph, (int)chunks, part[rows[i]], 0), map));
    TRY(t->graph->status);
    adopt(t->graph, first, &t->node);
    TRY(place(t, RECURRENT_LAST_H, t->in[RECURRENT_H0], map));
    return place(t, n->last_c, n->c0 >= 0 ? t->in[n->c0] : GRAPHI_NONE, map);
}

/* Few units of many sequences: each worker has rows of its own and all weights, and none waits for another (bench
 * recurrent, 64 units). */
static bool rows_apart(const struct target *t)
{
    enum { FEW_UNITS = 128, ROWS_EACH = 4 };
    return t->options->cores > 1 && t->places.offsets < 0 && t->units <= FEW_UNITS &&
           t->batch >= ROWS_EACH * (int64_t)t->options->cores;
}

static graphi_status cut_parts(struct target *t, int32_t id, struct value_map *map)
{
    int64_t cut[3] = {t->asked->cut[0], t->asked->cut[1], t->asked->cut[2]};
    const bool partition = t->asked->lowering == GRAPHI_LOWERING_PARTITIONED && !cut[0];
    if (partition) {
        int found[3] = {1, 1, 1};
        const struct sequences_work work = {.rows = (double)t->batch,
                                            .units = (double)t->units,
                                            .columns = (double)(recurrence_gates(t->places.cell) * t->units),
                                            .steps = (double)t->steps,
                                            .cache = (double)t->options->level_2,
                                            .workers = (int)most(t->options->cores, 1),
                                            .rounding = t->options->rounding};
        sequences_partition(&work, found);
        for (int i = 0; i < 3; i++)
            cut[i] = found[i];
    } else if (t->asked->lowering == GRAPHI_LOWERING_AUTO && !cut[1] && rows_apart(t)) {
        cut[0] = t->options->cores;
        cut[1] = 1;
    }
    if (!cut[0] && !cut[1] && !cut[2])
        return GRAPHI_OK;
    struct successor s;
    TRY(successor_begin(t->graph, id, 0, &s));
    memcpy(s.input, t->in, sizeof *s.input * (size_t)t->node.inputs);
    graphi_attribute *attribute = successor_attribute(&s, "cut");
    attribute->ints = cut;
    attribute->count = 3;
    return successor_place(t->graph, &s, map);
}

static graphi_status lower(struct target *t, int32_t id, const struct uses *uses, struct value_map *map)
{
    const graphi_lowering lowering = t->asked->lowering;
    const bool fixed = find_target(t, id, uses, map);
    const bool unrolls = lowering >= GRAPHI_LOWERING_ACROSS && lowering <= GRAPHI_LOWERING_UNROLLED;
    if (unrolls)
        return fixed && may_unroll(t) ? unroll(t, map) : GRAPHI_OK;
    if (lowering == GRAPHI_LOWERING_CHUNKED && fixed && t->places.offsets < 0)
        return cut_in_time(t, map);
    return cut_parts(t, id, map);
}

graphi_status pass_sequences(graphi_graph *graph, const struct pass_options *options)
{
    struct sequences asked;
    struct value_map map = {0};
    struct uses uses = {0};
    TRY(sequences_parse(options->sequences, options->rounding, &asked));
    graphi_status status = uses_open(graph, &uses);
    const size_t nodes = graph->nodes.count;
    for (size_t i = 0; status == GRAPHI_OK && i < nodes; i++) {
        struct target target = {.graph = graph, .asked = &asked, .options = options};
        if (node_is(graph_node(graph, (int32_t)i), IS_RECURRENCE))
            status = lower(&target, (int32_t)i, &uses, &map);
    }
    uses_close(&uses);
    return map_end(&map, graph, status);
}
