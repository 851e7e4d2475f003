/* SPDX-License-Identifier: Apache-2.0 */
/* Whole training graphs drawn at random (random_graph.h), several steps each, of other batch sizes where the batch is
 * bounded. Each runs twice over:
 *
 * - with the plain kernels, no passes, one operation at a time, against another instruction set with passes, precision
 *   and error of convolutions at random. They round in other places, so what differs is held against what rounding can
 *   do to this graph: how far a run goes that has every result of an operation times 1 + noise. Where a kink (relu, a
 *   maximum) lies within rounding of a value it may go the other way: so a graph is wrong that is so for all of several
 *   inputs.
 * - under policies, drivers, executors, widths and depths at random, which must give the same bits.
 *
 * A failure prints the graph, cut down to the fewest steps that fail, and what repeats it.
 *
 *     test_random_graphs                 graphs for a few seconds
 *     test_random_graphs SECONDS SEED    as many as there is time for, from graph SEED on */
#include "random_graph.h"

#include "engine/compile/plan.h"
#include "kernels/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "random_cases.h"

enum { USUAL_GRAPHS = 60, EXECUTIONS = 3, FEEDS = 3, SETTINGS = 4, MOST_PARTS = 1000 };

/* What executions gave, one after the other: outputs of each, the parameters at the end. */
struct trail {
    float *data;
    size_t count, capacity, begin[MOST_PARTS + 1]; /* begin: of each array */
    char name[MOST_PARTS][32];
    int parts;
};

/* One graph under test. */
struct trial {
    uint64_t key;
    int steps;
    graphi_plan_options options; /* of the plan that is compared */
    struct trail plain, noisy, other;
    char text[400]; /* what is wrong */
};

static int64_t draw(uint64_t key, uint64_t what, int64_t sides)
{
    return (int64_t)((uint64_t)random_philox(key, 999, what).v[0] * (uint64_t)sides >> 32);
}

static float *append(struct trail *t, const char *name, int64_t count)
{
    if (t->parts == MOST_PARTS)
        fail_msg("found more than %d arrays", MOST_PARTS);
    if (t->count + (size_t)count > t->capacity) {
        t->capacity = 2 * (t->count + (size_t)count);
        t->data = realloc(t->data, sizeof *t->data * t->capacity);
    }
    snprintf(t->name[t->parts], sizeof *t->name, "%s", name);
    t->begin[t->parts++] = t->count;
    t->count += (size_t)count;
    t->begin[t->parts] = t->count;
    return t->data + t->begin[t->parts - 1];
}

static void feed(const struct maker *m, graphi_run *run, uint64_t key, int64_t rows)
{
    for (size_t v = 0; v < m->g->values.count; v++) {
        const struct value *value = graph_value(m->g, (int32_t)v);
        if (value->kind != VALUE_INPUT)
            continue;
        int64_t count = type_count(&value->type);
        count = value->type.symbol >= 0 ? count / m->bound * rows : count;
        float *data = malloc(sizeof *data * (size_t)count);
        const bool ids = value->type.dtype == GRAPHI_I32, rate = strcmp(value->name, "rate") == 0;
        for (int64_t i = 0; i < count; i++) {
            const double u = random_unit(random_philox(key, v, (uint64_t)i).v[0]);
            data[i] = rate ? 0.1f : (float)(2 * u - 1);
            if (ids)
                ((int32_t *)data)[i] = (int32_t)(u * m->below[atoi(value->name + 3)]);
        }
        check_ok(graphi_run_set(run, value->name, value->type.dtype, data, sizeof *data * (size_t)count));
        free(data);
    }
}

