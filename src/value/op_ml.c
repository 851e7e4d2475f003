/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of classical models: thresholds, columns, and ensembles of decision trees, whose nodes lie in arrays.
 * Indices are checked as they are followed, and a walk has at most as many steps as there are nodes. Source: ONNX
 * ai.onnx.ml Binarizer, ArrayFeatureExtractor, TreeEnsemble. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

static graphi_status run_binarizer(struct op_call *call)
{
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const double threshold = op_float(call, "threshold", 0);
    TRY(op_new(call, 0, x->type, x->rank, x->dims, &out));
    for (int64_t i = 0; i < x->count; i++)
        put(out, i, value_double(x, i) > threshold);
    return GRAPHI_OK;
}

/* Columns of the last dimension; of a vector, as a row. */
static graphi_status run_extractor(struct op_call *call)
{
    struct value_text text;
    graphi_tensor *out;
    int64_t dims[VALUE_RANK] = {1};
    TRY(op_tensor(call, 0, 0));
    TRY(op_tensor(call, 1, T_I64));
    const graphi_tensor *x = call->in[0], *columns = call->in[1];
    if (x->rank < 1 || columns->count < 1)
        return op_fail(call, "found %s and %lld columns, expected rank 1 and more, and a column",
                       value_describe(x, &text), (long long)columns->count);
    const int rank = x->rank > 1 ? x->rank : 2;
    const int64_t width = x->dims[x->rank - 1], count = columns->count;
    for (int i = 0; i + 1 < x->rank; i++)
        dims[i] = x->dims[i];
    dims[rank - 1] = count;
    TRY(op_new(call, 0, x->type, rank, dims, &out));
    const size_t size = element_size(x->type);
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t column = value_int(columns, i % count);
        if (column < 0 || column >= width)
            return op_fail(call, "found column %lld, expected 0 to %lld", (long long)column, (long long)width - 1);
        memcpy((char *)out->data + (size_t)i * size,
               (const char *)x->data + (size_t)(i / count * width + column) * size, size);
    }
    return GRAPHI_OK;
}

enum mode { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER };
enum together { AVERAGE, SUM, LEAST, MOST };

/* Lists of integers of as many elements as there are nodes, or leaves. */
enum list { FEATURES, TRUE_NODES, FALSE_NODES, TRUE_LEAVES, FALSE_LEAVES, TARGETS, ROOTS, MISSING, LISTS };

struct ensemble {
    const struct op_call *call;
    const int64_t *list[LISTS];
    const graphi_tensor *splits, *modes, *weights, *members;
    int64_t nodes, leaves, roots, targets;
    enum together together;
};

static graphi_status find_lists(struct ensemble *e)
{
    static const char *const names[LISTS] = {
        "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs",
        "nodes_falseleafs", "leaf_targetids",    "tree_roots",         "nodes_missing_value_tracks_true"};
    for (int i = 0; i < LISTS; i++) {
        size_t count;
        e->list[i] = op_ints(e->call, names[i], &count);
        if (i == ROOTS)
            e->roots = (int64_t)count;
        const int64_t expected = i == TARGETS ? e->leaves : i == ROOTS ? e->roots : e->nodes;
        if ((int64_t)count != expected && (i != MISSING || count))
            return op_fail(e->call, "found %zu %s, expected %lld", count, names[i], (long long)expected);
    }
    return GRAPHI_OK;
}

static graphi_status find_tensors(struct ensemble *e)
{
    static const char *const names[] = {"nodes_splits", "nodes_modes", "leaf_weights", "membership_values"};
    const graphi_tensor **to[] = {&e->splits, &e->modes, &e->weights, &e->members};
    for (int i = 0; i < 4; i++) {
        const struct attribute *a = op_attribute(e->call, names[i]);
        *to[i] = a && a->kind == ATTRIBUTE_TENSOR ? a->tensor : NULL;
        if (!*to[i] && i < 3)
            return op_fail(e->call, "found no tensor %s, expected one", names[i]);
    }
    e->nodes = e->splits->count;
    e->leaves = e->weights->count;
    if (e->modes->count != e->nodes)
        return op_fail(e->call, "found %lld modes of %lld nodes, expected as many", (long long)e->modes->count,
                       (long long)e->nodes);
    return GRAPHI_OK;
}

/* Whether x is in the set of a node: sets lie in the order of their nodes, each with NaN behind it. */
static bool is_member(const struct ensemble *e, int64_t node, double x)
{
    int64_t before = 0, at = 0;
    for (int64_t i = 0; i < node; i++)
        before += value_int(e->modes, i) == MEMBER;
    for (; e->members && at < e->members->count && before; at++)
        before -= isnan(value_double(e->members, at));
    for (; e->members && at < e->members->count; at++) {
        const double member = value_double(e->members, at);
        if (member == x || isnan(member))
            return member == x;
    }
    return false;
}

