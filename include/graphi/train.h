/* SPDX-License-Identifier: Apache-2.0 */
/* Training: batches in, steps, validation, rates by a schedule, checkpoints, and going on from one, bit for bit.
 *
 *     graphi_trainer_options how = {.graph = {g}, .evaluation = e, .metric = GRAPHI_METRIC_ACCURACY,
 *                                   .training = {.data = train}, .validation = {.data = held},
 *                                   .rate = 0.1, .schedule = "cosine:10e", .epochs = 10,
 *                                   .checkpoint = "net.safetensors", .start = GRAPHI_TRAINER_RESUME};
 *     graphi_trainer_create(&how, &trainer);
 *     graphi_trainer_run(trainer);
 *
 * A trainer is used by one thread at a time, and calls back from that thread. A step allocates nothing. Nothing is
 * printed; what is worth telling goes to the callback `note`. Options are copied, what they point to (graphs, arrays,
 * texts) must outlive the trainer. Zero is the default everywhere. */
#ifndef GRAPHI_TRAIN_H
#define GRAPHI_TRAIN_H

#include "graphi/checkpoint.h"
#include "graphi/data.h"
#include "graphi/graph.h"
#include "graphi/models.h"
#include "graphi/plan.h"
#include "graphi/run.h"
#include "graphi/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- batches --- */

/* What one input of a graph is fed with. */
typedef struct graphi_feed_array {
    const char *input;   /* its name */
    graphi_dtype dtype;  /* its type */
    size_t sample_bytes; /* of one sample, which has the input's shape without dimension 0 */
    const void *data;    /* [samples]; NULL where a callback fills the batches */
} graphi_feed_array;

/* Inputs that batches may have. */
#define GRAPHI_FEED_ARRAYS 16

/* Where batches come from: a data set; or arrays; or a callback that fills them. The last input is the targets, which a
 * metric compares with. */
typedef struct graphi_feed {
    /* A data set, the caller's. Its inputs are "images" and "labels", or "tokens" and "targets", or as `arrays` names
     * the two. */
    graphi_data *data;
    const graphi_feed_array *arrays;
    int array_count;
    int64_t samples; /* of each of the arrays */
    int64_t batch;   /* samples a batch, of arrays and of the callback */
    bool ordered;    /* arrays: training takes them as they lie; otherwise each epoch in an order of its own, by seed */
    /* Fills a whole batch of every one of `arrays` into `buffers`, in their order, and tells how many samples there
     * are: `batch`, in validation fewer in the last one, none where an epoch ends. Batches follow each other, those of
     * an epoch from index 0 on; a training that goes on begins with that of its checkpoint. What it returns ends the
     * training, as a failure of that status; the message is the library's last one. */
    graphi_status (*next)(void *context, graphi_data_position at, void *const *buffers, int64_t *rows);
    /* In place of arrays, where batches differ in more than their number of samples (graphi_trees_feed): `next` goes
     * to the batch at `at`, without buffers, and `set` feeds it to a run. `targets` is what logits are compared with, a
     * row each, -1 for rows that are not scored; a mean loss is that of the rows that are. */
    graphi_status (*set)(void *context, graphi_run *run);
    const int32_t *(*targets)(void *context, int64_t *rows);
    uint64_t hash;   /* of what `set` feeds; for refusing to go on with other data */
    void *context;
    int64_t batches; /* of the callback: of an epoch; 0: until it gives no samples */
    /* Rows go on from batch to batch, as those of a text: parameters named "state/..." are zero where an epoch begins,
     * and logits are in the order of time. Always of data sets of text. */
    bool carried;
    const char *symbol; /* the graph's name for the number of samples, where a batch may be smaller; NULL: fixed */
} graphi_feed;

/* --- scoring --- */

typedef enum graphi_metric {
    GRAPHI_METRIC_LOSS,     /* the mean of output "loss"; batches that are not full are left out, unless they may be */
    GRAPHI_METRIC_ACCURACY, /* of output "logits" [rows, classes] against the targets; loss: cross-entropy, nats */
    GRAPHI_METRIC_PERPLEXITY /* e to the mean loss */
} graphi_metric;

typedef struct graphi_score {
    double loss, metric; /* metric: accuracy in [0, 1], perplexity, or the loss */
    int64_t samples;     /* that were scored */
} graphi_score;

