/* SPDX-License-Identifier: Apache-2.0 */
/* Plain loops over memory. Every thread has arrays of its own, filled by itself; all start a round together, and a
 * round ends with the last. Vectors of 64 bytes are the compiler's, in the widest form that the CPU has. */
#include "roof.h"

#include "peers/repeat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
static inline void stream(float *to, const float *from)
{
    for (int i = 0; i < 16; i += 4)
        _mm_stream_ps(to + i, _mm_load_ps(from + i));
}
static inline void pause_turn(void) { _mm_pause(); }
static inline void fence(void) { _mm_sfence(); }
#else
#define WIDEST
static inline void stream(float *to, const float *from) { memcpy(to, from, 64); }
static inline void pause_turn(void) {}
static inline void fence(void) {}
#endif

typedef float vector __attribute__((vector_size(64)));

struct shared {
    struct traffic part; /* of a thread, multiples of 64 */
    int threads, repeat, copies;
    bool streaming;
    atomic_int arrived, failed;
};

WIDEST static void copy(char *to, const char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(vector))
        *(vector *)(to + i) = *(const vector *)(from + i);
}

static void copy_past_caches(char *to, const char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        stream((float *)(to + i), (const float *)(from + i));
    fence();
}

WIDEST static float read_all(const char *from, int64_t bytes)
{
    vector sum[4] = {0};
    int64_t i = 0;
    for (; i + 256 <= bytes; i += 256)
        for (int k = 0; k < 4; k++)
            sum[k] += ((const vector *)(from + i))[k];
    for (; i < bytes; i += 64)
        sum[0] += *(const vector *)(from + i);
    vector all = sum[0] + sum[1] + sum[2] + sum[3];
    return all[0] + all[15];
}

/* Once over one instance. What is filled comes from one line that stays in L1, so it is a copy too. */
static void pass(const struct shared *s, char *at)
{
    const struct traffic *t = &s->part;
    void (*move)(char *, const char *, int64_t) = s->streaming ? copy_past_caches : copy;
    int64_t copied = t->read < t->written ? t->read : t->written;
    char *to = t->in_place ? at : at + t->read;
    move(to, at, copied);
    volatile float sink = read_all(at + copied, t->read - copied);
    (void)sink;
    for (int64_t i = copied; i < t->written; i += 4096)
        move(to + i, at, t->written - i < 4096 ? t->written - i : 4096);
}

/* All threads meet `meeting` times so far. */
static void meet(struct shared *s, int meeting)
{
    atomic_fetch_add(&s->arrived, 1);
    while (atomic_load(&s->arrived) < meeting * s->threads)
        pause_turn();
}

/* The median round of this thread in ms, or -1. */
static double rounds(struct shared *s)
{
    size_t each =
        (size_t)traffic_footprint(&s->part) + 4096; /* a line is never missing, and instances lie on separate pages */
    each = each / 4096 * 4096 + 64;                           /* nor on the same sets of a cache */
    char *memory = aligned_alloc(64, (each * (size_t)s->copies + 4159) / 64 * 64);
    double ms[1000];
    if (!memory)
        atomic_store(&s->failed, 1);
    else
        memset(memory, 0, each * (size_t)s->copies + 4096);
    for (int i = -2; i < s->repeat; i++) {
        meet(s, 2 * (i + 2) + 1);
        double begin = repeat_now_ms();
        for (int copy_index = 0; copy_index < s->copies && !atomic_load(&s->failed); copy_index++)
            pass(s, memory + each * (size_t)copy_index);
        meet(s, 2 * (i + 2) + 2);
        if (i >= 0)
            ms[i] = (repeat_now_ms() - begin) / s->copies;
    }
    free(memory);
    qsort(ms, (size_t)s->repeat, sizeof *ms, repeat_ascending);
    return atomic_load(&s->failed) ? -1 : ms[s->repeat / 2];
}

static void *thread_main(void *context)
{
    rounds(context);
    return NULL;
}

static double measure(struct shared s)
{
    pthread_t thread[256];
    int started = 0;
    s.threads = s.threads < 256 ? s.threads : 256;
    while (started < s.threads - 1 && pthread_create(&thread[started], NULL, thread_main, &s) == 0)
        started++;
    if (started < s.threads - 1) { /* those that wait get the company they wait for */
        atomic_store(&s.failed, 1);
        atomic_fetch_add(&s.arrived, 1 << 20);
    }
    double ms = rounds(&s);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return ms;
}

double roof_ms(const struct traffic *traffic, int threads, int repeat, int copies)
{
    struct shared s = {.threads = threads, .repeat = repeat < 1000 ? repeat : 1000, .copies = copies};
    s.part = (struct traffic){(traffic->read / threads + 63) / 64 * 64, (traffic->written / threads + 63) / 64 * 64,
                              traffic->in_place};
    double ordinary = measure(s);
    s.streaming = true;
    double streaming = ordinary > 0 ? measure(s) : -1;
    return streaming > 0 && streaming < ordinary ? streaming : ordinary;
}
