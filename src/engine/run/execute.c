/* SPDX-License-Identifier: Apache-2.0 */
/* Executing a run: packed forms brought up to date, then all tasks, by the scheduler over leased workers or one after
 * the other, then failures told and versions counted. Workers call run_task, run_piece and pack_part alone. */
#include "engine/run/execute.h"

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/status.h"
#include "engine/run/feed.h"
#include "engine/run/forms.h"
#include "engine/run/messages.h"
#include "engine/run/numerics.h"
#include "engine/run/parameter.h"
#include "graph/op.h"
#include "machine/standing.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* --- one task --- */

static graphi_status record_failure(graphi_run *run, const struct bound *bound, graphi_status status)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&run->failed, &none, 1)) {
        char node[160], text[300];
        run->status = status;
        message_get(text, sizeof text);
        node_text(run->plan->compiled->graph, bound->node, node, sizeof node);
        snprintf(run->message, sizeof run->message, "%s (in %s)", text, node);
    }
    return status;
}

static void check_results(graphi_run *run, int32_t task)
{
    const struct compiled *c = run->plan->compiled;
    const struct bound *bound = &c->task[task];
    for (int i = 0; i < bound->outputs; i++) {
        int32_t at = bound->argument + bound->inputs + i;
        const struct array_desc *desc = &c->place[c->arguments.data[at].value].desc;
        const bool absent = !c->buffers.data[c->place[c->arguments.data[at].value].buffer].bytes;
        if (absent || finite_array(desc, run->array[at].data, run->array[at].rows))
            continue;
        int lowest = atomic_load_explicit(&run->nonfinite, memory_order_relaxed);
        while (task < lowest && !atomic_compare_exchange_weak(&run->nonfinite, &lowest, task)) {
        }
        return;
    }
}

struct kernel_call run_call(const graphi_run *run, int32_t task)
{
    const struct bound *bound = &run->plan->compiled->task[task];
    return (struct kernel_call){.in = run->array + bound->argument,
                                .out = run->array + bound->argument + bound->inputs,
                                .workspace = bound->workspace >= 0 ? run->block + bound->workspace : NULL,
                                .params = bound->kernel.params,
                                .seed = run->seed,
                                .step = run->step,
                                .first_sample = run->first_sample};
}

/* Those of one member, as far as they succeed. */
static graphi_status run_shares(const struct kernel *kernel, const struct kernel_call *call, int phase, int member)
{
    graphi_status status = GRAPHI_OK;
    int64_t begin, end;
    split_range(kernel->shares[phase], call->width, member, &begin, &end);
    for (int64_t share = begin; !status && share < end; share++)
        status = kernel->run(call, phase, (int)share);
    return status;
}

/* A phase of a task that others may join. */
struct open_phase {
    graphi_run *run;
    int32_t task;
    int phase;
};

static void run_piece(void *job, int piece, int pieces, int worker)
{
    const struct open_phase *p = job;
    const struct bound *bound = &p->run->plan->compiled->task[p->task];
    if (atomic_load_explicit(&p->run->failed, memory_order_relaxed)) /* seen late, a piece runs in vain */
        return;
    struct kernel_call call = run_call(p->run, p->task);
    call.width = pieces;
    call.thread = worker;
    graphi_status status = run_shares(&bound->kernel, &call, p->phase, piece);
    if (status)
        record_failure(p->run, bound, status);
}

/* By the leader; what a piece failed of has been recorded, told by outcome(). */
static graphi_status run_open(graphi_run *run, int32_t task, struct team *team)
{
    const struct kernel *kernel = &run->plan->compiled->task[task].kernel;
    for (int phase = 0; phase < kernel->phases; phase++) {
        struct open_phase p = {run, task, phase};
        int shares = kernel->shares[phase], pieces = shares < team->pieces ? shares : team->pieces;
        if (pieces > 1)
            team_open(team, run_piece, &p, pieces);
        else
            run_piece(&p, 0, 1, team->worker);
    }
    /* relaxed: whoever joined has ended */
    return atomic_load_explicit(&run->failed, memory_order_relaxed) ? GRAPHI_INVALID : GRAPHI_OK;
}

