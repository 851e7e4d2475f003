/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of blocks in shared memory, a function each, in one table: see exchange.h. Called by threads of solvers.
 * Usual size: 1 to 60 million floats, chunks of 64 Ki floats (256 KB), which the level-2 cache holds. */
#include "group/exchange.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum { PIECE = 1024 }; /* floats that are added at a time: in the level-1 cache */

/* --- counters --- */

void exchange_publish(struct exchange *e, atomic_uint_least64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_release); /* pairs with the load in reached() */
    atomic_fetch_add(&e->bell->word, 1);
    parking_wake(e->bell);
}

static bool reached(atomic_uint_least64_t *counter, uint64_t value)
{
    return atomic_load_explicit(counter, memory_order_acquire) >= value; /* pairs with exchange_publish() */
}

bool exchange_wait(struct exchange *e, atomic_uint_least64_t *counter, uint64_t value)
{
    for (;;) {
        const unsigned old = atomic_load(&e->bell->word);
        if (atomic_load(e->failed))
            return false;
        if (reached(counter, value))
            return true;
        parking_wait(e->bell, old, e->spin_us);
    }
}

bool exchange_wait_taken(struct exchange *e, uint64_t step)
{
    bool well = true;
    for (int m = 0; well && m < e->members; m++)
        well = exchange_wait(e, &e->member[m].taken, step);
    return well;
}

/* --- sums of pieces --- */

