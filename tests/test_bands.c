/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that pool their results: the same bits as the two kernels one after the other, and the pass that makes
 * them. */
#include "kernels/conv_choice.h"
#include "kernels/conv_shape.h"
#include "kernels/pack.h"
#include "machine/machine.h"
#include "ops/pool.h"
#include "rewritten.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conv_shapes.h"
#include "fixture.h"
#include "guarded.h"

/* --- the kernel --- */

struct problem {
    struct conv_spec conv;
    struct pool_spec pool;
    struct guarded x, w, bias;
    struct guarded rounded; /* x as bfloat16 */
    int64_t images;
};

/* As `width` threads would, one after the other, the last first. */
static void run_kernel(const struct kernel *kernel, struct kernel_call call, int width)
{
    struct guarded workspace = guarded_new((kernel->workspace + 63) / 64 * 64, false);
    memset(workspace.data, 0xff, kernel->workspace);
    call.params = kernel->params;
    call.workspace = workspace.data;
    call.width = width;
    for (int phase = 0; phase < kernel->phases; phase++)
        for (int member = width - 1; member >= 0; member--) {
            int64_t begin, end;
            split_range(kernel->shares[phase], width, member, &begin, &end);
            for (int64_t share = begin; share < end; share++)
                assert_int_equal(kernel->run(&call, phase, (int)share), GRAPHI_OK);
        }
    guarded_free(&workspace);
}

static void bind_and_run(const struct problem *p, const struct conv_spec *spec, enum isa isa,
                         const struct kernel_array *out, int width)
{
    struct kernel kernel;
    const struct kernel_array in[] = {
        {spec->rounded_x ? p->rounded.data : p->x.data, p->images}, {p->w.data, 1}, {p->bias.data, 1}};
    check_ok(conv_bind(spec, isa, &kernel));
    run_kernel(&kernel, (struct kernel_call){.in = in, .out = out}, width);
    kernel_fini(&kernel);
}

static size_t pooled_floats(const struct pool_shape *s)
{
    return (size_t)(s->n * s->oh * s->ow * s->ldy);
}
static size_t place_bytes(const struct pool_shape *s)
{
    return (size_t)(s->n * s->oh * s->ow * s->ldp) * graphi_dtype_size(pool_places_type(s));
}

struct results {
    struct guarded y, places;
};

static struct results new_results(const struct pool_shape *s)
{
    struct results r = {guarded_new(pooled_floats(s) * sizeof(float), false), guarded_new(place_bytes(s), false)};
    memset(r.y.data, 0x55, pooled_floats(s) * sizeof(float));
    memset(r.places.data, 0x55, place_bytes(s));
    return r;
}

static void free_results(struct results *r)
{
    guarded_free(&r->y);
    guarded_free(&r->places);
}

static struct results apart(const struct problem *p, enum isa isa)
{
    const struct conv_shape *s = &p->conv.shape;
    struct results r = new_results(&p->pool.shape);
    struct guarded image = guarded_new((size_t)(s->n * s->oh * s->ow * s->k) * sizeof(float), false);
    struct kernel_array y = {image.data, p->images}, out[] = {{r.y.data, p->images}, {r.places.data, p->images}};
    struct kernel kernel;
    bind_and_run(p, &p->conv, isa, &y, 1);
    check_ok(pool_bind(&p->pool, isa, &kernel));
    run_kernel(&kernel, (struct kernel_call){.in = &y, .out = out}, 1);
    kernel_fini(&kernel);
    guarded_free(&image);
    return r;
}

/* The same bits; of NaNs only that both are: which of several is left follows the order of operands, which no form
 * promises (isa/pool_run.c). */
