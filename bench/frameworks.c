/* SPDX-License-Identifier: Apache-2.0 */
/* The four networks, training step and inference, beside TensorFlow, PyTorch and JAX in their defaults and their best
 * settings: frameworks/beside.c. Our three run modes say what part of the gain kernels, isolation and scheduling have;
 * here are their rows, goals and notes. */
#include "frameworks/alone.h"
#include "frameworks/beside.h"
#include "frameworks/peer.h"
#include "rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct framework frameworks[] = {
    {.name = "TensorFlow", .folder = "tensorflow", .script = "peer_tensorflow.py"},
    {.name = "PyTorch", .folder = "pytorch", .script = "peer_pytorch.py"},
    {.name = "JAX", .folder = "jax", .script = "peer_jax.py"},
};
enum { FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

/* Goals on two cores, fraction of the limit of a training step in per cent. */
static const struct limit {
    const char *name;
    double small, medium, large;
} limits[] = {{"lstm", 85, 93, 95}, {"phased-lstm", 78, 90, 93}, {"pathnet", 70, 85, 88}, {"googlenet", 100, 110, 110}},
  direct_limits[] = {{"googlenet", 90, 93, 93}};

/* Sums of logarithms of time ratios, peer over ours, of training steps. */
struct mean {
    double sum;
    int count;
};
static struct mean best_peer, best_eager, best_jax;

/* Pages are given when they are first written; a virtual machine may have to ask its host for each. */
static void tell_faults(struct comparison *c)
{
    const json_t *first = json_object_get(c->row, "load_ms"), *ms = json_object_get(c->row, "first_system_ms");
    double faults = json_number_value(json_object_get(c->row, "first_page_faults"));
    if (json_number_value(first) > 1000 && faults > 0)
        result_note(&c->bench->result,
                    "%s: of the first step's %.0f ms the system took %.0f on each core to give pages: %.0f "
                    "faults, %.1f ms each (to clear 2 MB takes 0.2)",
                    c->title, json_number_value(first), json_number_value(ms), faults,
                    json_number_value(ms) * c->bench->about.cores / faults);
}

static const double MOST_DRIFT = 0.05; /* of our loss, by the updates of all turns */

static double mode_seconds(const struct options *o) { return o->seconds > 0 ? o->seconds : o->quick ? 2 : 6; }

/* Our run modes beside each other. */
static graphi_status modes(struct comparison *c)
{
    static const char *const names[] = {"graphi", "graphi naive", "graphi sequential"};
    const struct options *o = &c->bench->options;
    char ids[MODES][200];
    int rounds;
    graphi_status status = bench_alternate(c->bench, c->title, c->ours.mode, MODES, mode_seconds(o), 300, &rounds);
    for (int m = 0; m < MODES && status == GRAPHI_OK; m++) {
        graphi_plan_info info;
        snprintf(ids[m], sizeof ids[m], "%s: %s", c->title, names[m]);
        json_t *row = result_row(&c->bench->result, ids[m], "graphi");
        graphi_plan_get_info(c->ours.mode[m].plan, &info);
        result_setting(row, &info.setting);
        if (m == SCHEDULED)
            c->row = row;
        else
            result_ratio(row, ids[SCHEDULED], c->ours.mode[m].ms, c->ours.mode[SCHEDULED].ms, rounds);
        const double median = result_median(c->ours.mode[m].ms, rounds);
        c->over[m] = result_paired(c->ours.mode[m].ms, c->ours.mode[SCHEDULED].ms, rounds);
        c->step_ms = m == SCHEDULED ? median : c->step_ms;
        result_times(row, c->ours.mode[m].ms, rounds);
        result_rate(row, c->ours.network.rating, median);
        result_number(row, "lower_bound_ms", info.lower_bound_ms);
    }
    return status;
}

/* Limits are of the networks as they are: few samples leave little but memory to be limited by. */
static bool own_sizes(const struct options *o)
{
    return !o->batch && !o->image && !o->units && !o->unroll;
}

/* A training step against its goals on two cores. */
static void limit_goals(struct comparison *c, const struct limit *list, size_t count, const char *what, double ms)
{
    char title[200];
    for (size_t i = 0; i < count && c->bench->about.cores == 2 && own_sizes(&c->bench->options); i++)
        if (strcmp(list[i].name, c->name) == 0) {
            double goal = *c->size == 's' ? list[i].small : *c->size == 'm' ? list[i].medium : list[i].large;
            snprintf(title, sizeof title, "%s%s: per cent of the limit", c->title, what);
            rates_goal(&c->bench->result, title, 100 * c->ours.network.rating.limit_ms / ms, goal,
                       c->ours.network.rating);
        }
}

/* An image network's training step with the direct algorithm alone, in turns with ours: what Winograd's gives. */
static graphi_status direct(struct comparison *c)
{
    const struct options *o = &c->bench->options;
    graphi_plan_options options;
    graphi_plan_info info;
    struct network network = {0};
    struct contender pair[2] = {0};
    char id[200];
    int rounds = 0;
    if (!c->ours.network.info.image || o->conv_error > 0)
        return GRAPHI_OK;
    graphi_plan_get_info(c->ours.network.plan, &info);
    graphi_status status = job_plan_options(o, &options);
    if (status == GRAPHI_OK && options.precision == GRAPHI_BF16)
        return GRAPHI_OK; /* Winograd's tiles in float32 are more exact than its direct convolutions */
    options.conv_error = 1; /* no fast algorithm is as exact as the direct one */
    if (status == GRAPHI_OK)
        status = network_open(c->bench, c->name, c->size, &options, &network);
    if (status == GRAPHI_OK)
        status = ours_contender(c->bench, &c->ours.network, "graphi", REQUEST(&info.setting), &pair[0]);
    if (status == GRAPHI_OK)
        status = ours_contender(c->bench, &network, "graphi direct", REQUEST(&info.setting), &pair[1]);
    if (status == GRAPHI_OK)
        status = bench_alternate(c->bench, c->title, pair, 2, mode_seconds(o), 300, &rounds);
    if (status == GRAPHI_OK) {
        snprintf(id, sizeof id, "%s: graphi direct", c->title);
        json_t *row = result_row(&c->bench->result, id, "graphi");
        result_setting(row, &info.setting);
        snprintf(id, sizeof id, "%s: graphi", c->title);
        result_ratio(row, id, pair[1].ms, pair[0].ms, rounds);
        double median = result_median(pair[1].ms, rounds);
        result_times(row, pair[1].ms, rounds);
        result_rate(row, network.rating, median);
        limit_goals(c, direct_limits, sizeof direct_limits / sizeof *direct_limits, ", direct convolutions alone",
                    median);
    }
    contender_close(&pair[1]);
    contender_close(&pair[0]);
    network_close(&network);
    return status;
}

/* best peer / ours = (peer / sequential) (sequential / naive) (naive / scheduled), each from medians of paired rounds:
 * of the best peer's row and of our run modes'. */
static void gain(struct comparison *c)
{
    if (c->best <= 0)
        return;
    const json_t *against = json_object_get(json_object_get(c->row, "ratio"), "against");
    double total = 1 / c->best, kernels = total / c->over[SEQUENTIAL],
           isolation = c->over[SEQUENTIAL] / c->over[NAIVE], order = c->over[NAIVE];
    result_set(c->row, "gain",
                        json_pack("{s:s,s:f,s:f,s:f,s:f}", "against", json_string_value(against), "total", total,
                                  "kernels", kernels, "interference", isolation, "scheduling", order));
    result_note(&c->bench->result,
                "%s: %.2fx the best peer = %.2f kernels x %.2f removing interference x %.2f scheduling", c->title,
                total, kernels, isolation, order);
}

static void take(struct mean *mean, double ours_over)
{
    if (ours_over > 0) {
        mean->sum -= log(ours_over);
        mean->count++;
    }
}

static void goals(struct comparison *c)
{
    char title[280];
    struct result *result = &c->bench->result;
    snprintf(title, sizeof title, "%s: largest difference of loss and gradients (%.90s)", c->title, c->worst_of);
    if (*c->worst_of)
        result_goal(result, title, fmin(c->worst, 1e9), PEER_TOLERANCE, false);
    snprintf(title, sizeof title, "%s: our loss after all turns from the checked one", c->title);
    if (strcmp(c->mode, "training") == 0)
        result_goal(result, title, fmin(c->drift, 1e9), MOST_DRIFT, false);
    if (c->best > 0) {
        snprintf(title, sizeof title, "%s: time over the best peer's", c->title);
        result_goal(result, title, c->best, 1, false);
    }
    const json_t *peak = json_object_get(c->row, "peak_rss_bytes"), *first = json_object_get(c->row, "load_ms");
    if (json_is_number(first)) {
        snprintf(title, sizeof title, "%s: first step, ms", c->title);
        result_goal(result, title, json_number_value(first), 1000, false);
    }
    if (json_is_number(peak) && c->leanest > 0) {
        snprintf(title, sizeof title, "%s: peak memory over the leanest peer's", c->title);
        result_goal(result, title, json_number_value(peak) / c->leanest, strcmp(c->size, "small") == 0 ? 0.5 : 1,
                    false);
    }
    if (strcmp(c->mode, "training") != 0)
        return;
    take(&best_peer, c->best);
    take(&best_eager, c->eager);
    take(&best_jax, c->jax);
    limit_goals(c, limits, sizeof limits / sizeof *limits, "", c->step_ms);
}

/* Rows of another batch are told from those of the network's own. */
static void name_rows(struct comparison *c)
{
    char batch[40] = "";
    if (c->bench->options.batch)
        snprintf(batch, sizeof batch, ", batch %lld,", (long long)c->bench->options.batch);
    snprintf(c->title, sizeof c->title, "%s %s%s %s", c->name, c->size, batch, c->mode);
}

static graphi_status compare(struct bench *bench, const char *name, const char *size, bool forward)
{
    struct comparison c = {
        .bench = bench, .name = name, .size = size, .mode = forward ? "inference" : "training", .worst = -1};
    name_rows(&c);
    const struct options *o = &bench->options;
    bench->forward = forward;
    peer_folders(c.scripts, c.environments, sizeof c.scripts);
    report_progress(o->quiet, "%s", c.title);
    graphi_status status = ours_open(bench, name, size, o->tune_given ? o->tune : o->quick ? 2 : 5, MODES, &c.ours);
    if (status == GRAPHI_OK)
        status = ours_check(&c.ours);
    if (status == GRAPHI_OK)
        status = modes(&c);
    if (status == GRAPHI_OK && !forward)
        status = direct(&c);
    if (status == GRAPHI_OK) {
        alone_measure(c.bench, c.title, c.mode, c.name, c.size, c.ours.network.plan, c.row);
        tell_faults(&c);
    }
    for (int f = 0; f < FRAMEWORKS && status == GRAPHI_OK; f++)
        if (frameworks[f].chosen)
            status = beside(&c, &frameworks[f]);
    if (status == GRAPHI_OK)
        status = ours_drift(&c.ours, &c.drift);
    if (status == GRAPHI_OK) {
        gain(&c);
        goals(&c);
    }
    ours_close(&c.ours);
    return status;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    graphi_status status = bench->options.inference ? GRAPHI_OK : compare(bench, name, size, false);
    return status == GRAPHI_OK ? compare(bench, name, size, true) : status;
}

static void mean_goal(struct bench *bench, const char *title, const struct mean *mean, double goal)
{
    if (mean->count > 1)
        result_goal(&bench->result, title, exp(mean->sum / mean->count), goal, true);
}

/* Words that name peers choose them and are taken out; the others name networks. Without such words: all peers. */
static void choose_peers(struct options *o)
{
    int kept = 0, count = 0;
    for (int i = 0; i < o->rest_count; i++) {
        int f = 0;
        while (f < FRAMEWORKS && strcmp(o->rest[i], frameworks[f].folder) != 0)
            f++;
        if (f < FRAMEWORKS)
            frameworks[f].chosen = true, count++;
        else
            o->rest[kept++] = o->rest[i];
    }
    o->rest_count = kept;
    for (int f = 0; f < FRAMEWORKS && count == 0; f++)
        frameworks[f].chosen = true;
}

static graphi_status run(struct bench *bench)
{
    choose_peers(&bench->options);
    bench->others = ", or tensorflow, pytorch, jax";
    result_note(
        &bench->result,
        "first: the first step's time less the median later step's; peak: beyond start-up, for peers after importing; "
        "a peer's ratio is its time over ours, paired turns");
    graphi_status status = bench_networks(bench, "small,medium,large", body);
    mean_goal(bench, "training: geometric mean of the best peer's time over ours", &best_peer, 1.3);
    mean_goal(bench, "training: geometric mean of PyTorch eager's time over ours", &best_eager, 1.8);
    mean_goal(bench, "training: geometric mean of JAX's time over ours", &best_jax, 3);
    return status;
}

static graphi_status alone_inference(struct bench *bench)
{
    bench->forward = true;
    return alone_run(bench);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "alone-", 6) == 0)
        return bench_main(argc - 1, argv + 1, "frameworks",
                          strcmp(argv[1], "alone-inference") ? alone_run : alone_inference);
    return bench_main(argc, argv, "frameworks", run);
}
