/* SPDX-License-Identifier: Apache-2.0 */
/* The words every other header uses: status codes, element types, export macro. */
#ifndef GRAPHI_TYPES_H
#define GRAPHI_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRAPHI_API __attribute__((visibility("default")))

/* Status codes; their values are the exit status of the command line. Zero is success. Results of a failing call stay
 * untouched. X(NAME, value, text) */
#define GRAPHI_STATUS_LIST(X)                                                                                          \
    X(OK, 0, "ok")                                                                                                     \
    X(MISSED, 1, "a comparison or goal was missed")                                                                    \
    X(USAGE, 2, "usage")                                                                                               \
    X(INVALID, 3, "bad input")                                                                                         \
    X(UNSUPPORTED, 4, "unsupported")                                                                                   \
    X(IO, 5, "input/output")                                                                                           \
    X(MEMORY, 6, "out of memory")                                                                                      \
    X(REFUSED, 7, "plan refused")                                                                                      \
    X(NONFINITE, 8, "non-finite numbers")                                                                              \
    X(INTERRUPTED, 130, "interrupted")

typedef enum graphi_status {
#define X(name, value, text) GRAPHI_##name = value,
    GRAPHI_STATUS_LIST(X)
#undef X
} graphi_status;

/* "INVALID", as in the list; "UNKNOWN" for none. */
static inline const char *graphi_status_name(graphi_status status)
{
    switch (status) {
#define X(name, value, text)                                                                                           \
    case GRAPHI_##name:                                                                                                \
        return #name;
        GRAPHI_STATUS_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

/* What is asked for of something that can be on or off. Toggles of policies' parameters have the same numbers. */
typedef enum graphi_choice {
    GRAPHI_OFF = -1,
    GRAPHI_DEFAULT, /* zero: as the field says, or chosen */
    GRAPHI_ON,
} graphi_choice;

/* What went wrong in the last failing call of this thread, as "CODE: WHERE: found X, expected Y"; "" before the first
 * failure. The text is valid until the next failing call of the same thread. Any thread. */
GRAPHI_API const char *graphi_message(void);

/* The version of the library, "major.minor.patch". Any thread. */
GRAPHI_API const char *graphi_version(void);

/* Element types. The size in bytes of one element is graphi_dtype_size; a bool is a byte, 0 or 1, and float16 the
 * binary16 of IEEE 754. Every operation says which it takes. X(NAME, bytes, text) */
#define GRAPHI_DTYPE_LIST(X)                                                                                           \
    X(F32, 4, "float32")                                                                                               \
    X(BF16, 2, "bfloat16")                                                                                             \
    X(I32, 4, "int32")                                                                                                 \
    X(I64, 8, "int64")                                                                                                 \
    X(U8, 1, "uint8")                                                                                                  \
    X(BOOL, 1, "bool")                                                                                                 \
    X(I8, 1, "int8")                                                                                                   \
    X(I16, 2, "int16")                                                                                                 \
    X(U16, 2, "uint16")                                                                                                \
    X(U32, 4, "uint32")                                                                                                \
    X(U64, 8, "uint64")                                                                                                \
    X(F16, 2, "float16")                                                                                               \
    X(F64, 8, "float64")

typedef enum graphi_dtype {
#define X(name, bytes, text) GRAPHI_##name,
    GRAPHI_DTYPE_LIST(X)
#undef X
        GRAPHI_DTYPES /* how many there are: none of them */
} graphi_dtype;

/* Stores of element-wise, batch-normalized and transposed results, of rows of up to 16 KB joined or cut, of gradients
 * of softmax and some of max pools: past the caches where a result is so large that it would leave them anyway, or
 * always, or never. What is written over its own argument is stored ordinarily in any case. The same bits. */
typedef enum graphi_streaming { GRAPHI_STREAM_BY_SIZE, GRAPHI_STREAM_ALWAYS, GRAPHI_STREAM_NEVER } graphi_streaming;

/* Dimensions a value may have at most. */
#define GRAPHI_MAX_RANK 8

/* 0: no element type. */
static inline size_t graphi_dtype_size(graphi_dtype dtype)
{
    static const size_t size[] = {
#define X(name, bytes, text) bytes,
        GRAPHI_DTYPE_LIST(X)
#undef X
    };
    return (size_t)dtype < sizeof size / sizeof *size ? size[dtype] : 0;
}

/* "no element type" for what is none. */
static inline const char *graphi_dtype_name(graphi_dtype dtype)
{
    static const char *const name[] = {
#define X(name, bytes, text) text,
        GRAPHI_DTYPE_LIST(X)
#undef X
    };
    return (size_t)dtype < sizeof name / sizeof *name ? name[dtype] : "no element type";
}

#ifdef __cplusplus
}
#endif
#endif
