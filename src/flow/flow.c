/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a model's graphs by the forms of what they read (flow.h). The lock is held while one is looked for, not
 * while one is made or run: who makes one keeps out those alone who want the same. At most KEPT forms of a graph are
 * there at a time; the one that was used least recently goes when nobody runs it. Usual: one or two. */
#include "flow/flow.h"

#include "base/memory.h"
#include "flow/path.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 8, CONTENTS = 64, PATHS = 16 };

struct special {
    struct form *key; /* of each value that the graph reads */
    struct path *path[PATHS];
    int paths, users;
    bool making; /* by some thread */
    uint64_t used;
};

/* A graph of the model: its own, or a body. */
struct block {
    const struct model_graph *graph;
    ARRAY(int) reads; /* inputs and captures */
    struct special *kept[KEPT];
    int contents;      /* how often a special was made for other contents; beyond CONTENTS they do not count */
    struct form *seen; /* of a body: what it was run for last without a path */
};

struct flow {
    struct path_maker maker;
    struct reach reach;
    struct weights weights;
    struct flow_options options;
    graphi_machine *machine;
    struct block *blocks; /* as reach.graphs has them */
    pthread_mutex_t lock;
    pthread_cond_t made;
    uint64_t clock;
};

/* What a body finds when it is run by a control node. */
struct flow_runner {
    struct interpreter run;
    struct flow *flow;
};

bool flow_knows(const char *op)
{
    return lower_find(op) != NULL;
}

static void special_free(const struct onnx_model *model, const struct block *block, struct special *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->paths; i++)
        path_free(model, s->path[i]);
    form_list_free(s->key, block->reads.count);
    mem_free(s);
}

void flow_free(struct flow *flow)
{
    if (!flow)
        return;
    for (size_t b = 0; flow->blocks && b < flow->reach.graphs.count; b++) {
        struct block *block = &flow->blocks[b];
        for (int i = 0; i < KEPT; i++)
            special_free(flow->maker.model, block, block->kept[i]);
        form_list_free(block->seen, block->seen ? block->reads.count : 0);
        array_free(&block->reads);
    }
    mem_free(flow->blocks);
    weights_fini(&flow->weights);
    reach_free(&flow->reach);
    graphi_machine_destroy(flow->machine);
    pthread_cond_destroy(&flow->made);
    pthread_mutex_destroy(&flow->lock);
    mem_free(flow);
}

static graphi_status add_reads(struct block *block, const struct reach_graph *from)
{
    block->graph = from->graph;
    for (size_t i = 0; i < from->graph->inputs.count; i++)
        if (!array_push(&block->reads, from->graph->inputs.data[i]))
            return fail_memory("session", sizeof(int));
    for (size_t i = 0; i < from->captures.count; i++)
        if (!array_push(&block->reads, from->captures.data[i]))
            return fail_memory("session", sizeof(int));
    return GRAPHI_OK;
}

static graphi_status run_body(struct interpreter *run, const struct model_graph *graph);

static graphi_status fill(struct flow *flow, const struct onnx_model *model)
{
    TRY(reach_find(model, &flow->reach));
    flow->blocks = mem_zalloc_array(flow->reach.graphs.count, sizeof *flow->blocks);
    if (!flow->blocks)
        return fail_memory("session", flow->reach.graphs.count * sizeof *flow->blocks);
    for (size_t i = 0; i < flow->reach.graphs.count; i++)
        TRY(add_reads(&flow->blocks[i], &flow->reach.graphs.data[i]));
    flow->maker = (struct path_maker){.model = model,
                                      .reach = &flow->reach,
                                      .weights = &flow->weights,
                                      .traced = flow->options.traced,
                                      .graph_run = run_body};
    return GRAPHI_OK;
}

graphi_status flow_create(const struct onnx_model *model, const struct flow_options *options, struct flow **out)
{
    struct flow *flow = mem_zalloc(sizeof *flow);
    if (!flow)
        return fail_memory("session", sizeof *flow);
    flow->options = options ? *options : (struct flow_options){0};
    flow->maker.model = model;
    pthread_mutex_init(&flow->lock, NULL);
    pthread_cond_init(&flow->made, NULL);
    weights_init(&flow->weights);
    const graphi_status status = fill(flow, model);
    if (status == GRAPHI_OK)
        *out = flow;
    else
        flow_free(flow);
    return status;
}

