/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over heads with a cache of keys and values, and embeddings that turn with the position. A row of scores is
 * made, masked, made weights and used at a time, in doubles. A query that may see no key gives zeros. Source: ONNX
 * Attention, RotaryEmbedding. Any thread. */
#include "base/memory.h"
#include "value/element.h"
#include "value/families.h"

#include <math.h>
#include <string.h>

static void put(graphi_tensor *out, int64_t i, double number)
{
    element_store(DOMAIN_F64, out->type, &number, 1, (char *)out->data + (size_t)i * element_size(out->type));
}

/* [batch, heads, length, size], or flat [batch, length, heads * size]. */
struct heads {
    const graphi_tensor *x;
    int64_t batch, heads, length, size;
    bool flat;
};

static graphi_status heads_find(const struct op_call *call, int i, const char *attribute, struct heads *out)
{
    struct value_text text;
    TRY(op_tensor(call, i, 0));
    const graphi_tensor *x = call->in[i];
    const int64_t heads = op_int(call, attribute, 0);
    if (x->rank == 4) {
        *out = (struct heads){x, x->dims[0], x->dims[1], x->dims[2], x->dims[3], false};
        return GRAPHI_OK;
    }
    if (x->rank != 3 || heads < 1 || x->dims[2] % heads != 0)
        return op_fail(call, "found %s and %lld heads, expected rank 4, or rank 3 and %s that divides its last size",
                       value_describe(x, &text), (long long)heads, attribute);
    *out = (struct heads){x, x->dims[0], heads, x->dims[1], x->dims[2] / heads, true};
    return GRAPHI_OK;
}

static int64_t head_at(const struct heads *h, int64_t b, int64_t head, int64_t at)
{
    return (h->flat ? (b * h->length + at) * h->heads + head : (b * h->heads + head) * h->length + at) * h->size;
}

struct attention {
    struct heads q, k, v;
    int64_t past, length, left, right; /* keys of the cache, all of them; keys before and after that are seen, or -1 */
    double scale, cap;
    bool causal;
    const graphi_tensor *mask, *valid; /* valid: keys of each batch that are no padding */
    double *keys, *values, *row;       /* [batch, heads, length, size] each; scores of one query */
};

static graphi_status check_past(const struct op_call *call, int i, const struct heads *h, int64_t past)
{
    struct value_text text;
    TRY(op_tensor(call, i, h->x->type));
    const graphi_tensor *x = call->in[i];
    if (x->rank != 4 || x->dims[0] != h->batch || x->dims[1] != h->heads || x->dims[2] != past || x->dims[3] != h->size)
        return op_fail(call, "found %s as input %d, expected [%lld, %lld, %lld, %lld]", value_describe(x, &text), i,
                       (long long)h->batch, (long long)h->heads, (long long)past, (long long)h->size);
    return GRAPHI_OK;
}

/* The mask's last size may be shorter than the keys: what is beyond is not seen. */
static graphi_status check_mask(const struct op_call *call, const struct attention *a)
{
    const graphi_tensor *m = a->mask;
    struct value_text text;
    const int64_t dims[4] = {a->q.batch, a->q.heads, a->q.length, a->length};
    TRY(op_tensor(call, 3, 0));
    bool fits = m->rank >= 1 && m->rank <= 4 && (m->type == T_BOOL || element_is_float(m->type)) &&
                m->dims[m->rank - 1] <= a->length;
    for (int i = 0; i + 1 < m->rank && fits; i++)
        fits = m->dims[i] == 1 || m->dims[i] == dims[4 - m->rank + i];
    if (!fits)
        return op_fail(call,
                       "found the mask %s, expected one of bool or floats that broadcasts to [%lld, %lld, %lld, "
                       "%lld]",
                       value_describe(m, &text), (long long)dims[0], (long long)dims[1], (long long)dims[2],
                       (long long)dims[3]);
    return GRAPHI_OK;
}

