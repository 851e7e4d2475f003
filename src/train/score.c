/* SPDX-License-Identifier: Apache-2.0 */
/* Loss, accuracy and perplexity over a feed. The sums are in double, in the order of the samples. One thread; what it
 * needs is allocated before the first batch. */
#include "train/score.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/run.h"

/* What is told of a batch's logits. */
struct answers {
    float *logits, *losses;
    int32_t *predictions, *targets;
    int64_t rows, classes;
};

static void answers_free(struct answers *a)
{
    mem_free(a->logits);
    mem_free(a->losses);
    mem_free(a->predictions);
    mem_free(a->targets);
}

/* By the type of output "logits": [rows, classes]. */
static graphi_status answers_make(const struct scorer *s, struct answers *a)
{
    const graphi_graph *graph = s->run->plan->compiled->graph;
    const int32_t i = plan_output(s->run->plan->compiled, "logits");
    if (i < 0)
        return fail(GRAPHI_INVALID, "evaluation", "found no output 'logits', expected one");
    const struct value_type *type = &graph_value(graph, s->run->plan->compiled->outputs.data[i].value)->type;
    const struct feeder *f = &s->feeder;
    const size_t targets = f->feed.set || !f->count
                               ? (size_t)(type->rank ? type->dims[0] : 0) /* of each batch its own */
                               : f->input[f->count - 1].sample_bytes * (size_t)f->batch / sizeof(int32_t);
    if (type->rank != 2 || type->dtype != GRAPHI_F32 || (size_t)type->dims[0] != targets)
        return fail(GRAPHI_INVALID, "evaluation",
                    "found logits of %d dimensions, %lld rows, expected float32 [%zu, classes], a row for each target",
                    type->rank, (long long)(type->rank ? type->dims[0] : 0), targets);
    a->rows = type->dims[0];
    a->classes = type->dims[1];
    a->logits = mem_zalloc_array((size_t)(a->rows * a->classes), sizeof *a->logits);
    a->losses = mem_zalloc_array((size_t)a->rows, sizeof *a->losses);
    a->predictions = mem_zalloc_array((size_t)a->rows, sizeof *a->predictions);
    a->targets = mem_zalloc_array((size_t)a->rows, sizeof *a->targets);
    return a->logits && a->losses && a->predictions && a->targets
               ? GRAPHI_OK
               : fail_memory("logits", (size_t)(a->rows * a->classes) * sizeof *a->logits);
}

/* Its class is the first of the largest logits; gives the cross-entropy against `label`, in nats. */
static double judge(const float *logits, int64_t classes, int32_t label, int32_t *prediction)
{
    int64_t best = 0;
    double sum = 0;
    for (int64_t k = 1; k < classes; k++)
        best = logits[k] > logits[best] ? k : best;
    for (int64_t k = 0; k < classes; k++)
        sum += exp((double)logits[k] - logits[best]);
    *prediction = (int32_t)best;
    return log(sum) + logits[best] - logits[label];
}

/* Of the rows that are there; gives how many targets were hit. Logits of what is carried are time-major, its targets
 * are not. */
static graphi_status judge_rows(const struct scorer *s, struct answers *a, int64_t rows, double *loss, int64_t *hits)
{
    const struct feeder *f = &s->feeder;
    const int64_t batch = f->batch, steps = a->rows / batch;
    const int64_t given = f->feed.symbol || f->feed.set ? rows : a->rows; /* rows beyond are of another batch */
    TRY(graphi_run_get(s->run, "logits", GRAPHI_F32, a->logits, (size_t)(given * a->classes) * sizeof *a->logits));
    for (int64_t r = 0; r < rows; r++) {
        const int32_t label = f->targets[f->carried ? r % batch * steps + r / batch : r];
        a->targets[r] = a->predictions[r] = -1;
        if (label < 0 && f->feed.set)
            continue;
        if (label < 0 || label >= a->classes)
            return fail(GRAPHI_INVALID, "evaluation", "found target %d, expected 0 to %lld", label,
                        (long long)a->classes - 1);
        const double row = judge(a->logits + r * a->classes, a->classes, label, &a->predictions[r]);
        a->targets[r] = label;
        a->losses[r] = (float)row;
        *loss += row;
        *hits += a->predictions[r] == label;
    }
    return GRAPHI_OK;
}

/* Sums over a pass. */
struct sums {
    double loss;
    int64_t hits, samples;
};

static graphi_status tell(const struct scorer *s, const struct answers *a, int64_t index, int64_t rows)
{
    const struct feeder *f = &s->feeder;
    const graphi_scored batch = {.index = index,
                                 .batches = s->batches,
                                 .samples = f->rows,
                                 .rows = rows,
                                 .classes = a->classes,
                                 .logits = a->logits,
                                 .losses = a->losses,
                                 .predictions = a->predictions,
                                 .targets = a->targets};
    return s->how.scored ? s->how.scored(s->how.context, &batch) : GRAPHI_OK;
}

