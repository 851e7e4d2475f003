/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of random shapes through the public API, compiled with every instruction set, settings, passes and
 * precisions at random, against their definitions in double precision: results as the definition gives them, gradients
 * as differences of the definition. So a rule of differentiation and a kernel that are wrong in the same way do not
 * agree with it. Case i of a seed is always the same.
 *
 *     test_differential                 cases for a few seconds
 *     test_differential SECONDS SEED    as many as there is time for; prints what it began with */
#include "definitions.h"
#include "kernels/kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "random_cases.h"

enum { SAMPLES = 10, MOST_TERMS = 1 << 19, USUAL_CASES = 1000 };

/* A case at work: inputs in double, what the definition gives, what the plan gave. */
struct trial {
    struct problem p;
    double *in[INPUTS], *weight, *want, *size; /* size: of the terms of each element of the result */
    float *found, *gradient[INPUTS];
    enum isa isa;
    bool rounded; /* multiplicands of bfloat16 */
    char text[400];
};

static double loss_of(const struct trial *t, double *scratch)
{
    double loss = 0;
    t->p.kind->define(&t->p, t->in, scratch);
    for (int64_t i = 0; i < count_of(&t->p.out); i++)
        loss += t->weight[i] * scratch[i];
    return loss;
}

static void draw(struct trial *t, uint64_t key)
{
    struct problem *p = &t->p;
    for (*p = (struct problem){.key = key}; !p->terms || p->terms > MOST_TERMS;) {
        *p = (struct problem){.key = key, .used = p->used, .least = -1};
        p->kind = &kinds[roll(p, KINDS)];
        p->kind->draw(p);
    }
    for (int i = 0; i < p->inputs; i++) {
        t->in[i] = malloc(sizeof(double) * (size_t)count_of(&p->in[i]));
        for (int64_t e = 0; e < count_of(&p->in[i]); e++) {
            double u = random_unit(random_philox(p->key, 1 + (uint64_t)i, (uint64_t)e).v[0]);
            t->in[i][e] =
                p->ids && i == p->ids ? floor(u * (double)p->below) : (double)(float)(p->least + (1 - p->least) * u);
        }
    }
    const size_t bytes = sizeof(double) * (size_t)count_of(&p->out);
    t->weight = malloc(bytes);
    t->want = malloc(bytes);
    t->size = malloc(bytes);
    t->found = malloc(bytes);
    for (int64_t e = 0; e < count_of(&p->out); e++)
        t->weight[e] = (double)(2 * random_unit(random_philox(p->key, 9, (uint64_t)e).v[0]) - 1);
    p->kind->define(p, t->in, t->want);
    double *magnitude[INPUTS];
    for (int i = 0; i < p->inputs; i++) {
        magnitude[i] = malloc(sizeof(double) * (size_t)count_of(&p->in[i]));
        for (int64_t e = 0; e < count_of(&p->in[i]); e++)
            magnitude[i][e] = fabs(t->in[i][e]);
    }
    if (p->kind->sums)
        p->kind->define(p, magnitude, t->size);
    for (int64_t e = 0; e < count_of(&p->out) && !p->kind->sums; e++)
        t->size[e] = fabs(t->want[e]);
    for (int i = 0; i < p->inputs; i++)
        free(magnitude[i]);
}

static void finish(struct trial *t)
{
    for (int i = 0; i < t->p.inputs; i++) {
        free(t->in[i]);
        free(t->gradient[i]);
    }
    free(t->weight);
    free(t->want);
    free(t->size);
    free(t->found);
}

static void put_shape(char *text, size_t size, const struct tensor *t)
{
    size_t used = strlen(text);
    for (int d = 0; d < t->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? "x" : " ", (long long)t->dims[d]);
}

static void describe(struct trial *t, uint64_t key, const char *disable)
{
    const struct problem *p = &t->p;
    snprintf(t->text, sizeof t->text, "case %llu, %s, %s%s%s:", (unsigned long long)key, p->kind->name,
             isa_name(t->isa), t->rounded ? ", bfloat16" : "", disable ? ", no passes" : "");
    for (int i = 0; i < p->inputs; i++)
        put_shape(t->text, sizeof t->text, &p->in[i]);
    strncat(t->text, " to", sizeof t->text - strlen(t->text) - 1);
    put_shape(t->text, sizeof t->text, &p->out);
    for (int i = 0; i < NUMBERS; i++) {
        size_t used = strlen(t->text);
        snprintf(t->text + used, sizeof t->text - used, "%s%lld", i ? "," : " (", (long long)p->number[i]);
    }
}

