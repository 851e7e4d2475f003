/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: every form against loops written from the definition, on odd sizes, strided rows, with no elements, with
 * NaNs, shares run backwards, and arrays that end at an unreadable page. */
#include "kernels/pool.h"

#include "base/status.h"
#include "shares_check.h"

#define IMAGES(images, height, width, channels) .n = images, .h = height, .w = width, .c = channels
#define WINDOW(height, width, step_h, step_w) .kh = height, .kw = width, .stride_h = step_h, .stride_w = step_w
#define PADS(top, left, bottom, right) .pad_top = top, .pad_left = left, .pad_bottom = bottom, .pad_right = right
static const struct pool_shape pool_shapes[] = {
    {IMAGES(2, 7, 9, 19), WINDOW(3, 3, 2, 2)},
    {IMAGES(2, 7, 8, 19), WINDOW(3, 3, 2, 2), .ceil_mode = true},
    {IMAGES(1, 6, 6, 16), WINDOW(2, 2, 2, 2)},
    {IMAGES(3, 5, 7, 33), WINDOW(2, 2, 2, 2)},
    {IMAGES(2, 6, 5, 7), WINDOW(3, 3, 1, 1), PADS(1, 1, 1, 1)},
    {IMAGES(2, 6, 5, 7), WINDOW(3, 2, 2, 1), PADS(1, 1, 2, 0), .count_include_pad = true, .ceil_mode = true},
    {IMAGES(1, 1, 1, 1), WINDOW(1, 1, 3, 3)},
    {IMAGES(1, 9, 10, 5), WINDOW(7, 7, 1, 1), PADS(3, 3, 3, 3)}, /* 49 windows over one element */
    {IMAGES(4, 40, 41, 64), WINDOW(3, 3, 2, 2)},
    {IMAGES(1, 20, 19, 18), WINDOW(17, 16, 2, 3)},                 /* places are integers */
    {IMAGES(1, 23, 12, 70), WINDOW(3, 3, 1, 1), PADS(1, 1, 1, 1)}, /* strips of rows */
    /* windows that touch, with pads of their own on each side, elements beyond the last, more rows than shares end at
     */
    {IMAGES(2, 7, 9, 35), WINDOW(2, 2, 2, 2), PADS(1, 1, 0, 0)},
    {IMAGES(3, 7, 6, 90), WINDOW(2, 2, 2, 2), PADS(0, 1, 1, 0)},
    {IMAGES(2, 9, 11, 16), WINDOW(3, 3, 3, 3), PADS(2, 0, 0, 1)},
    {IMAGES(3, 9, 4, 16), WINDOW(2, 4, 2, 4), PADS(0, 1, 0, 0)}, /* one a row, which it does not fill */
    {IMAGES(3, 13, 8, 35), WINDOW(3, 2, 3, 2), PADS(1, 0, 1, 0)},
    {IMAGES(5, 21, 7, 70), WINDOW(2, 3, 2, 3), PADS(0, 2, 0, 2), .ceil_mode = true},
    /* windows that overlap, and a gap between windows, with asymmetric pads */
    {IMAGES(2, 8, 9, 20), WINDOW(3, 3, 2, 2), PADS(0, 0, 1, 1)},
    {IMAGES(2, 8, 9, 20), WINDOW(3, 3, 1, 2), PADS(2, 1, 0, 2)},
    {IMAGES(1, 11, 10, 33), WINDOW(2, 2, 3, 3), PADS(1, 0, 0, 1)},
    /* windows larger than the image, and none where it would begin behind it */
    {IMAGES(2, 2, 5, 19), WINDOW(3, 3, 2, 2), .ceil_mode = true},
    {IMAGES(2, 1, 2, 37), WINDOW(4, 5, 4, 6), PADS(0, 2, 1, 0), .count_include_pad = true, .ceil_mode = true},
    {IMAGES(1, 3, 3, 70), WINDOW(2, 2, 4, 4), .ceil_mode = true},
    {IMAGES(3, 4, 4, 130), WINDOW(4, 4, 4, 4)}, /* a whole image */
    /* elements by pairs, past the caches and not: none, one or two windows above, an odd one at either side, no pair */
    {IMAGES(2, 13, 14, 64), WINDOW(3, 3, 2, 2), PADS(1, 1, 1, 1)},
    {IMAGES(3, 9, 15, 80), WINDOW(3, 3, 2, 2), PADS(1, 1, 1, 1)},
    {IMAGES(2, 8, 9, 48), WINDOW(1, 3, 2, 2), PADS(0, 0, 0, 2)},
    {IMAGES(2, 8, 11, 96), WINDOW(4, 3, 2, 2), PADS(1, 2, 3, 0), .ceil_mode = true},
    {IMAGES(2, 6, 7, 16), WINDOW(3, 3, 3, 2), PADS(1, 0, 1, 0)},
    {IMAGES(3, 5, 1, 32), WINDOW(3, 3, 2, 2), PADS(1, 1, 1, 1)},
    {IMAGES(3, 4, 2, 32), WINDOW(3, 3, 2, 2), PADS(1, 2, 1, 1)},
    /* squares of one vector, row by row */
    {IMAGES(3, 10, 12, 16), WINDOW(2, 2, 2, 2)},
    {IMAGES(2, 9, 7, 13), WINDOW(2, 2, 1, 2), PADS(0, 1, 1, 0)},
    {IMAGES(2, 5, 9, 3), WINDOW(2, 2, 2, 1)},
    {IMAGES(0, 4, 4, 8), WINDOW(2, 2, 2, 2)},
    {IMAGES(2, 4, 4, 0), WINDOW(2, 2, 2, 2)},
};

