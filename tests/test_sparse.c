/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tables of embeddings as lists of rows: the kernels against the dense ones, bit for bit, and training
 * that updates the rows that were read against training that updates all of them. */
#include "base/memory.h"
#include "engine/compile/plan.h"
#include "graph/graph.h"
#include "kernels/reduce.h"
#include "kernels/sparse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"
#include "graphi/ops.h"

static uint64_t state_of_random = 1;
static uint64_t draw(uint64_t below)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (state_of_random >> 33) % below;
}
static float draw_number(void) { return (float)draw(2001) / 1000 - 1; }

static float *random_floats(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x + 1);
    for (int64_t i = 0; i < count; i++)
        x[i] = draw_number();
    return x;
}

/* --- kernels --- */

static graphi_status run_kernel(struct kernel *kernel, struct kernel_array *in, struct kernel_array *out)
{
    void *workspace = mem_alloc(kernel->workspace + 64);
    memset(workspace, 0x5a, kernel->workspace);
    struct kernel_call call = {.in = in, .out = out, .workspace = workspace, .params = kernel->params};
    graphi_status status = kernel_run_serial(kernel, &call);
    mem_free(workspace);
    kernel_fini(kernel);
    return status;
}

/* A list, and what it stands for: the dense gradient of the same ids. */
struct lists {
    int64_t count, rows, columns, list, gap;
    int32_t *ids, *row;
    float *dy, *sums, *dense;
};

static struct sparse_spec spec_of(const struct lists *l)
{
    return (struct sparse_spec){{.count = l->count, .rows = l->rows, .columns = l->columns, .ld_table = l->columns,
                                 .ld_y = l->columns}, l->list};
}

static struct lists lists_of(enum isa isa, int64_t count, int64_t rows, int64_t columns)
{
    struct lists l = {.count = count, .rows = rows, .columns = columns, .list = least(count, rows),
                      .gap = isa == ISA_PLAIN ? 0 : 3};
    struct kernel kernel;
    const int64_t ld = columns + l.gap;
    l.ids = malloc((size_t)count * sizeof *l.ids);
    l.row = malloc((size_t)l.list * sizeof *l.row);
    l.dy = random_floats(count * ld);
    l.sums = random_floats(l.list * columns);
    l.dense = random_floats(rows * columns);
    const uint64_t some = draw(3) ? (uint64_t)rows : 1 + (uint64_t)rows / 7; /* with many duplicates, too */
    for (int64_t i = 0; i < count; i++) {
        l.ids[i] = (int32_t)draw(some);
        l.dy[i * ld] = draw(2) ? -0.0f : l.dy[i * ld];
    }
    struct sparse_spec spec = spec_of(&l);
    spec.ids.ld_y = ld;
    struct kernel_array in[] = {{l.ids, count}, {l.dy, count}};
    struct kernel_array out[] = {{l.row, l.list}, {l.sums, l.list}}, dense = {l.dense, rows};
    assert_int_equal(embedding_gradient_bind(&spec.ids, isa, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, in, &dense));
    assert_int_equal(sparse_sum_bind(&spec, isa, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, in, out));
    return l;
}

static void lists_free(struct lists *l)
{
    free(l->ids);
    free(l->row);
    free(l->dy);
    free(l->sums);
    free(l->dense);
}

/* Every row of the dense gradient that has an id is in the list, in ascending order; what is behind it is 0. */
static void check_sums(const struct lists *l)
{
    int64_t k = 0;
    for (int64_t r = 0; r < l->rows; r++) {
        bool read = false;
        for (int64_t i = 0; i < l->count; i++)
            read |= l->ids[i] == r;
        if (!read)
            continue;
        assert_true(k < l->list);
        assert_int_equal(l->row[k], r);
        assert_memory_equal(l->sums + k * l->columns, l->dense + r * l->columns, (size_t)l->columns * sizeof(float));
        k++;
    }
    for (; k < l->list; k++) {
        assert_int_equal(l->row[k], -1);
        for (int64_t c = 0; c < l->columns; c++)
            assert_true(l->sums[k * l->columns + c] == 0);
    }
}

