/* SPDX-License-Identifier: Apache-2.0 */
/* Workers, leases and teams. Where more workers than cores are needed, a described machine gives them unpinned; two
 * cores are enough for everything here, one core suffices. */
#include "leased.h"

#include "base/clock.h"
#include "base/memory.h"
#include "machine/parking.h"
#include "machine/team.h"

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int set_up(void **state) { return set_up_cores(0); }

static struct cpu_mask my_mask(void)
{
    struct cpu_mask mask = {{0}};
    sched_getaffinity(0, sizeof mask, mask_set(&mask));
    return mask;
}

static bool same_mask(struct cpu_mask a, struct cpu_mask b) { return memcmp(&a, &b, sizeof a) == 0; }

static struct cpu_mask only(int cpu)
{
    struct cpu_mask mask = {{0}};
    mask_add(&mask, cpu);
    return mask;
}

/* --- leases --- */

/* One a worker: as many as the lease has, which may be of the whole machine. */
struct seen {
    atomic_int calls;
    struct cpu_mask mask;
    sigset_t blocked;
};

static void look(void *context, int index)
{
    struct seen *seen = (struct seen *)context + index;
    atomic_fetch_add(&seen->calls, 1);
    seen->mask = my_mask();
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
}

static void run_all(struct lease *lease, worker_body body, void *context)
{
    lease_start(lease, body, context);
    if (!lease->worker[0])
        body(context, 0);
    lease_wait(lease);
}

/* What its workers saw, to be freed. */
static struct seen *look_all(struct lease *lease)
{
    struct seen *seen = calloc((size_t)lease->count, sizeof *seen);
    assert_non_null(seen);
    run_all(lease, look, seen);
    return seen;
}

/* A worker left where the system likes, a caller that stays pinned after its run, a worker that takes the signals of
 * the application. */
static void workers_are_pinned_and_the_caller_restored(void **state)
{
    struct cpu_mask before = my_mask();
    for (int round = 0; round < 3; round++) {
        struct lease lease = take(here, here->cores);
        assert_true(lease.pinned);
        assert_string_equal(lease.note, "");
        struct seen *seen = look_all(&lease);
        for (int i = 0; i < lease.count; i++) {
            assert_int_equal(seen[i].calls, 1);
            assert_true(same_mask(seen[i].mask, only(here->core[lease.core[i]].os_index)));
            assert_int_equal(sigismember(&seen[i].blocked, SIGINT), i > 0);
        }
        free(seen);
        lease_release(&lease);
        assert_null(lease.state);
        lease_release(&lease); /* zeroed: accepted */
        assert_true(same_mask(before, my_mask()));
    }
}

/* What is looked at here has to have room for the workers of any machine: sixteen, whatever is at hand. */
static void every_worker_of_many_is_seen(void **state)
{
    graphi_machine *many;
    assert_int_equal(machine_from_synthetic("core:16 pu:1", 0, 0, &many), GRAPHI_OK);
    struct lease lease = take(many, 16);
    struct seen *seen = look_all(&lease);
    struct cpu_mask mine = my_mask();
    for (int i = 0; i < 16; i++) {
        assert_int_equal(seen[i].calls, 1);
        assert_true(same_mask(seen[i].mask, mine));
    }
    free(seen);
    lease_release(&lease);
    graphi_machine_destroy(many);
}

/* The machine created by a pinned caller has one core. */
static void machine_created_inside_a_lease_is_whole(void **state)
{
    graphi_machine *inside;
    struct lease lease = take(here, 1);
    assert_int_equal(graphi_machine_create(0, &inside), GRAPHI_OK);
    assert_int_equal(inside->cores, here->cores);
    graphi_machine_destroy(inside);
    lease_release(&lease);
}

static void unpinned_leases_leave_placement_alone(void **state)
{
    struct cpu_mask before = my_mask();
    struct lease lease;
    const struct lease_options options = {.workers = here->cores};
    assert_int_equal(lease_take(here, &options, &lease), GRAPHI_OK);
    assert_false(lease.pinned);
    struct seen *seen = look_all(&lease);
    for (int i = 0; i < lease.count; i++)
        assert_true(same_mask(seen[i].mask, before));
    free(seen);
    lease_release(&lease);
}

