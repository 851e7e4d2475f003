/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps with bfloat16 multiplicands beside our float32 and beside PyTorch's bfloat16 (autocast: float32
 * weights there too). The same weights and inputs; loss and gradients are held against our float32 before anything is
 * timed; then float32, bfloat16 and the peer take turns. Goals: at least 1.6 times our float32, ahead of PyTorch in its
 * best setting.
 *
 * Words name networks (default lstm and googlenet), --size (default medium), --seconds a peer setting, --tune.
 * PyTorch's settings are those of float32 (bench/frameworks/peer_pytorch.py), each under autocast; --quick leaves out
 * all but the one that was fastest here. */
#include "bench.h"
#include "frameworks/turns.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 200, LIMIT_S = 600 };

/* PyTorch's fastest setting, and how far loss and gradients may be from float32's, ours and theirs:
 * autocast also stores what products give in 8 bits, so that a recurrent state is rounded again and again. With
 * multiplicands of 8 bits a sum of products is off by a few thousandths of its norm; max-pools and rectifiers then take
 * other elements, so that the gradients of the first layers move by up to a quarter of their norm, PyTorch's as ours. A
 * transposed or lost gradient is off by about 1. */
static const struct network_settings {
    const char *name;
    double tolerance, theirs;
    const char *fastest;
} peers[] = {
    {"lstm", 0.02, 0.06, "layers pages"},
    {"pathnet", 0.3, 0.3, "channels-last pages"},
    {"googlenet", 0.3, 0.3, "channels-last pages"},
};

struct comparison {
    struct bench *bench;
    const char *name, *size;
    const struct network_settings *settings;
    struct ours f32, bf16;
    char script[4200], python[4200]; /* PyTorch's */
    double a[ROUNDS], b[ROUNDS], c[ROUNDS]; /* float32, bfloat16, peer */
    double speedup, best; /* medians: float32 over bfloat16; least of peer over bfloat16, 0: none */
};

/* Rounds of all three (peer NULL: of both) until the time is over; 0 rounds when the peer failed. */
static graphi_status alternate(struct comparison *c, struct peer *peer, const char *id, int *rounds)
{
    const struct options *o = &c->bench->options;
    double seconds = o->seconds > 0 ? o->seconds : o->quick ? 4 : 10, start = report_seconds(), theirs = 0;
    if (peer && (turns_peer(peer, 2, LIMIT_S) < 0 || (theirs = turns_peer(peer, 1, LIMIT_S)) < 0))
        return *rounds = 0, GRAPHI_OK; /* the first step prepares */
    const int steps = turns_steps(theirs);
    for (*rounds = 0; *rounds < ROUNDS && (*rounds < 3 || report_seconds() - start < seconds); ++*rounds) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(o->quiet, "%s: round %d, %.0f of %.0f s", id, *rounds + 1, report_seconds() - start, seconds);
        graphi_status status = turns_ours(&c->f32, &c->a[*rounds]);
        if (status == GRAPHI_OK)
            status = turns_ours(&c->bf16, &c->b[*rounds]);
        if (status != GRAPHI_OK)
            return status;
        turns_rest();
        if (peer && (c->c[*rounds] = turns_peer(peer, steps, LIMIT_S)) < 0)
            return *rounds = 0, GRAPHI_OK;
        turns_rest();
    }
    return GRAPHI_OK;
}

/* `ours`: of which precision the row is. */
static json_t *row_of(struct comparison *c, const struct ours *ours, const char *what, const char *engine,
                      const double *ms, int n)
{
    char id[200];
    snprintf(id, sizeof id, "%s %s training: %s", c->name, c->size, what);
    json_t *row = result_row(&c->bench->result, id, engine);
    if (n > 0) {
        result_times(row, ms, n);
        result_rate(row, ours->network.rating, result_median(ms, n));
    }
    return row;
}

static bool settle(struct comparison *c, struct peer *peer, const char *form, double *apart, json_t **version)
{
    char setting[200];
    snprintf(setting, sizeof setting, "%s bfloat16", form);
    json_t *answer = turns_load(peer, c->bench, &c->f32, "training", setting);
    if (!answer)
        return false;
    *version = json_incref(json_object_get(answer, "version"));
    json_decref(answer);
    if (!(answer = peer_ask(peer, json_pack("{s:s,s:f}", "cmd", "check", "rate", CHECK_RATE), LIMIT_S)))
        return false;
    char what[200];
    *apart = ours_difference(&c->f32, answer, what, sizeof what);
    json_decref(answer);
    if (!(*apart <= c->settings->theirs))
        snprintf(peer->reason, sizeof peer->reason, "not timed, computes something else: %.200s", what);
    return *apart <= c->settings->theirs;
}

static graphi_status at_setting(struct comparison *c, const char *setting)
{
    char id[300];
    struct peer peer;
    double apart = INFINITY;
    json_t *version = NULL;
    int rounds = 0;
    graphi_status status = GRAPHI_OK;
    snprintf(id, sizeof id, "PyTorch %s bfloat16", setting);
    if (peer_start(&peer, c->python, c->script, setting) && settle(c, &peer, setting, &apart, &version))
        status = alternate(c, &peer, id, &rounds);
    json_t *row = row_of(c, &c->bf16, id, "PyTorch", c->c, rounds);
    if (version)
        result_set(row, "engine_version", version);
    if (isfinite(apart))
        result_number(row, "difference", apart);
    if (rounds > 0) {
        snprintf(id, sizeof id, "%s %s training: graphi bfloat16", c->name, c->size);
        result_ratio(row, id, c->c, c->b, rounds);
        double over = result_paired(c->c, c->b, rounds);
        c->best = c->best > 0 ? fmin(c->best, over) : over;
    } else {
        result_string(row, "status", "failed");
        result_string(row, "reason", peer.reason);
    }
    peer_stop(&peer);
    return report_interrupted() ? GRAPHI_INTERRUPTED : status;
}

