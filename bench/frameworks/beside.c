/* SPDX-License-Identifier: Apache-2.0 */
/* A peer in a process of its own, setting after setting: what it needs besides time, whether it computes the same, then
 * turns of ours and its own in alternation. A peer that fails, is late or is missing is a row that says so. */
#include "frameworks/beside.h"
#include "frameworks/peer.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 400, STEPS = 50 };
static const double TIMED_RATE = 1e-6, TURN_MS = 60;

static void pause_between_turns(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* whoever had the turn stops spinning */
}

static double limit_s(const struct comparison *c, bool first)
{
    if (c->bench->options.quick)
        return first ? 60 : 180;
    return first ? 1800 : 3600;
}

static json_t *command(const char *name) { return json_pack("{s:s}", "cmd", name); }

static json_t *load_command(const struct comparison *c, const char *setting)
{
    const graphi_model_info *i = &c->ours.network.info;
    return json_pack("{s:s,s:s,s:s,s:s,s:i,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "cmd", "load", "model", c->name,
                     "mode", c->mode, "setting", setting, "cores", c->bench->about.cores, "seed",
                     (json_int_t)c->bench->options.seed, "rate", TIMED_RATE, "batch", (json_int_t)i->batch, "steps",
                     (json_int_t)i->steps, "units", (json_int_t)i->units, "image", (json_int_t)i->image, "channels",
                     (json_int_t)i->channels, "classes", (json_int_t)i->classes, "layers", (json_int_t)i->layers);
}

/* Median of n steps of the peer, negative on failure. */
static double peer_steps(struct peer *peer, int n, double seconds)
{
    double ms[STEPS];
    json_t *answer = peer_ask(peer, json_pack("{s:s,s:i}", "cmd", "step", "n", n), seconds),
           *list = json_object_get(answer, "ms");
    int count = (int)json_array_size(list);
    if (answer && !json_is_number(json_object_get(answer, "loss")))
        count = 0, snprintf(peer->reason, sizeof peer->reason, "its loss is not finite");
    for (int i = 0; i < count && i < STEPS; i++)
        ms[i] = json_number_value(json_array_get(list, (size_t)i));
    json_decref(answer);
    return count ? result_median(ms, count < STEPS ? count : STEPS) : -1;
}

static graphi_status our_steps(struct comparison *c, int n, double *median)
{
    double ms[STEPS];
    for (int i = 0; i < n; i++) {
        graphi_run_info info;
        graphi_status status = graphi_run_execute(c->ours.mode[SCHEDULED].run);
        if (status != GRAPHI_OK)
            return report_failure(status);
        graphi_run_get_info(c->ours.mode[SCHEDULED].run, &info);
        ms[i] = info.last_ms;
    }
    *median = result_median(ms, n);
    return GRAPHI_OK;
}

static int steps_a_turn(double ms) { return ms >= TURN_MS ? 1 : (int)fmin(STEPS, TURN_MS / fmax(ms, 0.01) + 1); }

/* Turns of both until the time is over; medians of turns. A failing peer ends it with *pairs 0. */
static graphi_status alternate(struct comparison *c, struct peer *peer, const char *id, double theirs, double *a,
                               double *b, int *pairs)
{
    const struct options *o = &c->bench->options;
    double seconds = o->seconds > 0 ? o->seconds : o->quick ? 4 : 10, round = (c->step_ms + theirs) * 1e-3;
    int rounds = (int)fmax(3, fmin(PAIRS, seconds / fmax(2 * TURN_MS * 1e-3 + 0.02, round)));
    int n = steps_a_turn(c->step_ms), m = steps_a_turn(theirs);
    for (*pairs = 0; *pairs < rounds; ++*pairs) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(o->quiet, "%s: round %d of %d", id, *pairs + 1, rounds);
        graphi_status status = our_steps(c, n, &a[*pairs]);
        if (status != GRAPHI_OK)
            return status;
        pause_between_turns();
        if ((b[*pairs] = peer_steps(peer, m, limit_s(c, false))) < 0) {
            *pairs = 0;
            return GRAPHI_OK;
        }
        pause_between_turns();
    }
    return GRAPHI_OK;
}

