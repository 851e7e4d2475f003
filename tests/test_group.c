/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of solvers against the one training step that they are replicas of: the same numbers up to the order of
 * additions, the same bits whatever the number of solvers in the deterministic mode, and what is refused. All solvers
 * take turns on the cores at hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "fill.h"
#include "fixture.h"
#include "folder.h"
#include "graphi/ops.h"

enum { BATCH = 24, FEATURES = 6, HIDDEN = 40, CLASSES = 5, STEPS = 4 };

/* A network with everything that has a role: dropout, clipping, momentum, running statistics, rows that are carried. */
struct net {
    bool drops, clips, follows, carries, adam;
    int failing; /* the graph has a size of its own for batches of this many samples */
};

static graphi_value matrix(graphi_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return graphi_parameter(g, name, GRAPHI_F32, 2, (int64_t[]){rows, columns},
                            &(graphi_initializer){.kind = GRAPHI_INIT_GLOROT_UNIFORM});
}

static graphi_value number(graphi_graph *g, float x)
{
    return graphi_constant(g, GRAPHI_F32, 0, NULL, &x);
}

static void follow(graphi_graph *g, graphi_value x)
{
    graphi_value mean = graphi_reduce_mean(g, x, GRAPHI_LIST(0), 0);
    graphi_value running = graphi_parameter(g, "running", GRAPHI_F32, 1, (int64_t[]){HIDDEN}, NULL);
    graphi_freeze(g, running);
    graphi_assign(g, running,
                  graphi_add(g, graphi_mul(g, running, number(g, 0.9f)), graphi_mul(g, mean, number(g, 0.1f))));
}

static graphi_value carry(graphi_graph *g, graphi_value x, int64_t batch)
{
    graphi_value h = graphi_parameter(g, "state/h", GRAPHI_F32, 2, (int64_t[]){batch, HIDDEN}, NULL);
    graphi_freeze(g, h);
    graphi_value next = graphi_tanh(g, graphi_add(g, x, graphi_matmul(g, h, matrix(g, "u", HIDDEN, HIDDEN), 0, 0)));
    graphi_assign(g, h, next);
    return next;
}

static graphi_status build(void *context, int64_t batch, graphi_graph **out)
{
    const struct net *net = context;
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const int64_t hidden = net->failing == batch ? HIDDEN + 1 : HIDDEN;
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){batch, FEATURES});
    graphi_value y = graphi_matmul(g, x, matrix(g, "w", FEATURES, hidden), 0, 0);
    y = graphi_tanh(g, y);
    y = net->carries ? carry(g, y, batch) : y;
    if (net->follows)
        follow(g, y);
    y = net->drops ? graphi_dropout(g, y, 0.7) : y;
    graphi_value logits = graphi_matmul(g, y, matrix(g, "v", hidden, CLASSES), 0, 0);
    graphi_value labels = graphi_input(g, "labels", GRAPHI_I32, 1, &batch);
    graphi_value loss = graphi_softmax_cross_entropy(g, logits, labels);
    graphi_output(g, "loss", loss);
    graphi_minimize(g, loss,
                    &(graphi_optimizer){.kind = net->adam ? GRAPHI_ADAM : GRAPHI_MOMENTUM,
                                        .learning_rate = graphi_input(g, "learning_rate", GRAPHI_F32, 0, NULL),
                                        .weight_decay = 0.01,
                                        .clip_norm = net->clips ? 0.05 : 0});
    *out = g;
    return graphi_graph_status(g);
}

static float x[BATCH * FEATURES];
static int32_t labels[BATCH];

static void fill(int step)
{
    char name[32];
    snprintf(name, sizeof name, "x#%d", step);
    fill_uniform(name, -1, 1, BATCH * FEATURES, x);
    snprintf(name, sizeof name, "labels#%d", step);
    fill_integers(name, CLASSES, BATCH, labels);
}

static const graphi_feed_array arrays[] = {{"x", GRAPHI_F32, FEATURES * sizeof(float), x},
                                           {"labels", GRAPHI_I32, sizeof(int32_t), labels}};

/* What some steps give: losses, and the state. */
struct outcome {
    float loss[STEPS];
    char sha256[65];
    float w[FEATURES * HIDDEN], v[HIDDEN * CLASSES], running[HIDDEN], h[BATCH * HIDDEN];
};

