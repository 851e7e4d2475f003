/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric gradients of each network's cell: the LSTM and PhasedLSTM cell (two layers' depth and two steps of it come
 * along, since the network's own builder makes them), the module of PathNet and the inception module of GoogLeNet.
 * Central differences on the reference interpreter, plain kernels.
 *
 * The tolerance is relative to the largest gradient of a parameter. Float32 losses of about 10 are off by 1e-6 to 1e-5,
 * the quotient by a step of 2e-3 by up to 5e-3; curvature is less. */
/* The inception module is private to its file, as it should be. */
#include "models/googlenet.c"

#include "fill.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MAX_CHECKED = 128, SAMPLES = 4 };
static const double tolerance = 2e-2, difference_step = 2e-3;

static int is_checked(const struct value *value)
{
    return value->type.dtype == GRAPHI_F32 && value->name &&
           ((value->kind == VALUE_PARAMETER && !value->frozen) || value->kind == VALUE_INPUT);
}

static void fill_all(struct reference *r)
{
    for (size_t v = 0; v < r->graph->values.count; v++) {
        const struct value *value = graph_value(r->graph, (int32_t)v);
        int64_t count = type_count(&value->type);
        double range[2] = {-1, 1};
        if (!value->name || (value->kind != VALUE_PARAMETER && value->kind != VALUE_INPUT))
            continue;
        if (value->type.dtype == GRAPHI_I32) {
            fill_integers(value->name, 10, count, r->data[v]);
            continue;
        }
        if (value->kind == VALUE_PARAMETER)
            fill_range(value->name, value->type.rank, value->type.dims, 1, range);
        fill_uniform(value->name, range[0], range[1], count, r->data[v]);
    }
}

static double loss_at(struct reference *r, graphi_value loss, float *x, float at)
{
    float old = *x;
    *x = at;
    double result = reference_run(r) == GRAPHI_OK ? (double)*reference_floats(r, loss) : NAN;
    *x = old;
    return result;
}

/* d loss / d x[i] against the difference to the left, to the right and over both: a kink within a step spoils two of
 * the three, a wrong gradient agrees with none. Gives the least. */
static double element_error(struct reference *r, graphi_value loss, float *x, double analytic)
{
    float low = *x - (float)difference_step, high = *x + (float)difference_step;
    double at_low = loss_at(r, loss, x, low), at_x = loss_at(r, loss, x, *x), at_high = loss_at(r, loss, x, high);
    const double slopes[] = {(at_high - at_low) / ((double)high - (double)low),
                             (at_high - at_x) / ((double)high - (double)*x),
                             (at_x - at_low) / ((double)*x - (double)low)};
    double least = INFINITY;
    for (int k = 0; k < 3; k++)
        least = fmin(least, fabs(slopes[k] - analytic)); /* a NaN is passed over */
    return least;
}

/* The worst of some elements of one source, relative to its largest gradient. */
static double gradient_error(struct reference *r, graphi_value loss, graphi_value wrt, graphi_value gradient)
{
    int64_t count = type_count(&graph_value(r->graph, wrt)->type);
    if (reference_run(r) != GRAPHI_OK)
        return INFINITY;
    double scale = 1e-3, worst = 0, analytic[SAMPLES];
    int64_t at[SAMPLES];
    for (int64_t i = 0; i < count; i++)
        scale = fmax(scale, fabs((double)reference_floats(r, gradient)[i]));
    for (int s = 0; s < SAMPLES; s++) {
        at[s] = (int64_t)(fill_unit(fill_key("samples"), s) * (double)count);
        analytic[s] = (double)reference_floats(r, gradient)[at[s]];
    }
    for (int s = 0; s < SAMPLES; s++)
        worst = fmax(worst, element_error(r, loss, reference_floats(r, wrt) + at[s], analytic[s]));
    return worst / scale;
}

