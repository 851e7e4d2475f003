/* SPDX-License-Identifier: Apache-2.0 */
/* How well the simulator predicts: each setting of the cores at hand is simulated over times of operations, and runs;
 * error = |predicted / measured - 1|. On a shared machine two busy cores, and messages between them, change their speed
 * by tens of per cent within a minute, so both see the same seconds: after each round of the profile's executions
 * (graphi_plan_profile) every setting runs once. A pass is up to eight such rounds; it gives the operations' times, the
 * prediction of every setting over them, and the median of what each setting took. The error is that of the median of
 * the passes' ratios.
 *
 * Nothing is predicted from itself: times of operations come from the profile's own executions (docs/simulator.md), and
 * what the settings take enters nothing. Settings of the kinds that the profile executes and all others are told apart
 * in the notes. Policies that decide by times know those of a profile before the first pass; the simulation repeats
 * these decisions while time passes by what the pass measured. All settings share one memory and run twice a turn,
 * unless they are long, of which the second counts: the profile's executions have emptied the caches. Goal: a mean
 * below 5 %. A dedicated driver that shares a core with an executor waits for turns that the system gives, and for
 * whatever else wants this core: such settings have rows, but no part in the goal. */
#include "study.h"

#include <math.h>
#include <string.h>

enum { MOST = 13 * GRAPHI_POLICIES, PASSES = 9 }; /* 4,096 cores have 13 splits */
static double worst;
static struct {
    const char *what;
    double sum;
    int count;
} groups[] = {{"settings whose operations were measured", 0, 0},
              {"settings predicted from others' operations", 0, 0},
              {"not in the goal, a dedicated driver that shares a core", 0, 0}};
enum { MEASURED, OTHERS, SHARING, GROUPS };

/* Signed errors by setting over all networks: which kind of setting the model takes for too fast. */
static struct {
    char id[96];
    double sum;
    int count;
} by_setting[MOST];

static void add_signed(const char *id, double error)
{
    int i = 0;
    while (i < MOST - 1 && by_setting[i].count && strcmp(by_setting[i].id, id) != 0)
        i++;
    snprintf(by_setting[i].id, sizeof by_setting[i].id, "%s", id);
    by_setting[i].sum += error;
    by_setting[i].count++;
}

/* Whether the last one is one of those before it under another name. */
static bool executes_alike(const struct contender *list, int last)
{
    graphi_plan_info info, other;
    graphi_plan_get_info(list[last].plan, &info);
    for (int i = 0; i < last; i++) {
        graphi_plan_get_info(list[i].plan, &other);
        if (other.hash == info.hash)
            return true;
    }
    return false;
}

static graphi_status add(struct bench *bench, const struct network *n, struct contender *list, int *count,
                         graphi_setting setting)
{
    char id[96];
    if (*count == MOST)
        return GRAPHI_OK;
    const char *driver = setting.driver == GRAPHI_DRIVER_AUTO ? "" : graphi_driver_name(setting.driver);
    snprintf(id, sizeof id, "%dx%d %s%s%s%s", setting.executors, setting.width, graphi_policy_name(setting.policy),
             *driver ? " " : "", driver, setting.join == GRAPHI_ON ? ", joining" : "");
    struct contender *c = &list[*count];
    graphi_status status = contender_beside(bench, n, id, &setting, c > list ? list : NULL, c);
    if (!status && executes_alike(list, *count))
        contender_close(c);
    else
        ++*count;
    return status;
}

static bool has_own_widths(graphi_policy policy)
{
    return policy >= GRAPHI_POLICY_S1 && policy <= GRAPHI_POLICY_MALLEABLE;
}

/* On k executors: critical path first under all drivers, and the policies that order or place otherwise; with --quick
 * and with one executor, where all orders are alike, the first alone. */
static graphi_status collect_split(struct bench *bench, const struct network *n, struct contender *list, int *count,
                                   int k)
{
    graphi_setting setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH,
                              .executors = k,
                              .width = bench->about.cores / k,
                              .parameters = {{"seed", (int64_t)bench->options.seed}}};
    graphi_status status = GRAPHI_OK;
    for (int d = GRAPHI_DRIVERS - 1; d >= GRAPHI_DRIVER_DEDICATED && !status; d--) {
        setting.driver = (graphi_driver)d;
        status = add(bench, n, list, count, setting);
    }
    setting.driver = GRAPHI_DRIVER_COMBINING;
    for (int p = 0; p < GRAPHI_POLICIES && k > 1 && !bench->options.quick && !status; p++) {
        setting.policy = (graphi_policy)p;
        if (p != GRAPHI_POLICY_CRITICAL_PATH && p != GRAPHI_POLICY_SEQUENTIAL && !has_own_widths(setting.policy))
            status = add(bench, n, list, count, setting);
    }
    return status;
}

