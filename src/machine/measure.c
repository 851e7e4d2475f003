/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can do at most: roof, bandwidth, cost of talking. The program that figures are compared with its
 * limits by, so each is the best of several short slices: disturbance only ever makes a machine look slower. One lease
 * of all cores for the whole measurement; the time is cut into equal parts, one a figure. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "machine/others.h"
#include "machine/parking.h"
#include "machine/private.h"
#include "machine/team.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum {
    SLICES = 16, /* of a figure: few milliseconds each, so that on a busy machine some have all cores to themselves */
    FEWEST = 3,
    FIGURES = 8  /* seven rates, and what talking costs */
};

struct measurement {
    graphi_machine *machine;
    const struct roof_kernel *kernel;
    struct lease lease;
    int64_t slice_ns, talk_ns;
    double (*work)(struct measurement *, int worker); /* one chunk: FLOPs or bytes done */
    char **buffer;                                    /* one a core, 64-byte aligned */
    long bytes, read_bytes;                           /* of a buffer; how much of it a chunk reads */
    double *rate;                                     /* [cores] per nanosecond */
    int participants;
    bool cold; /* the first slice of a figure */
    bool reads_memory; /* the buffers are too large for the caches */
    atomic_int ready;
};

/* --- rates: the same work on one core, or on all at once --- */

static double work_multiply(struct measurement *m, int worker) { return m->kernel->multiply(1000); }

static double work_dot(struct measurement *m, int worker) { return m->kernel->dot_bf16(1000); }

static double work_read(struct measurement *m, int worker)
{
    volatile double sink = m->kernel->read(m->buffer[worker], m->read_bytes);
    (void)sink;
    return (double)m->read_bytes;
}

/* Everyone starts together and works for a slice; a chunk before the first one warms up. */
static void rate_body(void *context, int worker)
{
    struct measurement *m = context;
    if (m->cold)
        m->work(m, worker);
    atomic_fetch_add(&m->ready, 1);
    unsigned turns = 0;
    while (atomic_load(&m->ready) < m->participants)
        spin_turn(&turns);
    double done = 0;
    int64_t start = clock_ns(), now = start;
    do {
        done += m->work(m, worker);
        now = clock_ns();
    } while (now - start < m->slice_ns);
    m->rate[worker] = done / (double)(now - start);
}

/* Whether a figure has another slice: at least three, then as long as there is time, since a chunk of a large memory
 * takes longer than a slice. */
static bool slice_next(struct measurement *m, int slice, int64_t begin)
{
    m->cold = slice == 0;
    return slice < FEWEST || (slice < SLICES && clock_ns() - begin < SLICES * m->slice_ns);
}

/* Giga-units per second over all cores: the sum of what each did at the same time. */
static double rate_all(struct measurement *m, double (*work)(struct measurement *, int))
{
    double best = 0;
    int64_t begin = clock_ns();
    m->work = work;
    m->participants = m->lease.count;
    for (int slice = 0; slice_next(m, slice, begin); slice++) {
        atomic_store(&m->ready, 0);
        lease_start(&m->lease, rate_body, m);
        rate_body(m, 0);
        lease_wait(&m->lease);
        double sum = 0;
        for (int i = 0; i < m->lease.count; i++)
            sum += m->rate[i];
        best = fmax(best, sum);
    }
    return best;
}

static double rate_one(struct measurement *m, double (*work)(struct measurement *, int))
{
    double best = 0;
    int64_t begin = clock_ns();
    m->work = work;
    m->participants = 1;
    for (int slice = 0; slice_next(m, slice, begin); slice++) {
        atomic_store(&m->ready, 0);
        rate_body(m, 0);
        best = fmax(best, m->rate[0]);
    }
    return best;
}

/* --- talking --- */

struct talk {
    struct mailbox *boxes;
    struct team team;
    atomic_int stop;
    uint16_t *members;
    int barriers;
};

static void nothing(void *job, struct team *team, int member, int width) {}

static void barriers(void *job, struct team *team, int member, int width)
{
    const struct talk *talk = job;
    for (int i = 0; i < talk->barriers; i++)
        team_barrier(team, member);
}