/* Worst relative error over every float parameter and input of the graph; `prepare` may change what fill_all set. */
static double worst_gradient(graphi_graph *graph, graphi_value loss, void (*prepare)(struct reference *))
{
    graphi_value wrt[MAX_CHECKED], gradient[MAX_CHECKED];
    int n = 0;
    for (size_t v = 0; v < graph->values.count; v++)
        if (is_checked(graph_value(graph, (int32_t)v)) && strcmp(graph_value(graph, (int32_t)v)->name, "time") != 0) {
            assert_true(n < MAX_CHECKED);
            wrt[n++] = (graphi_value)v;
        }
    if (graphi_gradients(graph, loss, n, wrt, gradient) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    struct reference r;
    reference_init(&r, graph);
    fill_all(&r);
    if (prepare)
        prepare(&r);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        assert_true(gradient[i] != GRAPHI_NONE);
        double error = gradient_error(&r, loss, wrt[i], gradient[i]);
        if (!(error <= tolerance))
            print_message("%s: gradient off by %.2g\n", graph_value(graph, wrt[i])->name, error);
        worst = fmax(worst, error);
    }
    reference_fini(&r);
    return worst;
}

static graphi_value output_value(const graphi_graph *graph, const char *name)
{
    graphi_value value = graphi_find(graph, name);
    assert_true(value != GRAPHI_NONE);
    return value;
}

