/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of every kind against loops over plain arrays and central differences, maxima over time, highway layers,
 * perceptrons, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 3, TIME = 4, WIDE = 5, UNITS = 6 };

static const int32_t lengths[BATCH] = {4, 2, 0};

/* A network under way: its outputs by name. */
struct session {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    graphi_run *run;
};

static struct session begin(graphi_graph *g)
{
    struct session s = {.graph = g};
    check_ok(graphi_graph_status(g));
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.setting = {.executors = 1, .width = 1}}, &s.plan));
    check_ok(graphi_state_create(g, 2, &s.state));
    check_ok(graphi_run_create(s.plan, s.state, &s.run));
    return s;
}

static void end(struct session *s)
{
    graphi_run_destroy(s->run);
    graphi_state_destroy(s->state);
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
}

static void fill(float *to, int count, unsigned seed)
{
    for (int i = 0; i < count; i++)
        to[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
}

static void take(struct session *s, const char *name, float *to, int count)
{
    check_ok(graphi_run_get(s->run, name, GRAPHI_F32, to, (size_t)count * sizeof *to));
}

static void parameter(const struct session *s, const char *name, float *to, int count)
{
    check_ok(graphi_state_get(s->state, name, to, (size_t)count * sizeof *to));
}

static float query[BATCH][WIDE], memory[BATCH][TIME][WIDE];

/* The score of step t by the definition. */
static double score(const struct session *s, graphi_attention_kind kind, int b, int t)
{
    float w[WIDE][WIDE], wq[WIDE][UNITS], wm[WIDE][UNITS], bias[UNITS], vector[UNITS], row[3][WIDE];
    double sum = 0;
    const float *q = query[b], *m = memory[b][t];
    if (kind == GRAPHI_ATTENTION_BILINEAR)
        parameter(s, "a.weight", &w[0][0], WIDE * WIDE);
    if (kind == GRAPHI_ATTENTION_TRILINEAR) {
        parameter(s, "a.weight_memory", row[0], WIDE);
        parameter(s, "a.weight_query", row[1], WIDE);
        parameter(s, "a.weight_product", row[2], WIDE);
    }
    for (int i = 0; i < WIDE; i++)
        if (kind == GRAPHI_ATTENTION_DOT)
            sum += (double)q[i] * m[i];
        else if (kind == GRAPHI_ATTENTION_TRILINEAR)
            sum += (double)row[0][i] * m[i] + (double)row[1][i] * q[i] + (double)row[2][i] * q[i] * m[i];
        else if (kind == GRAPHI_ATTENTION_BILINEAR)
            for (int k = 0; k < WIDE; k++)
                sum += (double)q[i] * w[i][k] * m[k];
    if (kind != GRAPHI_ATTENTION_ADDITIVE)
        return sum;
    parameter(s, "a.weight_query", &wq[0][0], WIDE * UNITS);
    parameter(s, "a.weight_memory", &wm[0][0], WIDE * UNITS);
    parameter(s, "a.bias", bias, UNITS);
    parameter(s, "a.vector", vector, UNITS);
    for (int u = 0; u < UNITS; u++) {
        double inside = bias[u];
        for (int i = 0; i < WIDE; i++)
            inside += (double)q[i] * wq[i][u] + (double)m[i] * wm[i][u];
        sum += vector[u] * tanh(inside);
    }
    return sum;
}

static graphi_graph *attention(graphi_attention_kind kind, bool masked)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_attention_options how = {.kind = kind, .units = UNITS, .scale = 0.5, .scope = "a."};
    graphi_attention_result r;
    graphi_value q = graphi_input(g, "q", GRAPHI_F32, 2, (int64_t[]){BATCH, WIDE});
    graphi_value m = graphi_input(g, "m", GRAPHI_F32, 3, (int64_t[]){BATCH, TIME, WIDE});
    graphi_value n = masked ? graphi_input(g, "n", GRAPHI_I32, 1, (int64_t[]){BATCH}) : GRAPHI_NONE;
    graphi_value context = graphi_attend(g, q, m, n, &how, &r), wrt[] = {q, m}, gradient[2];
    graphi_output(g, "context", context);
    graphi_output(g, "weights", r.weights);
    graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, context, context), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    graphi_gradients(g, loss, 2, wrt, gradient);
    graphi_output(g, "dq", gradient[0]);
    graphi_output(g, "dm", gradient[1]);
    return g;
}

