/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of many lengths between padded arrays and rows in step order, and recurrent weights between the orders of
 * gates that frameworks have. Host code over plain arrays, linear in them; any thread. */
#include "graphi/recurrent.h"

#include "base/status.h"

#include <string.h>

static graphi_status check_lengths(int64_t count, const int32_t *lengths, int64_t most)
{
    if (count < 0 || (count && !lengths))
        return fail(GRAPHI_INVALID, "sequences", "found %lld sequences without lengths, expected them",
                    (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] < 0 || lengths[i] > most)
            return fail(GRAPHI_INVALID, "sequences", "found length %d in row %lld, expected 0 to %lld", lengths[i],
                        (long long)i, (long long)most);
    return GRAPHI_OK;
}

/* The longest length below `limit`; -1: there is none. */
static int64_t longest_below(int64_t count, const int32_t *lengths, int64_t limit)
{
    int64_t longest = -1;
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] < limit && lengths[i] > longest)
            longest = lengths[i];
    return longest;
}

/* Once over the lengths for each that there is: a batch has few. */
graphi_status graphi_sequence_sort(int64_t count, const int32_t *lengths, int64_t *order)
{
    TRY(check_lengths(count, lengths, INT32_MAX));
    if (count && !order)
        return fail(GRAPHI_INVALID, "sequences", "found no room for the order, expected an array");
    int64_t length = (int64_t)INT32_MAX + 1;
    while ((length = longest_below(count, lengths, length)) >= 0)
        for (int64_t i = 0; i < count; i++)
            if (lengths[i] == length)
                *order++ = i;
    return GRAPHI_OK;
}

static graphi_status check_order(int64_t count, int64_t steps, const int32_t *lengths, const int64_t *order,
                                 const void *from, const void *to)
{
    TRY(check_lengths(count, lengths, steps));
    if (count && (!from || !to))
        return fail(GRAPHI_INVALID, "sequences", "found no array, expected rows and padded ones");
    for (int64_t i = 0; i < count; i++) {
        if (!order || order[i] < 0 || order[i] >= count)
            return fail(GRAPHI_INVALID, "sequences", "found no sequence at place %lld of the order, expected 0 to %lld",
                        (long long)i, (long long)count - 1);
        if (i && lengths[order[i]] > lengths[order[i - 1]])
            return fail(GRAPHI_INVALID, "sequences",
                        "found length %d after %d, expected the order of "
                        "graphi_sequence_sort",
                        lengths[order[i]], lengths[order[i - 1]]);
    }
    return GRAPHI_OK;
}

graphi_status graphi_sequence_pack(int64_t count, int64_t steps, size_t bytes, const int32_t *lengths,
                                   const int64_t *order, const void *padded, void *rows)
{
    TRY(check_order(count, steps, lengths, order, padded, rows));
    char *to = rows;
    for (int64_t t = 0; t < steps; t++)
        for (int64_t i = 0; i < count && lengths[order[i]] > t; i++, to += bytes)
            memcpy(to, (const char *)padded + (size_t)(order[i] * steps + t) * bytes, bytes);
    return GRAPHI_OK;
}

graphi_status graphi_sequence_unpack(int64_t count, int64_t steps, size_t bytes, const int32_t *lengths,
                                     const int64_t *order, const void *rows, void *padded)
{
    TRY(check_order(count, steps, lengths, order, rows, padded));
    memset(padded, 0, (size_t)(count * steps) * bytes);
    const char *from = rows;
    for (int64_t t = 0; t < steps; t++)
        for (int64_t i = 0; i < count && lengths[order[i]] > t; i++, from += bytes)
            memcpy((char *)padded + (size_t)(order[i] * steps + t) * bytes, from, bytes);
    return GRAPHI_OK;
}

/* --- weights of others --- */

/* Which of a framework's gates each of ours is. */
static const struct gate_order {
    int gates;
    int from[3][4]; /* by graphi_weights_from */
} gate_orders[] = {
    [GRAPHI_LSTM] = {4, {{0, 1, 2, 3}, {0, 2, 3, 1}, {0, 1, 2, 3}}}, /* i, f, g, o */
    [GRAPHI_GRU] = {3, {{0, 1, 2}, {1, 0, 2}, {1, 0, 2}}},           /* r, z, n */
    [GRAPHI_RNN] = {1, {{0}, {0}, {0}}},
};

/* A gate's matrix [units, columns], of theirs [all, columns] or, transposed, [columns, all]. */
static void take_gate(const float *from, bool transposed, int64_t all, int64_t theirs, int64_t units, int64_t columns,
                      float *to)
{
    if (!transposed) {
        memcpy(to, from + theirs * units * columns, (size_t)(units * columns) * sizeof *to);
        return;
    }
    for (int64_t u = 0; u < units; u++)
        for (int64_t c = 0; c < columns; c++)
            to[u * columns + c] = from[c * all + theirs * units + u];
}

graphi_status graphi_recurrent_convert(graphi_cell cell, graphi_weights_from from, bool reset_before, int64_t features,
                                       int64_t units, const graphi_recurrent_weights *weights, float *w_ih, float *w_hh,
                                       float *b_ih, float *b_hh)
{
    if ((unsigned)cell > GRAPHI_RNN || (unsigned)from > GRAPHI_FROM_KERAS || features < 1 || units < 1)
        return fail(GRAPHI_INVALID, "recurrent_convert",
                    "found cell %d from %d of %lld features and %lld units, expected "
                    "those of graphi/recurrent.h",
                    (int)cell, (int)from, (long long)features, (long long)units);
    if (!weights || !weights->w || !weights->r || !w_ih || !w_hh || !b_ih || !b_hh)
        return fail(GRAPHI_INVALID, "recurrent_convert", "found no array, expected weights and room for them");
    const struct gate_order *order = &gate_orders[cell];
    const bool keras = from == GRAPHI_FROM_KERAS;
    const bool two_biases = !keras || (cell == GRAPHI_GRU && !reset_before);
    const int64_t all = order->gates * units;
    for (int g = 0; g < order->gates; g++) {
        const int theirs = order->from[from][g];
        take_gate(weights->w, keras, all, theirs, units, features, w_ih + g * units * features);
        take_gate(weights->r, keras, all, theirs, units, units, w_hh + g * units * units);
        for (int64_t u = 0; u < units; u++) {
            const int64_t at = theirs * units + u;
            b_ih[g * units + u] = weights->b ? weights->b[at] : 0;
            b_hh[g * units + u] = weights->b && two_biases ? weights->b[all + at] : 0;
        }
    }
    return GRAPHI_OK;
}
