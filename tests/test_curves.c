/* SPDX-License-Identifier: Apache-2.0 */
/* Curves that plans share: what names a class, what is measured again and what is not, the file and those who write it
 * at once, and schedules that follow a model's predictions. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "engine/compile/classes.h"
#include "engine/tune/tune.h"
#include "graphi/curves.h"
#include "graphi/simulate.h"
#include "machine/machine.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

/* x w + softmax(x w), or tanh in place of softmax; the product is common. */
static graphi_graph *network(bool softmax, int64_t rows)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){rows, 96});
    graphi_value w = graphi_parameter(g, "w", GRAPHI_F32, 2, (int64_t[]){96, 96}, NULL);
    graphi_value y = graphi_matmul(g, x, w, 0, 0);
    graphi_output(g, "product", y);
    graphi_output(g, "y", softmax ? graphi_softmax(g, y) : graphi_reduce_max(g, y, NULL, 0, false));
    return g;
}

/* Without merging into the product's kernel: it is the same one in both networks. */
static graphi_plan *plan_of(graphi_graph *g, const graphi_machine *on, const char *isa)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, on, &(graphi_plan_options){.disable = "fusion,epilogue,pack", .isa = isa}, &plan));
    return plan;
}

static uint64_t key_of(const graphi_plan *plan, const char *kind)
{
    graphi_class class;
    for (int i = 0; graphi_plan_class_at(plan, i, &class); i++)
        if (strcmp(class.kind, kind) == 0)
            return class.key;
    fail_msg("no class of %s", kind);
    return 0;
}

static int count_of(const graphi_plan *plan, graphi_curve_source source)
{
    graphi_class class;
    int count = 0;
    for (int i = 0; graphi_plan_class_at(plan, i, &class); i++)
        count += class.source == source;
    return count;
}

static int taken_at(graphi_curves *set, const graphi_plan *plan, int interval)
{
    struct cost_curve curves[64] = {{0}};
    assert_true(plan->compiled->curves <= 64);
    return curve_set_take(set, plan_class_keys(plan), interval, curves);
}

static int taken(graphi_curves *set, const graphi_plan *plan) { return taken_at(set, plan, 4); }

/* What was measured under load was believed for ever. Who measured it can do no better; who reads it can. A climb by
 * other steps is measured anew. */
static void disturbed_curves_are_for_once(void **state)
{
    struct folder folder;
    struct cost_curve curves[64] = {{0}};
    graphi_curves *set, *read, *late;
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, machine, NULL);
    const int classes = plan->compiled->curves;
    folder_make(&folder);
    const char *path = folder_name(&folder, "curves");
    for (int k = 0; k < classes; k++) {
        curves[k] = plan->curves[k];
        curves[k].source = GRAPHI_CURVE_MEASURED;
        curves[k].interval = 4;
    }
    check_ok(graphi_curves_open(machine, path, &set));
    check_ok(curve_set_learn(set, plan_class_keys(plan), curves, true));
    assert_int_equal(taken(set, plan), classes);
    check_ok(graphi_curves_save(set));
    check_ok(graphi_curves_open(machine, path, &read));
    check_ok(graphi_curves_open(machine, path, &late));
    assert_int_equal(taken(read, plan), 0);
    check_ok(curve_set_learn(read, plan_class_keys(plan), curves, false));
    check_ok(graphi_curves_save(read));
    check_ok(curve_set_learn(late, plan_class_keys(plan), curves, true)); /* no better than what came meanwhile */
    check_ok(graphi_curves_save(late));
    graphi_curves_close(read);
    check_ok(graphi_curves_open(machine, path, &read));
    assert_int_equal(taken(read, plan), classes);
    assert_int_equal(taken_at(read, plan, 2), 0);
    graphi_curves_close(read);
    graphi_curves_close(late);
    graphi_curves_close(set);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    folder_remove(&folder);
}

/* A plan of a disturbed minute looked like any other as soon as it was stored, and stayed for ever; or lost its mark
 * where there was no time to measure operations again. How often in a row it was so bounds how often it is tuned again.
 */
