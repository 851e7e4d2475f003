/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, by short names. */
#ifndef VALUE_TYPE_H
#define VALUE_TYPE_H

#include "graphi/tensor.h"

#define T_F32 GRAPHI_ELEMENT_FLOAT32
#define T_U8 GRAPHI_ELEMENT_UINT8
#define T_I8 GRAPHI_ELEMENT_INT8
#define T_U16 GRAPHI_ELEMENT_UINT16
#define T_I16 GRAPHI_ELEMENT_INT16
#define T_I32 GRAPHI_ELEMENT_INT32
#define T_I64 GRAPHI_ELEMENT_INT64
#define T_BOOL GRAPHI_ELEMENT_BOOL
#define T_F16 GRAPHI_ELEMENT_FLOAT16
#define T_F64 GRAPHI_ELEMENT_FLOAT64
#define T_U32 GRAPHI_ELEMENT_UINT32
#define T_U64 GRAPHI_ELEMENT_UINT64
#define T_BF16 GRAPHI_ELEMENT_BFLOAT16
enum { VALUE_RANK = GRAPHI_TENSOR_RANK };

/* Bytes of an element in memory; 0: there can be no tensor of that type. */
size_t element_size(graphi_element type);
bool element_is_float(graphi_element type); /* 8 bits and fewer as well */

#endif
