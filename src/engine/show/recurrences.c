/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences in --explain: the schedule that was chosen, reuse of weights and the roofline of a step (deepcpu.txt 3
 * and 5.2.3). Figures are by the rates that estimates use (cost.h); a byte from level 2 takes the time of one
 * operation. One thread; a plan has a few of them. */
#include "engine/show/recurrences.h"

#include "engine/choose/planning.h"
#include "engine/cost/cost.h"
#include "graph/op.h"
#include "machine/machine.h"
#include "ops/recurrence.h"
#include "passes/sequences.h"

#include <math.h>

/* A recurrence as it is bound. */
struct loop {
    struct recurrence_spec spec;
    const struct kernel *kernel;
    int64_t batch, steps;
    double units, columns, weights; /* bytes of weights that a step reads */
    int members;                    /* that have shares */
};

static bool find_loop(const graphi_plan *plan, int32_t task, struct loop *l)
{
    const struct compiled *c = plan->compiled;
    const struct bound *bound = &c->task[task];
    const struct node *node = graph_node(c->graph, bound->node);
    if (!node_is(node, IS_RECURRENCE))
        return false;
    *l = (struct loop){.spec = recurrence_spec_of(node), .kernel = &bound->kernel};
    l->batch = graph_value(c->graph, node->input[RECURRENT_H0])->type.dims[0];
    l->steps = bound->kernel.most_steps;
    l->units = (double)l->spec.units;
    l->columns = recurrence_gates(l->spec.cell) * l->units;
    l->weights = (l->spec.half ? 2 : 4) * l->units * l->columns;
    const int width = plan->setting.width > 0 ? plan->setting.width : 1;
    l->members = width < bound->kernel.shares[0] ? width : bound->kernel.shares[0];
    return true;
}

static void explain_schedule(const struct loop *l, struct text *text)
{
    const struct recurrence_cut *cut = &l->spec.cut;
    const int rows = cut->rows > 1 ? cut->rows : 1, k = cut->k > 1 ? cut->k : 1;
    const int units = l->kernel->shares[0] / rows / k;
    text_add(text, "%s, %d x %d x %d parts of rows, units, k", rows * k > 1 ? "partitioned" : "streamlined", rows,
             units, k);
    if (l->kernel->apart)
        text_add(text, ", no barrier between steps");
    else
        text_add(text, ", %d barrier%s a step", l->kernel->phases, l->kernel->phases > 1 ? "s" : "");
}

static void explain_bound(const graphi_plan *plan, const struct loop *l, struct text *text)
{
    const struct cost_rates rate = cost_rates(plan->machine);
    const int rows = l->spec.cut.rows > 1 ? l->spec.cut.rows : 1;
    const double level2 = (double)plan->machine->l2_bytes, own = l->weights * rows / l->members;
    const bool stays = own <= level2 || level2 <= 0;
    const double arithmetic = 2.0 * (double)l->batch * l->units * l->columns / l->members / rate.core_gflops;
    const double reading = own / (stays ? rate.core_gflops : rate.core_gbs);
    const double barrier = l->members > 1 && !l->kernel->apart ? l->kernel->phases * rate.barrier_ns : 0;
    text_add(text, "; weights %.3f MB, %.3f MB each of %d member%s, which %s its level 2: used %lld times there",
             l->weights / 1e6, own / 1e6, l->members, l->members > 1 ? "s" : "", stays ? "stay in" : "are more than",
             (long long)(stays ? l->steps : 1));
    text_add(text,
             "; a step is bound by %s: arithmetic %.2f us, weights %.2f us, barriers %.2f us, %lld steps %.3f ms\n",
             arithmetic > reading ? "arithmetic" : "its weights", arithmetic / 1e3, reading / 1e3, barrier / 1e3,
             (long long)l->steps, (double)l->steps * (fmax(arithmetic, reading) + barrier) / 1e6);
}

void explain_recurrences(const graphi_plan *plan, struct text *text)
{
    static const char *const cells[] = {"lstm", "gru", "rnn"};
    const struct compiled *c = plan->compiled;
    const char *asked = c->sequences ? c->sequences : "auto";
    bool any = false;
    for (int32_t t = 0; t < c->tasks; t++) {
        struct loop l;
        if (!find_loop(plan, t, &l))
            continue;
        text_add(text, "%s %d of %lld units, batch %lld, at most %lld steps (--sequences %s): ", cells[l.spec.cell],
                 (int)t, (long long)l.spec.units, (long long)l.batch, (long long)l.steps, asked);
        explain_schedule(&l, text);
        explain_bound(plan, &l, text);
        any = true;
    }
    if (!any && c->sequences)
        text_add(text, "no recurrence is one operation (--sequences %s)\n", asked);
}
