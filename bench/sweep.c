/* SPDX-License-Identifier: Apache-2.0 */
/* Executors x threads x driver x policy (graphi.txt Fig. 6): every setting of the cores at hand, in alternation until
 * it is clear which is the fastest; the profiler's choice among them (goal: within 3 % of the best) and the static one,
 * and why one executor of all threads is faster or slower than an executor a core. Settings that execute alike are
 * one. */
#include "contest.h"
#include "parts.h"

#include <string.h>

enum { ALL_SPLITS = 8 }; /* beyond so many cores: powers of two and even splits */

/* Seconds for the profiler and for the sweep of a network, unless --tune and --seconds say. */
static const struct {
    const char *size;
    double tune, seconds;
} usual[] = {{"small", 10, 30}, {"medium", 12, 20}, {"large", 40, 60}};

struct sweep {
    struct bench *bench;
    struct network network;
    graphi_plan *untuned; /* as --tune 0 leaves it: the static setting, levels by estimated durations */
    struct contest contest;
    int chosen, unmeasured; /* the profiler's choice and the static one */
    double tune, seconds;
    char title[96];
};

/* --- settings --- */

static bool power_of_two(int n) { return (n & (n - 1)) == 0; }

static bool swept(int cores, int executors, int width)
{
    return executors * width <= cores && (cores <= ALL_SPLITS || (power_of_two(executors) && power_of_two(width)) ||
                                          (executors * width == cores));
}

static int find(const struct sweep *s, graphi_policy policy, graphi_driver driver, int executors, int width)
{
    for (int i = 0; i < s->contest.count; i++) {
        const graphi_setting *a = &s->contest.entrant[i].asked;
        if (a->policy == policy && a->driver == driver && a->executors == executors && a->width == width)
            return i;
    }
    return -1;
}

static graphi_status add_of(struct sweep *s, const struct network *network, const graphi_setting *setting,
                            const char *more, int *at)
{
    char id[96];
    snprintf(id, sizeof id, "%s %dx%d %s%s", graphi_policy_name(setting->policy), setting->executors, setting->width,
             graphi_driver_name(setting->driver), more);
    return contest_add(s->bench, network, &s->contest, id, setting, at);
}

static graphi_status add(struct sweep *s, const graphi_setting *setting, const char *more, int *at)
{
    return add_of(s, &s->network, setting, more, at);
}

static graphi_status add_static(struct sweep *s)
{
    struct network network = s->network;
    graphi_plan_info info;
    network.plan = s->untuned;
    graphi_plan_get_info(s->untuned, &info);
    return add_of(s, &network, REQUEST(&info.setting), ", static", &s->unmeasured);
}

/* Those that use most cores first. Critical path first comes before all other policies and tells, where time is short,
 * whether settings that leave half of the cores idle, or take one for a dedicated scheduler, are far behind. */
static graphi_status add_policy(struct sweep *s, graphi_policy policy)
{
    static const graphi_driver drivers[] = {GRAPHI_DRIVER_COMBINING, GRAPHI_DRIVER_STATIC, GRAPHI_DRIVER_DEDICATED};
    int cores = s->bench->about.cores, at;
    for (int used = cores; used >= 1; used--)
        for (int width = used; width >= 1; width--) {
            if (used % width != 0 || !swept(cores, used / width, width))
                continue;
            for (int d = 0; d < 6; d++) { /* who joins does it alike under all policies */
                graphi_setting setting = {.policy = policy,
                                          .driver = drivers[d % 3],
                                          .executors = used / width,
                                          .width = width,
                                          .join = d < 3 ? GRAPHI_OFF : GRAPHI_ON};
                if (d >= 3 && policy != GRAPHI_POLICY_CRITICAL_PATH)
                    break;
                int before = s->contest.count;
                graphi_status status = add(s, &setting, d < 3 ? "" : ", joining", &at);
                if (status != GRAPHI_OK)
                    return status;
                bool spares = 2 * used <= cores || setting.driver == GRAPHI_DRIVER_DEDICATED;
                if (at == before && spares && policy != GRAPHI_POLICY_CRITICAL_PATH)
                    s->contest.entrant[at].stand =
                        find(s, GRAPHI_POLICY_CRITICAL_PATH, setting.driver, setting.executors, setting.width);
            }
        }
    return GRAPHI_OK;
}

