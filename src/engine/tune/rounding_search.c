/* SPDX-License-Identifier: Apache-2.0 */
/* What the search compares is the whole step under the setting that each form is given statically; the
 * setting is tuned afterwards, for the winner alone. A form must be faster by more than the race's margin and noise, so
 * bits change for a gain only. Usual size: five forms, two of which change nothing in a given graph. One thread. */
#include "engine/tune/rounding_search.h"

#include "base/clock.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/compile/compile.h"
#include "engine/compile/rounding.h"
#include "engine/run/execute.h"
#include "engine/tune/race.h"
#include "engine/tune/trial.h"
#include "graph/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A form that is alive. Its packed parameters go with its state. */
struct entrant {
    graphi_plan *plan;
    graphi_state *state;
    struct trial trial;
};

/* Also where they were unrolled before. */
static bool has_recurrences(const struct compiled *c)
{
    for (size_t i = 0; i < c->source->nodes.count; i++)
        if (node_is(graph_node(c->source, (int32_t)i), IS_RECURRENCE))
            return true;
    return false;
}

struct search {
    const graphi_plan *base;
    const graphi_state *state;      /* the user's: what it was fed is what entrants are fed */
    const graphi_setting *setting;
    const struct patience *patience;
    struct patience match;          /* of the two that run now */
    struct entrant *entrant[2];     /* the best so far; who is compared with it */
    struct race race;
};

static void entrant_close(struct entrant *e)
{
    trial_close(&e->trial);
    graphi_state_destroy(e->state);
    graphi_plan_destroy(e->plan);
    *e = (struct entrant){0};
}

static graphi_status entrant_run(const struct search *s, struct entrant *e)
{
    TRY(patience_stopped(s->patience));
    return graphi_run_execute(e->trial.run);
}

/* With one execution, which makes the packed forms and takes the pages. */
static graphi_status entrant_open(const struct search *s, struct entrant *e)
{
    TRY(graphi_state_create(s->base->compiled->source, s->state->seed, &e->state));
    TRY(trial_open(e->plan, e->state, s->state, &e->trial));
    TRY(entrant_run(s, e));
    trial_restore(&e->trial);
    return GRAPHI_OK;
}

static graphi_status compile(const struct search *s, uint32_t forms, graphi_plan **out)
{
    const struct compiled *c = s->base->compiled;
    graphi_plan_options options = c->options;
    options.setting = *s->setting;
    return plan_compile(c->source, c->machine, &options, forms, out);
}

static graphi_status run_once(void *context, int racer, double *ns)
{
    struct search *s = context;
    TRY(entrant_run(s, s->entrant[racer]));
    *ns = run_own_ns(s->entrant[racer]->trial.run);
    return GRAPHI_OK;
}

static double left_ns(void *context)
{
    const struct search *s = context;
    return (double)(s->match.deadline - clock_ns());
}

static void rested(void *context, const struct race *race)
{
    const struct search *s = context;
    for (int i = 0; i < race->count; i++)
        trial_restore(&s->entrant[i]->trial);
}

/* The first execution takes longer than others, by much where steps are short. */
static double expected_ns(const struct entrant *e)
{
    return fmin(run_own_ns(e->trial.run), e->plan->predicted_ns);
}

/* An even part of the time left, but what a decision takes: rather some forms decided than none. */
static void match_deadline(struct search *s, int forms_left)
{
    int64_t now = clock_ns(), left = s->patience->deadline - now;
    double decided = 1.5 * RACE_FAIR * (expected_ns(s->entrant[0]) + expected_ns(s->entrant[1]));
    s->match.deadline = now + (int64_t)fmin((double)left, fmax((double)left / forms_left, decided));
}

/* The challenger takes the lead only if it is certainly faster. */
static graphi_status match(struct search *s)
{
    s->race = (struct race){.count = 2, .run = run_once, .left_ns = left_ns, .rested = rested, .context = s};
    for (int i = 0; i < 2; i++)
        s->race.racer[i] = (struct racer){.order = i, .predicted_ns = expected_ns(s->entrant[i])};
    return race_run(&s->race);
}