static void plans_tuned_beside_others_are_marked(void **state)
{
    static const struct {
        double share;
        bool left;
        double others;
        int disturbed;
    } cases[] = {{0, false, 0, 0}, {0, true, 0.4, 3}, {0.6, true, 0.6, 3}, {0.2, true, 0.4, 3}, {0.2, false, 0.2, 3}};
    struct folder folder;
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, machine, NULL), *tuned, *loaded, *with, *untuned, *curved, *simulated;
    graphi_curves *none;
    graphi_state *s;
    graphi_plan_info info;
    char *text;
    folder_make(&folder);
    const char *path = folder_name(&folder, "plan");
    check_ok(graphi_state_create(g, 1, &s));
    plan->others = 0.4;
    plan->disturbed = 2;
    check_ok(graphi_plan_save(plan, path));
    check_ok(graphi_plan_load(g, machine, &plan->compiled->options, path, &loaded));
    check_ok(graphi_plan_with(loaded, &(graphi_plan_change){.setting = &(graphi_setting){.executors = 1, .width = 1}},
                              &with));
    check_ok(graphi_plan_tune(loaded, s, &(graphi_tune_options){.seconds = 0.3}, &tuned));
    check_ok(graphi_plan_tune(loaded, s, &(graphi_tune_options){.seconds = 0}, &untuned));
    check_ok(graphi_curves_open(machine, NULL, &none));
    check_ok(graphi_plan_with(loaded, &(graphi_plan_change){.curves = none}, &curved));
    check_ok(graphi_plan_with(loaded, NULL, &simulated));
    const graphi_plan *const marked[] = {loaded, with, untuned, curved, simulated};
    for (int i = 0; i < 5; i++) {
        graphi_plan_get_info(marked[i], &info);
        assert_true(info.others == 0.4 && info.disturbed == 2);
        check_ok(graphi_plan_explain(marked[i], false, &text));
        assert_non_null(strstr(text, "measured while others used 40 % of the cores\n"));
        graphi_free(text);
    }
    text_add(&loaded->why, "measured while others used 40 %% of the cores\n"); /* as the first stored plans did */
    check_ok(graphi_plan_explain(loaded, false, &text));
    assert_null(strstr(strstr(text, "measured while") + 1, "measured while"));
    graphi_free(text);
    graphi_plan_get_info(tuned, &info);
    assert_int_equal(info.disturbed, info.others > 0 ? 3 : 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tune_mark(tuned, loaded, cases[i].share, cases[i].left);
        graphi_plan_get_info(tuned, &info);
        assert_true(info.others == cases[i].others && info.disturbed == cases[i].disturbed);
    }
    graphi_plan_destroy(tuned);
    graphi_plan_destroy(untuned);
    graphi_plan_destroy(curved);
    graphi_plan_destroy(simulated);
    graphi_plan_destroy(with);
    graphi_plan_destroy(loaded);
    graphi_curves_close(none);
    graphi_plan_destroy(plan);
    graphi_state_destroy(s);
    graphi_graph_destroy(g);
    folder_remove(&folder);
}

/* The mark goes with the times that it is of: not before all of them are measured anew, undisturbed. */
static void times_of_a_quiet_minute_take_the_mark_away(void **state)
{
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, machine, NULL), *curved;
    struct cost_curve curves[64] = {{0}};
    graphi_curves *set;
    graphi_plan_info info;
    assert_true(plan->compiled->curves <= 64);
    check_ok(graphi_curves_open(machine, NULL, &set));
    plan->others = 0.4;
    plan->disturbed = 2;
    for (int part = 0; part < 3; part++) { /* one class; all, disturbed; all */
        for (int k = 0; k < plan->compiled->curves; k++) {
            curves[k] = plan->curves[k];
            curves[k].source = part || k == 0 ? GRAPHI_CURVE_MEASURED : GRAPHI_CURVE_MODELLED;
        }
        check_ok(curve_set_learn(set, plan_class_keys(plan), curves, part == 1));
        check_ok(graphi_plan_with(plan, &(graphi_plan_change){.curves = set}, &curved));
        graphi_plan_get_info(curved, &info);
        assert_true(info.others == (part < 2 ? 0.4 : 0) && info.disturbed == (part < 2 ? 2 : 0));
        graphi_plan_destroy(curved);
    }
    graphi_curves_close(set);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* The same operation on rows that lie apart would take its times from one on rows that lie together. */
static void strided_arrays_have_a_class_of_their_own(void **state)
{
    graphi_graph *g;
    graphi_class class;
    int softmaxes = 0;
    check_ok(graphi_graph_create(&g));
    graphi_value wide = graphi_input(g, "wide", GRAPHI_F32, 2, (int64_t[]){64, 192});
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, 2, (int64_t[]){64, 96});
    graphi_output(g, "part", graphi_softmax(g, graphi_slice(g, wide, 1, 0, 96)));
    graphi_output(g, "y", graphi_softmax(g, x));
    graphi_plan *plan = plan_of(g, machine, NULL);
    for (int i = 0; graphi_plan_class_at(plan, i, &class); i++)
        softmaxes += strcmp(class.kind, "softmax") == 0;
    assert_int_equal(softmaxes, 2);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* Without it two plans would not know that they have the same class, or take another's times for their own. */
