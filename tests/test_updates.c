/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in which one run reads both contents of a parameter, that before its update and that after it. The order
 * between the readers of the one and the update is all that keeps them apart, so a pass that makes one node of two may
 * leave none: the plan is refused, or reads the wrong content. Plans are held against the reference, which has an array
 * for each content. All numbers are small integers, so sums round nowhere and bits are the same in any order. */
#include "engine/compile/plan.h"
#include "graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fixture.h"
#include "graphi/ops.h"
#include "reference.h"

enum { SIDE = 4, ELEMENTS = SIDE * SIDE, LARGE = 96, MOST_ELEMENTS = LARGE * LARGE, PARAMETERS = 3, STEPS = 3 };

static const int64_t square[] = {SIDE, SIDE}, large[] = {LARGE, LARGE};

static graphi_value parameter_of(graphi_graph *g, int which, const int64_t shape[2])
{
    static const char *const names[PARAMETERS] = {"u", "v", "w"};
    static float data[MOST_ELEMENTS];
    for (int i = 0; i < shape[0] * shape[1]; i++)
        data[i] = (float)((i * 5 + which * 3) % 7 - 3);
    return graphi_parameter(g, names[which], GRAPHI_F32, 2, shape, &(graphi_initializer){.data = data});
}

static graphi_value parameter(graphi_graph *g, int which) { return parameter_of(g, which, square); }

static graphi_value number(graphi_graph *g, float x) { return graphi_constant(g, GRAPHI_F32, 0, NULL, &x); }

static graphi_value within(graphi_graph *g, graphi_value v)
{
    return graphi_min(g, graphi_max(g, v, number(g, -3)), number(g, 3));
}

static graphi_value product(graphi_graph *g, graphi_value a, graphi_value b) { return graphi_matmul(g, a, b, 0, 0); }

static void output(graphi_graph *g, graphi_value v)
{
    char name[16];
    snprintf(name, sizeof name, "y%d", v);
    graphi_output(g, name, v);
}

/* Runs a few steps, each of which reads what the one before it wrote. */
static void compare(const graphi_graph *g, const graphi_plan_options *options, const char *what)
{
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    struct reference r;
    static float x[MOST_ELEMENTS], found[MOST_ELEMENTS];
    const int elements = (int)type_count(&graph_value(g, graphi_find(g, "x"))->type);
    for (int i = 0; i < elements; i++)
        x[i] = (float)(i * 3 % 5 - 2);
    if (graphi_plan_create(g, machine, options, &plan) != GRAPHI_OK)
        fail_msg("%s, without %s: %s", what, options ? options->disable : "none", graphi_message());
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, (size_t)elements * sizeof *x));
    reference_init(&r, g);
    reference_set(&r, graphi_find(g, "x"), x);
    for (int step = 0; step < STEPS; step++) {
        check_ok(graphi_run_execute(run));
        assert_int_equal(reference_run(&r), GRAPHI_OK);
        graphi_port port;
        for (int i = 0; graphi_graph_at(g, GRAPHI_PORT_OUTPUT, i, &port); i++) {
            check_ok(graphi_run_get(run, port.name, port.dtype, found, (size_t)elements * sizeof *found));
            const float *expected = reference_floats(&r, port.value);
            for (int k = 0; k < elements; k++)
                if (found[k] != expected[k])
                    fail_msg("%s, without %s, step %d: element %d of %s is %g, expected %g", what,
                             options ? options->disable : "none", step, k, port.name, found[k], expected[k]);
        }
    }
    reference_fini(&r);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
}

static void compare_all(const graphi_graph *g, const char *what)
{
    check_ok(graphi_graph_status(g));
    compare(g, NULL, what);
    compare(g, &(graphi_plan_options){.disable = "all"}, what);
    compare(g, &(graphi_plan_options){.disable = "+merge"}, what);
}

/* What each graph makes of x, parameter w, and its next content. */
typedef graphi_value (*form)(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next);

