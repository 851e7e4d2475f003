/* SPDX-License-Identifier: Apache-2.0 */
/* See vertices.h. One block holds all tables and the parameters of all kernels: its bytes are those of equal kernels,
 * and it is moved as a whole. Every member of a team finds its block and step from the number of the loop alone. */
#include "kernels/vertices.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/shares.h"
#include "kernels/vertices_rows.h"

#include <string.h>

/* Units [unit, end) run together; phase: of the one kernel. */
struct step {
    int32_t unit, end, phase, unused;
};

struct vertices {
    struct frontier_bounds bounds;
    int64_t backward, inputs, outputs, shares, steps; /* steps: of a block, the most that a function has */
    int64_t step_begin[FRONTIER_FUNCTIONS + 1];
    size_t argument, step, unit, array, term, kernel, data; /* where the tables begin, bytes */
};

#define TABLE(v, what, type) ((const type *)((const char *)(v) + (v)->what))

/* What a member has to do in a step. */
struct block {
    const struct vertices *v;
    const struct kernel_call *call;
    struct frontier_lists lists;
    int function, member, members;
    int32_t slot, rows; /* the first, and how many */
    int32_t edge, edges;
};

/* --- arrays --- */

static char *argument_data(const struct block *b, const struct vertices_array *a)
{
    return a->place == VERTICES_IN     ? b->call->in[a->index].data
           : a->place == VERTICES_OUT  ? b->call->out[a->index].data
           : a->place == VERTICES_WORK ? b->call->workspace
                                       : (char *)(uintptr_t)TABLE(b->v, data, char);
}

static int64_t first_row(const struct block *b, const struct vertices_array *a)
{
    const struct frontier_head *h = b->lists.head;
    if (a->place == VERTICES_WORK)
        return 0;
    return a->rows == VERTICES_ROWS    ? b->slot - h->function_begin[b->function]
           : a->rows == VERTICES_EDGES ? b->edge - h->function_edge[b->function]
           : a->rows == VERTICES_SLOTS ? b->slot
                                       : 0;
}

static int64_t rows_in_block(const struct block *b, const struct vertices_array *a)
{
    return a->rows == VERTICES_FIXED ? a->count
                                     : (a->rows == VERTICES_EDGES ? b->edges : b->rows) * (int64_t)a->multiple;
}

static char *rows_of(const struct block *b, const struct vertices_array *a)
{
    return argument_data(b, a) + a->offset + first_row(b, a) * a->multiple * a->row_bytes;
}

/* --- moves --- */

/* This member's part of so many rows. */
static void my_rows(const struct block *b, int32_t rows, int64_t *begin, int64_t *end)
{
    split_range(rows, b->members, b->member, begin, end);
}

static void move_child(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *state = argument_data(b, &a[0]) + a[0].offset;
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        const int32_t first = b->lists.child_begin[b->slot + r], last = b->lists.child_begin[b->slot + r + 1];
        if (first + u->child < last)
            row_copy(to + r * a[1].row_bytes, state + b->lists.child[first + u->child] * a[0].row_bytes, u->columns);
        else
            row_clear(to + r * a[1].row_bytes, u->columns);
    }
}

static void move_sum(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *state = argument_data(b, &a[0]) + a[0].offset;
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        const int32_t first = b->lists.child_begin[b->slot + r], last = b->lists.child_begin[b->slot + r + 1];
        if (first == last)
            row_clear(to + r * a[1].row_bytes, u->columns);
        for (int32_t e = first; e < last; e++)
            row_gather(to + r * a[1].row_bytes, state + b->lists.child[e] * a[0].row_bytes, u->columns, e - first);
    }
}

static void move_each(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *state = argument_data(b, &a[0]) + a[0].offset;
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->edges, &begin, &end);
    for (int64_t e = begin; e < end; e++)
        row_copy(to + e * a[1].row_bytes, state + b->lists.child[b->edge + e] * a[0].row_bytes, u->columns);
}

static void move_spread(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *from = rows_of(b, &a[0]);
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->edges, &begin, &end);
    for (int64_t e = begin; e < end; e++) {
        const int64_t row = b->lists.edge_parent[b->edge + e] - b->slot;
        row_copy(to + e * a[1].row_bytes, from + row * a[0].row_bytes, u->columns);
    }
}

static void move_combine(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *from = rows_of(b, &a[0]);
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        const int32_t first = b->lists.child_begin[b->slot + r], last = b->lists.child_begin[b->slot + r + 1];
        if (first == last)
            row_clear(to + r * a[1].row_bytes, u->columns);
        for (int32_t e = first; e < last; e++)
            row_gather(to + r * a[1].row_bytes, from + (e - b->edge) * a[0].row_bytes, u->columns, e - first);
    }
}

