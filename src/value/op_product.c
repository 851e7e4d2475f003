/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: MatMul with broadcast batches, Gemm, Einsum, Det, and the integer forms, whose zero points are
 * subtracted first. Source: ONNX operators of the same names. Any thread. */
#include "base/memory.h"
#include "value/dense.h"
#include "value/families.h"
#include "value/map.h"
#include "value/matmul.h"

#include <math.h>
#include <string.h>

/* Matrices and batches of a product by numpy's rules: a vector is a row on the left, a column on the right. */
struct shapes {
    int rank; /* of the batches */
    int64_t batch[VALUE_RANK], m, n, k, dims[VALUE_RANK];
    int out_rank;
};

static graphi_status find_shapes(const struct op_call *call, const graphi_tensor *a, const graphi_tensor *b,
                                 struct shapes *s)
{
    struct value_text x, y;
    const bool row = a->rank == 1, column = b->rank == 1;
    if (a->rank < 1 || b->rank < 1)
        return op_fail(call, "found %s times %s, expected no scalars", value_describe(a, &x), value_describe(b, &y));
    s->m = row ? 1 : a->dims[a->rank - 2];
    s->k = a->dims[a->rank - 1];
    s->n = column ? 1 : b->dims[b->rank - 1];
    if (b->dims[column ? 0 : b->rank - 2] != s->k)
        return op_fail(call, "found %s times %s, expected inner sizes that agree", value_describe(a, &x),
                       value_describe(b, &y));
    struct graphi_tensor left = {.rank = a->rank > 2 ? a->rank - 2 : 0},
                         right = {.rank = b->rank > 2 ? b->rank - 2 : 0};
    memcpy(left.dims, a->dims, sizeof left.dims);
    memcpy(right.dims, b->dims, sizeof right.dims);
    TRY(op_broadcast(call, (graphi_tensor *const[]){&left, &right}, 2, &s->rank, s->batch));
    memcpy(s->dims, s->batch, sizeof s->dims);
    s->out_rank = s->rank;
    if (!row)
        s->dims[s->out_rank++] = s->m;
    if (!column)
        s->dims[s->out_rank++] = s->n;
    return GRAPHI_OK;
}

/* All batches, into `to`, an array of the domain. */
static void multiply(const struct shapes *s, const graphi_tensor *a, const graphi_tensor *b, const struct dense *x,
                     const struct dense *y, void *to)
{
    struct map map = map_over(s->rank, s->batch);
    struct map_row row;
    const int64_t size = (int64_t)domain_size(x->domain);
    map_broadcast(&map, s->rank, s->batch);
    map_broadcast(&map, a->rank > 2 ? a->rank - 2 : 0, a->dims);
    map_broadcast(&map, b->rank > 2 ? b->rank - 2 : 0, b->dims);
    map_join(&map);
    const int last = map.rank - 1;
    if (!map_first(&map, &row))
        return;
    do
        for (int64_t i = 0; i < map.dims[last]; i++) {
            const int64_t at[3] = {row.at[0] + i * map.strides[0][last], row.at[1] + i * map.strides[1][last],
                                   row.at[2] + i * map.strides[2][last]};
            product_run(&(struct product){.domain = x->domain,
                                          .m = s->m,
                                          .n = s->n,
                                          .k = s->k,
                                          .a = (const char *)x->data + at[1] * s->m * s->k * size,
                                          .b = (const char *)y->data + at[2] * s->k * s->n * size,
                                          .a_row = s->k,
                                          .a_column = 1,
                                          .b_row = s->n,
                                          .b_column = 1,
                                          .c = (char *)to + at[0] * s->m * s->n * size,
                                          .c_row = s->n});
        }
    while (map_next(&map, &row));
}

graphi_status matmul_run(struct op_call *call, int output, const graphi_tensor *a, const graphi_tensor *b,
                         const struct dense *x, const struct dense *y, graphi_element type)
{
    struct shapes s = {0};
    graphi_tensor *out;
    TRY(find_shapes(call, a, b, &s));
    TRY(op_new(call, output, type, s.out_rank, s.dims, &out));
    if (type == (graphi_element[]){T_F32, T_F64, T_I64, T_U64}[x->domain]) {
        multiply(&s, a, b, x, y, out->data);
        return GRAPHI_OK;
    }
    void *room = mem_alloc((size_t)out->count * domain_size(x->domain));
    if (!room)
        return fail_memory(call->where, (size_t)out->count * 8);
    multiply(&s, a, b, x, y, room);
    element_store(x->domain, type, room, out->count, out->data);
    mem_free(room);
    return GRAPHI_OK;
}

static graphi_status run_matmul(struct op_call *call)
{
    struct dense x, y = {0};
    TRY(op_same_types(call, 0, 2));
    const enum domain domain = element_domain(call->in[0]->type);
    graphi_status status = dense_load(call->where, domain, call->in[0], &x);
    if (status == GRAPHI_OK)
        status = dense_load(call->where, domain, call->in[1], &y);
    if (status == GRAPHI_OK)
        status = matmul_run(call, 0, call->in[0], call->in[1], &x, &y, call->in[0]->type);
    dense_free(&x);
    dense_free(&y);
    return status;
}