static void add(float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* In the order of the solvers. */
static void sum_weighted(const struct exchange *e, size_t at, size_t count, float *out)
{
    for (int m = 0; m < e->members; m++) {
        const float *from = e->member[m].block[0] + at, weight = e->member[m].weight;
        for (size_t i = 0; i < count; i++)
            out[i] = m ? out[i] + weight * from[i] : weight * from[i];
    }
}

/* The block that is the sum of just this node; NULL: none has it. */
static const float *block_of(const struct exchange *e, struct tree_node node)
{
    for (int m = 0; m < e->members; m++)
        for (int i = 0; i < e->member[m].nodes; i++)
            if (e->member[m].node[i].low == node.low && e->member[m].node[i].high == node.high)
                return e->member[m].block[i];
    return NULL;
}

/* By the tree over leaves; `room` has a piece for each depth below. */
static void sum_node(const struct exchange *e, struct tree_node node, size_t at, size_t count, float *out,
                     float (*room)[PIECE])
{
    const float *block = block_of(e, node);
    if (block) {
        memcpy(out, block + at, count * sizeof *out);
        return;
    }
    const int split = tree_split(node);
    sum_node(e, (struct tree_node){node.low, split}, at, count, out, room + 1);
    sum_node(e, (struct tree_node){split, node.high}, at, count, *room, room + 1);
    add(out, *room, count);
}

static void sum_leaves(const struct exchange *e, size_t at, size_t count, float *out)
{
    float room[TREE_DEPTH_MOST][PIECE];
    const float each = 1.0f / (float)e->leaves;
    sum_node(e, (struct tree_node){0, e->leaves}, at, count, out, room);
    for (size_t i = 0; i < count; i++)
        out[i] *= each;
}

/* All blocks, into that of `to`: others read theirs no more. */
void exchange_sum_range(const struct exchange *e, float *to, size_t begin, size_t end)
{
    float piece[PIECE];
    for (size_t at = begin; at < end; at += PIECE) {
        const size_t count = end - at < PIECE ? end - at : PIECE;
        if (e->leaves)
            sum_leaves(e, at, count, piece);
        else
            sum_weighted(e, at, count, piece);
        memcpy(to + at, piece, count * sizeof *to);
    }
}

/* --- lanes and chunks --- */

/* Floats of a lane, in whole lines of the cache. */
static void lane_range(const struct exchange *e, int lane, size_t *begin, size_t *end)
{
    enum { LINE = 16 };
    const size_t lines = (e->floats + LINE - 1) / LINE, lanes = (size_t)e->lanes;
    *begin = lines * (size_t)lane / lanes * LINE;
    *end = lines * ((size_t)lane + 1) / lanes * LINE;
    *end = *end < e->floats ? *end : e->floats;
}

/* A lane of one solver at work. */
struct work {
    struct exchange *e;
    struct exchange_member *own;
    int me, lane;
    size_t begin, end, chunks;
    uint64_t base; /* chunks of the steps before */
};

static struct work work_of(struct exchange *e, int member, int lane, uint64_t step)
{
    struct work w = {.e = e, .own = &e->member[member], .me = member, .lane = lane};
    lane_range(e, lane, &w.begin, &w.end);
    w.chunks = (w.end - w.begin + e->chunk - 1) / e->chunk;
    w.base = (step - 1) * (w.chunks + (uint64_t)e->members); /* a ring counts segments, at most as many as solvers */
    return w;
}

static void chunk_range(const struct work *w, size_t chunk, size_t *begin, size_t *end)
{
    *begin = w->begin + chunk * w->e->chunk;
    *end = *begin + w->e->chunk < w->end ? *begin + w->e->chunk : w->end;
}

static bool wait_up(const struct work *w, int member, uint64_t count)
{
    return exchange_wait(w->e, &w->e->member[member].lane[w->lane].up, w->base + count);
}

static bool wait_down(const struct work *w, int member, uint64_t count)
{
    return exchange_wait(w->e, &w->e->member[member].lane[w->lane].down, w->base + count);
}

static void tell_up(const struct work *w, uint64_t count)
{
    exchange_publish(w->e, &w->own->lane[w->lane].up, w->base + count);
}

static void tell_down(const struct work *w, uint64_t count)
{
    exchange_publish(w->e, &w->own->lane[w->lane].down, w->base + count);
}

static void copy_chunk(const struct work *w, const struct exchange_member *from, size_t chunk)
{
    size_t begin, end;
    chunk_range(w, chunk, &begin, &end);
    memcpy(w->own->block[0] + begin, from->block[0] + begin, (end - begin) * sizeof(float));
}

/* --- reductions --- */

/* A chunk is its owner's, who sums it, and whom the others copy it from. */
static bool by_owner(const struct work *w)
{
    const size_t members = (size_t)w->e->members;
    for (size_t chunk = (size_t)w->me; chunk < w->chunks; chunk += members) {
        size_t begin, end;
        chunk_range(w, chunk, &begin, &end);
        exchange_sum_range(w->e, w->own->block[0], begin, end);
        tell_up(w, chunk + 1);
    }
    for (size_t chunk = 0; chunk < w->chunks; chunk++) {
        const int owner = (int)(chunk % members);
        if (owner == w->me)
            continue;
        if (!wait_up(w, owner, chunk + 1))
            return false;
        copy_chunk(w, &w->e->member[owner], chunk);
    }
    return true;
}

static void scale(const struct work *w, size_t begin, size_t end)
{
    float *block = w->own->block[0];
    for (size_t i = begin; i < end; i++)
        block[i] *= w->own->weight;
}

/* The chunk with those of all below: each solver's children are added in their order. */
static bool gather_chunk(const struct work *w, size_t chunk)
{
    const int first = w->e->arity * w->me + 1;
    size_t begin, end;
    chunk_range(w, chunk, &begin, &end);
    scale(w, begin, end);
    for (int child = first; child < first + w->e->arity && child < w->e->members; child++) {
        if (!wait_up(w, child, chunk + 1))
            return false;
        add(w->own->block[0] + begin, w->e->member[child].block[0] + begin, end - begin);
    }
    tell_up(w, chunk + 1);
    return true;
}

/* Sums go up a tree of solvers, chunk by chunk, and come down it; one whose root has all the others as children is
 * flat. Who takes a sum from its parent overwrites what the parent has read. */
static bool by_tree(const struct work *w)
{
    const int parent = w->me ? (w->me - 1) / w->e->arity : -1;
    for (size_t chunk = 0; chunk < w->chunks; chunk++)
        if (!gather_chunk(w, chunk))
            return false;
    for (size_t chunk = 0; chunk < w->chunks; chunk++) {
        if (parent >= 0 && !wait_down(w, parent, chunk + 1))
            return false;
        if (parent >= 0)
            copy_chunk(w, &w->e->member[parent], chunk);
        tell_down(w, chunk + 1);
    }
    return true;
}

static void segment_range(const struct work *w, int segment, size_t *begin, size_t *end)
{
    const size_t members = (size_t)w->e->members, at = (size_t)((segment + w->e->members) % w->e->members);
    *begin = w->begin + (w->end - w->begin) * at / members;
    *end = w->begin + (w->end - w->begin) * (at + 1) / members;
}

/* Each takes from its left neighbour: sums of a segment go round once, then the segments do. A segment that is
 * overwritten has been read by the right neighbour, since it came round. */
static bool by_ring(const struct work *w)
{
    const int left = (w->me + w->e->members - 1) % w->e->members;
    const float *from = w->e->member[left].block[0];
    size_t begin, end;
    scale(w, w->begin, w->end);
    tell_up(w, 1);
    for (int turn = 0; turn < w->e->members - 1; turn++) {
        if (!wait_up(w, left, (uint64_t)turn + 1))
            return false;
        segment_range(w, w->me - 1 - turn, &begin, &end);
        add(w->own->block[0] + begin, from + begin, end - begin);
        tell_up(w, (uint64_t)turn + 2);
    }
    tell_down(w, 1);
    for (int turn = 0; turn < w->e->members - 1; turn++) {
        if (!wait_down(w, left, (uint64_t)turn + 1))
            return false;
        segment_range(w, w->me - turn, &begin, &end);
        memcpy(w->own->block[0] + begin, from + begin, (end - begin) * sizeof *from);
        tell_down(w, (uint64_t)turn + 2);
    }
    return true;
}

static bool not_at_all(const struct work *w)
{
    return true;
}

static bool (*const reductions[])(const struct work *w) = {
    [GRAPHI_REDUCTION_OWNER] = by_owner, [GRAPHI_REDUCTION_TREE] = by_tree,    [GRAPHI_REDUCTION_RING] = by_ring,
    [GRAPHI_REDUCTION_FLAT] = by_tree,   [GRAPHI_REDUCTION_NONE] = not_at_all,
};

/* A counter that is behind after a step, as one that has no chunk of its own, would keep others waiting in the next. */
static void end_step(const struct work *w)
{
    const uint64_t all = w->chunks + (uint64_t)w->e->members;
    tell_up(w, all);
    tell_down(w, all);
}

bool exchange_sum(struct exchange *e, int member, int lane, uint64_t step)
{
    const struct work w = work_of(e, member, lane, step);
    bool well = true;
    for (int m = 0; well && m < e->members && e->how != GRAPHI_REDUCTION_NONE; m++)
        well = exchange_wait(e, &e->member[m].ready, step);
    if (!well || !reductions[e->how](&w))
        return false;
    end_step(&w);
    return true;
}

/* --- opening --- */

graphi_status exchange_open(struct exchange *e)
{
    for (int m = 0; m < e->members; m++) {
        e->member[m].lane = mem_zalloc_array((size_t)e->lanes, sizeof *e->member[m].lane);
        if (!e->member[m].lane)
            return fail_memory("lanes of a group", (size_t)e->lanes * sizeof *e->member[m].lane);
    }
    if (e->how == GRAPHI_REDUCTION_FLAT)
        e->arity = e->members > 1 ? e->members - 1 : 1;
    return GRAPHI_OK;
}

void exchange_close(struct exchange *e)
{
    for (int m = 0; e->member && m < e->members; m++)
        mem_free(e->member[m].lane);
    mem_free(e->member);
    *e = (struct exchange){0};
}
