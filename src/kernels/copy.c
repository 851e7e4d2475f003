/* SPDX-License-Identifier: Apache-2.0 */
/* Strided copies. A part is first simplified (dimensions of one element dropped, neighbours merged where both layouts
 * allow), then cut into items: pieces of a line of at most 16 KB, or, where the source runs along another dimension
 * than the destination (a transpose), tiles of 64 x 64 elements, so that both sides use whole cache lines, or longer
 * ones where the destination's lines are short (an image's three channels). Shares take ranges of all items. Parts that
 * are lines of the same rows (joined or cut along the last dimension) are taken together, row by row. Tiles and such
 * rows of arrays that leave the caches are written past them, tiles in the order in which the source lies. Usual size:
 * activations of 0.1 to 10 MB. Any thread; a share writes its own items only. */
#include "kernels/copy.h"

#include "base/memory.h"
#include "base/status.h"
#include "kernels/shares.h"
#include "kernels/square.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* What they do shows in `graphi bench kernels transpose concat split`. */
enum { TILE = 64, FEW = 8, LINE_BYTES = 16 * 1024, LOOPS = GRAPHI_MAX_RANK + 2 };

struct part {
    struct copy_part p; /* simplified: rank >= 1 */
    int other;          /* tiles: the dimension along which the source is contiguous; -1: lines */
    int64_t step;       /* of the innermost dimension, elements an item */
    int64_t other_step; /* tiles: of the other one */
};

/* Arrays that take that much together: a transposed one leaves a cache of 32 MiB before it is read again, and rows that
 * are only moved take as long as memory then. */
static const double FAR_BYTES = 40 << 20, FAR_ROWS_BYTES = 32 << 20;

struct copy_params {
    size_t element;
    int parts, shares;
    bool far;
    struct part part[];
};

/* The loops over the items of a part: extents, and what one step moves. Those of the innermost dimension and of the
 * tile's other one step by `step` and `other_step`. They are in the order of the destination, or of the source. */
struct loops {
    int count;
    int64_t extent[LOOPS], from[LOOPS], to[LOOPS];
    int inner_at, other_at; /* which loops those two are */
    int64_t items;
    int64_t inner, other; /* actual sizes of the innermost dimension and of the tile's other one */
};

static void simplify(struct copy_part *p)
{
    int rank = 0;
    for (int i = 0; i < p->rank; i++) {
        if (p->dims[i] == 1)
            continue;
        bool merge =
            rank > 0 && p->from[rank - 1] == p->from[i] * p->dims[i] && p->to[rank - 1] == p->to[i] * p->dims[i];
        if (!merge)
            rank++;
        int64_t outer = merge ? p->dims[rank - 1] : 1;
        p->dims[rank - 1] = outer * p->dims[i];
        p->from[rank - 1] = p->from[i];
        p->to[rank - 1] = p->to[i];
    }
    if (rank == 0) {
        p->dims[0] = p->from[0] = p->to[0] = 1;
        rank = 1;
    }
    p->rank = rank;
}

static void choose(struct part *part, size_t element)
{
    const struct copy_part *p = &part->p;
    int last = p->rank - 1;
    part->other = -1;
    part->step = (int64_t)(LINE_BYTES / element);
    if (p->to[last] != 1 || p->from[last] <= 1)
        return;
    for (int i = 0; i < last; i++)
        if (p->from[i] == 1) {
            part->other = i;
            part->step = TILE;
            part->other_step = p->dims[last] < FEW ? TILE * TILE / FEW : TILE;
        }
}

/* The rows of a part in this call. */
static int64_t rows_of(const struct copy_part *p, const struct kernel_call *call)
{
    return p->rows && call ? p->dims[0] * call->in[p->input].rows / p->rows : p->dims[0];
}

static void loops_of(const struct part *part, const struct kernel_call *call, bool by_source, struct loops *l)
{
    const struct copy_part *p = &part->p;
    int last = p->rank - 1;
    *l = (struct loops){.items = 1, .count = p->rank};
    for (int i = 0; i <= last; i++) {
        int64_t size = i == 0 ? rows_of(p, call) : p->dims[i];
        int64_t step = i == last ? part->step : i == part->other ? part->other_step : 1;
        int at = !by_source || part->other < 0 || i < part->other ? i : i == part->other ? last : i - 1;
        if (i == last) {
            l->inner = size;
            l->inner_at = at;
        }
        if (i == part->other) {
            l->other = size;
            l->other_at = at;
        }
        l->extent[at] = (size + step - 1) / step;
        l->from[at] = p->from[i] * step;
        l->to[at] = p->to[i] * step;
        l->items *= l->extent[at];
    }
}

#define STRIDED(type)                                                                                                  \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)to)[i * to_stride] = ((const type *)from)[i * from_stride];

static void copy_line(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, size_t element)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)n * element);
        return;
    }
    switch (element) {
    case 1:
        STRIDED(uint8_t) break;
    case 2:
        STRIDED(uint16_t) break;
    case 4:
        STRIDED(uint32_t) break;
    default:
        STRIDED(uint64_t) break;
    }
}