static void read_state(const struct net *net, const graphi_state *s, struct outcome *o)
{
    graphi_state_sha256(s, o->sha256);
    check_ok(graphi_state_get(s, "w", o->w, sizeof o->w));
    check_ok(graphi_state_get(s, "v", o->v, sizeof o->v));
    if (net->follows)
        check_ok(graphi_state_get(s, "running", o->running, sizeof o->running));
    if (net->carries)
        check_ok(graphi_state_get(s, "state/h", o->h, sizeof o->h));
}

/* By the one step, without solvers. */
static void alone(const struct net *net, struct outcome *o)
{
    graphi_graph *g;
    graphi_plan *plan;
    graphi_state *s;
    graphi_run *run;
    *o = (struct outcome){0};
    check_ok(build((void *)(uintptr_t)net, BATCH, &g));
    check_ok(graphi_plan_create(g, machine, NULL, &plan));
    check_ok(graphi_state_create(g, 3, &s));
    check_ok(graphi_run_create(plan, s, &run));
    for (int i = 0; i < STEPS; i++) {
        fill(i);
        check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
        check_ok(graphi_run_set(run, "labels", GRAPHI_I32, labels, sizeof labels));
        check_ok(graphi_run_set(run, "learning_rate", GRAPHI_F32, &(float){0.5f}, sizeof(float)));
        graphi_run_set_first_sample(run, (uint64_t)i * BATCH);
        check_ok(graphi_run_execute(run));
        check_ok(graphi_run_get(run, "loss", GRAPHI_F32, &o->loss[i], sizeof(float)));
    }
    read_state(net, s, o);
    graphi_run_destroy(run);
    graphi_state_destroy(s);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static graphi_group_options options_of(const struct net *net, int solvers)
{
    return (graphi_group_options){.build = build,
                                  .context = (void *)(uintptr_t)net,
                                  .batch = BATCH,
                                  .solvers = solvers,
                                  .machine = machine,
                                  .oversubscribe = true,
                                  .seed = 3};
}

static void step(graphi_group *group, int i, float *loss)
{
    fill(i);
    const graphi_step_batch batch = {arrays, 2, BATCH, (uint64_t)i * BATCH, "learning_rate", 0.5f};
    check_ok(graphi_group_step(group, &batch, loss));
}

static void together(const struct net *net, const graphi_group_options *how, struct outcome *o)
{
    graphi_group *group;
    *o = (struct outcome){0};
    check_ok(graphi_group_create(how, &group));
    for (int i = 0; i < STEPS; i++) {
        float loss[GRAPHI_TRAINER_LOSSES];
        step(group, i, loss);
        o->loss[i] = loss[0];
    }
    read_state(net, graphi_group_state(group), o);
    assert_int_equal(graphi_state_step(graphi_group_state(group)), STEPS);
    graphi_group_destroy(group);
}

static void compare(const char *what, const float *found, const float *expected, int count)
{
    double most = 0, scale = 1e-6;
    for (int i = 0; i < count; i++) {
        most = fmax(most, fabs((double)found[i] - (double)expected[i]));
        scale = fmax(scale, fabs((double)expected[i]));
    }
    if (!(most <= 2e-5 * scale))
        fail_msg("%s: off by %g of %g", what, most, scale);
}

static void compare_outcomes(const char *what, const struct outcome *found, const struct outcome *expected)
{
    char text[120];
    const struct {
        const char *name;
        const float *found, *expected;
        int count;
    } parts[] = {{"loss", found->loss, expected->loss, STEPS},
                 {"w", found->w, expected->w, FEATURES * HIDDEN},
                 {"v", found->v, expected->v, HIDDEN * CLASSES},
                 {"running", found->running, expected->running, HIDDEN},
                 {"state/h", found->h, expected->h, BATCH * HIDDEN}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(text, sizeof text, "%s: %s", what, parts[i].name);
        compare(text, parts[i].found, parts[i].expected, parts[i].count);
    }
}

static const struct net nets[] = {
    {.drops = true, .clips = true},
    {.follows = true, .carries = true},
    {.adam = true, .follows = true, .drops = true, .clips = true, .carries = true},
};
enum { NETS = sizeof nets / sizeof *nets };

/* Shares are weighted wrong, dropout's numbers follow the solver, a norm is that of some gradients, or rows and
 * statistics are those of one solver. Batches of 24 are unequal shares of 5 and 7 solvers. */
static void groups_equal_one_step(void **state)
{
    static const int solvers[] = {1, 2, 3, 4, 5, 7};
    for (int n = 0; n < NETS; n++) {
        struct outcome expected, found;
        alone(&nets[n], &expected);
        for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
            char what[60];
            const graphi_group_options how = options_of(&nets[n], solvers[i]);
            snprintf(what, sizeof what, "net %d, %d solvers", n, solvers[i]);
            together(&nets[n], &how, &found);
            compare_outcomes(what, &found, &expected);
        }
    }
}