static graphi_status run_phases(graphi_run *run, int32_t task, struct team *team, int member, int width)
{
    const struct kernel *kernel = &run->plan->compiled->task[task].kernel;
    struct kernel_call call = run_call(run, task);
    call.width = width;
    call.thread = member;
    graphi_status status = GRAPHI_OK;
    for (int phase = 0; phase < kernel->phases; phase++) {
        if (phase && width > 1)
            team_barrier(team, member);
        if (!status)
            status = run_shares(kernel, &call, phase, member);
    }
    return status;
}

/* The same of a step of a loop: every other one from the last share to the first, so that what a share reads is still
 * in the nearest cache where all that a member reads is more than it holds. */
static graphi_status run_step(const struct kernel *kernel, const struct kernel_call *call, int phase, int member)
{
    graphi_status status = GRAPHI_OK;
    int64_t begin, end;
    split_range(kernel->shares[phase], call->width, member, &begin, &end);
    for (int64_t i = 0; !status && i < end - begin; i++)
        status = kernel->run(call, phase, (int)(call->loop & 1 ? end - 1 - i : begin + i));
    return status;
}

/* Steps times phases of a loop kernel, with the cheap barrier between them. A member that failed goes on with the
 * others to the end, doing nothing. */
static graphi_status run_loop(graphi_run *run, int32_t task, struct team *team, int member, int width)
{
    const struct kernel *kernel = &run->plan->compiled->task[task].kernel;
    struct kernel_call call = run_call(run, task);
    call.width = width;
    call.thread = member;
    graphi_status status = GRAPHI_OK;
    uint32_t barriers = 0;
    const int64_t steps = kernel_steps(kernel, &call);
    const bool meet = width > 1 && !kernel->apart && steps * kernel->phases > 1;
    if (meet)
        team_loop(team, member);
    for (call.loop = 0; call.loop < steps; call.loop++)
        for (int phase = 0; phase < kernel->phases; phase++) {
            if ((phase || call.loop) && meet)
                team_step(team, member, ++barriers);
            if (!status)
                status = run_step(kernel, &call, phase, member);
        }
    return status;
}

graphi_status run_task(void *context, int32_t task, struct team *team, int member, int width)
{
    graphi_run *run = context;
    const struct compiled *c = run->plan->compiled;
    const bool loop = c->task[task].kernel.steps; /* nobody joins it */
    graphi_status status = loop                 ? run_loop(run, task, team, member, width)
                           : team && width == 1 ? run_open(run, task, team)
                                                : run_phases(run, task, team, member, width);
    if (!status && member == 0)
        status = messages_task(run->messages, task);
    if (status)
        record_failure(run, &c->task[task], status);
    if (c->options.check_numerics) {
        if (width > 1)
            team_barrier(team, member); /* all results are written */
        if (member == 0)
            check_results(run, task);
    }
    return status;
}

/* --- before and after --- */

/* An output that was bound before its size grew. */
static graphi_status check_bound(const graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t i = 0; i < c->outputs.count; i++) {
        const struct bound_port *bound = &run->bound.port[c->inputs.count + i];
        const size_t expected = run_actual(run, &graph_value(c->graph, c->outputs.data[i].value)->type);
        if (!bound->memory || bound->bytes >= expected)
            continue;
        char where[200];
        snprintf(where, sizeof where, "output '%s'", c->outputs.data[i].name);
        return fail(GRAPHI_INVALID, where, "found memory of %zu bytes, bound before a size grew, expected at least %zu",
                    bound->bytes, expected);
    }
    return GRAPHI_OK;
}

static graphi_status check_fed(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    if (run_host(run)->checked)
        return GRAPHI_OK;
    for (size_t i = 0; i < c->inputs.count; i++) {
        size_t expected = run_actual(run, &graph_value(c->graph, c->inputs.data[i].value)->type);
        if (run->fed[i] >= expected || !c->inputs.data[i].used)
            continue;
        char where[200];
        snprintf(where, sizeof where, "input '%s'", c->inputs.data[i].name);
        if (!run->fed[i])
            return fail(GRAPHI_INVALID, where, "found no data, expected it to be set before the first execution");
        return fail(GRAPHI_INVALID, where, "found %zu bytes, set before a size grew, expected %zu", run->fed[i],
                    expected);
    }
    TRY(check_bound(run));
    run_host(run)->checked = true;
    return GRAPHI_OK;
}

