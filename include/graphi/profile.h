/* SPDX-License-Identifier: Apache-2.0 */
/* A companion of graphi/plan.h: performance models of operation classes. What a plan knows of each class (kind, shapes,
 * dtype), its time at every width in both affinity modes, and how those times are found: hill climbing, exhaustive
 * search, share by share for cores that are not there. Source: concurrency-control.txt III. */
#ifndef GRAPHI_PROFILE_H
#define GRAPHI_PROFILE_H

#include "graphi/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, "name", "what is counted over one execution on one core") */
#define GRAPHI_COUNTER_LIST(X)                                                                                         \
    X(CYCLES, "cycles", "core cycles")                                                                                 \
    X(INSTRUCTIONS, "instructions", "instructions retired")                                                            \
    X(LLC_ACCESSES, "llc_accesses", "accesses to the last cache level")                                                \
    X(LLC_MISSES, "llc_misses", "misses of the last cache level")                                                      \
    X(L1_HITS, "l1_hits", "reads served by the first cache level")

typedef enum graphi_counter {
#define X(name, text, summary) GRAPHI_COUNTER_##name,
    GRAPHI_COUNTER_LIST(X)
#undef X
        GRAPHI_COUNTERS
} graphi_counter;

/* As in the list; "unknown" for none. */
static inline const char *graphi_counter_name(graphi_counter counter)
{
    static const char *const name[] = {
#define X(name, text, summary) text,
        GRAPHI_COUNTER_LIST(X)
#undef X
    };
    return (unsigned)counter < GRAPHI_COUNTERS ? name[counter] : "unknown";
}

/* Where a curve comes from. X(NAME, "as --explain shows it") */
#define GRAPHI_CURVE_SOURCE_LIST(X)                                                                                    \
    X(MODELLED, "modelled")   /* from the kernel's work and the machine's rates */                                     \
    X(MEASURED, "measured")   /* for this plan */                                                                      \
    X(STORED, "stored")       /* measured for another one (graphi/curves.h) */                                         \
    X(PREDICTED, "predicted") /* by a model with a name */

typedef enum graphi_curve_source {
#define X(name, text) GRAPHI_CURVE_##name,
    GRAPHI_CURVE_SOURCE_LIST(X)
#undef X
        GRAPHI_CURVE_SOURCES
} graphi_curve_source;

/* One class of operations of a plan. */
typedef struct graphi_class {
    char kind[64], kernel[32], shapes[160];
    int64_t operations;         /* of this class in the graph */
    double flops, bytes;        /* of one operation */
    int phases, shares;         /* shares: most of any phase; a team wider than that gains nothing */
    double serial_ns;           /* on one core */
    graphi_curve_source source; /* of its times */
    uint64_t key;               /* the same for this class in every plan (graphi/curves.h) */
    int best_width;             /* with the least time */
    bool best_spread;           /* one worker a tile */
} graphi_class;

/* The i-th class; false past the end, *out untouched. Any thread. */
GRAPHI_API bool graphi_plan_class_at(const graphi_plan *plan, int i, graphi_class *out);

/* Time in ns of the i-th class at `width` workers of `machine` (NULL: the plan's), one worker a tile when `spread`.
 * *extrapolated (may be NULL): the width lies beyond what was measured. Below 0 past the end. Any thread. */
GRAPHI_API double graphi_plan_class_ns(const graphi_plan *plan, int i, const graphi_machine *machine, int width,
                                       bool spread, bool *extrapolated);

/* Samples of hill climbing. Widths ascend; a time of 0 was not measured. */
enum { GRAPHI_CLIMB_SAMPLES = 72 };
typedef struct graphi_climb {
    int samples;
    int width[GRAPHI_CLIMB_SAMPLES];
    double compact_ns[GRAPHI_CLIMB_SAMPLES], spread_ns[GRAPHI_CLIMB_SAMPLES];
    int best_width; /* with the least measured time of both modes */
    bool best_spread;
    double best_ns;
    int measurements; /* what the search cost */
    int interval;     /* of the search */
} graphi_climb;

/* Climbs over the times that `measure` gives (ns; called once a width and mode) on a machine of `cores` in `tiles`:
 * widths 1, 1 + interval, ... in both modes until the time is 5 % above the least. interval 0: the default, 4 (less
 * below 32 cores). exhaustive: an interval of 1, no stop. Where GRAPHI_CLIMB_SAMPLES are too few for the widths of both
 * modes the interval is the least for which they are enough (out->interval). Where tiles are shared, compact widths
 * other than 1 are even. Never fails. */
GRAPHI_API void graphi_climb_search(int cores, int tiles, int interval, bool exhaustive,
                                    double (*measure)(void *context, int width, bool spread), void *context,
                                    graphi_climb *out);

typedef struct graphi_profile_options {
    double seconds;  /* budget; every class is measured at least once whatever it is. 0: as little as that */
    int interval;    /* of hill climbing; 0: the default */
    bool exhaustive; /* every width, as far as graphi_climb_search has it */
    /* Widths of this machine instead of the plan's: every share is timed on one core, and barriers, caches and
     * bandwidth are added as docs/simulator.md says; the returned plan is for simulation on it. */
    const graphi_machine *machine;
    graphi_curves *curves;       /* as in graphi_tune_options; of that machine */
    bool (*stop)(void *context); /* as in graphi_tune_options */
    /* Called after each round of executions from the profiling thread: what it runs sees the machine of the same
     * seconds; an error ends profiling. There is at least one round, none where `curves` know every class (as there).
     * Not for another machine. NULL: nothing. */
    graphi_status (*between)(void *context);
    void *context;
} graphi_profile_options;

/* Measures all classes and returns the plan with the measured times, the caller's, its setting unchanged (chosen anew
 * for another machine, for which the graph is compiled again unless something was added to it since). Inputs, state and
 * threads as in graphi_plan_tune; options NULL: the defaults. Errors, *out untouched: UNSUPPORTED, a plan for a
 * described machine; as graphi_plan_tune; what `between` gave. */
GRAPHI_API graphi_status graphi_plan_profile(const graphi_plan *plan, graphi_state *state,
                                             const graphi_profile_options *options, graphi_plan **out);

/* Hardware counters of every class over one execution on one core: counts[class * GRAPHI_COUNTERS + counter], room for
 * `classes` of them, below 0 where the counter does not exist here or had no turn. UNSUPPORTED, with the reason, when
 * the kernel or a virtual machine gives none at all: classes then have flops, bytes, shares and times as features
 * (docs/curves.md); also for a described machine. Inputs, state and threads as in graphi_plan_tune. Other errors: as
 * graphi_run_execute. */
GRAPHI_API graphi_status graphi_plan_count(const graphi_plan *plan, graphi_state *state, int classes, double *counts);

#ifdef __cplusplus
}
#endif
#endif
