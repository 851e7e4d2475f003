/* SPDX-License-Identifier: Apache-2.0 */
/* Packed forms of a plan: which there are, what they take, and that a parameter may be kept in one alone. */
#include "base/status.h"
#include "engine/compile/plan.h"
#include "engine/run/state.h"
#include "kernels/conv.h"
#include "kernels/conv_pack.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"
#include "folder.h"

/* Two nodes that want the same form of a parameter, or of a constant, get one: without it its bytes would be reserved,
 * and it would be made, twice. Another constant of the same shape has a form of its own. */
static void equal_forms_are_one(void **state)
{
    enum { K = 32, N = 64, M = 8, FORMS = 3, USES = 2 };
    static float data[2][K * N], y[M * N], again[M * N], plain[M * N];
    const graphi_attribute packed = {.name = "packed_b", .type = GRAPHI_INT, .i = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    reference_random(data[0], 2 * K * N, 5);
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){M, K});
    const graphi_value source[FORMS] = {
        graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){K, N},
                         &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1}),
        graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){K, N}, data[0]),
        graphi_constant(g, GRAPHI_F32, 2, (int64_t[]){K, N}, data[1])};
    for (int i = 0; i < FORMS; i++) {
        for (int use = 0; use < USES; use++) {
            graphi_value pair[] = {x, graphi_op(g, "pack", 1, &source[i], 0, NULL)};
            graphi_output(g, (char[]){(char)('a' + i), (char)('0' + use), 0},
                          graphi_op(g, "matmul", 2, pair, 1, &packed));
        }
        graphi_output(g, (char[]){(char)('a' + i), 'p', 0}, graphi_tanh(g, graphi_matmul(g, x, source[i], 0, 0)));
    }
    graphi_plan_options options = {.setting = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1}};
    options.disable = "cse,fold,pack"; /* which would have made one node of them, constants, or a third form */
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.packed_bytes, FORMS * K * N * 4);
    graphi_state *s;
    graphi_run *run;
    graphi_run_info first;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    reference_random(y, M * K, 7);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, y, M * K * sizeof *y));
    check_ok(graphi_run_execute(run));
    graphi_run_get_info(run, &first);
    assert_int_equal(first.packs, 1);
    for (int i = 0; i < FORMS; i++) {
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), '0', 0}, GRAPHI_F32, y, sizeof y));
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), '1', 0}, GRAPHI_F32, again, sizeof again));
        check_ok(graphi_run_get(run, (char[]){(char)('a' + i), 'p', 0}, GRAPHI_F32, plain, sizeof plain));
        assert_memory_equal(y, again, sizeof y);
        for (int k = 0; k < M * N; k++)
            assert_true(fabsf(tanhf(y[k]) - plain[k]) < 1e-5f);
    }
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A form of two sources is not that of its first with another second: without it a product would read other weights. */
static void forms_have_all_their_sources(void **state)
{
    enum { K = 4, N = 64 };
    const graphi_attribute packed = {.name = "packed_b", .type = GRAPHI_INT, .i = 1};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){2, K});
    graphi_value p = graphi_parameter(g, "p", GRAPHI_F32, 2, (int64_t[]){K, 3 * N},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1});
    graphi_value part[3];
    for (int i = 0; i < 3; i++)
        part[i] = graphi_slice(g, p, 1, i * N, (i + 1) * N);
    for (int i = 1; i < 3; i++) {
        graphi_value form = graphi_op(g, "pack", 2, (graphi_value[]){part[0], part[i]}, 0, NULL);
        graphi_value y = graphi_op(g, "matmul", 2, (graphi_value[]){x, form}, 1, &packed);
        graphi_output(g, i == 1 ? "a" : "b", y);
    }
    check_ok(graphi_graph_status(g));
    graphi_plan *plan;
    graphi_plan_info info;
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.packed_bytes, 2 * K * 2 * N * 4);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* A plan of the graph for any width, 0: without the pass; its output after two steps. */
static void run_points(const graphi_graph *g, graphi_state *s, enum isa isa, int width, const float *x, float *y,
                       size_t bytes)
{
    graphi_plan_options options = {.disable = width ? NULL : "pack",
                                   .isa = isa_name(isa),
                                   .setting = {.executors = 1, .width = width ? width : 1}};
    graphi_plan *plan;
    graphi_plan_info info;
    graphi_run *run;
    graphi_run_info after;
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    graphi_plan_get_info(plan, &info);
    assert_int_equal(info.nodes, width ? 3 : 2);
    assert_int_equal(info.packed_bytes, 0);
    check_ok(graphi_run_create(plan, s, &run));
    for (int step = 0; step < 2; step++) {
        check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, bytes));
        check_ok(graphi_run_execute(run));
    }
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, y, bytes));
    graphi_run_get_info(run, &after);
    assert_int_equal(after.packs, 0);
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
}

