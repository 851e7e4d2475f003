/* SPDX-License-Identifier: Apache-2.0 */
/* How well the simulator predicts: in several passes the machine's rates and the operations are measured
 * (graphi_plan_profile), each setting of the cores at hand is simulated over these times, and all of them run in
 * alternation; error = |predicted / measured - 1|, of the median of the passes' ratios. Passes, since on a shared
 * machine two busy cores, and messages between them, change their speed by tens of per cent from one second to the
 * next: what is predicted and what is measured must see the same machine. Each turn executes twice and counts the
 * second: profiles and training loops run one plan in one arena, whose bytes are in the caches.
 *
 * Times of operations come from executions of their own in two kinds of setting, one operation at a time at every width
 * and every core an executor; makespans of those settings and of all others are predicted, and told apart in the notes.
 * Goal: a mean below 5 %. */
#include "study.h"

#include <math.h>
#include <string.h>

enum { MOST = 24, PASSES = 9, LEAST_PASSES = 3, PASS_ROUNDS = 60 };
static double worst;
static struct {
    const char *what;
    double sum;
    int count;
} groups[] = {{"settings whose operations were measured", 0, 0}, {"settings predicted from others' operations", 0, 0}};

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

static graphi_status add(struct bench *bench, const struct network *n, struct contender *list, int *count,
                         graphi_setting setting)
{
    static const char *const drivers[] = {"", " dedicated", " combining"};
    char id[96];
    if (*count == MOST)
        return GRAPHI_OK;
    snprintf(id, sizeof id, "%dx%d %s%s", setting.executors, setting.width, graphi_policy_name(setting.policy),
             drivers[setting.driver]);
    return contender_open(bench, n, id, &setting, &list[(*count)++]);
}

static graphi_status collect(struct bench *bench, const struct network *n, struct contender *list, int *count)
{
    static const graphi_policy fixed[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_NAIVE, GRAPHI_POLICY_FIFO};
    static const graphi_policy free_width[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S123,
                                               GRAPHI_POLICY_MALLEABLE};
    int cores = bench->about.cores;
    graphi_status status = add(bench, n, list, count,
                               (graphi_setting){.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = cores});
    for (int k = 1; k <= cores && !status; k *= 2)
        for (size_t p = 0; p < 3 && !status; p++)
            if (p == 0 || (k > 1 && !bench->options.quick))
                status =
                    add(bench, n, list, count,
                        (graphi_setting){
                            .policy = fixed[p], .driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k});
    for (size_t p = 0; p < 4 && !status; p++)
        status = add(bench, n, list, count, (graphi_setting){.policy = free_width[p], .executors = cores, .width = 1});
    if (!status && cores > 2)
        status = add(bench, n, list, count,
                     (graphi_setting){.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                      .driver = GRAPHI_DRIVER_DEDICATED,
                                      .executors = cores - 1,
                                      .width = 1});
    return status;
}

/* What profiling runs: one operation at a time, and critical path first with an executor on every core. */
static bool measured_operations(const struct bench *bench, const graphi_plan *plan)
{
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    const graphi_setting *s = &info.setting;
    return s->policy == GRAPHI_POLICY_SEQUENTIAL ||
           (s->policy == GRAPHI_POLICY_CRITICAL_PATH && s->driver == GRAPHI_DRIVER_COMBINING &&
            s->executors == bench->about.cores);
}

struct series {
    struct contender list[MOST];
    double predicted[MOST][PASSES], ratio[MOST][PASSES],
        overhead_ns[MOST]; /* ratio: predicted over measured in that pass */
    int count, passes, rounds;
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
    worst = fmax(worst, fabs(error));
    int group = !measured_operations(bench, c->plan);
    groups[group].sum += fabs(error);
    groups[group].count++;
}

/* Rates and operations measured, every setting simulated over them, every setting run over them: policies that decide
 * by times must decide by those that the prediction knows. */
static graphi_status pass(struct bench *bench, struct network *n, struct series *s, double seconds)
{
    graphi_plan *profiled = NULL;
    graphi_profile_options how = {
        .seconds = fmax(seconds / 3, 1), .interval = 1, .stop = job_stopped}; /* executions enough for medians */
    int rounds = 0;
    report_progress(bench->options.quiet, "%s: measuring operations", n->name);
    graphi_status status = graphi_machine_measure(bench->machine, 0.1);
    if (!status)
        status = graphi_plan_profile(n->plan, n->state, &how, &profiled);
    if (status)
        return bench_failure(status);
    graphi_plan_destroy(n->plan);
    n->plan = profiled;
    if (!s->passes)
        status = collect(bench, n, s->list, &s->count);
    for (int i = 0; i < s->count && s->passes && !status; i++)
        status = contender_renew(bench, n, &s->list[i]);
    for (int i = 0; i < s->count && !status; i++) {
        graphi_simulation simulation;
        graphi_plan_info info;
        graphi_plan_get_info(s->list[i].plan, &info);
        if ((status = graphi_plan_simulate(profiled, NULL, &info.setting, NULL, &simulation)) != GRAPHI_OK)
            return report_failure(status);
        s->predicted[i][s->passes] = simulation.makespan_ms;
        s->overhead_ns[i] = simulation.host_ns_per_op;
    }
    for (int i = 0; i < s->count; i++)
        s->list[i].ms += s->rounds;
    if (!status)
        status = bench_alternate(bench, n->name, s->list, s->count, seconds, PASS_ROUNDS, &rounds);
    for (int i = 0; i < s->count; i++) {
        double ms[BENCH_MAX_ROUNDS];
        memcpy(ms, s->list[i].ms, (size_t)rounds * sizeof *ms);
        s->ratio[i][s->passes] = rounds ? s->predicted[i][s->passes] / result_median(ms, rounds) : 1;
        s->list[i].ms -= s->rounds;
    }
    s->rounds += rounds;
    s->passes++;
    return status;
}

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct network n;
    struct series s = {.count = 0};
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? 2 : 10;
    graphi_status status = network_open(bench, network, size, NULL, &n);
    double end = report_seconds() + seconds; /* long networks have fewer passes */
    while (!status && s.passes < PASSES && (s.passes < LEAST_PASSES || report_seconds() < end))
        status = pass(bench, &n, &s, seconds / PASSES);
    for (int i = 0; i < s.count; i++) {
        if (!status)
            judge(bench, &n, &s, i);
        contender_close(&s.list[i]);
    }
    network_close(&n);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm",  "phased-lstm",  "pathnet", "googlenet", "resnet50",
                                           "dcgan", "inception-v3", "ptb",     NULL};
    if (!bench->options.size)
        bench->options.size = "small"; /* --size medium takes minutes */
    bench->warm = true;
    graphi_status status = study_names(bench, networks, body);
    int settings = groups[0].count + groups[1].count;
    if (!status && settings) {
        result_goal(&bench->result, "mean error of the predicted makespan, %",
                    100 * (groups[0].sum + groups[1].sum) / settings, 5, false);
        result_note(&bench->result, "%d settings; worst error %.1f %%", settings, 100 * worst);
        for (int i = 0; i < 2; i++)
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
    return bench_main(argc, argv, "simulator-error", BENCH_NETWORKS " --seconds", run);
}
