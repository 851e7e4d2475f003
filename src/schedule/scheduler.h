/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a schedule, for the files of the scheduler only: scheduler.c (the step), dispatch_*.c (who gets what
 * is ready), executor.c (what a worker does with a task), driver_*.c (who runs the step), backend_*.c (real or virtual
 * time), policy_*.c.
 *
 * Who may touch what: everything in `struct schedule` below the line "the scheduling step" belongs to whoever runs the
 * step (one thread at a time: the client, or the holder of the combining role); a `struct executor` to its worker; the
 * counters, `next` and the rings cross threads as their comments say. */
#ifndef SCHEDULE_SCHEDULER_H
#define SCHEDULE_SCHEDULER_H

#include "base/hash.h"
#include "schedule/bitmap.h"
#include "schedule/dispatch.h"
#include "schedule/policy.h"
#include "schedule/ring.h"
#include "schedule/schedule.h"

/* Messages that tasks wait for (messages.c). `arrived` is looked at by all workers; all else belongs to the step. Usual
 * size: none, or one or two a parameter. */
struct waits {
    const struct message_source *source; /* of the execution; NULL in virtual time and replays */
    _Atomic uint8_t *arrived;            /* by wait: its task has been told; relaxed: a hint to others than the step */
    _Atomic int left;                    /* not arrived; as `arrived` */
    int next;                            /* where the step looks next */
    int64_t knocks;                      /* steps begun by who found a message (driver_combining.c) */
};

/* What one worker owns. */
struct executor {
    _Alignas(128) struct inbox inbox;   /* written by the step */
    _Alignas(128) struct outbox outbox; /* written by this worker */
    _Alignas(128) uint32_t inbox_head;  /* this worker */
    struct assignment direct;           /* handed to itself while it runs the step; task < 0: none */
    int32_t inline_first, inline_last;  /* tiny tasks it made ready and will run; < 0: none */
    uint16_t index, slot, looked; /* looked: at whom, for a task to join */
    bool joins;                   /* while it idles: those that lead others, or are led, are waited for */
    unsigned heard; /* which message it looks for next, while it idles */
    const uint16_t *members; /* workers of its team, itself first; told by the step, or of its list */
    uint16_t *row;           /* free width: where those that are not in schedule.every are listed */
    struct team team;
    _Alignas(128) atomic_int ended; /* static driver: of its list */
};

/* An executor as the step sees it. Where teams are formed each worker is one that may lead. */
struct slot {
    uint16_t first, width; /* leader and number of its workers */
    uint8_t outstanding;   /* assignments sent and not drained */
    uint32_t outbox_head;  /* how far the leader's outbox was drained */
};

/* What differs between the real and the simulated machine, as the step sees it. */
typedef void (*send_function)(struct schedule *schedule, int slot, struct assignment assignment);

struct event_log { /* inputs of the step in order: replaying them repeats the decisions */
    int64_t *entries;
    size_t count, capacity;
};

struct schedule {
    /* set at creation */
    const struct tasks *tasks;
    const graphi_machine *machine;
    graphi_decision setting; /* as it is executed: struct decided */
    const struct policy *policy, *asked; /* what decides; whose order counts (policy_phases) */
    int workers, siblings;             /* cores leased; hardware-thread siblings after them */
    int slots_count;
    bool inlining;
    double wake_ns;
    int64_t *level; /* the policy's own levels, or NULL */
    float *cost;    /* predicted ns of a task at the width that it usually runs at */
    uint8_t *pieces; /* that idle executors may take of a task, 0: none; NULL: of no task */
    int32_t *roots;
    int roots_count;
    void *policy_data;
    void *raw[48]; /* every allocation, for destroy */
    int raw_count;

    /* crosses threads */
    _Atomic int32_t
        *pending;  /* predecessors left; the decrement to 0 (release/acquire) hands the task to who made it */
    int32_t *next; /* chains of ready tasks; plain: published by the outbox or kept by one executor */
    struct executor *executors; /* one a worker */
    struct mailbox *boxes;
    _Alignas(128) atomic_uint completions; /* pushed and not yet taken off: the combining protocol */
    _Atomic uint64_t dirty[BITMAP_WORDS];  /* slots that pushed; used above DIRTY_SLOTS slots, else all are looked at */
    _Alignas(128) atomic_int finished;     /* set once by the driver; executors leave */
    atomic_int starving;                   /* a worker was left idle by the last step (executor_defers) */
    atomic_int failed;                     /* 0, or the status of the first failing task; nothing starts afterwards */
    char message[512];                     /* of that failure */
    struct shared_queue *queue;            /* naive */
    struct waits waits;
    struct static_order *order;            /* static driver: what executions repeat; NULL until schedule_decide() */
    struct placement *placement;           /* gets who runs what in virtual time; NULL: nobody asks */

