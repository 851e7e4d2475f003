/* SPDX-License-Identifier: Apache-2.0 */
/* Networks over input graphs: forward, backward and update, in microseconds a vertex, batch after batch with graphs
 * that are ordered and fed each time; Tree-LSTM and Tree-FC beside DyNet and PyTorch, batched by hand and per sample,
 * in the same run (cavs.txt Figure 2 in its CPU form). Graphs are made (tool/made_graphs.h), or --data's.
 *
 * Rows are "treelstm h150 b256". Words choose rows by a part of their id, or peers (dynet, pytorch); --units and
 * --batch give one row of each network that is named. */
#include "bench.h"
#include "frameworks/formula.h"
#include "frameworks/graphs_beside.h"
#include "tool/made_graphs.h"
#include "tool/resident.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BATCHES = 32, FEATURES = 300, ROUNDS = 30 };

static const struct form {
    const char *network;
    int64_t units, batch;
    int batches;    /* of a cycle: small ones differ */
    int64_t sample; /* vertices that the bounds have room for, of each */
    bool peers;
} forms[] = {{"treelstm", 150, 256, 1, 80, true},   {"treelstm", 150, 25, 4, 80, true},
             {"treelstm", 150, 1, 32, 80, true},    {"treefc", 512, 64, 1, 511, true},
             {"fixed-lstm", 512, 64, 1, 64, false}, {"var-lstm", 200, 20, 4, 83, false}};

/* A row: the network and the batches of a cycle. */
struct subject {
    struct bench *bench;
    char id[64];
    graphi_model_info info;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_frontier *frontier;
    struct made_graphs made[MOST_BATCHES];
    int batches;
    graphi_trees *trees; /* of --data; its batches are copied */
    int64_t vertices;    /* of a cycle */
};

/* --- graphs --- */

static int32_t *copy(int32_t **to, const int32_t *from, int64_t count)
{
    int32_t *start = *to;
    memcpy(start, from, (size_t)count * sizeof *start);
    *to += count;
    return start;
}

/* A batch of --data, whose words are below the network's vocabulary. */
static graphi_status take_data(struct subject *s, struct made_graphs *out)
{
    graphi_trees_batch b;
    if (graphi_trees_next(s->trees, &b) != GRAPHI_OK)
        return report_failure(GRAPHI_INVALID);
    *out = (struct made_graphs){.numbers = calloc((size_t)(5 * b.vertices + b.edges + 2), sizeof *out->numbers),
                                .root = calloc((size_t)b.vertices, sizeof *out->root)};
    if (!out->numbers || !out->root)
        return report_error(GRAPHI_MEMORY, s->id, "found no room for a batch, expected it");
    int32_t *to = out->numbers;
    out->graphs = (graphi_input_graphs){.samples = b.samples, .vertices = b.vertices, .edges = b.edges};
    out->graphs.sample = copy(&to, b.sample, b.vertices);
    out->graphs.function = copy(&to, b.function, b.vertices);
    out->graphs.child_begin = copy(&to, b.child_begin, b.vertices + 1);
    out->graphs.child = copy(&to, b.child, b.edges);
    out->value[0] = (graphi_vertex_values){"words", GRAPHI_I32, 1, copy(&to, b.token, b.vertices)};
    out->value[1] = (graphi_vertex_values){"labels", GRAPHI_I32, 1, copy(&to, b.label, b.vertices)};
    out->graphs.values = 2;
    out->graphs.value = out->value;
    return GRAPHI_OK;
}

static graphi_status open_data(struct subject *s, const struct form *form, graphi_model_options *model)
{
    const char *path = s->bench->options.data;
    const graphi_trees_options how = {.batch = model->batch, .validation = -1};
    graphi_trees_info about;
    if (!path)
        return GRAPHI_OK;
    if (strcmp(form->network, "treefc") == 0)
        return report_usage("--data", path, "treelstm, fixed-lstm or var-lstm: treefc has trees of its own");
    if (graphi_trees_open(path, &how, &s->trees) != GRAPHI_OK)
        return report_failure(GRAPHI_INVALID);
    graphi_trees_get_info(s->trees, &about);
    model->vertices = about.batch_vertices;
    model->edges = about.batch_edges;
    model->vocabulary = about.vocabulary;
    model->classes = about.classes;
    return GRAPHI_OK;
}

static graphi_status make_graphs(struct subject *s)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < s->batches && status == GRAPHI_OK; i++) {
        status = s->trees ? take_data(s, &s->made[i]) : made_graphs(&s->info, 1 + (uint64_t)i, &s->made[i]);
        s->vertices += s->made[i].graphs.vertices;
    }
    return status;
}

/* --- the network --- */

