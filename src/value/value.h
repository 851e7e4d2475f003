/* SPDX-License-Identifier: Apache-2.0 */
/* Host values: tensors of any ONNX type of rank up to 8, sequences, and optionals that hold nothing. They are counted
 * and immutable once made: whoever fills one does so before anyone else sees it. Views (reshape, identity) share the
 * bytes of another value. Counting is atomic, so threads may share values. */
#ifndef VALUE_VALUE_H
#define VALUE_VALUE_H

#include "value/type.h"

#include <stdatomic.h>

struct graphi_tensor {
    atomic_int references;
    graphi_tensor_kind kind;
    graphi_element type;
    int rank;
    int64_t dims[VALUE_RANK];
    int64_t count; /* elements, or items of a sequence */
    size_t bytes;
    void *data;            /* of a tensor: behind this struct, or the owner's */
    graphi_tensor **items; /* of a sequence */
    graphi_tensor *owner;  /* whose bytes a view shows; NULL: its own */
};

/* Their product, or -1 where a dimension is negative, or the product times `size` is beyond 2^40. */
int64_t dims_count(int rank, const int64_t *dims, size_t size);

/* A tensor whose elements are not set. `where` is for messages. */
graphi_status value_new(const char *where, graphi_element type, int rank, const int64_t *dims, graphi_tensor **out);
/* The same elements under other dimensions of the same count. */
graphi_status value_view(const char *where, graphi_tensor *of, int rank, const int64_t *dims, graphi_tensor **out);
graphi_status value_sequence(const char *where, int64_t count, graphi_tensor **out); /* items are NULL */
graphi_status value_nothing(graphi_tensor **out);
graphi_status value_number(const char *where, graphi_element type, double number, graphi_tensor **out); /* a scalar */
graphi_status value_list(const char *where, int64_t count, const int64_t *numbers,
                         graphi_tensor **out); /* int64, 1-D */

graphi_tensor *value_keep(const graphi_tensor *value); /* one more holder */
void value_drop(graphi_tensor *value);                 /* one holder fewer; NULL is accepted */

/* Element i as a number, whatever the type. */
double value_double(const graphi_tensor *value, int64_t i);
int64_t value_int(const graphi_tensor *value, int64_t i);

/* "float32 [2, 3]" for messages. */
struct value_text {
    char text[160];
};
const char *value_describe(const graphi_tensor *value, struct value_text *text);
const char *dims_describe(int rank, const int64_t *dims, struct value_text *text);

/* Strides in elements of a tensor in C order. */
void dims_strides(int rank, const int64_t *dims, int64_t *strides);

#endif