static graphi_status collect(struct sweep *s)
{
    int cores = s->bench->about.cores;
    graphi_plan_info info;
    graphi_status status = add_policy(s, GRAPHI_POLICY_CRITICAL_PATH);
    for (int policy = 0; policy < GRAPHI_POLICIES && status == GRAPHI_OK; policy++)
        if (policy != GRAPHI_POLICY_CRITICAL_PATH)
            status = add_policy(s, (graphi_policy)policy);
    if (status != GRAPHI_OK)
        return status;
    graphi_plan_get_info(s->network.plan, &info);
    status = add(s, REQUEST(&info.setting), ", as chosen", &s->chosen);
    if (status == GRAPHI_OK)
        status = add_static(s);
    if (status != GRAPHI_OK)
        return status;
    s->contest.against = s->chosen;
    const int kept[] = {s->unmeasured,
                        find(s, GRAPHI_POLICY_SEQUENTIAL, GRAPHI_DRIVER_COMBINING, 1, cores),
                        find(s, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, 1, cores),
                        find(s, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, cores, 1)};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        s->contest.entrant[kept[i]].keep = true;
    return status;
}

/* --- rows and goal --- */

static void add_row(struct sweep *s, struct entrant *e, const char *id)
{
    int sequential = find(s, GRAPHI_POLICY_SEQUENTIAL, GRAPHI_DRIVER_COMBINING, 1, s->bench->about.cores);
    struct contender row = e->c;
    if (id)
        snprintf(row.id, sizeof row.id, "%s", id);
    const struct contender *base = &s->contest.entrant[sequential].c; /* as in the figure */
    json_t *json = bench_row(s->bench, &s->network, &row, &e->c == base ? &row : base, e->rounds);
    if (e->rounds)
        return;
    result_string(json, "status", "missing");
    result_string(json, "reason",
                  "the time was over, and critical path first on the same executors and driver was far behind");
}

/* A choice against the best of the sweep, in turns of these two; 1 without turns where it is the best. */
static graphi_status against_best(struct sweep *s, int choice, double *ratio, int *turns)
{
    *ratio = 1;
    *turns = 0;
    if (choice == s->contest.best)
        return GRAPHI_OK;
    return contest_duel(s->bench, s->title, &s->contest, choice, s->contest.best, s->seconds / 4, ratio, turns);
}

static graphi_status tell_choice(struct sweep *s)
{
    struct contest *c = &s->contest;
    char goal[128];
    double ratio, by_estimates;
    int turns, more_turns, missing = 0;
    add_row(s, &c->entrant[s->chosen], "chosen");
    add_row(s, &c->entrant[s->unmeasured], "static");
    for (int i = 0; i < c->count; i++) {
        add_row(s, &c->entrant[i], NULL);
        missing += c->entrant[i].rounds == 0;
    }
    graphi_status status = against_best(s, s->chosen, &ratio, &turns);
    by_estimates = ratio;
    more_turns = turns;
    if (status == GRAPHI_OK && s->unmeasured != s->chosen)
        status = against_best(s, s->unmeasured, &by_estimates, &more_turns);
    if (status != GRAPHI_OK)
        return status;
    result_note(&s->bench->result,
                "%s: %d settings, %d of them not run; best %s in %d rounds, chosen %s; against each other in %d "
                "further turns: %.3f",
                s->title, c->count, missing, c->entrant[c->best].c.id, c->entrant[c->best].rounds,
                c->entrant[s->chosen].c.id, turns, ratio);
    result_note(&s->bench->result, "%s: static choice (--tune 0) over best: %s, in %d further turns %.3f", s->title,
                c->entrant[s->unmeasured].c.id, more_turns, by_estimates);
    snprintf(goal, sizeof goal, "%s %s: chosen setting over best of the sweep", s->network.name, s->network.size);
    result_goal(&s->bench->result, goal, ratio, 1.03, false);
    return GRAPHI_OK;
}

/* --- one executor of all threads, or one a core --- */

enum { ALONE, TEAM, EACH, FORMS };

/* Where core time is lost, and what it means when it decides. */
enum { INSIDE, TEAMS, SCHEDULING, WAITING, LOSSES };
static const char *const reasons[LOSSES][2] = {
    /* the team is faster, slower */
    {"operations slow each other down more beside each other than a team's members do in one",
     "a team's members slow each other down more in an operation than operations do beside each other"},
    {"losses differ by less than traces tell",
     "members of the team wait for each other: barriers, serial parts, uneven shares"},
    {"executors are later to start what is ready", "between its operations a team is later to start what is ready"},
    {"executors wait for each other's results", "threads of the team wait while one of them runs a small operation"},
};

static int traces_of(double step_ms) { return step_ms < 100 ? 9 : step_ms < 2000 ? 3 : 1; }

