/* SPDX-License-Identifier: Apache-2.0 */
/* Widths by cost curves: the fastest candidates of every class (strategy 1, and the three of strategy 3), and for each kind
 * the best width of the instance that takes most time (strategy 2), which strategy 3 must not leave by more than its
 * tolerance. Pure functions of the curves; usual size: 100 classes of up to 72 samples, 10 kinds. */
#include "engine/widths.h"

#include "base/status.h"

#include <stdlib.h>

static int tiles_of(const struct schedule *s)
{
    int tiles = 0;
    for (int i = 0; i < s->workers; i++)
        tiles += !s->machine->core || i == 0 || s->machine->core[i].tile != s->machine->core[i - 1].tile;
    return tiles;
}

static void add_candidate(struct class_widths *c, struct candidate candidate, int most)
{
    int at = c->count < most ? c->count++ : most;
    for (; at > 0 && c->best[at - 1].ns > candidate.ns; at--)
        if (at < most)
            c->best[at] = c->best[at - 1];
    if (at < most)
        c->best[at] = candidate;
}

static void rank_class(const struct schedule *s, int tiles, const struct cost_curve *curve, struct class_widths *c)
{
    int most = s->setting.candidates < MOST_CANDIDATES ? s->setting.candidates : MOST_CANDIDATES;
    for (int i = 0; i < curve->samples; i++) {
        int width = curve->width[i];
        if (width > s->workers)
            break;
        add_candidate(c, (struct candidate){width, false, curve->ns[i]}, most);
        if (width > 1 && curve->spread_ns[i] > 0 && width <= tiles)
            add_candidate(c, (struct candidate){width, true, curve->spread_ns[i]}, most);
    }
    if (!c->count)
        c->best[c->count++] = (struct candidate){1, false, curve_ns(curve, 1)};
    c->serial_ns = curve_ns(curve, 1);
}

static double candidate_ns(const struct cost_curve *curve, const struct candidate *c)
{
    return c->spread ? curve_spread_ns(curve, c->width) : curve_ns(curve, c->width);
}

/* Strategy 3 must not conflict with strategy 2. */
static void fit_class(const struct schedule *s, const struct cost_curve *curve, const struct candidate *kind,
                      struct class_widths *c)
{
    c->of_kind = *kind;
    c->of_kind.ns = candidate_ns(curve, kind);
    for (int i = 0; i < c->count; i++) {
        int apart = abs(c->best[i].width - kind->width);
        c->fitting[i] = apart > s->setting.tolerance ? c->of_kind : c->best[i];
    }
}

graphi_status widths_open(struct schedule *s, struct widths *out)
{
    const struct tasks *t = s->tasks;
    struct class_widths *classes = out->classes = schedule_alloc(s, (size_t)t->curves_count + 1, sizeof *classes);
    struct candidate *kinds = out->of_kind = schedule_alloc(s, (size_t)t->kinds + 1, sizeof *kinds);
    if (!classes || !kinds)
        return fail_memory("policy", (size_t)t->curves_count * sizeof *classes);
    int tiles = tiles_of(s);
    for (int i = 0; i < t->curves_count; i++)
        rank_class(s, tiles, &t->curves[i], &classes[i]);
    for (int32_t task = 0; task < t->count; task++) {
        const struct candidate *best = &classes[t->curve_of[task]].best[0];
        struct candidate *kind = &kinds[t->kind[task]];
        if (!kind->width || best->ns > kind->ns)
            *kind = *best;
    }
    for (int32_t task = 0; task < t->count; task++) {
        int32_t curve = t->curve_of[task];
        if (!classes[curve].of_kind.width)
            fit_class(s, &t->curves[curve], &kinds[t->kind[task]], &classes[curve]);
    }
    return GRAPHI_OK;
}
