/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: result = epilogue(sum over pairs of op(a) op(b)), and pack, the form of b that the kernel reads fastest.
 *
 * Forms of one pair:
 * - rows: a [..., M, K], b [K, N]: all leading dimensions of a are rows; dimension 0 of a may be bounded (a rows)
 * - reduction: trans_a, a [K, M], b [K, N] (both may have bounded rows: then K is, in each pair for itself): a weight
 *   gradient
 * - batch: all others: leading dimensions broadcast as numpy's, and what broadcasting repeats is never stored. One of
 *   them may be bounded, the first of the result; it meets the same or a 1
 *
 * trans_a, trans_b: the last two dimensions are stored the other way round.
 *
 * Passes set: `pairs` (inputs a0, b0, a1, b1, ...; not for batches), `packed_b` (every b comes from `pack`; not for
 * batches), `base` (1: the sums begin with the input behind the pairs, which has the result's type; not for batches),
 * `program` and `outputs` (epilogue.h). */
#include "ops/matmul.h"

#include "base/memory.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"
#include "ops/build.h"
#include "ops/epilogue.h"

#include <string.h>

static const struct op_attribute matmul_attributes[] = {
    [PRODUCT_TRANS_A] = {.name = "trans_a", .meaning = "1: a is [...,K,M]", .type = GRAPHI_INT},
    [PRODUCT_TRANS_B] = {.name = "trans_b", .meaning = "1: b is [...,N,K]", .type = GRAPHI_INT},
    [PRODUCT_PAIRS] = {.name = "pairs", .type = GRAPHI_INT, .internal = true, .i = 1},
    [PRODUCT_PACKED] = {.name = "packed_b", .type = GRAPHI_INT, .internal = true},
    [PRODUCT_BASE] = {.name = "base", .type = GRAPHI_INT, .internal = true},
    [PRODUCT_PROGRAM] = EPILOGUE_ATTRIBUTES, /* and PRODUCT_OUTPUTS */
    {0},
};
static const struct op_attribute pack_attributes[] = {
    {.name = "trans", .type = GRAPHI_INT, .internal = true}, /* the source is [N, K] */
    {.name = "dtype", .type = GRAPHI_INT, .internal = true}, /* graphi_dtype of the packed form: float32 or bfloat16 */
    {0},
};

/* What shape rule and binding know of an operand: dims, and whether dimension 0 is bounded. */
struct extent {
    int rank;
    const int64_t *dims;
    bool bounded;
};

enum form { ROWS, REDUCTION, BATCH };

struct product {
    enum form form;
    int64_t m, n, k;
    int leads; /* leading dimensions of the batch, or of the rows */
    int64_t lead[GEMM_MAX_LEADS];
};

/* An operand's size where the result has leading dimension i of `leads`: 1 where it has none. */
static int64_t lead_of(const struct extent *operand, int leads, int i)
{
    int at = i - (leads - (operand->rank - 2));
    return at < 0 ? 1 : operand->dims[at];
}

/* May the bounded dimension of `one` be the first of the result? */
static bool bound_fits(const struct extent *one, const struct extent *other, int leads)
{
    int64_t size = lead_of(other, leads, 0);
    return !one->bounded || (one->rank == leads + 2 && (other->bounded ? size == one->dims[0] : size == 1));
}

static bool broadcast_leads(const struct extent *a, const struct extent *b, struct product *p)
{
    p->leads = (a->rank > b->rank ? a->rank : b->rank) - 2;
    for (int i = 0; i < p->leads; i++) {
        int64_t x = lead_of(a, p->leads, i), y = lead_of(b, p->leads, i);
        if (x != y && x != 1 && y != 1)
            return false;
        p->lead[i] = x == 1 ? y : x;
    }
    return bound_fits(a, b, p->leads) && bound_fits(b, a, p->leads);
}

/* The product of one pair; false when the operands do not fit. b_is_pairs: k is known up to packing's rounding. */
static bool product_of(const struct node *node, const struct extent *a, const struct extent *b, bool b_is_pairs,
                       struct product *p)
{
    bool trans_a = product_trans_a(node), trans_b = product_trans_b(node);
    if (a->rank < 2 || b->rank < 2)
        return false;
    const int64_t *x = a->dims + a->rank - 2, *y = b->dims + b->rank - 2;
    *p = (struct product){.m = x[trans_a], .k = x[!trans_a], .n = y[!trans_b]};
    int64_t b_k = y[trans_b];
    if (b_is_pairs ? b_k != (p->k + 1) / 2 * 2 : b_k != p->k)
        return false;
    if (b->rank == 2 && !trans_a) {
        p->form = ROWS;
        p->leads = a->rank - 2;
        memcpy(p->lead, a->dims, (size_t)p->leads * sizeof *p->lead);
        for (int i = 0; i < p->leads; i++)
            p->m *= a->dims[i];
        return !b->bounded;
    }
    if (a->rank == 2 && b->rank == 2) {
        p->form = REDUCTION;
        return a->bounded == b->bounded && !(trans_b && b->bounded);
    }
    p->form = BATCH;
    return broadcast_leads(a, b, p);
}

/* Is pair i a product, and one that may be added to the first: of its form and size, of the same rows unless the rows
 * are what is summed over, and packed alike? */
static bool pair_fits(const struct shape_call *call, int pair, const struct product *first, struct product *p)
{
    const struct value_type *a = call->in[2 * pair], *b = call->in[2 * pair + 1];
    const struct extent x = {a->rank, a->dims, a->symbol >= 0}, y = {b->rank, b->dims, b->symbol >= 0};
    const bool packed = product_packed(call->node), pairs16 = packed && b->dtype == GRAPHI_BF16;
    if (a->dtype != GRAPHI_F32 || (b->dtype != GRAPHI_F32 && !pairs16) || b->dtype != call->in[1]->dtype ||
        (a->symbol >= 0 && b->symbol >= 0 && a->symbol != b->symbol) || !product_of(call->node, &x, &y, pairs16, p))
        return false;
    if (p->form == BATCH)
        return product_pairs(call->node) == 1 && !packed;
    return !pair || (p->m == first->m && p->n == first->n && p->form == first->form &&
                     (p->form == REDUCTION || a->symbol == call->in[0]->symbol));
}

static graphi_status matmul_shape(const struct shape_call *call)
{
    const int64_t given = call->node->attribute[PRODUCT_PAIRS].i;
    if (given < 1 || given > GEMM_MAX_PAIRS || call->node->inputs < product_inputs(call->node))
        return fail(GRAPHI_INVALID, call->where, "found %d inputs for %lld pairs, expected two a pair of 1 to %d",
                    call->node->inputs, (long long)given, GEMM_MAX_PAIRS);
    const int pairs = (int)given;
    const bool base = product_has_base(call->node);
    struct product first = {.m = 0};
    for (int i = 0; i < pairs; i++) {
        const struct value_type *a = call->in[2 * i], *b = call->in[2 * i + 1];
        struct product p;
        if (!pair_fits(call, i, &first, &p)) {
            char left[96], right[96];
            type_text(a, left, sizeof left);
            type_text(b, right, sizeof right);
            return fail(GRAPHI_INVALID, call->where,
                        "found %s times %s (trans_a %d, trans_b %d), expected float32 matrices that fit, "
                        "behind dimensions that broadcast",
                        left, right, product_trans_a(call->node), product_trans_b(call->node));
        }
        if (i)
            continue;
        first = p;
        struct value_type *out = &call->out[0];
        *out = (struct value_type){.dtype = GRAPHI_F32, .rank = p.leads + 2, .symbol = -1};
        memcpy(out->dims, p.lead, (size_t)p.leads * sizeof *out->dims);
        out->dims[p.leads] = p.form == ROWS ? a->dims[a->rank - 2] : p.m;
        out->dims[p.leads + 1] = p.n;
        if (p.form != REDUCTION)
            out->symbol = a->symbol >= 0 ? a->symbol : b->symbol;
    }
    if (base)
        TRY(expect_type(call, 2 * pairs, &call->out[0]));
    return epilogue_shape(call, product_inputs(call->node), epilogue_outputs(call->node));
}

static double matmul_flops(const struct shape_call *call)
{
    double steps = 0;
    int pairs = product_pairs(call->node);
    bool trans_a = product_trans_a(call->node);
    for (int i = 0; i < pairs; i++) {
        const struct value_type *a = call->in[2 * i];
        steps += (double)a->dims[a->rank - 2 + !trans_a];
    }
    return 2 * steps * (double)type_count(&call->out[0]);
}

/* --- binding --- */

/* Row stride of the last two dimensions, and strides along the leading ones of the result: 0 where one matrix serves
 * all. */
static graphi_status batch_layout(const struct bind_call *call, const struct array_desc *desc, const struct product *p,
                                  int64_t *ld, int64_t *stride)
{
    struct array_desc inner = *desc;
    const int outer = desc->rank - 2, missing = p->leads - outer;
    inner.rank = 2;
    memmove(inner.dims, desc->dims + outer, 2 * sizeof *inner.dims);
    memmove(inner.strides, desc->strides + outer, 2 * sizeof *inner.strides);
    for (int i = 0; i < p->leads; i++)
        stride[i] = i < missing || desc->dims[i - missing] == 1 ? 0 : desc->strides[i - missing];
    return row_stride(call, &inner, ld);
}

static graphi_status bind_batch(const struct bind_call *call, const struct product *p, struct gemm_spec *spec,
                                int64_t *lda, int64_t *ldb)
{
    spec->leads = p->leads;
    memcpy(spec->lead, p->lead, sizeof spec->lead);
    TRY(batch_layout(call, &call->in[0], p, lda, spec->stride_a));
    TRY(batch_layout(call, &call->in[1], p, ldb, spec->stride_b));
    TRY(batch_layout(call, &call->out[0], p, &spec->ldc, spec->stride_c));
    spec->bounded = call->in[0].bounded || call->in[1].bounded;
    spec->batch_rows_of_b = !call->in[0].bounded;
    spec->rows_per_row = 1;
    for (int i = 1; i < p->leads; i++)
        spec->rows_per_row *= p->lead[i];
    return GRAPHI_OK;
}

static graphi_status bind_pair(const struct bind_call *call, int pair, const struct product *p, struct gemm_spec *spec,
                               int64_t *lda, int64_t *ldb)
{
    const struct array_desc *a = &call->in[2 * pair], *b = &call->in[2 * pair + 1];
    TRY(row_stride(call, a, lda));
    TRY(row_stride(call, b, ldb));
    if (p->k == 1 && !spec->trans_a && *lda < 1)
        *lda = 1;
    if (spec->packed_b && !array_is_dense(b))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found packed input %d with gaps, expected a dense one",
                    2 * pair + 1);
    spec->bounded |= a->bounded;
    if (pair == 0)
        spec->rows_per_row = p->form == ROWS ? rows_per_row(a, p->m) : 1;
    return GRAPHI_OK;
}

