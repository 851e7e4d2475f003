/* SPDX-License-Identifier: Apache-2.0 */
/* See serving.h. */
#include "frameworks/serving.h"

#include "frameworks/turns.h"

#include <math.h>
#include <stdlib.h>

struct times {
    double ours[SERVING_EACH], theirs[SERVING_EACH];             /* single executions */
    double our_turn[SERVING_ROUNDS], their_turn[SERVING_ROUNDS]; /* medians, in pairs */
};

graphi_status serving_ours(const struct serving *s, int n, double *ms)
{
    for (int i = 0; i < n; i++) {
        const double begin = report_seconds();
        const graphi_status status = s->run(s->context);
        if (status)
            return status;
        ms[i] = (report_seconds() - begin) * 1e3;
    }
    return GRAPHI_OK;
}

/* The median of its executions; below 0: it failed. */
static double their_turn(const struct serving *s, struct peer *peer, int n, double *ms, int *count)
{
    json_t *answer = peer_ask(peer, json_pack("{s:s,s:i}", "cmd", "step", "n", n), s->limit_s);
    json_t *list = json_object_get(answer, "ms");
    *count = (int)json_array_size(list) < n ? (int)json_array_size(list) : n;
    for (int i = 0; i < *count; i++)
        ms[i] = json_number_value(json_array_get(list, (size_t)i));
    json_decref(answer);
    return *count ? result_median(ms, *count) : -1;
}

static void keep_best(struct serving *s, double over, const double *ours, int count)
{
    if (s->best != 0 && over >= s->best)
        return;
    s->best = over;
    result_times(s->row, ours, count);
}

static graphi_status alternate(struct serving *s, struct peer *peer, json_t *row, struct times *t)
{
    const double seconds = s->bench->options.seconds > 0 ? s->bench->options.seconds : 1.5, start = report_seconds();
    double first;
    int count, rounds = 0, samples = 0, own = 0;
    if ((first = their_turn(s, peer, 3, t->theirs, &count)) < 0)
        return GRAPHI_OK;
    const int n = (int)fmax(1, fmin(100, 20 / first));
    for (; rounds < SERVING_ROUNDS && (rounds < 5 || report_seconds() - start < seconds); rounds++) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        if (samples + n > SERVING_EACH)
            samples = own = 0;
        peer_rest(peer);
        turns_rest();
        const graphi_status status = serving_ours(s, n, t->ours + own);
        if (status)
            return status;
        t->our_turn[rounds] = result_median(t->ours + own, n);
        turns_rest();
        if ((t->their_turn[rounds] = their_turn(s, peer, n, t->theirs + samples, &count)) < 0)
            return GRAPHI_OK;
        own += n;
        samples += count;
    }
    result_times(row, t->theirs, samples);
    result_ratio(row, s->id, t->their_turn, t->our_turn, rounds);
    keep_best(s, result_paired(t->their_turn, t->our_turn, rounds), t->ours, own);
    return GRAPHI_OK;
}

graphi_status serving_turns(struct serving *s, struct peer *peer, json_t *row)
{
    struct times *times = malloc(sizeof *times);
    if (!times)
        return report_error(GRAPHI_MEMORY, s->id, "found no room for times, expected it");
    const graphi_status status = alternate(s, peer, row, times);
    free(times);
    return status;
}