    /* the scheduling step: what every step changes comes first and together, since it travels to whoever steps next */
    _Alignas(128) struct slot *slots;
    int64_t dispatched, drained, taken; /* assignments sent, drained, and taken off `completions` */
    double self_work, ready_work;       /* predicted ns: handed to self in this step; of all ready tasks */
    int32_t ready;                      /* tasks that wait to be placed */
    int64_t arrivals;
    int64_t now;
    int self;                        /* slot of the worker that runs the step, or -1 */
    _Alignas(64) struct bitmap idle; /* slots with nothing to do */
    const struct dispatcher *dispatcher;
    union { /* whose state this is */
        struct fixed_executors fixed;
        struct formed_teams formed;
    };
    uint16_t *ran_on; /* slot of each dispatched task, of a ready one that whose end made it ready, else NOWHERE
                         (inlined ones for good); NULL: the policy does not ask */
    uint16_t *every;  /* 0, 1, 2 …: neighbours from i on are every + i */
    bool hashing, replaying;
    uint64_t decisions;
    send_function send;
    struct event_log *log; /* NULL: none */

    /* one execution */
    struct lease *lease;
    task_function function;
    void *context;
    struct task_record *records;
    struct team_trace teams;
    struct joined *joined;   /* NULL: nobody asked, or joins */
    atomic_int joined_count; /* relaxed: read after all workers have returned */
    bool timed;
    int64_t began;
    void *backend; /* of the simulation */
};

enum { DIRTY_SLOTS = 16, NOWHERE = UINT16_MAX };

/* A task that others may join has two pieces at least, so it takes twice PIECE_NS or longer. Among 8, 16, 32 and 64
 * pieces and 10, 20 and 60 us these lost least on PathNet medium (graphi bench waiting). */
enum { MOST_PIECES = 32, PIECE_NS = 20000 };
_Static_assert((int)MOST_PIECES <= (int)TEAM_MOST_PIECES, "a task's pieces can be counted by its team");

/* scheduler.c: the core of both dispatchers (dispatch.h): counters, completions, log. */
void step_reset(struct schedule *schedule);
void step_ready(struct schedule *schedule, int32_t task); /* it waits to be placed */
void step_roots(struct schedule *schedule);
void step_complete(struct schedule *schedule, int slot, const struct completion *completion);
void step_message(struct schedule *schedule, int wait); /* it has arrived */
void schedule_fail(struct schedule *schedule, graphi_status status); /* the first one counts */
int step_drain(struct schedule *schedule);     /* completions taken from the outboxes */
void step_dispatch(struct schedule *schedule); /* orders and places until nothing fits */
static inline bool step_over(const struct schedule *s)
{
    return s->drained == s->dispatched &&
           ((s->ready == 0 && atomic_load_explicit(&s->waits.left, memory_order_relaxed) == 0) || s->failed);
}

/* The team that the i-th of those who lead now leads. */
static inline const struct formed_team *running_team(const struct schedule *s, int i)
{
    return &s->formed.teams[s->formed.leaders[i]];
}

/* Before the first execution: an executor of these neighbours. */
static inline void add_slot(struct schedule *s, int first, int width)
{
    const int index = s->slots_count++;
    s->slots[index] = (struct slot){.first = (uint16_t)first, .width = (uint16_t)width};
    for (int i = 0; i < width; i++)
        s->executors[first + i].slot = (uint16_t)index;
}

/* executor.c */
/* What a task that is known to come reads first, while another one runs. Left to itself the compiler may not inline it,
 * and then finds that calls of it have no effect. */
__attribute__((always_inline)) static inline void executor_fetch(const struct schedule *s, int32_t task)
{
    if (s->tasks->data)
        __builtin_prefetch(s->tasks->data + (size_t)task * s->tasks->data_bytes);
}
int32_t executor_advance(struct schedule *schedule, struct executor *executor, int32_t task, int64_t end_ns,
                         struct completion *completion);