static bool same(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static void check(const struct problem *p, enum isa isa)
{
    const struct pool_shape *s = &p->pool.shape;
    struct results expected = apart(p, isa);
    static const int widths[] = {1, 2, 3, 68}; /* few threads run parts of an image together */
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const int width = widths[i];
        struct results found = new_results(s);
        struct conv_spec spec = p->conv;
        spec.pool = &p->pool;
        spec.threads = width < 3 ? width : 0;
        spec.rounded_x = width != 2 && conv_rounds(&p->conv, isa) && p->conv.shape.ldx % 2 == 0;
        bind_and_run(p, &spec, isa, (struct kernel_array[]){{found.y.data, p->images}, {found.places.data, p->images}},
                     width);
        if (!same(found.y.data, expected.y.data, pooled_floats(s)) ||
            memcmp(found.places.data, expected.places.data, place_bytes(s)))
            fail_msg("%s, algorithm %d, %s images %lld wide, %lldx%lldx%lld window %lld/%lld, pool %d of "
                     "%lldx%lld/%lld,%lld pads %lld %lld, %d threads",
                     isa_name(isa), (int)spec.algorithm, spec.rounded_x ? "rounded" : "float32",
                     (long long)spec.shape.ldx, (long long)spec.shape.oh, (long long)spec.shape.ow,
                     (long long)spec.shape.k, (long long)spec.shape.kh, (long long)spec.shape.stride_h,
                     (int)p->pool.kind, (long long)s->kh, (long long)s->kw, (long long)s->stride_h,
                     (long long)s->stride_w, (long long)s->pad_top, (long long)s->pad_bottom, width);
        free_results(&found);
    }
    free_results(&expected);
}

/* A pool of the convolution's results; false: its window does not fit. */
static bool random_pool(struct problem *p)
{
    const struct conv_shape *s = &p->conv.shape;
    struct pool_shape pool = {.n = s->n,
                              .h = s->oh,
                              .w = s->ow,
                              .c = s->k,
                              .kh = 1 + random_below(4),
                              .kw = 1 + random_below(4),
                              .stride_h = 1 + random_below(4),
                              .stride_w = 1 + random_below(4),
                              .ceil_mode = random_below(2),
                              .count_include_pad = random_below(2),
                              .ldx = s->k};
    pool.pad_top = random_below(pool.kh);
    pool.pad_left = random_below(pool.kw);
    pool.pad_bottom = random_below(pool.kh);
    pool.pad_right = random_below(pool.kw);
    pool.ldy = s->k + random_below(2) * 5;
    pool.ldp = s->k + random_below(2) * 3;
    p->pool =
        (struct pool_spec){.shape = pool, .kind = random_below(3) ? POOL_MAX : POOL_AVERAGE, .direction = POOL_FORWARD};
    p->pool.places = p->pool.kind == POOL_MAX && random_below(2);
    return pool_shape_finish(&p->pool.shape, "test") == GRAPHI_OK;
}

/* NaN and infinities among the images: a window with a NaN gives NaN, and its place, fused or not. */
static void spoil(float *x, int64_t count)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f};
    for (int64_t i = 0; i < 6 && count; i++)
        x[random_below(count)] = odd[random_below(4)];
}

static int64_t image_floats(const struct conv_shape *s)
{
    return (s->n * s->h * s->w - 1) * s->ldx + s->c;
}

/* The images as several convolutions that read them share them. */
static struct guarded round_images(const struct guarded *x, int64_t count)
{
    struct guarded half = guarded_new((size_t)count * 2, false);
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)half.data)[i] = bf16_round(((const float *)x->data)[i]);
    return half;
}

/* One convolution in all its algorithms, some with an epilogue of a bias or of a whole image; the images may be part of
 * a concatenation, and come rounded where the kernel rounds them. */
