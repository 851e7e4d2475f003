/* SPDX-License-Identifier: Apache-2.0 */
/* See turns.h. */
#include "frameworks/turns.h"

#include <math.h>
#include <time.h>

enum { STEPS = 50 };

json_t *turns_load(struct peer *peer, const struct bench *bench, const struct ours *ours, const char *mode,
                   const char *setting)
{
    const graphi_model_info *i = &ours->network.info;
    return peer_ask(peer,
                    json_pack("{s:s,s:s,s:s,s:s,s:i,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "cmd", "load", "model",
                              ours->network.name, "mode", mode, "setting", setting, "cores", bench->about.cores, "seed",
                              (json_int_t)bench->options.seed, "rate", TIMED_RATE, "batch", (json_int_t)i->batch,
                              "steps", (json_int_t)i->steps, "units", (json_int_t)i->units, "image",
                              (json_int_t)i->image, "channels", (json_int_t)i->channels, "classes",
                              (json_int_t)i->classes, "layers", (json_int_t)i->layers),
                    300);
}

json_t *turns_settings(struct peer *peer, const char *python, const char *script, const char *model, const char *mode)
{
    if (!peer_start(peer, python, script, NULL))
        return NULL;
    json_t *answer = peer_ask(peer, json_pack("{s:s,s:s,s:s}", "cmd", "settings", "model", model, "mode", mode), 60),
           *settings = json_incref(json_object_get(answer, "settings"));
    json_decref(answer);
    return settings;
}

int turns_steps(double step_ms)
{
    return step_ms >= TURN_MS ? 1 : (int)fmin(STEPS, TURN_MS / fmax(step_ms, 0.01) + 1);
}

double turns_peer(struct peer *peer, int n, double seconds)
{
    double ms[STEPS];
    json_t *answer = peer_ask(peer, json_pack("{s:s,s:i}", "cmd", "step", "n", n), seconds),
           *list = json_object_get(answer, "ms");
    int count = (int)json_array_size(list);
    if (answer && !json_is_number(json_object_get(answer, "loss")))
        count = 0, snprintf(peer->reason, sizeof peer->reason, "its loss is not finite");
    else if (answer && !count)
        snprintf(peer->reason, sizeof peer->reason, "no times");
    for (int i = 0; i < count && i < STEPS; i++)
        ms[i] = json_number_value(json_array_get(list, (size_t)i));
    json_decref(answer);
    return count ? result_median(ms, count < STEPS ? count : STEPS) : -1;
}

graphi_status turns_ours(struct ours *ours, double *median)
{
    double ms[STEPS], spent = 0;
    int n = 0;
    do {
        graphi_status status = contender_execute(&ours->mode[SCHEDULED], &ms[n]);
        if (status != GRAPHI_OK)
            return status;
        spent += ms[n++];
    } while (n < STEPS && spent < TURN_MS);
    *median = result_median(ms, n);
    return GRAPHI_OK;
}

void turns_rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}
