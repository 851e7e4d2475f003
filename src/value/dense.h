/* SPDX-License-Identifier: Apache-2.0 */
/* Whole tensors in a domain, and matrix products of them. */
#ifndef VALUE_DENSE_H
#define VALUE_DENSE_H

#include "value/element.h"
#include "value/value.h"

#include "graphi/types.h"

/* A tensor's elements in a domain: its own where they lie so, else converted. Free it in any case. */
struct dense {
    enum domain domain;
    const void *data;
    void *room;
};
graphi_status dense_load(const char *where, enum domain domain, const graphi_tensor *value, struct dense *out);
void dense_free(struct dense *dense);

/* Bytes of an element of the domain. */
size_t domain_size(enum domain domain);

/* c[m, n] (rows beside each other) = or += a b, sums in the order of k; strides in elements. */
struct product {
    enum domain domain;
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    void *c;
    int64_t c_row;
    bool add;
};
void product_run(const struct product *p);

#endif