/* A mask set from outside meanwhile would be undone. */
static void unpinned_leases_leave_the_mask_alone(void **state)
{
    struct cpu_mask before = my_mask(), narrow = only(here->core[here->cores - 1].os_index);
    struct lease outer, lease;
    const struct lease_options options = {.workers = 1};
    if (here->cores < 2)
        skip();
    assert_int_equal(lease_take(here, &options, &outer), GRAPHI_OK);
    sched_setaffinity(0, sizeof narrow, mask_set(&narrow));
    lease = take(here, 1); /* inside, and pinned: has it back as it was */
    assert_true(lease.pinned);
    lease_release(&lease);
    assert_true(same_mask(my_mask(), narrow));
    lease_release(&outer);
    assert_true(same_mask(my_mask(), narrow));
    sched_setaffinity(0, sizeof before, mask_set(&before));
}

/* A cpuset that was narrowed since the machine was looked at: the worker runs where it may, and nobody is told. */
static void a_core_that_refuses_a_worker_is_noted(void **state)
{
    if (here->cores < 2)
        skip();
    struct machine_core core[2] = {here->core[0], here->core[1]};
    core[1].os_index = MASK_CPUS - 1; /* no machine has it */
    graphi_machine narrow = *here;
    narrow.core = core;
    narrow.cores = 2;
    narrow.siblings = 0;
    struct lease lease = take(&narrow, 2);
    assert_false(lease.pinned);
    assert_non_null(strstr(lease.note, "core 8191 refuses a worker"));
    lease_release(&lease);
}

static void wander(void *context, int index)
{
    if (index)
        sched_setaffinity(0, sizeof(struct cpu_mask), context);
}

/* Somebody else's taskset would last for the life of the process. */
static void a_worker_moved_from_outside_comes_back(void **state)
{
    if (here->cores < 2)
        skip();
    struct cpu_mask all = my_mask();
    struct lease lease = take(here, 2);
    run_all(&lease, wander, &all);
    lease_release(&lease);
    usleep(150000);
    struct seen seen[2] = {0};
    lease = take(here, 2);
    run_all(&lease, look, seen);
    assert_true(same_mask(seen[1].mask, only(here->core[lease.core[1]].os_index)));
    lease_release(&lease);
}

/* A dedicated driver that takes a worker's place, or a core that is not there. */
static void extra_caller_is_a_further_thread(void **state)
{
    struct lease lease =
        take_as(here, (struct lease_options){.workers = here->cores, .caller_extra = true, .pin = true});
    assert_true(lease.shares_core);
    assert_non_null(lease.worker[0]);
    assert_true(same_mask(my_mask(), only(here->core[lease.core[lease.count - 1]].os_index)));
    struct seen *seen = look_all(&lease);
    for (int i = 0; i < lease.count; i++)
        assert_int_equal(seen[i].calls, 1);
    free(seen);
    lease_release(&lease);
    if (here->cores < 2)
        return;
    lease = take_as(here, (struct lease_options){.workers = here->cores - 1, .caller_extra = true, .pin = true});
    assert_false(lease.shares_core);
    assert_true(same_mask(my_mask(), only(here->core[here->cores - 1].os_index)));
    lease_release(&lease);
}

static void wrong_requests_are_refused(void **state)
{
    struct lease lease = {.count = 77};
    const struct lease_options many = {.workers = here->cores + 1}, none = {0}, all = {.workers = here->cores};
    assert_int_equal(lease_take(here, &many, &lease), GRAPHI_INVALID);
    assert_int_equal(lease_take(here, &none, &lease), GRAPHI_INVALID);
    struct lease held = take(here, 1);
    assert_int_equal(lease_take(here, &all, &lease), GRAPHI_INVALID); /* would wait for itself */
    assert_int_equal(lease.count, 77);
    lease_release(&held);
}

/* --- several threads --- */

static atomic_int inside_now, inside_most, leases_taken;

static void count_inside(void *context, int index)
{
    int now = atomic_fetch_add(&inside_now, 1) + 1, most = atomic_load(&inside_most);
    while (now > most && !atomic_compare_exchange_weak(&inside_most, &most, now))
        ;
    sched_yield();
    atomic_fetch_sub(&inside_now, 1);
}