/* Rows that are cut by pieces and leaves of the dense sum, pieces with no row, tables of one piece and of many. */
static void check_squares(const struct lists *l, enum isa isa)
{
    const struct array_desc table = array_dense(GRAPHI_F32, 2, (int64_t[]){l->rows, l->columns});
    const struct array_desc number = array_dense(GRAPHI_F32, 0, NULL);
    const struct sparse_spec spec = spec_of(l);
    float expected = -1, found = -2;
    struct kernel kernel;
    struct kernel_array in[] = {{l->row, l->list}, {l->sums, l->list}}, dense = {l->dense, l->rows};
    assert_int_equal(reduce_bind(REDUCE_SUM_SQUARES, &table, 3, &number, isa, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, &dense, &(struct kernel_array){&expected, 1}));
    assert_int_equal(sparse_squares_bind(&spec, isa, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, in, &(struct kernel_array){&found, 1}));
    if (memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%lld ids of %lld x %lld: found %.9g, expected %.9g", (long long)l->count, (long long)l->rows,
                 (long long)l->columns, (double)found, (double)expected);
}

/* What is read by a list and written by it again is the table; in another table its rows alone. */
static void check_rows(const struct lists *l)
{
    const struct sparse_spec spec = spec_of(l);
    struct kernel kernel;
    const size_t bytes = (size_t)(l->rows * l->columns) * sizeof(float);
    float *rows = random_floats(l->list * l->columns), *other = random_floats(l->rows * l->columns);
    float *copy = malloc(bytes), *own = malloc(bytes);
    memcpy(own, other, bytes);
    struct kernel_array from[] = {{l->dense, l->rows}, {l->row, l->list}};
    struct kernel_array to[] = {{other, l->rows}, {l->row, l->list}, {rows, l->list}}, in_place[3];
    memcpy(in_place, to, sizeof to);
    in_place[0].data = own;
    assert_int_equal(sparse_get_bind(&spec, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, from, &to[2]));
    assert_memory_equal(rows, l->sums, (size_t)(l->list * l->columns) * sizeof *rows);
    assert_int_equal(sparse_set_bind(&spec, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, to, &(struct kernel_array){copy, l->rows}));
    assert_int_equal(sparse_set_bind(&spec, &kernel), GRAPHI_OK);
    check_ok(run_kernel(&kernel, in_place, in_place));
    for (int64_t k = 0; k < l->list && l->row[k] >= 0; k++)
        memcpy(other + l->row[k] * l->columns, l->dense + l->row[k] * l->columns, (size_t)l->columns * sizeof *other);
    assert_memory_equal(copy, other, bytes);
    assert_memory_equal(own, other, bytes);
    free(rows);
    free(other);
    free(copy);
    free(own);
}

static void lists_are_the_dense_gradient(void **state)
{
    static const int64_t cases[][3] = {{1, 1, 1},       {5, 3, 1},        {40, 100, 7},    {100, 70, 200},
                                       {300, 5000, 33}, {20, 9, 5000},    {50, 400, 4097}, {900, 3000, 64},
                                       {30, 70000, 3},  {7, 5000000, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int isa = ISA_PLAIN; isa <= (int)isa_detect(); isa++) {
            struct lists l = lists_of((enum isa)isa, cases[i][0], cases[i][1], cases[i][2]);
            if (l.rows < 10000)
                check_sums(&l);
            check_squares(&l, (enum isa)isa);
            check_rows(&l);
            lists_free(&l);
        }
}

/* Ids and rows out of range would be read or written anywhere in memory, unordered ones by two threads at once. */
static void bad_rows_are_named(void **state)
{
    float table[8] = {0}, y[6] = {0}, out[8];
    int32_t ids[] = {1, 4, 2}, row[3], twice[] = {2, 2, -1}, beyond[] = {1, 4, -1}, after[] = {1, -1, 2};
    const struct sparse_spec spec = {{.count = 3, .rows = 4, .columns = 2, .ld_table = 2, .ld_y = 2}, 3};
    struct kernel kernel;
    struct kernel_array in[] = {{ids, 3}, {y, 3}}, sums[] = {{row, 3}, {out, 3}};
    assert_int_equal(sparse_sum_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_OK);
    assert_int_equal(run_kernel(&kernel, in, sums), GRAPHI_INVALID);
    assert_string_equal(graphi_message(), "INVALID: sparse_sum: found id 4 at position 1, expected 0 to 3");
    for (int i = 0; i < 3; i++)
        assert_int_equal(row[i], -1);
    int32_t *const bad[] = {twice, beyond, after};
    static const char *const said[] = {"found row 2 at position 1", "found row 4 at position 1",
                                       "found row 2 at position 2"};
    for (int i = 0; i < 3; i++) {
        struct kernel_array set[] = {{table, 4}, {bad[i], 3}, {y, 3}};
        assert_int_equal(sparse_set_bind(&spec, &kernel), GRAPHI_OK);
        assert_int_equal(run_kernel(&kernel, set, set), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), said[i]));
        assert_int_equal(sparse_squares_bind(&spec, ISA_PLAIN, &kernel), GRAPHI_OK);
        assert_int_equal(run_kernel(&kernel, set + 1, &(struct kernel_array){out, 1}), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), said[i]));
    }
    assert_int_equal(sparse_get_bind(&spec, &kernel), GRAPHI_OK);
    struct kernel_array get[] = {{table, 4}, {beyond, 3}};
    assert_int_equal(run_kernel(&kernel, get, &(struct kernel_array){out, 3}), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "sparse_get: found row 4 at position 1, expected -1 to 3"));
}

