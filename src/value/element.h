/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in memory and in the domain in which they are computed: 16-bit floats are stored, float32 computed; integers
 * are computed in 64 bits and wrap when stored, as ONNX's do. Pure functions. */
#ifndef VALUE_ELEMENT_H
#define VALUE_ELEMENT_H

#include "value/type.h"

enum domain { DOMAIN_F32, DOMAIN_F64, DOMAIN_I64, DOMAIN_U64, DOMAINS };

enum { BLOCK = 256 }; /* elements that are computed at a time: four of these lie in 8 KB */
union block {
    float f[BLOCK];
    double d[BLOCK];
    int64_t i[BLOCK];
    uint64_t u[BLOCK];
};

enum domain element_domain(graphi_element type);

/* n elements, `stride` apart, into the domain's array, which is `room`; the result is `room`, or the elements
 * themselves where they lie as the domain has them. */
const void *element_load(enum domain domain, graphi_element type, const void *from, int64_t stride, int64_t n,
                         void *room);

/* The domain's array as n elements beside each other. Floats become integers by truncation; NaN, and what is beyond an
 * integer type, become what the processor gives (0 for NaN). */
void element_store(enum domain domain, graphi_element type, const void *room, int64_t n, void *to);

float half_to_float(uint16_t bits);
uint16_t half_from_double(double number); /* to nearest, ties to even */
float bfloat_to_float(uint16_t bits);
uint16_t bfloat_from_float(float number);

#endif