static void execute(const struct maker *m, const graphi_plan *plan, uint64_t key, struct trail *trail)
{
    graphi_state *state;
    graphi_run *run;
    check_ok(graphi_state_create(m->g, key, &state));
    check_ok(graphi_run_create(plan, state, &run));
    trail->count = 0;
    trail->parts = 0;
    for (int e = 0; e < EXECUTIONS; e++) {
        int64_t rows = e == 1 ? 1 : e == 2 ? m->bound - m->bound / 3 : m->bound;
        if (m->bound)
            check_ok(graphi_run_set_symbol(run, "rows", rows));
        graphi_run_set_first_sample(run, (uint64_t)(7 * e));
        feed(m, run, key + (uint64_t)e, rows);
        check_ok(graphi_run_execute(run));
        for (size_t i = 0; i < m->g->outputs.count; i++) {
            const struct value_type type = type_of(m, m->g->outputs.data[i].value);
            int64_t count = type.symbol >= 0 ? type_count(&type) / m->bound * rows : type_count(&type);
            float *to = append(trail, m->g->outputs.data[i].name, count);
            check_ok(graphi_run_get(run, m->g->outputs.data[i].name, GRAPHI_F32, to, sizeof *to * (size_t)count));
        }
    }
    const char *name;
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    for (int i = 0; graphi_state_at(state, i, &name, &dtype, &rank, dims); i++) {
        int64_t count = 1;
        for (int d = 0; d < rank; d++)
            count *= dims[d];
        float *to = append(trail, name, count);
        check_ok(graphi_state_get(state, name, to, sizeof *to * (size_t)count));
    }
    graphi_run_destroy(run);
    graphi_state_destroy(state);
}

/* --- what is compared --- */

static const graphi_setting serially = {.policy = GRAPHI_POLICY_SEQUENTIAL, .executors = 1, .width = 1};
static double worst; /* of differences, in what is allowed */

static void set_options(struct trial *t)
{
    static const char *const some[] = {"+merge", "fusion",    "epilogue,bands", "cse,identities",
                                       "pool",   "recompute", "pack",           "all"};
    static char disable[40];
    static const graphi_streaming streams[] = {GRAPHI_STREAM_BY_SIZE, GRAPHI_STREAM_ALWAYS, GRAPHI_STREAM_NEVER};
    const uint64_t key = t->key;
    snprintf(disable, sizeof disable, "%s", some[draw(key, 2, 8)]);
    t->options =
        (graphi_plan_options){.setting = serially,
                              .isa = draw(key, 1, 3) ? NULL : isa_name((enum isa)draw(key, 3, isa_detect() + 1)),
                              .disable = draw(key, 4, 2) ? NULL : disable,
                              .precision = draw(key, 5, 4) ? GRAPHI_F32 : GRAPHI_BF16,
                              .conv_error = draw(key, 6, 3) == 0   ? 0
                                            : draw(key, 6, 3) == 1 ? 1
                                                                   : 100,
                              .streaming = streams[draw(key, 7, 3)],
                              .arena_target = draw(key, 8, 3)   ? 0
                                              : draw(key, 9, 2) ? 1
                                                                : (int64_t)1 << 30};
}

static void describe(struct trial *t, const char *what)
{
    snprintf(t->text, sizeof t->text, "isa %s, disable %s, %s, conv error %g, arena %lld, steps %d: %s",
             t->options.isa ? t->options.isa : "best", t->options.disable ? t->options.disable : "none",
             graphi_dtype_name(t->options.precision), t->options.conv_error, (long long)t->options.arena_target,
             t->steps, what);
}

static double largest(const float *a, const float *b, size_t begin, size_t end)
{
    double most = 0;
    for (size_t i = begin; i < end; i++) {
        double x = b ? fabs((double)a[i] - b[i]) : fabs(a[i]);
        most = x > most || isnan(x) ? x : most;
    }
    return most;
}