/* One way of adding leaves a gradient out, adds it twice, or reads it while it changes. */
static void reductions_agree(void **state)
{
    static const struct {
        graphi_reduction how;
        int arity, solvers;
    } ways[] = {{GRAPHI_REDUCTION_PAIR, 0, 2}, {GRAPHI_REDUCTION_OWNER, 0, 2}, {GRAPHI_REDUCTION_OWNER, 0, 5},
                {GRAPHI_REDUCTION_TREE, 0, 2}, {GRAPHI_REDUCTION_TREE, 2, 5},  {GRAPHI_REDUCTION_TREE, 3, 7},
                {GRAPHI_REDUCTION_TREE, 1, 4}, {GRAPHI_REDUCTION_RING, 0, 2},  {GRAPHI_REDUCTION_RING, 0, 5},
                {GRAPHI_REDUCTION_FLAT, 0, 1}, {GRAPHI_REDUCTION_FLAT, 0, 5},  {GRAPHI_REDUCTION_RING, 0, 1}};
    struct outcome expected, found;
    alone(&nets[2], &expected);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char what[60];
        graphi_group_options how = options_of(&nets[2], ways[i].solvers);
        how.reduction = ways[i].how;
        how.arity = ways[i].arity;
        snprintf(what, sizeof what, "way %zu", i);
        together(&nets[2], &how, &found);
        compare_outcomes(what, &found, &expected);
    }
}

/* Without it the tests above could not fail: solvers that do not add drift apart from one that has all samples. */
static void no_reduction_is_noticed(void **state)
{
    struct outcome expected, found;
    graphi_group_options how = options_of(&nets[0], 2);
    how.reduction = GRAPHI_REDUCTION_NONE;
    alone(&nets[0], &expected);
    together(&nets[0], &how, &found);
    double most = 0;
    for (int i = 0; i < FEATURES * HIDDEN; i++)
        most = fmax(most, fabs((double)found.w[i] - (double)expected.w[i]));
    assert_true(most > 1e-4);
}

/* Bits depend on who adds which part. Leaves of 8, 6 and 3 are trees of another shape; 3, 5 and 7 solvers have parts
 * that are no node of it. */
static void deterministic_bits_are_those_of_any_number(void **state)
{
    static const int leaves[] = {8, 6, 3, 1}, solvers[] = {1, 2, 3, 4, 5, 7, 8};
    for (size_t l = 0; l < sizeof leaves / sizeof *leaves; l++) {
        struct outcome first, found, plain;
        for (size_t i = 0; i < sizeof solvers / sizeof *solvers && solvers[i] <= leaves[l]; i++) {
            graphi_group_options how = options_of(&nets[2], solvers[i]);
            how.deterministic = true;
            how.leaves = leaves[l];
            together(&nets[2], &how, i ? &found : &first);
            if (!i)
                continue;
            if (strcmp(first.sha256, found.sha256) != 0 || memcmp(first.loss, found.loss, sizeof first.loss) != 0)
                fail_msg("%d leaves, %d solvers: other bits than those of one", leaves[l], solvers[i]);
        }
        alone(&nets[2], &plain);
        compare_outcomes("deterministic", &first, &plain);
    }
}

/* A parameter that is set or loaded between steps stays as it was in the other solvers. */
static void replicas_follow_the_state(void **state)
{
    struct outcome found[2];
    for (int n = 0; n < 2; n++) {
        graphi_group *group;
        float loss[GRAPHI_TRAINER_LOSSES], other[FEATURES * HIDDEN];
        graphi_group_options how = options_of(&nets[1], n ? 4 : 1);
        how.deterministic = true;
        check_ok(graphi_group_create(&how, &group));
        step(group, 0, loss);
        fill_uniform("other", -1, 1, FEATURES * HIDDEN, other);
        check_ok(graphi_state_set(graphi_group_state(group), "w", other, sizeof other));
        check_ok(graphi_state_zero(graphi_group_state(group), "state/"));
        step(group, 1, loss);
        read_state(&nets[1], graphi_group_state(group), &found[n]);
        graphi_group_destroy(group);
    }
    assert_string_equal(found[0].sha256, found[1].sha256);
}

