/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of ours and of one peer after another. */
#include "frameworks/graphs_beside.h"

#include "frameworks/peer.h"
#include "frameworks/turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 200, LIMIT_S = 300 };

/* Without batching an evaluation is slow, and would only be slower with more samples. */
static const struct engine {
    const char *engine, *asked, *environment;
    bool threads; /* more than one may help */
    int64_t batch_most;
} engines[] = {{"dynet", "dynet autobatch", "dynet", false, 1 << 20},
               {"dynet", "dynet", "dynet", false, 1 << 20},
               {"pytorch by hand", "pytorch by hand", "pytorch", true, 1 << 20},
               {"pytorch per sample", "pytorch per sample", "pytorch", false, 32}};
enum { ENGINES = sizeof engines / sizeof *engines };

bool graphs_is_peer(const char *word)
{
    for (int i = 0; i < ENGINES; i++)
        if (strcmp(word, engines[i].environment) == 0 || strcmp(word, engines[i].asked) == 0)
            return true;
    return false;
}

static bool is_asked(const struct bench *bench, const struct engine *e)
{
    int peers = 0;
    for (int i = 0; i < bench->options.rest_count; i++) {
        const char *word = bench->options.rest[i];
        if (strcmp(word, e->environment) == 0 || strcmp(word, e->asked) == 0)
            return true;
        peers += graphs_is_peer(word);
    }
    return !peers;
}

/* --- the same network? --- */

static json_t *load(const struct graphs_row *r, struct peer *peer, const struct engine *e, int threads)
{
    return peer_ask(peer,
                    json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:i,s:f,s:O}", "cmd", "load", "engine", e->asked, "net",
                              r->info->name, "units", (json_int_t)r->info->units, "features", (json_int_t)r->features,
                              "vocabulary", (json_int_t)r->info->vocabulary, "classes", (json_int_t)r->info->classes,
                              "threads", threads, "rate", 1e-12, "batches", r->batches),
                    LIMIT_S);
}

static bool near(double ours, double theirs, double scale)
{
    return fabs(ours - theirs) <= 2e-3 * scale + 1e-9;
}

static bool agrees(const struct graphs_row *r, struct peer *peer)
{
    json_t *answer = peer_ask(peer, json_pack("{s:s}", "cmd", "check"), LIMIT_S), *ours;
    const char *name, *wrong = NULL;
    const double loss = json_number_value(json_object_get(answer, "loss"));
    if (!answer)
        return false;
    if (!near(r->loss, loss, fabs(loss)))
        wrong = "the loss";
    json_object_foreach(r->gradients, name, ours)
    {
        const json_t *theirs = json_object_get(json_object_get(answer, "gradients"), name);
        const double norm = json_number_value(json_array_get(theirs, 0));
        for (size_t i = 0; i < 2; i++)
            if (!near(json_number_value(json_array_get(ours, i)), json_number_value(json_array_get(theirs, i)), norm))
                wrong = name;
    }
    if (wrong)
        snprintf(peer->reason, sizeof peer->reason, "not timed, computes something else: %s (loss %g, ours %g)", wrong,
                 loss, r->loss);
    json_decref(answer);
    return !wrong;
}

/* --- turns --- */

static graphi_status our_turn(struct graphs_row *r, int n, double *median)
{
    double ms[64];
    for (int i = 0; i < n; i++) {
        const double begin = report_seconds();
        const graphi_status status = r->cycle(r->context);
        if (status != GRAPHI_OK)
            return status;
        ms[i] = (report_seconds() - begin) * 1e3;
    }
    *median = result_median(ms, n);
    return GRAPHI_OK;
}

/* Negative: it failed. */
static double their_turn(struct peer *peer, int n)
{
    double ms[64];
    json_t *answer = peer_ask(peer, json_pack("{s:s,s:i}", "cmd", "step", "n", n), LIMIT_S);
    const json_t *list = json_object_get(answer, "ms");
    int count = 0;
    for (; count < n && count < (int)json_array_size(list); count++)
        ms[count] = json_number_value(json_array_get(list, (size_t)count));
    json_decref(answer);
    return count ? result_median(ms, count) : -1;
}