static void serve_body(void *context, int worker)
{
    struct talk *talk = context;
    unsigned turns = 0;
    while (!atomic_load_explicit(&talk->stop, memory_order_acquire))
        if (team_poll(&talk->boxes[worker]))
            turns = 0;
        else
            spin_turn(&turns);
}

/* Nanoseconds of the fastest batch of 100 runs of a team. */
static double team_ns(struct measurement *m, struct talk *talk, int width, team_function function)
{
    double best = INFINITY;
    int64_t end = clock_ns() + m->talk_ns;
    do {
        int64_t start = clock_ns();
        for (int i = 0; i < 100; i++)
            team_run(&talk->team, talk->boxes, talk->members, width, function, talk);
        best = fmin(best, (double)(clock_ns() - start) / 100);
    } while (clock_ns() < end);
    return best;
}

static void measure_talk(struct measurement *m, struct talk *talk)
{
    int all = m->lease.count;
    for (int i = 0; i < all; i++)
        talk->members[i] = (uint16_t)i;
    lease_start(&m->lease, serve_body, talk);
    m->machine->wake_ns = team_ns(m, talk, 2, nothing) / 2; /* there and back */
    double alone = team_ns(m, talk, all, nothing);
    talk->barriers = 20;
    m->machine->barrier_ns = fmax(0, team_ns(m, talk, all, barriers) - alone) / 20 / ceil(log2(all));
    atomic_store_explicit(&talk->stop, 1, memory_order_release); /* pairs with the acquire in serve_body() */
    lease_wait(&m->lease);
}

static void stamp_body(void *context, int worker)
{
    if (worker == 1)
        *(int64_t *)context = clock_ns();
}

/* The median of some: a park takes the worker through the system's scheduler, which has its good and bad moments. */
static void measure_unpark(struct measurement *m)
{
    enum { TIMES = 9, PARKED_US = 1000 };
    double ns[TIMES];
    for (int i = 0; i < TIMES; i++) {
        int64_t began = 0;
        usleep(PARKED_US); /* longer than a worker spins */
        const int64_t start = clock_ns();
        lease_start(&m->lease, stamp_body, &began);
        lease_wait(&m->lease);
        const double passed = (double)(began - start);
        int at = i;
        for (; at > 0 && ns[at - 1] > passed; at--)
            ns[at] = ns[at - 1];
        ns[at] = passed;
    }
    m->machine->unpark_ns = ns[TIMES / 2];
}

