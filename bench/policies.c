/* SPDX-License-Identifier: Apache-2.0 */
/* Free widths on the cores at hand: strategies 1 to 4 and the malleable policy, over measured curves, against the
 * better uniform setting (executors x width = cores), in alternation. All are as tuning confirmed them by measurement
 * before, strategies over the curves that the malleable plan was made of. One that kept teams of one width
 * (docs/policies.md) is one of the uniform settings: it is not timed a second time, its row has that setting's
 * executions and says so, and its ratio is 1 where that is the better one; two timings of one setting would only tell
 * noise. In the uniform settings nobody joins; the malleable policy may have kept executors that do, whose time is its
 * own. What each strategy's own widths take, had it kept none, is timed beside them and has a row, without a goal.
 * Goals: all strategies together never lose more than 3 %, the malleable policy wins on average over the networks
 * (which those that it left alone draw towards 1): met where the whole confidence interval of the paired ratio says so,
 * missed where the whole interval says the opposite. Where a network's interval holds 3 % those that the question is
 * about go on alone. If even that does not tell, the goal is not met: its value is the upper end. Only where there are
 * too few rounds for an interval, as with --quick, a note takes its place. Strategies 1 and 2 run one operation at a
 * time by definition: they have rows, but no goal. Short executions run twice a turn and the second counts, as in a
 * training loop: the turns of the others have emptied the caches. Profiling by itself, every class as rarely as can be,
 * is held against the papers' trainings of which the length is known: at most 0.05 % (concurrency-control.txt IV-A). So
 * are the strategies' scheduling steps against the step: at most 1 %. */
#include "bench.h"
#include "interval.h"

#include <math.h>
#include <string.h>

enum { MOST = 72 /* at most 57 splits, FREE and OWN */, TELLING = 8 /* rounds; see interval_of */ };
static const double NORMAL_95 = 1.96, WRONG = 0.05;

/* How often strategies are judged at most, after 1, 2, 4 and 8 times the seconds: all the intervals together are wrong
 * with the chance of one of 95 %. */
enum { LOOKS = 4 };
static const double MOST_LOST = 1.03;
static const double CLOSE = 1.05; /* to the better uniform setting: may turn out to be the better one */

/* Of the malleable policy, over the networks: sums of the ratios' logarithms and of their squared standard errors. */
static struct {
    double log, variance;
    double widths; /* sum of logarithms where those that join count as 1 */
    int networks, searched, joining;
} malleable_sums;

static const graphi_policy free_width[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S1234,
                                           GRAPHI_POLICY_MALLEABLE};
enum { STRATEGIES = 2, MALLEABLE = 3, FREE = 4, OWN = 4 };

/* Who is timed: the uniform settings, then the free-width ones that have widths of their own. */
struct field {
    struct contender list[MOST];
    int uniform, count;
    int at[FREE]; /* in the list: its own, or the uniform setting that it kept */
    graphi_decision setting[FREE];
    int rounds, further; /* of all; with those of the ones that the question is about */
    bool asked[MOST];
};

static int rounds_of(const struct field *field, int i)
{
    return field->asked[i] ? field->further : field->rounds;
}

static double median_of(const struct field *field, int i)
{
    return result_median(field->list[i].ms, rounds_of(field, i));
}

/* The better uniform setting: after further rounds one of those that had them. */
static int best_of(const struct field *field)
{
    int best = -1;
    for (int i = 0; i < field->uniform; i++) {
        const bool in = !field->further || field->asked[i];
        if (in && (best < 0 || median_of(field, i) < median_of(field, best)))
            best = i;
    }
    return best;
}

/* The uniform setting that a plan's policy kept, its index in the list; -1: widths of its own, or executors join. */
static int kept_uniform(const graphi_decision *setting, const struct field *field)
{
    graphi_plan_info other;
    const graphi_decision *u = &other.setting;
    for (int i = 0; setting->uniform && !setting->joins && i < field->uniform; i++) {
        graphi_plan_get_info(field->list[i].plan, &other);
        if (setting->executors == u->executors && setting->width == u->width && setting->driver == u->driver &&
            setting->depth == u->depth)
            return i;
    }
    return -1;
}