/* One scored batch: a row for each row of logits, those of a text time by time. */
typedef struct graphi_scored {
    int64_t index, batches; /* the how-manieth, from 0, of how many; 0: not known */
    int64_t samples;        /* in it */
    int64_t rows, classes;  /* of the logits; 0 where they were not asked for */
    const float *logits, *losses;        /* [rows, classes], [rows]: the cross-entropy against the target */
    const int32_t *predictions, *targets; /* [rows]: the first of the largest logits; as fed */
} graphi_scored;

typedef struct graphi_score_options {
    graphi_metric metric;
    int64_t batches; /* at most; 0: all */
    bool logits;     /* are told to `scored`; of ACCURACY they always are */
    graphi_status (*scored)(void *context, const graphi_scored *batch);
    bool (*stop)(void *context); /* true: what was scored so far is the score */
    void *context;
} graphi_score_options;

/* One pass over `feed` from its first batch on, by a run of a graph that updates nothing but "eval/state/..." (zero at
 * the beginning). The state's step is kept. Errors, *score untouched: INVALID (feeds and inputs that do not fit),
 * NONFINITE where the loss is not, what a callback returned, those of graphi_run_execute; MEMORY. */
GRAPHI_API graphi_status graphi_run_score(graphi_run *run, const graphi_feed *feed, const graphi_score_options *options,
                                          graphi_score *score);

/* --- training --- */

typedef struct graphi_trainer graphi_trainer;

/* What a step is fed with. */
typedef struct graphi_step_batch {
    const graphi_feed_array *inputs; /* their data hold `samples` each */
    int count;
    int64_t samples;
    uint64_t first_sample;  /* its number in the whole training */
    const char *rate_input; /* and the learning rate */
    float rate;
} graphi_step_batch;

/* Who takes steps in place of the trainer: graphi/group.h has one. */
typedef struct graphi_stepper {
    /* Updates the trainer's state by one step, which it counts there. loss: GRAPHI_TRAINER_LOSSES, those told. */
    graphi_status (*step)(void *context, const graphi_step_batch *batch, float *loss);
    void *context;
    int64_t batch; /* that it takes */
} graphi_stepper;

/* Graphs of a training over one state, and losses that are told. */
#define GRAPHI_TRAINER_PARTS 2
#define GRAPHI_TRAINER_LOSSES 3

typedef enum graphi_trainer_start {
    GRAPHI_TRAINER_NEW,       /* a checkpoint that is there is refused */
    GRAPHI_TRAINER_OVERWRITE, /* it is written over; what is no checkpoint is refused all the same */
    GRAPHI_TRAINER_RESUME     /* goes on from it; IO where it is not there */
} graphi_trainer_start;

typedef struct graphi_trainer_info {
    uint64_t step, last_step; /* steps done, and where training ends */
    graphi_data_position at;  /* of the next batch */
    int64_t batches;          /* of an epoch; 0: not known */
    double loss[GRAPHI_TRAINER_LOSSES]; /* moving means; NAN before the first step and where there is none */
    double rate;              /* of the last step */
    double step_ms, left_s;   /* of graphi_trainer_run: a step's mean, and what is left with all that is beside */
    bool owes;                /* the validation at this step was stopped: it comes first */
    double best;              /* metric of the best validation; NAN: there was none */
    int64_t since;            /* validations after it */
    bool enough;              /* `patience` is over: training has ended */
    uint64_t started;         /* the step that training went on from */
} graphi_trainer_info;

