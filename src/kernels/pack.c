/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of operands (pack.h) and the kernel that packs a whole weight, which runs once per update of that weight and
 * not once per use. Usual size: 512 x 512 floats, 8 shares. */
#include "kernels/pack.h"

#include <string.h>

#include "base/status.h"
#include "kernels/shares.h"
#include "kernels/square.h"

enum { TRANSPOSE_STEP = 16 };

/* Widths are multiples of 16, so that only the last panel has a part of a vector, and as even as that allows: 96 is 48
 * + 48, not 64 + 32. */
int panel_width(int64_t n)
{
    if (n <= PANEL_MAX)
        return n > 0 ? (int)n : 1;
    return (int)round_up(divide_up(n, divide_up(n, PANEL_MAX)), 16);
}

uint16_t bf16_round(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline uint32_t pair_of(float low, float high)
{
    return bf16_round(low) | (uint32_t)bf16_round(high) << 16;
}

static void pack_straight(const float *source, int64_t ld, int64_t k, int width, float *target)
{
    for (int64_t r = 0; r < k; r++)
        memcpy(target + r * width, source + r * ld, (size_t)width * sizeof *target);
}

/* target[r * width + c] = source[c * ld + r] for a 4 x 4 block. */
static inline void transpose_at(const float *source, int64_t ld, float *target, int width)
{
    square_transpose((const void *[]){source, source + ld, source + 2 * ld, source + 3 * ld}, target, width);
}

/* Reads a few source rows as they lie in memory and writes whole cache lines of the block. */
static void pack_transposed(const float *source, int64_t ld, int64_t k, int width, float *target)
{
    for (int first = 0; first < width; first += TRANSPOSE_STEP) {
        const int last = (int)least(first + TRANSPOSE_STEP, width), squares = first + (last - first) / 4 * 4;
        int64_t r = 0;
        for (; r + 4 <= k; r += 4)
            for (int c = first; c < squares; c += 4)
                transpose_at(source + c * ld + r, ld, target + r * width + c, width);
        for (; r < k; r++)
            for (int c = first; c < squares; c++)
                target[r * width + c] = source[c * ld + r];
        for (int c = squares; c < last; c++)
            for (r = 0; r < k; r++)
                target[r * width + c] = source[c * ld + r];
    }
}

static void pack_pairs(const float *source, int64_t row_step, int64_t col_step, int64_t k, int width,
                       const struct pair_functions *round, uint32_t *target)
{
    for (int64_t r = 0; col_step == 1 && r < k; r += 2, target += width) {
        if (r + 1 < k)
            round->interleave(source + r * row_step, source + (r + 1) * row_step, width, target);
        else
            round->single(source + r * row_step, width, target);
    }
    for (int64_t r = 0; col_step != 1 && r < k; r += 2, target += width) {
        const float *low = source + r * row_step;
        for (int c = 0; c < width; c++)
            target[c] = pair_of(low[c * col_step], r + 1 < k ? low[c * col_step + row_step] : 0.0f);
    }
}

void pack_block(const float *source, int64_t ld, bool trans, int64_t k, int width, const struct pair_functions *round,
                void *target)
{
    if (round)
        pack_pairs(source, trans ? 1 : ld, trans ? ld : 1, k, width, round, target);
    else if (trans)
        pack_transposed(source, ld, k, width, target);
    else
        pack_straight(source, ld, k, width, target);
}

void unpack_block(const float *packed, int64_t ld, bool trans, int64_t k, int width, float *source)
{
    for (int64_t r = 0; !trans && r < k; r++)
        memcpy(source + r * ld, packed + r * width, (size_t)width * sizeof *source);
    for (int64_t from = 0; trans && from < k; from += TRANSPOSE_STEP)
        for (int c = 0; c < width; c++)
            for (int64_t r = from; r < least(from + TRANSPOSE_STEP, k); r++)
                source[c * ld + r] = packed[r * width + c];
}

void pack_row_pairs(const float *source, int64_t ld, int64_t m, int64_t k, const struct pair_functions *round,
                    uint32_t *target, int64_t target_ld)
{
    for (int64_t r = 0; r < m; r++, source += ld, target += target_ld)
        round->neighbours(source, k, target);
}

/* --- the kernel --- */

struct pack_params {
    int64_t k, n, part, ld; /* part: columns of one source */
    int width, panels, shares;
    bool trans;
    const struct pair_functions *round; /* NULL: floats */
};

/* Where a panel begins: its columns and those before it lie in one source. */
struct panel {
    float *source; /* NULL: the caller left it out */
    void *target;
    int width;
};

static struct panel panel_at(const struct pack_params *p, const struct kernel_call *call, int64_t panel)
{
    int64_t first = panel * p->width;
    float *source = call->in[first / p->part].data;
    return (struct panel){.source = source ? source + first % p->part * (p->trans ? p->ld : 1) : NULL,
                          .target = (char *)call->out[0].data + 4 * first * pair_rows(p->k, p->round),
                          .width = (int)least(p->n - first, p->width)};
}

static void pack_panel(const struct pack_params *p, struct panel panel)
{
    pack_block(panel.source, p->ld, p->trans, p->k, panel.width, p->round, panel.target);
}

static void unpack_panel(const struct pack_params *p, struct panel panel)
{
    if (panel.source)
        unpack_block(panel.target, p->ld, p->trans, p->k, panel.width, panel.source);
}

static inline graphi_status each_panel(const struct kernel_call *call, int share,
                                       void (*act)(const struct pack_params *p, struct panel panel))
{
    const struct pack_params *p = call->params;
    int64_t begin, end;
    split_range(p->panels, p->shares, share, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        act(p, panel_at(p, call, i));
    return GRAPHI_OK;
}

static graphi_status pack_run(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    return each_panel(call, share, pack_panel);
}

static graphi_status pack_undo(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    return each_panel(call, share, unpack_panel);
}

int64_t gemm_packed_count(int64_t k, int64_t n, graphi_dtype dtype)
{
    return dtype == GRAPHI_BF16 ? (k + 1) / 2 * 2 * n : k * n;
}

graphi_status gemm_pack_bind(int sources, int64_t k, int64_t part, int64_t ld, bool trans, graphi_dtype packed,
                             enum isa isa, struct kernel *kernel)
{
    const int64_t n = sources * part;
    if (packed != GRAPHI_F32 && packed != GRAPHI_BF16)
        return fail(GRAPHI_UNSUPPORTED, "pack", "found packed element type %s, expected float32 or bfloat16",
                    graphi_dtype_name(packed));
    if (sources > 1 && part % PANEL_MAX)
        return fail(GRAPHI_UNSUPPORTED, "pack",
                    "found %d sources of %lld columns side by side, expected a multiple of %d", sources,
                    (long long)part, PANEL_MAX);
    if (k < 0 || n < 0 || ld < (trans ? k : part))
        return fail(GRAPHI_INVALID, "pack",
                    "found %lld x %lld with leading dimension %lld, expected one that holds a row", (long long)k,
                    (long long)n, (long long)ld);
    struct pack_params p = {.k = k,
                            .n = n,
                            .part = part ? part : 1,
                            .ld = ld,
                            .width = panel_width(n),
                            .panels = (int)panel_count(n),
                            .trans = trans,
                            .round = packed == GRAPHI_BF16 ? pair_functions(isa) : NULL};
    p.shares = clamp_shares(p.panels);
    double written = (double)(gemm_packed_count(k, n, packed) * (int64_t)graphi_dtype_size(packed));
    struct kernel like = {
        .name = "pack", .run = pack_run, .shares = {p.shares}, .bytes = 4.0 * (double)k * (double)n + written,
        .undo = p.round ? NULL : pack_undo};
    return kernel_make(like, &p, sizeof p, kernel);
}