static bool kept(const struct field *field, int policy)
{
    return field->at[policy] < field->uniform;
}

/* The plan that tuning confirmed: it measures what `known` does not have yet, then runs the policy against the uniform
 * settings. */
static graphi_status confirm(struct bench *bench, const struct network *n, int policy, double seconds,
                             graphi_curves *known, graphi_plan **out)
{
    const graphi_setting setting = {.policy = free_width[policy],
                                    .driver = GRAPHI_DRIVER_COMBINING,
                                    .executors = bench->about.cores,
                                    .width = 1};
    const graphi_tune_options how = {.seconds = seconds,
                                     .setting = &setting,
                                     .interval = bench->options.interval ? bench->options.interval : 1,
                                     .curves = known,
                                     .stop = report_stop};
    report_progress(bench->options.quiet, "%s: confirming %s", n->name, graphi_policy_name(free_width[policy]));
    graphi_status status = graphi_plan_tune(n->plan, n->state, &how, out);
    return status ? bench_failure(status) : GRAPHI_OK;
}

/* Strategies choose over the curves of the malleable plan, which is the network's. */
static graphi_status settle(struct bench *bench, const struct network *n, int policy, double seconds,
                            graphi_curves *known, graphi_decision *out)
{
    graphi_plan *plan = NULL;
    graphi_plan_info info;
    graphi_status status = policy == MALLEABLE ? GRAPHI_OK : confirm(bench, n, policy, seconds, known, &plan);
    if (status)
        return status;
    graphi_plan_get_info(plan ? plan : n->plan, &info);
    graphi_plan_destroy(plan);
    *out = info.setting;
    return GRAPHI_OK;
}

/* Strategies that kept teams of one width, with their own. Without hardware siblings the fourth is the third. */
static graphi_status add_own_widths(struct bench *bench, const struct network *n, struct field *field)
{
    static const struct {
        graphi_policy policy;
        int free; /* its place in free_width; -1: it has none */
    } list[OWN] = {{GRAPHI_POLICY_S1, 0}, {GRAPHI_POLICY_S12, 1}, {GRAPHI_POLICY_S123, -1}, {GRAPHI_POLICY_S1234, 2}};
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < OWN && !status; i++) {
        if (list[i].free < 0 ? !bench->about.siblings : !kept(field, list[i].free))
            continue;
        const graphi_setting setting = {.policy = list[i].policy,
                                        .driver = GRAPHI_DRIVER_COMBINING,
                                        .executors = bench->about.cores,
                                        .width = 1,
                                        .parameters = {{"keep-uniform", -1}}};
        char id[96];
        snprintf(id, sizeof id, "%s, own widths", graphi_policy_name(list[i].policy));
        status = contender_open(bench, n, id, &setting, &field->list[field->count++]);
    }
    return status;
}

static graphi_status collect(struct bench *bench, const struct network *n, double seconds, graphi_curves *known,
                             struct field *field)
{
    int cores = bench->about.cores;
    char id[96];
    graphi_status status = GRAPHI_OK;
    for (int k = 0; !status && field->count < MOST - FREE - OWN && (k = graphi_split_next(cores, k)) != 0;) {
        graphi_setting setting = {.driver = GRAPHI_DRIVER_COMBINING, .executors = k, .width = cores / k};
        snprintf(id, sizeof id, "%dx%d", k, cores / k);
        status = contender_open(bench, n, id, &setting, &field->list[field->count++]);
    }
    field->uniform = field->count;
    for (int i = 0; i < FREE && !status; i++) {
        status = settle(bench, n, i, seconds / 2, known, &field->setting[i]);
        if (status || (field->at[i] = kept_uniform(&field->setting[i], field)) >= 0)
            continue;
        field->at[i] = field->count++;
        status = contender_open(bench, n, graphi_policy_name(free_width[i]), REQUEST(&field->setting[i]),
                                &field->list[field->at[i]]);
    }
    return status ? status : add_own_widths(bench, n, field);
}

