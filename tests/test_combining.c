/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the combining protocol (schedule/driver_combining.c), of which every interleaving of the threads' atomic
 * steps is explored. Each thread executes assignments; an assignment may make others ready; completions are pushed,
 * counted, drained and taken off as in the real code, one shared access a step. With rings of depth 2 a thread that has
 * a further assignment may count several completions at once: the model takes both choices (executor_defers).
 *
 * Checked in every state: at most one thread holds the role; nothing of the step is touched without it; no assignment
 * is executed twice; and in every state without a successor: all assignments were executed and the run was declared
 * over. Planted faults show that the checker finds what it looks for. States are remembered in a hash set; usual
 * size: 10^5. */
#include "base/hash.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

enum { MOST_THREADS = 3, MOST_TASKS = 6, MOST_DEPTH = 2 };

enum fault {
    NONE,
    SPLIT_SUBTRACT,    /* load and store in place of fetch_sub */
    SUBTRACT_DRAINED,  /* takes off what was drained rather than what was counted */
    OVER_WHEN_DRAINED, /* declares the end when the last completion is drained, its pusher still owing the add */
    PUSH_AFTER_ADD,    /* counts a completion before it can be drained */
    OWED_FORGOTTEN,    /* defers counting with an empty ring */
    KNOCK_UNCOUNTED,   /* a step that a message began is not counted */
    KNOCK_WITH_ROLE,   /* takes the role although somebody has it */
    OVER_UNTOLD,       /* declares the end while a message is expected */
    NOBODY_KNOCKS,     /* who idles does not look for messages */
    START_UNCOUNTED,   /* thread 0 makes the roots ready before it has the role */
};

enum place { IDLE, PUSH, ADD, COUNT, DRAIN, SUBTRACT, STORE, FINISH, KNOCK, GONE };

struct thread {
    uint8_t place;
    uint8_t task;    /* being executed, + 1; 0: none */
    uint8_t counted; /* n */
    uint8_t over, left;
    uint8_t owed; /* completions pushed and not yet counted */
    uint8_t late; /* it found a message, and has taken the role after the end: it changes nothing any more */
};

struct model {
    struct thread threads[MOST_THREADS];
    uint8_t assigned[MOST_THREADS][MOST_DEPTH]; /* task + 1 in each inbox, the next one first */
    uint8_t pushed[MOST_THREADS];               /* tasks in each outbox, bit set */
    uint8_t outstanding[MOST_THREADS];          /* assignments not drained yet */
    uint8_t completions, finished, dispatched, drained, taken;
    uint8_t executed, ready, missing[MOST_TASKS];
    uint8_t unready; /* thread 0 makes the roots ready */
    uint8_t sent, told, knocks; /* the message, to its receiver's memory; by the step, to the task */
};

struct graph {
    int tasks, threads, depth;
    uint8_t successors[MOST_TASKS]; /* bit sets */
    uint8_t inputs[MOST_TASKS];
    int waits; /* this task waits for a message, too; < 0: none does */
};

struct search {
    const struct graph *graph;
    enum fault fault;
    struct model *seen;
    uint32_t *table;
    size_t count, capacity, mask;
    const char *mistake;
};

static bool add_state(struct search *search, const struct model *m)
{
    size_t at = (size_t)hash_bytes(HASH_START, m, sizeof *m) & search->mask;
    for (; search->table[at]; at = (at + 1) & search->mask)
        if (memcmp(&search->seen[search->table[at] - 1], m, sizeof *m) == 0)
            return false;
    if (search->count == search->capacity) {
        search->mistake = "too many states";
        return false;
    }
    search->seen[search->count++] = *m;
    search->table[at] = (uint32_t)search->count;
    return true;
}

/* The step: drain what was pushed, assign what is ready to threads without work. */
static void step(struct search *search, struct model *m)
{
    const struct graph *g = search->graph;
    if (m->sent && !m->told) {
        m->told = 1;
        if (--m->missing[g->waits] == 0)
            m->ready |= (uint8_t)(1u << g->waits);
    }
    for (int i = 0; i < g->threads; i++) {
        for (; m->pushed[i]; m->pushed[i] &= (uint8_t)(m->pushed[i] - 1)) {
            int task = __builtin_ctz(m->pushed[i]);
            m->drained++;
            m->outstanding[i]--;
            for (int t = 0; t < g->tasks;
                 t++) /* counted down by the executor; nothing of the protocol depends on when */
                if (g->successors[task] >> t & 1 && --m->missing[t] == 0)
                    m->ready |= (uint8_t)(1u << t);
        }
    }
    for (int at = 0; at < g->threads * g->depth && m->ready; at++) {
        int i = at % g->threads, task = __builtin_ctz(m->ready);
        if (m->outstanding[i] > at / g->threads)
            continue;
        m->ready &= (uint8_t) ~(1u << task);
        m->outstanding[i]++;
        m->assigned[i][m->assigned[i][0] != 0] = (uint8_t)(task + 1);
        m->dispatched++;
    }
}

static bool holds_role(const struct thread *t)
{
    return t->place == COUNT || t->place == DRAIN || t->place == SUBTRACT || t->place == STORE;
}

