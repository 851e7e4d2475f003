/* SPDX-License-Identifier: Apache-2.0 */
/* What stays resident: of a plan after compiling, of a run before and after its first step. Counts pages, never time.
 */
#include "base/memory.h"
#include "engine/compile/plan.h"
#include "graphi/models.h"
#include "graphi/ops.h"
#include "graphi/run.h"
#include "machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PAGES_ARE_OURS = 0 }; /* a sanitizer keeps what is freed, and shadows */
#else
enum { PAGES_ARE_OURS = 1 };
#endif

/* Of a line "KEY: NUMBER kB". */
static int64_t status_bytes(const char *path, const char *key)
{
    long kilobytes = -1;
    char line[128];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (kilobytes < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %ld", &kilobytes);
    fclose(file);
    assert_true(kilobytes > 0);
    return kilobytes * 1024;
}

/* statm is kept a core and summed up late */
static int64_t resident(void) { return status_bytes("/proc/self/smaps_rollup", "Rss"); }

static int64_t peak(void) { return status_bytes("/proc/self/status", "VmHWM"); }

static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    assert_non_null(file);
    fputs("5", file);
    fclose(file);
}

static graphi_graph *network(const char *name)
{
    graphi_graph *g;
    check_ok(graphi_model_create(name, &(graphi_model_options){.task = "bench", .size = "small"}, &g));
    return g;
}

/* Without it what passes and kernels used while compiling could stay: 16 MB here, half of what a training step needs.
 */
static void plans_keep_little(void **state)
{
    (void)state;
    graphi_graph *g = network("phased-lstm");
    graphi_plan *plan;
    mem_trim(); /* what building the graph left */
    int64_t before = resident();
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    if (PAGES_ARE_OURS)
        assert_true(resident() - before <= 7 << 20);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it every cell of an unrolled network could have programs of its own again. */
static void equal_kernels_share_parameters(void **state)
{
    (void)state;
    graphi_graph *g = network("lstm");
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    const struct compiled *c = plan->compiled;
    int64_t bytes = 0, own = 0;
    const char *end = (const char *)c->params;
    for (int32_t t = 0; t < c->tasks; t++) {
        const struct kernel *kernel = &c->task[t].kernel;
        bytes += (int64_t)kernel->params_bytes;
        if (!kernel->params || (const char *)kernel->params < end)
            continue;
        own += (int64_t)kernel->params_bytes;
        end = (const char *)kernel->params + kernel->params_bytes;
        for (int32_t u = 0; u < t; u++) /* what lies apart differs */
            assert_false(c->task[u].kernel.params && c->task[u].kernel.params != kernel->params &&
                         c->task[u].kernel.params_bytes == kernel->params_bytes &&
                         memcmp(c->task[u].kernel.params, kernel->params, kernel->params_bytes) == 0);
    }
    assert_true(own > 0 && own * 5 < bytes);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it creating a run could touch the arena on one thread, which the first step's tasks do side by side, or the
 * account (arena, inputs, parameters and their forms) could lack something large. */
static void runs_touch_what_they_account_for(void **state)
{
    (void)state;
    static const char *const names[] = {"pathnet", "googlenet"};
    for (int i = 0; i < 2; i++) {
        graphi_graph *g = network(names[i]);
        graphi_plan *plan;
        graphi_state *s;
        graphi_run *run;
        check_ok(graphi_state_create(g, 1, &s));
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        int64_t before = resident();
        check_ok(graphi_run_create(plan, s, &run));
        const struct compiled *c = plan->compiled;
        if (PAGES_ARE_OURS)
            assert_true(resident() - before <= c->arena_bytes / 8 + c->packed_bytes);
        feed_zeros(g, run);
        check_ok(graphi_run_execute(run));
        int64_t account = c->arena_bytes + c->input_bytes + c->packed_bytes;
        if (PAGES_ARE_OURS)
            assert_in_range(resident() - before, account / 2, account + (8 << 20)); /* inputs' copy, stacks, code */
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
        graphi_graph_destroy(g);
    }
}

/* Without it inference would keep every weight twice, as loaded and packed, or hold all of them and all of their forms
 * while the first step packs. */
static void inference_keeps_weights_once(void **state)
{
    (void)state;
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    check_ok(graphi_model_create(
        "lstm", &(graphi_model_options){.task = "bench", .size = "medium", .forward = true}, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    const struct compiled *c = plan->compiled;
    int64_t before = resident();
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    feed_zeros(g, run);
    forget_peak();
    check_ok(graphi_run_execute(run));
    int64_t account = c->arena_bytes + c->input_bytes + c->packed_bytes;
    if (PAGES_ARE_OURS) {
        assert_in_range(resident() - before, c->packed_bytes, account + (8 << 20));
        assert_true(peak() - before < account + (10 << 20));
    }
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Bytes of the arena where `outputs` alone are wanted; fills y. */
static int64_t arena_of(const graphi_graph *g, const char *outputs, float *y, size_t bytes)
{
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    float x[2 * 32 * 32 * 16];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.outputs = outputs, .check_numerics = true}, &plan));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, bytes));
    int64_t arena = plan->compiled->arena_bytes;
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    return arena;
}

/* Without it the places of maxima, which only gradients read, would have bytes in the arena of inference, though nobody
 * writes them; or the pool would write them there, over its neighbours. */
static void what_nobody_reads_takes_no_memory(void **state)
{
    (void)state;
    enum { POOLED = 2 * 16 * 16 * 16 };
    static float alone[POOLED], beside[POOLED];
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_tanh(g, graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){2, 32, 32, 16}));
    graphi_value y = graphi_max_pool(g, x, GRAPHI_LIST(2, 2), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 0);
    graphi_output(g, "y", y);
    graphi_output(g, "places", y + 1);
    int64_t without = arena_of(g, "y", alone, sizeof alone);
    assert_int_equal(arena_of(g, "y,places", beside, sizeof beside) - without, POOLED);
    assert_memory_equal(alone, beside, sizeof alone);
    graphi_graph_destroy(g);
}

/* Without it a mapping could start with old content, or one of its sizes be left behind or cut off. */
static void mappings_are_zero_and_go(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, (1 << 18) - 1, 1 << 18, (1 << 22) - 1, (1 << 22) + 1, (9 << 20) + 4097};
    int64_t before = resident();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *bytes = mem_map(sizes[i]);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 64, 0);
        for (size_t b = 0; b < sizes[i]; b++)
            assert_int_equal(bytes[b], 0);
        memset(bytes, 1, sizes[i]);
        mem_unmap(bytes, sizes[i]);
    }
    if (PAGES_ARE_OURS)
        assert_true(resident() - before < 2 << 20);
    mem_unmap(NULL, 1 << 20);
    assert_null(mem_map(SIZE_MAX - 100));
    mem_fail_after(0);
    void *refused = mem_map(1 << 20);
    mem_fail_after(-1);
    assert_null(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_keep_little),
        cmocka_unit_test(equal_kernels_share_parameters),
        cmocka_unit_test(runs_touch_what_they_account_for),
        cmocka_unit_test(inference_keeps_weights_once),
        cmocka_unit_test(what_nobody_reads_takes_no_memory),
        cmocka_unit_test(mappings_are_zero_and_go),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