/* --- by forms --- */

static graphi_tensor *read_at(const struct block *block, const struct interpreter *run, size_t i)
{
    return run->values[block->reads.data[i]];
}

/* *differs: in contents alone. */
static bool fits(const struct block *block, const struct form *key, const struct interpreter *run, bool *differs)
{
    bool holds = true;
    for (size_t i = 0; i < block->reads.count; i++) {
        if (!form_fits(&key[i], read_at(block, run, i)))
            return false;
        holds = holds && form_holds(&key[i], read_at(block, run, i));
    }
    *differs = *differs || !holds;
    return holds;
}

static graphi_status find_key(const struct flow *flow, const struct block *block, const struct interpreter *run,
                              struct form **out)
{
    struct form *key = mem_zalloc_array(block->reads.count + 1, sizeof *key);
    if (!key)
        return fail_memory("plan", block->reads.count * sizeof *key);
    for (size_t i = 0; i < block->reads.count; i++) {
        const int number = block->reads.data[i];
        const bool asked = flow->reach.asked[number] && block->contents <= CONTENTS;
        const graphi_status status = form_of(read_at(block, run, i), number, asked, &key[i]);
        if (status != GRAPHI_OK) {
            form_list_free(key, i);
            return status;
        }
    }
    *out = key;
    return GRAPHI_OK;
}

/* A free place, else that of the one which nobody runs and which was used least recently; NULL: there is none. */
static struct special **find_place(struct block *block)
{
    struct special **place = NULL;
    for (int i = 0; i < KEPT; i++) {
        if (!block->kept[i])
            return &block->kept[i];
        if (block->kept[i]->users == 0 && (!place || block->kept[i]->used < (*place)->used))
            place = &block->kept[i];
    }
    return place;
}

/* A body that is run for the first time at these forms stays on the host: in loops whose values grow no form comes
 * twice. */
static graphi_status is_new_body(struct flow *flow, struct block *block, const struct interpreter *run, bool *is_new)
{
    bool differs = false;
    *is_new = block != flow->blocks && !(block->seen && fits(block, block->seen, run, &differs));
    if (!*is_new)
        return GRAPHI_OK;
    form_list_free(block->seen, block->seen ? block->reads.count : 0);
    block->seen = NULL;
    return find_key(flow, block, run, &block->seen);
}

/* NULL in *out: the host runs it. With the lock, and one more user. */
static graphi_status find(struct flow *flow, struct block *block, const struct interpreter *run, struct special **out)
{
    struct special *s = NULL;
    bool differs = false, is_new;
    *out = NULL;
    for (int i = 0; i < KEPT && !s; i++)
        if (block->kept[i] && fits(block, block->kept[i]->key, run, &differs))
            s = block->kept[i];
    if (!s) {
        TRY(is_new_body(flow, block, run, &is_new));
        struct special **place = is_new ? NULL : find_place(block);
        block->contents += differs && block->contents <= CONTENTS;
        if (!place)
            return GRAPHI_OK;
        struct form *key;
        TRY(find_key(flow, block, run, &key));
        if (!(s = mem_zalloc(sizeof *s))) {
            form_list_free(key, block->reads.count);
            return fail_memory("plan", sizeof *s);
        }
        s->key = key;
        special_free(flow->maker.model, block, *place);
        *place = s;
    }
    s->users++;
    s->used = ++flow->clock;
    *out = s;
    return GRAPHI_OK;
}

/* --- running --- */

static bool goes_on(const struct path *path, size_t at, const struct interpreter *run)
{
    const struct step *step = &path->steps.data[at];
    bool holds = true;
    for (size_t i = 0; holds && i < step->form_count; i++)
        holds = form_holds(&step->forms[i], interpreter_value(run, step->forms[i].number));
    return holds;
}

