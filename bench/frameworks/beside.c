/* SPDX-License-Identifier: Apache-2.0 */
/* A peer in a process of its own, setting after setting: what it needs besides time, whether it computes the same, then
 * turns of ours and its own in alternation. A peer that fails, is late or is missing is a row that says so. */
#include "frameworks/beside.h"
#include "frameworks/peer.h"
#include "frameworks/turns.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 400 };

/* Of the first step, which compiles: seconds that it may take with --quick, and without. */
enum { FIRST_QUICK_S = 300, FIRST_S = 1800 };

static double limit_s(const struct comparison *c, bool first)
{
    if (c->bench->options.quick)
        return first ? FIRST_QUICK_S : 60;
    return first ? FIRST_S : 3600;
}

/* The median of n steps, ms; negative: the reason says why. --quick judges by the steps behind the first one. */
static double steps_of(const struct comparison *c, struct peer *peer, int n, bool first)
{
    const bool quick = c->bench->options.quick;
    const double ms = turns_peer(peer, n, limit_s(c, first) * (quick ? n : 1));
    if (ms < 0 && peer->late && quick && first)
        snprintf(peer->reason, sizeof peer->reason, "its first step, which compiles, takes over %d minutes (--quick)",
                 FIRST_QUICK_S / 60);
    else if (ms < 0 && peer->late && quick)
        snprintf(peer->reason, sizeof peer->reason, "takes over a minute a step (--quick)");
    return ms;
}

static json_t *command(const char *name) { return json_pack("{s:s}", "cmd", name); }

/* Turns of both until the time is over; medians of turns. A failing peer ends it with *pairs 0. */
static graphi_status alternate(struct comparison *c, struct peer *peer, const char *id, double theirs, double *a,
                               double *b, int *pairs)
{
    const struct options *o = &c->bench->options;
    double seconds = o->seconds > 0 ? o->seconds : o->quick ? 4 : 10, round = (c->step_ms + theirs) * 1e-3;
    int rounds = (int)fmax(3, fmin(PAIRS, seconds / fmax(2e-3 * TURN_MS + 0.02, round)));
    const int steps = turns_steps(theirs);
    for (*pairs = 0; *pairs < rounds; ++*pairs) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(o->quiet, "%s: round %d of %d", id, *pairs + 1, rounds);
        graphi_status status = turns_ours(&c->ours, &a[*pairs]);
        if (status != GRAPHI_OK)
            return status;
        turns_rest();
        if ((b[*pairs] = steps_of(c, peer, steps, false)) < 0) {
            *pairs = 0;
            return GRAPHI_OK;
        }
        turns_rest();
    }
    return GRAPHI_OK;
}

/* One row of a peer: what it needs besides time, whether it computes the same, then time. Reasons go into the row. */
static bool settle(struct comparison *c, struct peer *peer, json_t *row, const char *setting, double *first,
                   double *later)
{
    json_t *answer = turns_load(peer, c->bench, &c->ours, c->mode, setting);
    if (!answer)
        return false;
    int64_t start = json_integer_value(json_object_get(answer, "start_rss"));
    result_string(row, "engine_version", json_string_value(json_object_get(answer, "version")));
    json_decref(answer);
    if ((*first = steps_of(c, peer, 1, true)) < 0)
        return false;
    int n = *first > 2000 ? 1 : 3;
    if ((*later = steps_of(c, peer, n, false)) < 0 || !(answer = peer_ask(peer, command("memory"), 60)))
        return false;
    int64_t peak = json_integer_value(json_object_get(answer, "peak_rss"));
    result_integer(row, "peak_rss_bytes", peak - start);
    result_integer(row, "peak_rss_absolute_bytes", peak);
    json_decref(answer);
    if (!(answer = peer_ask(peer, json_pack("{s:s,s:f}", "cmd", "check", "rate", CHECK_RATE), limit_s(c, true))))
        return false;
    char what[200];
    double apart = ours_difference(&c->ours, answer, what, sizeof what);
    json_decref(answer);
    if (!(apart <= c->worst)) {
        c->worst = apart;
        snprintf(c->worst_of, sizeof c->worst_of, "%s: %.150s", setting, what);
    }
    if (isfinite(apart))
        result_number(row, "difference", apart);
    if (apart <= PEER_TOLERANCE) {
        const double beyond = (double)(peak - start);
        c->leanest = c->leanest > 0 ? fmin(c->leanest, beyond) : beyond;
        return true;
    }
    snprintf(peer->reason, sizeof peer->reason, "not timed, computes something else: %.200s", what);
    return false;
}

