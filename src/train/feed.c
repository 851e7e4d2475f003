/* SPDX-License-Identifier: Apache-2.0 */
/* One form of batches for data sets, arrays and callbacks. Buffers are made when it is opened, so that a step allocates
 * nothing; one thread at a time. Usual size: two inputs, a batch of 64. */
#include "train/feed.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/run.h"
#include "train/corpus.h"

static const char where[] = "feed";

bool feeder_is_given(const graphi_feed *feed)
{
    return feed->data || feed->array_count || feed->next || feed->set;
}

static graphi_status add(struct feeder *f, const char *name, graphi_dtype dtype, size_t sample_bytes)
{
    struct feeder_input *input = &f->input[f->count++];
    size_t bytes;
    *input = (struct feeder_input){.name = name, .dtype = dtype, .sample_bytes = sample_bytes};
    if (!name || !sample_bytes || __builtin_mul_overflow(sample_bytes, (size_t)f->batch, &bytes))
        return fail(GRAPHI_INVALID, where, "found input %d '%s' of %zu bytes a sample, expected a name and a size",
                    f->count - 1, name ? name : "", sample_bytes);
    input->buffer = mem_zalloc(bytes);
    return input->buffer ? GRAPHI_OK : fail_memory(name, bytes);
}

static graphi_status open_data(struct feeder *f)
{
    graphi_data_info info;
    graphi_data_get_info(f->feed.data, &info);
    const bool text = info.format == GRAPHI_DATA_TEXT;
    const char *inputs = text ? "tokens" : "images", *targets = text ? "targets" : "labels";
    const size_t cells = (size_t)(text ? info.steps : info.height * info.width * info.channels);
    f->batch = info.batch;
    f->batches = info.batches;
    f->hash = info.hash;
    f->carried |= text;
    if (f->feed.array_count == 2) {
        inputs = f->feed.arrays[0].input;
        targets = f->feed.arrays[1].input;
    } else if (f->feed.array_count) {
        return fail(GRAPHI_INVALID, where, "found %d names of inputs beside a data set, expected two or none",
                    f->feed.array_count);
    }
    TRY(add(f, inputs, text ? GRAPHI_I32 : GRAPHI_F32, cells * 4));
    return add(f, targets, GRAPHI_I32, text ? cells * 4 : 4);
}

static graphi_status open_arrays(struct feeder *f)
{
    const graphi_feed *feed = &f->feed;
    const int64_t most = INT32_MAX; /* what an order numbers */
    if (feed->samples < 1 || feed->samples > most || (f->trains && feed->samples < f->batch))
        return fail(GRAPHI_INVALID, where, "found arrays of %lld samples, expected %lld to %lld",
                    (long long)feed->samples, (long long)(f->trains ? f->batch : 1), (long long)most);
    f->batches = (feed->samples + (f->trains ? 0 : f->batch - 1)) / f->batch;
    f->hash = hash_u64(HASH_START, (uint64_t)feed->samples);
    for (int i = 0; i < feed->array_count; i++) {
        if (!feed->arrays[i].data)
            return fail(GRAPHI_INVALID, where, "found no data for input '%s', expected an array", f->input[i].name);
        f->hash = hash_wide(f->hash, feed->arrays[i].data, (size_t)feed->samples * feed->arrays[i].sample_bytes);
    }
    if (!f->trains || feed->ordered)
        return GRAPHI_OK;
    f->order = mem_zalloc_array((size_t)feed->samples, sizeof *f->order);
    f->order_epoch = -1;
    return f->order ? GRAPHI_OK : fail_memory("order of samples", (size_t)feed->samples * sizeof *f->order);
}

graphi_status feeder_open(const graphi_feed *feed, bool trains, uint64_t seed, struct feeder *f)
{
    *f = (struct feeder){.feed = *feed,
                         .trains = trains,
                         .seed = seed,
                         .carried = feed->carried,
                         .batch = feed->batch,
                         .batches = feed->batches};
    if (feed->array_count < 0 || feed->array_count > GRAPHI_FEED_ARRAYS || (feed->array_count && !feed->arrays))
        return fail(GRAPHI_INVALID, where, "found %d inputs, expected an array of at most %d", feed->array_count,
                    GRAPHI_FEED_ARRAYS);
    if (feed->data)
        return open_data(f);
    if (!feed->array_count && !feed->set)
        return fail(GRAPHI_INVALID, where, "found no data, expected a data set, arrays or a callback with its inputs");
    if (feed->set && (feed->array_count || !feed->next))
        return fail(GRAPHI_INVALID, where, "found `set` with %d inputs and %s, expected `next` and no inputs",
                    feed->array_count, feed->next ? "`next`" : "no `next`");
    if (feed->batch < 1 || feed->batch > 1 << 20 || feed->batches < 0)
        return fail(GRAPHI_INVALID, where, "found batch %lld and %lld batches, expected 1 to %d, and none or some",
                    (long long)feed->batch, (long long)feed->batches, 1 << 20);
    f->hash = feed->set ? feed->hash : 0;
    for (int i = 0; i < feed->array_count; i++)
        TRY(add(f, feed->arrays[i].input, feed->arrays[i].dtype, feed->arrays[i].sample_bytes));
    return feed->next ? GRAPHI_OK : open_arrays(f);
}

