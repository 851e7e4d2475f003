/* SPDX-License-Identifier: Apache-2.0 */
/* Makes paths (path.h). Each stage is a walk over the nodes that are not settled: what has a lowering and whose inputs
 * are there goes into the stage's graph, in the order of the block; then what has none, and what follows from it on the
 * host, until something waits for a plan again. One thread makes a path. Usual: one or two stages. */
#include "flow/path.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { STAGES_MOST = 128 };

struct making {
    const struct path_maker *maker;
    const struct model_graph *graph;
    struct interpreter *run; /* NULL: nothing runs */
    struct path *path;
    struct lowering l;
    struct stage *stage; /* that is made, the at-th */
    int at;
    bool *needed;            /* by value: something that is not settled reads it, or the caller */
    ARRAY(struct form) told; /* what this stage's run told */
    struct path_report *report;
};

void path_free(const struct onnx_model *model, struct path *path)
{
    if (!path)
        return;
    for (size_t i = 0; i < path->steps.count; i++) {
        stage_drop(path->steps.data[i].stage);
        form_list_free(path->steps.data[i].forms, path->steps.data[i].form_count);
    }
    for (size_t i = 0; path->values && i < model->values.count; i++)
        value_drop(path->values[i].known);
    for (size_t i = 0; i < path->entries.count; i++)
        mem_free(path->entries.data[i].reason);
    array_free(&path->steps);
    array_free(&path->entries);
    mem_free(path->values);
    mem_free(path);
}

/* --- what is there --- */

static struct flow_value *value_at(const struct making *m, int number)
{
    return &m->path->values[number];
}

static bool is_there(const struct making *m, int number)
{
    return number < 0 || value_at(m, number)->known || value_at(m, number)->computed;
}

static const struct reach_graph *captures(const struct making *m, const struct model_node *node, int body)
{
    return node->body[body] ? reach_of(m->maker->reach, node->body[body]) : NULL;
}

static bool inputs_are_there(const struct making *m, const struct host_step *step)
{
    bool there = true;
    if (step->join) {
        for (size_t i = 0; there && i < step->join->outputs.count; i++)
            there = is_there(m, step->join->outputs.data[i]);
        return there;
    }
    for (int i = 0; there && i < step->node->ins; i++)
        there = is_there(m, step->node->in[i]);
    for (int b = 0; b < 2; b++) {
        const struct reach_graph *body = captures(m, step->node, b);
        for (size_t i = 0; body && there && i < body->captures.count; i++)
            there = is_there(m, body->captures.data[i]);
    }
    return there;
}

static void forget(struct flow_value *value)
{
    value_drop(value->known);
    *value = (struct flow_value){.plain = GRAPHI_NONE, .last = GRAPHI_NONE, .stage = -1};
}

/* A held value as the form says. */
static void hold(struct making *m, const struct form *form, int stage)
{
    struct flow_value *value = value_at(m, form->number);
    forget(value);
    lower_be_like(value, form->type, form->rank, form->dims);
    value->like.kind = form->kind;
    value->held = true;
    value->stage = stage;
    if (form->content) {
        value->known = value_keep(form->content);
        value->varies = true;
    }
}

/* The content that the run has of a value is from now on what the path is for. */
static graphi_status tell(struct making *m, int number)
{
    struct form form;
    const graphi_tensor *value = interpreter_value(m->run, number);
    if (!value)
        return GRAPHI_OK;
    TRY(form_of(value, number, m->maker->reach->asked[number], &form));
    if (!array_push(&m->told, form)) {
        value_drop(form.content);
        return fail_memory("plan", sizeof form);
    }
    hold(m, &form, m->at);
    return GRAPHI_OK;
}

/* --- nodes --- */

static void settle(struct making *m, struct entry *entry)
{
    entry->stage = m->at;
    for (int i = 0; i < entry->step.node->outs; i++)
        if (entry->step.node->out[i] >= 0)
            value_at(m, entry->step.node->out[i])->stage = m->at;
}