static void *lease_often(void *argument)
{
    for (int i = 0; i < 100; i++) {
        struct lease lease = take(here, 1 + (i + *(int *)argument) % here->cores);
        run_all(&lease, count_inside, NULL);
        lease_release(&lease);
        atomic_fetch_add(&leases_taken, 1);
    }
    return NULL;
}

/* Two runs share a core, or a wide one starves behind narrow ones, or one waits for ever. */
static void leases_of_threads_do_not_overlap(void **state)
{
    pthread_t thread[4];
    int number[4];
    for (int i = 0; i < 4; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, lease_often, &number[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(leases_taken, 400);
    assert_in_range(inside_most, 1, here->cores);
}

/* --- idle --- */

static double cpu_ms(clockid_t clock)
{
    struct timespec used;
    clock_gettime(clock, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec * 1e-6;
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Workers that spin for ever between runs: counted in CPU time, which a busy host does not disturb. */
static void idle_workers_use_no_cpu(void **state)
{
    struct seen seen[4] = {0};
    struct lease lease = take(wide, 4);
    run_all(&lease, look, seen);
    double start = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ms(150); /* leased, but without work */
    lease_release(&lease);
    sleep_ms(150);
    assert_true(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - start < 20);
}

static void spin_body(void *context, int index)
{
    (void)context;
    (void)index;
    for (double start = cpu_ms(CLOCK_THREAD_CPUTIME_ID); cpu_ms(CLOCK_THREAD_CPUTIME_ID) - start < 10;)
        ;
}

/* The meter of the tests beside: workers that spin are seen. */
static void spinning_workers_are_metered(void **state)
{
    struct lease lease = take(wide, 4);
    double start = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    run_all(&lease, spin_body, NULL);
    assert_true(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - start >= 20);
    lease_release(&lease);
}

static void sleep_body(void *context, int index) { sleep_ms(index ? 60 : 0); }

/* A caller that spins while it waits for its workers. */
static void waiting_caller_uses_no_cpu(void **state)
{
    struct lease lease = take(wide, 2);
    double start = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
    run_all(&lease, sleep_body, NULL);
    assert_true(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - start < 20);
    lease_release(&lease);
}

/* A message to a worker that is just falling asleep gets lost. */
static void messages_reach_workers_at_any_moment(void **state)
{
    struct lease lease = take(wide, 3);
    struct seen seen[3] = {0};
    for (int i = 0; i < 300; i++) {
        run_all(&lease, look, seen);
        for (int64_t end = clock_ns() + i * 500; clock_ns() < end;) /* 0 to 150 µs: around the end of the spin, 50 */
            cpu_relax();
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(seen[i].calls, 300);
    lease_release(&lease);
}

/* --- fork --- */

/* In a child: 0 when a lease can be taken and used; a deadlock ends in the alarm. */
static void child_uses_workers(struct lease *stale, const struct cpu_mask *mask)
{
    alarm(20);
    int wrong = 0;
    if (stale) {
        wrong |= lease_valid(stale) ? 1 : 0;
        lease_start(stale, look, NULL); /* nothing happens */
        lease_wait(stale);
        lease_release(stale);
    }
    wrong |= same_mask(my_mask(), *mask) ? 0 : 2;
    struct lease lease;
    const struct lease_options options = {.workers = here->cores, .pin = true};
    wrong |= lease_take(here, &options, &lease) == GRAPHI_OK ? 0 : 4;
    if (!(wrong & 4)) {
        struct seen *seen = look_all(&lease);
        for (int i = 0; i < lease.count; i++)
            wrong |= seen[i].calls == 1 ? 0 : 8;
        free(seen);
        lease_release(&lease);
    }
    _exit(wrong);
}

static int wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void fork_and_check(struct lease *stale, const struct cpu_mask *mask)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        child_uses_workers(stale, mask);
    assert_int_equal(wait_for(child), 0);
}

/* A child that waits for threads it does not have, or stays on the one core its parent was pinned to. */
static void fork_with_idle_workers_or_inside_a_lease(void **state)
{
    struct cpu_mask mask = my_mask();
    fork_and_check(NULL, &mask);
    struct lease lease = take(here, here->cores);
    fork_and_check(&lease, &mask);
    assert_true(lease_valid(&lease)); /* the parent's goes on */
    struct seen *seen = look_all(&lease);
    assert_int_equal(seen[0].calls, 1);
    free(seen);
    lease_release(&lease);
}

static atomic_int stop;

static void *lease_until_stopped(void *argument)
{
    while (!atomic_load(&stop)) {
        struct lease lease = take(here, here->cores);
        run_all(&lease, count_inside, NULL);
        lease_release(&lease);
    }
    return NULL;
}

/* A fork in the middle of another thread's taking, running or releasing leaves a locked mutex in the child. */
static void fork_while_other_threads_lease(void **state)
{
    pthread_t thread[2];
    struct cpu_mask mask = my_mask();
    atomic_store(&stop, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, lease_until_stopped, NULL), 0);
    for (int i = 0; i < 15; i++)
        fork_and_check(NULL, &mask);
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

/* --- processes --- */

/* Two processes pinned to one core without a word; a core that stays taken after its holder was killed. */
static void cores_of_other_processes_are_left_alone(void **state)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        (void)take(here, here->cores);
        (void)!write(ready[1], &byte, 1);
        pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct cpu_mask before = my_mask();
    struct lease lease = take(here, here->cores);
    assert_false(lease.pinned);
    char expected[64];
    snprintf(expected, sizeof expected, "core %d is held by process %d: not pinned", here->core[0].os_index,
             (int)child);
    assert_non_null(strstr(lease.note, expected));
    assert_true(same_mask(before, my_mask()));
    lease_release(&lease);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    lease = take(here, here->cores);
    assert_true(lease.pinned);
    lease_release(&lease);
    close(ready[0]);
}

/* A holder in another container would be called process 0. Locks of open files have no process either. */
static void a_holder_without_a_number_is_another_process(void **state)
{
    char path[300], expected[64];
    snprintf(path, sizeof path, "%s/cores", folder.path);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = here->core[0].os_index, .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    struct lease lease = take(here, here->cores);
    snprintf(expected, sizeof expected, "core %d is held by another process: not pinned", here->core[0].os_index);
    assert_non_null(strstr(lease.note, expected));
    lease_release(&lease);
    close(fd);
}

/* A read-only system without a folder for locks cannot run at all. */
static void missing_lock_folder_is_noted(void **state)
{
    workers_lock_folder("/dev/null/locks");
    struct lease lease = take(here, 1);
    assert_true(lease.pinned);
    assert_non_null(strstr(lease.note, "no lock file"));
    lease_release(&lease);
    workers_lock_folder(folder.path);
}

/* --- teams --- */

enum { PHASES = 40 };

struct crew {
    struct mailbox boxes[4];
    struct team team;
    atomic_int stop;
    uint16_t members[4];
    int width;
    int cell[2][4];              /* plain memory: only the barrier orders it */
    atomic_int wrong;
};

/* Everyone writes its cell, then reads all others': a barrier that lets someone through early is seen (and is a race).
 */
static void exchange(void *job, struct team *team, int member, int width)
{
    struct crew *crew = job;
    for (int phase = 0; phase < PHASES; phase++) {
        crew->cell[phase & 1][member] = phase * 100 + member;
        team_barrier(team, member);
        for (int i = 0; i < width; i++)
            if (crew->cell[phase & 1][i] != phase * 100 + i)
                atomic_fetch_add(&crew->wrong, 1);
    }
}

/* The same by the barriers of a loop over steps. */
static void exchange_steps(void *job, struct team *team, int member, int width)
{
    struct crew *crew = job;
    team_loop(team, member);
    for (int step = 0; step < PHASES; step++) {
        crew->cell[step & 1][member] = step * 100 + member;
        team_step(team, member, (uint32_t)step + 1);
        for (int i = 0; i < width; i++)
            if (crew->cell[step & 1][i] != step * 100 + i)
                atomic_fetch_add(&crew->wrong, 1);
    }
}

static void empty(void *job, struct team *team, int member, int width) {}

static void serve(void *context, int index)
{
    struct crew *crew = context;
    unsigned turns = 0;
    while (!atomic_load_explicit(&crew->stop, memory_order_acquire))
        if (team_poll(&crew->boxes[index]))
            turns = 0;
        else
            spin_turn(&turns);
}

static struct crew *crew_start(struct lease *lease)
{
    struct crew *crew = mem_zalloc(sizeof *crew);
    assert_non_null(crew);
    for (int i = 0; i < 4; i++)
        crew->members[i] = (uint16_t)i;
    lease_start(lease, serve, crew);
    return crew;
}

static void crew_end(struct lease *lease, struct crew *crew)
{
    atomic_store_explicit(&crew->stop, 1, memory_order_release);
    lease_wait(lease);
    mem_free(crew);
}

/* A member that passes a barrier before the last one arrives, a team that cannot be formed
 * again with another width. */
static void teams_of_every_width_agree(void **state)
{
    struct lease lease = take(wide, 4);
    struct crew *crew = crew_start(&lease);
    for (int run = 0; run < 20; run++)
        for (int width = 1; width <= 4; width++) {
            team_run(&crew->team, crew->boxes, crew->members, width, exchange, crew);
            assert_int_equal(crew->wrong, 0);
            team_run(&crew->team, crew->boxes, crew->members, width, exchange_steps, crew);
            assert_int_equal(crew->wrong, 0);
        }
    crew_end(&lease, crew);
    lease_release(&lease);
}

/* Batches of empty teams until one was fast enough, for some seconds: it takes 25 us in which both cores are there. */
static int64_t empty_team_ns(struct crew *crew, int64_t enough)
{
    int64_t best = INT64_MAX, deadline = clock_after(5);
    for (int batch = 0; batch < 500 || (best > enough && clock_ns() < deadline); batch++) {
        int64_t start = clock_ns();
        for (int i = 0; i < 100; i++)
            team_run(&crew->team, crew->boxes, crew->members, 2, empty, NULL);
        int64_t used = (clock_ns() - start) / 100;
        best = used < best ? used : best;
    }
    return best;
}

/* Members of a team that sleep between two of its jobs and are woken. Twenty times what is promised of an idle machine,
 * which is the benchmark's to judge (op-scaling), is what a futex takes. */
static void empty_team_is_cheap(void **state)
{
    if (here->cores < 2)
        skip();
    struct lease lease = take(here, 2);
    struct crew *crew = crew_start(&lease);
    int64_t best = empty_team_ns(crew, 5000);
    crew_end(&lease, crew);
    lease_release(&lease);
    print_message("team of two around nothing: %lld ns\n", (long long)best);
    assert_true(best < 5000);
}

/* --- failure --- */

static int leases_with_failing_allocations(void)
{
    graphi_status status = GRAPHI_MEMORY;
    const struct lease_options options = {.workers = 6, .pin = true};
    long n = 0;
    for (; status != GRAPHI_OK && n < 50; n++) {
        struct lease lease = {.count = 77};
        mem_fail_after(n);
        status = lease_take(wide, &options, &lease);
        mem_fail_after(-1);
        if (status == GRAPHI_OK)
            lease_release(&lease);
        else if (status != GRAPHI_MEMORY || lease.count != 77)
            return 1;
    }
    return status == GRAPHI_OK && n > 3 ? 0 : 2 /* attempts that failed left threads for later ones */;
}

static int leases_without_threads(void)
{
    struct lease lease = {.count = 77};
    const struct lease_options options = {.workers = 40, .pin = true}; /* more than the C library keeps stacks for */
    struct rlimit none = {0, 0};
    graphi_machine *forty;
    if (machine_from_synthetic("core:40 pu:1", 0, 0, &forty) || setrlimit(RLIMIT_AS, &none) != 0)
        return 3;
    return lease_take(forty, &options, &lease) == GRAPHI_UNSUPPORTED && strstr(graphi_message(), "expected a thread")
               ? 0
               : 4;
}

static atomic_long smallest_stack;

static void see_stack(void *context, int index)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (index && pthread_getattr_np(pthread_self(), &attributes) == 0 &&
        pthread_attr_getstacksize(&attributes, &bytes) == 0)
        atomic_store(&smallest_stack, (long)bytes);
}

static int workers_of_a_process_with_small_stacks(void)
{
    struct lease lease = {0};
    const struct lease_options options = {.workers = 2};
    graphi_machine *two;
    pthread_attr_t small;
    if (machine_from_synthetic("core:2 pu:1", 0, 0, &two) || pthread_attr_init(&small) ||
        pthread_attr_setstacksize(&small, 64 << 10) || pthread_setattr_default_np(&small) ||
        lease_take(two, &options, &lease))
        return 5;
    run_all(&lease, see_stack, NULL);
    lease_release(&lease);
    return atomic_load(&smallest_stack) >= 256 << 10 ? 0 : 6;
}

static atomic_bool usual_numbers;

/* Rounds to nearest, and takes what is below the smallest normal number for 0, as operand and as result. */
static void see_numbers(void *context, int index)
{
    volatile float one = 1, small = 0x1p-30f, smallest = 0x1p-140f, least = 0x1p-100f;
    if (index)
        atomic_store(&usual_numbers, one + small == 1 && one * smallest == 0 && least * least == 0);
}

static int workers_of_a_thread_with_a_mode_of_its_own(void)
{
    struct lease lease = {0};
    const struct lease_options options = {.workers = 2};
    graphi_machine *two;
    if (machine_from_synthetic("core:2 pu:1", 0, 0, &two) || fesetround(FE_UPWARD) ||
        lease_take(two, &options, &lease))
        return 7;
    run_all(&lease, see_numbers, NULL);
    lease_release(&lease);
    return atomic_load(&usual_numbers) && fegetround() == FE_UPWARD ? 0 : 8;
}

/* In a child, whose registry is empty: every worker has to be created anew. */
static int in_child(int (*check)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(check());
    }
    return wait_for(child);
}

static void every_allocation_of_a_lease_may_fail(void **state)
{
    assert_int_equal(in_child(leases_with_failing_allocations), 0);
}

/* No thread can be had: a crash, or cores that stay reserved. */
static void refused_threads_are_reported(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* the sanitizers need address space of their own */
#endif
    assert_int_equal(in_child(leases_without_threads), 0);
}

/* A limit of stacks (`ulimit -s 64`) would end a worker in the middle of a kernel. */
static void stacks_do_not_follow_the_limit(void **state)
{
    assert_int_equal(in_child(workers_of_a_process_with_small_stacks), 0);
}

/* A worker would round for life as the thread did that needed one more, whoever it works for later. */
static void workers_inherit_no_mode(void **state)
{
    assert_int_equal(in_child(workers_of_a_thread_with_a_mode_of_its_own), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_pinned_and_the_caller_restored),
        cmocka_unit_test(every_worker_of_many_is_seen),
        cmocka_unit_test(machine_created_inside_a_lease_is_whole),
        cmocka_unit_test(unpinned_leases_leave_placement_alone),
        cmocka_unit_test(unpinned_leases_leave_the_mask_alone),
        cmocka_unit_test(a_core_that_refuses_a_worker_is_noted),
        cmocka_unit_test(a_worker_moved_from_outside_comes_back),
        cmocka_unit_test(extra_caller_is_a_further_thread),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(leases_of_threads_do_not_overlap),
        cmocka_unit_test(idle_workers_use_no_cpu),
        cmocka_unit_test(spinning_workers_are_metered),
        cmocka_unit_test(waiting_caller_uses_no_cpu),
        cmocka_unit_test(messages_reach_workers_at_any_moment),
        cmocka_unit_test(fork_with_idle_workers_or_inside_a_lease),
        cmocka_unit_test(fork_while_other_threads_lease),
        cmocka_unit_test(cores_of_other_processes_are_left_alone),
        cmocka_unit_test(a_holder_without_a_number_is_another_process),
        cmocka_unit_test(missing_lock_folder_is_noted),
        cmocka_unit_test(teams_of_every_width_agree),
        cmocka_unit_test(empty_team_is_cheap),
        cmocka_unit_test(every_allocation_of_a_lease_may_fail),
        cmocka_unit_test(refused_threads_are_reported),
        cmocka_unit_test(stacks_do_not_follow_the_limit),
        cmocka_unit_test(workers_inherit_no_mode),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
