/* SPDX-License-Identifier: Apache-2.0 */
/* What the profiler considers: the setting it starts from, the sequential engine, executors x width for the splits of
 * split.c and the widths of the graph, executors that join, few ones under a static driver, the malleable policy, then
 * depths, the dedicated driver, and further policies when asked. Each is simulated over the measured curves when it is
 * added, until the time is over; the first three and the malleable ones are there whatever the time. From them the
 * field of the race (race.h) is chosen: the promising ones, those first that differ from a simpler one in shape or in
 * predicted time. Usual number with all policies: 28 on two cores, 116 on 64, 148 on 68; a simulation takes
 * milliseconds. */
#include "engine/tune/candidates.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/choose/setting.h"
#include "machine/machine.h"
#include "schedule/policy.h"
#include "schedule/setting_canonical.h"

#include <math.h>

/* Predicted time over the best of those that nobody joins; on a disturbed machine predictions are 30 % off. */
static const double PROMISING = 1.5;
static const double ALIKE = 1.005;

static graphi_status plan_of(const struct candidates *c, const graphi_setting *setting, graphi_plan **out)
{
    const struct plan_parts parts = {
        .machine = c->base->machine, .curves = c->curves, .measured = c->measured, .setting = setting};
    return plan_make(c->base->compiled, &parts, out);
}

static uint64_t identity(const graphi_plan *plan)
{
    const graphi_setting setting = graphi_decision_setting(&plan->setting);
    return setting_hash(HASH_START, &setting);
}

/* A candidate's plan is resolved at once, so that equal settings are seen as such. Failures to fit are skipped. */
static graphi_status add_now(struct candidates *c, graphi_setting setting)
{
    graphi_plan *plan;
    setting_place(&setting, &c->base->setting);
    graphi_status status = plan_of(c, &setting, &plan);
    if (status == GRAPHI_USAGE)
        return GRAPHI_OK;
    TRY(status);
    bool known = false;
    const uint64_t hash = identity(plan);
    for (size_t i = 0; i < c->list.count; i++)
        known |= identity(c->list.data[i].plan) == hash;
    if (!known && array_push(&c->list, ((struct candidate){.plan = plan})))
        return GRAPHI_OK;
    graphi_plan_destroy(plan);
    return known ? GRAPHI_OK : fail_memory("tuning", sizeof *c->list.data);
}

static graphi_status add(struct candidates *c, graphi_setting setting)
{
    return clock_ns() > c->deadline ? GRAPHI_OK : add_now(c, setting);
}

/* Strategies as they are: uniform settings are candidates by themselves. */
static graphi_status add_split(struct candidates *c, graphi_policy policy, graphi_driver driver, int executors,
                               int width)
{
    return add(c, (graphi_setting){.policy = policy,
                                   .driver = driver,
                                   .executors = executors,
                                   .width = width,
                                   .parameters = {{"keep-uniform", -1}}});
}

static graphi_status add_splits(struct candidates *c, graphi_policy policy, graphi_driver driver)
{
    int cores = c->base->machine->cores, graph = c->base->graph_width;
    for (int k = 0; (k = setting_next_split(cores, k)) != 0;)
        TRY(add_split(c, policy, driver, k, cores / k));
    const int widths[] = {graph, (graph + 1) / 2, (graph + 2) / 3, cores};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i] >= 1 && widths[i] <= cores)
            TRY(add_split(c, policy, driver, widths[i], cores / widths[i]));
    return add_split(c, policy, driver, 1, 1);
}

/* Executors that run ahead: fewer scheduling steps and waits against a choice made earlier. */
static graphi_status add_depths(struct candidates *c)
{
    int cores = c->base->machine->cores;
    for (int k = cores; k > 1; k /= 2)
        for (int depth = 1; depth <= 4; depth *= 2)
            TRY(add(c, (graphi_setting){
                           .driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k, .depth = depth}));
    return GRAPHI_OK;
}

static graphi_status add_first(struct candidates *c)
{
    TRY(add_now(c, graphi_decision_setting(&c->base->setting)));
    TRY(add_now(
        c, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = c->base->machine->cores}));
    return add_now(c, (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1});
}

/* The malleable policy searches widths by itself whatever the split, which takes up to a second: two splits stand for
 * all. */
static graphi_status add_malleable(struct candidates *c)
{
    int cores = c->base->machine->cores;
    graphi_setting malleable = {
        .policy = GRAPHI_POLICY_MALLEABLE, .driver = GRAPHI_DRIVER_COMBINING, .executors = cores, .width = 1};
    TRY(add_now(c, malleable));
    malleable.executors = 1;
    malleable.width = cores;
    return add_now(c, malleable);
}

graphi_status candidates_add(struct candidates *c, bool policies)
{
    TRY(add_first(c));
    TRY(add_splits(c, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING));
    /* without joining where nobody may: a setting that is known */
    TRY(add(c, (graphi_setting){.driver = GRAPHI_DRIVER_COMBINING,
                                .executors = c->base->machine->cores,
                                .width = 1,
                                .join = GRAPHI_ON}));
    if (c->base->machine->cores < FEW_EXECUTORS)
        TRY(add_split(c, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_STATIC, c->base->machine->cores, 1));
    if (policies)
        TRY(add_malleable(c));
    TRY(add_depths(c));
    TRY(add_splits(c, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_DEDICATED));
    for (int policy = 0; policies && policy < GRAPHI_POLICIES; policy++)
        if (policy_of(&(graphi_setting){.policy = (graphi_policy)policy})->raced)
            TRY(add_splits(c, (graphi_policy)policy, GRAPHI_DRIVER_COMBINING));
    return GRAPHI_OK;
}

