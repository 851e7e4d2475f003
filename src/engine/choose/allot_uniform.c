/* SPDX-License-Identifier: Apache-2.0 */
/* What the uniform settings do, as allotments: the splits of split.c, the highest level first. Their times are those
 * that profiling measures best, since it runs them; schedules of mixed widths are predicted with larger errors
 * (docs/simulator.md). So on the machine at hand what the search found is followed only where it is predicted to
 * gain more than that over the best of them. Used by allot.c; a few simulations. */
#include "engine/choose/allot_uniform.h"

#include "schedule/setting_canonical.h"

#include <string.h>

static const double TRUSTED = 0.02; /* a gain that is predicted to be smaller is within the error */

static void follow(struct search *s, int width)
{
    memset(s->offset, 0, (size_t)s->t->count * sizeof *s->offset);
    for (int32_t v = 0; v < s->t->count; v++)
        s->now->width[v] = (uint16_t)width;
    search_rules(s, 0);
    s->now->in_order = false;
    search_order_by_level(s);
}

void search_uniform(struct search *s)
{
    for (int executors = 0; (executors = setting_next_split(s->workers, executors)) != 0;) {
        int width = s->workers / executors;
        follow(s, width);
        double ns = search_makespan(s);
        if (ns < s->uniform_ns) {
            s->uniform_ns = ns;
            s->uniform_width = width;
        }
        if (ns < s->base_ns)
            search_settle(s, ns);
    }
}

bool search_prefers_uniform(struct search *s, double ns)
{
    if (ns <= (1 - TRUSTED) * s->uniform_ns)
        return false;
    follow(s, s->uniform_width);
    text_add(&s->draft->why, "followed: teams of %d, as the gain over them is below %.0f %%\n", s->uniform_width,
             100 * TRUSTED);
    return true;
}