static void check_shape(struct conv_shape shape, enum isa isa, int64_t images)
{
    struct problem p = {.conv = {.direction = CONV_FORWARD, .shape = shape}, .images = images};
    struct program relu = {.inputs = 2, .instructions = 2, .outputs = 1, .output = {3}};
    relu.code[0] = (struct program_instruction){PROGRAM_ADD, 0, 1, -1, 0};
    relu.code[1] = (struct program_instruction){PROGRAM_RELU, 2, -1, -1, 0};
    bool image = random_below(2), spoiled = !random_below(3);
    enum program_broadcast broadcast = image ? PROGRAM_FULL : PROGRAM_ROW;
    struct conv_shape *s = &p.conv.shape;
    check_ok(conv_shape_finish(s, "test"));
    p.conv.epilogue = (struct epilogue_spec){random_below(4) ? &relu : NULL, &broadcast, &s->k, NULL};
    p.conv.multiplicands = random_below(4) ? GRAPHI_F32 : GRAPHI_BF16;
    p.x = guarded_random(image_floats(s), false);
    p.w = guarded_random(s->kh * s->kw * (s->c / s->groups) * s->k, false);
    p.bias = guarded_random(image ? s->n * s->oh * s->ow * s->k : s->k, false);
    if (spoiled)
        spoil(p.x.data, image_floats(s));
    p.rounded = round_images(&p.x, image_floats(s));
    for (p.conv.algorithm = CONV_DIRECT; p.conv.algorithm < CONV_ALGORITHMS; p.conv.algorithm++)
        if (conv_possible(&p.conv, p.conv.algorithm) && random_pool(&p))
            check(&p, isa);
    guarded_free(&p.x);
    guarded_free(&p.rounded);
    guarded_free(&p.w);
    guarded_free(&p.bias);
}

/* Results that compare equal though one is no NaN, or zeros of both signs. */
static void other_results_are_told(void **state)
{
    (void)state;
    const float nan = NAN, negative = -NAN, one = 1, zero = 0, below = -0.0f;
    assert_false(same(&nan, &one, 1));
    assert_false(same(&zero, &below, 1));
    assert_true(same(&nan, &negative, 1));
}

/* Small images of all kinds, made in one go or in parts; fewer of them at call time than the bound. */
static void small_images(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        const int64_t window = 1 + random_below(5), same = random_below(2), groups = 1 + random_below(4) / 3;
        struct conv_shape s = {.n = 1 + random_below(3), .h = 4 + random_below(30), .w = 4 + random_below(20),
                               .kh = window, .kw = window, .stride_h = same ? 1 : 1 + random_below(2), .stride_w = 1,
                               .dilation_h = 1, .dilation_w = 1, .groups = groups,
                               .c = groups * (2 + random_below(5)), .k = groups * (1 + random_below(40))};
        s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = window / 2 + random_below(2);
        s.ldx = s.c + random_below(2) * (1 + random_below(6));
        check_shape(s, (enum isa)random_below(isa_detect() + 1), random_below(4) ? s.n : 1 + random_below(s.n));
    }
}

/* Images of which the scratch holds some rows at a time: rows of earlier bands that later windows want would else never
 * be looked at. */
static void images_in_bands(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        const int64_t window = i % 3 ? 3 : 5;
        struct conv_shape s = {.n = 1 + i % 2 * 16, .h = 40 + random_below(30), .w = 40 + random_below(30),
                               .kh = window, .kw = window, CONV_PLAIN, .c = 2, .k = 60 + random_below(100)};
        s.stride_h = 1 + i % 4 / 3;
        s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = window / 2;
        s.ldx = s.c + i % 3 * 2;
        check_shape(s, isa_detect(), i % 2 ? 2 : 1);
    }
}