/* A schedule of mixed widths is predicted less surely than uniform ones (allot_uniform.c), so it has to beat them, and
 * that of the malleable policy also executors that join, where a width grows while an operation runs. */
graphi_status candidates_add_asked(struct candidates *c, const graphi_setting *setting)
{
    graphi_plan *plan;
    TRY(plan_of(c, setting, &plan));
    if (!array_push(&c->list, ((struct candidate){.plan = plan}))) {
        graphi_plan_destroy(plan);
        return fail_memory("tuning", sizeof *c->list.data);
    }
    if (!candidates_confirm(setting))
        return GRAPHI_OK;
    const bool may_join = policy_of(setting)->searches && setting->join != GRAPHI_OFF;
    graphi_setting uniform = graphi_decision_setting(&plan->setting);
    uniform.uniform = GRAPHI_ON;
    if (policy_heeds(&uniform, "keep-uniform"))
        policy_set(&uniform, "keep-uniform", policy_parameter(&uniform, "keep-uniform") != 0);
    uniform.depth = 0;
    if (may_join)
        uniform.join = setting->join;
    const bool given = setting->executors > 0 || setting->width > 0; /* else all cores, whatever was inferred */
    const int used = given ? uniform.executors * uniform.width : c->base->machine->cores;
    for (int k = 0; (k = setting_next_split(used, k)) != 0;) {
        uniform.executors = k;
        uniform.width = used / k;
        TRY(add_now(c, uniform));
    }
    uniform.executors = used;
    uniform.width = 1;
    uniform.join = GRAPHI_ON;
    return may_join ? add_now(c, uniform) : GRAPHI_OK;
}

bool candidates_confirm(const graphi_setting *setting)
{
    bool strategy = policy_of(setting)->own_teams;
    return strategy ? policy_parameter(setting, "keep-uniform") >= 0 : policy_of(setting)->searches;
}

void candidates_free(struct candidates *c)
{
    for (size_t i = 0; i < c->list.count; i++)
        graphi_plan_destroy(c->list.data[i].plan);
    array_free(&c->list);
}

/* --- the field --- */

static bool makes_teams(const graphi_decision *s)
{
    return policy_decided(s)->free_width || policy_decided(s)->sizes;
}

/* Most operations side by side: what waits for each other. Policies that make teams of their own may run one on each
 * worker. */
static int side_by_side(const struct candidate *c)
{
    const graphi_decision *s = &c->plan->setting;
    return makes_teams(s) ? s->executors * s->width : s->executors;
}

bool candidates_simpler(const struct candidates *c, int a, int b)
{
    int x = side_by_side(&c->list.data[a]), y = side_by_side(&c->list.data[b]);
    bool p = makes_teams(&c->list.data[a].plan->setting), q = makes_teams(&c->list.data[b].plan->setting);
    bool j = c->list.data[a].plan->setting.joins, k = c->list.data[b].plan->setting.joins;
    return x != y ? x < y : p != q ? q : j != k ? k : a < b;
}

/* Do equal predictions tell of equal schedules? Simulated ones do where messages, if there are any, take time. Two sums
 * know no driver, no depth and no policy. */
static bool predictions_tell(const graphi_plan *plan)
{
    return plan->compiled->tasks <= MOST_SIMULATED_TASKS && (plan->machine->wake_ns > 0 || plan->machine->cores == 1);
}

/* Beside a simpler one of the same shape. Executors that join also take over what a disturbed one has left, of which no
 * prediction tells. Of the same schedule, to the last bit of its simulated time, a race would tell nothing. */
enum standing { APART, DOMINATED, SAME };

static enum standing standing(const struct candidates *c, int i)
{
    const struct candidate *x = &c->list.data[i];
    enum standing found = APART;
    for (int k = 0; k < (int)c->list.count; k++) {
        const struct candidate *y = &c->list.data[k];
        if (k == i || !candidates_simpler(c, k, i) || side_by_side(x) != side_by_side(y) ||
            x->plan->setting.joins != y->plan->setting.joins ||
            x->plan->setting.executors * x->plan->setting.width !=
                y->plan->setting.executors * y->plan->setting.width ||
            y->plan->predicted_ns > ALIKE * x->plan->predicted_ns)
            continue;
        if (y->plan->predicted_ns == x->plan->predicted_ns && predictions_tell(c->base))
            return SAME;
        found = DOMINATED;
    }
    return found;
}

int candidates_field(const struct candidates *c, int *field, int most)
{
    double best = INFINITY;
    int count = 0;
    for (size_t i = 0; i < c->list.count; i++)
        if (!c->list.data[i].plan->setting.joins)
            best = fmin(best, c->list.data[i].plan->predicted_ns);
    field[count++] = 0;
    for (enum standing pass = APART; pass < SAME; pass++) /* dominated: the simulator does not know everything */
        for (int from = count; count < most; count++) {
            int next = -1;
            for (int i = 1; i < (int)c->list.count; i++) {
                double ns = c->list.data[i].plan->predicted_ns;
                bool taken = ns > PROMISING * best || standing(c, i) != pass;
                for (int k = from; k < count && !taken; k++)
                    taken = field[k] == i;
                if (!taken && (next < 0 || ns < c->list.data[next].plan->predicted_ns))
                    next = i;
            }
            if (next < 0)
                break;
            field[count] = next;
        }
    return count;
}