/* A phase of a kernel that makes a packed form, on all workers of a lease. */
struct packing {
    graphi_run *run;
    const struct bound *bound;
    struct kernel_call call;
    int phase;
};

static void pack_part(void *context, int worker)
{
    const struct packing *p = context;
    struct kernel_call call = p->call;
    call.thread = worker;
    graphi_status status = run_shares(&p->bound->kernel, &call, p->phase, worker);
    if (status)
        record_failure(p->run, p->bound, status);
}

/* lease: of no worker, where the caller is alone. The pages of a form, which are new, are so taken from the system by
 * all at once: for half a gigabyte that is most of a first execution. */
static void pack(graphi_run *run, struct lease *lease, const struct bound *bound)
{
    struct packing p = {.run = run, .bound = bound};
    p.call = (struct kernel_call){.in = run->array + bound->argument,
                                  .out = run->array + bound->argument + bound->inputs,
                                  .workspace = run->scratch,
                                  .params = bound->kernel.params,
                                  .width = lease->count ? lease->count : 1};
    for (p.phase = 0; p.phase < bound->kernel.phases; p.phase++) {
        lease_start(lease, pack_part, &p);
        if (!lease->count || !lease->worker[0])
            pack_part(&p, 0);
        lease_wait(lease);
    }
}

/* Marks the forms that are stale, and those made for others alone where one of these is. The last come first. */
static void find_stale(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    for (size_t i = 0; i < c->prepared.count; i++)
        run->remake[i] = run->form[i] && !c->prepared.data[i].passing && form_is_stale(run->form[i]);
    for (size_t i = c->prepared.count; i-- > 0;) {
        const struct bound *bound = &c->prepared.data[i].bound;
        for (int k = 0; k < bound->inputs && run->remake[i]; k++) {
            const struct buffer *from = &c->buffers.data[c->arguments.data[bound->argument + k].buffer];
            if (from->kind == BUFFER_PREPARED && run->form[from->source] && form_is_stale(run->form[from->source]))
                run->remake[from->source] = true;
        }
    }
}

/* The form's parameters are held until the last form that follows from them is made: they would go away and come
 * back. */
static void hold_sources(graphi_run *run, const struct prepared *form)
{
    const struct compiled *c = run->plan->compiled;
    for (int32_t s = 0; s < form->sources; s++) {
        const int32_t p = c->sources.data[form->source + s];
        if (!run->held[p])
            parameter_hold(run->parameter[p]);
        run->held[p] = true;
    }
}

static void drop_sources(graphi_run *run, int32_t made)
{
    const struct compiled *c = run->plan->compiled;
    const struct prepared *form = &c->prepared.data[made];
    for (int32_t s = 0; s < form->sources; s++) {
        const int32_t p = c->sources.data[form->source + s];
        if (run->held[p] && c->parameters.data[p].last_form == made)
            parameter_drop(run->parameter[p]);
        run->held[p] = run->held[p] && c->parameters.data[p].last_form != made;
    }
}

static void remake_forms(graphi_run *run, struct lease *lease)
{
    const struct compiled *c = run->plan->compiled;
    find_stale(run);
    for (size_t i = 0; i < c->prepared.count; i++) {
        run->remake[i] = run->remake[i] && !atomic_load(&run->failed);
        if (run->remake[i]) {
            hold_sources(run, &c->prepared.data[i]);
            form_renew(run->form[i]);
            pack(run, lease, &c->prepared.data[i].bound);
            run->info.packs++;
            if (!atomic_load(&run->failed))
                form_made(run->form[i]);
        }
        drop_sources(run, (int32_t)i);
    }
    for (size_t i = 0; i < c->prepared.count; i++)
        if (run->form[i] && c->prepared.data[i].passing)
            form_pass(run->form[i]);
}

/* Forms of parameters that changed since they were made. Another run of the same state may do it at the same time:
 * hence the mutex; whoever comes second finds the version current. With a lease already: who waits for one holds up
 * nobody who reads the state. */