void feeder_close(struct feeder *f)
{
    for (int i = 0; i < f->count; i++)
        mem_free(f->input[i].buffer);
    mem_free(f->order);
    *f = (struct feeder){0};
}

/* --- batches --- */

static void copy_arrays(struct feeder *f)
{
    const int64_t first = f->at.index * f->batch, left = f->feed.samples - first;
    f->rows = left < f->batch ? left : f->batch;
    if (f->order && f->order_epoch != f->at.epoch) {
        permute(f->order, f->feed.samples, f->seed, (uint64_t)f->at.epoch);
        f->order_epoch = f->at.epoch;
    }
    for (int i = 0; i < f->count; i++) {
        const size_t bytes = f->input[i].sample_bytes;
        const unsigned char *from = f->feed.arrays[i].data;
        unsigned char *to = f->input[i].buffer;
        if (!f->order)
            memcpy(to, from + (size_t)first * bytes, (size_t)f->rows * bytes);
        for (int64_t r = 0; f->order && r < f->rows; r++)
            memcpy(to + (size_t)r * bytes, from + (size_t)f->order[first + r] * bytes, bytes);
    }
}

/* Of batches of their own sizes. */
static void take_targets(struct feeder *f)
{
    f->target_rows = f->scored = 0;
    f->targets = f->feed.targets && f->rows ? f->feed.targets(f->feed.context, &f->target_rows) : NULL;
    for (int64_t r = 0; f->targets && r < f->target_rows; r++)
        f->scored += f->targets[r] >= 0;
}

static graphi_status call_back(struct feeder *f)
{
    void *buffers[GRAPHI_FEED_ARRAYS];
    for (int i = 0; i < f->count; i++)
        buffers[i] = f->input[i].buffer;
    f->rows = 0;
    TRY(f->feed.next(f->feed.context, f->at, f->feed.set ? NULL : buffers, &f->rows));
    const bool short_one = f->rows && f->rows < f->batch;
    if (f->rows < 0 || f->rows > f->batch || (f->trains && short_one) || (!f->rows && !f->at.index))
        return fail(GRAPHI_INVALID, where, "found %lld samples in batch %lld of epoch %lld, expected %s%lld",
                    (long long)f->rows, (long long)f->at.index, (long long)f->at.epoch, f->trains ? "" : "1 to ",
                    (long long)f->batch);
    return GRAPHI_OK;
}

static void step_on(struct feeder *f, bool over)
{
    f->at = over ? (graphi_data_position){f->at.epoch + 1, 0} : (graphi_data_position){f->at.epoch, f->at.index + 1};
}

/* The targets of the last batch are those of its last input. */
static void find_targets(struct feeder *f)
{
    if (f->feed.set) {
        take_targets(f);
        return;
    }
    const struct feeder_input *last = &f->input[f->count - 1];
    f->targets = last->buffer;
    f->target_rows = (int64_t)(last->sample_bytes * (size_t)f->batch / sizeof *f->targets);
    f->scored = f->rows;
}

graphi_status feeder_next(struct feeder *f)
{
    if (f->feed.data) {
        TRY(graphi_data_next(f->feed.data, f->input[0].buffer, f->input[0].sample_bytes * (size_t)f->batch,
                             f->input[1].buffer, f->input[1].sample_bytes * (size_t)f->batch, &f->rows));
        find_targets(f);
        return GRAPHI_OK;
    }
    if (!f->feed.next)
        copy_arrays(f);
    else
        TRY(call_back(f));
    find_targets(f);
    step_on(f, f->rows == 0 || (f->batches && f->at.index + 1 == f->batches));
    return GRAPHI_OK;
}

graphi_status feeder_set(const struct feeder *f, graphi_run *run, int *taken)
{
    const int64_t rows = f->feed.symbol ? f->rows : f->batch;
    if (f->feed.set) {
        ++*taken;
        return f->feed.set(f->feed.context, run);
    }
    if (f->feed.symbol)
        TRY(graphi_run_set_symbol(run, f->feed.symbol, rows));
    for (int i = 0; i < f->count; i++) {
        if (plan_input(run->plan->compiled, f->input[i].name) < 0)
            continue;
        TRY(graphi_run_set(run, f->input[i].name, f->input[i].dtype, f->input[i].buffer,
                           (size_t)rows * f->input[i].sample_bytes));
        ++*taken;
    }
    return GRAPHI_OK;
}

graphi_data_position feeder_at(const struct feeder *f)
{
    return f->feed.data ? graphi_data_get_position(f->feed.data) : f->at;
}

graphi_status feeder_move(struct feeder *f, graphi_data_position at)
{
    if (f->feed.data)
        return graphi_data_set_position(f->feed.data, at);
    if (at.epoch < 0 || at.epoch == INT64_MAX || at.index < 0 || (f->batches && at.index >= f->batches))
        return fail(GRAPHI_INVALID, where,
                    "found position epoch %lld, batch %lld, expected epochs from 0 and batches "
                    "below %lld",
                    (long long)at.epoch, (long long)at.index, (long long)f->batches);
    f->at = at;
    return GRAPHI_OK;
}