static void tell(const struct search *s, void (*progress)(void *, const char *), const char *name, struct text *why)
{
    char text[200];
    const struct race *race = &s->race;
    if (!race->decided)
        snprintf(text, sizeof text, "no time for %d rounds", RACE_FEWEST);
    else
        snprintf(text, sizeof text, "%.3f ms, %.3f ms without it (%d rounds): %s", race_median(race, 1) / 1e6,
                 race_median(race, 0) / 1e6, race->racer[1].rounds, race->winner == 1 ? "taken" : "not faster");
    text_add(why, "  %-20s %s\n", name, text);
    if (progress) {
        char line[256];
        snprintf(line, sizeof line, "tuning: %s: %s", name, text);
        progress(s->patience->context, line);
    }
}

bool rounding_searched(const struct compiled *c)
{
    return c->options.allow_rounding || has_recurrences(c);
}

/* What the user asked for by name stays. */
static bool eligible(const struct compiled *c, const struct rounding_form *form)
{
    if (form->sequences)
        return !c->options.sequences;
    return form->passes ? !c->options.disable : !(c->options.conv_error > 0);
}

/* One form on top of the best so far, if such forms are tried at all; *took: it is the best now. */
static graphi_status challenge(struct search *s, int form, void (*progress)(void *, const char *), struct text *why)
{
    const struct rounding_form *f = &rounding_forms[form];
    struct entrant *best = s->entrant[0], *other = s->entrant[1];
    if (f->sequences ? !has_recurrences(s->base->compiled) : !s->base->compiled->options.allow_rounding)
        return GRAPHI_OK;
    const char *left = !eligible(s->base->compiled, f) ? "left as asked for"
                       : patience_over(s->patience)    ? "no time"
                                                       : NULL;
    if (left) {
        text_add(why, "  %-20s %s\n", f->name, left);
        return GRAPHI_OK;
    }
    TRY(compile(s, rounding_with(best->plan->compiled->rounding, form), &other->plan));
    if (other->plan->compiled->form == best->plan->compiled->form) {
        text_add(why, "  %-20s changes nothing here\n", f->name);
        entrant_close(other);
        return GRAPHI_OK;
    }
    if (!best->trial.run)
        TRY(entrant_open(s, best));
    TRY(entrant_open(s, other));
    match_deadline(s, ROUNDING_FORMS - form);
    TRY(match(s));
    tell(s, progress, f->name, why);
    if (s->race.winner == 1) {
        s->entrant[0] = other;
        s->entrant[1] = best;
    }
    entrant_close(s->entrant[1]);
    return GRAPHI_OK;
}

graphi_status rounding_search(const graphi_plan *plan, const graphi_state *state, const graphi_setting *setting,
                              const struct patience *patience, void (*progress)(void *context, const char *text),
                              graphi_plan **better, struct text *why)
{
    struct entrant entrants[2] = {{0}};
    if (!compiled_source_unchanged(plan->compiled)) {
        text_add(why, "forms that round otherwise: left, for the graph was added to since the plan was made\n");
        return GRAPHI_OK;
    }
    struct search *s = mem_zalloc(sizeof *s);
    if (!s)
        return fail_memory("tuning", sizeof *s);
    *s = (struct search){.base = plan, .state = state, .setting = setting, .patience = patience,
                         .entrant = {&entrants[0], &entrants[1]}};
    text_add(why, "forms%s, each on top of what was taken before (median ms):\n",
             plan->compiled->options.allow_rounding ? " that round otherwise (--allow-rounding)" : "");
    graphi_status status = plan->compiled->rounding
                               ? compile(s, 0, &entrants[0].plan)
                               : plan_make(plan->compiled,
                                           &(struct plan_parts){.machine = plan->machine, .setting = setting},
                                           &entrants[0].plan);
    for (int form = 0; form < ROUNDING_FORMS && !status; form++)
        status = challenge(s, form, progress, why);
    if (!status && s->entrant[0]->plan->compiled->rounding != plan->compiled->rounding) {
        trial_close(&s->entrant[0]->trial); /* before the plan that it runs is another's */
        *better = s->entrant[0]->plan;
        s->entrant[0]->plan = NULL;
    }
    entrant_close(&entrants[0]);
    entrant_close(&entrants[1]);
    mem_free(s);
    return status;
}