/* A line of a tile; past the caches where the destination's are whole ones. */
static inline void put_line(char *to, const char *from, size_t bytes, bool past)
{
    size_t done = 0;
#if defined(__x86_64__)
    if (past && (uintptr_t)to % 64 == 0)
        for (; done + 64 <= bytes; done += 64)
            for (size_t i = done; i < done + 64; i += sizeof(__m128i))
                _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
#endif
    memcpy(to + done, from + done, bytes - done);
}

/* What went past the caches is in memory before others are told that it is there. */
static void settle(bool past)
{
#if defined(__x86_64__)
    if (past)
        _mm_sfence();
#endif
}

/* to[i][k] = from[k][i]. Through a buffer whose lines do not share cache sets: source lines in, destination lines out.
 */
#define TRANSPOSE(type)                                                                                                \
    static void transpose_##type(type *to, int64_t to_stride, const type *from, int64_t from_stride, int64_t rows,     \
                                 int64_t columns, bool past)                                                           \
    {                                                                                                                  \
        type buffer[TILE][TILE + 64 / sizeof(type)];                                                                   \
        const int64_t next = past ? TILE : TILE * from_stride; /* in the order of the items */                         \
        if (columns < FEW) {                                                                                           \
            for (int64_t i = 0; i < rows; i++)                                                                         \
                for (int64_t k = 0; k < columns; k++)                                                                  \
                    to[i * to_stride + k] = from[k * from_stride + i];                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        int64_t k = 0;                                                                                                 \
        for (; k + 4 <= columns; k += 4) {                                                                             \
            const type *line[4];                                                                                       \
            int64_t i = 0;                                                                                             \
            for (int j = 0; j < 4; j++) {                                                                              \
                line[j] = from + (k + j) * from_stride;                                                                \
                for (size_t ahead = 0; ahead < TILE * sizeof(type);                                                    \
                     ahead += 64) /* of the next tile, harmless beyond */                                              \
                    __builtin_prefetch((const void *)((uintptr_t)(line[j] + next) + ahead));                           \
            }                                                                                                          \
            for (; i + 4 <= rows; i += 4)                                                                              \
                square_##type(&buffer[i][k], TILE + 64 / sizeof(type), line, i);                                       \
            for (; i < rows; i++)                                                                                      \
                for (int j = 0; j < 4; j++)                                                                            \
                    buffer[i][k + j] = line[j][i];                                                                     \
        }                                                                                                              \
        for (; k < columns; k++)                                                                                       \
            for (int64_t i = 0; i < rows; i++)                                                                         \
                buffer[i][k] = from[k * from_stride + i];                                                              \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            put_line((char *)(to + i * to_stride), (const char *)buffer[i], (size_t)columns * sizeof(type), past);     \
    }

/* Elements i .. i + 3 of four lines into four rows of `to`. */
#define SQUARE(type)                                                                                                   \
    static void square_##type(type *to, int64_t stride, const type *const line[4], int64_t i)                          \
    {                                                                                                                  \
        for (int row = 0; row < 4; row++)                                                                              \
            for (int j = 0; j < 4; j++)                                                                                \
                to[row * stride + j] = line[j][i + row];                                                               \
    }
SQUARE(uint8_t)
SQUARE(uint16_t)
SQUARE(uint64_t)

static inline void square_uint32_t(uint32_t *to, int64_t stride, const uint32_t *const line[4], int64_t i)
{
    square_transpose((const void *[]){line[0] + i, line[1] + i, line[2] + i, line[3] + i}, to, stride);
}

TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

static void copy_tile(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t rows, int64_t columns,
                      size_t element, bool past)
{
    switch (element) {
    case 1:
        transpose_uint8_t(to, to_stride, from, from_stride, rows, columns, past);
        break;
    case 2:
        transpose_uint16_t(to, to_stride, from, from_stride, rows, columns, past);
        break;
    case 4:
        transpose_uint32_t(to, to_stride, from, from_stride, rows, columns, past);
        break;
    default:
        transpose_uint64_t(to, to_stride, from, from_stride, rows, columns, past);
        break;
    }
}

static void copy_item(const struct part *part, const struct loops *l, const int64_t *index, char *to, const char *from,
                      size_t element, bool past)
{
    const struct copy_part *p = &part->p;
    int last = p->rank - 1;
    int64_t n = least(part->step, l->inner - index[l->inner_at] * part->step);
    if (part->other < 0)
        copy_line(to, p->to[last], from, p->from[last], n, element);
    else
        copy_tile(to, p->to[part->other], from, p->from[last],
                  least(part->other_step, l->other - index[l->other_at] * part->other_step), n, element, past);
}

/* Items [begin, end) of one part. */
static void copy_items(const struct part *part, const struct loops *l, const struct kernel_call *call, int64_t begin,
                       int64_t end)
{
    const struct copy_params *params = call->params;
    const size_t element = params->element;
    const char *from = call->in[part->p.input].data;
    char *to = call->out[part->p.output].data;
    int64_t index[LOOPS], f = part->p.from_offset, t = part->p.to_offset, rest = begin;
    for (int i = l->count - 1; i >= 0; i--) {
        index[i] = rest % l->extent[i];
        rest /= l->extent[i];
        f += index[i] * l->from[i];
        t += index[i] * l->to[i];
    }
    for (int64_t item = begin; item < end; item++) {
        copy_item(part, l, index, to + t * (int64_t)element, from + f * (int64_t)element, element,
                  params->far);
        for (int i = l->count - 1; i >= 0; i--) {
            f += l->from[i];
            t += l->to[i];
            if (++index[i] < l->extent[i])
                break;
            f -= index[i] * l->from[i];
            t -= index[i] * l->to[i];
            index[i] = 0;
        }
    }
}

/* What all parts have to be like to be woven. */
static bool weaves(const struct part *part, const struct copy_part *first, size_t element)
{
    const struct copy_part *p = &part->p;
    return p->rank == 2 && part->other < 0 && p->from[1] == 1 && p->to[1] == 1 && p->dims[0] == first->dims[0] &&
           p->rows == first->rows && p->dims[1] * (int64_t)element <= LINE_BYTES;
}

/* Does every row of it begin a line? Of others no more than some lines go past the caches, and what is between them is
 * slower so than all of it kept: 200 + 200 columns take 1.3 of the time. */
static bool in_lines(const struct copy_part *p, size_t element)
{
    return p->to_offset * (int64_t)element % 64 == 0 && p->to[0] * (int64_t)element % 64 == 0;
}

/* A row of all parts at a time: what they are joined to, or cut from, is walked once. */
static graphi_status weave(const struct kernel_call *call, int phase, int share)
{
    const struct copy_params *params = call->params;
    const int64_t element = (int64_t)params->element;
    int64_t begin, end;
    split_range(rows_of(&params->part[0].p, call), params->shares, share, &begin, &end);
    for (int64_t row = begin; row < end; row++)
        for (int i = 0; i < params->parts; i++) {
            const struct copy_part *p = &params->part[i].p;
            put_line((char *)call->out[p->output].data + (p->to_offset + row * p->to[0]) * element,
                     (const char *)call->in[p->input].data + (p->from_offset + row * p->from[0]) * element,
                     (size_t)(p->dims[1] * element), params->far);
        }
    settle(params->far);
    return GRAPHI_OK;
}

static graphi_status copy_run(const struct kernel_call *call, int phase, int share)
{
    const struct copy_params *params = call->params;
    struct loops l;
    int64_t items = 0, begin, end, first = 0;
    for (int i = 0; i < params->parts; i++) {
        loops_of(&params->part[i], call, params->far, &l);
        items += l.items;
    }
    split_range(items, params->shares, share, &begin, &end);
    for (int i = 0; i < params->parts && first < end; i++) {
        loops_of(&params->part[i], call, params->far, &l);
        int64_t b = begin > first ? begin - first : 0, e = least(end - first, l.items);
        if (b < e)
            copy_items(&params->part[i], &l, call, b, e);
        first += l.items;
    }
    settle(params->far);
    return GRAPHI_OK;
}

graphi_status copy_bind(const struct copy_spec *spec, enum isa isa, struct kernel *kernel)
{
    size_t bytes = sizeof(struct copy_params) + (size_t)spec->parts * sizeof(struct part);
    struct copy_params *params = mem_zalloc(bytes);
    if (!params)
        return fail_memory(spec->name, bytes);
    params->element = spec->element;
    params->parts = spec->parts;
    double moved = 0, whole = 0;
    int64_t items = 0;
    int woven = 0;
    for (int i = 0; i < spec->parts; i++) {
        struct loops l;
        struct part *part = &params->part[i];
        part->p = spec->part[i];
        simplify(&part->p);
        choose(part, spec->element);
        loops_of(part, NULL, false, &l);
        items += l.items;
        double elements = 1;
        for (int d = 0; d < part->p.rank; d++)
            elements *= (double)part->p.dims[d];
        moved += 2 * elements * (double)spec->element;
        woven += weaves(part, &params->part[0].p, spec->element);
        whole += in_lines(&part->p, spec->element) ? 2 * elements * (double)spec->element : 0;
    }
    const bool rows = woven == spec->parts, pays = !rows || whole >= 0.75 * moved;
    params->far = isa != ISA_PLAIN && (pays || spec->streaming == GRAPHI_STREAM_ALWAYS) &&
                  stores_past(spec->streaming, moved, rows ? FAR_ROWS_BYTES : FAR_BYTES);
    params->shares = shares_for(moved, rows ? rows_of(&params->part[0].p, NULL) : items);
    *kernel = (struct kernel){.name = spec->name,
                              .run = rows ? weave : copy_run,
                              .params = params,
                              .params_bytes = bytes,
                              .phases = 1,
                              .shares = {params->shares},
                              .bytes = moved};
    return GRAPHI_OK;
}