static void keys_name_classes_whatever_the_network(void **state)
{
    graphi_graph *g = network(true, 64), *h = network(false, 64), *longer = network(true, 128);
    graphi_plan *a = plan_of(g, machine, NULL), *b = plan_of(h, machine, NULL), *c = plan_of(longer, machine, NULL),
                *plain = plan_of(g, machine, "plain"), *again = plan_of(g, machine, NULL), *unpinned;
    uint64_t key = key_of(a, "matmul");
    assert_true(key == key_of(b, "matmul") && key == key_of(again, "matmul"));
    assert_true(key != key_of(c, "matmul") && key_of(plain, "softmax") != key_of(a, "softmax"));
    check_ok(graphi_plan_with(a, &(graphi_plan_change){.setting = &(graphi_setting){.pin = GRAPHI_OFF}}, &unpinned));
    assert_true(key != key_of(unpinned, "matmul"));
    graphi_plan *checked; /* whose measured times hold the check */
    check_ok(graphi_plan_create(g, machine, &(graphi_plan_options){.check_numerics = true}, &checked));
    assert_true(key != key_of(checked, "matmul"));
    graphi_plan *plans[] = {a, b, c, plain, again, unpinned, checked};
    for (int i = 0; i < 7; i++)
        graphi_plan_destroy(plans[i]);
    graphi_graph_destroy(g);
    graphi_graph_destroy(h);
    graphi_graph_destroy(longer);
}

static void outputs_of(const graphi_plan *plan, graphi_state *s, float *product)
{
    graphi_run *run;
    float x[64 * 96];
    for (int i = 0; i < 64 * 96; i++)
        x[i] = (float)(i % 17) / 8 - 1;
    check_ok(graphi_run_create(plan, s, &run));
    check_ok(graphi_run_set(run, "x", GRAPHI_F32, x, sizeof x));
    check_ok(graphi_run_execute(run));
    check_ok(graphi_run_get(run, "product", GRAPHI_F32, product, 64 * 96 * sizeof *product));
    graphi_run_destroy(run);
}

/* Without it a class met in a second network would be measured again, or its stored curve would change results. */
static void a_shared_class_is_measured_once(void **state)
{
    struct folder folder;
    folder_make(&folder);
    graphi_graph *g = network(true, 64), *h = network(false, 64);
    graphi_plan *first = plan_of(g, machine, NULL), *second = plan_of(h, machine, NULL), *known, *shared, *alone,
                *tuned;
    graphi_state *s, *t;
    graphi_curves *curves, *read;
    check_ok(graphi_state_create(g, 1, &s));
    check_ok(graphi_state_create(h, 1, &t));
    check_ok(graphi_curves_open(machine, folder_name(&folder, "machine.curves"), &curves));
    graphi_profile_options how = {.seconds = 1, .curves = curves};
    check_ok(graphi_plan_profile(first, s, &how, &known));
    assert_int_equal(count_of(known, GRAPHI_CURVE_STORED), 0);
    assert_true(count_of(known, GRAPHI_CURVE_MEASURED) >= 2);
    check_ok(graphi_curves_save(curves));
    check_ok(graphi_curves_open(machine, folder.name, &read));
    assert_int_equal(curve_set_count(read), count_of(known, GRAPHI_CURVE_MEASURED));
    check_ok(graphi_plan_profile(second, t, &how, &shared)); /* from memory: those of a file may be measured anew */
    check_ok(graphi_plan_profile(second, t, &(graphi_profile_options){.seconds = 1}, &alone));
    assert_true(count_of(shared, GRAPHI_CURVE_STORED) >= 1);
    assert_true(count_of(shared, GRAPHI_CURVE_MEASURED) < count_of(alone, GRAPHI_CURVE_MEASURED));
    assert_int_equal(count_of(shared, GRAPHI_CURVE_MEASURED) + count_of(shared, GRAPHI_CURVE_STORED),
                     count_of(alone, GRAPHI_CURVE_MEASURED));
    static float a[64 * 96], b[64 * 96];
    outputs_of(shared, t, a);
    outputs_of(alone, t, b);
    assert_memory_equal(a, b, sizeof a);
    check_ok(graphi_plan_tune(second, t, &(graphi_tune_options){.seconds = 0.2, .curves = curves}, &tuned));
    assert_int_equal(count_of(tuned, GRAPHI_CURVE_MEASURED), 0); /* all known by now */
    char *text;
    check_ok(graphi_plan_explain(tuned, true, &text));
    assert_non_null(strstr(text, "operations measured: 0 of "));
    assert_non_null(strstr(text, "; curve stored"));
    graphi_free(text);
    graphi_plan *plans[] = {first, second, known, shared, alone, tuned};
    for (int i = 0; i < 6; i++)
        graphi_plan_destroy(plans[i]);
    graphi_curves_close(curves);
    graphi_curves_close(read);
    graphi_state_destroy(s);
    graphi_state_destroy(t);
    graphi_graph_destroy(g);
    graphi_graph_destroy(h);
    folder_remove(&folder);
}