/* By the definition, one window at a time; dx gets each window's share. */
static void naive_pool(const struct pool_shape *s, bool max, const float *x, const float *dy, float *y, float *dx)
{
    for (int64_t i = 0; i < s->n * s->h * s->w * s->c; i++)
        dx[i] = 0;
    for (int64_t o = 0; o < s->n * s->oh * s->ow * s->c; o++) {
        int64_t c = o % s->c, ow = o / s->c % s->ow, oh = o / s->c / s->ow % s->oh, n = o / s->c / s->ow / s->oh;
        int64_t best = -1, count = 0, padded = 0;
        double sum = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t a = 0; a < s->kh; a++)
                for (int64_t b = 0; b < s->kw; b++) {
                    int64_t h = oh * s->stride_h - s->pad_top + a, w = ow * s->stride_w - s->pad_left + b;
                    if (pass == 0)
                        padded += h < s->h + s->pad_bottom && w < s->w + s->pad_right;
                    if (h < 0 || w < 0 || h >= s->h || w >= s->w)
                        continue;
                    int64_t at = ((n * s->h + h) * s->w + w) * s->c + c;
                    double divisor = (double)(s->count_include_pad ? padded : count);
                    if (pass == 0) {
                        count++;
                        sum += x[at];
                        if (best < 0 || (x[best] == x[best] && !(x[at] <= x[best])))
                            best = at;
                    } else if (!max) {
                        dx[at] += (float)(dy[o] / divisor);
                    }
                }
        y[o] = max ? x[best] : (float)(sum / (double)(s->count_include_pad ? padded : count));
        if (max)
            dx[best] += dy[o];
    }
}

enum odd { NONE, NANS, INFINITIES }; /* among the elements */

static float odd_element(enum odd odd, int64_t i, float usual)
{
    if (odd == NANS)
        return i % 307 == 5 ? NAN : usual;
    return odd == INFINITIES && i % 5 < 3 ? i % 11 < 6 ? -INFINITY : INFINITY : usual;
}