/* Points too large to be kept are made once a step for the convolutions that share them, and are in memory only
 * meanwhile: kept, they would be reserved beside the weights for good. Any width gives the bits of points that each
 * convolution made. */
static void large_points_are_not_kept(void **state)
{
    enum { SIDE = 24, DEPTH = 96, COUNT = 2 * SIDE * SIDE * DEPTH };
    static float x[COUNT], want[COUNT], y[COUNT];
    const int64_t dims[] = {2, SIDE, SIDE, DEPTH}, same[] = {1, 1, 1, 1};
    const graphi_attribute pads = {.name = "pads", .type = GRAPHI_INTS, .ints = same, .count = 4};
    graphi_graph *g;
    graphi_state *s;
    graphi_machine_info about;
    graphi_machine_get_info(machine, &about);
    check_ok(graphi_graph_create(&g));
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, DEPTH, DEPTH},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -0.1, .b = 0.1});
    graphi_value part = graphi_input(g, "x", GRAPHI_F32, 4, dims);
    for (int i = 0; i < 2; i++)
        part = graphi_tanh(g, graphi_op(g, "conv2d", 2, (graphi_value[]){part, w}, 1, &pads));
    graphi_output(g, "y", part);
    check_ok(graphi_state_create(g, 3, &s));
    reference_random(x, COUNT, 5);
    for (enum isa isa = ISA_AVX2; isa <= isa_detect(); isa++) { /* plain kernels are direct */
        run_points(g, s, isa, 0, x, want, sizeof x);
        for (int width = 1; width <= about.cores && width <= 4; width++) {
            run_points(g, s, isa, width, x, y, sizeof x);
            assert_memory_equal(y, want, sizeof y);
        }
    }
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* --- a form in place of its parameter --- */

static void undo_is_exact(struct kernel *kernel, int sources, int64_t count, int64_t form)
{
    struct kernel_array in[3], back[3], out = {.data = mem_alloc((size_t)form * 4)};
    assert_true(sources <= 3);
    for (int i = 0; i < sources; i++) {
        in[i].data = mem_alloc((size_t)count * 4);
        back[i].data = i == 1 ? NULL : mem_zalloc((size_t)count * 4); /* the second is left out */
        reference_random(in[i].data, count, (uint64_t)i + 1);
        memcpy((uint32_t *)in[i].data + count / 2, &(uint32_t){0x7fa12345u}, 4); /* a NaN that arithmetic would quiet */
    }
    check_ok(kernel_run_serial(kernel, &(struct kernel_call){.in = in, .out = &out, .params = kernel->params}));
    assert_non_null(kernel->undo);
    kernel->run = kernel->undo;
    check_ok(kernel_run_serial(kernel, &(struct kernel_call){.in = back, .out = &out, .params = kernel->params}));
    for (int i = 0; i < sources; i++) {
        if (back[i].data)
            assert_memory_equal(in[i].data, back[i].data, (size_t)count * 4);
        mem_free(in[i].data);
        mem_free(back[i].data);
    }
    mem_free(out.data);
    kernel_fini(kernel);
}

/* Without it a parameter could come back in another order, or with other bits. What rounds must not claim to be exact.
 */