/* One that begins with the stages of `behind` up to `at` (NULL: any) and goes on as the run does. With the lock. */
static const struct path *find_path(const struct special *s, const struct path *behind, size_t at,
                                    const struct interpreter *run)
{
    for (int i = 0; i < s->paths; i++) {
        const struct path *path = s->path[i];
        if (!behind || (at < path->steps.count && path->steps.data[at].stage == behind->steps.data[at].stage &&
                        goes_on(path, at, run)))
            return path;
    }
    return NULL;
}

/* Made with the first path: who looks at ports alone needs none. With the lock. */
static graphi_status need_machine(struct flow *flow)
{
    if (!flow->machine)
        TRY(graphi_machine_create(flow->options.threads, &flow->machine));
    flow->maker.machine = flow->machine;
    return GRAPHI_OK;
}

/* Another one that has paths, the one used last, with one more user. NULL: there is none. With the lock. */
static struct special *find_like(struct block *block, const struct special *s)
{
    struct special *found = NULL;
    for (int i = 0; i < KEPT; i++) {
        struct special *other = block->kept[i];
        if (other && other != s && other->paths && (!found || other->used > found->used))
            found = other;
    }
    if (found)
        found->users++;
    return found;
}

/* Makes a path and runs it, from the start or behind `at`, or finds that another thread has made one: then it is in
 * *found, to be gone on with. */
static graphi_status make(struct flow *flow, struct block *block, struct special *s, struct interpreter *run,
                          const struct path *behind, size_t at, const struct path **found)
{
    pthread_mutex_lock(&flow->lock);
    while (!(*found = find_path(s, behind, at, run)) && s->making)
        pthread_cond_wait(&flow->made, &flow->lock);
    const bool mine = !*found, keep = s->paths < PATHS;
    struct special *like = mine ? find_like(block, s) : NULL;
    graphi_status status = mine ? need_machine(flow) : GRAPHI_OK;
    s->making = s->making || (mine && status == GRAPHI_OK);
    pthread_mutex_unlock(&flow->lock);
    if (!mine || status != GRAPHI_OK)
        return status; /* without a machine there is nothing like it */
    struct path *path;
    struct path_maker maker = flow->maker;
    maker.like = like ? like->path[0] : NULL;
    status = path_make(&maker, block->graph, s->key, block->reads.count, run, behind, at, keep, &path);
    pthread_mutex_lock(&flow->lock);
    if (like)
        like->users--;
    if (path)
        s->path[s->paths++] = path;
    s->making = false;
    pthread_cond_broadcast(&flow->made);
    pthread_mutex_unlock(&flow->lock);
    return status;
}

static graphi_status run_special(struct flow *flow, struct block *block, struct special *s, struct interpreter *run)
{
    pthread_mutex_lock(&flow->lock);
    const struct path *path = find_path(s, NULL, 0, run);
    pthread_mutex_unlock(&flow->lock);
    if (!path)
        TRY(make(flow, block, s, run, NULL, 0, &path));
    for (size_t at = 0; path; at++) {
        const struct stage *stage = path->steps.data[at].stage;
        TRY(stage_run(stage, run, run_body));
        if (stage->ends)
            return GRAPHI_OK;
        if (!goes_on(path, at, run))
            TRY(make(flow, block, s, run, path, at, &path));
    }
    return GRAPHI_OK;
}

static graphi_status run_block(struct flow *flow, struct block *block, struct interpreter *run)
{
    struct special *s;
    pthread_mutex_lock(&flow->lock);
    graphi_status status = find(flow, block, run, &s);
    pthread_mutex_unlock(&flow->lock);
    if (status != GRAPHI_OK)
        return status;
    if (!s)
        return interpreter_graph(run, block->graph);
    status = run_special(flow, block, s, run);
    pthread_mutex_lock(&flow->lock);
    s->users--;
    pthread_mutex_unlock(&flow->lock);
    return status;
}

static graphi_status run_body(struct interpreter *run, const struct model_graph *graph)
{
    struct flow *flow = ((struct flow_runner *)run)->flow;
    for (size_t i = 0; i < flow->reach.graphs.count; i++)
        if (flow->blocks[i].graph == graph)
            return run_block(flow, &flow->blocks[i], run);
    return interpreter_graph(run, graph);
}