static const graphi_climb samples = {
    .samples = 3, .width = {1, 2, 4}, .compact_ns = {900, 500, 300}, .spread_ns = {0, 450, 0}};

/* Without it two processes that end at once would lose what one of them measured, or leave half a file. */
static void writers_at_once_lose_nothing(void **state)
{
    enum { WRITERS = 3, EACH = 10 };
    struct folder folder;
    graphi_curves *curves;
    folder_make(&folder);
    const char *path = folder_name(&folder, "curves");
    pid_t child[WRITERS];
    for (int w = 0; w < WRITERS; w++)
        if ((child[w] = fork()) == 0) {
            for (int i = 0; i < EACH; i++)
                if (graphi_curves_open(machine, path, &curves) ||
                    graphi_curves_add(curves, (uint64_t)(w * EACH + i), "m", &samples) || graphi_curves_save(curves))
                    _exit(1);
                else
                    graphi_curves_close(curves);
            _exit(0);
        }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        waitpid(child[w], &status, 0);
        assert_int_equal(status, 0);
    }
    check_ok(graphi_curves_open(machine, path, &curves));
    assert_int_equal(curve_set_count(curves), WRITERS * EACH);
    graphi_curves_close(curves);
    assert_int_equal(folder_count(&folder), 1); /* the last lock went with its holder */
    folder_remove(&folder);
}

