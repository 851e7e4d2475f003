/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of any ONNX type, and sequences of them, as models of others take and give them (session.h). They are
 * counted: whoever holds one gives it back with graphi_tensor_destroy, after which others may still hold it. */
#ifndef GRAPHI_TENSOR_H
#define GRAPHI_TENSOR_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, by ONNX's numbers. Types of 4 bits and fewer take a byte an element. X(NAME, number, bytes, text) */
#define GRAPHI_ELEMENT_LIST(X)                                                                                         \
    X(FLOAT32, 1, 4, "float32")                                                                                        \
    X(UINT8, 2, 1, "uint8")                                                                                            \
    X(INT8, 3, 1, "int8")                                                                                              \
    X(UINT16, 4, 2, "uint16")                                                                                          \
    X(INT16, 5, 2, "int16")                                                                                            \
    X(INT32, 6, 4, "int32")                                                                                            \
    X(INT64, 7, 8, "int64")                                                                                            \
    X(STRING, 8, 0, "string")                                                                                          \
    X(BOOL, 9, 1, "bool")                                                                                              \
    X(FLOAT16, 10, 2, "float16")                                                                                       \
    X(FLOAT64, 11, 8, "float64")                                                                                       \
    X(UINT32, 12, 4, "uint32")                                                                                         \
    X(UINT64, 13, 8, "uint64")                                                                                         \
    X(COMPLEX64, 14, 0, "complex64")                                                                                   \
    X(COMPLEX128, 15, 0, "complex128")                                                                                 \
    X(BFLOAT16, 16, 2, "bfloat16")                                                                                     \
    X(FLOAT8E4M3FN, 17, 1, "float8e4m3fn")                                                                             \
    X(FLOAT8E4M3FNUZ, 18, 1, "float8e4m3fnuz")                                                                         \
    X(FLOAT8E5M2, 19, 1, "float8e5m2")                                                                                 \
    X(FLOAT8E5M2FNUZ, 20, 1, "float8e5m2fnuz")                                                                         \
    X(UINT4, 21, 1, "uint4")                                                                                           \
    X(INT4, 22, 1, "int4")                                                                                             \
    X(FLOAT4E2M1, 23, 1, "float4e2m1")                                                                                 \
    X(FLOAT8E8M0, 24, 1, "float8e8m0")                                                                                 \
    X(UINT2, 25, 1, "uint2")                                                                                           \
    X(INT2, 26, 1, "int2")                                                                                             \
    X(FLOAT6E2M3, 27, 1, "float6e2m3")                                                                                 \
    X(FLOAT6E3M2, 28, 1, "float6e3m2")

typedef enum graphi_element {
    GRAPHI_ELEMENT_UNKNOWN = 0,
#define X(name, number, bytes, text) GRAPHI_ELEMENT_##name = number,
    GRAPHI_ELEMENT_LIST(X)
#undef X
} graphi_element;

/* "float32", as in the list; "no element type" for what is none. */
GRAPHI_API const char *graphi_element_name(graphi_element element);

/* Dimensions of a value at most. */
#define GRAPHI_TENSOR_RANK 8

typedef struct graphi_tensor graphi_tensor;

typedef enum graphi_tensor_kind {
    GRAPHI_KIND_TENSOR,
    GRAPHI_KIND_SEQUENCE, /* of values */
    GRAPHI_KIND_NOTHING,  /* an optional that holds nothing; one that holds a value is that value */
} graphi_tensor_kind;

typedef struct graphi_tensor_info {
    graphi_tensor_kind kind;
    graphi_element element; /* of a tensor */
    int rank;
    int64_t dims[GRAPHI_TENSOR_RANK];
    int64_t count;    /* elements of a tensor, values of a sequence */
    const void *data; /* of a tensor, in C order; lives as long as the value */
    size_t bytes;
} graphi_tensor_info;

/* A tensor that holds a copy of `data`, count elements in C order. Errors, *out untouched: INVALID (rank, dimension or
 * number of bytes that is none), UNSUPPORTED (strings, complex numbers), MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_tensor_create(graphi_element element, int rank, const int64_t *dims, const void *data,
                                              graphi_tensor **out);

/* A sequence of `count` values (0 and more), which it keeps: the caller's hold on them stays. Errors, *out untouched:
 * INVALID (a count below 0), MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_tensor_create_sequence(int64_t count, const graphi_tensor *const *items,
                                                       graphi_tensor **out);

/* Reads an array from a NumPy file, from member `name` of one that ends in .npz, or from a TensorProto, SequenceProto
 * or OptionalProto that ends in .pb, of which `kind` says which it is (else ignored). A bfloat16 array ('<V2') is
 * read as such. Errors: IO, INVALID, UNSUPPORTED, MEMORY. */
GRAPHI_API graphi_status graphi_tensor_load(const char *path, const char *name, const char *kind, graphi_tensor **out);

/* Writes a tensor as .npy, atomically. Errors: IO, UNSUPPORTED (a sequence, nothing, a type that NumPy lacks). */
GRAPHI_API graphi_status graphi_tensor_save(const graphi_tensor *value, const char *path);

GRAPHI_API void graphi_tensor_get_info(const graphi_tensor *value, graphi_tensor_info *out);

/* Value `i` of a sequence, which keeps it; NULL: there is none. */
GRAPHI_API const graphi_tensor *graphi_tensor_item(const graphi_tensor *value, int64_t i);

/* Where two values differ by more than atol + rtol * |expected|: their kind, type, shape, or the first such element.
 * Equal infinities and two NaN agree. MISSED with a message that says where; types and kinds that differ are MISSED. */
GRAPHI_API graphi_status graphi_tensor_compare(const graphi_tensor *found, const graphi_tensor *expected, double rtol,
                                               double atol);

GRAPHI_API void graphi_tensor_destroy(graphi_tensor *value); /* NULL is accepted */

#ifdef __cplusplus
}
#endif
#endif