static void refuse(const graphi_group_options *how, graphi_status status, const char *text)
{
    graphi_group *group = NULL;
    const graphi_status found = graphi_group_create(how, &group);
    if (found != status || !strstr(graphi_message(), text))
        fail_msg("found %s, \"%s\", expected %s, \"%s\"", graphi_status_name(found), graphi_message(),
                 graphi_status_name(status), text);
    assert_null(group);
}

static graphi_status build_without_updates(void *context, int64_t batch, graphi_graph **out)
{
    check_ok(graphi_graph_create(out));
    graphi_output(*out, "loss", graphi_input(*out, "x", GRAPHI_F32, 0, NULL));
    return GRAPHI_OK;
}

static graphi_status build_fails(void *context, int64_t batch, graphi_graph **out)
{
    return batch == BATCH ? build((void *)(uintptr_t)&nets[0], batch, out) : GRAPHI_UNSUPPORTED;
}

static graphi_status build_counts(void *context, int64_t batch, graphi_graph **out)
{
    check_ok(build((void *)(uintptr_t)&nets[0], batch, out));
    graphi_value count = graphi_parameter(*out, "count", GRAPHI_I32, 0, NULL, NULL);
    graphi_freeze(*out, count);
    graphi_assign(*out, count, graphi_constant(*out, GRAPHI_I32, 0, NULL, &(int32_t){1}));
    return GRAPHI_OK;
}

/* Its gradient is a list, of other rows in each solver. */
static graphi_status build_table(void *context, int64_t batch, graphi_graph **out)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value ids = graphi_input(g, "labels", GRAPHI_I32, 1, &batch);
    graphi_value loss =
        graphi_reduce_mean(g, graphi_square(g, graphi_embedding(g, matrix(g, "table", 400, 3), ids)), NULL, 0, 0);
    graphi_output(g, "loss", loss);
    graphi_minimize(g, loss,
                    &(graphi_optimizer){.learning_rate = graphi_input(g, "learning_rate", GRAPHI_F32, 0, NULL),
                                        .sparse = GRAPHI_ON});
    *out = g;
    return graphi_graph_status(g);
}

static void what_cannot_be_is_refused(void **state)
{
    graphi_group_options how = options_of(&nets[0], BATCH + 1);
    refuse(&how, GRAPHI_INVALID, "25 solvers for 24 samples");
    how = options_of(&nets[0], 3);
    how.deterministic = true;
    how.leaves = 5;
    refuse(&how, GRAPHI_INVALID, "a batch of 24, expected one that 5 leaves divide");
    how.leaves = 2;
    refuse(&how, GRAPHI_INVALID, "3 solvers for 2 leaves");
    how.leaves = 8;
    how.reduction = GRAPHI_REDUCTION_RING;
    refuse(&how, GRAPHI_USAGE, "ring beside deterministic");
    how = options_of(&nets[0], 3);
    how.leaves = 8;
    refuse(&how, GRAPHI_USAGE, "8 leaves");
    how.leaves = 0;
    how.reduction = GRAPHI_REDUCTION_PAIR;
    refuse(&how, GRAPHI_USAGE, "reduction pair");
    how.reduction = GRAPHI_REDUCTION_RING;
    how.arity = 3;
    refuse(&how, GRAPHI_USAGE, "an arity beside reduction ring");
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    how = options_of(&nets[0], info.cores + 1);
    how.oversubscribe = false;
    refuse(&how, GRAPHI_USAGE, "--oversubscribe");
    how = options_of(&nets[0], -1);
    refuse(&how, GRAPHI_INVALID, "solvers -1");
    how = options_of(&nets[0], 2);
    how.build = build_without_updates;
    refuse(&how, GRAPHI_INVALID, "graphi_minimize");
    how.build = build_fails;
    refuse(&how, GRAPHI_UNSUPPORTED, "solver ");
    how.build = build_counts;
    refuse(&how, GRAPHI_UNSUPPORTED, "count");
    how.build = build_table;
    refuse(&how, GRAPHI_UNSUPPORTED, "sparse OFF");
    const struct net other = {.failing = 8};
    how = options_of(&other, 3);
    refuse(&how, GRAPHI_INVALID, "");
    how = options_of(&nets[0], 2);
    how.build = NULL;
    refuse(&how, GRAPHI_INVALID, "no `build`");
}

