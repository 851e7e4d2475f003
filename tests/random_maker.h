/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph in the making (random_graph.h): its random numbers, the pool of values that next operations draw from,
 * and the parameters that they share. */
#ifndef TESTS_RANDOM_MAKER_H
#define TESTS_RANDOM_MAKER_H

#include "base/random.h"
#include "graph/graph.h"
#include "graphi/graphi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INPUTS = 3, /* which the pool begins with */
    MOST_STEPS = 22,
    MOST_POOL = 120,
    MOST_SHARED = 60,
    MOST_NAMES = 10 * MOST_STEPS + 20, /* a recurrent layer has nine weights */
    MOST_ELEMENTS = 1 << 12,
    END_OF_STEPS = 1000
};

/* A graph in the making. */
struct maker {
    graphi_graph *g;
    uint64_t key, step, used; /* of random numbers */
    double noise;             /* each result times 1 + noise u, u of [-1, 1) by element; 0: as it is */
    bool body;                /* of a sub-graph: has no parameters and no inputs of its own */
    bool chance;              /* has random operations, which go by their place: noise then is there, but not read */
    bool convolves;           /* has convolutions, which may err more than rounding does */
    int64_t symbol, bound;    /* negative number that dimensions 0 may be; 0: none */
    int symbol_number;        /* by which attributes name it */
    struct {
        graphi_value v;
        double size; /* about the largest magnitude */
    } pool[MOST_POOL];
    graphi_value shared[MOST_SHARED]; /* parameters that several may read */
    int count, shares, named;
    int below[MOST_NAMES]; /* of input "idsN": its numbers are smaller */
};

static inline int64_t toss(struct maker *m, int64_t sides)
{
    struct random4 r = random_philox(m->key, 1 + m->step, m->used++);
    return (int64_t)((uint64_t)r.v[0] * (uint64_t)sides >> 32);
}

static inline struct value_type type_of(const struct maker *m, graphi_value v)
{
    return v >= 0 && (size_t)v < m->g->values.count ? graph_value(m->g, v)->type : (struct value_type){.symbol = -1};
}

static inline const char *name_of(struct maker *m, const char *prefix)
{
    static char name[24];
    snprintf(name, sizeof name, "%s%d", prefix, m->named++);
    return name;
}

static inline graphi_value op1(struct maker *m, const char *kind, graphi_value a)
{
    return graphi_op(m->g, kind, 1, &a, 0, NULL);
}

static inline graphi_value op2(struct maker *m, const char *kind, graphi_value a, graphi_value b)
{
    return graphi_op(m->g, kind, 2, (graphi_value[]){a, b}, 0, NULL);
}

static inline graphi_value number(struct maker *m, double x)
{
    const float f = (float)x;
    return graphi_constant(m->g, GRAPHI_F32, 0, NULL, &f);
}

/* A constant of middle + spread u by element. */
static inline graphi_value constant(struct maker *m, int rank, const int64_t *dims, double middle, double spread)
{
    int64_t elements = 1;
    for (int d = 0; d < rank; d++)
        elements *= dims[d];
    float *data = malloc(sizeof *data * (size_t)elements);
    for (int64_t i = 0; i < elements; i++) {
        double u = random_unit(random_philox(m->key, 7000 + m->g->values.count, (uint64_t)i).v[0]);
        data[i] = (float)(middle + spread * (2 * u - 1));
    }
    graphi_value v = graphi_constant(m->g, GRAPHI_F32, rank, dims, data);
    free(data);
    return v;
}

static inline graphi_value keep(struct maker *m, graphi_value v, double size)
{
    if (size > 3) {
        v = toss(m, 2) ? op1(m, "tanh", v) : op2(m, "mul", v, number(m, 1 / size));
        size = 1;
    }
    if (m->noise || m->chance) {
        struct value_type type = type_of(m, v);
        type.dims[0] = type.symbol >= 0 ? 1 : type.dims[0];
        graphi_value noisy = op2(m, "mul", v, constant(m, type.rank, type.dims, 1, m->noise));
        v = m->noise ? noisy : v;
    }
    if (m->count < MOST_POOL) {
        m->pool[m->count].v = v;
        m->pool[m->count++].size = size;
    }
    return v;
}

/* The place of a value in the pool, seldom an old one, of a rank of at least `rank`; -1 where none was found. */
static inline int place(struct maker *m, int rank)
{
    for (int tries = 0; tries < 8; tries++) {
        int reach = toss(m, 3) && m->count > 5 ? 5 : m->count, i = m->count - 1 - (int)toss(m, reach);
        if (type_of(m, m->pool[i].v).rank >= rank)
            return i;
    }
    return -1;
}

/* Another value of the same type, or the same. */
static inline int place_like(struct maker *m, int i)
{
    const struct value_type like = type_of(m, m->pool[i].v);
    int from = (int)toss(m, m->count);
    for (int k = 0; k < m->count; k++) {
        int other = (from + k) % m->count;
        const struct value_type type = type_of(m, m->pool[other].v);
        if ((other != i || !toss(m, 3)) && type_equal(&type, &like))
            return other;
    }
    return i;
}

/* A weight, often one that is there already. */
static inline graphi_value weight(struct maker *m, int rank, const int64_t *dims, double size)
{
    if (m->body)
        return constant(m, rank, dims, 0, size);
    for (int i = 0; i < m->shares; i++) {
        const struct value_type type = type_of(m, m->shared[i]);
        if (type.rank == rank && (!rank || !memcmp(type.dims, dims, sizeof *dims * (size_t)rank)) && toss(m, 2))
            return m->shared[i];
    }
    graphi_value v = graphi_parameter(m->g, name_of(m, "p"), GRAPHI_F32, rank, dims,
                                      &(graphi_initializer){.kind = GRAPHI_INIT_UNIFORM, .a = -size, .b = size});
    if (m->shares < MOST_SHARED)
        m->shared[m->shares++] = v;
    return v;
}

static inline int64_t divisor(struct maker *m, int64_t n)
{
    int64_t d = 1 + toss(m, n < 40 ? n : 40);
    while (n % d)
        d--;
    return d;
}

/* The elements in another shape; a bounded dimension 0 stays. */
static inline graphi_value refold(struct maker *m, graphi_value v, int rank)
{
    const struct value_type type = type_of(m, v);
    int64_t shape[GRAPHI_MAX_RANK], left = type_count(&type);
    int first = type.symbol >= 0;
    if (first) {
        shape[0] = type.dims[0];
        left /= shape[0];
    }
    for (int d = first; d < rank; d++) {
        shape[d] = d == rank - 1 ? left : divisor(m, left);
        left /= shape[d];
    }
    return left == 1 || rank > first ? graphi_reshape(m->g, v, shape, rank) : v;
}

#endif