static void packing_is_undone_bit_for_bit(void **state)
{
    (void)state;
    static const int64_t matrices[][2] = {{1, 1}, {7, 5}, {16, 64}, {33, 65}, {128, 96}, {50, 200}};
    static const struct conv_form forms[] = {{CONV_DIRECT, CONV_FORWARD, GRAPHI_F32, 3, 3, 20, 96, 1},
                                             {CONV_DIRECT, CONV_FORWARD, GRAPHI_F32, 1, 1, 65, 130, 1},
                                             {CONV_DIRECT, CONV_FORWARD, GRAPHI_F32, 5, 3, 24, 36, 4},
                                             {CONV_DIRECT, CONV_BACKWARD_DATA, GRAPHI_F32, 3, 3, 70, 33, 1},
                                             {CONV_DIRECT, CONV_BACKWARD_DATA, GRAPHI_F32, 3, 2, 16, 24, 2}};
    struct kernel kernel;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        for (int trans = 0; trans < 2; trans++) {
            const int64_t *m = matrices[i];
            check_ok(gemm_pack_bind(1, m[0], m[1], trans ? m[0] : m[1], trans, GRAPHI_F32, isa_detect(), &kernel));
            undo_is_exact(&kernel, 1, m[0] * m[1], gemm_packed_count(m[0], m[1], GRAPHI_F32));
            check_ok(gemm_pack_bind(3, m[0], 128, trans ? m[0] : 128, trans, GRAPHI_F32, isa_detect(), &kernel));
            undo_is_exact(&kernel, 3, m[0] * 128, 3 * m[0] * 128);
        }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct conv_form *f = &forms[i];
        check_ok(conv_pack_bind(f, isa_detect(), &kernel));
        undo_is_exact(&kernel, 1, f->kh * f->kw * f->c / f->groups * f->k, conv_form_count(f));
    }
    check_ok(gemm_pack_bind(1, 16, 64, 64, false, GRAPHI_BF16, isa_detect(), &kernel));
    assert_null(kernel.undo);
    kernel_fini(&kernel);
    check_ok(conv_pack_bind(
        &(struct conv_form){CONV_WINOGRAD, CONV_FORWARD, GRAPHI_F32, 3, 3, 16, 32, 1}, isa_detect(), &kernel));
    assert_null(kernel.undo);
    kernel_fini(&kernel);
}

static int away(const graphi_state *s)
{
    int count = 0;
    for (size_t i = 0; i < s->parameters.count; i++)
        count += s->parameters.data[i]->away;
    return count;
}

static void same_file(struct folder *folder)
{
    char *text[2];
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(folder_name(folder, i ? "b" : "a"), "rb");
        assert_non_null(file);
        fseek(file, 0, SEEK_END);
        bytes[i] = (size_t)ftell(file);
        rewind(file);
        text[i] = mem_alloc(bytes[i]);
        assert_int_equal(fread(text[i], 1, bytes[i], file), bytes[i]);
        fclose(file);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(text[0], text[1], bytes[0]);
    mem_free(text[0]);
    mem_free(text[1]);
}

/* Whoever reads a state must not see which parameters are in forms alone, and reading must not leave them in memory
 * twice. */
static void what_is_read_is_what_was_written(void **state)
{
    (void)state;
    static const struct {
        const char *name, *disable;
        int fewest;
    } networks[] = {{"lstm", NULL, 32}, {"lstm", "+merge", 32}, {"googlenet", NULL, 15}};
    for (size_t n = 0; n < sizeof networks / sizeof *networks; n++) {
        graphi_graph *g;
        graphi_plan *plan;
        graphi_state *used, *fresh;
        graphi_run *run;
        char hash[2][65];
        check_ok(graphi_model_create(networks[n].name,
                                     &(graphi_model_options){.task = "bench", .size = "small", .forward = true}, &g));
        check_ok(graphi_state_create(g, 1, &used));
        check_ok(graphi_state_create(g, 1, &fresh));
        check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.disable = networks[n].disable}, &plan));
        check_ok(graphi_run_create(plan, used, &run));
        feed_zeros(g, run);
        check_ok(graphi_run_execute(run));
        int gone = away(used);
        assert_true(gone >= networks[n].fewest);
        for (size_t i = 0; i < fresh->parameters.count; i++) {
            const struct parameter *p = fresh->parameters.data[i];
            void *data = mem_alloc(p->bytes);
            check_ok(graphi_state_get(used, p->name, data, p->bytes));
            assert_memory_equal(data, p->data, p->bytes);
            mem_free(data);
        }
        graphi_state_sha256(used, hash[0]);
        graphi_state_sha256(fresh, hash[1]);
        assert_string_equal(hash[0], hash[1]);
        struct folder folder;
        folder_make(&folder);
        check_ok(graphi_state_save(used, folder_name(&folder, "a"), 0, NULL, NULL));
        check_ok(graphi_state_save(fresh, folder_name(&folder, "b"), 0, NULL, NULL));
        same_file(&folder);
        assert_int_equal(away(used), gone);
        check_ok(graphi_state_load(used, folder_name(&folder, "b"), NULL, NULL)); /* every parameter is written again */
        assert_int_equal(away(used), 0);
        folder_remove(&folder);
        graphi_run_info info;
        check_ok(graphi_run_execute(run));
        graphi_run_get_info(run, &info);
        assert_int_equal(info.packs_skipped, 0);
        assert_int_equal(away(used), gone);
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(used);
        graphi_state_destroy(fresh);
        graphi_graph_destroy(g);
    }
}