/* The first array of `other` that rounding does not explain; -1: none. */
static int first_wrong(struct trial *t)
{
    assert_int_equal(t->plain.count, t->noisy.count);
    assert_int_equal(t->plain.count, t->other.count);
    for (int p = 0; p < t->plain.parts; p++) {
        const size_t begin = t->plain.begin[p], end = t->plain.begin[p + 1];
        const double size = largest(t->plain.data, NULL, begin, end);
        const double noise = largest(t->plain.data, t->noisy.data, begin, end);
        const double error = largest(t->plain.data, t->other.data, begin, end);
        if (!isfinite(size) || !isfinite(noise))
            continue;
        const double rounding = t->options.precision == GRAPHI_BF16 ? 0.004 : 4e-6, bound = 8 * noise + rounding * size;
        if (bound > 0 && error / bound > worst)
            worst = error / bound;
        if (error <= bound)
            continue;
        char text[200];
        snprintf(text, sizeof text,
                 "'%s' (array %d) differs by %g from the plain kernels', of at most %g; noise gives %g",
                 t->plain.name[p], p, error, size, noise);
        describe(t, text);
        return p;
    }
    return -1;
}

static void compile(const struct maker *m, struct trial *t, const graphi_plan_options *options, graphi_plan **plan)
{
    if (graphi_graph_status(m->g) || graphi_plan_create(m->g, machine, options, plan)) {
        char *text = NULL, message[400];
        snprintf(message, sizeof message, "%s", graphi_message());
        graphi_graph_print(m->g, GRAPHI_PRINT_TEXT, &text);
        fprintf(stderr, "%s\n", text);
        fail_msg("graph %llu, %d steps: %s", (unsigned long long)t->key, t->steps, message);
    }
}

/* Is another way of computing it as right as rounding allows? `fault`: planted into an element of what it gave. */
static bool results_are_right(struct trial *t, const graphi_plan *plan, double fault)
{
    static struct maker m, noisy;
    graphi_plan_options options = {
        .setting = serially, .isa = "plain", .disable = "all", .conv_error = 1, .precision = t->options.precision};
    const bool rounded = t->options.precision == GRAPHI_BF16;
    graphi_plan *plain, *with_noise;
    random_graph(t->key, t->steps, 0, &m);
    /* Algorithms of convolutions below the direct one may err by so many times its error: 8 is the default. */
    const double times = rounded && m.convolves && t->options.conv_error != 1 ? 8 : 1;
    random_graph(t->key, t->steps, rounded ? times * 0x1p-8 : t->options.conv_error > 1 ? 0x1p-16 : 0x1p-19, &noisy);
    compile(&m, t, &options, &plain);
    compile(&noisy, t, &options, &with_noise);
    bool right = false;
    for (uint64_t f = 0; f < FEEDS && !right; f++) {
        const uint64_t key = t->key * FEEDS * 10 + f * 10;
        execute(&m, plain, key, &t->plain);
        execute(&noisy, with_noise, key, &t->noisy);
        execute(&m, plan, key, &t->other);
        t->other.data[t->other.count - 1] += (float)fault * fmaxf(1, fabsf(t->other.data[t->other.count - 1]));
        right = first_wrong(t) < 0;
    }
    graphi_plan_destroy(plain);
    graphi_plan_destroy(with_noise);
    graphi_graph_destroy(m.g);
    graphi_graph_destroy(noisy.g);
    return right;
}

/* Operations so long that all that can be are cut into as many pieces as there are. */
static void lengthen(graphi_plan *plan)
{
    for (int32_t i = 0; i < plan->compiled->curves; i++)
        for (int k = 0; k < plan->curves[i].samples; k++)
            plan->curves[i].ns[k] = 1e9;
}