static graphi_status fill_parameters(struct subject *s)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_PARAMETER, i, &port); i++) {
        float *data = malloc(port.bytes);
        if (!data)
            return report_error(GRAPHI_MEMORY, s->id, "found no room for %zu bytes, expected it", port.bytes);
        formula_fill(port.name, -0.1, 0.1, data, (int64_t)(port.bytes / sizeof *data));
        const graphi_status status = graphi_state_set(s->state, port.name, data, port.bytes);
        free(data);
        if (status != GRAPHI_OK)
            return report_failure(status);
    }
    return GRAPHI_OK;
}

static graphi_status set_rate(struct subject *s, float rate)
{
    return graphi_run_set(s->run, "learning_rate", GRAPHI_F32, &rate, sizeof rate);
}

static graphi_status open_network(struct subject *s, const struct form *form, graphi_model_options *model)
{
    const graphi_plan_options plan = {.isa = s->bench->options.isa};
    graphi_status status = graphi_model_get_info(form->network, model, &s->info);
    if (status == GRAPHI_OK)
        status = graphi_model_create(form->network, model, &s->graph);
    if (status == GRAPHI_OK)
        status = graphi_plan_create(s->graph, s->bench->machine, &plan, &s->plan);
    if (status == GRAPHI_OK)
        status = graphi_state_create(s->graph, 1, &s->state);
    if (status == GRAPHI_OK)
        status = graphi_run_create(s->plan, s->state, &s->run);
    const graphi_frontier_options bounds = made_graphs_bounds(&s->info);
    if (status == GRAPHI_OK)
        status = graphi_frontier_create(&bounds, &s->frontier);
    if (status != GRAPHI_OK)
        return report_failure(status);
    return fill_parameters(s);
}

static graphi_status step(struct subject *s, int batch)
{
    const graphi_status status = graphi_frontier_feed(s->frontier, &s->made[batch].graphs, NULL, s->run);
    return status == GRAPHI_OK ? graphi_run_execute(s->run) : status;
}

static graphi_status cycle(void *context)
{
    struct subject *s = context;
    for (int i = 0; i < s->batches; i++) {
        const graphi_status status = step(s, i);
        if (status != GRAPHI_OK)
            return report_failure(status);
    }
    return GRAPHI_OK;
}