static void give_reason(const struct making *m, struct entry *entry)
{
    if (!m->report)
        return;
    mem_free(entry->reason);
    entry->reason = mem_string(graphi_message());
}

/* The nodes of the branch, and behind them one that joins it to what follows, in place of the If. */
static graphi_status take_branch(struct making *m, size_t i)
{
    const struct model_node *node = m->path->entries.data[i].step.node;
    const struct model_graph *body = node->body[value_int(value_at(m, node->in[0])->known, 0) ? 0 : 1];
    const size_t more = body->nodes.count + 1, count = m->path->entries.count;
    if (!array_reserve(&m->path->entries, count + more))
        return fail_memory("plan", more * sizeof(struct entry));
    struct entry *entries = m->path->entries.data;
    memmove(entries + i + 1 + more, entries + i + 1, (count - i - 1) * sizeof *entries);
    for (size_t k = 0; k < more; k++)
        entries[i + 1 + k] = (struct entry){.step = k + 1 < more ? (struct host_step){&body->nodes.data[k], NULL}
                                                                 : (struct host_step){node, body},
                                            .stage = -1,
                                            .born = m->at};
    m->path->entries.count += more;
    entries[i].stage = m->at;
    return GRAPHI_OK;
}

static graphi_status lower_if(struct making *m, size_t i)
{
    const struct model_node *node = m->path->entries.data[i].step.node;
    const struct flow_value *condition = node->ins && node->in[0] >= 0 ? value_at(m, node->in[0]) : NULL;
    const graphi_tensor *known = condition ? condition->known : NULL;
    if (known && known->kind == GRAPHI_KIND_TENSOR && known->count == 1)
        return take_branch(m, i);
    /* One that the stage's graph computes is known behind it. */
    m->path->entries.data[i].refused = !condition || condition->held || known || !m->maker->reach->asked[node->in[0]];
    return GRAPHI_OK;
}

static graphi_status lower_join(struct making *m, struct entry *entry)
{
    for (int i = 0; i < entry->step.node->outs; i++) {
        const int to = entry->step.node->out[i];
        if (to < 0 || (size_t)i >= entry->step.join->outputs.count)
            continue;
        const int from = entry->step.join->outputs.data[i];
        struct flow_value *value = value_at(m, to), *source = value_at(m, from);
        if (source->known)
            value_keep(source->known);
        *value = *source;
        value->gone = 0;
        if (source->held && !array_push(&m->stage->moves, ((struct stage_move){from, to})))
            return fail_memory("plan", sizeof(struct stage_move));
    }
    settle(m, entry);
    return GRAPHI_OK;
}

/* *broken: the graph has an error, and the node must be left out of it. */
static graphi_status lower_entry(struct making *m, size_t i, bool *broken)
{
    struct entry *entry = &m->path->entries.data[i];
    bool folded;
    if (entry->step.join)
        return lower_join(m, entry);
    if (entry->step.node->kind == NODE_IF)
        return lower_if(m, i);
    entry->refused = entry->barred || entry->step.node->kind != NODE_OPERATOR;
    if (entry->refused)
        return GRAPHI_OK;
    const graphi_status status = lower_operator(&m->l, entry->step.node, &folded);
    if (status == GRAPHI_MEMORY)
        return status;
    if (status == GRAPHI_OK) {
        settle(m, entry);
        entry->planned = !folded;
        entry->folded = folded;
        return GRAPHI_OK;
    }
    give_reason(m, entry);
    *broken = status == GRAPHI_INVALID && graphi_graph_status(m->l.graph) != GRAPHI_OK;
    entry->barred = *broken;
    entry->refused = true;
    return GRAPHI_OK;
}

/* --- stages --- */

