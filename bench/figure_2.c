/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt Figures 2 and 3: one matrix product [64,512] x [512,512] and one product of 32,768 elements over the
 * number of threads, and many of them at once on executors of several widths, pinned and placed by the system;
 * simulated. The description of the machine is made from what the paper says of these figures (gains end at 8 and at 16
 * threads, pinning gains up to 45 %), so those rows show that the model says it too; that the best of Figure 3 is more
 * than 6 times the speed of one operation on all cores follows from them. `op-scaling` and `pinning` measure the cores
 * at hand. */
#include "study.h"

#include "graphi/ops.h"

#include <math.h>
#include <string.h>

enum { COPIES = 512, CORES = 64 };

static const struct operation {
    const char *name;
    int64_t inner; /* of a matrix product; 0: element by element */
    double flops;
    int saturates;
} operations[] = {{"GEMM [64,512]x[512,512]", 512, 2.0 * 64 * 512 * 512, 8}, {"multiply 32768 elements", 0, 32768, 16}};

/* Independent copies, each on operands of its own. */
static graphi_status build(const struct operation *op, graphi_graph **out)
{
    graphi_graph *g;
    graphi_status status = graphi_graph_create(&g);
    if (status)
        return report_failure(status);
    const int64_t left[] = {64, 512}, right[] = {op->inner ? op->inner : 64, 512};
    for (int i = 0; i < COPIES; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%d", i);
        graphi_value x = graphi_input(g, name, GRAPHI_F32, 2, left);
        snprintf(name, sizeof name, "w%d", i);
        graphi_value w = graphi_input(g, name, GRAPHI_F32, 2, right);
        snprintf(name, sizeof name, "y%d", i);
        graphi_output(g, name, op->inner ? graphi_matmul(g, x, w, 0, 0) : graphi_mul(g, x, w));
    }
    status = graphi_graph_status(g);
    if (status)
        graphi_graph_destroy(g);
    *out = g;
    return status ? report_failure(status) : GRAPHI_OK;
}

static json_t *last_row(struct bench *bench)
{
    return json_array_get(bench->result.rows, json_array_size(bench->result.rows) - 1);
}

/* Figure 2. Returns the time with 64 threads, or as many as there are, in ms. */
static double alone(struct study *s, const struct operation *op)
{
    double least = 0, ms = 0, times[8];
    int widths = 0, saturated = 0;
    for (int width = 1; width <= CORES; width *= 2) {
        char id[96], base[96], label[32];
        snprintf(label, sizeof label, "one with %d threads", width);
        if (!study_fits(s, label, 1, width))
            continue;
        ms = graphi_plan_class_ns(s->plan, 0, s->machine, width, false, NULL) / 1e6;
        snprintf(id, sizeof id, "%s: one with %d threads", op->name, width);
        snprintf(base, sizeof base, "%s: one with 1 threads", op->name);
        study_operation(s->bench, id, width, ms, width > 1 ? base : NULL, times[0]);
        result_rate(last_row(s->bench), (struct rating){.flops = op->flops}, ms);
        times[widths++] = ms;
        least = least > 0 ? fmin(least, ms) : ms;
    }
    for (int i = widths - 1; i >= 0; i--)
        saturated = times[i] < 1.02 * least ? 1 << i : saturated;
    result_note(&s->bench->result, "%s (simulated): gains end at %d threads; Figure 2: at %d", op->name, saturated,
                op->saturates);
    return ms;
}

/* Figure 3, against the time of one operation on all cores. */
static graphi_status together(struct study *s, const struct operation *op, double one_ms)
{
    double best = 0, gain = 0;
    graphi_status status = GRAPHI_OK;
    for (int executors = 1; executors <= CORES && !status; executors *= 2) {
        graphi_simulation pinned, placed;
        char label[64], base[64];
        graphi_setting setting = study_setting(GRAPHI_POLICY_CRITICAL_PATH, executors, CORES / executors);
        snprintf(label, sizeof label, "%d, %dx%d placed by the system", COPIES, executors, CORES / executors);
        snprintf(base, sizeof base, "%d, %dx%d pinned", COPIES, executors, CORES / executors);
        bool fits = study_fits(s, base, executors, CORES / executors);
        if (!study_fits(s, label, executors, CORES / executors) || !fits)
            continue;
        status = study_row(s, base, &setting, NULL, 0, &pinned);
        if (!status)
            result_rate(last_row(s->bench), (struct rating){.flops = op->flops * COPIES}, pinned.makespan_ms);
        setting.pin = GRAPHI_OFF;
        if (!status)
            status = study_row(s, label, &setting, base, pinned.makespan_ms, &placed);
        if (status)
            return status;
        result_rate(last_row(s->bench), (struct rating){.flops = op->flops * COPIES}, placed.makespan_ms);
        best = fmax(best, one_ms * COPIES / pinned.makespan_ms);
        gain = fmax(gain, placed.makespan_ms / pinned.makespan_ms - 1);
    }
    if (best <= 0)
        return GRAPHI_OK;
    result_note(&s->bench->result,
                "%s (simulated): many at once reach %.1f times the speed of one on %d cores; graphi.txt: more than 6. "
                "Pinning gains up to "
                "%.0f %%; Figure 3: up to 45 %%",
                op->name, best, CORES, 100 * gain);
    if (op->inner)
        result_goal(&s->bench->result, "many small products at once over one on all cores", best, 6, true);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; i < sizeof operations / sizeof *operations && !status; i++) {
        struct study s;
        graphi_graph *graph = NULL;
        status = build(&operations[i], &graph);
        if (status)
            break;
        status = study_open_graph(bench, operations[i].name, graph, &s);
        if (!status)
            status = together(&s, &operations[i], alone(&s, &operations[i]));
        study_close(&s);
    }
    return status;
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-2", run);
}
