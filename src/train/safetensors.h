/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files: a length (u64, little-endian), a JSON header that names every tensor's type, shape and place, the
 * data. Written atomically, so that a checkpoint on disk is always a whole one. */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include "base/arena.h"
#include "base/index.h"
#include "graphi/types.h"

#include <stddef.h>

/* A header may be this long (some 100,000 tensors); nesting is four deep at most. */
#define SAFETENSORS_HEADER_MOST ((size_t)16 << 20)

struct tensor_entry {
    const char *name;
    graphi_dtype dtype;
    int rank; /* 0: a single number */
    int64_t dims[GRAPHI_MAX_RANK];
    const void *data; /* row-major; from a file of another program not necessarily aligned to its type: memcpy */
    size_t bytes;     /* the dimensions' product times the size of an element */
    /* NULL; of a tensor that no parameter can be, why: "type F16", "7 dimensions". It has a name and bytes alone. */
    const char *unsupported;
};

struct tensor_pair { /* an entry of __metadata__ */
    const char *key, *value;
};

struct tensor_file {
    struct tensor_entry *tensors; /* in the order of the data */
    size_t count;
    struct tensor_pair *pairs;
    size_t pair_count;
    struct index names; /* of tensors */
    struct arena arena; /* names, keys, values and the two arrays */
    void *bytes;        /* safetensors_load: the file */
};

/* Describes what is in `bytes`; tensors point into them. The data must be covered without holes or overlaps, as the
 * format demands. Errors: INVALID (truncated, header too long or no such JSON, a name twice, offsets out of bounds or
 * not matching the shape), MEMORY; *out untouched. */
graphi_status safetensors_parse(const char *where, const void *bytes, size_t size, struct tensor_file *out);

/* Reads and parses a file of at most `limit` bytes; free with safetensors_free. */
graphi_status safetensors_load(const char *path, size_t limit, struct tensor_file *out);
void safetensors_free(struct tensor_file *file);

/* NULL if there is none. */
const struct tensor_entry *safetensors_find(const struct tensor_file *file, const char *name);
const char *safetensors_metadata(const struct tensor_file *file, const char *key);

/* Writes all tensors to `path`. Data begins at a multiple of 64 bytes; wider element types come first, so that every
 * tensor is aligned to its type. The same input gives the same bytes. Errors, the old file whole: INVALID (a name twice
 * or "__metadata__", `bytes` not matching the shape, a name that is no UTF-8), IO, MEMORY. */
graphi_status safetensors_save(const char *path, const struct tensor_entry *tensors, size_t count,
                               const struct tensor_pair *pairs, size_t pair_count);

#endif