static graphi_status bind_spec(const struct bind_call *call, struct gemm_spec *spec, int64_t *k, int64_t *lda,
                               int64_t *ldb, struct kernel *kernel)
{
    struct product p = {.m = 0};
    for (int i = 0; i < spec->pairs; i++) {
        const struct array_desc *a = &call->in[2 * i], *b = &call->in[2 * i + 1];
        struct extent x = {a->rank, a->dims, a->bounded}, y = {b->rank, b->dims, b->bounded};
        if (!product_of(call->node, &x, &y, b->dtype == GRAPHI_BF16, &p))
            return fail(GRAPHI_INVALID, call->where, "found other layouts, expected those of the product");
        k[i] = p.k;
        if (spec->packed_b)
            spec->multiplicands = b->dtype;
        TRY(p.form == BATCH ? bind_batch(call, &p, spec, lda, ldb) : bind_pair(call, i, &p, spec, lda + i, ldb + i));
    }
    if (p.form != BATCH)
        TRY(row_stride(call, &call->out[0], &spec->ldc));
    if (spec->base)
        TRY(row_stride(call, &call->in[2 * spec->pairs], &spec->ld_base));
    spec->m = p.m;
    spec->n = p.n;
    struct node_epilogue epilogue;
    TRY(epilogue_layout(call, product_inputs(call->node), epilogue_outputs(call->node), &epilogue));
    spec->epilogue = epilogue.spec;
    return gemm_bind(spec, (enum isa)call->isa, kernel);
}