/* As before the stage, but for what is barred since. */
static void clear_stage(struct making *m)
{
    struct path *path = m->path;
    size_t kept = 0;
    lower_end(&m->l);
    for (size_t i = 0; i < path->entries.count; i++) {
        struct entry entry = path->entries.data[i];
        if (entry.born == m->at) {
            mem_free(entry.reason);
            continue;
        }
        entry.stage = entry.stage == m->at ? -1 : entry.stage;
        path->entries.data[kept++] = entry;
    }
    path->entries.count = kept;
    for (size_t i = 0; i < m->maker->model->values.count; i++)
        if (path->values[i].stage == m->at)
            forget(&path->values[i]);
    for (size_t i = 0; i < m->stage->constants.count; i++)
        value_drop(m->stage->constants.data[i].content);
    m->stage->constants.count = m->stage->moves.count = 0;
}

static graphi_status lower_stage(struct making *m, bool *broken)
{
    *broken = false;
    TRY(lower_begin(&m->l));
    for (size_t i = 0; i < m->path->entries.count && !*broken; i++) {
        struct entry *entry = &m->path->entries.data[i];
        entry->refused = false;
        if (entry->stage < 0 && inputs_are_there(m, &entry->step))
            TRY(lower_entry(m, i, broken));
    }
    return GRAPHI_OK;
}

static void need(struct making *m, int number)
{
    if (number >= 0)
        m->needed[number] = true;
}

static void mark_needed(struct making *m)
{
    memset(m->needed, 0, m->maker->model->values.count * sizeof *m->needed);
    for (size_t i = 0; i < m->graph->outputs.count; i++)
        need(m, m->graph->outputs.data[i]);
    for (size_t i = 0; i < m->path->entries.count; i++) {
        const struct entry *entry = &m->path->entries.data[i];
        if (entry->stage >= 0)
            continue;
        for (size_t k = 0; entry->step.join && k < entry->step.join->outputs.count; k++)
            need(m, entry->step.join->outputs.data[k]);
        for (int k = 0; !entry->step.join && k < entry->step.node->ins; k++)
            need(m, entry->step.node->in[k]);
        for (int b = 0; !entry->step.join && b < 2; b++) {
            const struct reach_graph *body = captures(m, entry->step.node, b);
            for (size_t k = 0; body && k < body->captures.count; k++)
                need(m, body->captures.data[k]);
        }
    }
}

/* What leaves the stage: constants, and values that its graph computes. */
static graphi_status find_results(struct making *m, int *outputs, size_t *count)
{
    *count = 0;
    mark_needed(m);
    for (size_t i = 0; i < m->maker->model->values.count; i++) {
        const struct flow_value *value = value_at(m, (int)i);
        if (value->stage != m->at || !m->needed[i])
            continue;
        if (value->known) {
            const struct stage_constant constant = {(int)i, value->known};
            if (!array_push(&m->stage->constants, constant))
                return fail_memory("plan", sizeof constant);
            value_keep(value->known);
        } else if (value->computed && !value->held) {
            outputs[(*count)++] = (int)i;
        }
    }
    return GRAPHI_OK;
}

/* A plan that cannot be made: its nodes stay on the host, and say why. */
static void bar_stage(struct making *m)
{
    for (size_t i = 0; i < m->path->entries.count; i++) {
        struct entry *entry = &m->path->entries.data[i];
        if (entry->stage != m->at || !entry->planned)
            continue;
        entry->barred = true;
        give_reason(m, entry);
    }
}

static graphi_status compile_stage(struct making *m, int *outputs, bool *broken)
{
    size_t count;
    TRY(find_results(m, outputs, &count));
    if (!count)
        return GRAPHI_OK;
    const struct path *other = m->maker->like;
    const struct segment *like =
        other && (size_t)m->at < other->steps.count ? other->steps.data[m->at].stage->segment : NULL;
    const graphi_status status = segment_create(&m->l, outputs, count, like, m->maker->weights, m->maker->machine,
                                                m->maker->traced, &m->stage->segment);
    *broken = status != GRAPHI_OK && status != GRAPHI_MEMORY;
    if (*broken)
        bar_stage(m);
    return status == GRAPHI_MEMORY ? status : GRAPHI_OK;
}

