/* SPDX-License-Identifier: Apache-2.0 */
/* The values that take part in the arena planner, and which of them precede which: the first's producers and readers
 * all precede the second's producers in the graph, or, which is the same, its ends precede the second's starts. The
 * relation is a square of bits, made once and asked at every placing. */
#include "engine/compile/memory_items.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static int larger_first(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x->value > y->value) - (x->value < y->value);
}

static void span_of(struct planner *p, struct item *item, const int64_t *start_ns)
{
    const struct memory_problem *problem = p->problem;
    const struct memory_value *value = &problem->value[item->value];
    int count;
    const int32_t *list = planner_tasks(problem, item->value, &count);
    item->first = INT32_MAX, item->last = -1;
    for (int i = 0; i < count; i++) {
        if (i < value->producers && list[i] < item->first)
            item->first = list[i];
        item->last = list[i] > item->last ? list[i] : item->last;
    }
    item->begin_ns = start_ns[item->first];
    item->end_ns = start_ns[item->last + 1];
    if (value->kept)
        item->last = INT32_MAX;
}

/* Values that take part at most, the largest: the relation between them is a square of bits. And as many of their tasks
 * as the relation between these and all tasks has room for in so many bytes: graphs of up to 46,000 tasks never have
 * more, but with 500,000 tasks on one value it would take 31 GB. */
enum { MOST_SHARED = 12000, MOST_RELATION_BYTES = 256 << 20 };

/* Tasks of an item that no item before wants, each once. seen: per task, the last item that was asked about, plus
 * one. */
static int64_t fresh_tasks(const struct planner *p, int item, const bool *wanted, int32_t *seen)
{
    int count;
    int64_t fresh = 0;
    const int32_t *list = planner_tasks(p->problem, p->item[item].value, &count);
    for (int k = 0; k < count; k++) {
        fresh += !wanted[list[k]] && seen[list[k]] != item + 1;
        seen[list[k]] = item + 1;
    }
    return fresh;
}

/* Fills p->item; `wanted`: every task of one of them. */
static void collect_items(struct planner *p, int64_t limit, const int64_t *start_ns, bool *wanted, int32_t *seen)
{
    const struct memory_problem *problem = p->problem;
    for (int v = 0; v < problem->values; v++) {
        if (planner_is_apart(problem, v, limit))
            continue;
        struct item *item = &p->item[p->count++];
        *item = (struct item){.value = v, .bytes = whole_lines(problem->value[v].bytes)};
        span_of(p, item, start_ns);
    }
    qsort(p->item, (size_t)p->count, sizeof *p->item, larger_first);
    int count = p->count < MOST_SHARED ? p->count : MOST_SHARED;
    int64_t room = (int64_t)MOST_RELATION_BYTES * 8 / (problem->tasks + 1);
    p->count = 0;
    for (int i = 0; i < count; i++) {
        int64_t fresh = fresh_tasks(p, i, wanted, seen);
        if (fresh > room)
            continue;
        room -= fresh;
        int tasks;
        const int32_t *list = planner_tasks(problem, p->item[i].value, &tasks);
        for (int k = 0; k < tasks; k++)
            wanted[list[k]] = true;
        p->item[p->count++] = p->item[i];
    }
}

/* A row of bits like those of p->ancestors. */
static bool row_has(const struct planner *p, const uint64_t *row, int32_t task)
{
    int32_t column = p->ancestors.column[task];
    return row[column / 64] >> (column % 64) & 1;
}

static void row_set(const struct planner *p, uint64_t *row, int32_t task)
{
    int32_t column = p->ancestors.column[task];
    row[column / 64] |= (uint64_t)1 << (column % 64);
}

static bool rows_meet(const struct planner *p, const uint64_t *a, const uint64_t *b)
{
    for (size_t w = 0; w < p->ancestors.words; w++)
        if (a[w] & b[w])
            return true;
    return false;
}

