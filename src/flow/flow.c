/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a model by the types and sizes of its inputs (flow.h). A lock is held while one is looked for or compiled,
 * not while it runs: a run is taken out of a plan's list of idle ones, or made. At most KEPT are there at a time; the
 * one that was used least recently goes when nobody runs it. Usual: one or two. */
#include "flow/flow.h"

#include "base/memory.h"
#include "flow/lower.h"
#include "graphi/run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 8, CONTENTS = 64 };

/* What the sizes of an input are compared by. */
struct key {
    bool given;
    graphi_tensor_kind kind;
    graphi_element type;
    int rank;
    int64_t dims[VALUE_RANK];
    uint8_t content[8]; /* of one integer or truth value */
};

struct special {
    struct key *key; /* of each input of the model */
    graphi_graph *graph;
    graphi_plan *plan; /* NULL: the interpreter runs these shapes */
    graphi_state *state;
    ARRAY(graphi_run *) idle;
    graphi_tensor **outputs;    /* of each output of the model: its content, where that is known */
    struct graphi_tensor *like; /* else its type and sizes */
    int users;
    uint64_t used;
};

struct flow {
    const struct onnx_model *model;
    int threads;
    graphi_machine *machine; /* made with the first plan */
    pthread_mutex_t lock;
    struct special *kept[KEPT];
    uint64_t clock;
    int compiled; /* how often for other single numbers; beyond CONTENTS their content is not looked at */
};

/* A single integer or truth value is often a rate or a switch on which conditions and sizes depend: plans are told
 * apart by its content, too. One that is another in each run would compile each time, so that ends. */
static bool is_content(const graphi_tensor *value)
{
    return value && value->kind == GRAPHI_KIND_TENSOR && value->count == 1 && !element_is_float(value->type);
}

bool flow_knows(const char *op)
{
    return lower_find(op) != NULL;
}

graphi_status flow_create(const struct onnx_model *model, int threads, struct flow **out)
{
    struct flow *flow = mem_zalloc(sizeof *flow);
    if (!flow)
        return fail_memory("session", sizeof *flow);
    flow->model = model;
    flow->threads = threads;
    pthread_mutex_init(&flow->lock, NULL);
    *out = flow;
    return GRAPHI_OK;
}

static void special_free(const struct onnx_model *model, struct special *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->idle.count; i++)
        graphi_run_destroy(s->idle.data[i]);
    array_free(&s->idle);
    for (size_t i = 0; s->outputs && i < model->graph->outputs.count; i++)
        value_drop(s->outputs[i]);
    mem_free(s->outputs);
    mem_free(s->like);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
    mem_free(s->key);
    mem_free(s);
}

void flow_free(struct flow *flow)
{
    if (!flow)
        return;
    for (int i = 0; i < KEPT; i++)
        special_free(flow->model, flow->kept[i]);
    graphi_machine_destroy(flow->machine);
    pthread_mutex_destroy(&flow->lock);
    mem_free(flow);
}

/* --- compiling --- */

/* Inputs as `values` has them; where it has none and there is no default, as declared. */
static graphi_status set_inputs(struct lowering *l, graphi_tensor *const *values, bool contents)
{
    const struct onnx_model *m = l->model;
    for (size_t i = 0; i < m->graph->inputs.count; i++) {
        const int number = m->graph->inputs.data[i];
        const struct model_value *port = &m->values.data[number];
        struct flow_value *to = &l->values[number];
        const graphi_tensor *value = values ? values[number] : NULL;
        if (!value && port->constant)
            continue;
        if (value ? value->kind != GRAPHI_KIND_TENSOR
                  : port->kind != GRAPHI_KIND_TENSOR || port->optional || port->rank < 0)
            return fail(GRAPHI_UNSUPPORTED, "plan",
                        "found input \"%.100s\" that is no tensor or of no rank, expected one", port->name);
        if (contents && is_content(value)) {
            to->known = value_keep(value);
            continue;
        }
        to->computed = true;
        to->like.type = value ? value->type : port->type;
        to->like.rank = value ? value->rank : port->rank;
        for (int k = 0; k < to->like.rank; k++)
            to->like.dims[k] = value ? value->dims[k] : port->dims[k] < 0 ? 1 : port->dims[k];
    }
    return GRAPHI_OK;
}