static void missing_row(struct comparison *c, const char *reason)
{
    json_t *row = row_of(c, &c->bf16, "PyTorch bfloat16", "PyTorch", c->c, 0);
    result_string(row, "status", "missing");
    result_string(row, "reason", reason);
}

static graphi_status beside(struct comparison *c)
{
    char scripts[4096], environments[4096];
    struct peer peer;
    size_t i;
    json_t *setting, *settings;
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(c->script, sizeof c->script, "%s/peer_pytorch.py", scripts);
    snprintf(c->python, sizeof c->python, "%s/pytorch/bin/python", environments);
    if (!peer_prepare(scripts, environments, "pytorch", c->bench->options.quiet))
        return missing_row(c, "its environment could not be made (setup.sh)"), GRAPHI_OK;
    if (!(settings = turns_settings(&peer, c->python, c->script, c->name, "training")))
        missing_row(c, peer.reason);
    peer_stop(&peer);
    graphi_status status = settings ? at_setting(c, c->settings->fastest) : GRAPHI_OK;
    json_array_foreach(settings, i, setting)
    {
        const char *form = json_string_value(setting);
        if (status == GRAPHI_OK && !c->bench->options.quick && strcmp(form, c->settings->fastest) != 0)
            status = at_setting(c, form);
    }
    json_decref(settings);
    return status;
}

static graphi_status open_one(struct comparison *c, const char *precision, struct ours *ours)
{
    struct options *o = &c->bench->options;
    o->precision = precision;
    report_progress(o->quiet, "%s %s %s", c->name, c->size, precision);
    graphi_status status = ours_open(c->bench, c->name, c->size, o->tune_given ? o->tune : 0, SCHEDULED + 1, ours);
    return status == GRAPHI_OK ? ours_check(ours) : status;
}

/* Ours beside each other, with what they differ by. */
static graphi_status both(struct comparison *c)
{
    char what[200], title[300];
    int rounds;
    double apart = ours_apart(&c->f32, &c->bf16, what, sizeof what);
    snprintf(title, sizeof title, "%s %s: bfloat16 from float32, loss and gradients (%.150s)", c->name, c->size, what);
    result_goal(&c->bench->result, title, fmin(apart, 1e9), c->settings->tolerance, false);
    graphi_status status = alternate(c, NULL, c->name, &rounds);
    if (status != GRAPHI_OK)
        return status;
    row_of(c, &c->f32, "graphi float32", "graphi", c->a, rounds);
    json_t *row = row_of(c, &c->bf16, "graphi bfloat16", "graphi", c->b, rounds);
    result_number(row, "difference", apart);
    snprintf(title, sizeof title, "%s %s training: graphi float32", c->name, c->size);
    result_ratio(row, title, c->b, c->a, rounds);
    c->speedup = result_paired(c->a, c->b, rounds);
    return GRAPHI_OK;
}

static void goals(struct comparison *c)
{
    char title[200], setting[100] = "its best setting";
    snprintf(title, sizeof title, "%s %s training: times our float32", c->name, c->size);
    result_goal(&c->bench->result, title, c->speedup, 1.6, true);
    if (c->bench->options.quick)
        snprintf(setting, sizeof setting, "the setting '%s'", c->settings->fastest);
    snprintf(title, sizeof title, "%s %s training: times PyTorch's bfloat16 in %s", c->name, c->size, setting);
    if (c->best > 0)
        result_goal(&c->bench->result, title, c->best, 1, true);
}

static const struct network_settings *settings_of(const char *name)
{
    for (size_t p = 0; p < sizeof peers / sizeof *peers; p++)
        if (strcmp(peers[p].name, name) == 0)
            return &peers[p];
    return NULL;
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    static struct comparison c;
    c = (struct comparison){.bench = bench, .name = name, .size = size, .settings = settings_of(name)};
    graphi_status status = open_one(&c, "float32", &c.f32);
    if (status == GRAPHI_OK)
        status = open_one(&c, "bfloat16", &c.bf16);
    if (status == GRAPHI_OK)
        status = both(&c);
    if (status == GRAPHI_OK)
        status = beside(&c);
    if (status == GRAPHI_OK)
        goals(&c);
    ours_close(&c.bf16);
    ours_close(&c.f32);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm", "googlenet"};
    struct options *o = &bench->options;
    if (o->rest_count == 0) {
        o->rest[0] = networks[0];
        o->rest[1] = networks[1];
        o->rest_count = 2;
    }
    for (int i = 0; i < o->rest_count; i++)
        if (!settings_of(o->rest[i]))
            return report_usage("bfloat16", o->rest[i], "lstm, pathnet or googlenet");
    result_note(
        &bench->result,
        "of limit: of rows of bfloat16 by the roof of its dot products, where this machine has them; difference: of "
        "loss and gradients, from our float32, relative to their norms; a peer's ratio is its time over our bfloat16's "
        "in the same rounds");
    return bench_networks(bench, "medium", body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "bfloat16", run);
}