static graphi_value copied(graphi_graph *g, graphi_value copy, graphi_value next)
{
    return product(g, next, copy);
}
static graphi_value identity(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return copied(g, graphi_identity(g, w), next);
}
static graphi_value identity_of_view(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    graphi_value row = graphi_identity(g, graphi_reshape(g, w, GRAPHI_LIST(ELEMENTS)));
    return copied(g, graphi_reshape(g, row, square, 2), next);
}
static graphi_value twice_negated(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return copied(g, graphi_neg(g, graphi_neg(g, w)), next);
}
static graphi_value times_one(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return copied(g, graphi_mul(g, number(g, 1), w), next);
}
/* Repeated where it is read, it would be read behind the update. */
static graphi_value first_element_repeated(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    graphi_value first = graphi_slice(g, graphi_slice(g, w, 0, 0, 1), 1, 0, 1);
    return graphi_mul(g, next, graphi_expand(g, graphi_reshape(g, first, NULL, 0), square, 2, NULL, 0));
}
static graphi_value both_turned(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return copied(g, graphi_identity(g, graphi_transpose(g, w, NULL, 0)), next);
}
static graphi_value sum_of_products(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return graphi_add(g, product(g, x, w), product(g, x, next));
}
static graphi_value sum_of_weight_gradients(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return graphi_add(g, graphi_matmul(g, next, x, 1, 0), graphi_matmul(g, w, x, 1, 0));
}
/* Two may be one, with the third they may not; the sum itself reads the old content. */
static graphi_value sum_of_three(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    graphi_value old = graphi_add(g, graphi_add(g, product(g, x, w), product(g, w, x)), w);
    return graphi_add(g, old, product(g, x, next));
}
/* The terms are one, the next content comes behind them: not before the old one is read. */
static graphi_value sum_with_the_next(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    graphi_value old = graphi_add(g, graphi_add(g, product(g, x, x), product(g, x, graphi_neg(g, x))), w);
    return graphi_add(g, old, graphi_neg(g, next));
}

static void both_contents_in_one_node(void **state)
{
    static const struct {
        const char *name;
        form make;
    } forms[] = {{"identity", identity}, {"identity of a view", identity_of_view}, {"twice negated", twice_negated},
                 {"times one", times_one}, {"first element, repeated", first_element_repeated},
                 {"identity of a transposition", both_turned},
                 {"sum of products", sum_of_products}, {"sum of weight gradients", sum_of_weight_gradients},
                 {"sum of three", sum_of_three}, {"sum with the next", sum_with_the_next}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, square), w = parameter(g, 2);
        output(g, forms[i].make(g, x, w, graphi_assign(g, w, within(g, graphi_add(g, graphi_neg(g, w), x)))));
        compare_all(g, forms[i].name);
        graphi_graph_destroy(g);
    }
}

static graphi_value late(graphi_graph *g, graphi_value old, graphi_value next)
{
    return graphi_add(g, product(g, old, graphi_neg(g, next)), old);
}
static graphi_value late_itself(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return late(g, w, next);
}
static graphi_value late_view(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return late(g, graphi_transpose(g, w, NULL, 0), next);
}
static graphi_value late_copy(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return late(g, graphi_identity(g, w), next);
}
static graphi_value late_view_of_copy(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return late(g, graphi_transpose(g, graphi_identity(g, w), NULL, 0), next);
}
static graphi_value late_copy_of_view(graphi_graph *g, graphi_value x, graphi_value w, graphi_value next)
{
    return late(g, graphi_identity(g, graphi_transpose(g, w, NULL, 0)), next);
}

/* What is read behind the update, the old content or a view of it, was refused as a cycle, without a word on what to do
 * instead; and what that is must do. */
static void both_contents_behind_the_update(void **state)
{
    static const struct {
        const char *name;
        form make;
        bool refused;
    } forms[] = {{"itself", late_itself, true}, {"view", late_view, true}, {"copy", late_copy, false},
                 {"view of a copy", late_view_of_copy, false}, {"copy of a view", late_copy_of_view, false}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        graphi_graph *g;
        graphi_plan *plan = NULL;
        check_ok(graphi_graph_create(&g));
        graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, square), w = parameter(g, 2);
        output(g, forms[i].make(g, x, w, graphi_assign(g, w, within(g, graphi_add(g, graphi_neg(g, w), x)))));
        if (forms[i].refused) {
            assert_int_equal(graphi_plan_create(g, machine, NULL, &plan), GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), "what reads the old content of 'w', or a view of it"));
            assert_non_null(strstr(graphi_message(), "graphi_identity"));
        } else {
            compare_all(g, forms[i].name);
        }
        graphi_graph_destroy(g);
    }
}