typedef struct graphi_trainer_options {
    /* What learns: graphs with updates, executed one after another on the same batch, `times` (0: once) each step. */
    const graphi_graph *graph[GRAPHI_TRAINER_PARTS];
    int times[GRAPHI_TRAINER_PARTS];
    const graphi_stepper *stepper;  /* takes the steps of the one graph; NULL: the trainer itself. Not beside `begin` */
    const graphi_graph *evaluation; /* over the same parameters; NULL: nothing is validated */
    graphi_state *state;            /* the caller's, of all of them; NULL: the trainer's own */
    const graphi_machine *machine;  /* NULL: all cores of this one */
    const graphi_plan_options *plan;
    const char *rate_input; /* NULL: "learning_rate" */
    /* Outputs that are losses, and whose; NULL: "loss" of the first graph. */
    struct {
        const char *output;
        int graph;
    } loss[GRAPHI_TRAINER_LOSSES];
    uint64_t seed; /* of initial values, order of arrays; the data set has its own, which should be the same */

    graphi_feed training, validation;
    graphi_metric metric;
    int64_t steps, epochs;   /* one of them: the length of the whole training */
    double rate;             /* that the schedule starts from */
    const char *schedule;    /* graphi_schedule_parse; NULL: constant */
    int64_t validate_every;  /* steps; 0: each epoch. The last step's is made always */

    /* Training ends after so many validations in a row that were not better than the best before; 0: never. Better is a
     * larger accuracy, a smaller loss or perplexity. A training that goes on from a checkpoint knows its best. */
    int64_t patience;
    const char *best;        /* a checkpoint of the best validation; NULL: none. One that is there is written over */
    const char *checkpoint;  /* a file; NULL: none */
    int64_t every;           /* steps between checkpoints; 0: one at the end and when it is stopped */
    graphi_trainer_start start;
    bool reads; /* the checkpoint is gone on from and never written: another process of the same training does */
    /* What the checkpoint says of the network, and going on compares: a name, and of a built-in one its options. */
    const char *network;
    const graphi_model_options *model;
    int string_count; /* further strings of the checkpoint, at most 32 */
    const char *const *keys, *const *values;

    /* Callbacks; each may be NULL. */
    bool (*stop)(void *context); /* asked after each step and scored batch */
    /* Before graph `part` is executed: sets inputs that are in no feed. */
    graphi_status (*begin)(void *context, uint64_t step, int part, graphi_run *run);
    void (*stepped)(void *context, const graphi_trainer_info *info);
    graphi_status (*scored)(void *context, const graphi_scored *batch);
    /* After a validation, or where one would be (score NULL: nothing is validated). A failure ends training, which
     * writes its checkpoint first. */
    graphi_status (*validated)(void *context, const graphi_trainer_info *info, const graphi_score *score);
    void (*saved)(void *context, const char *checkpoint);
    void (*note)(void *context, const char *text); /* what a user should know; not an error */
    void *context;
} graphi_trainer_options;

/* Looks at everything that can be wrong, and loads the checkpoint where it goes on from one. *out is the caller's
 * (graphi_trainer_destroy). Errors, *out untouched: INVALID (options, feeds, graphs that do not fit; a checkpoint of
 * another network, other data, batch or seed; where none is to be gone on from, any file that is there), IO, MEMORY,
 * those of making graphs into states. */
GRAPHI_API graphi_status graphi_trainer_create(const graphi_trainer_options *options, graphi_trainer **out);

/* Executes graph `part` (-1: the evaluation) by this run, the caller's, made of a plan for that graph over the same
 * state: a tuned or stored one. Before the first step; otherwise the trainer compiles. INVALID for no such part. */
GRAPHI_API graphi_status graphi_trainer_use(graphi_trainer *trainer, int part, graphi_run *run);

/* Says that the validation at this step is still to be made, or is not: who keeps a log knows. */
GRAPHI_API void graphi_trainer_owe(graphi_trainer *trainer, bool owes);

/* Trains to the last step, validating and writing checkpoints. INTERRUPTED where it was stopped with work left, its
 * checkpoint written; NONFINITE where a loss is not finite, the checkpoint before in its place; what a callback
 * returned; those of compiling, executing and saving. Where nothing is left to be done, nothing is written. */
GRAPHI_API graphi_status graphi_trainer_run(graphi_trainer *trainer);

/* One step, whatever the last one is; neither validation nor checkpoint. Errors as graphi_trainer_run. */
GRAPHI_API graphi_status graphi_trainer_step(graphi_trainer *trainer);

/* Writes a checkpoint to `path` (NULL: that of the options) of what is now. INVALID for no path; IO, MEMORY. */
GRAPHI_API graphi_status graphi_trainer_save(graphi_trainer *trainer, const char *path);

GRAPHI_API void graphi_trainer_get_info(const graphi_trainer *trainer, graphi_trainer_info *info);

/* That of the options, or the trainer's own, which goes with it. */
GRAPHI_API graphi_state *graphi_trainer_state(const graphi_trainer *trainer);

/* NULL is accepted. */
GRAPHI_API void graphi_trainer_destroy(graphi_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