/* A few images must do for 68 cores. */
static void parts_for_many_cores(void **state)
{
    (void)state;
    static const struct {
        struct conv_shape shape;
        int shares;
    } cases[] = {
        {{.n = 1, .h = 128, .w = 128, .c = 3, .k = 64, .kh = 7, .kw = 7, .stride_h = 2, .stride_w = 2}, 15},
        {{.n = 4, .h = 128, .w = 128, .c = 3, .k = 64, .kh = 7, .kw = 7, .stride_h = 2, .stride_w = 2}, 60},
        {{.n = 8, .h = 56, .w = 56, .c = 64, .k = 48, .kh = 3, .kw = 3, .stride_h = 1, .stride_w = 1}, 48},
        {{.n = 32, .h = 128, .w = 128, .c = 3, .k = 16, .kh = 7, .kw = 7, .stride_h = 2, .stride_w = 2}, 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct problem p = {.conv = {.direction = CONV_FORWARD, .shape = cases[i].shape}, .images = cases[i].shape.n};
        struct conv_shape *s = &p.conv.shape;
        s->dilation_h = s->dilation_w = s->groups = 1;
        check_ok(conv_shape_finish(s, "test"));
        p.pool.shape = (struct pool_shape){
            .n = s->n, .h = s->oh, .w = s->ow, .c = s->k, .kh = 3, .kw = 3, .stride_h = 2, .stride_w = 2};
        check_ok(pool_shape_finish(&p.pool.shape, "test"));
        p.conv.pool = &p.pool;
        struct kernel kernel;
        check_ok(conv_bind(&p.conv, isa_detect(), &kernel));
        const int shares = kernel.shares[kernel.phases - 1]; /* 16 are too few */
        if (shares < cases[i].shares)
            fail_msg("%d shares of %d images, expected %d", shares, (int)s->n, cases[i].shares);
        kernel_fini(&kernel);
    }
}

/* Few threads must not pay for many shares: whoever has several parts of an image does them with the first of its
 * shares, where they can be one. Without it a thread would make half of the rows again. */
static void few_threads_cut_less(void **state)
{
    (void)state;
    struct problem p = {.conv = {.direction = CONV_FORWARD, .algorithm = CONV_DIRECT,
                                 .shape = {.n = 2, .h = 40, .w = 40, .c = 4, .k = 20, .kh = 3, .kw = 3, CONV_PLAIN}},
                        .images = 2};
    struct conv_shape *s = &p.conv.shape;
    check_ok(conv_shape_finish(s, "test"));
    p.pool.shape =
        (struct pool_shape){.n = 2, .h = s->oh, .w = s->ow, .c = 20, .kh = 3, .kw = 3, .stride_h = 2, .stride_w = 2};
    check_ok(pool_shape_finish(&p.pool.shape, "test"));
    p.x = guarded_random(image_floats(s), false);
    p.w = guarded_random(9 * s->c * s->k, false);
    struct results expected = apart(&p, isa_detect()), found = new_results(&p.pool.shape);
    struct kernel kernel;
    p.conv.pool = &p.pool;
    check_ok(conv_bind(&p.conv, isa_detect(), &kernel));
    const int last = kernel.phases - 1, shares = kernel.shares[last];
    assert_true(shares > 4);
    struct guarded workspace = guarded_new((kernel.workspace + 63) / 64 * 64, false);
    const struct kernel_array in[] = {{p.x.data, 2}, {p.w.data, 1}}, out[] = {{found.y.data, 2}, {NULL, 0}};
    const struct kernel_call call = {
        .in = in, .out = out, .params = kernel.params, .workspace = workspace.data, .width = 2};
    const size_t bytes = pooled_floats(&p.pool.shape) * sizeof(float);
    for (int phase = 0; phase < last; phase++)
        for (int share = 0; share < kernel.shares[phase]; share++)
            check_ok(kernel.run(&call, phase, share));
    for (int share = 0; share < shares; share++) {
        const bool whole = share >= shares / 2; /* each of two threads has an image */
        check_ok(kernel.run(&call, last, share));
        assert_memory_equal(found.y.data, expected.y.data, bytes / 2);
        assert_int_equal(memcmp(found.y.data, expected.y.data, bytes) == 0, whole);
    }
    guarded_free(&workspace);
    kernel_fini(&kernel);
    free_results(&expected);
    free_results(&found);
    guarded_free(&p.x);
    guarded_free(&p.w);
}

/* --- the pass --- */

enum { BATCH = 3, SIDE = 37, CHANNELS = 4, FILTERS = 20 };

struct form {
    const char *what;
    bool average, overlapping, hanging, trained, read_twice, output, small, few, places;
    bool part, rounded; /* of a concatenation; by several convolutions, to bfloat16 */
    bool taken;
};

static const struct form forms[] = {
    {"a max-pool", .taken = true},
    {"overlapping windows", .overlapping = true, .taken = true},
    {"windows that hang over", .hanging = true, .taken = true},
    {"an average", .average = true, .taken = true},
    {"an average over what hangs over", .average = true, .overlapping = true, .hanging = true, .taken = true},
    {"training, which keeps places", .trained = true, .taken = true},
    {"training through an average, whose image the activation's gradient reads", .average = true, .trained = true},
    {"places that are read", .places = true, .taken = true},
    {"part of a concatenation", .part = true, .taken = true},
    {"an image that two convolutions round", .rounded = true, .taken = true},
    {"a rounded one, training", .rounded = true, .trained = true, .taken = true},
    {"a second reader", .read_twice = true},
    {"an output", .output = true},
    {"a small image", .small = true},
    {"images of few rows together", .few = true},
};

static graphi_graph *network(const struct form *f)
{
    graphi_graph *g;
    const int64_t side = f->small ? 11 : f->few ? 17 : SIDE, size = f->overlapping ? 3 : 2, pad = f->overlapping;
    check_ok(graphi_graph_create(&g));
    graphi_value x =
        graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){graphi_symbol(g, "batch", BATCH), side, side, CHANNELS});
    graphi_initializer init = {.kind = GRAPHI_INIT_NORMAL, .b = 0.3};
    if (f->part) {
        x = graphi_relu(g, x);
        graphi_output(g, "whole", graphi_concat(g, 2, (graphi_value[]){x, graphi_square(g, x)}, 3));
    }
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, CHANNELS, FILTERS}, &init);
    graphi_value b = graphi_parameter(g, "b", GRAPHI_F32, 1, (int64_t[]){FILTERS}, &init);
    const int64_t apart = 1 + f->rounded; /* not for Winograd's algorithm, which rounds its points */
    graphi_value conv =
        graphi_conv2d(g, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(apart, apart), 1);
    graphi_value image = graphi_relu(g, graphi_add(g, conv, b));
    graphi_value y = f->average ? graphi_avg_pool(g, image, GRAPHI_LIST(size, size), GRAPHI_LIST(2, 2),
                                                  GRAPHI_LIST(pad, pad, pad, pad), f->hanging, f->hanging)
                                : graphi_max_pool(g, image, GRAPHI_LIST(size, size), GRAPHI_LIST(2, 2),
                                                  GRAPHI_LIST(pad, pad, pad, pad), f->hanging);
    graphi_attribute none = {.name = "dims", .type = GRAPHI_INTS};
    graphi_value square = OP("square", y), loss = graphi_op(g, "sum_to", 1, &square, 1, &none);
    if (f->rounded) {
        graphi_value v = graphi_parameter(g, "v", GRAPHI_F32, 4, (int64_t[]){1, 1, CHANNELS, FILTERS}, &init);
        graphi_value beside =
            graphi_conv2d(g, x, v, GRAPHI_LIST(1, 1), GRAPHI_LIST(0, 0, 0, 0), GRAPHI_LIST(1, 1), 1);
        loss = OP("add", loss, graphi_op(g, "sum_to", 1, &beside, 1, &none));
    }
    if (f->read_twice)
        loss = OP("add", loss, graphi_op(g, "sum_to", 1, &image, 1, &none));
    if (f->output)
        graphi_output(g, "image", image);
    if (f->places)
        graphi_output(g, "places", y + 1);
    graphi_output(g, "y", y);
    graphi_output(g, "loss", loss);
    graphi_optimizer sgd = {.kind = GRAPHI_SGD, .learning_rate = number(g, 0.001f)};
    if (f->trained)
        check_ok(graphi_minimize(g, loss, &sgd));
    return g;
}