/* Without it a full disk would cost what was known, or a set be believed to be saved. */
static void a_failed_save_keeps_the_old_file(void **state)
{
    struct folder folder;
    graphi_curves *curves, *read;
    folder_make(&folder);
    const char *path = folder_name(&folder, "curves");
    check_ok(graphi_curves_open(machine, path, &curves));
    check_ok(graphi_curves_save(curves)); /* nothing to write */
    assert_int_equal(folder_count(&folder), 0);
    check_ok(graphi_curves_add(curves, 1, "m", &samples));
    check_ok(graphi_curves_save(curves));
    check_ok(graphi_curves_add(curves, 2, "m", &samples));
    for (int n = 0; n < 3; n++) {
        file_fail_after(n);
        assert_int_equal(graphi_curves_save(curves), GRAPHI_IO);
        file_fail_after(-1);
        check_ok(graphi_curves_open(machine, path, &read));
        assert_int_equal(curve_set_count(read), 1);
        graphi_curves_close(read);
    }
    check_ok(graphi_curves_save(curves));
    check_ok(graphi_curves_open(machine, path, &read));
    assert_int_equal(curve_set_count(read), 2);
    graphi_curves_close(read);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

/* A writer whose holder never ends would wait forever, go on without the lock, or forget what it could not write. */
static void a_held_lock_is_waited_for_a_second(void **state)
{
    struct folder folder;
    graphi_curves *curves, *read;
    struct file_lock held, none = {.fd = -7};
    folder_make(&folder);
    const char *path = folder_name(&folder, "curves");
    check_ok(graphi_curves_open(machine, path, &curves));
    check_ok(graphi_curves_add(curves, 1, "m", &samples));
    check_ok(file_lock(path, &held)); /* as another process would: a lock is of one opening of the file */
    assert_int_equal(graphi_curves_save(curves), GRAPHI_IO);
    assert_non_null(strstr(graphi_message(), "curves.lock"));
    assert_non_null(strstr(graphi_message(), "held by one process"));
    assert_false(file_exists(path));
    int64_t begin = clock_ns();
    assert_int_equal(file_lock(path, &none), GRAPHI_IO);
    assert_true(none.fd == -7 && clock_ns() - begin >= 1000000000);
    file_unlock(&held);
    check_ok(graphi_curves_save(curves));
    check_ok(graphi_curves_open(machine, path, &read));
    assert_int_equal(curve_set_count(read), 1);
    assert_int_equal(folder_count(&folder), 1); /* saving gave it back, and left nothing */
    assert_int_equal(file_lock("/nonexistent/curves", &none), GRAPHI_IO);
    assert_int_equal(none.fd, -7);
    graphi_curves_close(read);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

/* Two names of one file had a lock each, and who wrote last by one of them lost what the other had put there. */
static void a_link_shares_the_lock_of_its_file(void **state)
{
    struct folder folder;
    graphi_curves *curves, *none = NULL;
    struct file_lock held;
    char file[1024];
    (void)state;
    folder_make(&folder);
    snprintf(file, sizeof file, "%s", folder_name(&folder, "curves"));
    const char *name = folder_name(&folder, "link");
    check_ok(graphi_curves_open(machine, file, &curves));
    check_ok(graphi_curves_add(curves, 1, "m", &samples));
    check_ok(graphi_curves_save(curves));
    graphi_curves_close(curves);
    assert_int_equal(symlink("curves", name), 0);
    check_ok(graphi_curves_open(machine, name, &curves));
    check_ok(graphi_curves_add(curves, 2, "m", &samples));
    check_ok(file_lock(file, &held));
    assert_int_equal(graphi_curves_save(curves), GRAPHI_IO);
    file_unlock(&held);
    check_ok(graphi_curves_save(curves));
    graphi_curves_close(curves);
    check_ok(graphi_curves_open(machine, file, &curves));
    assert_int_equal(curve_set_count(curves), 2);
    graphi_curves_close(curves);
    assert_int_equal(unlink(file), 0); /* what a link names may be yet to come */
    check_ok(file_lock(file, &held));
    assert_int_equal(graphi_curves_renew(machine, name, &none), GRAPHI_IO);
    assert_null(none);
    file_unlock(&held);
    folder_remove(&folder);
}

/* A cache file that is broken would be removed though somebody has made it anew meanwhile, or without the lock; or an
 * error would leave the lock to nobody. */
static void broken_files_are_emptied_under_the_lock(void **state)
{
    struct folder folder;
    graphi_curves *curves, *none = NULL;
    struct file_lock held;
    (void)state;
    folder_make(&folder);
    const char *path = folder_write(&folder, "curves", "{", 1);
    check_ok(file_lock(path, &held));
    assert_int_equal(graphi_curves_renew(machine, path, &none), GRAPHI_IO);
    assert_null(none);
    file_unlock(&held);
    file_fail_after(0);
    assert_int_equal(graphi_curves_renew(machine, path, &none), GRAPHI_IO);
    file_fail_after(-1);
    assert_null(none);
    check_ok(graphi_curves_renew(machine, path, &curves));
    assert_int_equal(curve_set_count(curves), 0);
    check_ok(graphi_curves_add(curves, 1, "m", &samples));
    check_ok(graphi_curves_save(curves));
    graphi_curves_close(curves);
    check_ok(graphi_curves_renew(machine, path, &curves)); /* sound by now */
    assert_int_equal(curve_set_count(curves), 1);
    assert_int_equal(folder_count(&folder), 1);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

static struct file_lock waited;

static void *wait_for_lock(void *path)
{
    return file_lock(path, &waited) == GRAPHI_OK ? path : NULL;
}

/* How often this process has the file open; by names, since descriptors are the other threads'. */
static int openings(const char *name)
{
    struct stat file, opened;
    char entry[64];
    int count = 0;
    assert_int_equal(stat(name, &file), 0);
    for (int fd = 0; fd < 1024 && snprintf(entry, sizeof entry, "/proc/self/fd/%d", fd) > 0; fd++)
        count += stat(entry, &opened) == 0 && opened.st_dev == file.st_dev && opened.st_ino == file.st_ino;
    return count;
}

/* Who waits for a file that its holder removes would have a lock of nothing, beside the one of who makes it anew; or
 * none at all, since a child of the holder's process has the file open. */
static void a_lock_is_of_the_file_that_is_there(void **state)
{
    struct folder folder;
    struct file_lock held;
    pthread_t thread;
    void *locked;
    (void)state;
    folder_make(&folder);
    const char *path = folder_name(&folder, "curves");
    check_ok(file_lock(path, &held));
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(child > 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, (void *)path), 0);
    const int64_t late = clock_after(60);
    while (openings(held.name) < 2 && clock_ns() < late) /* the thread waits for the file that will go */
        sched_yield();
    assert_true(openings(held.name) >= 2);
    file_unlock(&held);
    pthread_join(thread, &locked);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_non_null(locked);
    assert_int_equal(folder_count(&folder), 1);
    file_unlock(&waited);
    assert_int_equal(folder_count(&folder), 0);
    folder_remove(&folder);
}

/* tests/data/curves.json for this version, that machine and class. */
static const char *fixed_file(struct folder *folder, const char *version, uint64_t hash, uint64_t key)
{
    void *data;
    size_t size, used = 0;
    char text[4096];
    check_ok(file_read("tests/data/curves.json", sizeof text / 2, &data, &size));
    for (const char *c = data; *c;) {
        size_t room = sizeof text - used;
        if (strncmp(c, "VERSION", 7) == 0)
            used += (size_t)snprintf(text + used, room, "%s", version), c += 7;
        else if (strncmp(c, "MACHINE", 7) == 0)
            used += (size_t)snprintf(text + used, room, "%016llx", (unsigned long long)hash), c += 7;
        else if (strncmp(c, "CLASS", 5) == 0)
            used += (size_t)snprintf(text + used, room, "%016llx", (unsigned long long)key), c += 5;
        else
            text[used++] = *c++;
    }
    mem_free(data);
    return folder_write(folder, "fixed.curves", text, used);
}

/* The same for the Xeon Phi with one text in place of another. */
static const char *edited_file(struct folder *folder, uint64_t key, const char *from, const char *to)
{
    char edited[4096];
    void *data;
    size_t size;
    check_ok(file_read(fixed_file(folder, graphi_version(), machine_hash(phi), key), sizeof edited / 2, &data, &size));
    const char *at = strstr(data, from);
    assert_non_null(at);
    int length = snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - (const char *)data), (const char *)data, to,
                          at + strlen(from));
    mem_free(data);
    return folder_write(folder, "edited.curves", edited, (size_t)length);
}

