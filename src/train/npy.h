/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, versions 1 to 3: all real and integer types, either order of bytes and of dimensions. Conversions
 * give C order, and refuse what does not fit. */
#ifndef TRAIN_NPY_H
#define TRAIN_NPY_H

#include "graphi/types.h"

enum npy_type {
    NPY_F4,
    NPY_F8,
    NPY_U1,
    NPY_I4,
    NPY_I8,
    NPY_B1, /* bool */
    NPY_I1,
    NPY_I2,
    NPY_U2,
    NPY_U4,
    NPY_U8,
    NPY_F2,
    NPY_BF16, /* as NumPy writes the type of ml_dtypes and PyTorch: two bytes without a meaning */
    NPY_F12,  /* x87's 80 bits in 12 or 16 bytes: longdouble */
    NPY_F16,
    NPY_TYPES
};

struct npy {
    enum npy_type type;
    bool big_endian, fortran; /* the first dimension is the fastest */
    int rank;                 /* 0: a single number */
    int64_t dims[GRAPHI_MAX_RANK];
    int64_t count; /* elements */
    const void
        *data;    /* within the bytes that were parsed; aligned to 16 if written by NumPy, not necessarily otherwise */
    size_t bytes; /* of the data */
    void *file;   /* npy_load: the file, freed by npy_free */
};

size_t npy_size(enum npy_type type);      /* of one element */
const char *npy_name(enum npy_type type); /* NumPy's, little-endian: "<f4" */

/* Describes the array in `bytes`, copying nothing. Errors: INVALID (magic, header, dimensions that do not fit the
 * size); UNSUPPORTED (complex numbers, texts, structures and objects; rank above GRAPHI_MAX_RANK). */
graphi_status npy_parse(const char *where, const void *bytes, size_t size, struct npy *out);

/* Reads a file of at most `limit` bytes, packed by gzip or not; free it with npy_free. */
graphi_status npy_load(const char *path, size_t limit, struct npy *out);
void npy_free(struct npy *array);

/* Copies in C order, to float, rounding what is wider (INVALID for one beyond float32, and for a whole number that
 * float32 lacks), and to int64 (INVALID for a float that is not a whole number, and for what is out of range);
 * UNSUPPORTED: a longdouble that is not x86's. */
graphi_status npy_to_f32(const char *where, const struct npy *array, float *out);
graphi_status npy_to_i64(const char *where, const struct npy *array, int64_t *out);

/* An array of type NPY_U1, in C order. */
void npy_to_bytes(const struct npy *array, uint8_t *out);

/* Writes version 1.0, atomically; the data begins at a multiple of 64 bytes. */
graphi_status npy_save(const char *path, enum npy_type type, int rank, const int64_t *dims, const void *data);

#endif