/* What packs and unpacks, watched. */
enum { SIX = 6 };
static kernel_function packs, unpacks;
static atomic_int packed_shares, unpacked_shares;
static pthread_t packer[SIX];

static graphi_status watch_packing(const struct kernel_call *call, int phase, int share)
{
    packer[call->thread] = pthread_self();
    packed_shares++;
    return packs(call, phase, share);
}

static graphi_status watch_unpacking(const struct kernel_call *call, int phase, int share)
{
    unpacked_shares++;
    return unpacks(call, phase, share);
}

/* Gives how many shares all forms of the run have. */
static int watch(const graphi_plan *plan, graphi_state *s)
{
    int shares = 0;
    for (size_t i = 0; i < plan->compiled->prepared.count; i++) {
        struct kernel *kernel = &plan->compiled->prepared.data[i].bound.kernel;
        assert_int_equal(kernel->phases, 1);
        shares += kernel->shares[0];
        packs = kernel->run;
        kernel->run = watch_packing;
    }
    for (size_t i = 0; i < s->packed.count; i++) {
        unpacks = s->packed.data[i]->undo.run;
        s->packed.data[i]->undo.run = watch_unpacking;
    }
    return shares;
}

/* Two products, of inputs "a" and "b" by w[k,n] and by w transposed, which have a form each. */
static graphi_graph *products_by_two_forms(int64_t m, int64_t k, int64_t n)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){k, n},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1});
    for (int i = 0; i < 2; i++) {
        graphi_value in = graphi_input(g, i ? "b" : "a", GRAPHI_F32, 2, (int64_t[]){m, i ? n : k});
        graphi_output(g, i ? "y" : "z", graphi_matmul(g, in, w, 0, i));
    }
    return g;
}

/* Without it one thread would make all forms, and touch their new pages, while the others wait; or w would go away with
 * the first form, be unpacked from it, and go again. */
static void forms_of_a_parameter_are_made_together(void **state)
{
    enum { K = 512, N = 1024, M = 4 };
    static const graphi_setting settings[] = {{.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1},
                                              {.executors = 2, .width = 3},
                                              {.driver = GRAPHI_DRIVER_DEDICATED, .executors = SIX, .width = 1}};
    static float x[M * (K + N)], y[3][M * (K + N)];
    graphi_machine *six = six_cores();
    graphi_graph *g = products_by_two_forms(M, K, N);
    reference_random(x, M * (K + N), 3);
    for (int i = 0; i < 3; i++) {
        graphi_plan *plan;
        graphi_state *s;
        graphi_run *run;
        check_ok(graphi_plan_create(g, six, &(graphi_plan_options){.setting = settings[i]}, &plan));
        check_ok(graphi_state_create(g, 1, &s));
        check_ok(graphi_run_create(plan, s, &run));
        memset(packer, 0, sizeof packer);
        packed_shares = unpacked_shares = 0;
        const int shares = watch(plan, s), threads = i ? SIX : 1;
        check_ok(graphi_run_set(run, "a", GRAPHI_F32, x, M * K * sizeof *x));
        check_ok(graphi_run_set(run, "b", GRAPHI_F32, x + M * K, M * N * sizeof *x));
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "z", GRAPHI_F32, y[i], M * N * sizeof *x));
        check_ok(graphi_run_get(run, "y", GRAPHI_F32, y[i] + M * N, M * K * sizeof *x));
        assert_memory_equal(y[i], y[0], sizeof y[0]);
        graphi_run_info info;
        graphi_run_get_info(run, &info);
        assert_int_equal(info.packs, 2);
        assert_int_equal(packed_shares, shares);
        for (int t = 0; t < SIX; t++) {
            assert_true((packer[t] != 0) == (t < threads));
            for (int u = 0; u < t && u < threads && t < threads; u++)
                assert_false(pthread_equal(packer[t], packer[u]));
        }
        assert_int_equal(unpacked_shares, 0);
        assert_int_equal(away(s), 1);
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
    }
    graphi_graph_destroy(g);
    graphi_machine_destroy(six);
}