/* Every policy; under critical path first executors that join, too. */
static graphi_status collect(struct bench *bench, const struct network *n, struct contender *list, int *count)
{
    const int cores = bench->about.cores;
    graphi_status status = add(bench, n, list, count,
                               (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = cores});
    for (int k = 1; k <= cores && !status; k *= 2)
        status = collect_split(bench, n, list, count, k);
    if (!status)
        status = add(bench, n, list, count,
                     (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                      .driver = GRAPHI_DRIVER_COMBINING,
                                      .executors = cores,
                                      .width = 1,
                                      .join = GRAPHI_ON});
    for (int p = GRAPHI_POLICY_S1; has_own_widths((graphi_policy)p) && !status; p++)
        status = add(bench, n, list, count,
                     (graphi_setting){
                         .policy = (graphi_policy)p, .executors = cores, .width = 1,
                         .parameters = {{"keep-uniform", -1}}});
    for (int k = 1; k < cores && !status; k += cores > 2 ? cores - 2 : 1) /* on some of the cores: one, all but one */
        for (int d = GRAPHI_DRIVER_DEDICATED; d < GRAPHI_DRIVERS && !status; d++)
            status = add(bench, n, list, count,
                         (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                          .driver = (graphi_driver)d,
                                          .executors = k,
                                          .width = 1});
    return status;
}

/* What profiling runs: one operation at a time on all cores, and an executor on every core. */
static int group_of(const struct bench *bench, const graphi_plan *plan)
{
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    const graphi_decision *s = &info.setting;
    if (s->driver == GRAPHI_DRIVER_DEDICATED)
        return s->executors * s->width == bench->about.cores ? SHARING : OTHERS;
    return s->policy == GRAPHI_POLICY_SEQUENTIAL ||
                   (s->policy == GRAPHI_POLICY_CRITICAL_PATH && !s->joins &&
                    (s->executors == bench->about.cores || s->width == bench->about.cores))
               ? MEASURED
               : OTHERS;
}

struct series {
    struct bench *bench;
    const char *network;
    struct contender list[MOST];
    double predicted[MOST][PASSES], ratio[MOST][PASSES], /* ratio: predicted over measured in that pass */
        overhead_ns[MOST];
    int count, passes, rounds, begin; /* begin: first round of the pass at hand */
    bool told; /* an execution failed, and that was reported */
};

static void judge(struct bench *bench, const struct network *n, struct series *s, int i)
{
    struct contender *c = &s->list[i];
    json_t *row = bench_row(bench, n, c, NULL, s->rounds);
    double error = result_median(s->ratio[i], s->passes) - 1;
    result_number(row, "predicted_ms", result_median(s->predicted[i], s->passes));
    result_number(row, "error", fabs(error));
    result_number(row, "overhead_ns_per_op", s->overhead_ns[i]);
    add_signed(c->id, error);
    const int group = group_of(bench, c->plan);
    if (group != SHARING)
        worst = fmax(worst, fabs(error));
    groups[group].sum += fabs(error);
    groups[group].count++;
}

/* Between two rounds of the profile. */
static graphi_status run_all(void *context)
{
    struct series *s = context;
    if (s->rounds == BENCH_MAX_ROUNDS)
        return GRAPHI_OK;
    report_progress(s->bench->options.quiet, "%s: pass %d, round %d", s->network, s->passes + 1,
                    s->rounds - s->begin + 1);
    for (int i = 0; i < s->count; i++) {
        graphi_status status =
            report_interrupted() ? GRAPHI_INTERRUPTED : bench_turn(&s->list[i], true, &s->list[i].ms[s->rounds]);
        s->told = status != GRAPHI_OK && status != GRAPHI_INTERRUPTED;
        if (status != GRAPHI_OK)
            return status;
    }
    s->rounds++;
    return GRAPHI_OK;
}