bool executor_opens(const struct schedule *schedule, int32_t task, int width); /* may others join the task? */
void executor_note_joined(struct schedule *schedule, struct joined piece);     /* of a traced execution */
bool executor_note_team(const struct schedule *schedule, const struct executor *executor, int32_t task, int width);
struct completion executor_execute(struct schedule *schedule, struct executor *executor, struct assignment assignment);
void executor_run(struct schedule *schedule, struct executor *executor, struct assignment assignment);
bool executor_defers(const struct schedule *schedule, unsigned queued);
bool executor_poll(struct schedule *schedule, struct executor *executor); /* true: did something */
bool executor_help(struct schedule *schedule, struct executor *executor); /* without a task of its own; as above */
void executor_follow(struct schedule *schedule, struct executor *executor); /* in what others lead, until all is over */
int64_t executor_one(struct schedule *schedule, struct executor *executor, int32_t task, int width, bool inlined);

/* driver_*.c: the body of each worker, and what the client does meanwhile (dedicated) */
void combining_begin(struct schedule *schedule); /* before any worker starts */
void combining_worker(void *schedule, int worker);
void dedicated_worker(void *schedule, int worker);
void dedicated_client(struct schedule *schedule);
void naive_begin(struct schedule *schedule);
void naive_worker(void *schedule, int worker);
int sequential_width(const struct schedule *schedule, int32_t task);
void sequential_worker(void *schedule, int worker);
struct shared_queue *naive_create(struct schedule *schedule);
uint64_t naive_polls(const struct schedule *schedule); /* of the last execution */

/* Of decisions, or starts, up to this one. */
static inline uint64_t decisions_hash(uint64_t before, int32_t task, int leader, int width)
{
    return hash_u64(before, (uint64_t)task << 32 | (uint64_t)leader << 16 | (uint64_t)width);
}

/* Virtual time as records have it: that of slow enough machines and long enough graphs is beyond all integers. */
static inline int64_t whole_ns(double ns) { return ns < 9e18 ? (int64_t)ns : (int64_t)9e18; }

/* Workers of a task's team in whose lists it is: in a policy's own teams each, else its executor alone. */
static inline int lists_of(const struct schedule *s, int width) { return s->policy->free_width ? width : 1; }

/* driver_static.c */
void static_worker(void *schedule, int worker);
void static_note(struct schedule *schedule); /* after an execution: its decisions, when traced tasks became ready */

/* replay.c: feeds a log to the step again; *decisions gets the hash. */
graphi_status schedule_log_enable(struct schedule *schedule);
graphi_status schedule_replay(struct schedule *schedule, uint64_t *decisions);

/* blocks.c: 128-byte aligned, freed by destroy; zeroed, or _raw, not; NULL: no memory. */
struct schedule *schedule_block(void); /* one without anything in it */
void *schedule_alloc(struct schedule *schedule, size_t count, size_t size);
void *schedule_alloc_raw(struct schedule *schedule, size_t count, size_t size);

/* messages.c: messages that tasks wait for as for one more predecessor. Whoever runs the scheduling step looks for
 * them, and so does an idle worker, which takes the step where it found one and nobody has it; no foreign thread does.
 * In virtual time every message arrives one message after the execution has begun. Plans without events have none. */
bool messages_allocate(struct schedule *schedule); /* false: no memory */
void messages_reset(struct schedule *schedule);

bool message_told(const struct schedule *schedule, int wait); /* its task has been told */

/* Message `wait` is there: true where its task has nothing else to wait for. By the step, once each. */
bool message_arrives(struct schedule *schedule, int wait);

/* Calls `tell` for messages that have come and were not told yet; how many. By one thread at a time. */
int messages_look(struct schedule *schedule, void (*tell)(struct schedule *schedule, int wait));

/* The step: tells tasks whose message has come; how many of them. A message that will not come fails the execution. */
int step_messages(struct schedule *schedule);

/* By a worker with nothing else to do: is there one that the step should see? *idle_ns: since when it idles, 0 at
 * first; after too long the execution has failed. */
bool messages_found(struct schedule *schedule, struct executor *executor, int64_t *idle_ns);

/* By who runs the task itself, in lists and loops without a step. Waits until the message of the task, if it has one,
 * is there; false: something has failed. */
bool message_await(struct schedule *schedule, struct executor *executor, int32_t task);

#endif