static graphi_status attention_find(const struct op_call *call, struct attention *a)
{
    TRY(op_same_types(call, 0, 2));
    TRY(heads_find(call, 0, "q_num_heads", &a->q));
    TRY(heads_find(call, 1, "kv_num_heads", &a->k));
    TRY(heads_find(call, 2, "kv_num_heads", &a->v));
    const struct heads *q = &a->q, *k = &a->k, *v = &a->v;
    if (q->flat != k->flat || k->flat != v->flat || q->batch != k->batch || k->batch != v->batch ||
        k->heads != v->heads || k->heads < 1 || q->heads % k->heads != 0 || q->size != k->size ||
        k->length != v->length || !element_is_float(q->x->type)) {
        struct value_text x, y, z;
        return op_fail(call, "found %s, %s, %s, expected queries, keys, values whose batches, heads, sizes fit",
                       value_describe(q->x, &x), value_describe(k->x, &y), value_describe(v->x, &z));
    }
    const graphi_tensor *past = op_in(call, 4);
    a->past = past && past->kind == GRAPHI_KIND_TENSOR && past->rank == 4 ? past->dims[2] : 0;
    if (!past != !op_in(call, 5) || (past && op_in(call, 6)))
        return op_fail(call, "found past keys without values or with lengths, expected both of them alone");
    for (int i = 4; past && i < 6; i++)
        TRY(check_past(call, i, i == 4 ? k : v, a->past));
    a->length = a->past + k->length;
    a->mask = op_in(call, 3);
    if (a->mask)
        TRY(check_mask(call, a));
    a->valid = op_in(call, 6);
    if (a->valid) {
        TRY(op_tensor(call, 6, T_I64));
        if (a->valid->count != q->batch)
            return op_fail(call, "found %lld lengths, expected %lld", (long long)a->valid->count, (long long)q->batch);
    }
    a->scale = op_float(call, "scale", (float)(1 / sqrt((double)(q->size ? q->size : 1))));
    a->cap = op_float(call, "softcap", 0);
    a->causal = op_int(call, "is_causal", 0) != 0;
    a->left = op_int(call, "left_window_size", -1);
    a->right = op_int(call, "right_window_size", -1);
    return GRAPHI_OK;
}

/* The cache and what is new of it, as one; also as an output where that is wanted. */
static graphi_status join_past(struct op_call *call, const struct attention *a, const struct heads *h, int past,
                               double *to)
{
    graphi_tensor *out = NULL;
    if (op_wants(call, past - 3))
        TRY(op_new(call, past - 3, h->x->type, 4, (int64_t[]){h->batch, h->heads, a->length, h->size}, &out));
    int64_t at = 0;
    for (int64_t r = 0; r < h->batch * h->heads; r++)
        for (int64_t t = 0; t < a->length; t++)
            for (int64_t i = 0; i < h->size; i++, at++) {
                if (t < a->past)
                    to[at] = value_double(call->in[past], (r * a->past + t) * h->size + i);
                else
                    to[at] = value_double(h->x, head_at(h, r / h->heads, r % h->heads, t - a->past) + i);
                if (out)
                    put(out, at, to[at]);
            }
    return GRAPHI_OK;
}

/* What is added to the score of query i and key j; -INFINITY: it is not seen. */
static double bias_at(const struct attention *a, int64_t b, int64_t head, int64_t i, int64_t j)
{
    const int64_t valid = a->valid ? value_int(a->valid, b) : a->length;
    const int64_t place = i + (a->valid ? valid - a->q.length : a->past);
    if (j >= valid || (a->causal && j > place) || (a->left >= 0 && place - j > a->left) ||
        (a->right >= 0 && j - place > a->right))
        return -INFINITY;
    if (!a->mask)
        return 0;
    const graphi_tensor *m = a->mask;
    const int64_t index[4] = {b, head, i, j};
    int64_t at = 0;
    for (int k = 0; k < m->rank; k++)
        at = at * m->dims[k] + (k < m->rank - 1 && m->dims[k] == 1 ? 0 : index[4 - m->rank + k]);
    if (j >= m->dims[m->rank - 1])
        return -INFINITY;
    const double number = value_double(m, at);
    return m->type != T_BOOL ? number : number != 0 ? 0 : -INFINITY;
}