static void check_pool(struct pool_shape s, enum isa isa, bool max, enum odd odd, int64_t gap, bool at_start)
{
    assert_int_equal(pool_shape_finish(&s, "test"), GRAPHI_OK);
    int64_t px = s.n * s.h * s.w, py = s.n * s.oh * s.ow, c = s.c;
    s.ldx = c + gap;
    s.ldy = c + 2 * gap;
    s.lddy = c + gap;
    s.lddx = c + 3 * gap;
    s.ldp = c; /* gaps would be compared */
    float *x = malloc(4 * (size_t)(px * c + 1)), *dy = malloc(4 * (size_t)(py * c + 1));
    float *y = malloc(4 * (size_t)(py * c + 1)), *dx = malloc(4 * (size_t)(px * c + 1));
    fill_random(x, px * c);
    for (int64_t i = 0; i < px * c; i++)
        x[i] = odd_element(odd, i, roundf(x[i] * 4) / 4); /* ties are frequent */
    fill_random(dy, py * c);
    naive_pool(&s, max, x, dy, y, dx);
    struct guarded gx = guarded_random(span(px, c, s.ldx), at_start), gy = guarded_random(span(py, c, s.ldy), at_start);
    struct guarded gdy = guarded_random(span(py, c, s.lddy), at_start),
                   gdx = guarded_random(span(px, c, s.lddx), at_start);
    spread_rows(gx.data, x, px, c, s.ldx);
    spread_rows(gdy.data, dy, py, c, s.lddy);
    gaps(gy.data, py, c, s.ldy, false);
    gaps(gdx.data, px, c, s.lddx, false);
    struct pool_spec spec = {.shape = s, .kind = max ? POOL_MAX : POOL_AVERAGE};
    struct kernel kernel;
    size_t unit = graphi_dtype_size(pool_places_type(&s)), place_bytes = unit * (size_t)span(py, c, s.ldp);
    struct guarded gp = guarded_new(place_bytes, at_start);
    size_t bytes[] = {gap ? 0 : 4 * (size_t)(py * c), place_bytes}, x_bytes = gap ? 0 : 4 * (size_t)(px * c);
    struct kernel_array in[] = {{gp.data, s.n}, {gdy.data, s.n}}, out[] = {{gy.data, s.n}, {gp.data, s.n}};
    for (int places = 0; places <= max; places++) { /* nobody reads them, then somebody does */
        memset(gp.data, 0x5a, place_bytes);
        spec.places = places;
        assert_int_equal(pool_bind(&spec, isa, &kernel), GRAPHI_OK);
        run_checked(&kernel, &(struct kernel_array){gx.data, s.n}, out, places ? 2 : 1, bytes);
        assert_near(gy.data, y, py, c, s.ldy, max ? 0 : 1e-6);
        for (size_t i = 0; i < place_bytes && !places; i++)
            assert_int_equal(((const char *)gp.data)[i], 0x5a);
    }
    spec.direction = POOL_GRADIENT;
    for (int past = 0; past <= max; past++) {
        spec.streaming = past ? GRAPHI_STREAM_ALWAYS : GRAPHI_STREAM_NEVER;
        assert_int_equal(pool_bind(&spec, isa, &kernel), GRAPHI_OK);
        run_checked(&kernel, max ? in : in + 1, &(struct kernel_array){gdx.data, s.n}, 1, &x_bytes);
        assert_near(gdx.data, dx, px, c, s.lddx, 1e-6);
    }
    gaps(gy.data, py, c, s.ldy, true);
    gaps(gdx.data, px, c, s.lddx, true);
    struct guarded *all[] = {&gx, &gy, &gdy, &gdx, &gp};
    for (int i = 0; i < 5; i++)
        guarded_free(all[i]);
    free(x);
    free(dy);
    free(y);
    free(dx);
}

/* A window read beyond the border, a tie given to two inputs, a wrong divisor, a channel tail written too far, a NaN
 * that is not seen where windows without one are beside it. */
