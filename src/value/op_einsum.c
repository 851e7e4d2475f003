/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: sums of products over the labels of an equation. Each label is a loop, in which every operand has a stride;
 * the result's labels are the outer ones. Sums in doubles, or in 64 bits of integers. Source: ONNX Einsum,
 * numpy.einsum. Any thread. */
#include "base/memory.h"
#include "value/dense.h"
#include "value/families.h"
#include "value/window.h"

#include <string.h>

enum { LETTERS = 52, LABELS = LETTERS + VALUE_RANK, TERMS = 16, LONGEST = 256 };

struct einsum {
    const struct op_call *call;
    char equation[LONGEST]; /* without blanks */
    const char *result;     /* behind the arrow; NULL: no arrow */
    int64_t size[LABELS];   /* -1: the inputs do not name it */
    int seen[LABELS], ellipsis;
    int64_t strides[TERMS][LABELS];
    int order[LABELS], outs, loops; /* labels as loops, the result's first */
};

/* An ellipsis has the last labels, so that shorter ones lie at the end. */
static int label_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    return letter >= 'a' && letter <= 'z' ? letter - 'a' + 26 : -1;
}

/* The labels of a term of `rank` dimensions; -1: an ellipsis has as many as the longest. */
static graphi_status read_term(struct einsum *e, const char *text, size_t length, int rank, int *labels, int *count)
{
    int letters = 0, ellipses = 0;
    for (size_t i = 0; i < length; i++)
        if (label_of(text[i]) >= 0)
            letters++;
        else if (i + 2 < length && strncmp(text + i, "...", 3) == 0 && !ellipses++)
            i += 2;
        else
            return op_fail(e->call, "found equation \"%s\", expected letters, commas, one arrow, one ellipsis a term",
                           e->equation);
    const int rest = !ellipses ? 0 : rank < 0 ? e->ellipsis : rank - letters;
    if (rest < 0 || letters + rest > VALUE_RANK || (rank >= 0 && letters + rest != rank))
        return op_fail(e->call, "found %d labels in \"%.*s\", expected one for each of %d dimensions", letters,
                       (int)length, text, rank < 0 ? VALUE_RANK : rank);
    e->ellipsis = rest > e->ellipsis ? rest : e->ellipsis;
    *count = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '.') {
            labels[(*count)++] = label_of(text[i]);
            continue;
        }
        for (int k = 0; k < rest; k++)
            labels[(*count)++] = LABELS - rest + k;
        i += 2;
    }
    return GRAPHI_OK;
}

/* Sizes of 1 are repeated, in letters as in ellipses. */
static graphi_status add_term(struct einsum *e, int term, const char *text, size_t length)
{
    const graphi_tensor *x = e->call->in[term];
    int labels[VALUE_RANK], count;
    int64_t strides[VALUE_RANK];
    TRY(read_term(e, text, length, x->rank, labels, &count));
    dims_strides(x->rank, x->dims, strides);
    for (int i = 0; i < count; i++) {
        const int at = labels[i];
        const int64_t found = x->dims[i];
        if (e->size[at] > 1 && found != 1 && found != e->size[at])
            return op_fail(e->call, "found sizes %lld and %lld of one label of \"%s\", expected equal ones",
                           (long long)e->size[at], (long long)found, e->equation);
        e->size[at] = e->size[at] < 0 || e->size[at] == 1 ? found : e->size[at];
        e->strides[term][at] += found == 1 ? 0 : strides[i];
        e->seen[at]++;
    }
    return GRAPHI_OK;
}

static graphi_status read_equation(struct einsum *e)
{
    const char *given = op_string(e->call, "equation", "");
    size_t length = 0;
    for (; *given && length < LONGEST - 1; given++)
        if (*given != ' ')
            e->equation[length++] = *given;
    if (*given)
        return op_fail(e->call, "found an equation of more than %d characters, expected fewer", LONGEST - 1);
    for (int i = 0; i < LABELS; i++)
        e->size[i] = -1;
    const char *arrow = strstr(e->equation, "->"), *at = e->equation, *end = arrow ? arrow : at + length;
    e->result = arrow ? arrow + 2 : NULL;
    int term = 0;
    for (bool more = true; more; term++) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        if (term >= e->call->ins)
            return op_fail(e->call, "found more terms in \"%s\" than %d inputs, expected as many", e->equation,
                           e->call->ins);
        TRY(add_term(e, term, at, (size_t)(stop - at)));
        more = comma != NULL;
        at = stop + 1;
    }
    if (term != e->call->ins)
        return op_fail(e->call, "found %d terms in \"%s\", expected one for each of %d inputs", term, e->equation,
                       e->call->ins);
    return GRAPHI_OK;
}