/* Producers without another producer among their ancestors, each once. rows: two of zeros, as afterwards. */
static bool find_starts(struct planner *p, struct item *item, uint64_t *rows)
{
    int count;
    const int32_t *list = planner_tasks(p->problem, item->value, &count);
    uint64_t *all = rows, *found = rows + p->ancestors.words;
    bool enough = true;
    count = p->problem->value[item->value].producers;
    item->starts = (int32_t)p->border.count;
    for (int i = 0; i < count; i++)
        row_set(p, all, list[i]);
    for (int i = 0; i < count; i++)
        if (!row_has(p, found, list[i]) && !rows_meet(p, ancestors_row(&p->ancestors, list[i]), all)) {
            row_set(p, found, list[i]);
            enough = enough && array_push(&p->border, list[i]);
        }
    item->starts_count = (int32_t)p->border.count - item->starts;
    memset(rows, 0, 2 * p->ancestors.words * sizeof *rows);
    return enough;
}

/* Tasks that are no ancestor of another task of the item, each once. row: of zeros, as afterwards. */
static bool find_ends(struct planner *p, struct item *item, uint64_t *row)
{
    int count;
    const int32_t *list = planner_tasks(p->problem, item->value, &count);
    bool enough = true;
    item->ends = (int32_t)p->border.count;
    for (int i = 0; i < count; i++)
        for (size_t w = 0; w < p->ancestors.words; w++)
            row[w] |= ancestors_row(&p->ancestors, list[i])[w];
    for (int i = 0; i < count; i++)
        if (!row_has(p, row, list[i])) {
            row_set(p, row, list[i]);
            enough = enough && array_push(&p->border, list[i]);
        }
    item->ends_count = (int32_t)p->border.count - item->ends;
    memset(row, 0, p->ancestors.words * sizeof *row);
    return enough;
}

/* The columns that every start of the item has among its ancestors. */
static void common_ancestors(const struct planner *p, const struct item *item, uint64_t *row)
{
    const int32_t *start = p->border.data + item->starts;
    memcpy(row, ancestors_row(&p->ancestors, start[0]), p->ancestors.words * sizeof *row);
    for (int i = 1; i < item->starts_count; i++)
        for (size_t w = 0; w < p->ancestors.words; w++)
            row[w] &= ancestors_row(&p->ancestors, start[i])[w];
}

enum { BLOCK = 64 }; /* items in a word of p->before */

/* Rows become columns, halves of rows at a time, then their halves. */
static void transpose(uint64_t *bits)
{
    uint64_t low = UINT32_MAX;
    for (int half = BLOCK / 2; half; half /= 2, low ^= low << half)
        for (int i = 0; i < BLOCK; i = (i + half + 1) & ~half) {
            uint64_t swap = (bits[i] >> half ^ bits[i + half]) & low;
            bits[i] ^= swap << half;
            bits[i + half] ^= swap;
        }
}

/* Of every column, which items of block `b` have it among the ancestors of all their starts, a bit an item. rows: one
 * for each of these. */
static void find_followers(const struct planner *p, int b, uint64_t *rows, uint64_t *followers)
{
    const size_t words = p->ancestors.words;
    int count = p->count - b * BLOCK < BLOCK ? p->count - b * BLOCK : BLOCK;
    for (int k = 0; k < count; k++)
        common_ancestors(p, &p->item[b * BLOCK + k], rows + (size_t)k * words);
    memset(rows + (size_t)count * words, 0, (size_t)(BLOCK - count) * words * sizeof *rows);
    for (size_t w = 0; w < words; w++) {
        uint64_t *bits = followers + w * BLOCK;
        for (int k = 0; k < BLOCK; k++)
            bits[k] = rows[(size_t)k * words + w];
        transpose(bits);
    }
}

/* Which items precede those of block `b`: those all of whose ends these follow. What is kept precedes nothing. */
static void relate_to_block(struct planner *p, int b, const uint64_t *followers)
{
    for (int i = 0; i < p->count; i++) {
        const struct item *item = &p->item[i];
        uint64_t all = item->last < INT32_MAX ? UINT64_MAX : 0;
        for (int e = 0; e < item->ends_count; e++)
            all &= followers[p->ancestors.column[p->border.data[item->ends + e]]];
        p->before[(size_t)i * p->words + (size_t)b] = all;
    }
}