static void set_numbers(graphi_run *run, graphi_state *state, const char *name, bool parameter, bool ids,
                        const double *from, int64_t count)
{
    float *data = malloc(sizeof(float) * (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        data[i] = (float)from[i];
        if (ids)
            ((int32_t *)data)[i] = (int32_t)from[i];
    }
    if (parameter)
        check_ok(graphi_state_set(state, name, data, sizeof(float) * (size_t)count));
    else
        check_ok(graphi_run_set(run, name, ids ? GRAPHI_I32 : GRAPHI_F32, data, sizeof(float) * (size_t)count));
    free(data);
}

/* Compiles and runs it: fills what was found. */
static void run(struct trial *t, uint64_t key)
{
    static const char *const names[INPUTS] = {"a", "b", "c", "d"}, *const grads[INPUTS] = {"ga", "gb", "gc", "gd"};
    struct problem *p = &t->p;
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
    graphi_value in[INPUTS], wrt[INPUTS], gradient[INPUTS];
    int wanted = 0, threads = 1 + (int)roll(p, 2), which[INPUTS];
    bool parameter[INPUTS], forward = !roll(p, 3);
    graphi_machine_info about;
    graphi_machine_get_info(machine, &about);
    threads = threads < about.cores ? threads : about.cores;
    bool several = roll(p, 2);
    graphi_plan_options options = {.isa = isa_name(t->isa),
                                   .precision = t->rounded ? GRAPHI_BF16 : GRAPHI_F32,
                                   .disable = roll(p, 4) ? NULL : "all",
                                   .conv_error = roll(p, 2) ? 0 : 100,
                                   .setting = {.executors = several ? threads : 1, .width = several ? 1 : threads}};
    describe(t, key, options.disable);
    check_ok(graphi_graph_create(&g));
    for (int i = 0; i < p->inputs; i++) {
        const graphi_dtype dtype = p->ids && i == p->ids ? GRAPHI_I32 : GRAPHI_F32;
        parameter[i] = dtype == GRAPHI_F32 && roll(p, 2);
        in[i] = parameter[i] ? graphi_parameter(g, names[i], dtype, p->in[i].rank, p->in[i].dims, NULL)
                             : graphi_input(g, names[i], dtype, p->in[i].rank, p->in[i].dims);
        if (dtype == GRAPHI_F32) {
            which[wanted] = i;
            wrt[wanted++] = in[i];
        }
    }
    graphi_value y = p->kind->build(g, p, in), w = graphi_input(g, "w", GRAPHI_F32, p->out.rank, p->out.dims);
    graphi_output(g, "y", y);
    if (!forward) {
        graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, y, w), NULL, 0, 0);
        check_ok(graphi_gradients(g, loss, wanted, wrt, gradient));
        for (int i = 0; i < wanted; i++)
            graphi_output(g, grads[which[i]], gradient[i]);
    }
    if (graphi_graph_status(g) || graphi_plan_create(g, machine, &options, &plan))
        fail_msg("%s): %s", t->text, graphi_message());
    check_ok(graphi_state_create(g, 1, &state));
    check_ok(graphi_run_create(plan, state, &run));
    for (int i = 0; i < p->inputs; i++)
        set_numbers(run, state, names[i], parameter[i], p->ids && i == p->ids, t->in[i], count_of(&p->in[i]));
    set_numbers(run, state, "w", false, false, t->weight, count_of(&p->out));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "y", GRAPHI_F32, t->found, sizeof(float) * (size_t)count_of(&p->out)));
    for (int i = 0; i < wanted && !forward; i++) {
        size_t bytes = sizeof(float) * (size_t)count_of(&p->in[which[i]]);
        t->gradient[which[i]] = malloc(bytes);
        check_ok(graphi_run_get(run, grads[which[i]], GRAPHI_F32, t->gradient[which[i]], bytes));
    }
    graphi_run_destroy(run);
    graphi_state_destroy(state);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* The first result that is not the definition's: false, and what it is in t->text. */
static bool result_is_right(struct trial *t)
{
    const struct kind *kind = t->p.kind;
    const bool fast = strncmp(kind->name, "conv2d", 6) == 0; /* Winograd's tiles: errors of all that they read */
    for (int64_t i = 0; i < count_of(&t->p.out); i++) {
        double bound = kind->tolerance * (fast ? 25 : 1) * (1 + t->size[i]);
        if (t->rounded && kind->sums)
            bound = (fast ? 0.6 : 0) + 0.02 * (1 + t->size[i]);
        if (fabs(t->found[i] - t->want[i]) <= bound)
            continue;
        size_t used = strlen(t->text);
        snprintf(t->text + used, sizeof t->text - used, "): element %lld is %.9g, expected %.9g", (long long)i,
                 t->found[i], t->want[i]);
        return false;
    }
    return true;
}

