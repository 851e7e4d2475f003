/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies 1 to 4, the malleable policy, and critical path first and graphi.txt's other policies with the best split
 * of each, against one executor of all cores (what concurrency-control.txt calls the recommendation), on the simulated
 * Xeon Phi; distance to the lower bound, and what the simulation itself costs. */
#include "study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const networks[] = {"lstm",  "phased-lstm",  "pathnet", "googlenet", "resnet50",
                                       "dcgan", "inception-v3", "ptb",     NULL};

/* concurrency-control.txt Figure 3d: time of all strategies over the recommendation (improvements of 49 and 17 % are
 * stated, those between are read off as ranges only). */
static const struct {
    const char *network;
    double ratio;
} paper[] = {{"resnet50", 1 / 1.49}, {"inception-v3", 1 / 1.17}};

/* How much longer than this machine's core the described one may take to decide: its clock is 2.6 times slower, and a
 * Xeon Phi does about half as many of such instructions a cycle (docs/simulator.md). An invented core is this one. */
static double slower(const struct study *s)
{
    return strstr(s->about.cpu, "Xeon Phi") ? 2 * 2.6 : 1;
}

static int compared, better, worse, near_bound;
static double simulation_ns, most_deciding; /* on the described core, part of a simulated step, at most */
static double most_static;                  /* makespan under the static driver over that under another, at most */
static int simulations, cores;

/* Of the simulation that has just become a row. */
static void count(const struct study *s)
{
    simulation_ns += s->host_ns_per_op;
    simulations++;
}

/* What scheduling steps take when nothing else has the core: an interruption in one of those that are timed counts
 * sixteen times. */
static graphi_status least_deciding(struct study *s, const graphi_setting *setting, double *ms)
{
    enum { AGAIN = 4 };
    graphi_simulation now;
    for (int i = 0; i < AGAIN; i++) {
        graphi_status status = study_simulate(s, setting, &now);
        if (status)
            return status;
        *ms = now.deciding_ms < *ms ? now.deciding_ms : *ms;
    }
    return GRAPHI_OK;
}

/* graphi.txt's policies (4.3, 6, 7.4), each with the split of the cores that suits it best; the least makespan. */
static graphi_status best_splits(struct study *s, double uniform, double *least)
{
    static const struct {
        const char *label;
        graphi_policy policy;
    } list[] = {{"best uniform", GRAPHI_POLICY_CRITICAL_PATH},
                {"asymmetric", GRAPHI_POLICY_ASYMMETRIC},
                {"locality", GRAPHI_POLICY_LOCALITY},
                {"fifo", GRAPHI_POLICY_FIFO},
                {"naive", GRAPHI_POLICY_NAIVE}};
    graphi_simulation best;
    graphi_setting setting;
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; i < sizeof list / sizeof *list && !status; i++) {
        status = study_best(s, list[i].policy, &setting, &best);
        if (!status && best.makespan_ms > 0)
            *least = i == 0 || best.makespan_ms < *least ? best.makespan_ms : *least;
        if (!status)
            status = study_row(s, list[i].label, &setting, "uniform", uniform, &best);
    }
    return status;
}

/* Decisions of strategies made before the first step. */
static graphi_status decided_ahead(struct study *s, graphi_setting setting, double makespan, double uniform)
{
    graphi_simulation ahead;
    char label[32];
    snprintf(label, sizeof label, "%s, static", graphi_policy_name(setting.policy));
    setting.driver = GRAPHI_DRIVER_STATIC;
    const graphi_status status = study_row(s, label, &setting, "uniform", uniform, &ahead);
    if (!status)
        most_static = fmax(most_static, ahead.makespan_ms / makespan);
    return status;
}