/* Outputs after two steps, and the parameters, under a width; freed by the caller. */
static size_t results_of(const graphi_graph *g, const char *disable, graphi_dtype precision, int width,
                         unsigned char **out)
{
    graphi_plan *plan;
    graphi_state *params;
    graphi_run *run;
    const graphi_plan_options options = {
        .disable = disable, .precision = precision, .setting = {.executors = 1, .width = width}};
    size_t count = BATCH * SIDE * SIDE * CHANNELS, used = 0, room = 1 << 21;
    float *x = malloc(count * sizeof *x);
    srand(3);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(rand() % 2001) / 1000 - 1;
    check_ok(graphi_plan_create(g, machine, &options, &plan));
    check_ok(graphi_state_create(g, 5, &params));
    check_ok(graphi_run_create(plan, params, &run));
    *out = malloc(room);
    for (int step = 0; step < 2; step++) {
        const struct value_type *type = &graph_value(g, graphi_find(g, "x"))->type;
        check_ok(graphi_run_set(run, "x", type->dtype, x, (size_t)type_bytes(type)));
        check_ok(graphi_run_execute(run));
    }
    graphi_port port;
    for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_OUTPUT, i, &port); i++) {
        assert_true(used + port.bytes <= room);
        check_ok(graphi_run_get(run, port.name, port.dtype, *out + used, port.bytes));
        used += port.bytes;
    }
    check_ok(graphi_state_get(params, "w", *out + used, sizeof(float) * 9 * CHANNELS * FILTERS));
    used += sizeof(float) * 9 * CHANNELS * FILTERS;
    graphi_run_destroy(run);
    graphi_state_destroy(params);
    graphi_plan_destroy(plan);
    free(x);
    return used;
}