static void pooling_equals_its_definition(void **state)
{
    for (size_t i = 0; i < sizeof pool_shapes / sizeof *pool_shapes; i++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
            for (int form = 0; form < 16; form++) {
                static const struct {
                    bool max;
                    enum odd odd;
                } forms[] = {{false, NONE}, {true, NONE}, {true, NANS}, {true, INFINITIES}};
                check_pool(pool_shapes[i], (enum isa)isa, forms[form % 4].max, forms[form % 4].odd,
                           form / 4 % 2 ? 0 : 3, form >= 8);
            }
}

/* Without channels there are no spans: the first one was read before the rows, of which there are none either. With
 * so many rows it would lie where no memory is. */
static void images_without_channels(void **state)
{
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
        const struct pool_spec spec = {.shape = {IMAGES(1, 1 << 26, 2, 0), WINDOW(2, 2, 2, 2)},
                                       .kind = POOL_MAX,
                                       .direction = POOL_GRADIENT};
        const struct kernel_array in[] = {{NULL, 1}, {NULL, 1}}, dx = {NULL, 1};
        struct kernel kernel;
        assert_int_equal(pool_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
        assert_int_equal(run_order(&kernel, in, &dx, false), GRAPHI_OK);
        kernel_fini(&kernel);
    }
}

/* NaN is lost in a maximum (comparisons with it are false), or its gradient goes nowhere. */
static void max_pool_keeps_nan(void **state)
{
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
        float x[4 * 3], y[3], dy[3] = {1, 2, 3}, dx[12], want[12] = {0};
        uint8_t places[3];
        for (int i = 0; i < 12; i++)
            x[i] = (float)i;
        x[3 * 1 + 1] = x[3 * 2 + 1] = NAN;
        struct pool_spec spec = {
            .shape = {.n = 1, .h = 2, .w = 2, .c = 3, .kh = 2, .kw = 2, .stride_h = 1, .stride_w = 1}, .places = true};
        struct kernel kernel;
        struct kernel_array out[] = {{y, 1}, {places, 1}};
        assert_int_equal(pool_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
        assert_int_equal(run_order(&kernel, &(struct kernel_array){x, 1}, out, false), GRAPHI_OK);
        kernel_fini(&kernel);
        assert_true(y[0] == 9 && isnan(y[1]) && y[2] == 11);
        spec.direction = POOL_GRADIENT;
        assert_int_equal(pool_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
        struct kernel_array in[] = {{places, 1}, {dy, 1}};
        assert_int_equal(run_order(&kernel, in, &(struct kernel_array){dx, 1}, false), GRAPHI_OK);
        kernel_fini(&kernel);
        want[9] = 1;
        want[3 * 1 + 1] = 2;
        want[11] = 3;
        assert_memory_equal(dx, want, sizeof want);
    }
}

/* A window that hangs over an image smaller than itself: its maximum, its mean over what is there, their gradients. */
static void window_larger_than_the_image(void **state)
{
    static const float x[] = {1, 2, 3, 6}, dy = 8, most[] = {0, 0, 0, 8}, mean[] = {2, 2, 2, 2};
    for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++)
        for (int max = 0; max < 2; max++) {
            struct pool_spec spec = {.shape = {.n = 1, .h = 2, .w = 2, .c = 1, .kh = 3, .kw = 3, .stride_h = 2,
                                               .stride_w = 2, .ceil_mode = true},
                                     .kind = max ? POOL_MAX : POOL_AVERAGE,
                                     .places = max};
            struct kernel kernel;
            float y, dx[4];
            uint8_t place;
            const struct kernel_array in[] = {{&place, 1}, {(void *)&dy, 1}}, out[] = {{&y, 1}, {&place, 1}};
            assert_int_equal(pool_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
            assert_int_equal(run_order(&kernel, &(struct kernel_array){(void *)x, 1}, out, false), GRAPHI_OK);
            kernel_fini(&kernel);
            assert_float_equal(y, max ? 6 : 3, 0);
            spec.direction = POOL_GRADIENT;
            assert_int_equal(pool_bind(&spec, (enum isa)isa, &kernel), GRAPHI_OK);
            assert_int_equal(run_order(&kernel, in + !max, &(struct kernel_array){dx, 1}, false), GRAPHI_OK);
            kernel_fini(&kernel);
            assert_memory_equal(dx, max ? most : mean, sizeof dx);
        }
}

/* The rules of PyTorch for sizes: a last window that would start in the padding is dropped. */
static void pool_sizes_follow_the_rule(void **state)
{
    struct pool_shape s = {.n = 1,
                           .h = 5,
                           .w = 5,
                           .c = 1,
                           .kh = 2,
                           .kw = 3,
                           .stride_h = 2,
                           .stride_w = 3,
                           .pad_bottom = 1,
                           .pad_right = 1,
                           .ceil_mode = true};
    assert_int_equal(pool_shape_finish(&s, "test"), GRAPHI_OK);
    assert_int_equal(s.oh, 3);
    assert_int_equal(s.ow, 2);
    struct pool_shape caffe = {
        .n = 1, .h = 32, .w = 32, .c = 1, .kh = 3, .kw = 3, .stride_h = 2, .stride_w = 2, .ceil_mode = true};
    assert_int_equal(pool_shape_finish(&caffe, "test"), GRAPHI_OK);
    assert_int_equal(caffe.oh, 16);
    static const struct {
        int64_t size, kernel, stride, windows; /* none: INVALID */
    } overhanging[] = {{3, 2, 4, 1}, {2, 3, 2, 1}, {2, 3, 1, 0}, {1, 3, 2, 0}, {1, 3, 3, 1}, {4, 3, 2, 2}};
    for (size_t i = 0; i < sizeof overhanging / sizeof *overhanging; i++) {
        const int64_t size = overhanging[i].size, kernel = overhanging[i].kernel, stride = overhanging[i].stride;
        struct pool_shape over = {.n = 1, .h = size, .w = size, .c = 1, .kh = kernel, .kw = kernel,
                                  .stride_h = stride, .stride_w = stride, .ceil_mode = true};
        assert_int_equal(pool_shape_finish(&over, "test"), overhanging[i].windows ? GRAPHI_OK : GRAPHI_INVALID);
        assert_int_equal(over.oh, overhanging[i].windows);
    }
    struct pool_shape bad = {.n = 1, .h = 2, .w = 5, .c = 1, .kh = 3, .kw = 3, .stride_h = 1, .stride_w = 1};
    assert_int_equal(pool_shape_finish(&bad, "test"), GRAPHI_INVALID);
    bad.pad_top = 3;
    assert_int_equal(pool_shape_finish(&bad, "test"), GRAPHI_INVALID);
    bad = (struct pool_shape){.n = 1, .h = 2, .w = 5, .c = 1, .kh = 2, .kw = 2};
    assert_int_equal(pool_shape_finish(&bad, "test"), GRAPHI_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_equals_its_definition),
        cmocka_unit_test(images_without_channels),
        cmocka_unit_test(max_pool_keeps_nan),
        cmocka_unit_test(window_larger_than_the_image),
        cmocka_unit_test(pool_sizes_follow_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
