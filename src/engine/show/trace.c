/* SPDX-License-Identifier: Apache-2.0 */
/* From records of an execution to what people look at: a timeline and its summary. Only after an execution, never
 * during. */
#include "engine/show/trace.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/show/timeline_sum.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "schedule/policy.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The timeline's events and all their texts, one owner: the arena hangs in front of the events. */
struct owned {
    struct arena arena;
    struct timeline_event event[];
};

static struct owned *owner_of(const struct timeline *timeline)
{
    return (struct owned *)((char *)(uintptr_t)timeline->events - offsetof(struct owned, event));
}

enum { LISTED = 8, ARGUMENT_BYTES = 160, DETAIL_BYTES = 64 + 2 * (LISTED + 1) * ARGUMENT_BYTES };

/* Of many arguments the first ones, whole, and how many more there are. */
static size_t list_arguments(const struct compiled *c, const struct graphi_run *run, int32_t first, int count,
                             char *text)
{
    size_t used = 0;
    for (int i = 0; i < count && i < LISTED; i++) {
        const struct argument *argument = &c->arguments.data[first + i];
        char type[96];
        type_text(&graph_value(c->graph, argument->value)->type, type, sizeof type);
        used += (size_t)snprintf(text + used, ARGUMENT_BYTES, " %s", type);
        if (run)
            used += (size_t)snprintf(text + used, ARGUMENT_BYTES - sizeof type, "@%p",
                                     run_address(run, argument->buffer, argument->offset));
    }
    if (count > LISTED)
        used += (size_t)snprintf(text + used, ARGUMENT_BYTES, " and %d more", count - LISTED);
    return used;
}

static void describe(const graphi_plan *plan, int32_t task, const struct graphi_run *run, char text[DETAIL_BYTES])
{
    const struct compiled *c = plan->compiled;
    const struct bound *bound = &c->task[task];
    size_t used = (size_t)snprintf(text, 32, "%.30s:", bound->kernel.name);
    used += list_arguments(c, run, bound->argument, bound->inputs, text + used);
    used += (size_t)snprintf(text + used, 4, " ->");
    list_arguments(c, run, bound->argument + bound->inputs, bound->outputs, text + used);
}

static int lanes_of(const graphi_plan *plan, const struct timeline_event *event)
{
    int lanes = plan->setting.executors * plan->setting.width + plan->setting.light;
    for (int32_t t = 0; t < plan->compiled->tasks; t++)
        for (int m = 0; m < event[t].width; m++)
            if (timeline_member(&event[t], m) >= lanes)
                lanes = timeline_member(&event[t], m) + 1;
    return lanes;
}

/* Without a schedule nobody has a team. */
static struct team_trace teams_of(const struct schedule *schedule)
{
    return schedule ? *schedule_teams(schedule) : (struct team_trace){0};
}

/* Virtual time tells of the leader of an open task alone how long it worked. */
static void add_team(struct timeline_event *event, int32_t task, const struct task_record *record,
                     const struct team_trace *teams, bool simulated)
{
    if (!teams->row || (event->width == 1 && !record->open))
        return;
    event->member = teams->member ? teams->member + (size_t)task * teams->row : NULL;
    event->worked_ns = simulated && !record->open ? NULL : teams->worked_ns + (size_t)task * teams->row;
}