static void subtracted(struct model *m, struct thread *t, bool last)
{
    (void)m;
    t->place = !last ? COUNT : t->over ? FINISH : IDLE;
    t->counted = t->left = 0;
    t->late = t->late && !last;
    if (t->place != FINISH)
        t->over = 0;
}

static bool is_over(const struct search *search, const struct model *m)
{
    bool drained = m->drained == m->dispatched && !m->ready && (m->told || search->fault == OVER_UNTOLD);
    return drained && (search->fault == OVER_WHEN_DRAINED || m->taken == m->dispatched + 1 + m->knocks);
}

/* One atomic step of a thread; false: it cannot move. `defer`: of two ways to go on, the second. */
static bool move(struct search *search, struct model *m, int index, bool defer)
{
    struct thread *t = &m->threads[index];
    if (defer && t->place != ADD)
        return false;
    switch (t->place) {
    case IDLE:
        if (m->assigned[index][0]) {
            t->task = m->assigned[index][0];
            m->assigned[index][0] = m->assigned[index][1];
            m->assigned[index][1] = 0;
            if (m->executed >> (t->task - 1) & 1)
                search->mistake = "executed twice";
            m->executed |= (uint8_t)(1u << (t->task - 1));
            t->place = search->fault == PUSH_AFTER_ADD ? ADD : PUSH;
            return true;
        }
        if (m->finished) {
            t->place = GONE;
            return true;
        }
        if (!m->sent || m->told || search->fault == NOBODY_KNOCKS)
            return false;
        t->place = KNOCK;
        return true;
    case KNOCK: /* what it saw may be old by now */
        t->place = m->completions && search->fault != KNOCK_WITH_ROLE ? IDLE : COUNT;
        if (t->place == IDLE)
            return true;
        t->late = m->finished;
        for (int i = 0; i < search->graph->threads; i++) /* or it will be, by who had the role before */
            t->late = t->late || m->threads[i].place == FINISH;
        m->completions++;
        m->knocks = (uint8_t)(m->knocks + (search->fault != KNOCK_UNCOUNTED));
        return true;
    case PUSH:
        m->pushed[index] |= (uint8_t)(1u << (t->task - 1));
        t->task = 0;
        t->owed++;
        t->place = search->fault == PUSH_AFTER_ADD ? (t->left ? COUNT : IDLE) : ADD;
        t->left = 0;
        return true;
    case ADD:
        if (defer) {
            if (!m->assigned[index][0] && (search->fault != OWED_FORGOTTEN || m->finished))
                return false;
            t->place = IDLE;
            return search->fault != PUSH_AFTER_ADD;
        }
        m->unready = 0;
        t->left = m->completions == 0; /* found the role free */
        t->place = search->fault == PUSH_AFTER_ADD ? PUSH : t->left ? COUNT : IDLE;
        if (search->fault != PUSH_AFTER_ADD)
            t->left = 0;
        m->completions = (uint8_t)(m->completions + (search->fault == PUSH_AFTER_ADD ? 1 : t->owed));
        t->owed = 0;
        return true;
    case COUNT:
        t->counted = m->completions;
        t->place = DRAIN;
        return true;
    case DRAIN: {
        uint8_t before = m->drained;
        step(search, m);
        if (search->fault == SUBTRACT_DRAINED)
            t->counted = (uint8_t)(m->drained - before);
        m->taken = (uint8_t)(m->taken + t->counted);
        t->over = is_over(search, m);
        t->place = SUBTRACT;
        return true;
    }
    case SUBTRACT:
        if (search->fault == SPLIT_SUBTRACT) {
            t->left = m->completions;
            t->place = STORE;
            return true;
        }
        m->completions = (uint8_t)(m->completions - t->counted);
        subtracted(m, t, m->completions == 0);
        return true;
    case STORE:
        m->completions = (uint8_t)(t->left - t->counted);
        subtracted(m, t, t->left == t->counted);
        return true;
    case FINISH:
        m->finished = 1;
        t->over = 0;
        t->place = IDLE;
        return true;
    default:
        return false;
    }
}

static const char *state_mistake(const struct search *search, const struct model *m)
{
    int holders = 0, gone = 0, late = 0;
    for (int i = 0; i < search->graph->threads; i++) {
        holders += holds_role(&m->threads[i]);
        late += m->threads[i].late;
        gone += m->threads[i].place == GONE;
    }
    if (holders > 1)
        return "two threads hold the role";
    if (m->unready && holders)
        return "a step runs while the roots are made ready";
    if (m->finished && holders > late)
        return "a step runs after the end";
    if (gone && m->executed != (1u << search->graph->tasks) - 1)
        return "a thread left before the end";
    return NULL;
}