/* A pool taken from somebody else's image would take the image away; one not taken keeps it in memory; and a network
 * that rounds otherwise with the pass than without it breaks the promise that passes make. */
static void pools_are_taken_in(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *f = &forms[i];
        const graphi_dtype precision = f->rounded ? GRAPHI_BF16 : GRAPHI_F32;
        graphi_graph *g = network(f),
                     *copy = rewritten(g, (struct pass_options){.isa = isa_detect(), .multiplicands = precision});
        if (count_kind(copy, "max_pool") + count_kind(copy, "avg_pool") != !f->taken)
            fail_msg("%s: the pool is%s taken in", f->what, f->taken ? " not" : "");
        if (count_kind(copy, "cast") != f->rounded)
            fail_msg("%s: an image is%s rounded once", f->what, f->rounded ? " not" : "");
        unsigned char *expected, *found;
        size_t bytes = results_of(g, "bands", precision, 1, &expected);
        for (int width = 1; width <= machine->cores && width <= 2; width++) {
            assert_int_equal(results_of(g, NULL, precision, width, &found), bytes);
            if (memcmp(found, expected, bytes))
                fail_msg("%s: other bits at width %d", f->what, width);
            free(found);
        }
        free(expected);
        graphi_graph_destroy(copy);
        graphi_graph_destroy(g);
    }
}

/* Without the image the arena must be smaller: its scratch is a few rows. */
static void image_is_nowhere(void **state)
{
    (void)state;
    graphi_graph *g;
    graphi_plan_info with, without;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){16, 64, 64, 3});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, 3, 64}, NULL);
    graphi_value conv = graphi_conv2d(g, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(1, 1), 1);
    graphi_output(g, "y", graphi_max_pool(g, conv, GRAPHI_LIST(4, 4), GRAPHI_LIST(4, 4), GRAPHI_LIST(0, 0, 0, 0), 0));
    for (int i = 0; i < 2; i++) {
        graphi_plan *plan;
        check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.disable = i ? "bands" : NULL}, &plan));
        graphi_plan_get_info(plan, i ? &without : &with);
        graphi_plan_destroy(plan);
    }
    assert_true(without.arena_bytes >= (int64_t)16 * 64 * 64 * 64 * 4);
    assert_true(with.arena_bytes * 2 < without.arena_bytes);
    graphi_graph_destroy(g);
}

