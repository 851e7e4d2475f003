/* SPDX-License-Identifier: Apache-2.0 */
/* Widths by cost curves: the fastest candidates of every class (strategy 1, and the three of strategy 3), and for each
 * kind the best width of the instance that takes most time (strategy 2), which strategy 3 must not leave by more than
 * its tolerance. Pure functions of the curves; usual size: 100 classes of up to 72 samples, 10 kinds. */
#include "schedule/widths.h"

#include "base/status.h"
#include "schedule/parameter.h"

#include <stdlib.h>

static int tiles_of(const struct schedule *s)
{
    int tiles = 0;
    for (int i = 0; i < s->workers; i++)
        tiles += !s->machine->core || i == 0 || s->machine->core[i].tile != s->machine->core[i - 1].tile;
    return tiles;
}

static void insert(struct fast_width *best, int *count, int most, struct fast_width candidate)
{
    int at = *count < most ? (*count)++ : most;
    for (; at > 0 && best[at - 1].ns > candidate.ns; at--)
        if (at < most)
            best[at] = best[at - 1];
    if (at < most)
        best[at] = candidate;
}

int widths_fastest(const struct cost_curve *curve, int workers, int tiles, int most, struct fast_width *best)
{
    int count = 0;
    for (int i = 0; i < curve->samples && curve->width[i] <= workers; i++) {
        int width = curve->width[i];
        insert(best, &count, most, (struct fast_width){width, false, curve->ns[i]});
        if (width > 1 && curve->spread_ns[i] > 0 && width <= tiles)
            insert(best, &count, most, (struct fast_width){width, true, curve->spread_ns[i]});
    }
    if (!count)
        best[count++] = (struct fast_width){1, false, curve_ns(curve, 1)};
    return count;
}

static void rank_class(const struct schedule *s, int tiles, const struct cost_curve *curve, int most,
                       struct class_widths *c)
{
    c->count = widths_fastest(curve, s->workers, tiles, most, c->best);
    c->serial_ns = curve_ns(curve, 1);
}

/* Strategy 3 must not conflict with strategy 2. */
static void fit_class(const struct cost_curve *curve, const struct fast_width *kind,
                      int tolerance, struct class_widths *c)
{
    c->of_kind = *kind;
    c->of_kind.ns = curve_mode_ns(curve, kind->width, kind->spread);
    for (int i = 0; i < c->count; i++) {
        int apart = abs(c->best[i].width - kind->width);
        c->fitting[i] = apart > 0 && apart > tolerance ? c->of_kind : c->best[i];
    }
}

/* Of strategies that do not have it it is `otherwise`. */
static int given(const struct schedule *s, const char *name, int otherwise)
{
    const graphi_policy_parameter_info *p = parameter_find(s->policy->parameters, name);
    return p ? (int)parameter_value(&s->setting, p) : otherwise;
}

graphi_status widths_open(struct schedule *s, struct widths *out)
{
    const struct tasks *t = s->tasks;
    struct class_widths *classes = out->classes = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *classes);
    struct fast_width *kinds = out->of_kind = schedule_alloc(s, (size_t)t->kinds + 1, sizeof *kinds);
    if (!classes || !kinds)
        return fail_memory("policy", (size_t)t->curves_count * sizeof *classes);
    int tiles = tiles_of(s), most = given(s, "candidates", USUAL_CANDIDATES), tolerance = given(s, "tolerance", 0);
    for (int i = 0; i < t->curves_count; i++)
        rank_class(s, tiles, &t->curves[i], most, &classes[i]);
    for (int32_t task = 0; task < t->count; task++) {
        const struct fast_width *best = &classes[t->curve_of[task]].best[0];
        struct fast_width *kind = &kinds[t->kind[task]];
        if (!kind->width || best->ns > kind->ns)
            *kind = *best;
    }
    for (int32_t task = 0; task < t->count; task++) {
        int32_t curve = t->curve_of[task];
        if (!classes[curve].of_kind.width)
            fit_class(&t->curves[curve], &kinds[t->kind[task]], tolerance, &classes[curve]);
    }
    return GRAPHI_OK;
}