static graphi_status score_batch(struct scorer *s, struct answers *a, int64_t index, struct sums *sums)
{
    const struct feeder *f = &s->feeder;
    const bool accuracy = s->how.metric == GRAPHI_METRIC_ACCURACY;
    const bool whole = f->rows == f->batch || f->feed.symbol || f->feed.set;
    int taken = 0;
    int64_t rows = 0;
    double unused = 0;
    if (!accuracy && !whole)
        return GRAPHI_OK; /* its loss would be of rows of another batch, too */
    TRY(feeder_set(f, s->run, &taken));
    if (!taken)
        return fail(GRAPHI_INVALID, "feed", "found no input '%s' in the graph, expected one that it has",
                    f->input[0].name);
    TRY(graphi_run_execute(s->run));
    if (a->logits) {
        rows = f->feed.set ? f->target_rows : a->rows / f->batch * f->rows;
        if (rows > a->rows || (rows && !f->targets))
            return fail(GRAPHI_INVALID, "evaluation", "found %lld targets, expected at most %lld", (long long)rows,
                        (long long)a->rows);
        TRY(judge_rows(s, a, rows, accuracy ? &sums->loss : &unused, &sums->hits));
    }
    if (!accuracy) {
        float loss;
        TRY(graphi_run_get(s->run, "loss", GRAPHI_F32, &loss, sizeof loss));
        sums->loss += (double)loss * (double)f->scored;
    }
    sums->samples += f->scored;
    return tell(s, a, index, rows);
}

static graphi_status score_batches(struct scorer *s, struct answers *a, struct sums *sums)
{
    for (int64_t i = 0; !s->batches || i < s->batches; i++) {
        if (s->how.stop && s->how.stop(s->how.context))
            return GRAPHI_OK;
        TRY(feeder_next(&s->feeder));
        if (!s->feeder.rows)
            return GRAPHI_OK;
        TRY(score_batch(s, a, i, sums));
    }
    return GRAPHI_OK;
}

static graphi_status result_of(const struct scorer *s, const struct sums *sums, graphi_score *out)
{
    graphi_score score = {.loss = sums->loss, .samples = sums->samples};
    if (score.samples) {
        score.loss /= (double)score.samples;
        score.metric = s->how.metric == GRAPHI_METRIC_ACCURACY     ? (double)sums->hits / (double)score.samples
                       : s->how.metric == GRAPHI_METRIC_PERPLEXITY ? exp(score.loss)
                                                                   : score.loss;
    }
    if (!isfinite(score.loss)) /* an accuracy beside it would look like a result */
        return fail(GRAPHI_NONFINITE, "evaluation",
                    "found a loss that is not finite over %lld samples at step %llu, expected parameters and running "
                    "statistics that give one",
                    (long long)score.samples, (unsigned long long)graphi_state_step(s->run->state));
    *out = score;
    return GRAPHI_OK;
}

graphi_status scorer_open(graphi_run *run, const graphi_feed *feed, const graphi_score_options *how, struct scorer *s)
{
    *s = (struct scorer){.run = run, .how = *how};
    TRY(feeder_open(feed, false, 0, &s->feeder));
    s->batches = s->feeder.batches;
    if (how->batches > 0 && (!s->batches || how->batches < s->batches))
        s->batches = how->batches;
    return GRAPHI_OK;
}

graphi_status scorer_run(struct scorer *s, graphi_score *score)
{
    struct answers answers = {NULL};
    struct sums sums = {0};
    graphi_state *state = s->run->state;
    TRY(feeder_move(&s->feeder, (graphi_data_position){0, 0}));
    TRY(graphi_state_zero(state, "eval/state/"));
    const uint64_t step = graphi_state_step(state); /* carried states are updates too, but evaluation is no training */
    graphi_status status = GRAPHI_OK;
    if (s->how.metric == GRAPHI_METRIC_ACCURACY || s->how.logits)
        status = answers_make(s, &answers);
    if (status == GRAPHI_OK)
        status = score_batches(s, &answers, &sums);
    graphi_state_set_step(state, step);
    answers_free(&answers);
    return status == GRAPHI_OK ? result_of(s, &sums, score) : status;
}

void scorer_close(struct scorer *s)
{
    feeder_close(&s->feeder);
}

graphi_status graphi_run_score(graphi_run *run, const graphi_feed *feed, const graphi_score_options *options,
                               graphi_score *score)
{
    GIVEN(run);
    GIVEN(feed);
    GIVEN(score);
    struct scorer scorer;
    const graphi_score_options none = {0};
    graphi_status status = scorer_open(run, feed, options ? options : &none, &scorer);
    if (status == GRAPHI_OK)
        status = scorer_run(&scorer, score);
    scorer_close(&scorer);
    return status;
}