/* --- training --- */

enum { WORDS = 120, UNITS = 19, STEPS = 4, IDS = 11, LOOKUPS = 3 };

/* Lookups of a table whose rows meet weights of their own: a gradient of each row depends on the row. */
static graphi_graph *network(const graphi_optimizer *how, int lookups, int64_t symbol_bound)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const graphi_initializer start = {.kind = GRAPHI_INIT_NORMAL, .b = 0.5};
    graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){WORDS, UNITS}, &start);
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){UNITS, UNITS}, &start), loss = GRAPHI_NONE;
    const int64_t ids = symbol_bound ? graphi_symbol(g, "batch", symbol_bound) : IDS;
    for (int i = 0; i < lookups; i++) {
        char name[16];
        snprintf(name, sizeof name, "ids%d", i);
        graphi_value x = graphi_embedding(g, table, graphi_input(g, name, GRAPHI_I32, 1, &ids));
        graphi_value part = graphi_reduce_sum(g, graphi_square(g, graphi_matmul(g, x, w, 0, 0)), NULL, 0, 0);
        loss = loss == GRAPHI_NONE ? part : graphi_add(g, loss, part);
    }
    graphi_optimizer optimizer = *how;
    optimizer.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
    graphi_output(g, "loss", loss);
    graphi_minimize(g, loss, &optimizer);
    return g;
}

static void feed_step(graphi_run *run, int lookups, int64_t ids, int step, int words)
{
    int32_t id[64];
    for (int i = 0; i < lookups; i++) {
        char name[16];
        snprintf(name, sizeof name, "ids%d", i);
        for (int k = 0; k < ids; k++)
            id[k] = (int32_t)((k * k + 7 * k * (i + 1) + 31 * step) % words);
        check_ok(graphi_run_set(run, name, GRAPHI_I32, id, (size_t)ids * sizeof *id));
    }
    check_ok(graphi_run_set(run, "rate", GRAPHI_F32, &(float){0.05f}, sizeof(float)));
}

/* The parameters after some steps, as a hash: of the table and of all that the optimizer keeps. */
static void train(const graphi_graph *g, const graphi_plan_options *options, graphi_state *state, int lookups,
                  int from, int to)
{
    graphi_plan *plan;
    graphi_run *run;
    check_ok(graphi_plan_create(g, machine, options, &plan));
    check_ok(graphi_run_create(plan, state, &run));
    for (int step = from; step < to; step++) {
        feed_step(run, lookups, IDS, step, WORDS);
        check_ok(graphi_run_execute(run));
    }
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
}