/* Values that the stage's graph computed are held now, or gone. */
static graphi_status take_results(struct making *m)
{
    for (size_t i = 0; i < m->maker->model->values.count; i++) {
        struct flow_value *value = value_at(m, (int)i);
        if (value->stage != m->at || value->known || !value->computed || value->held)
            continue;
        value->held = true;
        if (!m->needed[i])
            value->gone = m->at + 1;
        else if (m->run && m->maker->reach->asked[i] && value->like.count <= FORM_CONTENT_MOST)
            TRY(tell(m, (int)i));
    }
    return GRAPHI_OK;
}

/* A node that a plan could never take, so it need not wait for one. */
static bool stays_on_host(const struct making *m, const struct entry *entry)
{
    const struct model_node *node = entry->step.node;
    if (entry->step.join || entry->refused)
        return true;
    if (node->kind == NODE_IF)
        return false;
    if (entry->barred || node->kind != NODE_OPERATOR || !lower_find(node->op->name))
        return true;
    for (int i = 0; i < node->ins; i++) {
        const graphi_tensor *form = node->in[i] >= 0 ? lower_form(value_at(m, node->in[i])) : NULL;
        if (form && form->kind == GRAPHI_KIND_TENSOR && form->count &&
            (form->type == T_F32 || form->type == T_F16 || form->type == T_BF16))
            return false;
    }
    return true;
}

static void tell_host(struct making *m, const struct entry *entry)
{
    struct path_report *r = m->report;
    char line[640];
    if (entry->step.join)
        return;
    r->host++;
    const int used = snprintf(line, sizeof line, "%s: %s\n", entry->step.node->where,
                              entry->reason ? entry->reason : "found no lowering, expected one for a plan");
    for (int i = 0; i < used && i < (int)sizeof line - 1; i++)
        if (!array_push(&r->hosts, line[i]))
            return;
}

static graphi_status run_on_host(struct making *m, struct entry *entry)
{
    entry->stage = m->at;
    if (m->report) {
        tell_host(m, entry);
        return GRAPHI_OK;
    }
    if (!array_push(&m->stage->host, entry->step))
        return fail_memory("plan", sizeof entry->step);
    TRY(host_step_run(&entry->step, m->run, m->maker->graph_run));
    for (int i = 0; i < entry->step.node->outs; i++)
        if (entry->step.node->out[i] >= 0)
            TRY(tell(m, entry->step.node->out[i]));
    return GRAPHI_OK;
}

static graphi_status host_part(struct making *m)
{
    for (size_t i = 0; i < m->path->entries.count; i++) {
        struct entry *entry = &m->path->entries.data[i];
        if (entry->stage < 0 && inputs_are_there(m, &entry->step) && stays_on_host(m, entry))
            TRY(run_on_host(m, entry));
    }
    return GRAPHI_OK;
}

/* Forms of what is still read, and the end of what is not. */
static graphi_status end_stage(struct making *m, struct step *step)
{
    size_t kept = 0;
    mark_needed(m);
    for (size_t i = 0; i < m->told.count; i++)
        if (m->needed[m->told.data[i].number])
            m->told.data[kept++] = m->told.data[i];
        else
            value_drop(m->told.data[i].content);
    m->told.count = kept;
    for (size_t i = 0; i < m->maker->model->values.count; i++) {
        struct flow_value *value = value_at(m, (int)i);
        if (!value->held || value->stage < 0 || value->gone || m->needed[i])
            continue;
        value->gone = m->at + 1;
        if (!array_push(&m->stage->drops, (int)i))
            return fail_memory("plan", sizeof(int));
        if (m->run)
            interpreter_set(m->run, (int)i, NULL);
    }
    *step = (struct step){m->stage, m->told.data, m->told.count};
    memset(&m->told, 0, sizeof m->told);
    m->stage = NULL;
    return GRAPHI_OK;
}

static size_t settled_entries(const struct path *path)
{
    size_t settled = 0;
    for (size_t i = 0; i < path->entries.count; i++)
        settled += path->entries.data[i].stage >= 0;
    return settled;
}

