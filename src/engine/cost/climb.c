/* SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing: which widths are tried, when a mode stops, and both modes as one curve. Pure logic; measuring is
 * measure.c's and profile.c's. Usual size: 18 widths a mode on 68 cores at x = 4. */
#include "engine/cost/climb.h"

/* A kernel is cut into a fixed number of shares, so its time is a staircase: between two steps a wider team gains
 * nothing and pays a little more for its barriers. A climb that stopped there would end on the first landing; and
 * measurements scatter. */
static const double significant_rise = 0.05;

static int widths(const struct climb_limits *l)
{
    int count = 0;
    for (int spread = 0; spread < 2; spread++)
        for (int width = climb_after(l, spread, 0); width && count <= CURVE_SAMPLES;
             width = climb_after(l, spread, width))
            count++;
    return count;
}

struct climb_limits climb_limits(int cores, int tiles, int interval, bool exhaustive)
{
    cores = cores > 0 ? cores : 1;
    struct climb_limits l = {.cores = cores,
                             .tiles = tiles > 0 && tiles < cores ? tiles : cores,
                             .interval = interval,
                             .exhaustive = exhaustive};
    if (interval <= 0)
        l.interval = cores >= 32 ? 4 : cores >= 8 ? cores / 8 : 1;
    if (exhaustive)
        l.interval = 1;
    if (l.interval > cores) /* the last width follows the first in any case */
        l.interval = cores;
    while (widths(&l) > CURVE_SAMPLES) /* what a curve cannot hold is not tried */
        l.interval++;
    return l;
}

int climb_after(const struct climb_limits *l, bool spread, int width)
{
    bool shared = l->tiles < l->cores;
    int end = spread ? l->tiles : l->cores;
    if (spread && !shared)
        return 0;
    if (width == 0)
        return 1;
    if (width >= end)
        return 0;
    if (spread || !shared)
        return width + l->interval < end ? width + l->interval : end;
    /* even, along 1 + k x: half-used tiles are not tried */
    int k = (width - 1) / l->interval + 1, next = 0;
    for (; next <= width; k++)
        next = (1 + k * l->interval) & ~1;
    return next < end ? next : end;
}

int climb_next(const struct climb_limits *l, const struct climb *climb, bool spread)
{
    const struct climb_mode *m = &climb->mode[spread];
    return m->done ? 0 : climb_after(l, spread, m->samples ? m->width[m->samples - 1] : 0);
}

void climb_add(const struct climb_limits *l, struct climb *climb, bool spread, int width, double ns)
{
    struct climb_mode *m = &climb->mode[spread];
    if (m->samples == CURVE_SAMPLES)
        return;
    bool rises = m->samples && ns > (1 + significant_rise) * m->least;
    m->least = m->samples && m->least < ns ? m->least : ns;
    m->width[m->samples] = width;
    m->ns[m->samples++] = ns > LEAST_NS ? ns : LEAST_NS;
    m->done = (rises && !l->exhaustive) || m->samples == CURVE_SAMPLES || !climb_after(l, spread, width);
}

static double compact_at(const struct climb_mode *m, int width)
{
    int i = 0;
    while (i < m->samples && m->width[i] < width)
        i++;
    if (i == m->samples)
        return m->ns[i - 1];
    if (i == 0 || m->width[i] == width)
        return m->ns[i];
    double t = (double)(width - m->width[i - 1]) / (m->width[i] - m->width[i - 1]);
    return m->ns[i - 1] + t * (m->ns[i] - m->ns[i - 1]);
}

void climb_curve(const struct climb *climb, struct cost_curve *curve)
{
    const struct climb_mode *compact = &climb->mode[0], *spread = &climb->mode[1];
    *curve = (struct cost_curve){.source = GRAPHI_CURVE_MEASURED,
                                 .last = compact->width[compact->samples - 1],
                                 .spread_last = spread->samples ? spread->width[spread->samples - 1] : 0};
    for (int i = 0, k = 0; (i < compact->samples || k < spread->samples) && curve->samples < CURVE_SAMPLES;) {
        bool has_compact = i < compact->samples && (k == spread->samples || compact->width[i] <= spread->width[k]);
        bool has_spread = k < spread->samples && (i == compact->samples || spread->width[k] <= compact->width[i]);
        int at = curve->samples++, width = has_compact ? compact->width[i] : spread->width[k];
        curve->width[at] = width;
        curve->ns[at] = has_compact ? compact->ns[i] : compact_at(compact, width);
        curve->spread_ns[at] = has_spread ? spread->ns[k] : 0;
        if (has_compact && (at == 0 || curve->ns[at] < curve_ns(curve, curve->best)))
            curve->best = width;
        i += has_compact;
        k += has_spread;
    }
}