static void check_model(const char *name, const graphi_model_options *options, void (*prepare)(struct reference *))
{
    graphi_graph *graph;
    if (graphi_model_create(name, options, &graph) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    assert_true(worst_gradient(graph, output_value(graph, "loss"), prepare) <= tolerance);
    graphi_graph_destroy(graph);
}

static const graphi_model_options recurrent = {.batch = 2, .steps = 2, .units = 3, .forward = true};

/* A gate's gradient is lost or goes to another gate. */
static void lstm_cell(void **state)
{
    (void)state;
    check_model("lstm", &recurrent, NULL);
    graphi_model_options merged = recurrent;
    merged.merged = true;
    check_model("lstm", &merged, NULL);
}

static const float *floats(const struct reference *r, const char *name)
{
    graphi_value value = graphi_find(r->graph, name);
    assert_true(value != GRAPHI_NONE);
    return reference_floats(r, value);
}

/* Whether the phase of every unit is well away from the kinks of its gate. */
static bool smooth_at(const struct reference *r, double time)
{
    const double margin = 0.01;
    for (int layer = 0; layer < 4; layer++) {
        const float *of[3];
        static const char *const names[] = {"period", "shift", "ratio"};
        for (int k = 0; k < 3; k++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d/%s", layer, names[k]);
            of[k] = floats(r, name);
        }
        for (int u = 0; u < (int)recurrent.units; u++) {
            double period = (double)of[0][u], phase = time / period - (double)of[1][u], ratio = (double)of[2][u];
            phase -= floor(phase);
            const double kinks[] = {0, ratio / 2, ratio, 1};
            for (int k = 0; k < 4; k++)
                if (fabs(phase - kinks[k]) < margin)
                    return false;
        }
    }
    return true;
}

/* The gate of a PhasedLSTM has kinks, where differences mean nothing: times are drawn until no unit is near one. */
static void choose_times(struct reference *r)
{
    float *times = reference_floats(r, graphi_find(r->graph, "time"));
    int64_t drawn = 0;
    for (int i = 0; i < (int)(recurrent.steps * recurrent.batch); i++) {
        do {
            times[i] = (float)(20 * fill_unit(fill_key("times"), drawn++));
            assert_true(drawn < 10000);
        } while (!smooth_at(r, (double)times[i]));
    }
}

/* The same, and periods, shifts and ratios are not learned. */
static void phased_lstm_cell(void **state)
{
    (void)state;
    check_model("phased-lstm", &recurrent, choose_times);
}

/* The sum of modules, or the maximum of a window, sends its gradient elsewhere. */
static void pathnet_module(void **state)
{
    (void)state;
    check_model("pathnet", &(graphi_model_options){.batch = 2, .image = 8, .units = 2, .forward = true}, NULL);
}

static void check_inception(const graphi_model_options *options)
{
    static const struct inception module = {"3a", 2, 3, 4, 2, 3, 2};
    const graphi_model_info sizes = {.batch = 2, .units = 1};
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    const struct builder b = {graph, &sizes, options};
    struct model_image x = {graphi_input(graph, "image", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, 3}), 6, 3};
    struct model_image y = inception(&b, lrn(&b, x), &module);
    assert_int_equal(y.channels, 2 + 4 + 3 + 2);
    /* weighted at random: a plain sum or a norm hardly changes where outputs are normalized */
    graphi_value weights = graphi_input(graph, "weights", GRAPHI_F32, 4, (int64_t[]){2, 6, 6, y.channels});
    graphi_value loss = graphi_reduce_sum(graph, graphi_mul(graph, y.value, weights), NULL, 0, 0);
    if (graphi_graph_status(graph) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    assert_true(worst_gradient(graph, loss, NULL) <= tolerance);
    graphi_graph_destroy(graph);
}

/* A branch takes another's part of the concatenated gradient; normalization leaves out what flows through its
 * statistics. */
static void inception_module(void **state)
{
    (void)state;
    check_inception(&(graphi_model_options){0});
    check_inception(&(graphi_model_options){.batch_norm = true, .lrn = true});
}

/* The windows of the average, their rows in the dense layer, or the two dense layers give wrong gradients. */
static void side_classifiers(void **state)
{
    (void)state;
    const graphi_model_info sizes = {.batch = 2, .units = 1, .classes = 3};
    const graphi_model_options options = {0};
    static const struct {
        int64_t image, features;
    } sides[] = {{8, 4}, {7, 1}, {3, 1}}; /* four windows, one, the image itself */
    for (int i = 0; i < 3; i++) {
        graphi_graph *graph;
        assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
        const struct builder b = {graph, &sizes, &options};
        const int64_t side = sides[i].image;
        graphi_value image = graphi_input(graph, "image", GRAPHI_F32, 4, (int64_t[]){2, side, side, 2});
        graphi_value logits = side_classifier(&b, "side", (struct model_image){image, side, 2});
        graphi_dtype dtype;
        int rank;
        int64_t dims[GRAPHI_MAX_RANK];
        const graphi_value dense = graphi_find(graph, "side/dense/weight");
        assert_int_equal(graphi_value_type(graph, dense, &dtype, &rank, dims), GRAPHI_OK);
        assert_int_equal(dims[0], 128 * sides[i].features);
        graphi_value weights = graphi_input(graph, "weights", GRAPHI_F32, 2, (int64_t[]){2, 3});
        graphi_value loss = graphi_reduce_sum(graph, graphi_mul(graph, logits, weights), NULL, 0, 0);
        if (graphi_graph_status(graph) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        assert_true(worst_gradient(graph, loss, NULL) <= tolerance);
        graphi_graph_destroy(graph);
    }
}

/* The check lets wrong gradients pass: here the loss holds a part that the gradient does not know. */
static void wrong_gradient_is_noticed(void **state)
{
    (void)state;
    graphi_graph *graph;
    assert_int_equal(graphi_graph_create(&graph), GRAPHI_OK);
    const int64_t dims[] = {4};
    graphi_value x = graphi_input(graph, "x", GRAPHI_F32, 1, dims), y = graphi_square(graph, x);
    graphi_value part = graphi_reduce_sum(graph, y, NULL, 0, 0);
    graphi_value whole = graphi_add(graph, part, graphi_mul(graph, model_scalar(graph, 0.05f), part));
    graphi_value gradient;
    assert_int_equal(graphi_gradients(graph, part, 1, &x, &gradient), GRAPHI_OK);
    struct reference r;
    reference_init(&r, graph);
    assert_true(gradient_error(&r, part, x, gradient) <= tolerance);
    assert_true(gradient_error(&r, whole, x, gradient) > tolerance);
    reference_fini(&r);
    graphi_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_cell),
        cmocka_unit_test(phased_lstm_cell),
        cmocka_unit_test(pathnet_module),
        cmocka_unit_test(inception_module),
        cmocka_unit_test(side_classifiers),
        cmocka_unit_test(wrong_gradient_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