static graphi_status prepare_forms(graphi_run *run, struct lease *lease)
{
    const struct compiled *c = run->plan->compiled;
    if (!c->prepared.count)
        return GRAPHI_OK;
    const uint64_t tasks = run->info.packs;
    /* acquire: pairs with the addition in state_changed() */
    const uint64_t epoch = atomic_load_explicit(&run->state->epoch, memory_order_acquire);
    if (run->prepared_epoch == epoch) {
        run->info.packs_skipped = c->prepared.count;
        return GRAPHI_OK;
    }
    state_lock(run->state);
    remake_forms(run, lease);
    state_unlock(run->state);
    run->info.packs_skipped = c->prepared.count - (run->info.packs - tasks);
    if (!atomic_load(&run->failed))
        run->prepared_epoch = epoch;
    return atomic_load(&run->failed) ? GRAPHI_INVALID : GRAPHI_OK; /* told by outcome() */
}

static graphi_status run_serially(graphi_run *run, struct task_record *records)
{
    TRY(prepare_forms(run, &(struct lease){0}));
    int64_t start = records ? clock_ns() : 0, begin = 0;
    for (int32_t t = 0; t < run->plan->compiled->tasks; t++) {
        TRY(run_task(run, t, NULL, 0, 1));
        if (!records)
            continue;
        int64_t now = clock_ns() - start;
        records[t] = (struct task_record){.start_ns = begin, .end_ns = now, .ready_ns = begin, .width = 1};
        begin = now;
    }
    return GRAPHI_OK;
}

static void note_lease(graphi_run *run, const struct lease *lease)
{
    snprintf(run->info.note, sizeof run->info.note, "%s", lease->note);
    const size_t used = strlen(run->info.note);
    if (lease->shares_core)
        snprintf(run->info.note + used, sizeof run->info.note - used,
                 "%sthe dedicated driver shares a core with an executor, since executors take all %d: combining needs "
                 "none",
                 used ? "; " : "", lease->count);
}

static graphi_status run_leased(graphi_run *run, struct lease *lease, struct task_record *records)
{
    run->info.pinned = lease->pinned;
    run->info.waited_ms = (double)lease->waited_ns / 1e6;
    note_lease(run, lease);
    if (run->plan->setting.must_pin && !lease->pinned)
        return fail(GRAPHI_UNSUPPORTED, "pinning", "found that %s, expected a core for each thread",
                    lease->note[0] ? lease->note : "the lease leaves placement to the system");
    TRY(prepare_forms(run, lease));
    return schedule_run(run->schedule, lease, run_task, run, records);
}

/* standing: NULL, or what the calling thread has claimed. */
static graphi_status run_scheduled(graphi_run *run, graphi_lease *standing, struct task_record *records)
{
    const graphi_machine *machine = run->plan->compiled->machine;
    struct lease_options options = run->plan->decided.lease;
    struct lease lease = {0};
    int cancel;
    if (standing) {
        TRY(standing_use(standing, machine, &options, run->plan->decided.workers, &lease));
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        graphi_status status = run_leased(run, &lease, records);
        pthread_setcancelstate(cancel, NULL);
        return status;
    }
    options.room = &run->lease_room;
    TRY(lease_take(machine, &options, &lease));
    graphi_status status = run_leased(run, &lease, records);
    lease_release(&lease);
    return status;
}

static void clear_trace(graphi_run *run)
{
    memset(run->average, 0, (size_t)run->plan->compiled->tasks * sizeof *run->average);
    run->traced = 0;
}

/* Results and records are partly those of an execution before. */
static void forget(graphi_run *run)
{
    (run->host ? run->host : run)->spoilt = true;
    if (run->tracing)
        clear_trace(run);
}

