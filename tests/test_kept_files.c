/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are kept between runs, where memory is short, threads are cancelled and others share the folder. */
#include "base/file.h"
#include "base/status.h"
#include "graphi/graphi.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

static struct folder folder;

static long left = -1; /* allocations of the reader of JSON until they fail; < 0: never */

static void *scarce(size_t size)
{
    if (left == 0)
        return NULL;
    left -= left > 0;
    return malloc(size);
}

struct kept {
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *state;
    char path[3][1024];
};

static graphi_status load_plan(const struct kept *k)
{
    graphi_plan *plan;
    TRY(graphi_plan_load(k->graph, phi, NULL, k->path[0], &plan));
    graphi_plan_destroy(plan);
    return GRAPHI_OK;
}

static graphi_status load_state(const struct kept *k) { return graphi_state_load(k->state, k->path[1], NULL, NULL); }

static graphi_status load_curves(const struct kept *k)
{
    graphi_curves *curves;
    TRY(graphi_curves_open(phi, k->path[2], &curves));
    graphi_curves_close(curves);
    return GRAPHI_OK;
}

static graphi_status load_machine(const struct kept *k)
{
    graphi_machine *m;
    (void)k;
    TRY(graphi_machine_load("machines/knl-7210.json", 0, &m));
    graphi_machine_destroy(m);
    return GRAPHI_OK;
}

static void make_kept(struct kept *k)
{
    static const char *const names[] = {"plan", "state", "curves"};
    const graphi_climb climb = {.samples = 2, .width = {1, 4}, .compact_ns = {9e6, 1e6}};
    graphi_curves *curves;
    for (int i = 0; i < 3; i++)
        snprintf(k->path[i], sizeof k->path[i], "%s/%s", folder.path, names[i]);
    check_ok(graphi_model_create("pathnet", &(graphi_model_options){.task = "bench", .size = "small", .batch = 2},
                                 &k->graph));
    check_ok(graphi_plan_create(k->graph, phi, NULL, &k->plan));
    check_ok(graphi_plan_save(k->plan, k->path[0]));
    check_ok(graphi_state_create(k->graph, 1, &k->state));
    check_ok(graphi_state_save(k->state, k->path[1], 0, NULL, NULL));
    check_ok(graphi_curves_open(phi, k->path[2], &curves));
    for (uint64_t key = 1; key < 40; key++)
        check_ok(graphi_curves_add(curves, key, "m", &climb));
    check_ok(graphi_curves_save(curves));
    graphi_curves_close(curves);
}

/* A file that could not be read for want of memory was called broken, and whoever makes broken ones anew wiped what all
 * networks had measured. */
static void want_of_memory_is_no_broken_file(void **state)
{
    static graphi_status (*const loads[])(const struct kept *) = {load_plan, load_state, load_curves, load_machine};
    struct kept k;
    make_kept(&k);
    json_set_alloc_funcs(scarce, free);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        graphi_status status = GRAPHI_MEMORY;
        int tried = 0;
        for (long n = 0; status == GRAPHI_MEMORY; n += 1 + n / 8, tried++) {
            left = n;
            status = loads[i](&k);
            left = -1;
        }
        if (status != GRAPHI_OK || tried < 5)
            fail_msg("loader %zu, trial %d: %s", i, tried, graphi_message());
    }
    json_set_alloc_funcs(malloc, free);
    graphi_state_destroy(k.state);
    graphi_plan_destroy(k.plan);
    graphi_graph_destroy(k.graph);
}

/* A checkpoint that its owner alone could read was everybody's after the next step. */
static void replaced_files_keep_their_mode(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0444};
    const char *path = folder_write(&folder, "mode", "old", 3);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat info;
        assert_int_equal(chmod(path, modes[i]), 0);
        check_ok(file_replace(path, "newer", 5));
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size == 5 && (info.st_mode & 0777) == modes[i]);
    }
}

struct holder {
    const char *path;
    sem_t holds, cancelled;
    bool ended;
};

/* A frame of its own: where a thread ends in one AddressSanitizer takes it for a live one. */
static __attribute__((noinline)) void write_held(struct holder *h)
{
    struct file_lock lock;
    struct file_writer writer;
    if (file_lock(h->path, &lock) == GRAPHI_OK && file_write_begin(&writer, h->path) == GRAPHI_OK) {
        sem_post(&h->holds);
        while (sem_trywait(&h->cancelled) != 0)
            usleep(100); /* where a thread can be cancelled */
        h->ended = file_write(&writer, "held", 4) == GRAPHI_OK && file_write_commit(&writer) == GRAPHI_OK;
        file_unlock(&lock);
    }
}

static void *hold(void *context)
{
    write_held(context);
    pthread_testcancel();
    return NULL;
}

/* A cancelled writer would leave its temporary file, and the lock until the process ends. */
static void writers_end_before_they_are_cancelled(void **state)
{
    struct holder h = {.path = folder_name(&folder, "held")};
    struct file_lock lock;
    pthread_t thread;
    void *result;
    sem_init(&h.holds, 0, 0);
    sem_init(&h.cancelled, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, hold, &h), 0);
    while (sem_trywait(&h.holds) != 0)
        usleep(100);
    pthread_cancel(thread);
    sem_post(&h.cancelled);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(h.ended && result == PTHREAD_CANCELED);
    check_ok(file_lock(h.path, &lock));
    file_unlock(&lock);
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    assert_int_equal(before, PTHREAD_CANCEL_ENABLE);
    assert_int_equal(file_replace("/nonexistent/file", "x", 1), GRAPHI_IO);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    assert_int_equal(before, PTHREAD_CANCEL_ENABLE);
}

static int open_all(void **state)
{
    folder_make(&folder);
    return open_phi(state);
}

static int close_all(void **state)
{
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(want_of_memory_is_no_broken_file),
        cmocka_unit_test(replaced_files_keep_their_mode),
        cmocka_unit_test(writers_end_before_they_are_cancelled),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