/* NULL, or what went wrong. */
static const char *explore(const struct graph *graph, enum fault fault, size_t *states)
{
    size_t capacity = (size_t)1 << 20;
    struct search search = {.graph = graph, .fault = fault, .capacity = capacity, .mask = 2 * capacity - 1};
    search.seen = malloc(capacity * sizeof *search.seen);
    search.table = calloc(2 * capacity, sizeof *search.table);
    struct model first;
    memset(&first, 0, sizeof first);
    for (int t = 0; t < graph->tasks; t++) {
        first.missing[t] = graph->inputs[t];
        if (!graph->inputs[t])
            first.ready |= (uint8_t)(1u << t);
    }
    if (graph->waits < 0)
        first.sent = first.told = 1;
    else if (!first.missing[graph->waits]++)
        first.ready &= (uint8_t) ~(1u << graph->waits);
    first.threads[0].place = fault == START_UNCOUNTED ? ADD : COUNT; /* the start counts as a completion of thread 0 */
    first.threads[0].owed = first.unready = fault == START_UNCOUNTED;
    first.completions = fault != START_UNCOUNTED;
    add_state(&search, &first);
    for (size_t at = 0; at < search.count && !search.mistake; at++) {
        bool moved = false;
        for (int i = 0; i < 2 * graph->threads && !search.mistake; i++) {
            struct model next = search.seen[at];
            if (!move(&search, &next, i / 2, i % 2))
                continue;
            moved = true;
            if (!search.mistake)
                search.mistake = state_mistake(&search, &next);
            add_state(&search, &next);
        }
        if (!search.seen[at].sent && !search.mistake) { /* whoever sends it does so at any time */
            struct model next = search.seen[at];
            next.sent = 1;
            add_state(&search, &next);
            moved = true;
        }
        const struct model *m = &search.seen[at];
        if (!moved && (!m->finished || m->executed != (1u << graph->tasks) - 1))
            search.mistake = "stuck before the end";
    }
    *states = search.count;
    free(search.seen);
    free(search.table);
    return search.mistake;
}

/* A graph from its edges (pairs, ended by -1). */
static struct graph graph_of(int threads, int depth, int tasks, const int *edges)
{
    struct graph g = {.tasks = tasks, .threads = threads, .depth = depth, .waits = -1};
    for (; *edges >= 0; edges += 2) {
        g.successors[edges[0]] |= (uint8_t)(1u << edges[1]);
        g.inputs[edges[1]]++;
    }
    return g;
}

static const int independent[] = {-1}, chain[] = {0, 1, 1, 2, 2, 3, -1}, diamond[] = {0, 1, 0, 2, 1, 3, 2, 3, -1},
                 fork_join[] = {0, 1, 0, 2, 0, 3, 1, 4, 2, 4, 3, 5, -1},
                 ladder[] = {0, 2, 1, 2, 1, 3, 2, 4, 3, 4, 3, 5, -1};
static const struct {
    int tasks;
    const int *edges;
} graphs[] = {{1, independent}, {4, independent}, {6, independent}, {4, chain},
              {4, diamond},     {6, fork_join},   {6, ladder}};

/* Some interleaving loses a completion, runs two steps at once, or ends early or never. */
static void every_interleaving_is_right(void **state)
{
    for (int at = 0; at < MOST_THREADS * MOST_DEPTH; at++)
        for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
            int threads = at % MOST_THREADS + 1, depth = at / MOST_THREADS + 1;
            struct graph g = graph_of(threads, depth, graphs[i].tasks, graphs[i].edges);
            size_t states;
            const char *mistake = explore(&g, NONE, &states);
            if (mistake)
                fail_msg("graph %zu, %d threads, depth %d, %zu states: %s", i, threads, depth, states, mistake);
        }
}

/* The same where a task waits for a message: the first one, the last one, one between. A message that comes when all
 * idle, or while a step is taken, is overlooked for ever. */
static void every_interleaving_with_a_message_is_right(void **state)
{
    for (int threads = 1; threads <= MOST_THREADS; threads++)
        for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
            for (int waits = 0; waits < graphs[i].tasks; waits += graphs[i].tasks > 2 ? graphs[i].tasks / 2 : 1) {
                struct graph g = graph_of(threads, 1, graphs[i].tasks, graphs[i].edges);
                size_t states;
                g.waits = waits;
                const char *mistake = explore(&g, NONE, &states);
                if (mistake)
                    fail_msg("graph %zu, %d threads, task %d waits, %zu states: %s", i, threads, waits, states,
                             mistake);
            }
}

/* The checker finds nothing whatever the protocol. */
static void planted_faults_are_found(void **state)
{
    for (enum fault fault = SPLIT_SUBTRACT; fault <= START_UNCOUNTED; fault++) {
        const char *found = NULL;
        for (size_t i = 0; i < sizeof graphs / sizeof *graphs && !found; i++) {
            const bool of_messages = fault > OWED_FORGOTTEN;
            struct graph g = graph_of(3, of_messages ? 1 : MOST_DEPTH, graphs[i].tasks, graphs[i].edges);
            size_t states;
            g.waits = of_messages ? graphs[i].tasks - 1 : -1;
            found = explore(&g, fault, &states);
        }
        if (!found)
            fail_msg("fault %d was not found", (int)fault);
        print_message("fault %d: %s\n", (int)fault, found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_is_right),
        cmocka_unit_test(every_interleaving_with_a_message_is_right),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