/* Without it a file of another machine or version, or a broken one, would be taken for measurements. */
static void foreign_and_broken_files_are_refused(void **state)
{
    static const char *const broken[] = {"", "[]", "{", "{\"schema\": \"graphi-plan/8\"}", "{\"schema\": 3}"};
    struct folder folder;
    graphi_curves *curves = NULL, *broken_one = NULL;
    folder_make(&folder);
    uint64_t hash = machine_hash(phi);
    assert_int_equal(graphi_curves_open(phi, fixed_file(&folder, "0.0.0", hash, 1), &curves), GRAPHI_REFUSED);
    assert_non_null(strstr(graphi_message(), "version 0.0.0"));
    assert_int_equal(graphi_curves_open(phi, fixed_file(&folder, graphi_version(), hash + 1, 1), &curves),
                     GRAPHI_REFUSED);
    assert_non_null(strstr(graphi_message(), "machine"));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const char *path = folder_write(&folder, "broken", broken[i], strlen(broken[i]));
        graphi_status status = graphi_curves_open(phi, path, &curves);
        assert_true(status == GRAPHI_INVALID || (i == 3 && status == GRAPHI_REFUSED));
    }
    assert_null(curves);
    check_ok(graphi_curves_open(phi, fixed_file(&folder, graphi_version(), hash, 1), &curves));
    assert_int_equal(curve_set_count(curves), 3);
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, machine, NULL), *out = NULL;
    assert_int_equal(graphi_plan_with(plan, &(graphi_plan_change){.curves = curves}, &out),
                     GRAPHI_REFUSED); /* the plan is for this machine */
    assert_null(out);
    static const graphi_climb none[] = {{0},
                                        {.samples = 1, .width = {2}, .compact_ns = {1}},
                                        {.samples = 1, .width = {1}},
                                        {.samples = 1, .width = {1}, .compact_ns = {1e-310}},
                                        {.samples = 1, .width = {1}, .compact_ns = {9}, .spread_ns = {0.5}},
                                        {.samples = 2, .width = {1, 1}, .compact_ns = {1, 1}}};
    assert_int_equal(graphi_curves_open(phi, edited_file(&folder, 1, "[500]", "[0.5]"), &broken_one), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "curves[2]: key \"ns\": found 0.5, expected durations from 1"));
    assert_int_equal(graphi_curves_open(phi, edited_file(&folder, 1, "[0, 40000", "[0, 1e-300"), &broken_one),
                     GRAPHI_INVALID);
    assert_null(broken_one);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(graphi_curves_add(curves, 1, "m", &none[i]), GRAPHI_INVALID);
    assert_int_equal(graphi_curves_add(curves, 1, "", &samples), GRAPHI_INVALID);
    assert_int_equal(graphi_curves_add(curves, 1, "k\xe9", &samples),
                     GRAPHI_INVALID); /* no reader would take the file */
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

/* Without it a comparison would take more than the times from the other plan: here, that its threads are not pinned. */
static void only_times_come_from_the_truth(void **state)
{
    graphi_graph *g = network(true, 64);
    graphi_plan *pinned = plan_of(g, phi, NULL), *unpinned;
    graphi_simulation own, against, slow;
    graphi_plan_info info;
    graphi_plan_get_info(pinned, &info);
    graphi_setting asked = graphi_decision_setting(&info.setting);
    asked.pin = GRAPHI_OFF;
    check_ok(graphi_plan_with(pinned, &(graphi_plan_change){.setting = &asked}, &unpinned));
    check_ok(graphi_plan_simulate(pinned, NULL, &own));
    check_ok(graphi_plan_simulate(pinned, &(graphi_simulate_options){.truth = unpinned}, &against));
    check_ok(graphi_plan_simulate(unpinned, NULL, &slow));
    assert_true(against.makespan_ms == own.makespan_ms && slow.makespan_ms > 1.1 * own.makespan_ms);
    graphi_plan_destroy(unpinned);
    graphi_plan_destroy(pinned);
    graphi_graph_destroy(g);
}

