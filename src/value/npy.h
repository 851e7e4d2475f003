/* SPDX-License-Identifier: Apache-2.0 */
/* Host values as NumPy's files: .npy of every type that it has, in C or Fortran order, and members of .npz. bfloat16
 * is read where NumPy wrote it ('<V2'), and written as that. */
#ifndef VALUE_NPY_H
#define VALUE_NPY_H

#include "value/value.h"

/* The array in the bytes of a .npy file. Errors: INVALID, UNSUPPORTED (objects, strings, big-endian), MEMORY. */
graphi_status npy_value(const char *where, const void *bytes, size_t size, graphi_tensor **out);
graphi_status npy_value_load(const char *path, graphi_tensor **out);
graphi_status npy_value_save(const graphi_tensor *value, const char *path);

/* Member NAME.npy of an archive, stored or deflated. */
graphi_status npz_value_load(const char *path, const char *name, graphi_tensor **out);

#endif