graphi_status flow_run(struct flow *flow, struct interpreter *run)
{
    struct flow_runner runner = {*run, flow};
    return run_block(flow, &flow->blocks[0], &runner.run);
}

/* --- for people --- */

/* As the model declares an input. */
static struct form declared(const struct onnx_model *model, int number)
{
    const struct model_value *port = &model->values.data[number];
    struct form form = {.number = number,
                        .given = !port->constant,
                        .kind = port->optional ? GRAPHI_KIND_NOTHING : port->kind,
                        .type = port->type,
                        .rank = port->rank > 0 ? port->rank : 0};
    for (int k = 0; k < form.rank; k++)
        form.dims[k] = port->dims[k] < 0 ? 1 : port->dims[k];
    return form;
}

static graphi_status input_forms(const struct flow *flow, graphi_tensor *const *values, struct form **out)
{
    const struct model_graph *graph = flow->maker.model->graph;
    struct form *forms = mem_zalloc_array(graph->inputs.count + 1, sizeof *forms);
    if (!forms)
        return fail_memory("plan", graph->inputs.count * sizeof *forms);
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const int number = graph->inputs.data[i];
        graphi_status status = GRAPHI_OK;
        if (values && values[number])
            status = form_of(values[number], number, flow->reach.asked[number], &forms[i]);
        else
            forms[i] = declared(flow->maker.model, number);
        if (status != GRAPHI_OK) {
            form_list_free(forms, i);
            return status;
        }
    }
    *out = forms;
    return GRAPHI_OK;
}

graphi_status flow_inspect(const struct onnx_model *model, graphi_tensor *const *values,
                           const struct flow_options *options, struct flow_report *out)
{
    struct path_report report = {0};
    struct flow *flow;
    struct form *forms = NULL;
    TRY(flow_create(model, options, &flow));
    graphi_status status = input_forms(flow, values, &forms);
    if (status == GRAPHI_OK)
        status = need_machine(flow);
    if (status == GRAPHI_OK)
        status = path_inspect(&flow->maker, model->graph, forms, model->graph->inputs.count, &report);
    if (status == GRAPHI_OK && !array_push(&report.hosts, '\0'))
        status = fail_memory("plan", report.hosts.count);
    if (status == GRAPHI_OK)
        *out = (struct flow_report){.planned = report.planned,
                                    .folded = report.folded,
                                    .host = report.host,
                                    .open = report.open,
                                    .plans = report.plans,
                                    .flops = report.flops,
                                    .arena_bytes = report.arena_bytes,
                                    .packed_bytes = report.packed_bytes,
                                    .executors = report.executors,
                                    .width = report.width,
                                    .hosts = report.hosts.data};
    else
        array_free(&report.hosts);
    form_list_free(forms, forms ? model->graph->inputs.count : 0);
    flow_free(flow);
    return status;
}

/* The special of the model's own graph that ran last. */
static const struct special *latest(const struct flow *flow)
{
    const struct special *found = NULL;
    for (int i = 0; i < KEPT; i++) {
        const struct special *s = flow->blocks[0].kept[i];
        if (s && s->paths && (!found || s->used > found->used))
            found = s;
    }
    return found;
}

graphi_status flow_timeline(const struct flow *flow, const char *prefix)
{
    const struct special *s = latest(flow);
    const struct path *path = s ? s->path[0] : NULL;
    int written = 0;
    for (size_t i = 0; path && i < path->steps.count; i++) {
        const struct segment *segment = path->steps.data[i].stage->segment;
        char name[4200];
        if (!segment || !segment->idle.count)
            continue;
        snprintf(name, sizeof name, written ? "%.4096s-%d" : "%.4096s", prefix, written + 1);
        TRY(graphi_run_write_timeline(segment->idle.data[segment->idle.count - 1], name));
        written++;
    }
    return written ? GRAPHI_OK : fail(GRAPHI_INVALID, "session", "found no plan that ran, expected one");
}
