/* SPDX-License-Identifier: Apache-2.0 */
/* A plan made of another: the same compiled graph under another setting, on another machine, by other curves. */
#include "base/memory.h"
#include "base/status.h"
#include "engine/choose/planning.h"
#include "engine/compile/classes.h"

#include <string.h>

/* Of the new plan, one a class. */
struct changed {
    struct cost_curve *curves;
    struct cost_curve *observed; /* measured ones, by which time passes, where `curves` are a model's */
    int32_t known, sound;        /* classes of the set; measured ones of which nobody disturbed */
};

static graphi_status check(const graphi_plan_change *change, const graphi_machine *machine)
{
    if (change->curves)
        return curve_set_check(change->curves, machine, change->model);
    return change->model ? fail(GRAPHI_INVALID, "plan", "found the model '%.40s' without curves, expected a set that "
                                "has some by it", change->model)
                         : GRAPHI_OK;
}

/* What the set knows takes the place of what was measured before; a model's curves then direct. */
static void take_known(const graphi_plan *plan, const graphi_plan_change *change, struct changed *c)
{
    for (int32_t k = 0; k < plan->compiled->curves; k++) {
        const uint64_t key = class_key_at(plan_class_keys(plan), k);
        c->curves[k] = c->observed[k];
        curve_set_replace(change->curves, key, NULL, &c->observed[k]);
        c->known += curve_set_replace(change->curves, key, change->model, &c->curves[k]);
        c->sound += !change->model && curve_set_is_sound(change->curves, key);
    }
}

static graphi_status make(const graphi_plan *plan, const graphi_plan_change *change, const graphi_machine *machine,
                          struct changed *c, graphi_plan **out)
{
    const int32_t classes = plan->compiled->curves;
    const bool here = machine == plan->machine;
    const bool directed = change->curves ? change->model != NULL : here && plan->observed;
    classes_extend(plan, machine, c->curves);
    memcpy(c->observed, here && plan->observed ? plan->observed : c->curves, (size_t)classes * sizeof *c->observed);
    if (change->curves)
        take_known(plan, change, c);
    const graphi_setting own = graphi_decision_setting(&plan->setting);
    const struct plan_parts parts = {
        .machine = machine,
        .curves = c->curves,
        .observed = directed ? c->observed : NULL,
        .measured = plan->measured || (change->curves && !change->model && c->known == classes),
        .setting = change->setting ? change->setting : &own};
    TRY(plan_make(plan->compiled, &parts, out));
    const bool sound = change->curves && c->sound == classes; /* else some times are the plan's still, or as bad */
    (*out)->others = sound ? 0 : plan->others;
    (*out)->disturbed = sound ? 0 : plan->disturbed;
    if (change->curves)
        text_add(&(*out)->why, "curves of %d of %d classes are %s%s, from %s\n", (int)c->known, (int)classes,
                 change->model ? "those of " : "stored", change->model ? change->model : "",
                 curve_set_name(change->curves));
    return GRAPHI_OK;
}

graphi_status graphi_plan_with(const graphi_plan *plan, const graphi_plan_change *change, graphi_plan **out)
{
    GIVEN(plan);
    GIVEN(out);
    static const graphi_plan_change nothing;
    const size_t classes = (size_t)plan->compiled->curves + 1;
    struct changed c = {0};
    change = change ? change : &nothing;
    const graphi_machine *machine = change->machine ? change->machine : plan->machine;
    TRY(check(change, machine));
    c.curves = mem_zalloc_array(2 * classes, sizeof *c.curves);
    if (!c.curves)
        return fail_memory("plan", 2 * classes * sizeof *c.curves);
    c.observed = c.curves + classes;
    graphi_status status = make(plan, change, machine, &c, out);
    mem_free(c.curves);
    return status;
}