/* --- random graphs --- */

enum { MOST = 64, GRAPHS = 120 };

struct made {
    graphi_value v;
    unsigned follows, reads; /* parameters whose next content it is made of; whose old one it is, or a view of */
};

struct maker {
    graphi_graph *g;
    uint64_t key, used;
    struct made pool[MOST];
    int count;
    unsigned before[PARAMETERS]; /* updates that precede this one: the closure of what readers say */
};

static int toss(struct maker *m, int sides)
{
    return (int)(random_philox(m->key, 1, m->used++).v[0] % (uint32_t)sides);
}

/* Would a reader of these old contents, behind these updates, wait for itself? If not it is noted. */
static bool in_order(struct maker *m, unsigned follows, unsigned reads)
{
    unsigned before[PARAMETERS];
    for (int p = 0; p < PARAMETERS; p++)
        before[p] = m->before[p] | (reads >> p & 1 ? follows : 0);
    for (int round = 0; round < PARAMETERS; round++)
        for (int p = 0; p < PARAMETERS; p++)
            for (int q = 0; q < PARAMETERS; q++)
                before[p] |= before[p] >> q & 1 ? before[q] : 0;
    for (int p = 0; p < PARAMETERS; p++)
        if (before[p] >> p & 1)
            return false;
    memcpy(m->before, before, sizeof before);
    return true;
}

static void keep(struct maker *m, graphi_value v, unsigned follows, unsigned reads)
{
    m->pool[m->count++] = (struct made){v, follows, reads};
}

/* A value of the pool itself, or a product of two; GRAPHI_NONE where its reader would wait for itself. */
static struct made term(struct maker *m)
{
    struct made in[2];
    for (int i = 0; i < 2; i++)
        in[i] = m->pool[toss(m, 2) ? toss(m, PARAMETERS) : m->count - 1 - toss(m, m->count < 8 ? m->count : 8)];
    const graphi_value a = in[0].v, b = in[1].v;
    const int kind = toss(m, 6);
    if (kind == 0)
        return in[0];
    struct made out = {GRAPHI_NONE, in[0].follows | in[1].follows, 0};
    if (in_order(m, out.follows, in[0].reads | in[1].reads))
        out.v = kind == 1 ? graphi_mul(m->g, a, b) : graphi_matmul(m->g, a, b, kind == 2, kind == 3);
    return out;
}

/* One to four terms added up. */
static void step_sum(struct maker *m)
{
    struct made sum = term(m);
    for (int terms = toss(m, 4); terms && sum.v != GRAPHI_NONE; terms--) {
        const struct made one = term(m);
        if (one.v == GRAPHI_NONE || !in_order(m, sum.follows | one.follows, sum.reads | one.reads))
            continue;
        sum.v = toss(m, 2) ? graphi_add(m->g, sum.v, one.v) : graphi_add(m->g, one.v, sum.v);
        sum = (struct made){sum.v, sum.follows | one.follows, 0};
    }
    if (sum.v != GRAPHI_NONE && in_order(m, sum.follows, sum.reads))
        keep(m, within(m->g, sum.v), sum.follows, 0);
}

static void step_copy(struct maker *m)
{
    const int from = toss(m, 2) ? toss(m, PARAMETERS) : toss(m, m->count);
    const graphi_value v = m->pool[from].v;
    const unsigned follows = m->pool[from].follows, reads = m->pool[from].reads;
    if (!in_order(m, follows, reads))
        return;
    switch (toss(m, 6)) {
    case 0: keep(m, graphi_neg(m->g, graphi_neg(m->g, v)), follows, 0); return;
    case 1: keep(m, graphi_mul(m->g, v, number(m->g, 1)), follows, 0); return;
    case 2: keep(m, graphi_relu(m->g, v), follows, 0); return;
    case 3: keep(m, graphi_reshape(m->g, v, square, 2), follows, reads); return;
    case 4: keep(m, graphi_transpose(m->g, v, NULL, 0), follows, reads); return;
    default: keep(m, graphi_identity(m->g, v), follows, 0);
    }
}