static graphi_status lower_model(struct lowering *l, graphi_tensor *const *values, bool contents)
{
    const size_t count = l->model->values.count + 1;
    l->values = mem_zalloc_array(count, sizeof *l->values);
    if (!l->values)
        return fail_memory("plan", count * sizeof *l->values);
    for (size_t i = 0; i < count; i++)
        l->values[i].plain = l->values[i].last = GRAPHI_NONE;
    TRY(set_inputs(l, values, contents));
    return lower_all(l);
}

graphi_status flow_inspect(const struct onnx_model *model, struct flow_report *out)
{
    struct lowering l = {.model = model};
    *out = (struct flow_report){0};
    const graphi_status status = lower_model(&l, NULL, false);
    if (status == GRAPHI_OK) {
        out->planned = l.planned;
        out->folded = l.folded;
    } else {
        snprintf(out->reason, sizeof out->reason, "%s", graphi_message());
    }
    lower_free(&l);
    return status == GRAPHI_MEMORY ? status : GRAPHI_OK;
}

static graphi_status take_outputs(struct special *s, struct lowering *l)
{
    const struct model_graph *graph = l->model->graph;
    s->outputs = mem_zalloc_array(graph->outputs.count + 1, sizeof *s->outputs);
    s->like = mem_zalloc_array(graph->outputs.count + 1, sizeof *s->like);
    if (!s->outputs || !s->like)
        return fail_memory("plan", (graph->outputs.count + 1) * sizeof *s->like);
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const struct flow_value *value = &l->values[graph->outputs.data[i]];
        if (value->known)
            s->outputs[i] = value_keep(value->known);
        else
            s->like[i] = value->like;
    }
    return GRAPHI_OK;
}

static graphi_status compile(struct flow *flow, struct special *s, graphi_tensor *const *values)
{
    struct lowering l = {.model = flow->model};
    graphi_status status = lower_model(&l, values, flow->compiled <= CONTENTS);
    if (status == GRAPHI_OK && !flow->machine)
        status = graphi_machine_create(flow->threads, &flow->machine);
    if (status == GRAPHI_OK)
        status = take_outputs(s, &l);
    if (status == GRAPHI_OK)
        status = graphi_state_create(l.graph, 0, &s->state);
    if (status == GRAPHI_OK && l.planned)
        status = graphi_plan_create(l.graph, flow->machine, NULL, &s->plan);
    if (status == GRAPHI_OK) {
        s->graph = l.graph;
        l.graph = NULL;
    }
    lower_free(&l);
    return status == GRAPHI_MEMORY ? status : GRAPHI_OK; /* without a plan the interpreter tells what is wrong */
}

/* --- by shapes --- */

static struct key key_of(const graphi_tensor *value, bool contents)
{
    struct key key;
    memset(&key, 0, sizeof key);
    if (!value)
        return key;
    key.given = true;
    key.kind = value->kind;
    if (value->kind == GRAPHI_KIND_TENSOR) {
        key.type = value->type;
        key.rank = value->rank;
        memcpy(key.dims, value->dims, (size_t)value->rank * sizeof *key.dims);
    }
    if (contents && is_content(value))
        memcpy(key.content, value->data, value->bytes);
    return key;
}

static bool fits(const struct flow *flow, const struct special *s, graphi_tensor *const *values)
{
    const struct model_graph *graph = flow->model->graph;
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const struct key a = key_of(values[graph->inputs.data[i]], flow->compiled <= CONTENTS), *b = &s->key[i];
        if (a.given != b->given || a.kind != b->kind || a.type != b->type || a.rank != b->rank ||
            memcmp(a.dims, b->dims, sizeof a.dims) != 0 || memcmp(a.content, b->content, sizeof a.content) != 0)
            return false;
    }
    return true;
}

static graphi_status special_create(struct flow *flow, graphi_tensor *const *values, struct special **out)
{
    const struct model_graph *graph = flow->model->graph;
    struct special *s = mem_zalloc(sizeof *s);
    if (s)
        s->key = mem_zalloc_array(graph->inputs.count + 1, sizeof *s->key);
    graphi_status status = s && s->key ? GRAPHI_OK : fail_memory("plan", sizeof *s);
    for (size_t i = 0; status == GRAPHI_OK && i < graph->inputs.count; i++)
        s->key[i] = key_of(values[graph->inputs.data[i]], flow->compiled <= CONTENTS);
    if (status == GRAPHI_OK)
        status = compile(flow, s, values);
    if (status == GRAPHI_OK)
        *out = s;
    else
        special_free(flow->model, s);
    return status;
}

