/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of convolution weights: made in a first phase of the kernel that reads them, or by a kernel of their own, once
 * for all uses of weights that do not change.
 *
 * - direct: [group][panel][tap][depth][width of the panel]: result channels in panels (pack.h), source channels as
 *   rows; bfloat16: pairs of source channels. Backward-data: each tap transposed.
 * - Winograd: [panel][point][source channel][width of the panel]; backward-data: taps transposed and in reversed order;
 *   bfloat16: pairs of source channels.
 *
 * Units of work: one tap of a panel, or the points of a few source channels of a panel. Usual: 3 x 3 x 192 x 384. */
#include "kernels/conv_pack.h"

#include <stdalign.h>

#include "base/status.h"
#include "kernels/pack.h"
#include "kernels/shares.h"

/* MANY_TILES and LARGE_FORM weigh memory against time: `graphi bench frameworks googlenet --inference --size small`
 * shows both. */
enum {
    WEIGHT_ROWS = 8 /* source channels transformed at a time */,
    TAPS_MAX = 36,
    PAIR_POINTS_MAX = 36,
    MANY_TILES = 32,
    LARGE_FORM = 1 << 20 /* bytes */
};

/* F(outputs, taps) of the algorithm with so many points. */
static const struct winograd_scheme *scheme_of(int64_t taps, enum conv_algorithm algorithm, bool weights, enum isa isa)
{
    int64_t points = 2 * (algorithm - CONV_WINOGRAD_4) + 4, outputs = points + 1 - taps;
    return winograd_scheme(isa, (int)(weights ? taps : outputs), (int)(weights ? outputs : taps));
}

const struct winograd_scheme *conv_winograd_scheme(const struct conv_spec *spec, enum conv_algorithm algorithm,
                                                   enum isa isa)
{
    return scheme_of(spec->shape.kh, algorithm, spec->direction == CONV_BACKWARD_WEIGHTS, isa);
}

bool conv_winograd_pairs(const struct conv_spec *spec, enum conv_algorithm algorithm, enum isa isa)
{
    int64_t depth = spec->direction == CONV_BACKWARD_DATA ? spec->shape.k : spec->shape.c;
    return spec->multiplicands == GRAPHI_BF16 && isa == ISA_BF16 && algorithm > CONV_DIRECT &&
           algorithm < CONV_WINOGRAD_8 && (spec->direction == CONV_BACKWARD_WEIGHTS || depth % 2 == 0);
}

void conv_packing_init(const struct conv_form *form, enum isa isa, struct conv_packing *p)
{
    *p = (struct conv_packing){.form = *form, .backward = form->direction == CONV_BACKWARD_DATA,
                               .round = form->multiplicands == GRAPHI_BF16 ? pair_functions(isa) : NULL,
                               .taps = form->kh * form->kw};
    p->source_c = (p->backward ? form->k : form->c) / form->groups;
    p->result_c = (p->backward ? form->c : form->k) / form->groups;
    p->depth = pair_rows(p->source_c, p->round);
    p->width = panel_width(p->result_c);
    p->panels = panel_count(p->result_c);
    if (form->algorithm == CONV_DIRECT) {
        p->units = p->taps * p->panels * form->groups;
        p->bytes = (size_t)(4 * p->taps * p->depth * p->result_c * form->groups);
        return;
    }
    p->scheme = scheme_of(form->kh, form->algorithm, false, isa);
    p->units = p->panels * ((p->source_c + WEIGHT_ROWS - 1) / WEIGHT_ROWS);
    p->bytes = (size_t)(4 * p->scheme->points * p->scheme->points * p->depth * p->result_c);
}

/* Winograd's points are several times the weights. Where they are large, and met by enough tiles that making them each
 * time costs 1 to 8 % of the convolution, 3 % of GoogLeNet small's inference, they are in memory only meanwhile;
 * several convolutions of one step share them. */
static bool made_each_time(const struct conv_spec *spec, const struct conv_form *form, enum isa isa)
{
    const struct conv_shape *s = &spec->shape;
    const bool backward = spec->direction == CONV_BACKWARD_DATA;
    const int64_t side = conv_winograd_scheme(spec, form->algorithm, isa)->outputs;
    const int64_t tiles = s->n * divide_up(backward ? s->h : s->oh, side) * divide_up(backward ? s->w : s->ow, side);
    struct conv_packing packing;
    conv_packing_init(form, isa, &packing);
    return tiles >= MANY_TILES && packing.bytes >= LARGE_FORM;
}