static bool branch(const struct ensemble *e, int64_t node, double x)
{
    const double split = value_double(e->splits, node);
    if (isnan(x) && e->list[MISSING] && e->list[MISSING][node])
        return true;
    switch (value_int(e->modes, node)) {
    case LEQ:
        return x <= split;
    case LT:
        return x < split;
    case GTE:
        return x >= split;
    case GT:
        return x > split;
    case EQ:
        return x == split;
    case NEQ:
        return x != split;
    default:
        return is_member(e, node, x);
    }
}

/* From a root to a leaf with the features from `base` on. */
static graphi_status walk(const struct ensemble *e, int64_t root, int64_t base, int64_t *leaf)
{
    const graphi_tensor *x = e->call->in[0];
    int64_t node = root;
    for (int64_t step = 0; step < e->nodes; step++) {
        if (node < 0 || node >= e->nodes)
            break;
        const int64_t feature = e->list[FEATURES][node];
        if (feature < 0 || feature >= x->dims[1] || value_int(e->modes, node) > MEMBER)
            return op_fail(e->call, "found feature %lld and mode %lld of node %lld, expected 0 to %lld and 0 to %d",
                           (long long)feature, (long long)value_int(e->modes, node), (long long)node,
                           (long long)x->dims[1] - 1, MEMBER);
        const bool taken = branch(e, node, value_double(x, base + feature));
        const bool ends = e->list[taken ? TRUE_LEAVES : FALSE_LEAVES][node] != 0;
        node = e->list[taken ? TRUE_NODES : FALSE_NODES][node];
        if (!ends)
            continue;
        *leaf = node;
        if (node < 0 || node >= e->leaves || e->list[TARGETS][node] < 0 || e->list[TARGETS][node] >= e->targets)
            break;
        return GRAPHI_OK;
    }
    return op_fail(e->call, "found no leaf with a target from root %lld on, expected one", (long long)root);
}

static graphi_status sum_row(const struct ensemble *e, int64_t row, double *sums, bool *hit)
{
    memset(hit, 0, (size_t)e->targets * sizeof *hit);
    for (int64_t t = 0; t < e->targets; t++)
        sums[t] = 0;
    for (int64_t r = 0; r < e->roots; r++) {
        int64_t leaf = 0;
        TRY(walk(e, e->list[ROOTS][r], row * e->call->in[0]->dims[1], &leaf));
        const int64_t t = e->list[TARGETS][leaf];
        const double weight = value_double(e->weights, leaf);
        if (e->together == AVERAGE || e->together == SUM)
            sums[t] += e->together == AVERAGE ? weight / (double)e->roots : weight;
        else if (!hit[t] || (e->together == LEAST ? weight < sums[t] : weight > sums[t]))
            sums[t] = weight;
        hit[t] = true;
    }
    return GRAPHI_OK;
}

static graphi_status run_ensemble(struct op_call *call)
{
    struct ensemble e = {.call = call, .targets = op_int(call, "n_targets", 1)};
    struct value_text text;
    graphi_tensor *out;
    TRY(op_tensor(call, 0, 0));
    const graphi_tensor *x = call->in[0];
    const int64_t together = op_int(call, "aggregate_function", SUM), after = op_int(call, "post_transform", 0);
    if (x->rank != 2 || together < AVERAGE || together > MOST || after != 0 || e.targets < 1)
        return op_fail(call,
                       "found %s, aggregate_function %lld, post_transform %lld, expected [N, features], 0 to 3, 0",
                       value_describe(x, &text), (long long)together, (long long)after);
    e.together = (enum together)together;
    TRY(find_tensors(&e));
    TRY(find_lists(&e));
    TRY(op_new(call, 0, x->type, 2, (int64_t[]){x->dims[0], e.targets}, &out));
    double *sums = mem_zalloc_array((size_t)e.targets, sizeof *sums + sizeof(bool));
    if (!sums)
        return fail_memory(call->where, (size_t)e.targets * sizeof *sums);
    graphi_status status = GRAPHI_OK;
    for (int64_t row = 0; row < x->dims[0] && status == GRAPHI_OK; row++) {
        status = sum_row(&e, row, sums, (bool *)(sums + e.targets));
        for (int64_t t = 0; t < e.targets && status == GRAPHI_OK; t++)
            put(out, row * e.targets + t, sums[t]);
    }
    mem_free(sums);
    return status;
}

#define ML "ai.onnx.ml."
const struct host_op host_ops_ml[] = {
    {ML "Binarizer", 1, 1, 1, "threshold", run_binarizer, 0},
    {ML "ArrayFeatureExtractor", 2, 2, 1, "", run_extractor, 0},
    {ML "TreeEnsemble", 1, 1, 1,
     "aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs nodes_falsenodeids "
     "nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes nodes_splits nodes_trueleafs "
     "nodes_truenodeids post_transform tree_roots",
     run_ensemble, 0},
    {0},
};
