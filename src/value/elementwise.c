/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of element-wise host operators (elementwise.h): rows of the joined loop in blocks of 256 elements. Any
 * thread. */
#include "value/elementwise.h"

#include "value/map.h"

struct work {
    const struct elementwise *f;
    graphi_tensor *const *inputs;
    int count;
    enum domain domain;
    graphi_tensor *out;
    const double *p;
};

static void run_row(const struct work *w, const struct map *map, const struct map_row *row)
{
    union block rooms[MAP_OPERANDS], result;
    const int last = map->rank - 1;
    const size_t to_size = element_size(w->out->type);
    for (int64_t at = 0; at < map->dims[last]; at += BLOCK) {
        const int64_t n = map->dims[last] - at < BLOCK ? map->dims[last] - at : BLOCK;
        const void *in[MAP_OPERANDS];
        for (int k = 0; k < w->count; k++) {
            const int64_t stride = map->strides[k + 1][last], offset = row->at[k + 1] + at * stride;
            const graphi_element type = w->inputs[k]->type;
            in[k] =
                element_load(w->domain, type, (const char *)w->inputs[k]->data + offset * (int64_t)element_size(type),
                             stride, n, &rooms[k]);
        }
        void *to = (char *)w->out->data + (size_t)(row->at[0] + at) * to_size;
        if (w->f->truth) {
            w->f->of[w->domain](in, to, n, w->p);
            continue;
        }
        w->f->of[w->domain](in, &result, n, w->p);
        element_store(w->domain, w->out->type, &result, n, to);
    }
}

graphi_status elementwise_run(struct op_call *call, const struct elementwise *f, graphi_tensor *const *inputs,
                              int count, int domain, graphi_element out, const double *p)
{
    int rank;
    int64_t dims[VALUE_RANK];
    struct work w = {.f = f, .inputs = inputs, .count = count, .p = p};
    w.domain = domain >= 0 ? (enum domain)domain : element_domain(inputs[0]->type);
    if (!f->of[w.domain])
        return fail(GRAPHI_UNSUPPORTED, call->where, "found %s of %s, expected another type",
                    graphi_element_name(inputs[0]->type), call->op->name);
    TRY(op_broadcast(call, inputs, count, &rank, dims));
    TRY(op_new(call, 0, out, rank, dims, &w.out));
    struct map map = map_over(rank, dims);
    struct map_row row;
    map_broadcast(&map, rank, dims);
    for (int k = 0; k < count; k++)
        map_broadcast(&map, inputs[k]->rank, inputs[k]->dims);
    map_join(&map);
    if (map_first(&map, &row))
        do
            run_row(&w, &map, &row);
        while (map_next(&map, &row));
    return GRAPHI_OK;
}