/* The paired ratios to the better uniform setting; of a setting to itself exactly 1, once the rounds tell that it is
 * the better one. */
static struct interval paired(const struct field *field, int i, double wrong)
{
    double ratio[BENCH_MAX_ROUNDS];
    const int best = best_of(field), rounds = rounds_of(field, i);
    for (int k = 0; k < rounds; k++)
        ratio[k] = field->list[i].ms[k] / field->list[best].ms[k];
    struct interval all = interval_of(ratio, rounds, wrong);
    return i == best && !isinf(all.high) ? (struct interval){1, 1, 1} : all;
}

static struct interval strategies_over(const struct field *field)
{
    return paired(field, field->at[STRATEGIES], WRONG / LOOKS);
}

/* Rounds of those alone that the question is about, as many seconds as before each time, until it is answered. */
static graphi_status ask_further(struct bench *bench, const struct network *n, struct field *field, double seconds)
{
    graphi_status status = GRAPHI_OK;
    const double close = CLOSE * median_of(field, best_of(field));
    for (int i = 0; i < field->uniform; i++)
        field->asked[i] = median_of(field, i) <= close;
    field->asked[field->at[STRATEGIES]] = true;
    field->further = field->rounds;
    for (int look = 1; look < LOOKS && !status && !interval_tells(strategies_over(field), MOST_LOST); look++) {
        status = bench_rounds(bench, n->name, field->list, field->count, field->asked, seconds, 0, BENCH_MAX_ROUNDS,
                              &field->further);
        seconds *= 2;
    }
    return status;
}

static const char *interval_text(struct interval ratio, char text[64])
{
    if (isinf(ratio.high))
        snprintf(text, 64, "too few rounds for an interval");
    else
        snprintf(text, 64, "interval %.3f to %.3f", ratio.low, ratio.high);
    return text;
}

/* Met where the interval says so; a note where there is none. */
static void judge_interval(struct bench *bench, const char *name, struct interval ratio, double most)
{
    char goal[360], text[64];
    snprintf(goal, sizeof goal, "%s, %s", name, interval_text(ratio, text));
    if (interval_tells(ratio, most)) {
        result_goal(&bench->result, goal, ratio.median, most, false);
    } else if (isinf(ratio.high)) {
        result_note(&bench->result, "%s, median %.3f: --seconds gives more", goal, ratio.median);
    } else {
        const size_t end = strlen(goal);
        snprintf(goal + end, sizeof goal - end, ", median %.3f, which do not tell: the upper end", ratio.median);
        result_goal(&bench->result, goal, ratio.high, most, false);
    }
}

/* The executions of the uniform setting that it kept, as a row of its own. */
static void add_kept_row(struct bench *bench, const struct network *n, const struct field *field, int policy,
                         const struct contender *best)
{
    struct contender same = field->list[field->at[policy]];
    char reason[200];
    snprintf(reason, sizeof reason, "kept %.90s: the same setting, its executions", same.id);
    snprintf(same.id, sizeof same.id, "%s", graphi_policy_name(free_width[policy]));
    json_t *row = bench_row(bench, n, &same, best, rounds_of(field, field->at[policy]));
    result_setting(row, &field->setting[policy]);
    result_string(row, "reason", reason);
}