static graphi_value pooling_convolution(graphi_graph *g, graphi_value x, graphi_value w, const int64_t *pool,
                                        int64_t pad)
{
    const int64_t ones[] = {1, 1}, pads[] = {pad, pad, pad, pad};
    graphi_attribute attributes[] = {graphi_ints("strides", ones, 2), graphi_ints("pads", pads, 4),
                                     graphi_ints("dilations", ones, 2), graphi_int("groups", 1),
                                     graphi_ints("pool", pool, POOL_ENCODED)};
    return graphi_op(g, "conv2d", 2, (graphi_value[]){x, w}, 5, attributes);
}

/* Graphs may come with pools in convolutions. Without it a pass that knows convolutions as they used to be would put
 * what follows before the pool, or make one of two that pool differently. */
static void given_pools_are_left_alone(void **state)
{
    (void)state;
    const int64_t halves[] = {POOL_AVERAGE, 2, 2, 2, 2, 0, 0, 0, 0, 0};
    const int64_t quarters[] = {POOL_AVERAGE, 4, 4, 4, 4, 0, 0, 0, 0, 0};
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){BATCH, SIDE, SIDE, CHANNELS});
    for (int i = 0; i < 2; i++) {
        graphi_value w = graphi_parameter(g, i ? "v" : "w", GRAPHI_F32, 4, (int64_t[]){3, 3, CHANNELS, FILTERS}, NULL);
        graphi_output(g, i ? "b" : "a", graphi_square(g, pooling_convolution(g, x, w, i ? quarters : halves, 1)));
    }
    check_ok(graphi_graph_status(g));
    unsigned char *expected, *found;
    size_t bytes = results_of(g, "all", GRAPHI_F32, 1, &expected);
    assert_int_equal(results_of(g, "+merge", GRAPHI_F32, 1, &found), bytes);
    assert_memory_equal(expected, found, bytes);
    free(expected);
    free(found);
    const int64_t large[] = {POOL_AVERAGE, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 0, 0, 0, 0, 0};
    graphi_value w = graphi_parameter(g, "u", GRAPHI_F32, 4, (int64_t[]){1, 1, CHANNELS, FILTERS}, NULL);
    assert_true(pooling_convolution(g, x, w, large, 1 << 30) == GRAPHI_NONE);
    assert_non_null(strstr(graphi_message(), "image to pool"));
    graphi_graph_destroy(g);
}

/* Who pools, and who multiplies, must agree on the kernel: convolutions to few channels have one of their own, that
 * pools nothing and rounds nothing. A plan of bfloat16 was refused, since its pass took the pool for one of another. */
static void few_channels_are_planned(void **state)
{
    (void)state;
    static const char *const sets[] = {"plain", "avx2", "avx512", "bf16"};
    for (int i = 0; i < 2 * 2 * 3 * 4; i++) {
        const graphi_plan_options options = {.precision = i & 1 ? GRAPHI_BF16 : GRAPHI_F32, .isa = sets[i / 12]};
        const int64_t channels = i & 2 ? 64 : 32, few = 1 + i / 4 % 3 + (i / 4 % 3 > 1); /* 1, 2, 4 */
        if (i / 12 > (int)isa_detect())
            break;
        graphi_graph *g;
        graphi_plan *plan;
        check_ok(graphi_graph_create(&g));
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 4, (int64_t[]){8, 32, 32, channels});
        graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 4, (int64_t[]){3, 3, channels, few}, NULL);
        graphi_value y = graphi_conv2d(g, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(1, 1), 1);
        graphi_output(g, "y", graphi_max_pool(g, y, GRAPHI_LIST(2, 2), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 0));
        check_ok(graphi_plan_create(g, machine, &options, &plan));
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_results_are_told),
        cmocka_unit_test(small_images),
        cmocka_unit_test(images_in_bands),
        cmocka_unit_test(parts_for_many_cores),
        cmocka_unit_test(few_threads_cut_less),
        cmocka_unit_test(pools_are_taken_in),
        cmocka_unit_test(image_is_nowhere),
        cmocka_unit_test(given_pools_are_left_alone),
        cmocka_unit_test(few_channels_are_planned),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
