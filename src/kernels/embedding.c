/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding lookup, its gradient and one-hot rows. Usual size: a table of 10,000 x 512 and some thousand ids, so the
 * gradient's zeroing (20 MB) is most of its work. One phase each, any thread; no sum depends on the order of shares,
 * because each share owns its part of the table and walks all ids in order. */
#include "kernels/embedding.h"

#include "kernels/each_isa.h"
#include "kernels/shares.h"

#include <string.h>

#define DECLARE(isa) void embedding_add_##isa(float *, const float *, int64_t);
EACH_ISA(DECLARE)

row_add row_add_of(enum isa isa)
{
#define ENTRY(isa) embedding_add_##isa,
    static const row_add adds[] = {EACH_ISA(ENTRY)};
    return adds[isa];
}

struct embedding_params {
    struct embedding_spec spec;
    int shares, blocks; /* gradient: shares = row ranges x column blocks */
    row_add add;
};

static graphi_status embedding_run(const struct kernel_call *call, int phase, int share)
{
    const struct embedding_params *p = call->params;
    const float *table = call->in[0].data;
    const int32_t *ids = call->in[1].data;
    float *y = call->out[0].data;
    int64_t begin, end;
    int32_t id;
    split_range(embedding_count(&p->spec, &call->in[1]), p->shares, share, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        TRY(embedding_id(&p->spec, "embedding", ids, i, &id));
        memcpy(y + i * p->spec.ld_y, table + id * p->spec.ld_table, (size_t)p->spec.columns * sizeof(float));
    }
    return GRAPHI_OK;
}

static graphi_status gradient_run(const struct kernel_call *call, int phase, int share)
{
    const struct embedding_params *p = call->params;
    const int32_t *ids = call->in[0].data;
    const float *dy = call->in[1].data;
    float *dtable = call->out[0].data;
    int64_t rows = p->spec.rows, columns = p->spec.columns, r0, r1, c0, c1;
    const int64_t count = embedding_count(&p->spec, &call->in[0]);
    int32_t id;
    split_range(rows, p->shares / p->blocks, share / p->blocks, &r0, &r1);
    share_channels(columns, p->blocks, share % p->blocks, &c0, &c1);
    for (int64_t r = r0; r < r1 && c1 > c0; r++)
        memset(dtable + r * columns + c0, 0, (size_t)(c1 - c0) * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        TRY(embedding_id(&p->spec, "embedding_grad", ids, i, &id));
        if (id >= r0 && id < r1)
            p->add(dtable + id * columns + c0, dy + i * p->spec.ld_y + c0, c1 - c0);
    }
    return GRAPHI_OK;
}

static graphi_status one_hot_run(const struct kernel_call *call, int phase, int share)
{
    const struct embedding_params *p = call->params;
    const int32_t *ids = call->in[0].data;
    float *y = call->out[0].data;
    int64_t begin, end;
    int32_t id;
    split_range(embedding_count(&p->spec, &call->in[0]), p->shares, share, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        TRY(embedding_id(&p->spec, "one_hot", ids, i, &id));
        memset(y + i * p->spec.ld_y, 0, (size_t)p->spec.rows * sizeof(float));
        y[i * p->spec.ld_y + id] = 1;
    }
    return GRAPHI_OK;
}

static graphi_status bind(const struct embedding_spec *spec, enum isa isa, const char *name, kernel_function run,
                          double bytes, struct kernel *kernel)
{
    const struct embedding_params p = {
        .spec = *spec, .shares = shares_for(bytes, spec->count), .blocks = 1, .add = row_add_of(isa)};
    return kernel_make((struct kernel){.name = name, .run = run, .shares = {p.shares}, .bytes = bytes}, &p, sizeof p,
                       kernel);
}

graphi_status embedding_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel)
{
    return bind(spec, isa, "embedding", embedding_run, 4.0 * (double)spec->count * (double)(2 * spec->columns + 1),
                kernel);
}

/* Columns first, in blocks of 128 or more: each share reads all ids. Rows when columns do not suffice. */
graphi_status embedding_gradient_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel)
{
    double bytes = 4 * ((double)spec->count * (double)(spec->columns + 1) + (double)spec->rows * (double)spec->columns);
    TRY(bind(spec, isa, "embedding_grad", gradient_run, bytes, kernel));
    struct embedding_params *p = kernel->params;
    int wanted = shares_for(bytes, 16);
    int64_t blocks = spec->columns / 128;
    p->blocks = blocks < 1 ? 1 : blocks > wanted ? wanted : (int)blocks;
    int ranges = wanted / p->blocks;
    if (ranges > spec->rows)
        ranges = (int)spec->rows;
    p->shares = p->blocks * (ranges < 1 ? 1 : ranges);
    kernel->shares[0] = p->shares;
    kernel->flops = (double)spec->count * (double)spec->columns;
    return GRAPHI_OK;
}

graphi_status one_hot_bind(const struct embedding_spec *spec, enum isa isa, struct kernel *kernel)
{
    return bind(spec, isa, "one_hot", one_hot_run, 4.0 * (double)spec->count * (double)(spec->rows + 1), kernel);
}