static void judge(struct bench *bench, const struct network *n, const struct field *field)
{
    const struct contender *list = field->list, *best = &list[best_of(field)];
    char goal[200], text[64];
    for (int i = 0; i < field->count; i++) {
        json_t *row = bench_row(bench, n, &list[i], best, rounds_of(field, i));
        if (i == field->at[MALLEABLE] && field->setting[MALLEABLE].joins)
            result_string(row, "reason", "joining: critical path first, who has nothing ready takes part");
    }
    for (int i = 0; i < FREE; i++)
        if (kept(field, i))
            add_kept_row(bench, n, field, i, best);
    snprintf(goal, sizeof goal, "%s %s: strategies over the better uniform setting", n->name, n->size);
    judge_interval(bench, goal, strategies_over(field), MOST_LOST);
    const bool teams = kept(field, MALLEABLE), joins = field->setting[MALLEABLE].joins;
    const struct interval ratio = paired(field, field->at[MALLEABLE], WRONG);
    const double error = log(ratio.high / ratio.low) / (2 * NORMAL_95);
    malleable_sums.log += log(ratio.median);
    malleable_sums.widths += joins ? 0 : log(ratio.median);
    malleable_sums.variance += error * error;
    malleable_sums.networks++;
    malleable_sums.searched += !teams && !joins;
    malleable_sums.joining += joins;
    result_note(&bench->result, "%s %s: malleable kept %s%s, %.3f of the better uniform setting's time, %s", n->name,
                n->size,
                teams   ? "teams of one width, "
                : joins ? "executors that join"
                        : "the widths that it searched",
                teams ? list[field->at[MALLEABLE]].id : "", ratio.median, interval_text(ratio, text));
}

/* Steps of the papers' trainings: the network's epochs of the data's tokens or images. 0: no length is known. */
static double training_steps(const struct network *n)
{
    static const struct {
        const char *network;
        int64_t examples;
    } trainings[] = {{"ptb", 929589}, {"resnet50", 50000}};
    const graphi_model_info *info = &n->info;
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++)
        if (strcmp(n->name, trainings[i].network) == 0)
            return (double)(trainings[i].examples / (info->batch * (info->steps > 0 ? info->steps : 1)) * info->epochs);
    return 0;
}

/* What scheduling takes of a step, the most of all strategies: each policy decides alone, as it would have to with
 * widths of its own (a uniform setting that was kept decides less). The simulation repeats its decisions on curves of
 * this machine, on a core of it; the least of some, since others interrupt. */
static graphi_status judge_decisions(struct bench *bench, const struct network *n, double step_ms)
{
    enum { AGAIN = 5 };
    static const graphi_policy list[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S123, GRAPHI_POLICY_S1234};
    double most = 0;
    char goal[200];
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const graphi_setting setting = {
            .policy = list[i], .executors = bench->about.cores, .width = 1, .light = GRAPHI_OFF,
            .parameters = {{"keep-uniform", -1}}};
        double least = INFINITY;
        for (int again = 0; again < AGAIN; again++) {
            graphi_simulation now;
            graphi_status status = graphi_plan_simulate(n->plan, &(graphi_simulate_options){.setting = &setting}, &now);
            if (status)
                return report_failure(status);
            least = fmin(least, now.deciding_ms);
        }
        most = fmax(most, least);
    }
    snprintf(goal, sizeof goal, "%s %s: decisions of strategies 1 to 4, %% of the step", n->name, n->size);
    result_goal(&bench->result, goal, 100 * most / step_ms, 1, false);
    return GRAPHI_OK;
}

/* As little as gives every class its times. */
static graphi_status profile_once(const struct bench *bench, const struct network *n, double *ms)
{
    graphi_plan *profiled = NULL;
    const graphi_profile_options how = {.interval = bench->options.interval ? bench->options.interval : 1,
                                        .stop = report_stop};
    const double begin = report_seconds();
    report_progress(bench->options.quiet, "%s: profiling once", n->name);
    const graphi_status status = graphi_plan_profile(n->plan, n->state, &how, &profiled);
    *ms = 1e3 * (report_seconds() - begin);
    graphi_plan_destroy(profiled);
    return status ? bench_failure(status) : GRAPHI_OK;
}