static void tell_times(const struct graphs_row *r, json_t *row, const double *ms, int rounds)
{
    result_times(row, ms, rounds);
    result_number(row, "us_per_vertex", result_median(ms, rounds) * 1e3 / (double)r->vertices);
}

/* As many cycles a turn as last some milliseconds, until the time is over. */
static graphi_status alternate(struct graphs_row *r, struct peer *peer, json_int_t start_rss, json_t *row)
{
    double ours[MOST_ROUNDS], theirs[MOST_ROUNDS];
    const double seconds = r->bench->options.seconds > 0 ? r->bench->options.seconds : 4, start = report_seconds();
    const double first = their_turn(peer, 1);
    const int n = first > 0 ? (int)fmax(1, fmin(16, 40 / first)) : 1;
    int rounds = 0;
    if (first < 0)
        return GRAPHI_OK;
    for (; rounds < MOST_ROUNDS && (rounds < 5 || report_seconds() - start < seconds); rounds++) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        graphi_status status = our_turn(r, n, &ours[rounds]);
        if (status != GRAPHI_OK)
            return status;
        turns_rest();
        if ((theirs[rounds] = their_turn(peer, n)) < 0)
            return GRAPHI_OK;
        turns_rest();
    }
    tell_times(r, row, theirs, rounds);
    result_ratio(row, r->id, theirs, ours, rounds);
    const double over = result_paired(theirs, ours, rounds);
    if (r->best == 0 || over < r->best) {
        r->best = over;
        tell_times(r, r->row, ours, rounds);
    }
    json_t *memory = peer_ask(peer, json_pack("{s:s}", "cmd", "memory"), LIMIT_S);
    const json_int_t peak = json_integer_value(json_object_get(memory, "peak_rss"));
    result_integer(row, "peak_rss_bytes", peak - start_rss);
    result_integer(row, "peak_rss_absolute_bytes", peak);
    json_decref(memory);
    return GRAPHI_OK;
}

static graphi_status one(struct graphs_row *r, const struct engine *e, int threads)
{
    char scripts[4096], environments[4096], script[4200], python[4200], id[160];
    struct peer peer = {0};
    json_t *answer = NULL;
    graphi_status status = GRAPHI_OK;
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(script, sizeof script, "%s/peer_dynamic.py", scripts);
    snprintf(python, sizeof python, "%s/%s/bin/python", environments, e->environment);
    snprintf(id, sizeof id, "%s: %s%s", r->id, e->asked,
             !e->threads   ? ""
             : threads > 1 ? ", all threads"
                           : ", 1 thread");
    json_t *row = result_row(&r->bench->result, id, e->engine);
    report_progress(r->bench->options.quiet, "%s", id);
    if (r->info->batch > e->batch_most)
        snprintf(peer.reason, sizeof peer.reason, "batches of more than %lld samples: seconds a step",
                 (long long)e->batch_most);
    else if (!peer_prepare(scripts, environments, e->environment, r->bench->options.quiet))
        snprintf(peer.reason, sizeof peer.reason, "its environment could not be made (setup.sh)");
    else if (peer_start(&peer, python, script, NULL) && (answer = load(r, &peer, e, threads)) && agrees(r, &peer)) {
        result_string(row, "engine_version", json_string_value(json_object_get(answer, "version")));
        status = alternate(r, &peer, json_integer_value(json_object_get(answer, "start_rss")), row);
    }
    if (!json_is_object(json_object_get(row, "time_ms"))) {
        result_string(row, "status", r->info->batch > e->batch_most ? "missing" : "failed");
        result_string(row, "reason", peer.reason);
    }
    json_decref(answer);
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

graphi_status graphs_beside(struct graphs_row *r)
{
    const int cores = r->bench->about.cores;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < ENGINES && status == GRAPHI_OK; i++)
        for (int threads = 1;
             status == GRAPHI_OK && threads <= (engines[i].threads ? cores : 1) && is_asked(r->bench, &engines[i]);
             threads = threads < cores ? cores : cores + 1)
            status = one(r, &engines[i], threads);
    if (r->best > 0)
        result_number(r->row, "speedup", r->best);
    return status;
}
