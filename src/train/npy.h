/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, versions 1 to 3, little-endian, in C order. */
#ifndef TRAIN_NPY_H
#define TRAIN_NPY_H

#include "graphi/types.h"

enum npy_type { NPY_F4, NPY_F8, NPY_U1, NPY_I4, NPY_I8, NPY_TYPES };

struct npy {
    enum npy_type type;
    int rank; /* 0: a single number */
    int64_t dims[GRAPHI_MAX_RANK];
    int64_t count; /* elements */
    const void
        *data;    /* within the bytes that were parsed; aligned to 16 if written by NumPy, not necessarily otherwise */
    size_t bytes; /* of the data */
    void *file;   /* npy_load: the file, freed by npy_free */
};

size_t npy_size(enum npy_type type); /* of one element */

/* Describes the array in `bytes`, copying nothing. Errors: INVALID (magic, header, dimensions that do not fit the
 * size); UNSUPPORTED (another element type, big-endian, Fortran order, rank above GRAPHI_MAX_RANK). */
graphi_status npy_parse(const char *where, const void *bytes, size_t size, struct npy *out);

/* Reads a file of at most `limit` bytes; free it with npy_free. */
graphi_status npy_load(const char *path, size_t limit, struct npy *out);
void npy_free(struct npy *array);

/* Copies to float, rounding float64 (INVALID for one beyond float32, and for a whole number that float32 lacks), and to
 * int64 (INVALID for a float that is not a whole number or is out of range). */
graphi_status npy_to_f32(const char *where, const struct npy *array, float *out);
graphi_status npy_to_i64(const char *where, const struct npy *array, int64_t *out);

/* Writes version 1.0, atomically; the data begins at a multiple of 64 bytes. */
graphi_status npy_save(const char *path, enum npy_type type, int rank, const int64_t *dims, const void *data);

#endif