/* A stored plan would forget what was measured, and tell it of no operation. */
static void keeps_both(const struct folder *folder, const graphi_graph *g, const graphi_plan *directed)
{
    graphi_plan *loaded, *again;
    void *first, *second;
    size_t size, other;
    char path[sizeof folder->path + 16], *before, *after;
    snprintf(path, sizeof path, "%s/both.plan", folder->path);
    check_ok(graphi_plan_save(directed, path));
    check_ok(file_read(path, 1 << 24, &first, &size));
    check_ok(graphi_plan_load(g, phi, &directed->compiled->options, path, &loaded));
    size_t bytes = (size_t)directed->compiled->curves * sizeof *directed->curves;
    assert_memory_equal(loaded->observed, directed->observed, bytes);
    assert_memory_equal(loaded->curves, directed->curves, bytes);
    const graphi_setting own = graphi_decision_setting(&loaded->setting);
    check_ok(graphi_plan_with(loaded, &(graphi_plan_change){.setting = &own}, &again));
    check_ok(graphi_plan_explain(directed, true, &before));
    check_ok(graphi_plan_explain(again, true, &after));
    assert_string_equal(strstr(before, "operations in virtual time"), strstr(after, "operations in virtual time"));
    check_ok(graphi_plan_save(loaded, path));
    check_ok(file_read(path, 1 << 24, &second, &other));
    char *one = strstr(first, "\"curves\""), *two = strstr(second, "\"curves\"");
    assert_string_equal(one, two); /* `why` says where it was loaded from */
    mem_free(first);
    mem_free(second);
    graphi_free(before);
    graphi_free(after);
    graphi_plan_destroy(again);
    graphi_plan_destroy(loaded);
}

/* Without it predictions could not direct a schedule, or the schedule would be timed by what misled it. */
static void models_direct_schedules(void **state)
{
    struct folder folder;
    graphi_curves *curves;
    graphi_plan *truth, *directed, *none = NULL;
    graphi_class class;
    folder_make(&folder);
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, phi, NULL);
    check_ok(graphi_curves_open(phi, fixed_file(&folder, graphi_version(), machine_hash(phi), key_of(plan, "matmul")),
                                &curves));
    const graphi_setting setting = {.policy = GRAPHI_POLICY_S1, .executors = 68, .width = 1, .light = GRAPHI_OFF};
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting, .curves = curves}, &truth));
    check_ok(graphi_plan_with(truth, &(graphi_plan_change){.curves = curves, .model = "k-neighbours"}, &directed));
    assert_int_equal(count_of(truth, GRAPHI_CURVE_STORED), 1);
    assert_int_equal(count_of(directed, GRAPHI_CURVE_PREDICTED), 1);
    for (int i = 0; graphi_plan_class_at(truth, i, &class); i++)
        if (strcmp(class.kind, "matmul") == 0) {
            assert_true(class.best_width == 4 && class.best_spread && class.serial_ns == 80000);
            assert_true(graphi_plan_class_ns(directed, i, NULL, 2, false, NULL) == 95000);
        }
    graphi_simulation best, misled, own;
    check_ok(graphi_plan_simulate(truth, &(graphi_simulate_options){.truth = truth}, &best));
    check_ok(graphi_plan_simulate(directed, &(graphi_simulate_options){.truth = truth}, &misled));
    check_ok(graphi_plan_simulate(directed, NULL, &own));
    double lost_ms = misled.makespan_ms - best.makespan_ms; /* one thread, where four take 22 us and one 80 */
    assert_true(lost_ms > 0.05 && lost_ms < 0.062);
    assert_true(own.makespan_ms - misled.makespan_ms > 0.009 && misled.lower_bound_ms == best.lower_bound_ms);
    char *text;
    check_ok(graphi_plan_explain(directed, true, &text));
    assert_non_null(strstr(text, "curve predicted by k-neighbours, stored are x4 spread 21.0 us"));
    char bound[64]; /* of what time passes by */
    snprintf(bound, sizeof bound, "lower bound %.3f ms", best.lower_bound_ms);
    assert_true(strstr(text, bound) && fabs(own.lower_bound_ms - best.lower_bound_ms) > 1e-3);
    graphi_free(text);
    keeps_both(&folder, g, directed);
    assert_int_equal(graphi_plan_with(plan, &(graphi_plan_change){.curves = curves, .model = "nobody"}, &none),
                     GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "k-neighbours"));
    assert_int_equal(graphi_plan_with(plan, &(graphi_plan_change){.model = "k-neighbours"}, &none), GRAPHI_INVALID);
    assert_null(none);
    graphi_plan_destroy(directed);
    graphi_plan_destroy(truth);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

/* A schedule whose teams have one worker a tile, on which its operations are faster, would be shorter than the bound of
 * all schedules, and than that of the search for widths. */