static void close_subject(struct subject *s)
{
    for (int i = 0; i < s->batches; i++)
        made_graphs_free(&s->made[i]);
    graphi_trees_close(s->trees);
    graphi_frontier_destroy(s->frontier);
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

/* --- for the peers --- */

static json_t *list_of(const int32_t *numbers, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        result_append(list, json_integer(numbers[i]));
    return list;
}

static json_t *batches_of(const struct subject *s)
{
    json_t *all = json_array();
    for (int i = 0; i < s->batches; i++) {
        const graphi_input_graphs *g = &s->made[i].graphs;
        const bool labels = strcmp(g->value[1].input, "labels") == 0;
        json_t *begin = json_array();
        for (int64_t v = 0; v < g->vertices; v++)
            if (!v || g->sample[v] != g->sample[v - 1])
                result_append(begin, json_integer(v));
        result_append(begin, json_integer(g->vertices));
        result_append(all, json_pack("{s:o,s:o,s:o,s:o,s:o}", "sample_begin", begin, "child_begin",
                                     list_of(g->child_begin, g->vertices + 1), "child", list_of(g->child, g->edges),
                                     "token", list_of(g->value[0].rows, g->vertices), "label",
                                     list_of(labels ? g->value[1].rows : g->sample, g->vertices)));
    }
    return all;
}

/* Norm and probe of what a step at CHECK_RATE took off the parameter. The rate is large: what is taken off is then
 * exact beside the weights. */
static const float CHECK_RATE = 1000;

static graphi_status gradient_of(struct subject *s, const graphi_port *port, json_t *gradients)
{
    const int64_t count = (int64_t)(port->bytes / sizeof(float));
    float *before = malloc(port->bytes), *after = malloc(port->bytes);
    double squares = 0, probe = 0;
    const uint64_t key = formula_key("probe/", port->name);
    graphi_status status = before && after ? graphi_state_get(s->state, port->name, after, port->bytes) : GRAPHI_MEMORY;
    if (status == GRAPHI_OK) {
        formula_fill(port->name, -0.1, 0.1, before, count);
        for (int64_t i = 0; i < count; i++) {
            const double gradient = ((double)before[i] - after[i]) / CHECK_RATE;
            squares += gradient * gradient;
            probe += gradient * (2 * formula_unit(key, i) - 1);
        }
        result_set(gradients, port->name, json_pack("[f,f]", sqrt(squares), probe));
    }
    free(before);
    free(after);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* Loss and gradients of the first batch; the weights are the first again afterwards. */
static graphi_status check(struct subject *s, double *loss, json_t *gradients)
{
    float value = 0;
    graphi_port port;
    graphi_status status = set_rate(s, CHECK_RATE);
    if (status == GRAPHI_OK)
        status = step(s, 0);
    if (status == GRAPHI_OK)
        status = graphi_run_get(s->run, "loss", GRAPHI_F32, &value, sizeof value);
    if (status != GRAPHI_OK)
        return report_failure(status);
    *loss = value;
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(s->graph, GRAPHI_PORT_PARAMETER, i, &port); i++)
        status = gradient_of(s, &port, gradients);
    return status == GRAPHI_OK ? fill_parameters(s) : status;
}

/* --- rows --- */

static graphi_status time_ours(struct subject *s, json_t *row)
{
    double ms[ROUNDS];
    const double seconds = s->bench->options.seconds > 0 ? s->bench->options.seconds : 4, start = report_seconds();
    int rounds = 0;
    graphi_status status = cycle(s);
    for (; status == GRAPHI_OK && rounds < ROUNDS && (rounds < 3 || report_seconds() - start < seconds); rounds++) {
        const double begin = report_seconds();
        status = cycle(s);
        ms[rounds] = (report_seconds() - begin) * 1e3;
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
    }
    if (status != GRAPHI_OK)
        return status;
    result_times(row, ms, rounds);
    result_number(row, "us_per_vertex", result_median(ms, rounds) * 1e3 / (double)s->vertices);
    return GRAPHI_OK;
}

static graphi_status beside(struct subject *s, json_t *row, double *best)
{
    struct graphs_row r = {.bench = s->bench,
                           .id = s->id,
                           .info = &s->info,
                           .features = FEATURES,
                           .row = row,
                           .cycle = cycle,
                           .context = s,
                           .vertices = s->vertices};
    r.gradients = json_object();
    r.batches = batches_of(s);
    graphi_status status = check(s, &r.loss, r.gradients);
    if (status == GRAPHI_OK)
        status = set_rate(s, 1e-12f);
    if (status == GRAPHI_OK)
        status = graphs_beside(&r);
    json_decref(r.gradients);
    json_decref(r.batches);
    *best = r.best;
    return status;
}

static graphi_status one(struct bench *bench, const struct form *form, double *best)
{
    const struct options *o = &bench->options;
    graphi_decision setting;
    graphi_plan_info about;
    struct subject s = {.bench = bench, .batches = form->batches};
    graphi_model_options model = {.batch = o->batch ? o->batch : form->batch,
                                  .units = o->units ? o->units : form->units};
    model.vertices = model.batch * form->sample;
    snprintf(s.id, sizeof s.id, "%s h%lld b%lld", form->network, (long long)model.units, (long long)model.batch);
    resident_begin();
    graphi_status status = open_data(&s, form, &model);
    if (status == GRAPHI_OK)
        status = open_network(&s, form, &model);
    if (status == GRAPHI_OK)
        status = make_graphs(&s);
    if (status == GRAPHI_OK)
        status = set_rate(&s, 1e-12f);
    if (status == GRAPHI_OK) {
        json_t *row = result_row(&bench->result, s.id, "graphi");
        graphi_plan_get_info(s.plan, &about);
        setting = about.setting;
        result_setting(row, &setting);
        report_progress(o->quiet, "%s", s.id);
        status = time_ours(&s, row);
        resident_row(&bench->result, row);
        if (status == GRAPHI_OK && form->peers)
            status = beside(&s, row, best);
    }
    close_subject(&s);
    return status;
}

static void id_of(const struct form *form, char id[64])
{
    snprintf(id, 64, "%s h%lld b%lld", form->network, (long long)form->units, (long long)form->batch);
}

/* Whether a word that is no peer is a part of the row's id; one that is an id is of that row alone. */
static bool is_asked(const struct bench *bench, const struct form *form)
{
    char id[64], other[64];
    int rows = 0;
    id_of(form, id);
    for (int i = 0; i < bench->options.rest_count; i++) {
        const char *word = bench->options.rest[i];
        bool whole = false;
        if (graphs_is_peer(word))
            continue;
        rows++;
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            id_of(&forms[f], other);
            whole |= strcmp(word, other) == 0;
        }
        if (whole ? strcmp(id, word) == 0 : strstr(id, word) != NULL)
            return true;
    }
    return !rows;
}

static graphi_status body(struct bench *bench)
{
    static const struct goal {
        const char *title;
        double goal;
    } goals[] = {{"treelstm h150 b256: best peer's time over ours", 3.8},
                 {"treelstm h150 b25: best peer's time over ours", 3.5},
                 {"treelstm h150 b1: best peer's time over ours", 2.9},
                 {"treefc h512 b64: best peer's time over ours", 1.6}};
    const bool sized = bench->options.units || bench->options.batch;
    const char *last = "";
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        double best = 0;
        if (!is_asked(bench, &forms[i]) || (bench->options.quick && forms[i].batch != 25) ||
            (sized && strcmp(last, forms[i].network) == 0))
            continue;
        last = forms[i].network;
        const graphi_status status = one(bench, &forms[i], &best);
        if (status != GRAPHI_OK)
            return bench_failure(status);
        if (best > 0 && !sized && !bench->options.data)
            result_goal(&bench->result, goals[i].title, best, goals[i].goal, true);
    }
    return GRAPHI_OK;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "dynamic", body);
}
