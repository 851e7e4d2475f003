/* SPDX-License-Identifier: Apache-2.0 */
/* Rows between vertices, their slots and their edges, outside of the loop: whole arrays of a function at once. A row is
 * written once, so the rows of the result are divided; sums have the order of the lists. */
#include "base/status.h"
#include "kernels/shares.h"
#include "kernels/vertices.h"
#include "kernels/vertices_rows.h"

struct move {
    struct vertices_move_spec spec;
    int64_t shares;
};

struct moving {
    const struct vertices_move_spec *spec;
    struct frontier_lists lists;
    const float *x;
    int64_t slot, slots, edge, edges; /* of the function */
};

/* The source of row r of the result; NULL: zeros. */
static const float *source_of(const struct moving *m, int64_t r)
{
    const int64_t columns = m->spec->columns;
    int64_t row = -1;
    switch (m->spec->move) {
    case VERTICES_MOVE_TAKE:
        row = r < m->slots ? m->lists.vertex[m->slot + r] : -1;
        break;
    case VERTICES_MOVE_SPREAD:
        row = r < m->edges ? m->lists.edge_parent[m->edge + r] - m->slot : -1;
        break;
    default:
        row = r < m->lists.head->vertices ? m->lists.slot[r] - m->slot : -1;
        row = row < m->slots ? row : -1;
    }
    return row < 0 ? NULL : m->x + row * columns;
}

static void combine(const struct moving *m, int64_t r, float *to)
{
    const int64_t columns = m->spec->columns;
    const bool there = r < m->slots;
    const int32_t first = there ? m->lists.child_begin[m->slot + r] : 0;
    const int32_t last = there ? m->lists.child_begin[m->slot + r + 1] : 0;
    if (first == last)
        row_clear(to, columns);
    for (int32_t e = first; e < last; e++)
        row_gather(to, m->x + (e - m->edge) * columns, columns, e - first);
}

static graphi_status check(const struct moving *m, const struct kernel_call *call)
{
    const struct frontier_head *h = m->lists.head;
    const int64_t in[] = {h->vertices, m->slots, m->slots, m->edges};
    const int64_t out[] = {m->slots, h->vertices, m->edges, m->slots};
    const int64_t move = m->spec->move;
    if (call->in[1].rows >= in[move] && call->out[0].rows >= out[move])
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, "rows of vertices",
                "found %lld and %lld, expected %lld and %lld of function %lld: "
                "graphi_frontier_feed sets the symbols",
                (long long)call->in[1].rows, (long long)call->out[0].rows, (long long)in[move], (long long)out[move],
                (long long)m->spec->function);
}

static graphi_status run(const struct kernel_call *call, int phase, int share)
{
    const struct move *move = call->params;
    const struct vertices_move_spec *spec = &move->spec;
    struct moving m = {
        .spec = spec, .lists = frontier_lists_in(&spec->bounds, call->in[0].data), .x = call->in[1].data};
    const struct frontier_head *h = m.lists.head;
    m.slot = h->function_begin[spec->function];
    m.slots = h->function_begin[spec->function + 1] - m.slot;
    m.edge = h->function_edge[spec->function];
    m.edges = h->function_edge[spec->function + 1] - m.edge;
    TRY(check(&m, call));
    int64_t begin, end;
    split_range(call->out[0].rows, (int)move->shares, share, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        float *to = (float *)call->out[0].data + r * spec->columns;
        if (spec->move == VERTICES_MOVE_COMBINE) {
            combine(&m, r, to);
            continue;
        }
        const float *from = source_of(&m, r);
        if (from)
            row_copy(to, from, spec->columns);
        else
            row_clear(to, spec->columns);
    }
    return GRAPHI_OK;
}

graphi_status vertices_move_bind(const struct vertices_move_spec *spec, struct kernel *kernel)
{
    static const char *const names[] = {"vertex_take", "vertex_put", "vertex_spread", "vertex_combine"};
    const double bytes = 8 * (double)spec->rows * (double)spec->columns;
    const struct move move = {*spec, shares_for(bytes, spec->rows)};
    const struct kernel like = {
        .name = names[spec->move], .run = run, .phases = 1, .shares = {(int)move.shares}, .bytes = bytes};
    return kernel_make(like, &move, sizeof move, kernel);
}