/* How the loss changes with an element: from the step before to the step after it. At a kink the slopes of both sides
 * differ, each from the middle by the bend, and any in between is right: single precision may be on either side. */
struct slope {
    double middle, bend;
};

static struct slope slope_of(struct trial *t, int input, int64_t element, double step, double *scratch)
{
    double *x = &t->in[input][element], kept = *x, loss[3];
    for (int i = 0; i < 3; i++) {
        *x = kept + (i - 1) * step;
        loss[i] = loss_of(t, scratch);
    }
    *x = kept;
    return (struct slope){(loss[2] - loss[0]) / (2 * step), fabs(loss[2] - 2 * loss[1] + loss[0]) / (2 * step)};
}

/* Some elements of the gradients, against differences of the definition. */
static bool gradients_are_right(struct trial *t)
{
    struct problem *p = &t->p;
    double *scratch = malloc(sizeof(double) * (size_t)count_of(&p->out));
    bool right = true;
    const int samples = p->terms > 1 << 16 ? SAMPLES / 3 : SAMPLES;
    for (int i = 0; i < p->inputs && !(t->rounded && p->kind->kinks); i++) {
        double largest = 1;
        for (int64_t e = 0; t->gradient[i] && e < count_of(&p->in[i]) && right; e++) {
            largest = fmax(largest, fabs(t->gradient[i][e]));
            right = isfinite(t->gradient[i][e]);
            size_t used = strlen(t->text);
            if (!right)
                snprintf(t->text + used, sizeof t->text - used, "): gradient %d at %lld is %g, expected a number", i,
                         (long long)e, t->gradient[i][e]);
        }
        for (int s = 0; t->gradient[i] && s < samples && right; s++) {
            const int64_t e = s == 0 ? count_of(&p->in[i]) - 1 : roll(p, count_of(&p->in[i]));
            const struct slope slope = slope_of(t, i, e, p->kind->kinks ? 4e-7 : 1e-5, scratch);
            const double bound = (t->rounded && p->kind->sums ? 0.05 : 2e-4) * largest;
            const double off = fabs(t->gradient[i][e] - slope.middle) - (p->kind->kinks ? slope.bend : 0);
            right = off <= bound;
            size_t used = strlen(t->text);
            if (!right)
                snprintf(t->text + used, sizeof t->text - used, "): gradient %d at %lld is %.9g, expected %.9g", i,
                         (long long)e, t->gradient[i][e], slope.middle);
        }
    }
    free(scratch);
    return right;
}

/* `fault`: what is planted into what the plan gave: 1 the result, 2 a gradient. */
static bool is_right(uint64_t key, int fault)
{
    struct trial t = {0};
    draw(&t, key);
    t.isa = (enum isa)roll(&t.p, isa_detect() + 1);
    t.rounded = !roll(&t.p, 5);
    run(&t, key);
    if (fault == 1)
        t.found[count_of(&t.p.out) - 1] += 2 + 0.1f * (float)t.size[count_of(&t.p.out) - 1];
    if (fault == 2 && t.gradient[0])
        t.gradient[0][count_of(&t.p.in[0]) - 1] += 0.5f * fmaxf(3, fabsf(t.gradient[0][count_of(&t.p.in[0]) - 1]));
    bool right = result_is_right(&t), slopes = right && gradients_are_right(&t);
    bool seen = fault == 2 ? !t.gradient[0] || (t.rounded && t.p.kind->kinks) || !slopes : !right || !slopes;
    if (!fault && seen)
        print_error("%s\n", t.text);
    finish(&t);
    return !seen;
}

/* A kernel, a gradient or a pass that is wrong for shapes nobody thought of, on some instruction set. */
static void random_operations(void **state)
{
    uint64_t done = 0;
    int wrong = 0;
    for (; cases_more(done, USUAL_CASES); done++)
        wrong += !is_right(cases.seed + done, 0);
    if (cases.seconds > 0)
        print_message("%llu cases from seed %llu on\n", (unsigned long long)done, (unsigned long long)cases.seed);
    assert_int_equal(wrong, 0);
}

/* Without it a bound that is too wide, or a gradient that nobody looks at, would make the comparison worthless. */
static void planted_faults_are_seen(void **state)
{
    for (uint64_t key = 0; key < 60; key++)
        for (int fault = 1; fault <= 2; fault++)
            if (is_right(key, fault))
                fail_msg("case %llu: fault %d was not seen", (unsigned long long)key, fault);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(planted_faults_are_seen),
    };
    cases_read(argc, argv);
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