static bool is_open(const struct path *path)
{
    return settled_entries(path) < path->entries.count;
}

static graphi_status make_stage(struct making *m, int *outputs)
{
    bool broken = true;
    TRY(stage_create(&m->stage));
    while (broken) {
        clear_stage(m);
        TRY(lower_stage(m, &broken));
        if (!broken)
            TRY(compile_stage(m, outputs, &broken));
    }
    lower_end(&m->l);
    if (m->run)
        TRY(stage_begin(m->stage, m->run));
    TRY(take_results(m));
    TRY(host_part(m));
    m->stage->ends = !is_open(m->path);
    struct stage *stage = m->stage;
    struct step step;
    TRY(end_stage(m, &step));
    if (array_push(&m->path->steps, step))
        return GRAPHI_OK;
    form_list_free(step.forms, step.form_count);
    stage_drop(stage);
    return fail_memory("plan", sizeof step);
}

/* One node after the other, without plans; nothing of it is kept. */
static graphi_status rest_on_host(struct making *m)
{
    for (size_t i = 0; i < m->path->entries.count; i++)
        if (m->path->entries.data[i].stage < 0)
            TRY(host_step_run(&m->path->entries.data[i].step, m->run, m->maker->graph_run));
    return GRAPHI_OK;
}

static void report_plan(struct path_report *r, const struct segment *segment)
{
    graphi_plan_info info;
    graphi_plan_get_info(segment->plan, &info);
    r->plans++;
    r->flops += info.flops;
    r->arena_bytes += info.arena_bytes;
    r->packed_bytes += info.packed_bytes;
    if (info.flops < r->most)
        return;
    r->most = info.flops;
    r->executors = info.setting.executors;
    r->width = info.setting.width;
}

static graphi_status make_stages(struct making *m)
{
    int *outputs = mem_alloc((m->maker->model->values.count + 1) * sizeof *outputs);
    graphi_status status = outputs ? GRAPHI_OK : fail_memory("plan", m->maker->model->values.count * sizeof *outputs);
    bool ends = false, goes_on = true;
    while (status == GRAPHI_OK && !ends && m->at < STAGES_MOST && goes_on) {
        const size_t before = settled_entries(m->path);
        status = make_stage(m, outputs);
        if (status != GRAPHI_OK)
            break;
        const struct stage *stage = m->path->steps.data[m->at++].stage;
        if (m->report && stage->segment)
            report_plan(m->report, stage->segment);
        ends = stage->ends;
        goes_on = settled_entries(m->path) > before;
    }
    mem_free(outputs);
    return status;
}

/* --- the whole --- */

static graphi_status begin_values(struct making *m, const struct form *reads, size_t read_count)
{
    const struct onnx_model *model = m->maker->model;
    for (size_t i = 0; i < model->values.count; i++)
        if (model->values.data[i].constant)
            value_at(m, (int)i)->known = value_keep(model->values.data[i].constant);
    for (size_t i = 0; i < read_count; i++)
        if (reads[i].given)
            hold(m, &reads[i], -1);
    for (size_t i = 0; i < m->graph->nodes.count; i++) {
        const struct entry entry = {.step = {&m->graph->nodes.data[i], NULL}, .stage = -1, .born = -1};
        if (!array_push(&m->path->entries, entry))
            return fail_memory("plan", sizeof entry);
    }
    return GRAPHI_OK;
}