static void bounds_hold_for_teams_of_one_worker_a_tile(void **state)
{
    struct folder folder;
    folder_make(&folder);
    graphi_graph *g = network(true, 64);
    graphi_plan *plan = plan_of(g, phi, NULL), *truth, *searched;
    graphi_curves *curves;
    graphi_simulation best, malleable;
    const char *path = edited_file(&folder, key_of(plan, "matmul"), "21000, 0]", "11000, 0]");
    check_ok(graphi_curves_open(phi, path, &curves));
    graphi_setting setting = {.policy = GRAPHI_POLICY_S1, .executors = 68, .width = 1, .light = GRAPHI_OFF};
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting, .curves = curves}, &truth));
    setting.policy = GRAPHI_POLICY_MALLEABLE;
    check_ok(graphi_plan_with(plan, &(graphi_plan_change){.setting = &setting, .curves = curves}, &searched));
    check_ok(graphi_plan_simulate(truth, NULL, &best));
    check_ok(graphi_plan_simulate(searched, NULL, &malleable));
    assert_true(malleable.makespan_ms > best.makespan_ms + 0.01); /* it has neighbours alone */
    assert_true(best.makespan_ms >= best.lower_bound_ms && best.lower_bound_ms > 0.011);
    assert_true(malleable.widths_bound_ms > 0 && best.makespan_ms >= malleable.widths_bound_ms);
    graphi_plan_destroy(searched);
    graphi_plan_destroy(truth);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
    graphi_curves_close(curves);
    folder_remove(&folder);
}

/* Four cores, a level-2 cache of 1 MB shared by two. A team of two neighbours has one cache, one worker a tile has two
 * and a farther barrier: what fits into two caches alone is faster spread, what fits into one is slower by a doubling
 * of the barrier. No other test has curves of both modes at one width from the model. */
static void both_modes_of_a_shared_cache(void **state)
{
    static const char text[] = "{\"schema\":\"graphi-machine/1\",\"name\":\"four\",\"isa\":\"avx2\","
                               "\"l2_bytes\":1048576,\"core_gflops\":10,\"core_bandwidth_gbs\":10,\"bandwidth_gbs\":10,"
                               "\"barrier_ns\":300,\"groups\":[{\"numa\":0,\"tiles\":2,\"cores\":2}]}";
    const int64_t sizes[] = {16 << 10, 180 << 10}; /* 0.13 and 1.44 MB read and written */
    struct folder folder;
    graphi_machine *four;
    graphi_class class;
    folder_make(&folder);
    check_ok(graphi_machine_load(folder_write(&folder, "four.json", text, strlen(text)), 0, &four));
    for (int i = 0; i < 2; i++) {
        graphi_graph *g;
        check_ok(graphi_graph_create(&g));
        graphi_output(g, "y", graphi_relu(g, graphi_input(g, "x", GRAPHI_F32, 1, &sizes[i])));
        graphi_plan *plan = plan_of(g, four, "plain");
        assert_true(graphi_plan_class_at(plan, 0, &class));
        double alone = graphi_plan_class_ns(plan, 0, NULL, 1, false, NULL);
        double compact = graphi_plan_class_ns(plan, 0, NULL, 2, false, NULL);
        double spread = graphi_plan_class_ns(plan, 0, NULL, 2, true, NULL), barrier = (class.phases + 1) * 300.0;
        if (i == 0) {
            assert_true(fabs(spread - compact - barrier) < 1 && compact < 0.75 * alone);
        } else {
            assert_true(fabs(compact - class.bytes / 10 - barrier) < 0.02 * compact); /* bound by memory */
            assert_true(spread < 0.6 * compact && fabs(spread - alone / 2 - 2 * barrier) < 0.02 * spread);
        }
        graphi_plan_destroy(plan);
        graphi_graph_destroy(g);
    }
    graphi_machine_destroy(four);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_name_classes_whatever_the_network),
        cmocka_unit_test(strided_arrays_have_a_class_of_their_own),
        cmocka_unit_test(a_shared_class_is_measured_once),
        cmocka_unit_test(disturbed_curves_are_for_once),
        cmocka_unit_test(plans_tuned_beside_others_are_marked),
        cmocka_unit_test(times_of_a_quiet_minute_take_the_mark_away),
        cmocka_unit_test(writers_at_once_lose_nothing),
        cmocka_unit_test(a_failed_save_keeps_the_old_file),
        cmocka_unit_test(a_held_lock_is_waited_for_a_second),
        cmocka_unit_test(a_lock_is_of_the_file_that_is_there),
        cmocka_unit_test(a_link_shares_the_lock_of_its_file),
        cmocka_unit_test(broken_files_are_emptied_under_the_lock),
        cmocka_unit_test(foreign_and_broken_files_are_refused),
        cmocka_unit_test(only_times_come_from_the_truth),
        cmocka_unit_test(models_direct_schedules),
        cmocka_unit_test(bounds_hold_for_teams_of_one_worker_a_tile),
        cmocka_unit_test(both_modes_of_a_shared_cache),
    };
    return cmocka_run_group_tests(tests, open_machines, close_machines);
}