/* What went wrong in any thread, told in the caller's. */
static graphi_status outcome(graphi_run *run, graphi_status status)
{
    if (atomic_load(&run->failed)) {
        forget(run);
        message_set(run->message);
        return run->status;
    }
    int lowest = atomic_load(&run->nonfinite);
    if (!status && lowest != INT_MAX && !run->quiet) { /* else of numbers that nobody gave */
        char node[160];
        forget(run);
        node_text(run->plan->compiled->graph, run->plan->compiled->task[lowest].node, node, sizeof node);
        return fail(GRAPHI_NONFINITE, node,
                    "found NaN or infinity in its result, expected finite numbers (it is the first "
                    "operation that has any)");
    }
    return status;
}

static void count_updates(graphi_run *run)
{
    const struct compiled *c = run->plan->compiled;
    if (!c->updates)
        return;
    for (size_t i = 0; i < c->parameters.count; i++)
        if (c->parameters.data[i].assigned)
            run->parameter[i]->version++;
    state_changed(run->state);
}

/* Welford: a mean and the squares around it, without sums that differences would vanish in. */
static void add_records(graphi_run *run)
{
    run->traced++;
    for (int32_t t = 0; t < run->plan->compiled->tasks; t++) {
        struct average *average = &run->average[t];
        double ns = (double)(run->records[t].end_ns - run->records[t].start_ns), before = ns - average->mean_ns;
        average->mean_ns += before / (double)run->traced;
        average->squares += before * (ns - average->mean_ns);
    }
}

double run_own_ns(const graphi_run *run) { return (run->info.last_ms - run->info.waited_ms) * 1e6; }

static graphi_status execute(graphi_run *run, graphi_lease *standing)
{
    const struct compiled *c = run->plan->compiled;
    TRY(check_fed(run));
    TRY(messages_check(run->messages));
    uint64_t allocations = mem_allocations();
    int64_t begin = clock_ns();
    run->seed = run->state->seed;
    run->step = run->state->step;
    atomic_store(&run->failed, 0);
    atomic_store(&run->nonfinite, INT_MAX);
    run->info.packs = (uint64_t)c->packs;
    run->info.packs_skipped = 0;
    run->info.waited_ms = 0;
    struct task_record *records = run->tracing ? run->records : NULL;
    graphi_status status = run->schedule ? run_scheduled(run, standing, records) : run_serially(run, records);
    status = outcome(run, status);
    if (status)
        messages_cancel(run->messages);
    count_updates(run);
    run->info.last_ms = (double)(clock_ns() - begin) / 1e6;
    run->info.allocations = mem_allocations() - allocations;
    if (status)
        return status;
    run->info.executions++;
    run->executed = true;
    (run->host ? run->host : run)->spoilt = false;
    memcpy(run->executed_symbol, run->symbol, c->graph->symbols.count * sizeof *run->symbol);
    feed_copy_out(run);
    if (c->updates)
        run->state->step++; /* other runs of the state only read it */
    if (records)
        add_records(run);
    return GRAPHI_OK;
}

static graphi_status execute_in_mode(graphi_run *run, graphi_lease *standing)
{
    struct float_mode mode = float_mode_enter(); /* the workers' */
    graphi_status status = execute(run, standing);
    float_mode_leave(mode);
    return status;
}

graphi_status graphi_run_execute(graphi_run *run)
{
    GIVEN(run);
    return execute_in_mode(run, standing_entered());
}

graphi_status graphi_run_execute_on(graphi_run *run, graphi_lease *lease)
{
    GIVEN(run);
    GIVEN(lease);
    TRY(standing_claim(lease));
    graphi_status status = execute_in_mode(run, lease);
    standing_drop(lease);
    return status;
}

static graphi_status begin_trace(graphi_run *run)
{
    size_t tasks = (size_t)run->plan->compiled->tasks + 1;
    if (run->schedule)
        TRY(schedule_trace_teams(run->schedule));
    if (!run->records)
        run->records = mem_zalloc_array(tasks, sizeof *run->records);
    if (!run->average)
        run->average = mem_zalloc_array(tasks, sizeof *run->average);
    if (!run->records || !run->average)
        return fail_memory("trace", tasks * sizeof *run->records);
    clear_trace(run);
    return GRAPHI_OK;
}

graphi_status graphi_run_trace(graphi_run *run, bool on)
{
    GIVEN(run);
    if (on)
        TRY(begin_trace(run));
    run->tracing = on;
    return GRAPHI_OK;
}