static void hash_of_training(const graphi_optimizer *how, const graphi_plan_options *options, int lookups, char hex[65])
{
    graphi_graph *g = network(how, lookups, 0);
    graphi_state *state;
    check_ok(graphi_state_create(g, 3, &state));
    train(g, options, state, lookups, 0, STEPS);
    graphi_state_sha256(state, hex);
    graphi_state_destroy(state);
    graphi_graph_destroy(g);
}

static const struct named {
    const char *name;
    graphi_setting setting;
} settings[] = {{"sequential", {.policy = GRAPHI_POLICY_SEQUENTIAL}},
                {"1x1", {.executors = 1, .width = 1}},
                {"1x2", {.executors = 1, .width = 2}},
                {"2x1", {.executors = 2, .width = 1}},
                {"static", {.executors = 2, .width = 1, .driver = GRAPHI_DRIVER_STATIC}},
                {"combining", {.executors = 2, .width = 1, .driver = GRAPHI_DRIVER_COMBINING}}};

/* Every optimizer that a gradient of 0 lets rest, with clipping over table and weights together, under all policies and
 * widths, with passes and without: a sum in another order, a row that is forgotten or a factor that is not shared. */
static void lists_train_as_the_dense_form(void **state)
{
    static const graphi_optimizer how[] = {{.kind = GRAPHI_SGD},
                                           {.kind = GRAPHI_SGD, .clip_norm = 0.5},
                                           {.kind = GRAPHI_ADAGRAD},
                                           {.kind = GRAPHI_ADAGRAD, .clip_norm = 0.5, .accumulator = 0.1}};
    for (size_t h = 0; h < sizeof how / sizeof *how; h++)
        for (int lookups = 1; lookups <= LOOKUPS; lookups += LOOKUPS - 1)
            for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
                char sparse[65], dense[65];
                graphi_optimizer off = how[h], on = how[h];
                off.sparse = GRAPHI_OFF;
                on.sparse = s % 2 ? GRAPHI_ON : GRAPHI_DEFAULT;
                const graphi_plan_options options = {.setting = settings[s].setting};
                hash_of_training(&on, &options, lookups, sparse);
                hash_of_training(&off, &options, lookups, dense);
                if (strcmp(sparse, dense) != 0)
                    fail_msg("optimizer %zu, %d lookups, %s: other parameters than those of the dense form", h, lookups,
                             settings[s].name);
            }
}

/* Where every row is read in every step, momentum, Adam and decay are those of the dense form, too. */
static void lazy_ones_agree_where_all_rows_are_read(void **state)
{
    static const graphi_optimizer how[] = {{.kind = GRAPHI_MOMENTUM, .clip_norm = 0.5},
                                           {.kind = GRAPHI_ADAM},
                                           {.kind = GRAPHI_ADAM, .weight_decay = 0.1, .clip_norm = 1},
                                           {.kind = GRAPHI_ADAGRAD, .weight_decay = 0.1}};
    enum { FEW = 5 };
    for (size_t h = 0; h < sizeof how / sizeof *how; h++) {
        char hex[2][65];
        for (int form = 0; form < 2; form++) {
            graphi_optimizer one = how[h];
            one.sparse = form ? GRAPHI_ON : GRAPHI_OFF;
            one.learning_rate = 0;
            graphi_graph *g;
            check_ok(graphi_graph_create(&g));
            one.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
            const graphi_initializer start = {.kind = GRAPHI_INIT_NORMAL, .b = 0.5};
            graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){FEW, UNITS}, &start);
            graphi_value id = graphi_input(g, "ids0", GRAPHI_I32, 1, (int64_t[]){IDS});
            graphi_value x = graphi_tanh(g, graphi_embedding(g, table, id));
            check_ok(graphi_minimize(g, graphi_reduce_sum(g, x, NULL, 0, 0), &one));
            graphi_plan *plan;
            graphi_run *run;
            graphi_state *s;
            check_ok(graphi_state_create(g, 3, &s));
            check_ok(graphi_plan_create(g, machine, NULL, &plan));
            check_ok(graphi_run_create(plan, s, &run));
            for (int step = 0; step < STEPS; step++) {
                int32_t ids[IDS];
                for (int k = 0; k < IDS; k++)
                    ids[k] = (k * 3 + step) % FEW;
                check_ok(graphi_run_set(run, "ids0", GRAPHI_I32, ids, sizeof ids));
                check_ok(graphi_run_set(run, "rate", GRAPHI_F32, &(float){0.05f}, sizeof(float)));
                check_ok(graphi_run_execute(run));
            }
            graphi_state_sha256(s, hex[form]);
            graphi_run_destroy(run);
            graphi_plan_destroy(plan);
            graphi_state_destroy(s);
            graphi_graph_destroy(g);
        }
        if (strcmp(hex[0], hex[1]) != 0)
            fail_msg("optimizer %zu: other parameters than those of the dense form", h);
    }
}