static graphi_status policies(struct study *s, double uniform)
{
    static const graphi_policy list[] = {GRAPHI_POLICY_S1, GRAPHI_POLICY_S12, GRAPHI_POLICY_S123, GRAPHI_POLICY_S1234};
    graphi_simulation now;
    graphi_setting setting;
    double papers = 0;
    graphi_status status = best_splits(s, uniform, &papers);
    for (size_t i = 0; i < sizeof list / sizeof *list && !status; i++) {
        graphi_setting free_width = {.policy = list[i], .executors = s->about.cores, .width = 1, .light = GRAPHI_OFF};
        status = study_row(s, graphi_policy_name(list[i]), &free_width, "uniform", uniform, &now);
        if (status)
            break;
        count(s);
        status = least_deciding(s, &free_width, &now.deciding_ms);
        if (status)
            break;
        double part = slower(s) * now.deciding_ms / now.makespan_ms;
        most_deciding = part > most_deciding ? part : most_deciding;
        result_note(
            &s->bench->result,
            "%s %s: scheduling of a step took %.3f ms on this machine (least of five), which on the described core may "
            "be %.1f times as long: %.2f %% of the simulated step",
            s->name, graphi_policy_name(list[i]), now.deciding_ms, slower(s), 100 * part);
        if (now.makespan_ms < papers)
            papers = now.makespan_ms;
        if (list[i] != GRAPHI_POLICY_S1234) /* which uses second hardware threads, unless it is decided ahead */
            status = decided_ahead(s, free_width, now.makespan_ms, uniform);
    }
    if (!status)
        status = study_best(s, GRAPHI_POLICY_MALLEABLE, &setting, &now); /* its starting width is searched for */
    if (!status)
        status = study_row(s, "malleable", &setting, "uniform", uniform, &now);
    if (status)
        return status;
    count(s);
    compared++;
    better += now.makespan_ms < 0.995 * papers;
    worse += now.makespan_ms > 1.005 * papers;
    near_bound += now.makespan_ms <= 1.05 * now.lower_bound_ms;
    char widths[96] = "";
    if (now.widths_bound_ms > 0)
        snprintf(widths, sizeof widths, "; any schedule with one width an operation is at least %.1f %% above it",
                 100 * (now.widths_bound_ms / now.lower_bound_ms - 1));
    result_note(
        &s->bench->result,
        "%s: malleable %.3f ms, best of the papers' policies %.3f ms, lower bound %.3f ms (%.1f %% above it%s)",
        s->name, now.makespan_ms, papers, now.lower_bound_ms, 100 * (now.makespan_ms / now.lower_bound_ms - 1), widths);
    return GRAPHI_OK;
}

static graphi_status body(struct study *s)
{
    graphi_simulation base;
    graphi_setting uniform = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = s->about.cores};
    graphi_status status = study_row(s, "uniform", &uniform, NULL, 0, &base);
    cores = s->about.cores;
    if (!status)
        status = policies(s, base.makespan_ms);
    char id[STUDY_ID], against[STUDY_ID];
    study_id(s, id, "s1234");
    study_id(s, against, "uniform");
    for (size_t i = 0; i < sizeof paper / sizeof *paper && !status; i++)
        if (strcmp(paper[i].network, s->name) == 0)
            study_paper(s->bench, "concurrency-control.txt Fig. 3", id, against, paper[i].ratio, 0);
    return status;
}

static graphi_status run(struct bench *bench)
{
    study_description = "xeon-phi-7250-smt";
    graphi_status status = study_each(bench, networks, body);
    if (status || !compared)
        return status;
    result_goal(&bench->result, "networks on which malleable is worse than a policy of the papers", worse, 0, false);
    result_goal(&bench->result, "networks on which malleable is better than all of them", better,
                compared < 8 ? compared * 5 / 8.0 : 5, true);
    result_goal(&bench->result, "networks within 5 % of the lower bound", near_bound, compared < 8 ? compared / 2.0 : 4,
                true);
    char cost[80];
    snprintf(cost, sizeof cost, "cost of simulation on %d cores, ns an operation", cores);
    result_goal(&bench->result, cost, simulation_ns / simulations, cores <= 136 ? 1000 : 2000, false);
    result_goal(&bench->result, "strategies 1 to 4: decisions, at most part of a simulated step, %",
                100 * most_deciding, 1, false);
    result_goal(&bench->result,
                "strategies 1 to 3 decided before the step (static driver): makespan over deciding in it, at most",
                most_static, 1, false);
    return GRAPHI_OK;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "strategies", run);
}