/* Over n executions, of a sample. */
static double deviation(double squares, uint64_t n)
{
    return n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* But for its detail and its team. */
static struct timeline_event event_of(const graphi_plan *plan, int32_t task, const struct task_record *record,
                                      const struct graphi_run *run)
{
    const struct bound *bound = &plan->compiled->task[task];
    const struct node *node = graph_node(plan->compiled->graph, bound->node);
    return (struct timeline_event){.name = node->scope ? node->scope : "",
                                   .kind = node->kind->name,
                                   .ready_ns = record->ready_ns,
                                   .start_ns = record->start_ns,
                                   .end_ns = record->end_ns,
                                   .level_ns = plan->level[task],
                                   .leader = record->leader,
                                   .width = record->width ? record->width : 1,
                                   .inlined = record->inlined,
                                   .backward = node->backward,
                                   .mean_ns = run ? run->average[task].mean_ns : 0,
                                   .deviation_ns = run ? deviation(run->average[task].squares, run->traced) : 0,
                                   .flops = bound->kernel.flops,
                                   .bytes = bound->kernel.bytes};
}

/* Pieces of tasks by who joined, behind the events of the tasks. */
static void add_joined(struct timeline_event *event, int32_t tasks, const struct join_trace *joined)
{
    for (int i = 0; i < joined->count; i++) {
        const struct joined *piece = &joined->piece[i];
        const struct timeline_event *whole = &event[piece->task];
        event[tasks + i] = (struct timeline_event){.name = whole->name,
                                                   .kind = whole->kind,
                                                   .detail = whole->detail,
                                                   .ready_ns = piece->start_ns,
                                                   .start_ns = piece->start_ns,
                                                   .end_ns = piece->end_ns,
                                                   .level_ns = whole->level_ns,
                                                   .leader = piece->worker,
                                                   .width = 1,
                                                   .backward = whole->backward,
                                                   .joined = true};
    }
}

graphi_status trace_timeline(const graphi_plan *plan, const struct task_record *records,
                             const struct schedule *schedule, const struct graphi_run *run, struct timeline *timeline)
{
    const struct compiled *c = plan->compiled;
    int32_t *begin, *list;
    const struct join_trace joined = schedule ? schedule_joined(schedule) : (struct join_trace){0};
    const struct team_trace teams = teams_of(schedule);
    size_t bytes = sizeof(struct owned) + sizeof(struct timeline_event) * ((size_t)c->tasks + (size_t)joined.count);
    struct owned *owned = mem_zalloc(bytes);
    if (!owned)
        return fail_memory("timeline", bytes);
    graphi_status status = edges_predecessors(c->tasks, c->edges_begin, c->edges, &begin, &list);
    if (status) {
        mem_free(owned);
        return status;
    }
    bool enough = true;
    for (int32_t t = 0; t < c->tasks; t++) {
        char detail[DETAIL_BYTES];
        describe(plan, t, run, detail);
        const char *kept = arena_string(&owned->arena, detail);
        enough = enough && kept;
        owned->event[t] = event_of(plan, t, &records[t], run);
        owned->event[t].detail = kept;
        add_team(&owned->event[t], t, &records[t], &teams, !run);
    }
    char title[320];
    snprintf(title, sizeof title, "%d operations, %d executors x %d threads, %s, %s", c->tasks, plan->setting.executors,
             plan->setting.width, graphi_policy_name(plan->setting.policy), plan->machine->name);
    const char *kept = arena_string(&owned->arena, title);
    if (enough && kept)
        timeline_mark_critical(owned->event, c->tasks, begin, list);
    add_joined(owned->event, c->tasks, &joined);
    mem_free(begin);
    mem_free(list);
    const graphi_decision *setting = &plan->setting;
    const bool in_order = policy_decided(setting)->loop == LOOP_SEQUENTIAL; /* one team of all */
    const bool fixed = !policy_decided(setting)->free_width && !policy_decided(setting)->sizes &&
                       !setting->backward_executors;
    *timeline = (struct timeline){.title = kept,
                                  .simulated = !run,
                                  .lanes = lanes_of(plan, owned->event),
                                  .executors = !fixed ? 0 : in_order ? 1 : setting->executors,
                                  .team = !fixed ? 0 : in_order ? setting->executors * setting->width : setting->width,
                                  .light = setting->light ? setting->executors * setting->width : 0,
                                  .siblings = policy_decided(setting)->siblings ? plan->machine : NULL,
                                  .count = c->tasks + joined.count,
                                  .executions = run ? (int64_t)run->traced : 0,
                                  .events = owned->event,
                                  .lower_bound_ns = (int64_t)plan->lower_bound_ns,
                                  .critical_path_ns = (int64_t)plan->critical_path_ns};
    if (enough && kept)
        return GRAPHI_OK;
    trace_timeline_free(timeline);
    return fail_memory("timeline", bytes);
}

void trace_timeline_free(struct timeline *timeline)
{
    struct owned *owned = owner_of(timeline);
    arena_free(&owned->arena);
    mem_free(owned);
}

graphi_status trace_write(const struct timeline *timeline, const char *prefix)
{
    char path[4200];
    TRY(file_check_path(prefix));
    if (strlen(prefix) > 4096)
        return fail(GRAPHI_INVALID, "timeline", "found a name of %zu characters, expected at most 4096",
                    strlen(prefix));
    snprintf(path, sizeof path, "%s.json", prefix);
    TRY(timeline_write_json(timeline, path));
    snprintf(path, sizeof path, "%s.html", prefix);
    return timeline_write_html(timeline, path);
}

static graphi_status check_traced(const graphi_run *run)
{
    if (run->traced)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "trace",
                "found no traced execution, expected graphi_run_trace and an execution before");
}