enum conv_form_keep conv_form_of(const struct conv_spec *spec, enum isa isa, struct conv_form *form)
{
    const struct conv_shape *s = &spec->shape;
    *form = (struct conv_form){spec->algorithm, spec->direction, GRAPHI_F32, s->kh, s->kw, s->c, s->k, s->groups};
    if (form->algorithm == CONV_DIRECT || conv_winograd_pairs(spec, form->algorithm, isa))
        form->multiplicands = spec->multiplicands;
    if (form->algorithm != CONV_DIRECT)
        return made_each_time(spec, form, isa) ? CONV_FORM_EACH_TIME : CONV_FORM_KEPT;
    const bool other = spec->direction == CONV_BACKWARD_DATA || spec->multiplicands == GRAPHI_BF16 || s->groups > 1 ||
                       panel_count(s->k) > 1;
    return other ? CONV_FORM_KEPT : CONV_FORM_NONE;
}

/* Where one tap of a panel begins among the weights and in the form; its columns there. */
static int64_t tap_at(const struct conv_packing *p, int64_t unit, int64_t *source, int64_t *target)
{
    int64_t tap = unit % p->taps, panel = unit / p->taps % p->panels, group = unit / p->taps / p->panels;
    int64_t first = panel * p->width, width = least(p->result_c - first, p->width);
    int64_t k = p->form.k, k_group = k / p->form.groups, c_group = p->form.c / p->form.groups;
    *source = tap * c_group * k + group * k_group + (p->backward ? first * k : first);
    *target = p->taps * p->depth * (group * p->result_c + first) + tap * p->depth * width;
    return width;
}

static void pack_tap(const struct conv_packing *p, const float *w, char *target, int64_t unit)
{
    int64_t from, to, width = tap_at(p, unit, &from, &to);
    pack_block(w + from, p->form.k, p->backward, p->source_c, (int)width, p->round, target + 4 * to);
}

/* Rows' points [point][row][width] to pairs of rows, `plane` pairs between points. */
static void pair_points(const struct pair_functions *round, const float *points, int64_t count, int64_t rows,
                        int64_t width, uint32_t *target, int64_t plane)
{
    for (int64_t point = 0; point < count; point++)
        for (int64_t r = 0; r < rows; r += 2) {
            const float *low = points + (point * rows + r) * width;
            round->interleave(low, low + width, width, target + point * plane + r / 2 * width);
        }
}

/* pad: elements between two planes of points. */
static void transform_rows(const struct conv_packing *p, const float *w, float *target, int64_t unit, int64_t pad)
{
    alignas(64) float taps[TAPS_MAX * WEIGHT_ROWS * PANEL_MAX], whole[PAIR_POINTS_MAX * WEIGHT_ROWS * PANEL_MAX];
    const int64_t k = p->form.k, blocks = (p->source_c + WEIGHT_ROWS - 1) / WEIGHT_ROWS;
    int64_t panel = unit / blocks, from = unit % blocks * WEIGHT_ROWS, rows = least(p->source_c - from, WEIGHT_ROWS);
    int64_t first = panel * p->width;
    int width = (int)least(p->result_c - first, p->width), side = p->scheme->taps, points = p->scheme->points;
    for (int tap = 0; tap < p->taps; tap++) {
        const float *part = w + (p->backward ? p->taps - 1 - tap : tap) * p->form.c * k;
        part += p->backward ? first * k + from : from * k + first;
        pack_block(part, k, p->backward, rows, width, NULL, taps + tap * rows * width);
    }
    float *u = target + points * points * p->depth * first + from / (p->round ? 2 : 1) * width;
    int64_t plane = p->round ? rows * width : p->source_c * width + pad;
    for (int64_t r = 0; r < rows; r++) {
        struct winograd_source source = {.source = taps + r * width, .row = side * rows * width, .pixel = rows * width,
                                         .y1 = side, .x1 = side, .channels = width,
                                         .v = (p->round ? whole : u) + r * width, .plane = plane};
        p->scheme->tap(&source);
    }
    if (p->round)
        pair_points(p->round, whole, points * points, rows, width, (uint32_t *)u, p->depth * width + pad);
}