/* Without an arrow the result has the ellipsis, then the letters that are named once, in order. */
static graphi_status order_labels(struct einsum *e, int64_t *dims)
{
    bool placed[LABELS] = {false};
    if (e->result)
        TRY(read_term(e, e->result, strlen(e->result), -1, e->order, &e->outs));
    else {
        for (int k = 0; k < e->ellipsis; k++)
            e->order[e->outs++] = LABELS - e->ellipsis + k;
        for (int k = 0; k < LETTERS; k++)
            if (e->seen[k] == 1)
                e->order[e->outs++] = k;
    }
    if (e->outs > VALUE_RANK)
        return op_fail(e->call, "found a result of %d dimensions of \"%s\", expected at most %d", e->outs, e->equation,
                       VALUE_RANK);
    for (int i = 0; i < e->outs; i++) {
        const int at = e->order[i];
        if (placed[at] || e->size[at] < 0)
            return op_fail(e->call, "found a label of the result of \"%s\" twice or in no term, expected it once",
                           e->equation);
        placed[at] = true;
        dims[i] = e->size[at];
    }
    e->loops = e->outs;
    for (int i = 0; i < LABELS; i++)
        if (!placed[i] && e->size[i] >= 0)
            e->order[e->loops++] = i;
    return GRAPHI_OK;
}

/* All loops in C order; a sum ends when an outer label moves. */
static void sum_products(const struct einsum *e, const struct dense *in, graphi_tensor *out)
{
    const int terms = e->call->ins, inner = e->loops - e->outs;
    const bool floats = in[0].domain == DOMAIN_F64;
    int64_t index[LABELS] = {0}, sizes[LABELS], total = 1;
    for (int i = 0; i < e->loops; i++)
        sizes[i] = e->size[e->order[i]];
    for (int i = e->outs; i < e->loops; i++)
        total *= sizes[i];
    for (int64_t k = 0; k < out->count; k++, (void)window_next(e->outs, sizes, index)) {
        double sum = 0;
        uint64_t whole = 0;
        for (int64_t s = 0; s < total; s++, (void)window_next(inner, sizes + e->outs, index + e->outs)) {
            double product = 1;
            uint64_t integer = 1;
            for (int t = 0; t < terms; t++) {
                int64_t at = 0;
                for (int i = 0; i < e->loops; i++)
                    at += index[i] * e->strides[t][e->order[i]];
                if (floats)
                    product *= ((const double *)in[t].data)[at];
                else
                    integer *= ((const uint64_t *)in[t].data)[at];
            }
            sum += product;
            whole += integer;
        }
        const int64_t number = (int64_t)whole;
        element_store(floats ? DOMAIN_F64 : DOMAIN_I64, out->type, floats ? (const void *)&sum : &number, 1,
                      (char *)out->data + (size_t)k * element_size(out->type));
    }
}

static graphi_status run_einsum(struct op_call *call)
{
    struct einsum e = {.call = call};
    struct dense in[TERMS] = {{0}};
    int64_t dims[VALUE_RANK] = {0};
    graphi_tensor *out;
    if (call->ins > TERMS)
        return op_fail(call, "found %d inputs of Einsum, expected at most %d", call->ins, TERMS);
    for (int i = 0; i < call->ins; i++)
        if (!call->in[i])
            return op_fail(call, "found no input %d of Einsum, expected one", i);
    TRY(op_same_types(call, 0, call->ins));
    TRY(read_equation(&e));
    TRY(order_labels(&e, dims));
    const graphi_element type = call->in[0]->type;
    TRY(op_new(call, 0, type, e.outs, dims, &out));
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < call->ins && status == GRAPHI_OK; i++)
        status = dense_load(call->where, element_is_float(type) ? DOMAIN_F64 : DOMAIN_I64, call->in[i], &in[i]);
    if (status == GRAPHI_OK)
        sum_products(&e, in, out);
    for (int i = 0; i < call->ins; i++)
        dense_free(&in[i]);
    return status;
}

const struct host_op host_ops_einsum[] = {
    {"Einsum", 1, -1, 1, "equation", run_einsum, 0},
    {0},
};