static void move_copy(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *from = rows_of(b, &a[0]);
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, u->edges ? b->edges : b->rows, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        row_copy(to + r * a[1].row_bytes, from + r * a[0].row_bytes, u->columns);
}

/* Adds what the parent at edge e gathered of this state; gives the number of rows in the sum. */
static int64_t add_parent(const struct block *b, const struct vertices_unit *u, int32_t e, char *to, int64_t before)
{
    const struct frontier_head *h = b->lists.head;
    const int32_t parent = b->lists.edge_parent[e], place = e - b->lists.child_begin[parent];
    const int function = frontier_function(h, parent);
    const struct vertices_term *term = TABLE(b->v, term, struct vertices_term) + u->term;
    for (int32_t t = 0; t < u->terms; t++) {
        if (term[t].function != function || (term[t].work == VERTICES_CHILD && term[t].child != place))
            continue;
        const int64_t row =
            term[t].work == VERTICES_EACH ? e - h->function_edge[function] : parent - h->function_begin[function];
        row_gather(to, (const char *)b->call->out[term[t].output].data + row * term[t].row_bytes, u->columns, before++);
    }
    return before;
}

static void move_parents(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a)
{
    const char *outside = a[0].place == VERTICES_NOWHERE ? NULL : rows_of(b, &a[0]);
    char *to = rows_of(b, &a[1]);
    int64_t begin, end;
    my_rows(b, b->rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        char *row = to + r * a[1].row_bytes;
        int64_t before = 0;
        if (outside)
            row_gather(row, outside + r * a[0].row_bytes, u->columns, before++);
        for (int32_t p = b->lists.parent_begin[b->slot + r]; p < b->lists.parent_begin[b->slot + r + 1]; p++)
            before = add_parent(b, u, b->lists.parent_edge[p], row, before);
        if (!before)
            row_clear(row, u->columns);
    }
}

typedef void move_function(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a);
static move_function *const moves[] = {
    [VERTICES_CHILD] = move_child,     [VERTICES_SUM] = move_sum,       [VERTICES_EACH] = move_each,
    [VERTICES_PARENTS] = move_parents, [VERTICES_SPREAD] = move_spread, [VERTICES_COMBINE] = move_combine,
    [VERTICES_COPY] = move_copy,
};

/* --- units --- */

static graphi_status run_kernel(const struct block *b, const struct vertices_unit *u, const struct vertices_array *a,
                                int phase)
{
    const struct kernel *k = TABLE(b->v, kernel, struct kernel) + u->kernel;
    struct kernel_array arrays[VERTICES_UNIT_ARRAYS];
    for (int i = 0; i < u->inputs + u->outputs; i++)
        arrays[i] = (struct kernel_array){rows_of(b, &a[i]), rows_in_block(b, &a[i])};
    struct kernel_call call = *b->call;
    call.in = arrays;
    call.out = arrays + u->inputs;
    call.workspace = (char *)b->call->workspace + u->workspace;
    call.params = (const char *)b->v + (uintptr_t)k->params; /* an offset here */
    call.width = b->members;
    call.loop = 0;
    int64_t share, end;
    split_range(k->shares[phase], b->members, b->member, &share, &end);
    for (; share < end; share++)
        TRY(k->run(&call, phase, (int)share));
    return GRAPHI_OK;
}

static graphi_status run_step(const struct block *b, const struct step *step)
{
    for (int32_t i = step->unit; i < step->end; i++) {
        const struct vertices_unit *u = TABLE(b->v, unit, struct vertices_unit) + i;
        const struct vertices_array *a = TABLE(b->v, array, struct vertices_array) + u->array;
        if (u->edges && !b->edges)
            continue;
        if (u->work == VERTICES_KERNEL)
            TRY(run_kernel(b, u, a, step->phase));
        else
            moves[u->work](b, u, a);
    }
    return GRAPHI_OK;
}

/* --- the loop --- */

/* How many rows an argument must have. */
static int64_t rows_there(const struct frontier_head *h, const struct vertices_argument *a)
{
    if (a->rows == VERTICES_SLOTS)
        return h->vertices;
    const int32_t *begin = a->rows == VERTICES_EDGES ? h->function_edge : h->function_begin;
    return (int64_t)(begin[a->function + 1] - begin[a->function]) * a->multiple;
}