/* p->ordered: the relation and its converse. */
static void relate_both_ways(struct planner *p)
{
    for (int b = 0; b < (int)p->words; b++)
        for (int g = 0; g < (int)p->words; g++) {
            uint64_t bits[BLOCK];
            for (int i = 0; i < BLOCK; i++)
                bits[i] = p->before[(size_t)(g * BLOCK + i) * p->words + (size_t)b];
            transpose(bits);
            for (int i = 0; i < BLOCK; i++) {
                size_t at = (size_t)(b * BLOCK + i) * p->words + (size_t)g;
                p->ordered[at] = p->before[at] | bits[i];
            }
        }
}

static graphi_status relate_items(struct planner *p)
{
    p->words = ((size_t)p->count + BLOCK - 1) / BLOCK;
    p->before = mem_zalloc_array(p->words * BLOCK, p->words * sizeof *p->before); /* rows up to a whole block */
    p->ordered = mem_zalloc_array(p->words * BLOCK, p->words * sizeof *p->ordered);
    uint64_t *rows = mem_zalloc_array(2 * BLOCK, (p->ancestors.words + 1) * sizeof *rows);
    bool enough = p->before && p->ordered && rows;
    for (int i = 0; i < p->count && enough; i++)
        enough = find_starts(p, &p->item[i], rows) && find_ends(p, &p->item[i], rows);
    for (int b = 0; b < (int)p->words && enough; b++) {
        uint64_t *followers = rows + BLOCK * p->ancestors.words;
        find_followers(p, b, rows, followers);
        relate_to_block(p, b, followers);
    }
    if (enough)
        relate_both_ways(p);
    mem_free(rows);
    return enough ? GRAPHI_OK : fail_memory("memory plan", (size_t)p->count * p->words * 8);
}

graphi_status planner_prepare(struct planner *p, int64_t limit)
{
    const struct memory_problem *problem = p->problem;
    size_t tasks = (size_t)problem->tasks, values = (size_t)problem->values + 1;
    int64_t *start_ns = mem_alloc((tasks + 2) * sizeof *start_ns);
    bool *wanted = mem_zalloc(tasks + 1);
    int32_t *seen = mem_zalloc_array(tasks + 1, sizeof *seen);
    p->item = mem_zalloc_array(values, sizeof *p->item);
    p->order = mem_alloc(values * sizeof *p->order);
    p->ranked = mem_alloc(values * sizeof *p->ranked);
    graphi_status status = GRAPHI_OK;
    if (!start_ns || !wanted || !seen || !p->item || !p->order || !p->ranked) {
        status = fail_memory("memory plan", tasks * sizeof *start_ns);
        goto done;
    }
    start_ns[0] = 0;
    for (size_t t = 0; t < tasks; t++)
        start_ns[t + 1] = start_ns[t] + (problem->ns ? problem->ns[t] + 1 : 1);
    p->total_ns = start_ns[tasks];
    collect_items(p, limit, start_ns, wanted, seen);
    size_t shelves = (size_t)p->count / (PLANNER_SHELF / 2) + 1;
    p->shelf = mem_alloc(shelves * sizeof *p->shelf);
    p->shelf_room = mem_alloc(shelves * sizeof *p->shelf_room);
    if (!p->shelf || !p->shelf_room) {
        status = fail_memory("memory plan", shelves * sizeof *p->shelf_room);
        goto done;
    }
    status = ancestors_create(problem->tasks, problem->edges_begin, problem->edges, wanted, &p->ancestors);
    if (!status)
        status = relate_items(p);
done:
    mem_free(start_ns);
    mem_free(wanted);
    mem_free(seen);
    return status;
}

void planner_free(struct planner *p)
{
    mem_free(p->item);
    mem_free(p->shelf);
    mem_free(p->shelf_room);
    mem_free(p->order);
    mem_free(p->ranked);
    mem_free(p->before);
    mem_free(p->ordered);
    array_free(&p->border);
    ancestors_free(&p->ancestors);
}