static void note_ratio(struct comparison *c, const struct framework *framework, const char *setting, const char *id,
                       const double *a, const double *b, int pairs)
{
    double ours_over = result_paired(a, b, pairs);
    if (ours_over > c->best) {
        c->best = ours_over;
        result_ratio(c->row, id, a, b, pairs);
    }
    double *kind = strcmp(framework->name, "JAX") == 0                                ? &c->jax
                   : strcmp(framework->name, "PyTorch") == 0 && peer_is_eager(setting) ? &c->eager
                                                                                       : NULL;
    if (kind)
        *kind = fmax(*kind, ours_over);
}

static graphi_status at_setting(struct comparison *c, const struct framework *framework, const char *setting)
{
    char id[200], script[4200], python[4200], ours_id[200];
    double first = 0, later = 0, a[PAIRS], b[PAIRS];
    int pairs = 0;
    graphi_status status = GRAPHI_OK;
    struct peer peer;
    snprintf(id, sizeof id, "%s: %s %s", c->title, framework->name, setting);
    snprintf(ours_id, sizeof ours_id, "%s: graphi", c->title);
    snprintf(script, sizeof script, "%s/%s", c->scripts, framework->script);
    snprintf(python, sizeof python, "%s/%s/bin/python", c->environments, framework->folder);
    report_progress(c->bench->options.quiet, "%s: starting", id);
    json_t *row = result_row(&c->bench->result, id, framework->name);
    bool good = peer_start(&peer, python, script, setting) && settle(c, &peer, row, setting, &first, &later);
    if (good)
        status = alternate(c, &peer, id, later, a, b, &pairs);
    if (pairs > 0) {
        note_ratio(c, framework, setting, id, a, b, pairs);
        result_ratio(row, ours_id, b, a, pairs);
        double median = result_median(b, pairs);
        result_times(row, b, pairs);
        result_number(row, "load_ms", fmax(0, first - median));
        result_rate(row, job_rating(c->ours.network.graph, &c->bench->about, GRAPHI_F32), median);
    } else if (status == GRAPHI_OK) {
        result_string(row, "status", peer.late && c->bench->options.quick ? "missing" : "failed");
        result_string(row, "reason", peer.reason);
    }
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

static void missing_row(struct comparison *c, const struct framework *framework, const char *reason)
{
    char id[200];
    snprintf(id, sizeof id, "%s: %s", c->title, framework->name);
    json_t *row = result_row(&c->bench->result, id, framework->name);
    result_string(row, "status", "missing");
    result_string(row, "reason", reason);
}

graphi_status beside(struct comparison *c, struct framework *framework)
{
    char script[4200], python[4200];
    struct peer peer;
    if (!framework->tried)
        framework->there = peer_prepare(c->scripts, c->environments, framework->folder, c->bench->options.quiet);
    framework->tried = true;
    if (!framework->there) {
        missing_row(c, framework, "its environment could not be made (setup.sh)");
        return GRAPHI_OK;
    }
    snprintf(script, sizeof script, "%s/%s", c->scripts, framework->script);
    snprintf(python, sizeof python, "%s/%s/bin/python", c->environments, framework->folder);
    json_t *settings = turns_settings(&peer, python, script, c->name, c->mode), *setting;
    if (!settings)
        missing_row(c, framework, peer.reason);
    peer_stop(&peer);
    graphi_status status = GRAPHI_OK;
    size_t i;
    if (settings && !json_array_size(settings))
        missing_row(c, framework, "it has no form of this network");
    json_array_foreach(settings, i, setting) if (status == GRAPHI_OK)
        status = at_setting(c, framework, json_string_value(setting));
    json_decref(settings);
    return status;
}
