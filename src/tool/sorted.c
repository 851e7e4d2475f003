/* SPDX-License-Identifier: Apache-2.0 */
/* The order of rows for people. Results keep the order in which rows were measured; who reads sixty settings looks for
 * the fastest. */
#include "tool/result.h"

#include <stdlib.h>
#include <string.h>

static const char *id_of(const json_t *row)
{
    const char *id = json_string_value(json_object_get(row, "id"));
    return id ? id : "";
}

static bool same_group(const json_t *a, const json_t *b)
{
    const char *left = id_of(a), *right = id_of(b), *end = strstr(left, ": ");
    const size_t length = end ? (size_t)(end - left) + 2 : 0;
    return length && strncmp(left, right, length) == 0;
}

struct place {
    json_t *row;
    double ms; /* 0: none */
    size_t at;
    bool own; /* a copy */
};

static int by_time(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if ((x->ms > 0) != (y->ms > 0))
        return x->ms > 0 ? -1 : 1;
    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The first is the fastest, if any was measured. */
static void mark(struct place *first, size_t count)
{
    const char *reason = json_string_value(json_object_get(first->row, "reason"));
    json_t *best = count > 1 && first->ms > 0 && !(reason && *reason) ? json_copy(first->row) : NULL;
    if (best && json_object_set_new(best, "reason", json_string("best")) == 0)
        *first = (struct place){best, first->ms, first->at, true};
    else
        json_decref(best);
}

json_t *result_sorted(const json_t *root)
{
    json_t *rows = json_object_get(root, "rows"), *out;
    const char *experiment = json_string_value(json_object_get(root, "experiment"));
    const size_t count = json_array_size(rows);
    struct place *place = count ? calloc(count, sizeof *place) : NULL;
    if (!place || !experiment || strcmp(experiment, "sweep") != 0) {
        free(place);
        return json_incref(rows);
    }
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_array_get(rows, i);
        place[i] = (struct place){row, json_number_value(json_object_get(json_object_get(row, "time_ms"), "median")), i,
                                  false};
    }
    out = json_array();
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && same_group(place[first].row, place[end].row);)
            end++;
        qsort(place + first, end - first, sizeof *place, by_time);
        mark(&place[first], end - first);
        for (size_t i = first; i < end; i++) {
            json_array_append(out, place[i].row);
            if (place[i].own)
                json_decref(place[i].row);
        }
    }
    free(place);
    return out;
}