/* `fault`: planted into an element's bits. */
static bool bits_are_the_same(struct trial *t, const struct maker *m, const graphi_plan *plan, uint32_t fault)
{
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    execute(m, plan, t->key, &t->plain);
    for (uint64_t s = 0; s < SETTINGS; s++) {
        const uint64_t at = 100 + 10 * s;
        const int executors = 1 + (int)draw(t->key, at, info.cores),
                  width = 1 + (int)draw(t->key, at + 1, info.cores / executors);
        const graphi_setting setting = {.policy = (graphi_policy)draw(t->key, at + 2, GRAPHI_POLICIES),
                                        .driver =
                                            (graphi_driver)(GRAPHI_DRIVER_DEDICATED + draw(t->key, at + 3, 3)),
                                        .executors = executors,
                                        .width = width,
                                        .depth = (int)draw(t->key, at + 4, 9),
                                        .inlining = draw(t->key, at + 5, 2) ? GRAPHI_OFF : GRAPHI_DEFAULT,
                                        .join = (int)draw(t->key, at + 6, 2),
                                        .parameters = {{"seed", (int64_t)(t->key + s)}}};
        graphi_plan *other;
        check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting}, &other));
        if (setting.join)
            lengthen(other);
        execute(m, other, t->key, &t->other);
        graphi_plan_destroy(other);
        uint32_t bits;
        memcpy(&bits, &t->other.data[t->other.count - 1], sizeof bits);
        bits ^= fault;
        memcpy(&t->other.data[t->other.count - 1], &bits, sizeof bits);
        if (t->plain.count == t->other.count &&
            memcmp(t->plain.data, t->other.data, sizeof(float) * t->plain.count) == 0)
            continue;
        char text[200];
        snprintf(text, sizeof text, "other bits under %s, driver %d, %d x %d, depth %d%s",
                 graphi_policy_name(setting.policy), setting.driver, executors, width, setting.depth,
                 setting.join ? ", joining" : "");
        describe(t, text);
        return false;
    }
    return true;
}

/* `fault`: what is planted: 1 into the results, 2 into one bit. */
static bool is_right(struct trial *t, int fault)
{
    static struct maker m;
    graphi_plan *plan;
    set_options(t);
    random_graph(t->key, t->steps, 0, &m);
    compile(&m, t, &t->options, &plan);
    bool right = results_are_right(t, plan, fault == 1 ? 2 : 0) && bits_are_the_same(t, &m, plan, fault == 2);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(m.g);
    return right;
}

/* --- tests --- */

static void show(struct trial *t)
{
    static struct maker m;
    char *text;
    const int most = t->steps;
    for (t->steps = 1; t->steps < most && is_right(t, 0); t->steps++)
        ;
    if (t->steps == most)
        is_right(t, 0); /* says what is wrong */
    random_graph(t->key, t->steps, 0, &m);
    check_ok(graphi_graph_print(m.g, GRAPHI_PRINT_TEXT, &text));
    fprintf(stderr, "%s\ngraph %llu (test_random_graphs 1 %llu): %s\n", text, (unsigned long long)t->key,
            (unsigned long long)t->key, t->text);
    graphi_free(text);
    graphi_graph_destroy(m.g);
}

/* A kernel, pass, gradient or order of operations that is wrong only beside certain others. */
static void random_graphs(void **state)
{
    static struct trial t;
    const uint64_t usual = getenv("GRAPHI_TESTS_EMULATED") ? USUAL_GRAPHS / 6 : USUAL_GRAPHS;
    uint64_t graphs = 0;
    int wrong = 0;
    for (; cases_more(graphs, usual); graphs++) {
        t.key = cases.seed + graphs;
        t.steps = 2 + (int)draw(t.key, 0, MOST_STEPS - 1);
        if (is_right(&t, 0))
            continue;
        wrong++;
        show(&t);
    }
    if (cases.seconds > 0)
        print_message("%llu graphs from seed %llu on, differences up to %.2f of the bound\n",
                      (unsigned long long)graphs, (unsigned long long)cases.seed, worst);
    assert_int_equal(wrong, 0);
}

/* Without it a bound that is too wide, or a result that nobody looks at, would make the comparison worthless. */
static void planted_faults_are_seen(void **state)
{
    static struct trial t;
    for (t.key = 0; t.key < 6; t.key++)
        for (int fault = 1; fault <= 2; fault++) {
            t.steps = 1 + (int)t.key;
            if (is_right(&t, fault))
                fail_msg("graph %llu: fault %d was not seen", (unsigned long long)t.key, fault);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(planted_faults_are_seen),
    };
    cases_read(argc, argv);
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