/* One row of a peer: what it needs besides time, whether it computes the same, then time. Reasons go into the row. */
static bool settle(struct comparison *c, struct peer *peer, json_t *row, const char *setting, double *first,
                   double *later)
{
    json_t *answer = peer_ask(peer, load_command(c, setting), 300);
    if (!answer)
        return false;
    int64_t start = json_integer_value(json_object_get(answer, "start_rss"));
    result_string(row, "engine_version", json_string_value(json_object_get(answer, "version")));
    json_decref(answer);
    if ((*first = peer_steps(peer, 1, limit_s(c, true))) < 0)
        return false;
    int n = *first > 2000 ? 1 : 3;
    if ((*later = peer_steps(peer, n, limit_s(c, false))) < 0 || !(answer = peer_ask(peer, command("memory"), 60)))
        return false;
    int64_t peak = json_integer_value(json_object_get(answer, "peak_rss"));
    result_integer(row, "peak_rss_bytes", peak - start);
    result_integer(row, "peak_rss_absolute_bytes", peak);
    json_decref(answer);
    if (!(answer = peer_ask(peer, json_pack("{s:s,s:f}", "cmd", "check", "rate", CHECK_RATE), limit_s(c, false))))
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
    double ratio[PAIRS];
    for (int i = 0; i < pairs; i++)
        ratio[i] = a[i] / b[i];
    double ours_over = result_median(ratio, pairs);
    if (ours_over > c->best) {
        c->best = ours_over;
        result_ratio(c->row, id, a, b, pairs);
    }
    double *kind = strcmp(framework->name, "JAX") == 0                                                  ? &c->jax
                   : strcmp(framework->name, "PyTorch") == 0 && strncmp(setting, "compile", 7) != 0 ? &c->eager
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
    snprintf(id, sizeof id, "%s %s %s: %s %s", c->name, c->size, c->mode, framework->name, setting);
    snprintf(ours_id, sizeof ours_id, "%s %s %s: graphi", c->name, c->size, c->mode);
    snprintf(script, sizeof script, "%s/%s", c->scripts, framework->script);
    snprintf(python, sizeof python, "%s/%s/bin/python", c->environments, framework->folder);
    report_progress(c->bench->options.quiet, "%s: starting", id);
    json_t *row = result_row(&c->bench->result, id, framework->name);
    bool good = peer_start(&peer, python, script) && settle(c, &peer, row, setting, &first, &later);
    if (good)
        status = alternate(c, &peer, id, later, a, b, &pairs);
    if (pairs > 0) {
        note_ratio(c, framework, setting, id, a, b, pairs);
        result_ratio(row, ours_id, b, a, pairs);
        double median = result_median(b, pairs);
        result_times(row, b, pairs);
        result_number(row, "load_ms", fmax(0, first - median));
        result_rate(row, c->ours.network.rating, median);
    } else if (status == GRAPHI_OK) {
        bool left_out = peer.late && c->bench->options.quick;
        result_string(row, "status", left_out ? "missing" : "failed");
        result_string(row, "reason", left_out ? "takes over a minute a step (--quick)" : peer.reason);
    }
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

static void missing_row(struct comparison *c, const struct framework *framework, const char *reason)
{
    char id[200];
    snprintf(id, sizeof id, "%s %s %s: %s", c->name, c->size, c->mode, framework->name);
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
    json_t *answer = NULL;
    if (peer_start(&peer, python, script))
        answer = peer_ask(&peer, json_pack("{s:s,s:s,s:s}", "cmd", "settings", "model", c->name, "mode", c->mode), 60);
    if (!answer)
        missing_row(c, framework, peer.reason);
    peer_stop(&peer);
    graphi_status status = GRAPHI_OK;
    size_t i;
    json_t *setting;
    if (answer && !json_array_size(json_object_get(answer, "settings")))
        missing_row(c, framework, "it has no form of this network");
    json_array_foreach(json_object_get(answer, "settings"), i, setting) if (status == GRAPHI_OK)
        status = at_setting(c, framework, json_string_value(setting));
    json_decref(answer);
    return status;
}