static void judge_profile(struct bench *bench, const struct network *n, double ms, double step_ms)
{
    char goal[200];
    const double training = training_steps(n);
    result_note(&bench->result, "%s %s: profiling once took as long as %.1f steps", n->name, n->size, ms / step_ms);
    if (training <= 0)
        return;
    snprintf(goal, sizeof goal, "%s %s: profiling once, %% of a training of %d epochs, %.0f steps", n->name, n->size,
             n->info.epochs, training);
    result_goal(&bench->result, goal, 100 * ms / (step_ms * training), 0.05, false);
}

/* Tunes and times; the network's plan becomes the malleable one. */
static graphi_status compare(struct bench *bench, struct network *n, double seconds, graphi_curves *known)
{
    struct field field = {0};
    graphi_plan *tuned = NULL;
    double profile_ms, spent;
    graphi_status status = profile_once(bench, n, &profile_ms);
    if (status)
        return status;
    spent = report_seconds();
    status = confirm(bench, n, MALLEABLE, seconds, known, &tuned);
    spent = 1e3 * (report_seconds() - spent);
    if (status)
        return status;
    graphi_plan_destroy(n->plan);
    n->plan = tuned;
    status = collect(bench, n, seconds, known, &field);
    if (!status)
        status = bench_alternate(bench, n->name, field.list, field.count, seconds, 200, &field.rounds);
    if (!status && !bench->options.quick)
        status = ask_further(bench, n, &field, seconds);
    if (!status) {
        judge(bench, n, &field);
        const double step_ms = median_of(&field, field.at[STRATEGIES]);
        judge_profile(bench, n, profile_ms, step_ms);
        status = judge_decisions(bench, n, step_ms);
        result_note(&bench->result, "%s %s: tuning malleable for --seconds took as long as %.0f steps", n->name,
                    n->size, spent / step_ms);
    }
    for (int i = 0; i < field.count; i++)
        contender_close(&field.list[i]);
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct network n;
    graphi_curves *known;
    double seconds = bench->options.seconds > 0 ? bench->options.seconds : bench->options.quick ? 2 : 10;
    graphi_status status = network_open(bench, name, size, NULL, &n);
    if (status)
        return status;
    status = graphi_curves_open(bench->machine, NULL, &known);
    if (!status) {
        status = compare(bench, &n, seconds, known);
        graphi_curves_close(known);
    } else {
        status = bench_failure(status);
    }
    network_close(&n);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const all[] = {"lstm",     "phased-lstm", "pathnet",      "googlenet",
                                      "resnet50", "dcgan",       "inception-v3", "ptb"};
    struct options *o = &bench->options;
    if (o->rest_count == 0)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            o->rest[o->rest_count++] = all[i];
    bench->warm = true;
    bench->rounds = bench->options.quick ? 0 : TELLING;
    graphi_status status = bench_networks(bench, "small", body);
    if (status || !malleable_sums.networks)
        return status;
    /* wins: below 1, which is what keeping the better uniform setting everywhere gives */
    const double mean = malleable_sums.log / malleable_sums.networks,
                 error = NORMAL_95 * sqrt(malleable_sums.variance) / malleable_sums.networks;
    char goal[200];
    snprintf(goal, sizeof goal,
             "malleable over the better uniform setting, geometric mean (of %d networks %d run widths that were "
             "searched, %d executors that join)",
             malleable_sums.networks, malleable_sums.searched, malleable_sums.joining);
    result_note(&bench->result,
                "malleable: joining alone gives %.4f of the better uniform setting's time on average, widths %.4f",
                exp((malleable_sums.log - malleable_sums.widths) / malleable_sums.networks),
                exp(malleable_sums.widths / malleable_sums.networks));
    judge_interval(bench, goal, (struct interval){exp(mean - error), exp(mean), exp(mean + error)}, 1 - 1e-9);
    return status;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "policies", run);
}