static float run(struct session *s, bool masked)
{
    float loss;
    check_ok(graphi_run_set(s->run, "q", GRAPHI_F32, query, sizeof query));
    check_ok(graphi_run_set(s->run, "m", GRAPHI_F32, memory, sizeof memory));
    if (masked)
        check_ok(graphi_run_set(s->run, "n", GRAPHI_I32, lengths, sizeof lengths));
    check_ok(graphi_run_execute(s->run));
    take(s, "loss", &loss, 1);
    return loss;
}

static void check_gradient(struct session *s, bool masked, const char *name, float *numbers, int count)
{
    float all[BATCH * TIME * WIDE];
    run(s, masked);
    take(s, name, all, count);
    for (int i = 0; i < count; i += 3) {
        const float kept = numbers[i], step = 0.01f;
        numbers[i] = kept + step;
        const double more = run(s, masked);
        numbers[i] = kept - step;
        const double less = run(s, masked);
        numbers[i] = kept;
        const double expected = (more - less) / (2 * (double)step);
        if (!(fabs(all[i] - expected) <= 2e-3 * fmax(1, fabs(expected))))
            fail_msg("%s[%d] is %g, by differences %g", name, i, (double)all[i], expected);
    }
}

/* A score of another step, a weight beyond a length, a scale that is left out, a gradient that is missing. */
static void attention_is_as_defined(void **state)
{
    fill(&query[0][0], BATCH * WIDE, 1);
    fill(&memory[0][0][0], BATCH * TIME * WIDE, 2);
    for (int kind = 0; kind < GRAPHI_ATTENTION_KINDS; kind++)
        for (int masked = 0; masked < 2; masked++) {
            struct session s = begin(attention((graphi_attention_kind)kind, masked));
            float weights[BATCH][TIME], context[BATCH][WIDE];
            run(&s, masked);
            take(&s, "weights", &weights[0][0], BATCH * TIME);
            take(&s, "context", &context[0][0], BATCH * WIDE);
            for (int b = 0; b < BATCH; b++) {
                const int steps = masked ? lengths[b] : TIME;
                double power[TIME], sum = 0, expected[WIDE] = {0};
                for (int t = 0; t < steps; t++)
                    sum += power[t] = exp(0.5 * score(&s, (graphi_attention_kind)kind, b, t));
                for (int t = 0; t < TIME; t++) {
                    const double weight = t < steps ? power[t] / sum : 0;
                    if (!(fabs(weights[b][t] - weight) <= 1e-5))
                        fail_msg("kind %d: weight %d of row %d is %g, not %g", kind, t, b, (double)weights[b][t],
                                 weight);
                    for (int i = 0; i < WIDE; i++)
                        expected[i] += weight * memory[b][t][i];
                }
                for (int i = 0; i < WIDE; i++)
                    assert_true(fabs(context[b][i] - expected[i]) <= 1e-5);
            }
            check_gradient(&s, masked, "dq", &query[0][0], BATCH * WIDE);
            check_gradient(&s, masked, "dm", &memory[0][0][0], BATCH * TIME * WIDE);
            end(&s);
        }
}

