/* SPDX-License-Identifier: Apache-2.0 */
/* The record of interference: how much longer than predicted a task took alone, beside each kind that was running at its
 * end, and beside any. Averages over executions; what they say takes effect when an execution begins, so that one
 * execution decides by one knowledge, and a replay by that of then. One thread at a time: whoever runs the scheduling
 * step. Usual size: 5 to 20 kinds, of which one or two run at a time. */
#include "engine/interference.h"

#include "base/status.h"

#include <math.h>

enum { MOST_KINDS = 256, SHORTEST_NS = 1000 }; /* shorter tasks tell more of the clock than of their neighbours */
static const float forgetting = 0.02f;

static size_t entries(const struct interference *r)
{
    return (size_t)r->kinds * ((size_t)r->kinds + 1);
}

graphi_status interference_open(struct schedule *s, struct interference *r)
{
    *r = (struct interference){.kinds = s->tasks->kinds > 0 ? s->tasks->kinds : 1, .solo = -1};
    bool pairs = r->kinds <= MOST_KINDS;
    r->running = schedule_alloc(s, (size_t)r->kinds, sizeof *r->running);
    r->slowdown = schedule_alloc(s, pairs ? 2 * entries(r) : 1, sizeof *r->slowdown);
    if (!r->running || !r->slowdown)
        return fail_memory("policy", 2 * entries(r) * sizeof *r->slowdown);
    r->observed = pairs ? r->slowdown + entries(r) : NULL;
    return GRAPHI_OK;
}

/* 0 unless it is large enough to change a decision. */
static float telling(float slowdown, bool pair)
{
    return slowdown > (pair ? interference_clashing : interference_crowding) ? slowdown : 0;
}

/* What was observed, against how slow the machine is for tasks alone, takes effect where it can change a decision and differs
 * from what is known: averages move a little in every execution, and each change costs all memoised decisions. It is forgotten
 * slowly, so that what was kept apart for a slow minute of the machine runs side by side again. */
bool interference_begin(const struct schedule *s, struct interference *r)
{
    size_t pairs = (size_t)r->kinds * (size_t)r->kinds;
    float usual = r->alone > 0 ? r->alone : 1;
    bool moved = false;
    r->solo = -1;
    for (int k = 0; k < r->kinds; k++)
        r->running[k] = 0;
    if (!r->observed || s->replaying) /* a replay decides by what was known then */
        return false;
    for (size_t i = 0; i < entries(r); i++) {
        if (r->observed[i] > 0)
            r->observed[i] += forgetting * (usual - r->observed[i]);
        moved |= fabsf(telling(r->observed[i] / usual, i < pairs) - r->slowdown[i]) > 0.05f * r->slowdown[i];
    }
    for (size_t i = 0; i < entries(r) && moved; i++)
        r->slowdown[i] = telling(r->observed[i] / usual, i < pairs);
    r->seen |= moved;
    return moved;
}

void interference_started(const struct schedule *s, struct interference *r, int32_t task)
{
    r->solo = s->running_count ? -1 : task;
    r->running[s->tasks->kind[task]]++;
}

static void average(float *mean, float seen, float weight)
{
    *mean = *mean > 0 ? *mean + weight * (seen - *mean) : seen;
}

void interference_ended(const struct schedule *s, struct interference *r, int32_t task, int width, double ns)
{
    int kind = s->tasks->kind[task], kinds = r->kinds;
    r->running[kind]--;
    double predicted = curve_ns(&s->tasks->curves[s->tasks->curve_of[task]], width);
    if (!r->observed || s->replaying || predicted <= SHORTEST_NS)
        return;
    float seen = (float)(ns / predicted);
    if (task == r->solo)
        average(&r->alone, seen, 0.02f);
    if (!s->running_count)
        return;
    for (int other = 0; other < kinds; other++)
        if (r->running[other] > 0) {
            average(&r->observed[kind * kinds + other], seen, 0.25f);
            r->observed[other * kinds + kind] = r->observed[kind * kinds + other];
        }
    average(&r->observed[kinds * kinds + kind], seen, 0.02f);
}

float interference_beside_running(const struct interference *r, int kind)
{
    const float *beside = &r->slowdown[kind * r->kinds];
    float most = 1;
    for (int other = 0; other < r->kinds && r->seen; other++)
        if (r->running[other] > 0 && beside[other] > most)
            most = beside[other];
    return most;
}