/* The next content of a parameter; what is made of it follows all that is before the update. */
static void step_update(struct maker *m, int which)
{
    const int from = toss(m, m->count);
    const unsigned follows = m->pool[from].follows;
    const graphi_value w = m->pool[which].v, v = m->pool[from].v;
    if (!in_order(m, follows, m->pool[from].reads) || !in_order(m, follows, 1u << which))
        return;
    keep(m, graphi_assign(m->g, w, within(m->g, graphi_sub(m->g, v, w))), follows | 1u << which, 0);
}

static graphi_graph *random_graph(uint64_t key)
{
    struct maker m = {.key = key};
    check_ok(graphi_graph_create(&m.g));
    for (int p = 0; p < PARAMETERS; p++)
        keep(&m, parameter(m.g, p), 0, 1u << p);
    keep(&m, graphi_input(m.g, "x", GRAPHI_F32, 2, square), 0, 0);
    for (int step = 0, updated = 0; step < 28; step++) {
        m.g->backward = step >= 14 && toss(&m, 2);
        if (updated < PARAMETERS && step % 6 == 3)
            step_update(&m, updated++);
        else if (toss(&m, 3))
            step_sum(&m);
        else
            step_copy(&m);
    }
    m.g->backward = false;
    for (int i = PARAMETERS + 1; i < m.count; i++)
        if (!m.pool[i].reads && (i == m.count - 1 || !toss(&m, 4)))
            output(m.g, m.pool[i].v);
    return m.g;
}

static void both_contents_in_random_graphs(void **state)
{
    for (uint64_t key = 0; key < GRAPHS; key++) {
        char what[32];
        graphi_graph *g = random_graph(key);
        snprintf(what, sizeof what, "graph %llu", (unsigned long long)key);
        compare_all(g, what);
        graphi_graph_destroy(g);
    }
}

/* An operation that cannot work in place reads what it would write: its update is copied behind it, and it alone. All
 * other updates of the graph are written at once. */
static void updates_are_written_at_once(void **state)
{
    graphi_graph *g;
    graphi_plan *plan;
    check_ok(graphi_graph_create(&g));
    graphi_value u = parameter(g, 0), v = parameter(g, 1), w = parameter(g, 2);
    graphi_assign(g, u, graphi_matmul(g, u, w, 0, 0));
    graphi_assign(g, v, graphi_matmul(g, w, w, 0, 0));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    assert_int_equal(plan->compiled->tasks, 3); /* two products and a copy */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static graphi_value transposed(graphi_graph *g, graphi_value w) { return graphi_transpose(g, w, NULL, 0); }
static graphi_value rows_repeated(graphi_graph *g, graphi_value w) { return graphi_slice(g, w, 0, 0, 1); }
static graphi_value row_repeated(graphi_graph *g, graphi_value w)
{
    return graphi_reshape(g, graphi_slice(g, w, 0, 0, 1), GRAPHI_LIST(LARGE));
}
static graphi_value column_repeated(graphi_graph *g, graphi_value w) { return graphi_slice(g, w, 1, 0, 1); }
static graphi_value element_repeated(graphi_graph *g, graphi_value w)
{
    return graphi_slice(g, column_repeated(g, w), 0, 0, 1);
}

/* A program that wrote the parameter where it lies would read elements of a view of it that it has written: what one
 * block of a program reads before it writes, so they have several. */
static void updates_read_their_own_views(void **state)
{
    static const struct {
        const char *name;
        graphi_value (*view)(graphi_graph *g, graphi_value w);
    } forms[] = {{"transposed", transposed}, {"rows repeated", rows_repeated}, {"row repeated", row_repeated},
                 {"column repeated", column_repeated}, {"element repeated", element_repeated}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        graphi_value w = parameter_of(g, 0, large), x = graphi_input(g, "x", GRAPHI_F32, 2, large);
        graphi_value sum = graphi_sub(g, graphi_add(g, w, x), forms[i].view(g, w));
        output(g, graphi_identity(g, graphi_assign(g, w, sum)));
        compare_all(g, forms[i].name);
        graphi_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_contents_in_one_node),
        cmocka_unit_test(both_contents_behind_the_update),
        cmocka_unit_test(both_contents_in_random_graphs),
        cmocka_unit_test(updates_are_written_at_once),
        cmocka_unit_test(updates_read_their_own_views),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