/* One setting over the times of this pass, beside what it took in the pass. */
static graphi_status predict(struct series *s, int i, const graphi_plan *truth)
{
    graphi_simulation simulation;
    const int rounds = s->rounds - s->begin;
    graphi_status status =
        graphi_plan_simulate(s->list[i].plan, &(graphi_simulate_options){.truth = truth}, &simulation);
    if (status)
        return bench_failure(status);
    s->predicted[i][s->passes] = simulation.makespan_ms;
    s->overhead_ns[i] = simulation.host_ns_per_op;
    s->ratio[i][s->passes] = rounds ? simulation.makespan_ms / result_median(s->list[i].ms + s->begin, rounds) : 1;
    return GRAPHI_OK;
}

/* Rates and operations measured, every setting simulated over these times and run in the same rounds. */
static graphi_status pass(struct bench *bench, struct network *n, struct series *s, double seconds)
{
    graphi_plan *truth = NULL;
    graphi_profile_options how = {
        .seconds = seconds, .interval = 1, .stop = report_stop, .between = run_all, .context = s};
    s->begin = s->rounds;
    graphi_status status = graphi_machine_measure(bench->machine, 0.1);
    if (!status)
        status = graphi_plan_profile(n->plan, n->state, &how, &truth);
    if (status)
        return s->told ? status : bench_failure(status);
    for (int i = 0; i < s->count && !status; i++)
        status = predict(s, i, truth);
    graphi_plan_destroy(truth);
    s->passes++;
    return status;
}

/* The times by which policies decide, the settings, and an execution of each. */
static graphi_status prepare(struct bench *bench, struct network *n, struct series *s, double seconds)
{
    graphi_plan *known = NULL;
    graphi_profile_options how = {.seconds = seconds, .interval = 1, .stop = report_stop};
    report_progress(bench->options.quiet, "%s: measuring operations", n->name);
    graphi_status status = graphi_plan_profile(n->plan, n->state, &how, &known);
    if (status)
        return bench_failure(status);
    graphi_plan_destroy(n->plan);
    n->plan = known;
    status = collect(bench, n, s->list, &s->count);
    for (int i = 0; i < s->count && !status; i++)
        status = contender_execute(&s->list[i], &s->list[i].first_ms);
    return status;
}

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct network n;
    struct series s = {.bench = bench, .network = network};
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? 2 : 10;
    graphi_status status = network_open(bench, network, size, NULL, &n);
    if (status)
        return status;
    status = prepare(bench, &n, &s, seconds / 10);
    double end = report_seconds() + seconds;
    while (!status && s.passes < PASSES && (!s.passes || report_seconds() < end))
        status = pass(bench, &n, &s, seconds / 3);
    for (int i = 0; i < s.count && !status; i++)
        judge(bench, &n, &s, i);
    for (int i = s.count - 1; i >= 0; i--) /* the first has the memory */
        contender_close(&s.list[i]);
    network_close(&n);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm",  "phased-lstm",  "pathnet", "googlenet", "resnet50",
                                           "dcgan", "inception-v3", "ptb",     NULL};
    if (!bench->options.size)
        bench->options.size = "small"; /* --size medium takes minutes */
    result_note(&bench->result,
                "ms and predicted ms are medians over the whole run, each for itself; error is that of the median of "
                "the passes' ratios, measured and predicted in the same seconds");
    graphi_status status = study_names(bench, networks, body);
    int settings = groups[MEASURED].count + groups[OTHERS].count;
    if (!status && settings) {
        result_goal(&bench->result, "mean error of the predicted makespan, %",
                    100 * (groups[MEASURED].sum + groups[OTHERS].sum) / settings, 5, false);
        result_note(&bench->result, "%d settings; worst error %.1f %%", settings, 100 * worst);
        for (int i = 0; i < GROUPS; i++)
            if (groups[i].count)
                result_note(&bench->result, "%s: mean error %.1f %%, %d of them", groups[i].what,
                            100 * groups[i].sum / groups[i].count, groups[i].count);
        for (int i = 0; i < MOST && by_setting[i].count; i++)
            result_note(&bench->result, "%s: predicted %+.1f %% from measured, mean of %d networks", by_setting[i].id,
                        100 * by_setting[i].sum / by_setting[i].count, by_setting[i].count);
    }
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "simulator-error", run);
}