/* Rows that no id names keep every bit, of the table and of what is kept beside it: any arithmetic would make a
 * subnormal number 0. No task writes the table as a whole. */
static void other_rows_are_not_touched(void **state)
{
    static const char *const slots[][2] = {
        {NULL}, {"table/momentum"}, {"table/adam_m", "table/adam_v"}, {"table/adagrad"}};
    for (int kind = GRAPHI_SGD; kind <= GRAPHI_ADAGRAD; kind++) {
        const graphi_optimizer how = {.kind = (graphi_optimizer_kind)kind, .sparse = GRAPHI_ON, .weight_decay = 0.1};
        graphi_graph *g = network(&how, 1, 0);
        graphi_plan *plan;
        graphi_run *run;
        graphi_state *s;
        static float before[WORDS * UNITS], after[WORDS * UNITS];
        const char *const names[] = {"table", slots[kind][0], slots[kind][1]};
        for (int i = 0; i < WORDS * UNITS; i++)
            before[i] = 1e-42f;
        check_ok(graphi_state_create(g, 3, &s));
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        check_ok(graphi_run_create(plan, s, &run));
        for (int n = 0; n < 3 && names[n]; n++)
            check_ok(graphi_state_set(s, names[n], before, sizeof before));
        feed_step(run, 1, IDS, 0, WORDS / 2); /* the upper half is never read */
        check_ok(graphi_run_execute(run));
        for (int n = 0; n < 3 && names[n]; n++) {
            check_ok(graphi_state_get(s, names[n], after, sizeof after));
            assert_memory_equal(after + WORDS / 2 * UNITS, before + WORDS / 2 * UNITS, sizeof before / 2);
            assert_true(memcmp(after, before, UNITS * sizeof *after) != 0); /* id 0 is there */
        }
        for (int t = 0; t < plan->compiled->tasks; t++) {
            const char *name = plan->compiled->task[t].kernel.name;
            assert_true(strcmp(name, "embedding_grad") != 0 && strcmp(name, "assign") != 0);
        }
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
        graphi_graph_destroy(g);
    }
}

/* A table that something else reads too has a dense gradient, and small tables are faster so. Lookups by ids of unlike
 * shapes have dense gradients that round apart. */
static void dense_where_it_must_be(void **state)
{
    for (int which = 0; which < 4; which++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        const int64_t rows = which == 1 ? 2 * IDS - 1 : which == 3 ? 4 * IDS : 2 * IDS;
        graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){rows, UNITS}, NULL);
        graphi_value id = graphi_input(g, "ids", GRAPHI_I32, 1, (int64_t[]){IDS});
        graphi_value loss = graphi_reduce_sum(g, graphi_embedding(g, table, id), NULL, 0, 0);
        if (which == 2)
            loss = graphi_add(g, loss, graphi_reduce_sum(g, graphi_tanh(g, table), NULL, 0, 0));
        if (which == 3) {
            graphi_value more = graphi_input(g, "more", GRAPHI_I32, 2, (int64_t[]){IDS, 1});
            loss = graphi_add(g, loss, graphi_reduce_sum(g, graphi_embedding(g, table, more), NULL, 0, 0));
        }
        const float rate = 1;
        check_ok(graphi_minimize(g, loss, &(graphi_optimizer){
                                              .learning_rate = graphi_constant(g, GRAPHI_F32, 0, NULL, &rate)}));
        char *text;
        check_ok(graphi_graph_print(g, GRAPHI_PRINT_TEXT, &text));
        assert_int_equal(strstr(text, "sparse_sum") != NULL, which == 0);
        graphi_free(text);
        graphi_graph_destroy(g);
    }
}

