/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of kernels are compared by their bytes, those between members too: each kernel of random graphs and of the
 * networks is bound twice, over memory of different content, and the bytes must be the same. Where they are not, equal
 * parameters are kept twice, or once, as it happens. */
#include "random_graph.h"

#include "base/isa.h"
#include "base/memory.h"
#include "engine/compile/layout.h"
#include "graph/op.h"

#include <setjmp.h>
#include <stdarg.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cmocka.h>

#include "fixture.h"

/* Whatever is neither set nor cleared afterwards has that byte, on the stack and in what is allocated. A sanitizer
 * would leave room around the array. */
static __attribute__((noinline, no_sanitize_address)) void paint(unsigned char byte)
{
    enum { STACK = 128 << 10 };
    unsigned char stack[STACK];
    memset(stack, byte, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory"); /* somebody may read it */
#ifdef __GLIBC__
    mallopt(M_PERTURB, byte);
#endif
}

enum { MOST_KERNELS = 100 };
static const char *seen[MOST_KERNELS]; /* kernels */
static int kinds;

static void note_kind(const char *name)
{
    for (int i = 0; i < kinds; i++)
        if (strcmp(seen[i], name) == 0)
            return;
    assert_true(kinds < MOST_KERNELS);
    seen[kinds++] = name;
}

/* The first byte that differs; -1: none. */
static int64_t first_other(const struct kernel *a, const struct kernel *b)
{
    assert_int_equal(a->params_bytes, b->params_bytes);
    for (size_t i = 0; i < a->params_bytes; i++)
        if (((const char *)a->params)[i] != ((const char *)b->params)[i])
            return (int64_t)i;
    return -1;
}

static void check_call(const struct bind_call *call)
{
    static const unsigned char bytes[] = {0x55, 0xc3};
    struct kernel kernel[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        paint(bytes[i]);
        graphi_status status = call->node->kind->bind(call, &kernel[i]);
        paint(0);
        check_ok(status);
    }
    const int64_t other = first_other(&kernel[0], &kernel[1]);
    if (other >= 0)
        fail_msg("%s: byte %lld of the %zu of '%s' is left to chance", call->where, (long long)other,
                 kernel[0].params_bytes, kernel[0].name);
    note_kind(kernel[0].name);
    for (int i = 0; i < 2; i++)
        kernel_fini(&kernel[i]);
}

static void check_node(const struct layout *layout, int32_t id, struct array_desc *desc, size_t widest)
{
    struct bind_call call;
    char where[160];
    bind_call_of(layout, id, desc, desc + widest, where, sizeof where, &call);
    check_call(&call);
}

/* Every kernel of a plan of the graph, forms that are prepared among them. */
static void check_graph(const graphi_graph *graph, const graphi_plan_options *options)
{
    graphi_plan *plan;
    size_t widest = 1;
    check_ok(graphi_plan_create(graph, machine, options, &plan));
    struct compiled *c = plan->compiled;
    struct layout layout = {.compiled = c, .output = graph_mark_outputs(c->graph)};
    check_ok(graph_users(c->graph, &layout.users_begin, &layout.users));
    for (size_t n = 0; n < c->graph->nodes.count; n++) {
        const struct node *node = graph_node(c->graph, (int32_t)n);
        const int wide = node->inputs > node->outputs ? node->inputs : node->outputs;
        widest = (size_t)wide > widest ? (size_t)wide : widest;
    }
    struct array_desc *desc = calloc(2 * widest, sizeof *desc);
    for (int32_t t = 0; t < c->tasks; t++)
        check_node(&layout, c->task[t].node, desc, widest);
    for (size_t i = 0; i < c->prepared.count; i++)
        check_node(&layout, c->prepared.data[i].bound.node, desc, widest);
    free(desc);
    layout_free(&layout);
    graphi_plan_destroy(plan);
}

static void nothing_is_left_to_chance(void **state)
{
    enum { GRAPHS = 150, KINDS = 60 }; /* there are 76, and 73 where only plain kernels run */
    for (uint64_t key = 0; key < GRAPHS; key++) {
        static struct maker m;
        const graphi_plan_options options = {.isa = isa_name((enum isa)(key % (uint64_t)(isa_detect() + 1))),
                                             .disable = key % 3 == 0 ? "all" : NULL,
                                             .precision = key % 4 < 2 ? GRAPHI_F32 : GRAPHI_BF16};
        random_graph(key, MOST_STEPS, 0, &m);
        check_ok(graphi_graph_status(m.g));
        check_graph(m.g, &options);
        graphi_graph_destroy(m.g);
    }
    assert_in_range(kinds, KINDS, MOST_KERNELS); /* of kernels */
}

static void nor_in_networks(void **state)
{
    static const char *const networks[] = {"lstm", "phased-lstm", "pathnet", "googlenet"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        graphi_graph *g;
        const graphi_model_options options = {.size = "small", .task = "bench", .batch = 4};
        check_ok(graphi_model_create(networks[i], &options, &g));
        check_graph(g, NULL);
        check_graph(g, &(graphi_plan_options){.precision = GRAPHI_BF16, .disable = "+merge"});
        graphi_graph_destroy(g);
    }
}

/* --- planted --- */

/* A member of four bytes before one of eight, set one by one: the four between are chance. */
struct careless {
    int32_t count;
    int64_t bytes;
};

static __attribute__((noinline)) graphi_status bind_on_stack(const struct bind_call *call, struct kernel *kernel)
{
    struct careless params;
    params.count = call->node->inputs;
    params.bytes = 8;
    return kernel_make((struct kernel){.name = "careless"}, &params, sizeof params, kernel);
}

static graphi_status bind_on_heap(const struct bind_call *call, struct kernel *kernel)
{
    struct careless *params = mem_alloc(sizeof *params);
    assert_non_null(params);
    params->count = call->node->inputs;
    params->bytes = 8;
    *kernel = (struct kernel){.name = "careless", .params = params, .params_bytes = sizeof *params};
    return GRAPHI_OK;
}

static __attribute__((noinline)) unsigned char left_on_stack(bool set, unsigned char byte)
{
    volatile unsigned char stack[256];
    for (size_t i = 0; i < sizeof stack && set; i++)
        stack[i] = byte;
    __asm__ volatile("" : "=m"(stack)); /* it is set, for all that a compiler knows */
    return stack[sizeof stack / 2];
}

/* A compiler may keep arrays elsewhere or clear them, for a sanitizer or for safety. */
static bool stack_keeps(void)
{
    unsigned char found[2];
    for (int i = 0; i < 2; i++) {
        left_on_stack(true, (unsigned char)(i + 1));
        found[i] = left_on_stack(false, 0);
    }
    return found[0] != found[1];
}

/* glibc hands out up to seven freed blocks of a size as they are, before it paints: they are taken first, and what is
 * taken to look at goes back with them. */
enum { CACHED = 7, TAKEN = CACHED + 2 };

static void take_cached(void **taken)
{
    for (int i = 0; i < CACHED; i++)
        assert_non_null(taken[i] = mem_alloc(sizeof(struct careless)));
}

/* An allocator may know no such option: a sanitizer's, or another library's. */
static bool heap_is_painted(void **taken)
{
#ifdef __GLIBC__
    for (int i = CACHED; i < TAKEN; i++) {
        mallopt(M_PERTURB, i);
        assert_non_null(taken[i] = mem_alloc(sizeof(struct careless)));
    }
    mallopt(M_PERTURB, 0);
    return *(volatile unsigned char *)taken[CACHED] != *(volatile unsigned char *)taken[CACHED + 1];
#else
    return false;
#endif
}

/* The bytes left are those painted, not what happened to lie there. */
static void check_seen(graphi_status (*bind)(const struct bind_call *call, struct kernel *kernel))
{
    const struct op_kind careless = {.name = "careless", .bind = bind};
    const struct node node = {.kind = &careless, .inputs = 1};
    const struct bind_call call = {.where = "test", .node = &node};
    struct kernel kernel[4];
    for (int i = 0; i < 4; i++) {
        paint(i % 2 ? 0x55 : 0xc3);
        check_ok(careless.bind(&call, &kernel[i]));
    }
    paint(0);
    assert_int_equal(first_other(&kernel[0], &kernel[1]), sizeof(int32_t));
    for (int i = 0; i < 2; i++)
        assert_int_equal(first_other(&kernel[i], &kernel[i + 2]), -1);
    for (int i = 0; i < 4; i++)
        kernel_fini(&kernel[i]);
}

static void chance_on_the_stack_is_seen(void **state)
{
    if (!stack_keeps())
        skip();
    check_seen(bind_on_stack);
}

static void chance_on_the_heap_is_seen(void **state)
{
    void *taken[TAKEN] = {0};
    take_cached(taken);
    const bool painted = heap_is_painted(taken);
    if (painted)
        check_seen(bind_on_heap);
    for (int i = 0; i < TAKEN; i++)
        mem_free(taken[i]);
    if (!painted)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_on_the_stack_is_seen),
        cmocka_unit_test(chance_on_the_heap_is_seen),
        cmocka_unit_test(nothing_is_left_to_chance),
        cmocka_unit_test(nor_in_networks),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
