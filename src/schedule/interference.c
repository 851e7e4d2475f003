/* SPDX-License-Identifier: Apache-2.0 */
/* The record of interference: how much longer than predicted tasks took alone, beside each kind that was running at
 * their end, and beside any. Time over predicted time of one execution, averaged over executions; what that says takes
 * effect when an execution begins, so that one execution decides by one knowledge, and a replay by that of then.
 *
 * Two threads on one core slow each other down whatever their kinds are, so a task on a hardware-thread sibling, and
 * one that ran while there was any (which of the cores they share is not looked at), tells nothing of pairs.
 *
 * A slow minute of the machine makes tasks alone as much longer as those side by side, so slowdowns count against that
 * of tasks alone. These are always there to compare with: kept apart means to start when nothing runs. One thread at a
 * time: whoever runs the scheduling step. Usual size: 5 to 20 kinds, of which one or two run at a time. */
#include "schedule/interference.h"

#include "base/status.h"

#include <math.h>

enum { MOST_KINDS = 256, SHORTEST_NS = 1000 }; /* shorter tasks tell more of the clock than of their neighbours */
static const float newest = 0.25f, forgetting = 0.02f; /* weights in an average, for each execution */

static size_t entries(const struct interference *r)
{
    return (size_t)r->kinds * ((size_t)r->kinds + 1);
}

graphi_status interference_open(struct schedule *s, struct interference *r)
{
    *r = (struct interference){.kinds = s->tasks->kinds > 0 ? s->tasks->kinds : 1, .solo = -1};
    bool pairs = r->kinds <= MOST_KINDS;
    r->running = schedule_alloc(s, (size_t)r->kinds, sizeof *r->running);
    r->beside = pairs ? schedule_alloc(s, entries(r), sizeof *r->beside) : NULL;
    if (!r->running || (pairs && !r->beside))
        return fail_memory("policy", entries(r) * sizeof *r->beside);
    return GRAPHI_OK;
}

/* Takes in the last execution. What is kept apart is no longer seen beside, and slowly forgotten. */
static void fold(struct slowdown *d, float usual)
{
    float weight = d->predicted > 0 ? newest : forgetting, seen = d->predicted > 0 ? d->ns / d->predicted : usual;
    if (d->average > 0)
        d->average += weight * (seen - d->average);
    else if (d->predicted > 0)
        d->average = seen;
    d->ns = d->predicted = 0;
}

/* What was observed takes effect where it can change a decision and differs from what is known: averages move a little
 * in every execution, and each change costs all memoised decisions. */
bool interference_begin(const struct schedule *s, struct interference *r)
{
    size_t pairs = (size_t)r->kinds * (size_t)r->kinds;
    bool moved = false;
    r->solo = -1;
    r->on_siblings = 0;
    r->siblings_until = 0;
    for (int k = 0; k < r->kinds; k++)
        r->running[k] = 0;
    if (!r->beside || s->replaying) /* a replay decides by what was known then */
        return false;
    fold(&r->alone, r->alone.average);
    float usual = r->alone.average > 0 ? r->alone.average : 1;
    for (size_t i = 0; i < entries(r); i++) {
        struct slowdown *d = &r->beside[i];
        fold(d, usual);
        float now = d->average / usual, telling = i < pairs ? interference_clashing : interference_crowding;
        now = now > telling ? now : 0;
        if (fabsf(now - d->known) > 0.05f * d->known) {
            d->known = now;
            moved = true;
        }
    }
    r->seen |= moved;
    return moved;
}

void interference_started(const struct schedule *s, struct interference *r, int32_t task, bool sibling)
{
    r->on_siblings += sibling;
    r->solo = s->formed.count ? -1 : task;
    r->running[s->tasks->kind[task]]++;
}

static void add(struct slowdown *d, double ns, double predicted)
{
    d->ns += (float)ns;
    d->predicted += (float)predicted;
}

void interference_ended(const struct schedule *s, struct interference *r, int32_t task, struct seat seat, double ns)
{
    int kind = s->tasks->kind[task], kinds = r->kinds;
    r->running[kind]--;
    if (seat.leader >= s->workers) {
        r->on_siblings--;
        r->siblings_until = s->now;
        return;
    }
    if (r->on_siblings || r->siblings_until > s->formed.teams[seat.leader].started)
        return;
    double predicted = curve_mode_ns(&s->tasks->curves[s->tasks->curve_of[task]], seat.width, seat.spread);
    if (!r->beside || s->replaying || predicted <= SHORTEST_NS)
        return;
    if (task == r->solo)
        add(&r->alone, ns, predicted);
    if (!s->formed.count)
        return;
    for (int other = 0; other < kinds; other++)
        if (r->running[other] > 0) {
            add(&r->beside[kind * kinds + other], ns, predicted);
            if (other != kind)
                add(&r->beside[other * kinds + kind], ns, predicted);
        }
    add(&r->beside[kinds * kinds + kind], ns, predicted);
}

float interference_beside_running(const struct interference *r, int kind)
{
    float most = 1;
    for (int other = 0; other < r->kinds && r->seen; other++)
        if (r->running[other] > 0)
            most = fmaxf(most, r->beside[kind * r->kinds + other].known);
    return most;
}

static void explain(const struct slowdown *d, const char *kind, const char *beside, const char *consequence,
                    struct text *text)
{
    if (d->average > 0)
        text_add(text, "  %s beside %s: %.2f times as long as predicted%s\n", kind, beside, (double)d->average,
                 d->known > 0 ? consequence : "");
}

void interference_explain(const struct interference *r, const char *const *kinds, struct text *text)
{
    if (r->alone.average > 0)
        text_add(text, "  operations alone: %.2f times as long as predicted, which slowdowns count against\n",
                 (double)r->alone.average);
    for (int a = 0; a < r->kinds && r->beside; a++) {
        for (int b = a; b < r->kinds; b++)
            explain(&r->beside[a * r->kinds + b], kinds[a], kinds[b], ", kept apart where waiting ends sooner", text);
        explain(&r->beside[r->kinds * r->kinds + a], kinds[a], "any",
                ", wide and alone where that takes less of the cores' time", text);
    }
}