/* Batches of any size up to the bound; several lookups of bounded ids have no list, which is said where it is asked
 * for. */
static void sizes_may_be_bounded(void **state)
{
    static float table[2][WORDS * UNITS];
    for (int form = 0; form < 2; form++) {
        const graphi_optimizer how = {.clip_norm = 0.5, .sparse = form ? GRAPHI_OFF : GRAPHI_DEFAULT};
        graphi_graph *g = network(&how, 1, IDS);
        graphi_plan *plan;
        graphi_run *run;
        graphi_state *s;
        check_ok(graphi_state_create(g, 3, &s));
        check_ok(graphi_plan_create(g, machine, NULL, &plan));
        check_ok(graphi_run_create(plan, s, &run));
        for (int step = 0; step < STEPS; step++) {
            const int64_t ids = 1 + 3 * step;
            check_ok(graphi_run_set_symbol(run, "batch", ids));
            feed_step(run, 1, ids, step, WORDS);
            check_ok(graphi_run_execute(run));
        }
        check_ok(graphi_state_get(s, "table", table[form], sizeof table[form]));
        graphi_run_destroy(run);
        graphi_plan_destroy(plan);
        graphi_state_destroy(s);
        graphi_graph_destroy(g);
    }
    assert_memory_equal(table[0], table[1], sizeof table[0]);
    for (int form = 0; form < 2; form++) {
        const graphi_optimizer how = {.sparse = form ? GRAPHI_ON : GRAPHI_DEFAULT};
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        const int64_t batch = graphi_symbol(g, "batch", IDS);
        graphi_value t = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){WORDS, UNITS}, NULL);
        graphi_value a = graphi_embedding(g, t, graphi_input(g, "a", GRAPHI_I32, 1, &batch));
        graphi_value b = graphi_embedding(g, t, graphi_input(g, "b", GRAPHI_I32, 1, &batch));
        graphi_optimizer one = how;
        one.learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL);
        graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, a, b), NULL, 0, 0);
        assert_int_equal(graphi_minimize(g, loss, &one), form ? GRAPHI_UNSUPPORTED : GRAPHI_OK);
        if (form)
            assert_non_null(strstr(graphi_message(), "found several lookups of 'table' whose ids follow a symbol"));
        graphi_graph_destroy(g);
    }
}

/* A training that is saved and goes on has the bits of one that was not. */
static void checkpoints_go_on(void **state)
{
    const graphi_optimizer how = {.kind = GRAPHI_ADAM, .sparse = GRAPHI_ON, .clip_norm = 1};
    graphi_graph *g = network(&how, LOOKUPS, 0);
    graphi_state *whole, *first, *second;
    char hex[2][65];
    struct folder folder;
    folder_make(&folder);
    const char *path = folder_name(&folder, "sparse.safetensors");
    check_ok(graphi_state_create(g, 3, &whole));
    check_ok(graphi_state_create(g, 3, &first));
    check_ok(graphi_state_create(g, 9, &second));
    train(g, NULL, whole, LOOKUPS, 0, 4);
    train(g, NULL, first, LOOKUPS, 0, 2);
    check_ok(graphi_state_save(first, path, 0, NULL, NULL));
    check_ok(graphi_state_load(second, path, NULL, NULL));
    train(g, NULL, second, LOOKUPS, 2, 4);
    graphi_state_sha256(whole, hex[0]);
    graphi_state_sha256(second, hex[1]);
    assert_string_equal(hex[0], hex[1]);
    folder_remove(&folder);
    graphi_state_destroy(whole);
    graphi_state_destroy(first);
    graphi_state_destroy(second);
    graphi_graph_destroy(g);
}