static graphi_status matmul_bind(const struct bind_call *call, struct kernel *kernel)
{
    int pairs = product_pairs(call->node);
    size_t bytes = 3 * (size_t)pairs * sizeof(int64_t);
    int64_t *lists = mem_alloc(bytes);
    if (!lists)
        return fail_memory("matmul", bytes);
    struct gemm_spec spec = {.pairs = pairs,
                             .k = lists,
                             .lda = lists + pairs,
                             .ldb = lists + 2 * pairs,
                             .trans_a = product_trans_a(call->node),
                             .trans_b = product_trans_b(call->node),
                             .packed_b = product_packed(call->node),
                             .base = product_has_base(call->node),
                             .multiplicands = call->multiplicands,
                             .threads = call->threads,
                             .cores = call->cores};
    graphi_status status = bind_spec(call, &spec, lists, lists + pairs, lists + 2 * pairs, kernel);
    mem_free(lists);
    return status;
}

/* --- gradient --- */

static graphi_value product(graphi_graph *graph, graphi_value a, graphi_value b, bool trans_a, bool trans_b)
{
    graphi_attribute attributes[] = {int_attribute("trans_a", trans_a), int_attribute("trans_b", trans_b)};
    return graphi_op(graph, "matmul", 2, (graphi_value[]){a, b}, 2, attributes);
}