static graphi_status add_c(struct op_call *call, const graphi_tensor *c, enum domain domain, double beta, void *to,
                           const int64_t *dims)
{
    struct dense more;
    struct value_text text;
    struct map map = map_over(2, dims);
    struct map_row row;
    int rank;
    int64_t all[VALUE_RANK];
    struct graphi_tensor like = {.rank = 2, .dims = {dims[0], dims[1]}};
    TRY(op_broadcast(call, (graphi_tensor *const[]){&like, (graphi_tensor *)c}, 2, &rank, all));
    if (rank != 2 || all[0] != dims[0] || all[1] != dims[1])
        return op_fail(call, "found C %s, expected one that broadcasts to the result", value_describe(c, &text));
    TRY(dense_load(call->where, domain, c, &more));
    map_broadcast(&map, 2, dims);
    map_broadcast(&map, c->rank, c->dims);
    if (map_first(&map, &row))
        do
            for (int64_t i = 0; i < map.dims[1]; i++) {
                const int64_t at = row.at[0] + i, from = row.at[1] + i * map.strides[1][1];
                if (domain == DOMAIN_F32)
                    ((float *)to)[at] += (float)beta * ((const float *)more.data)[from];
                else if (domain == DOMAIN_F64)
                    ((double *)to)[at] += beta * ((const double *)more.data)[from];
                else
                    ((int64_t *)to)[at] += (int64_t)beta * ((const int64_t *)more.data)[from];
            }
        while (map_next(&map, &row));
    dense_free(&more);
    return GRAPHI_OK;
}

static void scale(enum domain domain, double by, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (domain == DOMAIN_F32)
            ((float *)to)[i] *= (float)by;
        else if (domain == DOMAIN_F64)
            ((double *)to)[i] *= by;
        else
            ((int64_t *)to)[i] *= (int64_t)by;
}

static graphi_status run_gemm(struct op_call *call)
{
    struct dense x, y = {0};
    struct value_text p, q;
    graphi_tensor *out;
    TRY(op_same_types(call, 0, 3));
    const graphi_tensor *a = call->in[0], *b = call->in[1], *c = op_in(call, 2);
    const bool ta = op_int(call, "transA", 0) != 0, tb = op_int(call, "transB", 0) != 0;
    const double alpha = op_float(call, "alpha", 1), beta = op_float(call, "beta", 1);
    if (a->rank != 2 || b->rank != 2 || a->dims[ta ? 0 : 1] != b->dims[tb ? 1 : 0])
        return op_fail(call, "found %s times %s, expected matrices whose inner sizes agree", value_describe(a, &p),
                       value_describe(b, &q));
    const int64_t dims[2] = {a->dims[ta], b->dims[!tb]};
    const enum domain domain = element_domain(a->type);
    TRY(op_new(call, 0, a->type, 2, dims, &out));
    void *room = mem_alloc((size_t)out->count * 8);
    graphi_status status =
        room ? dense_load(call->where, domain, a, &x) : fail_memory(call->where, (size_t)out->count * 8);
    if (!room)
        return status;
    if (status == GRAPHI_OK)
        status = dense_load(call->where, domain, b, &y);
    if (status == GRAPHI_OK) {
        product_run(&(struct product){.domain = domain,
                                      .m = dims[0],
                                      .n = dims[1],
                                      .k = a->dims[!ta],
                                      .a = x.data,
                                      .b = y.data,
                                      .a_row = ta ? 1 : a->dims[1],
                                      .a_column = ta ? a->dims[1] : 1,
                                      .b_row = tb ? 1 : b->dims[1],
                                      .b_column = tb ? b->dims[1] : 1,
                                      .c = room,
                                      .c_row = dims[1]});
        if (alpha != 1)
            scale(domain, alpha, room, out->count);
        status = c && beta != 0 ? add_c(call, c, domain, beta, room, dims) : GRAPHI_OK;
    }
    if (status == GRAPHI_OK)
        element_store(domain, a->type, room, out->count, out->data);
    dense_free(&x);
    dense_free(&y);
    mem_free(room);
    return status;
}

/* Determinants by elimination with the largest pivot. */
static double determinant(double *m, int64_t n)
{
    double result = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            best = fabs(m[i * n + k]) > fabs(m[best * n + k]) ? i : best;
        if (m[best * n + k] == 0)
            return 0;
        for (int64_t j = 0; j < n && best != k; j++) {
            const double swap = m[k * n + j];
            m[k * n + j] = m[best * n + j];
            m[best * n + j] = swap;
        }
        result *= best == k ? m[k * n + k] : -m[k * n + k];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = n - 1; j >= k; j--)
                m[i * n + j] -= m[i * n + k] / m[k * n + k] * m[k * n + j];
    }
    return result;
}

static graphi_status run_det(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return op_fail(call, "found rank %d for Det, expected square matrices", x->rank);
    const int64_t n = x->dims[x->rank - 1];
    TRY(op_new(call, 0, x->type, x->rank - 2, x->dims, &out));
    double *room = mem_alloc((size_t)(n * n) * sizeof *room);
    if (!room)
        return fail_memory(call->where, (size_t)(n * n) * sizeof *room);
    for (int64_t k = 0; k < out->count; k++) {
        for (int64_t i = 0; i < n * n; i++)
            room[i] = value_double(x, k * n * n + i);
        const double number = determinant(room, n);
        element_store(DOMAIN_F64, x->type, &number, 1, (char *)out->data + (size_t)k * element_size(x->type));
    }
    mem_free(room);
    return GRAPHI_OK;
}

const struct host_op host_ops_product[] = {
    {"MatMul", 2, 2, 1, "", run_matmul, 0},
    {"Gemm", 2, 3, 1, "alpha beta transA transB", run_gemm, 0},
    {"Det", 1, 1, 1, "", run_det, 0},
    {0},
};