/* An id beyond the rows ends the execution with its place, and leaves the table as it was. */
static void ids_beyond_the_rows_are_told(void **state)
{
    graphi_graph *g = network(&(graphi_optimizer){.kind = GRAPHI_ADAGRAD}, 1, 0);
    graphi_plan *plan;
    graphi_run *run;
    graphi_state *s;
    static float before[WORDS * UNITS], after[WORDS * UNITS];
    int32_t ids[IDS] = {0};
    ids[4] = WORDS;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_state_get(s, "table", before, sizeof before));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "ids0", GRAPHI_I32, ids, sizeof ids));
    check_ok(graphi_run_set(run, "rate", GRAPHI_F32, &(float){0.1f}, sizeof(float)));
    assert_int_equal(graphi_run_execute(run), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found id 120 at position 4, expected 0 to 119"));
    check_ok(graphi_state_get(s, "table", after, sizeof after));
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

/* Rows that a program sets by itself: a cache of what was computed before. What reads the old content comes first. */
static void rows_are_assigned(void **state)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value table = graphi_parameter(g, "cache", GRAPHI_F32, 2, (int64_t[]){4, 2}, NULL);
    graphi_value list = graphi_input(g, "rows", GRAPHI_I32, 1, (int64_t[]){2});
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){2, 2});
    graphi_value old = graphi_sparse_get(g, table, list);
    graphi_output(g, "old", old);
    graphi_output(g, "new", graphi_assign(g, table, graphi_sparse_set(g, table, list, graphi_add(g, old, x))));
    graphi_plan *plan;
    graphi_run *run;
    graphi_state *s;
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_run_create(plan, s, &run));
    const int32_t rows[] = {1, 3};
    const float add[] = {1, 2, 3, 4}, once[] = {0, 0, 1, 2, 0, 0, 3, 4};
    float found[8];
    check_ok(graphi_run_set(run, "rows", GRAPHI_I32, rows, sizeof rows));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, add, sizeof add));
    for (int step = 0; step < 2; step++) {
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "new", GRAPHI_F32, found, sizeof found));
        for (int i = 0; i < 8; i++)
            assert_true(found[i] == once[i] * (float)(step + 1));
        check_ok(graphi_run_get(run, "old", GRAPHI_F32, found, sizeof add));
        for (int i = 0; i < 4; i++)
            assert_true(found[i] == add[i] * (float)step);
    }
    graphi_run_destroy(run);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
}

static graphi_status build_sparse(void)
{
    graphi_graph *g = NULL;
    TRY(graphi_graph_create(&g));
    graphi_value table = graphi_parameter(g, "table", GRAPHI_F32, 2, (int64_t[]){WORDS, UNITS}, NULL);
    graphi_value a = graphi_input(g, "a", GRAPHI_I32, 1, (int64_t[]){3});
    graphi_value b = graphi_input(g, "b", GRAPHI_I32, 2, (int64_t[]){3, 1});
    graphi_value x = graphi_reshape(g, graphi_embedding(g, table, b), GRAPHI_LIST(3, UNITS));
    graphi_value loss = graphi_reduce_sum(g, graphi_mul(g, graphi_embedding(g, table, a), x), NULL, 0, 0);
    const graphi_optimizer how = {.kind = GRAPHI_ADAM, .clip_norm = 1, .sparse = GRAPHI_ON,
                                  .learning_rate = graphi_input(g, "rate", GRAPHI_F32, 0, NULL)};
    graphi_status status = graphi_graph_status(g);
    status = status ? status : graphi_minimize(g, loss, &how);
    graphi_graph_destroy(g);
    return status;
}

static void building_survives_failed_allocations(void **state)
{
    graphi_status status = GRAPHI_MEMORY;
    for (long n = 0; status != GRAPHI_OK && n < 2000; n++) {
        mem_fail_after(n);
        status = build_sparse();
        mem_fail_after(-1);
        if (status != GRAPHI_OK && status != GRAPHI_MEMORY)
            fail_msg("after %ld: %s", n, graphi_message());
    }
    assert_int_equal(status, GRAPHI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_dense_gradient),
        cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(lists_train_as_the_dense_form),
        cmocka_unit_test(lazy_ones_agree_where_all_rows_are_read),
        cmocka_unit_test(other_rows_are_not_touched),
        cmocka_unit_test(dense_where_it_must_be),
        cmocka_unit_test(sizes_may_be_bounded),
        cmocka_unit_test(checkpoints_go_on),
        cmocka_unit_test(ids_beyond_the_rows_are_told),
        cmocka_unit_test(rows_are_assigned),
        cmocka_unit_test(building_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