void conv_packing_unit(const struct conv_packing *p, const float *w, void *target, int64_t unit)
{
    if (p->scheme)
        transform_rows(p, w, target, unit, 0);
    else
        pack_tap(p, w, target, unit);
}

void conv_packing_columns(const struct conv_packing *p, const float *w, int64_t begin, int64_t end, void *target)
{
    struct conv_packing panel = *p;
    panel.result_c = panel.width = end - begin;
    for (int64_t unit = 0; unit < divide_up(p->source_c, WEIGHT_ROWS); unit++)
        transform_rows(&panel, w + (p->backward ? begin * p->form.k : begin), target, unit, CONV_PLANE_PAD);
}

/* --- the kernel --- */

static bool exists(const struct conv_form *f)
{
    if (f->algorithm <= CONV_AUTO || f->algorithm >= CONV_ALGORITHMS || f->direction == CONV_BACKWARD_WEIGHTS ||
        f->kh < 1 || f->kw < 1 || f->c < 1 || f->k < 1 || f->groups < 1 || f->c % f->groups || f->k % f->groups ||
        (f->multiplicands != GRAPHI_F32 && f->multiplicands != GRAPHI_BF16))
        return false;
    int64_t depth = f->direction == CONV_BACKWARD_DATA ? f->k : f->c;
    bool pairs = f->multiplicands == GRAPHI_BF16;
    return f->algorithm == CONV_DIRECT ||
           (f->kh == f->kw && f->groups == 1 && (!pairs || (depth % 2 == 0 && f->algorithm < CONV_WINOGRAD_8)) &&
            scheme_of(f->kh, f->algorithm, false, ISA_PLAIN));
}

int64_t conv_form_count(const struct conv_form *form)
{
    struct conv_packing p;
    if (!exists(form))
        return 0;
    conv_packing_init(form, ISA_PLAIN, &p);
    return (int64_t)(p.bytes / graphi_dtype_size((graphi_dtype)form->multiplicands));
}

struct pack_params {
    struct conv_packing packing;
    int shares;
};

static graphi_status pack_run(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    const struct pack_params *p = call->params;
    int64_t begin, end;
    split_range(p->packing.units, p->shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end; unit++)
        conv_packing_unit(&p->packing, call->in[0].data, call->out[0].data, unit);
    return GRAPHI_OK;
}

static graphi_status pack_undo(const struct kernel_call *call, int phase, int share)
{
    (void)phase;
    const struct pack_params *params = call->params;
    const struct conv_packing *p = &params->packing;
    int64_t begin, end;
    split_range(p->units, params->shares, share, &begin, &end);
    for (int64_t unit = begin; unit < end && call->in[0].data; unit++) {
        int64_t to, from, width = tap_at(p, unit, &to, &from);
        unpack_block((const float *)call->out[0].data + from, p->form.k, p->backward, p->source_c, (int)width,
                     (float *)call->in[0].data + to);
    }
    return GRAPHI_OK;
}

graphi_status conv_pack_bind(const struct conv_form *form, enum isa isa, struct kernel *kernel)
{
    if (!exists(form))
        return fail(GRAPHI_INVALID, "conv_pack",
                    "found weights %lldx%lldx%lldx%lld in %lld groups and algorithm %d, expected ones that fit",
                    (long long)form->kh, (long long)form->kw, (long long)form->c, (long long)form->k,
                    (long long)form->groups, (int)form->algorithm);
    struct pack_params p = {0};
    conv_packing_init(form, isa, &p.packing);
    p.shares = clamp_shares(p.packing.units);
    struct kernel like = {.name = "conv_pack",
                          .run = pack_run,
                          .undo = p.packing.scheme || p.packing.round ? NULL : pack_undo,
                          .shares = {p.shares},
                          .bytes = 4.0 * (double)(form->kh * form->kw * (form->c / form->groups) * form->k) +
                                   (double)p.packing.bytes};
    return kernel_make(like, &p, sizeof p, kernel);
}