/* Every member checks; the first one clears rows that there are none of. */
static graphi_status begin_loop(const struct vertices *v, const struct kernel_call *call, const struct frontier_head *h,
                                int member)
{
    const struct vertices_argument *a = TABLE(v, argument, struct vertices_argument);
    for (int64_t i = 0; i < v->inputs + v->outputs; i++, a++) {
        const struct kernel_array *array = i < v->inputs ? &call->in[i] : &call->out[i - v->inputs];
        if (a->rows == VERTICES_FIXED || !a->present)
            continue;
        const int64_t rows = rows_there(h, a);
        if (array->rows < rows)
            return fail(GRAPHI_INVALID, "vertices",
                        "found %lld rows of %s of function %d, expected %lld: "
                        "graphi_frontier_feed sets the symbols",
                        (long long)array->rows, a->rows == VERTICES_EDGES ? "edges" : "vertices", a->function,
                        (long long)rows);
        if (i >= v->inputs && !member)
            memset((char *)array->data + rows * a->row_bytes, 0, (size_t)((array->rows - rows) * a->row_bytes));
    }
    return GRAPHI_OK;
}

static struct block block_at(const struct vertices *v, const struct kernel_call *call, int64_t index)
{
    struct block b = {.v = v, .call = call, .lists = frontier_lists_in(&v->bounds, call->in[0].data)};
    const int64_t i = v->backward ? b.lists.head->blocks - 1 - index : index;
    b.function = b.lists.block_function[i];
    b.slot = b.lists.block_slot[i];
    b.rows = b.lists.block_rows[i];
    b.edge = b.lists.child_begin[b.slot];
    b.edges = b.lists.child_begin[b.slot + b.rows] - b.edge;
    return b;
}

/* A member does all of its part with its first share. */
static graphi_status vertices_run(const struct kernel_call *call, int phase, int share)
{
    const struct vertices *v = call->params;
    const int shares = (int)v->shares, width = (int)least(most(call->width, 1), shares);
    int64_t first, end;
    share_run(shares, width, share, &first, &end);
    if (share != first)
        return GRAPHI_OK;
    const int member = share_piece(shares, width, share);
    const struct frontier_lists lists = frontier_lists_in(&v->bounds, call->in[0].data);
    if (!call->loop)
        TRY(begin_loop(v, call, lists.head, member));
    const int64_t index = call->loop / v->steps, s = call->loop % v->steps;
    struct block b = block_at(v, call, index);
    b.member = member;
    b.members = width;
    const int64_t step = v->step_begin[b.function] + s;
    return step < v->step_begin[b.function + 1] ? run_step(&b, TABLE(v, step, struct step) + step) : GRAPHI_OK;
}

static int64_t vertices_steps(const struct kernel_call *call)
{
    const struct vertices *v = call->params;
    return frontier_lists_in(&v->bounds, call->in[0].data).head->blocks * v->steps;
}

/* --- binding --- */

/* May bytes of one row be in both? */
static bool overlap(const struct vertices_array *a, const struct vertices_array *b)
{
    if (a->place != b->place || a->place >= VERTICES_DATA)
        return false;
    const bool work = a->place == VERTICES_WORK;
    if (work ? a->begin >= b->begin + b->bytes || b->begin >= a->begin + a->bytes : a->index != b->index)
        return false;
    const bool apart = a->column + a->used <= b->column || b->column + b->used <= a->column;
    return !(apart && a->begin == b->begin && a->row_bytes == b->row_bytes);
}

/* Does one unit write what the other one reads or writes? */
static bool meet(const struct vertices_spec *s, const struct vertices_unit *one, const struct vertices_unit *two)
{
    const struct vertices_array *a = s->array + one->array, *b = s->array + two->array;
    for (int i = 0; i < one->inputs + one->outputs; i++)
        for (int k = 0; k < two->inputs + two->outputs; k++)
            if ((i >= one->inputs || k >= two->inputs) && overlap(&a[i], &b[k]))
                return true;
    return false;
}

static int phases_of(const struct vertices_spec *s, const struct vertices_unit *u)
{
    return u->work == VERTICES_KERNEL ? s->kernel[u->kernel].phases : 1;
}

/* Cuts the units of a function into steps; gives their number. */
static int64_t cut_steps(const struct vertices_spec *s, int function, struct step *step)
{
    int64_t steps = 0;
    bool open = false;
    for (int32_t i = 0; i < s->units; i++) {
        const struct vertices_unit *u = &s->unit[i];
        if (u->function != function)
            continue;
        bool joins = open && phases_of(s, u) == 1;
        for (int32_t k = open ? step[steps - 1].unit : i; joins && k < i; k++)
            joins = !meet(s, &s->unit[k], u);
        if (joins) {
            step[steps - 1].end = i + 1;
            continue;
        }
        open = phases_of(s, u) == 1;
        for (int phase = 0; phase < phases_of(s, u); phase++)
            step[steps++] = (struct step){.unit = i, .end = i + 1, .phase = phase};
    }
    return steps;
}