/* What was known behind step `at` of another path; what its last nodes told is told anew. */
static graphi_status begin_behind(struct making *m, const struct path *from, size_t at)
{
    m->at = (int)at;
    for (size_t i = 0; i < m->maker->model->values.count; i++) {
        const struct flow_value *value = &from->values[i];
        if (value->stage > m->at)
            continue;
        *value_at(m, (int)i) = *value;
        value_at(m, (int)i)->gone = value->gone > m->at + 1 ? 0 : value->gone;
        if (value->known)
            value_keep(value->known);
    }
    for (size_t i = 0; i < from->entries.count; i++) {
        struct entry entry = from->entries.data[i];
        if (entry.born > m->at)
            continue;
        entry.stage = entry.stage > m->at ? -1 : entry.stage;
        entry.reason = NULL;
        if (!array_push(&m->path->entries, entry))
            return fail_memory("plan", sizeof entry);
    }
    for (size_t i = 0; i <= at; i++) {
        const struct step step = {.stage = from->steps.data[i].stage};
        if (!array_push(&m->path->steps, step))
            return fail_memory("plan", sizeof step);
        atomic_fetch_add_explicit(&step.stage->holders, 1, memory_order_relaxed);
    }
    for (size_t i = 0; i < from->steps.data[at].form_count; i++)
        TRY(tell(m, from->steps.data[at].forms[i].number));
    struct step *last = &m->path->steps.data[at];
    last->forms = m->told.data;
    last->form_count = m->told.count;
    memset(&m->told, 0, sizeof m->told);
    m->at++;
    return GRAPHI_OK;
}

static graphi_status making_begin(struct making *m)
{
    const size_t count = m->maker->model->values.count + 1;
    m->path = mem_zalloc(sizeof *m->path);
    m->needed = mem_zalloc_array(count, sizeof *m->needed);
    if (m->path)
        m->path->values = mem_zalloc_array(count, sizeof *m->path->values);
    if (!m->path || !m->needed || !m->path->values)
        return fail_memory("plan", count * sizeof *m->path->values);
    for (size_t i = 0; i < count; i++)
        m->path->values[i] = (struct flow_value){.plain = GRAPHI_NONE, .last = GRAPHI_NONE, .stage = -1};
    m->l = (struct lowering){.model = m->maker->model, .values = m->path->values};
    return GRAPHI_OK;
}

static void making_end(struct making *m)
{
    lower_end(&m->l);
    stage_drop(m->stage);
    form_list_free(m->told.data, m->told.count);
    mem_free(m->needed);
    path_free(m->maker->model, m->path);
}

/* Nothing branches off it: what is known of values is of no more use. */
static void finish(struct making *m)
{
    for (size_t i = 0; i < m->maker->model->values.count; i++)
        value_drop(m->path->values[i].known);
    mem_free(m->path->values);
    m->path->values = NULL;
    array_free(&m->path->entries);
}

graphi_status path_make(const struct path_maker *maker, const struct model_graph *graph, const struct form *reads,
                        size_t read_count, struct interpreter *run, const struct path *from, size_t at, bool keep,
                        struct path **out)
{
    struct making m = {.maker = maker, .graph = graph, .run = run};
    *out = NULL;
    graphi_status status = making_begin(&m);
    if (status == GRAPHI_OK)
        status = from ? begin_behind(&m, from, at) : begin_values(&m, reads, read_count);
    if (status == GRAPHI_OK && keep)
        status = make_stages(&m);
    if (status == GRAPHI_OK && (!keep || is_open(m.path))) {
        status = rest_on_host(&m);
    } else if (status == GRAPHI_OK) {
        if (m.path->steps.count == 1)
            finish(&m);
        *out = m.path;
        m.path = NULL;
    }
    making_end(&m);
    return status;
}

graphi_status path_inspect(const struct path_maker *maker, const struct model_graph *graph, const struct form *reads,
                           size_t read_count, struct path_report *out)
{
    struct making m = {.maker = maker, .graph = graph, .report = out};
    graphi_status status = making_begin(&m);
    if (status == GRAPHI_OK)
        status = begin_values(&m, reads, read_count);
    if (status == GRAPHI_OK)
        status = make_stages(&m);
    for (size_t i = 0; m.path && i < m.path->entries.count; i++) {
        const struct entry *entry = &m.path->entries.data[i];
        out->planned += entry->stage >= 0 && entry->planned;
        out->folded += entry->stage >= 0 && entry->folded;
        out->open += entry->stage < 0 && !entry->step.join;
    }
    making_end(&m);
    return status;
}