static graphi_status fail_packing(const struct kernel_call *call, int phase, int share)
{
    return (fail)(GRAPHI_INVALID, "planted", "found a form that cannot be made, expected none");
}

/* One whose packing failed would be computed with as if it were there, or its parameter be away, in a form that has
 * none of it. The next execution makes it, and the one after it, which nobody knows to be whole. */
static void forms_that_failed_are_made_again(void **state)
{
    enum { K = 512, N = 1024, M = 4 };
    static float x[M * (K + N)], y[3][M * (K + N)];
    const graphi_plan_options options = {.setting = {.executors = 2, .width = 3}};
    graphi_machine *six = six_cores();
    graphi_graph *g = products_by_two_forms(M, K, N);
    reference_random(x, M * (K + N), 3);
    for (int i = 0; i < 3; i++) { /* none fails, the first one, the second one */
        graphi_plan *plan;
        graphi_state *s;
        graphi_run *run;
        graphi_run_info info;
        check_ok(graphi_plan_create(g, six, &options, &plan));
        check_ok(graphi_state_create(g, 1, &s));
        check_ok(graphi_run_create(plan, s, &run));
        check_ok(graphi_run_set(run, "a", GRAPHI_F32, x, M * K * sizeof *x));
        check_ok(graphi_run_set(run, "b", GRAPHI_F32, x + M * K, M * N * sizeof *x));
        if (i) {
            struct kernel *kernel = &plan->compiled->prepared.data[i - 1].bound.kernel;
            const kernel_function made = kernel->run;
            kernel->run = fail_packing;
            assert_int_equal(graphi_run_execute(run), GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), "planted"));
            assert_non_null(strstr(graphi_message(), "(in pack"));
            assert_int_equal(away(s), i == 2); /* in the first form */
            assert_int_equal(graphi_run_get(run, "z", GRAPHI_F32, y[i], M * N * sizeof *x), GRAPHI_INVALID);
            kernel->run = made;
        }
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "z", GRAPHI_F32, y[i], M * N * sizeof *x));
        check_ok(graphi_run_get(run, "y", GRAPHI_F32, y[i] + M * N, M * K * sizeof *x));
        assert_memory_equal(y[i], y[0], sizeof y[0]);
        graphi_run_get_info(run, &info);
        assert_int_equal(info.packs, i == 2 ? 1 : 2);
        assert_int_equal(away(s), 1);
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
    }
    graphi_graph_destroy(g);
    graphi_machine_destroy(six);
}

enum { ROWS = 32, DEPTH = 160, WIDTH = 192 };

/* loss = mean tanh(x w), of which a step of SGD makes less. */
static graphi_graph *descent(void)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){ROWS, DEPTH});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){DEPTH, WIDTH},
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -1, .b = 1});
    graphi_value y = graphi_tanh(g, graphi_matmul(g, x, w, 0, 0)), dw;
    graphi_value loss = graphi_reduce_mean(g, y, (int64_t[]){0, 1}, 2, 0);
    graphi_output(g, "loss", loss);
    check_ok(graphi_gradients(g, loss, 1, &w, &dw));
    graphi_assign(g, w, graphi_sub(g, w, dw));
    check_ok(graphi_graph_status(g));
    return g;
}

static float loss_of(graphi_run *run)
{
    float x[ROWS * DEPTH], loss;
    reference_random(x, ROWS * DEPTH, 11);
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "loss", GRAPHI_F32, &loss, sizeof loss));
    return loss;
}