/* A free place, else that of the one which nobody runs and which was used least recently; NULL: there is none. */
static struct special **find_place(struct flow *flow)
{
    struct special **place = NULL;
    for (int i = 0; i < KEPT; i++) {
        if (!flow->kept[i])
            return &flow->kept[i];
        if (flow->kept[i]->users == 0 && (!place || flow->kept[i]->used < (*place)->used))
            place = &flow->kept[i];
    }
    return place;
}

/* Whether a kept plan was made for the same single numbers. */
static bool same_contents(const struct flow *flow, graphi_tensor *const *values)
{
    const struct model_graph *graph = flow->model->graph;
    bool same = false;
    for (int i = 0; i < KEPT && !same; i++) {
        same = flow->kept[i] != NULL;
        for (size_t k = 0; same && k < graph->inputs.count; k++) {
            const struct key key = key_of(values[graph->inputs.data[k]], true);
            same = memcmp(key.content, flow->kept[i]->key[k].content, sizeof key.content) == 0;
        }
    }
    return same;
}

/* NULL in *out: all places are in use by runs at other shapes. With the lock. */
static graphi_status find(struct flow *flow, graphi_tensor *const *values, struct special **out)
{
    *out = NULL;
    for (int i = 0; i < KEPT && !*out; i++)
        if (flow->kept[i] && fits(flow, flow->kept[i], values))
            *out = flow->kept[i];
    struct special **place = *out ? NULL : find_place(flow);
    if (place) {
        if (flow->compiled <= CONTENTS && !same_contents(flow, values))
            flow->compiled++;
        TRY(special_create(flow, values, out));
        special_free(flow->model, *place);
        *place = *out;
    }
    if (*out)
        (*out)->used = ++flow->clock;
    return GRAPHI_OK;
}

/* --- running --- */

static graphi_status fetch(const struct flow *flow, const struct special *s, graphi_run *run, graphi_tensor **values)
{
    const struct model_graph *graph = flow->model->graph;
    for (size_t i = 0; i < graph->outputs.count; i++) {
        char name[32];
        graphi_tensor *value = NULL;
        snprintf(name, sizeof name, "o%zu", i);
        if (s->outputs[i]) {
            value = value_keep(s->outputs[i]);
        } else {
            TRY(value_new("session", s->like[i].type, s->like[i].rank, s->like[i].dims, &value));
            const graphi_status status = graphi_run_get(run, name, GRAPHI_F32, value->data, value->bytes);
            if (status != GRAPHI_OK) {
                value_drop(value);
                return status;
            }
        }
        value_drop(values[graph->outputs.data[i]]);
        values[graph->outputs.data[i]] = value;
    }
    return GRAPHI_OK;
}

static graphi_status execute(const struct flow *flow, const struct special *s, graphi_run *run, graphi_tensor **values)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(s->graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        int number = 0;
        sscanf(port.name, "i%d", &number);
        TRY(graphi_run_set(run, port.name, port.dtype, values[number]->data, values[number]->bytes));
    }
    TRY(graphi_run_execute(run));
    return fetch(flow, s, run, values);
}

/* A run of the plan that is idle, or another. */
static graphi_status take_run(struct flow *flow, struct special *s, graphi_run **out)
{
    *out = NULL;
    pthread_mutex_lock(&flow->lock);
    if (s->idle.count)
        *out = s->idle.data[--s->idle.count];
    pthread_mutex_unlock(&flow->lock);
    return *out ? GRAPHI_OK : graphi_run_create(s->plan, s->state, out);
}

static void give_back(struct flow *flow, struct special *s, graphi_run *run)
{
    pthread_mutex_lock(&flow->lock);
    const bool kept = run && array_push(&s->idle, run);
    s->users--;
    pthread_mutex_unlock(&flow->lock);
    if (!kept)
        graphi_run_destroy(run);
}

graphi_status flow_run(struct flow *flow, graphi_tensor **values, bool *done)
{
    struct special *s;
    graphi_run *run;
    *done = false;
    pthread_mutex_lock(&flow->lock);
    graphi_status status = find(flow, values, &s);
    const bool planned = status == GRAPHI_OK && s && s->plan;
    if (planned)
        s->users++;
    pthread_mutex_unlock(&flow->lock);
    if (!planned)
        return status;
    status = take_run(flow, s, &run);
    if (status == GRAPHI_OK)
        status = execute(flow, s, run, values);
    *done = status == GRAPHI_OK;
    give_back(flow, s, run);
    return status;
}