/* All leading dimensions as rows. */
static graphi_value as_rows(graphi_graph *graph, graphi_value value)
{
    const struct value_type type = graph_value(graph, value)->type;
    if (type.rank == 2)
        return value;
    graphi_attribute shape = ints_attribute("shape", (int64_t[]){-1, type.dims[type.rank - 1]}, 2);
    return graphi_op(graph, "reshape", 1, &value, 1, &shape);
}

static void pair_gradient(struct gradient_call *call, int pair)
{
    graphi_graph *graph = call->graph;
    graphi_value a = call->in[2 * pair], b = call->in[2 * pair + 1], grad = call->grad_out[0];
    bool ta = product_trans_a(call->op), tb = product_trans_b(call->op);
    if (call->needed[2 * pair]) {
        graphi_value da = ta ? product(graph, b, grad, tb, true) : product(graph, grad, b, false, !tb);
        call->grad_in[2 * pair] = da == GRAPHI_NONE ? da : sum_like(graph, da, a);
    }
    if (!call->needed[2 * pair + 1])
        return;
    if (!ta && graph_value(graph, b)->type.rank == 2) {
        a = as_rows(graph, a);
        grad = as_rows(graph, grad);
    }
    graphi_value db = a == GRAPHI_NONE || grad == GRAPHI_NONE ? GRAPHI_NONE
                      : tb ? product(graph, grad, a, true, ta) : product(graph, a, grad, !ta, false);
    call->grad_in[2 * pair + 1] = db == GRAPHI_NONE ? db : sum_like(graph, db, b);
}

static void matmul_gradient(struct gradient_call *call)
{
    if (epilogue_refuses_gradient(call))
        return;
    if (product_packed(call->op)) {
        graph_broken(call->graph, fail(GRAPHI_UNSUPPORTED, "matmul",
                                       "found a form that passes make, expected gradients to be taken before them"));
        return;
    }
    for (int pair = 0; pair < product_pairs(call->op); pair++)
        pair_gradient(call, pair);
    if (product_has_base(call->op))
        call->grad_in[2 * product_pairs(call->op)] = call->grad_out[0];
}