/* A maximum over padding, a gate the wrong way round, a layer without its bias. */
static void layers_around_are_as_defined(void **state)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value rows = graphi_input(g, "rows", GRAPHI_F32, 2, (int64_t[]){TIME * BATCH, WIDE});
    graphi_value n = graphi_input(g, "n", GRAPHI_I32, 1, (int64_t[]){BATCH});
    graphi_output(g, "most", graphi_max_over_time(g, graphi_batch_major(g, rows, BATCH), n));
    graphi_output(g, "highway", graphi_highway(g, rows, 1, "h."));
    graphi_output(g, "perceptron", graphi_perceptron(g, rows, 2, (int64_t[]){UNITS, 2}, "p."));
    struct session s = begin(g);
    float x[TIME][BATCH][WIDE], most[BATCH][WIDE], high[TIME * BATCH][WIDE], out[TIME * BATCH][2];
    float w[WIDE][WIDE], b[WIDE], gw[WIDE][WIDE], gb[WIDE], p0[WIDE][UNITS], q0[UNITS], p1[UNITS][2], q1[2];
    fill(&x[0][0][0], TIME * BATCH * WIDE, 3);
    check_ok(graphi_run_set(s.run, "rows", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_set(s.run, "n", GRAPHI_I32, lengths, sizeof lengths));
    check_ok(graphi_run_execute(s.run));
    take(&s, "most", &most[0][0], BATCH * WIDE);
    take(&s, "highway", &high[0][0], TIME * BATCH * WIDE);
    take(&s, "perceptron", &out[0][0], TIME * BATCH * 2);
    parameter(&s, "h.weight_l0", &w[0][0], WIDE * WIDE);
    parameter(&s, "h.bias_l0", b, WIDE);
    parameter(&s, "h.gate_weight_l0", &gw[0][0], WIDE * WIDE);
    parameter(&s, "h.gate_bias_l0", gb, WIDE);
    parameter(&s, "p.weight_l0", &p0[0][0], WIDE * UNITS);
    parameter(&s, "p.bias_l0", q0, UNITS);
    parameter(&s, "p.weight_l1", &p1[0][0], UNITS * 2);
    parameter(&s, "p.bias_l1", q1, 2);
    for (int r = 0; r < BATCH; r++)
        for (int i = 0; i < WIDE; i++) {
            float expected = -1e30f;
            for (int t = 0; t < lengths[r]; t++)
                expected = fmaxf(expected, x[t][r][i]);
            assert_true(most[r][i] == expected);
        }
    for (int r = 0; r < TIME * BATCH; r++) {
        const float *row = &x[0][0][0] + r * WIDE;
        double second[2] = {q1[0], q1[1]};
        for (int i = 0; i < WIDE; i++) {
            double y = b[i], t = gb[i];
            for (int k = 0; k < WIDE; k++) {
                y += (double)row[k] * w[k][i];
                t += (double)row[k] * gw[k][i];
            }
            t = 1 / (1 + exp(-t));
            assert_true(fabs(high[r][i] - (t * fmax(y, 0) + (1 - t) * row[i])) <= 1e-5);
        }
        for (int u = 0; u < UNITS; u++) {
            double y = q0[u];
            for (int k = 0; k < WIDE; k++)
                y += (double)row[k] * p0[k][u];
            second[0] += fmax(y, 0) * p1[u][0];
            second[1] += fmax(y, 0) * p1[u][1];
        }
        assert_true(fabs(out[r][0] - second[0]) <= 1e-5 && fabs(out[r][1] - second[1]) <= 1e-5);
    }
    end(&s);
}

/* Sizes that do not fit would read beyond arrays, or give a sum over other steps. */
static void what_is_wrong_is_refused(void **state)
{
    for (int i = 0; i < 9; i++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        graphi_value q = graphi_input(g, "q", GRAPHI_F32, 2, (int64_t[]){BATCH, WIDE});
        graphi_value m = graphi_input(g, "m", GRAPHI_F32, 3, (int64_t[]){BATCH, TIME, i == 0 ? WIDE + 1 : WIDE});
        graphi_value n = graphi_input(g, "n", GRAPHI_I32, 1, (int64_t[]){BATCH + 1});
        const graphi_attention_options other = {.kind = (graphi_attention_kind)9};
        graphi_value none = i == 0   ? graphi_attend(g, q, m, GRAPHI_NONE, NULL, NULL)
                            : i == 1 ? graphi_attend(g, q, m, n, NULL, NULL)
                            : i == 2 ? graphi_attend(g, m, m, GRAPHI_NONE, NULL, NULL)
                            : i == 3 ? graphi_attend(g, q, m, GRAPHI_NONE, &other, NULL)
                            : i == 4 ? graphi_max_over_time(g, q, GRAPHI_NONE)
                            : i == 5 ? graphi_batch_major(g, q, 2)
                            : i == 6 ? graphi_highway(g, m, 1, NULL)
                            : i == 7 ? graphi_highway(g, q, 0, NULL)
                                     : graphi_perceptron(g, q, 1, NULL, NULL);
        if (none != GRAPHI_NONE || graphi_graph_status(g) != GRAPHI_INVALID || !strstr(graphi_message(), "expected"))
            fail_msg("case %d: %s", i, graphi_message());
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_as_defined),
        cmocka_unit_test(layers_around_are_as_defined),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