enum scores { RAW, CAPPED, BIASED, WEIGHTS };

/* Scores of one query to weights, in place; stages that are wanted go to `stage`. */
static void weigh(const struct attention *a, int64_t b, int64_t head, int64_t i, enum scores wanted,
                  graphi_tensor *stage, int64_t to)
{
    double most = -INFINITY, sum = 0;
    bool seen = false;
    for (int64_t j = 0; j < a->length; j++) {
        double *s = &a->row[j];
        const double raw = *s, bias = bias_at(a, b, head, i, j);
        *s = a->cap > 0 ? a->cap * tanh(raw / a->cap) : raw;
        if (stage && wanted != WEIGHTS)
            put(stage, to + j, wanted == RAW ? raw : wanted == CAPPED ? *s : *s + bias);
        seen = seen || bias != -INFINITY;
        *s = bias == -INFINITY ? -INFINITY : *s + bias;
        most = *s > most || isnan(*s) ? *s : most;
    }
    for (int64_t j = 0; j < a->length; j++) {
        a->row[j] = seen ? exp(a->row[j] - most) : 0;
        sum += a->row[j];
    }
    for (int64_t j = 0; j < a->length; j++) {
        a->row[j] = seen ? a->row[j] / sum : 0;
        if (stage && wanted == WEIGHTS)
            put(stage, to + j, a->row[j]);
    }
}

static void attend(const struct attention *a, graphi_tensor *out, graphi_tensor *stage, enum scores wanted)
{
    const struct heads *q = &a->q, y = {out, q->batch, q->heads, q->length, a->v.size, q->flat};
    for (int64_t r = 0; r < q->batch * q->heads * q->length; r++) {
        const int64_t b = r / q->length / q->heads, head = r / q->length % q->heads, i = r % q->length;
        const int64_t of = (b * a->k.heads + head / (q->heads / a->k.heads)) * a->length;
        const int64_t from = head_at(q, b, head, i), to = head_at(&y, b, head, i);
        for (int64_t j = 0; j < a->length; j++) {
            a->row[j] = 0;
            for (int64_t k = 0; k < q->size; k++)
                a->row[j] += value_double(q->x, from + k) * a->keys[(of + j) * q->size + k];
            a->row[j] *= a->scale;
        }
        weigh(a, b, head, i, wanted, stage, r * a->length);
        for (int64_t k = 0; k < y.size; k++) {
            double sum = 0;
            for (int64_t j = 0; j < a->length; j++)
                sum += a->row[j] == 0 ? 0 : a->row[j] * a->values[(of + j) * y.size + k];
            put(out, to + k, sum);
        }
    }
}

static graphi_status run_attention(struct op_call *call)
{
    struct attention a = {.past = 0};
    graphi_tensor *out, *stage = NULL;
    TRY(attention_find(call, &a));
    const struct heads *q = &a.q, *v = &a.v;
    const int64_t wanted = op_int(call, "qk_matmul_output_mode", 0);
    if (wanted < RAW || wanted > WEIGHTS)
        return op_fail(call, "found qk_matmul_output_mode %lld, expected 0 to 3", (long long)wanted);
    const int64_t four[4] = {q->batch, q->heads, q->length, v->size};
    const int64_t three[3] = {q->batch, q->length, q->heads * v->size};
    TRY(op_new(call, 0, q->x->type, q->flat ? 3 : 4, q->flat ? three : four, &out));
    if (op_wants(call, 3))
        TRY(op_new(call, 3, q->x->type, 4, (int64_t[]){q->batch, q->heads, q->length, a.length}, &stage));
    const int64_t rows = q->batch * a.k.heads * a.length;
    const size_t bytes = (size_t)(rows * (q->size + v->size) + a.length) * sizeof *a.keys;
    a.keys = mem_alloc(bytes);
    if (!a.keys)
        return fail_memory(call->where, bytes);
    a.values = a.keys + rows * q->size;
    a.row = a.values + rows * v->size;
    graphi_status status = join_past(call, &a, &a.k, 4, a.keys);
    if (status == GRAPHI_OK)
        status = join_past(call, &a, &a.v, 5, a.values);
    if (status == GRAPHI_OK)
        attend(&a, out, stage, (enum scores)wanted);
    mem_free(a.keys);
    return status;
}