static void measure_atomics(struct measurement *m)
{
    enum { TIMES = 10000 };
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    atomic_int counter = 0;
    double lock = INFINITY, atomic = INFINITY;
    for (int slice = 0; slice < 10; slice++) {
        int64_t start = clock_ns();
        for (int i = 0; i < TIMES; i++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        int64_t middle = clock_ns();
        for (int i = 0; i < TIMES; i++)
            atomic_fetch_add(&counter, 1);
        lock = fmin(lock, (double)(middle - start) / TIMES);
        atomic = fmin(atomic, (double)(clock_ns() - middle) / TIMES);
    }
    m->machine->lock_ns = lock;
    m->machine->atomic_ns = atomic;
}

/* --- all of it --- */

static void touch_body(void *context, int worker)
{
    struct measurement *m = context;
    for (long i = 0; i < m->bytes; i += 4096)
        m->buffer[worker][i] = 1; /* the page comes from the worker's own node */
}

static void free_buffers(struct measurement *m)
{
    for (int i = 0; m->buffer && i < m->machine->cores; i++)
        mem_free(m->buffer[i]);
    mem_free(m->buffer);
    mem_free(m->rate);
}

/* Of all cores together twice the L3, so that little of it is found there again, but half of what may be had at most:
 * a measurement must not be what a process is killed for. Below twice the L3 no rate is one of memory. */
static long buffer_bytes(struct measurement *m)
{
    const double cores = m->machine->cores, room = machine_room("/proc/self/cgroup", "/sys/fs/cgroup");
    const double wanted = fmax(2.0 * (double)m->machine->l3_bytes / cores, 16 << 20);
    const double each = room > 0 ? fmin(wanted, room / 2 / cores) : wanted;
    m->reads_memory = each * cores >= 2.0 * (double)m->machine->l3_bytes;
    return (long)fmax(each / 4096, 1) * 4096;
}

static graphi_status allocate_buffers(struct measurement *m)
{
    int cores = m->machine->cores;
    m->bytes = buffer_bytes(m);
    m->rate = mem_zalloc_array((size_t)cores, sizeof *m->rate);
    m->buffer = mem_zalloc_array((size_t)cores, sizeof *m->buffer);
    if (!m->rate || !m->buffer)
        return fail_memory("machine", (size_t)cores * sizeof *m->buffer);
    for (int i = 0; i < cores; i++)
        if (!(m->buffer[i] = mem_alloc((size_t)m->bytes)))
            return fail_memory("machine", (size_t)m->bytes);
    return GRAPHI_OK;
}

static void measure_rates(struct measurement *m)
{
    graphi_machine *machine = m->machine;
    lease_start(&m->lease, touch_body, m);
    touch_body(m, 0);
    lease_wait(&m->lease);
    machine->core_gflops = rate_one(m, work_multiply);
    machine->roof_gflops = rate_all(m, work_multiply);
    machine->roof_bf16_gflops = m->kernel->dot_bf16 ? rate_all(m, work_dot) : 0;
    m->read_bytes = machine->l2_bytes ? (long)(machine->l2_bytes / 2 / 1024 * 1024) : 128 << 10;
    if (m->read_bytes > m->bytes)
        m->read_bytes = m->bytes;
    machine->l2_bandwidth_gbs = rate_one(m, work_read);
    long share = (long)(machine->l3_bytes / 2 / machine->cores / 1024 * 1024);
    m->read_bytes = share;
    machine->l3_bandwidth_gbs = share > 2 * machine->l2_bytes && share <= m->bytes ? rate_all(m, work_read) : 0;
    m->read_bytes = m->bytes;
    machine->bandwidth_gbs = m->reads_memory ? rate_all(m, work_read) : 0;
}

static double read_everything(struct measurement *m, int worker)
{
    double bytes = 0;
    for (int i = 0; i < m->machine->cores; i++)
        bytes += work_read(m, i); /* one core reads all buffers, or it would find its own one in the L3 */
    return bytes;
}

static graphi_status measure_all(struct measurement *m, struct talk *talk)
{
    TRY(allocate_buffers(m));
    const struct lease_options options = {.workers = m->machine->cores, .pin = true};
    if (m->machine->cores > 1) {
        talk->boxes = mem_zalloc_array((size_t)m->machine->cores, sizeof *talk->boxes);
        talk->members = mem_zalloc_array((size_t)m->machine->cores, sizeof *talk->members);
        if (!talk->boxes || !talk->members)
            return fail_memory("machine", (size_t)m->machine->cores * sizeof *talk->boxes);
    }
    TRY(lease_take(m->machine, &options, &m->lease));
    measure_rates(m);
    m->machine->core_bandwidth_gbs = m->reads_memory ? rate_one(m, read_everything) : 0;
    if (m->machine->cores > 1) {
        measure_unpark(m);
        measure_talk(m, talk);
    }
    measure_atomics(m);
    lease_release(&m->lease);
    return GRAPHI_OK;
}

graphi_status graphi_machine_measure(graphi_machine *machine, double seconds)
{
    GIVEN(machine);
    if (!machine->captured)
        return fail(GRAPHI_UNSUPPORTED, "machine", "found the described machine \"%s\", expected the one at hand",
                    machine->name);
    struct measurement m = {.machine = machine, .kernel = roof_kernel(machine->isa)};
    m.slice_ns = (int64_t)(fmax(seconds, 0.001) * 1e9 / (FIGURES * SLICES));
    m.talk_ns = m.slice_ns * SLICES / 3; /* there and back, a team, its barriers */
    struct talk *talk = mem_zalloc(sizeof *talk);
    const struct others before = others_read("/proc/stat");
    graphi_status status = talk ? measure_all(&m, talk) : fail_memory("machine", sizeof *talk);
    if (talk) {
        mem_free(talk->boxes);
        mem_free(talk->members);
    }
    mem_free(talk);
    free_buffers(&m);
    const struct others after = others_read("/proc/stat");
    if (!status)
        machine->others = others_share(&before, &after);
    return status;
}