graphi_value product_append(graphi_graph *graph, const struct product_operands *of, bool trans_a, bool trans_b)
{
    const bool base = of->base != GRAPHI_NONE;
    const graphi_attribute attributes[] = {int_attribute("trans_a", trans_a), int_attribute("trans_b", trans_b),
                                           int_attribute("pairs", of->pairs), int_attribute("base", base)};
    if (base)
        of->input[2 * of->pairs] = of->base;
    return graphi_op(graph, "matmul", 2 * of->pairs + base, of->input, 4, attributes);
}

/* --- pack --- */

static graphi_status pack_shape(const struct shape_call *call)
{
    const struct value_type *in = call->in[0];
    bool trans = attr_int(call->node, "trans") != 0;
    int64_t dtype = attr_int(call->node, "dtype");
    TRY(expect(call, 0, in->rank == 2 && in->dtype == GRAPHI_F32 && in->symbol < 0, "an unbounded float32 matrix"));
    if (dtype != GRAPHI_F32 && dtype != GRAPHI_BF16)
        return fail(GRAPHI_INVALID, call->where, "found dtype %lld, expected float32 or bfloat16", (long long)dtype);
    for (int i = 1; i < call->node->inputs; i++)
        TRY(expect_type(call, i, in));
    int64_t k = in->dims[trans];
    call->out[0] = (struct value_type){.dtype = (graphi_dtype)dtype, .rank = 2, .symbol = -1,
                                       .dims = {dtype == GRAPHI_BF16 ? (k + 1) / 2 * 2 : k,
                                                in->dims[!trans] * call->node->inputs}};
    return GRAPHI_OK;
}

static graphi_status pack_bind(const struct bind_call *call, struct kernel *kernel)
{
    const struct array_desc *in = &call->in[0];
    bool trans = attr_int(call->node, "trans") != 0;
    int64_t ld;
    TRY(row_stride(call, in, &ld));
    for (int i = 1; i < call->node->inputs; i++) {
        int64_t other;
        TRY(row_stride(call, &call->in[i], &other));
        if (other != ld)
            return fail(GRAPHI_UNSUPPORTED, call->where,
                        "found rows of input %d %lld apart, expected %lld as in the first", i, (long long)other,
                        (long long)ld);
    }
    if (!array_is_dense(&call->out[0]))
        return fail(GRAPHI_UNSUPPORTED, call->where, "found a strided output, expected a dense one");
    return gemm_pack_bind(call->node->inputs, in->dims[trans], in->dims[!trans], ld, trans, call->out[0].dtype,
                          (enum isa)call->isa, kernel);
}

const struct op_kind ops_matmul[] = {
    {.name = "matmul",
     .role = IS_PRODUCT,
     .summary =
         "products of matrices, the last two dimensions of a and b; those before them broadcast as in numpy",
     .shapes = "a [...,M,K], b [...,K,N] to [...,M,N]",
     .min_inputs = 2,
     .max_inputs = -1,
     .outputs = -1,
     .attributes = matmul_attributes,
     .flags = OP_GEMM | OP_HOST | OP_STRIDED_IN | OP_STRIDED_OUT | OP_BOUNDED,
     .scalability = "gemm",
     .shape = matmul_shape,
     .gradient = matmul_gradient,
     .flops = matmul_flops,
     .bind = matmul_bind},
    {.name = "pack",
     .summary = "matrices side by side in the order in which products read their right operand",
     .shapes = "[K,N] each, [N,K] with `trans`, to [K,n N] of n; of bfloat16 K made even",
     .min_inputs = 1,
     .max_inputs = -1,
     .outputs = 1,
     .attributes = pack_attributes,
     .flags = OP_PACK | OP_STRIDED_IN,
     .scalability = "memory",
     .shape = pack_shape,
     .flops = no_flops,
     .bind = pack_bind},
    {0},
};
