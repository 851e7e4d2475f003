/* SPDX-License-Identifier: Apache-2.0 */
/* Stores past the caches: that what a plan is asked for reaches its kernels, and that these do it. The bits are the
 * same either way, so no other test sees whether a large result still drives everything else out of the caches. What
 * was written past them is told from what was not by the time of reading it: some KB lie in the level-1 cache, or in
 * memory, which takes ten times as long at least. */
#include "base/isa.h"
#include "engine/plan.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graphi/ops.h"
#include "kernels/norm.h"
#include "kernels/program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fixture.h"

enum { ROWS = 16, C = 64, LINE = 16, LINES = ROWS * C / LINE, ROUNDS = 200, ARRAYS = 8 };

/* A normalization and its gradient between element-wise operations. */
static graphi_graph *network(void)
{
    graphi_graph *g;
    graphi_initializer ones = {.kind = GRAPHI_INIT_CONSTANT, .a = 1};
    graphi_value wrt, gradient;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, C});
    wrt = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){ROWS, C}, &ones);
    graphi_value scale = graphi_parameter(g, "scale", GRAPHI_F32, 1, (int64_t[]){C}, &ones);
    graphi_value y = graphi_batch_norm(g, graphi_tanh(g, graphi_mul(g, x, wrt)), scale, scale, 1e-5);
    graphi_value loss = graphi_reduce_sum(g, graphi_exp(g, y), NULL, 0, 0);
    check_ok(graphi_gradients(g, loss, 1, &wrt, &gradient));
    graphi_output(g, "w'", gradient);
    return g;
}

/* How many tasks have kernels that write past the caches or not: [element-wise, normalization][does]. */
static void count(const graphi_plan *plan, int counts[2][2])
{
    memset(counts, 0, sizeof(int[2][2]));
    for (int32_t t = 0; t < plan->compiled->tasks; t++) {
        const struct bound *task = &plan->compiled->task[t];
        const char *kind = graph_node(plan->compiled->graph, task->node)->kind->name;
        if (!strcmp(kind, "tanh") || !strcmp(kind, "exp") || !strcmp(kind, "program"))
            counts[0][((const struct program_code *)task->kernel.params)->stream]++;
        if (!strncmp(kind, "batch_norm", strlen("batch_norm")))
            counts[1][((const struct norm_params *)task->kernel.params)->far]++;
    }
}

/* The option was lost on the way from the plan to a kernel, fused or alone. */
static void plans_hand_it_to_their_kernels(void **state)
{
    static const struct {
        graphi_streaming streaming;
        bool does;
    } cases[] = {{GRAPHI_STREAM_ALWAYS, true}, {GRAPHI_STREAM_NEVER, false}, {GRAPHI_STREAM_BY_SIZE, false}};
    graphi_graph *g = network();
    for (int i = 0; i < 6; i++) {
        const graphi_plan_options options = {.streaming = cases[i / 2].streaming, .disable = i % 2 ? "all" : NULL};
        graphi_plan *plan;
        int counts[2][2];
        check_ok(graphi_plan_create(g, machine, &options, &plan));
        count(plan, counts);
        assert_true(counts[0][cases[i / 2].does] >= 2 && counts[1][cases[i / 2].does] == 2);
        assert_true(!counts[0][!cases[i / 2].does] && !counts[1][!cases[i / 2].does]);
        graphi_plan_destroy(plan);
    }
    graphi_graph_destroy(g);
}

/* Nanoseconds to read a number of each line of y, each after the one before, which `zero` makes believe it needs. */
static double reading(const float *y, uint32_t zero)
{
    struct timespec begin, end;
    uint32_t at = 0, bits;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < LINES; i++) {
        memcpy(&bits, y + LINE * at, sizeof bits);
        at = (at + 29 + (bits & zero)) % LINES;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(at, 29 * LINES % LINES);
    return 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
}

/* The least time of reading what the kernel has just written, to out[0]. */
static double after(const struct kernel *kernel, const struct kernel_array *in, const struct kernel_array *out)
{
    static volatile uint32_t zero;
    double least_ns = INFINITY;
    struct kernel_call call = {.in = in, .out = out, .params = kernel->params,
                               .workspace = aligned_alloc(64, (kernel->workspace + 64) / 64 * 64)};
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(kernel_run_serial(kernel, &call), GRAPHI_OK);
        least_ns = fmin(least_ns, reading(out->data, zero));
    }
    free(call.workspace);
    return least_ns;
}

enum which { PROGRAM, NORM, NORM_GRADIENT, KERNELS };

static void make(enum which which, graphi_streaming streaming, enum isa isa, struct kernel *kernel)
{
    const struct array_desc desc = array_dense(GRAPHI_F32, 2, (int64_t[]){ROWS, C});
    struct program program = {.inputs = 1, .outputs = 1, .instructions = 1};
    struct norm_spec norm = {.kind = which == NORM ? NORM_BATCH : NORM_BATCH_GRADIENT, .rows = ROWS, .c = C, .ldx = C,
                             .lddy = C, .ldy = C, .epsilon = 1e-5, .streaming = streaming};
    program.code[0] = (struct program_instruction){.op = PROGRAM_NEG, .a = 0, .b = -1, .c = -1};
    program.output[0] = 1;
    if (which != PROGRAM) {
        check_ok(norm_bind(&norm, isa, kernel));
        return;
    }
    check_ok(program_bind(&program, &desc, &desc, isa, kernel));
    program_stream(kernel, &desc, streaming);
}

/* Kernels that are asked to write past the caches, and do not, or do where they are not asked. */
static void kernels_do_it(void **state)
{
    float *memory = aligned_alloc(64, ARRAYS * sizeof(float) * ROWS * C);
    struct kernel_array array[ARRAYS];
    for (int i = 0; i < ARRAYS; i++)
        array[i] = (struct kernel_array){memory + i * ROWS * C, ROWS};
    for (int i = 0; i < ARRAYS * ROWS * C; i++)
        memory[i] = (float)(i % 97);
    for (int isa = ISA_PLAIN + 1; isa <= (int)isa_detect(); isa++)
        for (int which = 0; which < KERNELS; which++) {
            double ns[2];
            for (int streams = 0; streams < 2; streams++) {
                struct kernel kernel;
                make((enum which)which, streams ? GRAPHI_STREAM_ALWAYS : GRAPHI_STREAM_NEVER, (enum isa)isa, &kernel);
                ns[streams] = after(&kernel, array, array + 5);
                kernel_fini(&kernel);
            }
            if (ns[1] < 2 * ns[0])
                fail_msg("%s, kernel %d: read in %.0f ns, past the caches in %.0f", isa_name((enum isa)isa), which,
                         ns[0], ns[1]);
        }
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_hand_it_to_their_kernels),
        cmocka_unit_test(kernels_do_it),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
