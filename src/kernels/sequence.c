/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of sequences in step order: offsets of steps from lengths, and the rows of the step before. Both move little
 * beside the recurrence that they serve: at most a few hundred kilobytes. */
#include "kernels/recurrence.h"

#include "base/status.h"
#include "kernels/recurrence_internal.h"
#include "kernels/shares.h"

#include <string.h>

struct sequences {
    int64_t batch, steps, columns, ld_y, ld_out;
    bool offsets, reverse;
    int shares;
};

static graphi_status offsets_run(const struct kernel_call *call, int phase, int share)
{
    const struct sequences *s = call->params;
    const int32_t *length = call->in[0].data;
    int32_t *offsets = call->out[0].data;
    const int64_t batch = call->in[0].rows;
    for (int64_t r = 0; r < batch; r++) {
        if (length[r] < 0 || length[r] > s->steps)
            return fail(GRAPHI_INVALID, "sequence_offsets", "found length %d in row %lld, expected 0 to %lld",
                        length[r], (long long)r, (long long)s->steps);
        if (r && length[r] > length[r - 1])
            return fail(GRAPHI_INVALID, "sequence_offsets",
                        "found length %d in row %lld after %d, expected lengths that "
                        "do not rise (graphi_sequence_sort)",
                        length[r], (long long)r, length[r - 1]);
    }
    offsets[0] = 0;
    for (int64_t t = 0, rows = batch; t < s->steps; t++) {
        while (rows && length[rows - 1] <= t)
            rows--;
        offsets[t + 1] = offsets[t] + (int32_t)rows;
    }
    return GRAPHI_OK;
}

graphi_status steps_check(const char *where, const int32_t *offsets, int64_t bound, int64_t rows, int64_t batch)
{
    if (!offsets && batch ? rows % batch || rows / batch > bound : !offsets && rows)
        return fail(GRAPHI_INVALID, where, "found %lld rows of a batch of %lld, expected whole steps, at most %lld",
                    (long long)rows, (long long)batch, (long long)bound);
    int64_t most_rows = batch;
    for (int64_t t = 0; offsets && t < bound; t++) {
        const int64_t of_step = (int64_t)offsets[t + 1] - offsets[t];
        if (offsets[0] || of_step < 0 || of_step > most_rows)
            return fail(GRAPHI_INVALID, where,
                        "found offsets %d to %d of step %lld, expected those of sequence_offsets "
                        "for a batch of %lld",
                        offsets[t], offsets[t + 1], (long long)t, (long long)batch);
        most_rows = of_step;
    }
    if (offsets && offsets[bound] != rows)
        return fail(GRAPHI_INVALID, where, "found lengths of %d steps in all, expected as many as there are rows, %lld",
                    offsets[bound], (long long)rows);
    return GRAPHI_OK;
}

graphi_status sequence_offsets_bind(int64_t batch, int64_t steps, struct kernel *kernel)
{
    if (batch * steps > INT32_MAX)
        return fail(GRAPHI_UNSUPPORTED, "sequence_offsets",
                    "found %lld sequences of %lld steps, expected at most %d rows", (long long)batch, (long long)steps,
                    INT32_MAX);
    const struct sequences s = {.batch = batch, .steps = steps};
    const double work = (double)(batch + steps);
    struct kernel like = {
        .name = "sequence_offsets", .run = offsets_run, .shares = {1}, .flops = work, .bytes = 4 * work};
    return kernel_make(like, &s, sizeof s, kernel);
}

/* Rows of step t, whose first come from the step before. */
static void copy_step(const struct sequences *s, const struct kernel_call *call, const struct sequence_steps *all,
                      int64_t t)
{
    const int64_t before = s->reverse ? t + 1 : t - 1, rows = steps_rows(all, t);
    const int64_t joined = least(steps_rows(all, before), rows), offset = steps_offset(all, t);
    const int64_t from = joined ? steps_offset(all, before) : 0;
    const float *y = call->in[0].data, *first = call->in[1].data;
    float *to = (float *)call->out[0].data + offset * s->ld_out;
    for (int64_t r = 0; r < rows; r++, to += s->ld_out)
        memcpy(to, r < joined ? y + (from + r) * s->ld_y : first + r * s->columns, (size_t)s->columns * sizeof *to);
}

static graphi_status previous_run(const struct kernel_call *call, int phase, int share)
{
    const struct sequences *s = call->params;
    TRY(steps_check("sequence_previous", s->offsets ? call->in[2].data : NULL, s->steps, call->in[0].rows,
                    call->in[1].rows));
    const struct sequence_steps all =
        steps_of(s->offsets ? call->in[2].data : NULL, s->steps, call->in[0].rows, call->in[1].rows);
    int64_t t, end;
    split_range(all.steps, s->shares, share, &t, &end);
    for (; t < end; t++)
        copy_step(s, call, &all, t);
    return GRAPHI_OK;
}

graphi_status sequence_previous_bind(int64_t rows, int64_t batch, int64_t columns, int64_t ld_y, int64_t ld_out,
                                     int64_t steps, bool offsets, bool reverse, struct kernel *kernel)
{
    const double bytes = 8.0 * (double)rows * (double)columns;
    const struct sequences s = {.batch = batch,
                                .steps = steps,
                                .columns = columns,
                                .ld_y = ld_y,
                                .ld_out = ld_out,
                                .offsets = offsets,
                                .reverse = reverse,
                                .shares = shares_for(bytes, steps)};
    struct kernel like = {.name = "sequence_previous", .run = previous_run, .shares = {s.shares}, .bytes = bytes};
    return kernel_make(like, &s, sizeof s, kernel);
}