struct turn {
    struct heads x;
    int64_t size, rows; /* elements of a head that turn; rows of the caches */
    bool interleaved;
    const graphi_tensor *cosines, *sines, *positions;
};

static graphi_status turn_find(const struct op_call *call, struct turn *t)
{
    struct value_text a, b;
    TRY(heads_find(call, 0, "num_heads", &t->x));
    TRY(op_tensor(call, 1, 0));
    TRY(op_tensor(call, 2, 0));
    t->cosines = call->in[1];
    t->sines = call->in[2];
    t->positions = op_in(call, 3);
    t->size = op_int(call, "rotary_embedding_dim", 0);
    t->size = t->size ? t->size : t->x.size;
    t->interleaved = op_int(call, "interleaved", 0) != 0;
    if (t->positions)
        TRY(op_tensor(call, 3, T_I64));
    const int rank = t->positions ? 2 : 3;
    const graphi_tensor *c = t->cosines, *s = t->sines;
    const int64_t tokens = t->x.batch * t->x.length;
    if (t->size < 0 || t->size > t->x.size || t->size % 2 != 0 || c->rank != rank || s->rank != rank ||
        c->dims[rank - 1] != t->size / 2 || s->dims[rank - 1] != t->size / 2 || c->count != s->count ||
        (t->positions ? t->positions->count != tokens : c->dims[0] * c->dims[1] != tokens))
        return op_fail(call, "found the caches %s and %s to turn %lld elements, expected half as many for each token",
                       value_describe(c, &a), value_describe(s, &b), (long long)t->size);
    t->rows = t->positions ? c->dims[0] : tokens;
    return GRAPHI_OK;
}

static graphi_status run_rotary(struct op_call *call)
{
    struct turn t = {.size = 0};
    graphi_tensor *out;
    TRY(turn_find(call, &t));
    const struct heads *h = &t.x;
    const int64_t half = t.size / 2;
    TRY(op_new(call, 0, h->x->type, h->x->rank, h->x->dims, &out));
    memcpy(out->data, h->x->data, out->bytes);
    for (int64_t r = 0; r < h->batch * h->heads * h->length; r++) {
        const int64_t b = r / h->length / h->heads, token = b * h->length + r % h->length;
        const int64_t row = t.positions ? value_int(t.positions, token) : token;
        if (row < 0 || row >= t.rows)
            return op_fail(call, "found position %lld of token %lld, expected 0 to %lld", (long long)row,
                           (long long)token, (long long)t.rows - 1);
        const int64_t from = head_at(h, b, r / h->length % h->heads, r % h->length);
        for (int64_t k = 0; k < half; k++) {
            const int64_t i = from + (t.interleaved ? 2 * k : k), j = i + (t.interleaved ? 1 : half);
            const double x = value_double(h->x, i), y = value_double(h->x, j);
            const double c = value_double(t.cosines, row * half + k), s = value_double(t.sines, row * half + k);
            put(out, i, c * x - s * y);
            put(out, j, s * x + c * y);
        }
    }
    return GRAPHI_OK;
}

const struct host_op host_ops_attention[] = {
    {"Attention", 3, 7, 4,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale softcap "
     "softmax_precision",
     run_attention, 0},
    {"RotaryEmbedding", 3, 4, 1, "interleaved num_heads rotary_embedding_dim", run_rotary, 0},
    {0},
};