/* A solver that fails leaves the others waiting, or is not named. */
static void a_failure_ends_the_group(void **state)
{
    static const graphi_reduction ways[] = {GRAPHI_REDUCTION_OWNER, GRAPHI_REDUCTION_TREE, GRAPHI_REDUCTION_RING};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        graphi_group *group;
        float loss[GRAPHI_TRAINER_LOSSES];
        graphi_group_options how = options_of(&nets[0], 3);
        how.reduction = ways[i];
        check_ok(graphi_group_create(&how, &group));
        step(group, 0, loss);
        labels[BATCH / 2] = CLASSES; /* the second solver's */
        const graphi_step_batch batch = {arrays, 2, BATCH, BATCH, "learning_rate", 0.5f};
        assert_int_equal(graphi_group_step(group, &batch, loss), GRAPHI_INVALID);
        if (!strstr(graphi_message(), "solver 1: ") || !strstr(graphi_message(), "softmax_cross_entropy"))
            fail_msg("%s", graphi_message());
        assert_int_equal(graphi_group_step(group, &batch, loss), GRAPHI_INVALID);
        assert_non_null(strstr(graphi_message(), "has failed"));
        graphi_group_destroy(group);
    }
}

static void steps_allocate_nothing(void **state)
{
    graphi_group *group;
    float loss[GRAPHI_TRAINER_LOSSES];
    const graphi_group_options how = options_of(&nets[2], 3);
    check_ok(graphi_group_create(&how, &group));
    step(group, 0, loss);
    step(group, 1, loss);
    const uint64_t before = mem_allocations();
    step(group, 2, loss);
    assert_int_equal(mem_allocations(), before);
    graphi_group_destroy(group);
}

static void info_tells_the_division(void **state)
{
    graphi_group *group;
    graphi_group_info info;
    graphi_solver_info solver;
    const graphi_group_options how = options_of(&nets[0], 5);
    int64_t samples = 0;
    check_ok(graphi_group_create(&how, &group));
    graphi_group_get_info(group, &info);
    assert_true(info.solvers == 5 && info.leaves == 0 && info.reduction == GRAPHI_REDUCTION_OWNER);
    assert_true(info.gradient_bytes >= (int64_t)sizeof(float) * (FEATURES * HIDDEN + HIDDEN * CLASSES));
    for (int i = 0; graphi_group_at(group, i, &solver); i++) {
        assert_int_equal(solver.first, samples);
        samples += solver.samples;
        assert_non_null(solver.plan);
    }
    assert_int_equal(samples, BATCH);
    assert_false(graphi_group_at(group, 5, &solver));
    graphi_group_destroy(group);
}

/* --- with the trainer --- */

static float all_x[2 * BATCH * FEATURES];
static int32_t all_labels[2 * BATCH];

static void train(int solvers, int64_t steps, graphi_trainer_start start, const char *path, char sha256[65])
{
    const graphi_feed_array fed[] = {{"x", GRAPHI_F32, FEATURES * sizeof(float), all_x},
                                     {"labels", GRAPHI_I32, sizeof(int32_t), all_labels}};
    graphi_group *group;
    graphi_trainer *trainer;
    graphi_group_options how = options_of(&nets[2], solvers);
    how.deterministic = true;
    check_ok(graphi_group_create(&how, &group));
    const graphi_trainer_options options = {
        .graph = {graphi_group_graph(group)},
        .state = graphi_group_state(group),
        .stepper = graphi_group_stepper(group),
        .training = {.arrays = fed, .array_count = 2, .samples = 2 * BATCH, .batch = BATCH, .carried = true},
        .steps = steps,
        .rate = 0.1,
        .schedule = "step:0.5:3",
        .seed = 3,
        .checkpoint = path,
        .start = start};
    check_ok(graphi_trainer_create(&options, &trainer));
    check_ok(graphi_trainer_run(trainer));
    graphi_state_sha256(graphi_group_state(group), sha256);
    graphi_trainer_destroy(trainer);
    graphi_group_destroy(group);
}