static size_t place_table(size_t *at, size_t bytes)
{
    const size_t begin = *at;
    *at += (bytes + 63) / 64 * 64;
    return begin;
}

/* The tables and parameters of kernels behind the head. */
static void fill(const struct vertices_spec *s, const struct step *step, int64_t steps, size_t params, char *block)
{
    struct vertices *v = (struct vertices *)block;
    memcpy(block + v->argument, s->argument, sizeof *s->argument * (size_t)(s->inputs + s->outputs));
    memcpy(block + v->step, step, sizeof *step * (size_t)steps);
    memcpy(block + v->unit, s->unit, sizeof *s->unit * (size_t)s->units);
    memcpy(block + v->array, s->array, sizeof *s->array * (size_t)s->arrays);
    if (s->terms)
        memcpy(block + v->term, s->term, sizeof *s->term * (size_t)s->terms);
    if (s->data_bytes)
        memcpy(block + v->data, s->data, s->data_bytes);
    struct kernel *kernels = (struct kernel *)(block + v->kernel);
    for (int i = 0; i < s->kernels; i++) {
        kernels[i] = s->kernel[i];
        const size_t at = place_table(&params, s->kernel[i].params_bytes);
        if (s->kernel[i].params_bytes)
            memcpy(block + at, s->kernel[i].params, s->kernel[i].params_bytes);
        memcpy(&kernels[i].params, &at, sizeof at);
    }
}

static graphi_status make(const struct vertices_spec *s, const struct step *step, struct vertices v, int64_t steps,
                          struct kernel *kernel)
{
    size_t at = sizeof v;
    at = (at + 63) / 64 * 64;
    v.argument = place_table(&at, sizeof *s->argument * (size_t)(s->inputs + s->outputs));
    v.step = place_table(&at, sizeof *step * (size_t)steps);
    v.unit = place_table(&at, sizeof *s->unit * (size_t)s->units);
    v.array = place_table(&at, sizeof *s->array * (size_t)s->arrays);
    v.term = place_table(&at, sizeof *s->term * (size_t)s->terms);
    v.kernel = place_table(&at, sizeof *s->kernel * (size_t)s->kernels);
    v.data = place_table(&at, s->data_bytes);
    const size_t params = at;
    for (int i = 0; i < s->kernels; i++)
        place_table(&at, s->kernel[i].params_bytes);
    char *block = mem_zalloc(at);
    if (!block)
        return fail_memory("vertices", at);
    memcpy(block, &v, sizeof v);
    fill(s, step, steps, params, block);
    const int64_t blocks = s->bounds.vertices / most(s->bounds.rows, 1) + 64;
    *kernel = (struct kernel){.name = s->backward ? "vertices_gradient" : "vertices",
                              .run = vertices_run,
                              .params = block,
                              .params_bytes = at,
                              .steps = vertices_steps,
                              .most_steps = (int32_t)least(blocks * v.steps, INT32_MAX),
                              .phases = 1,
                              .shares = {s->shares},
                              .workspace = s->workspace,
                              .flops = s->flops,
                              .bytes = s->bytes};
    return GRAPHI_OK;
}

graphi_status vertices_bind(const struct vertices_spec *s, struct kernel *kernel)
{
    struct vertices v = {.bounds = s->bounds,
                         .backward = s->backward,
                         .inputs = s->inputs,
                         .outputs = s->outputs,
                         .shares = s->shares,
                         .steps = 1};
    struct step *step = mem_zalloc_array((size_t)s->units * KERNEL_MAX_PHASES + 1, sizeof *step);
    if (!step)
        return fail_memory("vertices", sizeof *step * (size_t)s->units);
    int64_t steps = 0;
    for (int f = 0; f < FRONTIER_FUNCTIONS; f++) {
        v.step_begin[f] = steps;
        const int64_t more = f < s->bounds.functions ? cut_steps(s, f, step + steps) : 0;
        steps += more;
        v.steps = most(v.steps, more);
    }
    v.step_begin[FRONTIER_FUNCTIONS] = steps;
    graphi_status status = make(s, step, v, steps, kernel);
    mem_free(step);
    return status;
}