static graphi_status timeline_of(const graphi_run *run, struct timeline *timeline)
{
    TRY(check_traced(run));
    return trace_timeline(run->plan, run->records, run->schedule, run, timeline);
}

graphi_status graphi_run_trace_summary(const graphi_run *run, graphi_trace_summary *summary)
{
    GIVEN(run);
    GIVEN(summary);
    struct timeline timeline;
    struct timeline_totals totals;
    TRY(timeline_of(run, &timeline));
    graphi_status status = timeline_sum(&timeline, NULL, &totals);
    trace_timeline_free(&timeline);
    if (status)
        return status;
    *summary = (graphi_trace_summary){.span_ms = (double)totals.span_ns / 1e6,
                                      .busy_fraction = totals.busy,
                                      .scheduling_fraction = totals.scheduling,
                                      .waiting_fraction = totals.starved,
                                      .team_fraction = totals.team,
                                      .critical_path_ms = run->plan->critical_path_ns / 1e6,
                                      .lower_bound_ms = run->plan->lower_bound_ns / 1e6,
                                      .operations = run->plan->compiled->tasks};
    return GRAPHI_OK;
}

graphi_status graphi_run_trace_operation(const graphi_run *run, int64_t index, graphi_trace_operation *operation)
{
    GIVEN(run);
    GIVEN(operation);
    TRY(check_traced(run));
    const struct compiled *c = run->plan->compiled;
    if (index < 0 || index >= c->tasks)
        return fail(GRAPHI_INVALID, "trace", "found operation %lld, expected 0 to %d", (long long)index, c->tasks - 1);
    int32_t t = (int32_t)index;
    const struct node *node = graph_node(c->graph, c->task[t].node);
    const struct task_record *r = &run->records[t];
    struct timeline_event event = {.start_ns = r->start_ns, .end_ns = r->end_ns, .width = r->width};
    const struct team_trace teams = teams_of(run->schedule);
    add_team(&event, t, r, &teams, false);
    *operation = (graphi_trace_operation){.name = node->scope ? node->scope : "",
                                          .kind = node->kind->name,
                                          .leader = r->leader,
                                          .width = r->width,
                                          .start_ms = (double)r->start_ns / 1e6,
                                          .duration_ms = (double)(r->end_ns - r->start_ns) / 1e6,
                                          .team_wait_ms = (double)timeline_team_wait(&event) / 1e6,
                                          .executions = run->traced,
                                          .mean_ms = run->average[t].mean_ns / 1e6,
                                          .deviation_ms = deviation(run->average[t].squares, run->traced) / 1e6};
    return GRAPHI_OK;
}

graphi_status graphi_run_write_timeline(const graphi_run *run, const char *prefix)
{
    GIVEN(run);
    struct timeline timeline;
    TRY(timeline_of(run, &timeline));
    graphi_status status = trace_write(&timeline, prefix);
    trace_timeline_free(&timeline);
    return status;
}