/* A checkpoint does not hold all that solvers have, or a training that goes on with another number has other bits. */
static void checkpoints_go_on_with_another_number(void **state)
{
    struct folder folder;
    char path[1024], whole[65], half[65];
    folder_make(&folder);
    snprintf(path, sizeof path, "%s", folder_name(&folder, "g.safetensors"));
    fill_uniform("all x", -1, 1, 2 * BATCH * FEATURES, all_x);
    fill_integers("all labels", CLASSES, 2 * BATCH, all_labels);
    train(1, 7, GRAPHI_TRAINER_NEW, NULL, whole);
    train(2, 3, GRAPHI_TRAINER_OVERWRITE, path, half);
    train(8, 5, GRAPHI_TRAINER_RESUME, path, half);
    train(3, 7, GRAPHI_TRAINER_RESUME, path, half);
    assert_string_equal(whole, half);
    folder_remove(&folder);
}

static graphi_status never(void *context, graphi_data_position at, void *const *buffers, int64_t *rows)
{
    return GRAPHI_INVALID;
}

static graphi_status set_nothing(void *context, graphi_run *run)
{
    return GRAPHI_OK;
}

/* Solvers would compute with samples of nobody. */
static void other_batches_are_refused(void **state)
{
    const graphi_feed_array fed[] = {{"x", GRAPHI_F32, FEATURES * sizeof(float), all_x},
                                     {"labels", GRAPHI_I32, sizeof(int32_t), all_labels}};
    graphi_group *group;
    graphi_trainer *trainer;
    const graphi_group_options how = options_of(&nets[0], 2);
    check_ok(graphi_group_create(&how, &group));
    const graphi_trainer_options options = {
        .graph = {graphi_group_graph(group)},
        .state = graphi_group_state(group),
        .stepper = graphi_group_stepper(group),
        .training = {.arrays = fed, .array_count = 2, .samples = 2 * BATCH, .batch = BATCH / 2},
        .steps = 1};
    assert_int_equal(graphi_trainer_create(&options, &trainer), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "those of the stepper"));
    graphi_trainer_options setting = options;
    setting.training =
        (graphi_feed){.arrays = fed, .array_count = 2, .batch = BATCH, .next = never, .set = set_nothing};
    assert_int_equal(graphi_trainer_create(&setting, &trainer), GRAPHI_UNSUPPORTED);
    graphi_group_destroy(group);
}

/* A network of the command, by two solvers on two cores where there are so many. */
static graphi_status build_network(void *context, int64_t batch, graphi_graph **out)
{
    return graphi_model_create("cifar10-quick",
                               &(graphi_model_options){.task = "real", .batch = batch, .image = 16, .units = 4}, out);
}

static void a_network_is_trained_on_parts_of_the_machine(void **state)
{
    static float images[8 * 16 * 16 * 3];
    int32_t kinds[8];
    float loss[2][GRAPHI_TRAINER_LOSSES];
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    if (info.cores < 2)
        skip();
    fill_uniform("images", -100, 100, sizeof images / sizeof *images, images);
    fill_integers("kinds", 10, 8, kinds);
    const graphi_feed_array fed[] = {{"images", GRAPHI_F32, 16 * 16 * 3 * sizeof(float), images},
                                     {"labels", GRAPHI_I32, sizeof(int32_t), kinds}};
    for (int n = 0; n < 2; n++) {
        graphi_group *group;
        graphi_solver_info solver;
        check_ok(graphi_group_create(
            &(graphi_group_options){.build = build_network, .batch = 8, .solvers = n + 1, .machine = machine}, &group));
        for (int i = 0; i < STEPS; i++)
            check_ok(graphi_group_step(group, &(graphi_step_batch){fed, 2, 8, 0, "learning_rate", 0.001f}, loss[n]));
        assert_true(graphi_group_at(group, n, &solver) && solver.cores == info.cores / (n + 1));
        graphi_group_destroy(group);
    }
    compare("loss", loss[0], loss[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_equal_one_step),     cmocka_unit_test(reductions_agree),
        cmocka_unit_test(no_reduction_is_noticed),   cmocka_unit_test(deterministic_bits_are_those_of_any_number),
        cmocka_unit_test(replicas_follow_the_state), cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_failure_ends_the_group),  cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(info_tells_the_division),   cmocka_unit_test(checkpoints_go_on_with_another_number),
        cmocka_unit_test(other_batches_are_refused), cmocka_unit_test(a_network_is_trained_on_parts_of_the_machine),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machines);
}
