/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in NumPy's .npy files: what runs are fed from and what they leave behind. */
#ifndef GRAPHI_ARRAY_H
#define GRAPHI_ARRAY_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an array of exactly this shape into `data` (dense, of `dtype`: float32, int32 or int64), converting between
 * number types where nothing is lost but the precision of wider floats. The file may have any real or integer type of
 * NumPy, bool or bfloat16, in any order, and may be gzip. INVALID naming the file, its shape and the expected one, or a
 * number that does not fit; UNSUPPORTED for other element types, of the file or asked for; IO; MEMORY. *data is
 * unspecified after a failure. Any thread. */
GRAPHI_API graphi_status graphi_array_load(const char *path, graphi_dtype dtype, int rank, const int64_t *dims,
                                           void *data);

/* Writes float32, int32, int64 or uint8, atomically. INVALID, a shape that no value has; UNSUPPORTED, IO, MEMORY. Any
 * thread. */
GRAPHI_API graphi_status graphi_array_save(const char *path, graphi_dtype dtype, int rank, const int64_t *dims,
                                           const void *data);

#ifdef __cplusplus
}
#endif
#endif