struct two_plans {
    graphi_graph *graph;
    graphi_plan *training, *inference;
    graphi_state *state;
    graphi_run *run;
};

static void open_two(struct two_plans *t)
{
    t->graph = descent();
    check_ok(graphi_plan_create(t->graph, machine, NULL, &t->training));
    check_ok(graphi_plan_create(t->graph, machine, &(graphi_plan_options){.outputs = "loss"}, &t->inference));
    check_ok(graphi_state_create(t->graph, 1, &t->state));
    check_ok(graphi_run_create(t->inference, t->state, &t->run));
}

static void close_two(struct two_plans *t)
{
    graphi_run_destroy(t->run);
    graphi_state_destroy(t->state);
    graphi_plan_destroy(t->training);
    graphi_plan_destroy(t->inference);
    graphi_graph_destroy(t->graph);
}

/* A run that updates a parameter must find it, and inference after it must see the update: without the count of holders
 * one of them would compute with zeros. */
static void training_brings_parameters_back(void **state)
{
    (void)state;
    struct two_plans t, other;
    graphi_run *training;
    open_two(&t);
    open_two(&other);
    float before = loss_of(t.run);
    assert_int_equal(away(t.state), 1);
    check_ok(graphi_run_create(t.training, t.state, &training));
    assert_int_equal(away(t.state), 0);
    loss_of(training);
    float after = loss_of(t.run);
    assert_true(after < before);
    assert_int_equal(away(t.state), 0); /* the run may train on */
    loss_of(training);
    graphi_run_destroy(training);
    assert_int_equal(away(t.state), 0); /* the form is older */
    after = loss_of(t.run);
    assert_int_equal(away(t.state), 1);
    check_ok(graphi_run_create(other.training, other.state, &training)); /* the same, never in a form alone */
    loss_of(training);
    loss_of(training);
    assert_int_equal(away(other.state), 0);
    float expected = loss_of(other.run);
    assert_memory_equal(&after, &expected, sizeof after);
    graphi_run_destroy(training);
    assert_int_equal(away(other.state), 1);
    close_two(&t);
    close_two(&other);
}

enum { ROUNDS = 40 };
static atomic_int wrong; /* an assertion in a thread of its own ends the program without a word */

static void *execute_often(void *context)
{
    struct two_plans *t = context;
    graphi_run *run;
    check_ok(graphi_run_create(t->inference, t->state, &run));
    float first = loss_of(run);
    for (int i = 0; i < ROUNDS; i++)
        wrong += loss_of(run) != first;
    graphi_run_destroy(run);
    return NULL;
}

static void *read_often(void *context)
{
    struct two_plans *t = context;
    static float w[DEPTH * WIDTH], first[DEPTH * WIDTH];
    check_ok(graphi_state_get(t->state, "w", first, sizeof first));
    for (int i = 0; i < ROUNDS; i++) {
        check_ok(graphi_state_get(t->state, "w", w, sizeof w));
        wrong += memcmp(w, first, sizeof w) != 0;
    }
    return NULL;
}

static void *hold_often(void *context)
{
    struct two_plans *t = context;
    for (int i = 0; i < ROUNDS; i++) {
        graphi_run *training;
        check_ok(graphi_run_create(t->training, t->state, &training));
        graphi_run_destroy(training);
    }
    return NULL;
}

/* Readers side by side while the parameter comes and goes. */
static void readers_meet(void **state)
{
    (void)state;
    static void *(*const body[])(void *) = {execute_often, execute_often, read_often, hold_often};
    struct two_plans t;
    pthread_t thread[4];
    open_two(&t);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, body[i], &t), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(away(t.state), 1);
    close_two(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_forms_are_one),
                                       cmocka_unit_test(forms_have_all_their_sources),
                                       cmocka_unit_test(large_points_are_not_kept),
                                       cmocka_unit_test(packing_is_undone_bit_for_bit),
                                       cmocka_unit_test(what_is_read_is_what_was_written),
                                       cmocka_unit_test(forms_of_a_parameter_are_made_together),
                                       cmocka_unit_test(forms_that_failed_are_made_again),
                                       cmocka_unit_test(training_brings_parameters_back),
                                       cmocka_unit_test(readers_meet)};
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