static graphi_status trace_forms(struct sweep *s, const int *form, struct parts *parts)
{
    graphi_status status = GRAPHI_OK;
    int traces = 1;
    for (int round = 0; round < traces && status == GRAPHI_OK; round++)
        for (int f = 0; f < FORMS && status == GRAPHI_OK; f++) {
            report_progress(s->bench->options.quiet, "%s: trace %d of %d", s->title, round * FORMS + f + 1,
                            traces * FORMS);
            status = parts_add(&s->contest.entrant[form[f]].c, false, s->bench->about.cores, &parts[f]);
            traces = status == GRAPHI_OK ? traces_of(parts[ALONE].ms[0]) : 0;
        }
    return status;
}

/* Losses of a form in parts of the core time that the operations take on one thread alone, which was traced in turns
 * with it. */
static void losses_of(const struct parts *parts, int threads, const struct parts *alone, double *loss)
{
    double of[LOSSES][PARTS_MOST];
    for (int i = 0; i < parts->rounds; i++) {
        double all = threads * parts->ms[i] / (alone->ms[i] * alone->busy[i]);
        of[INSIDE][i] = all * parts->busy[i] - 1;
        of[TEAMS][i] = all * parts->team[i];
        of[SCHEDULING][i] = all * parts->scheduling[i];
        of[WAITING][i] = all * parts->waiting[i];
    }
    for (int i = 0; i < LOSSES; i++)
        loss[i] = result_median(of[i], parts->rounds);
}

static graphi_status tell_pair(struct sweep *s)
{
    static struct parts parts[FORMS];
    int cores = s->bench->about.cores, largest = 0;
    double team[LOSSES], each[LOSSES];
    const int form[FORMS] = {find(s, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, 1, 1),
                             find(s, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, 1, cores),
                             find(s, GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_DRIVER_COMBINING, cores, 1)};
    memset(parts, 0, sizeof parts);
    graphi_status status = cores > 1 ? trace_forms(s, form, parts) : GRAPHI_OK;
    if (cores == 1 || status != GRAPHI_OK)
        return status;
    double ratio = contest_ratio(&s->contest, form[TEAM], form[EACH]);
    losses_of(&parts[TEAM], cores, &parts[ALONE], team);
    losses_of(&parts[EACH], cores, &parts[ALONE], each);
    double side = ratio < 1 ? 1 : -1; /* of the faster: who loses less */
    for (int i = 1; i < LOSSES; i++)
        if (side * (each[i] - team[i]) > side * (each[largest] - team[largest]))
            largest = i;
    result_note(
        &s->bench->result,
        "%s: 1x%d takes %.3f of %dx1's time (critical path first): %s. Beyond the core time of all operations on one "
        "thread alone, 1x%d spends %.1f %% at work in operations, %.1f %% waiting within its team, %.1f %% in "
        "scheduling, %.1f %% in waiting; %dx1 %.1f, %.1f, %.1f, %.1f %%",
        s->title, cores, ratio, cores, reasons[largest][ratio >= 1], cores, 100 * team[INSIDE], 100 * team[TEAMS],
        100 * team[SCHEDULING], 100 * team[WAITING], cores, 100 * each[INSIDE], 100 * each[TEAMS],
        100 * each[SCHEDULING], 100 * each[WAITING]);
    return GRAPHI_OK;
}

/* --- all of it --- */

static graphi_status measure(struct sweep *s)
{
    graphi_plan_info info;
    graphi_plan_get_info(s->network.plan, &info);
    graphi_status status =
        graphi_plan_with(s->network.plan, &(graphi_plan_change){.setting = REQUEST(&info.setting)}, &s->untuned);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = network_tune(s->bench, &s->network, s->tune);
    if (status == GRAPHI_OK)
        status = collect(s);
    if (status == GRAPHI_OK)
        status = contest_run(s->bench, s->title, &s->contest, s->seconds);
    if (status == GRAPHI_OK)
        status = tell_choice(s);
    return status == GRAPHI_OK ? tell_pair(s) : status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct sweep s = {.bench = bench};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].size, size) == 0) {
            s.tune = bench->options.tune_given ? bench->options.tune : usual[i].tune;
            s.seconds = bench->options.seconds > 0 ? bench->options.seconds : usual[i].seconds;
        }
    snprintf(s.title, sizeof s.title, "%s %s", name, size);
    graphi_status status = network_open(bench, name, size, NULL, &s.network);
    if (status != GRAPHI_OK)
        return status;
    status = measure(&s);
    contest_close(&s.contest);
    graphi_plan_destroy(s.untuned);
    network_close(&s.network);
    return status;
}

static graphi_status run(struct bench *bench)
{
    bench->policies = true;
    return bench_networks(bench, "small,medium", body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "sweep", run);
}
