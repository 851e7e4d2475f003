/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point types of 4 to 16 bits, described by a row each: bits of exponent and fraction, bias, and which
 * patterns are no numbers. Pure functions. Source: ONNX's page of float8, OCP Microscaling formats 1.0. */
#ifndef VALUE_SMALL_FLOAT_H
#define VALUE_SMALL_FLOAT_H

#include "graphi/tensor.h"

/* The number behind a pattern of a type of 8 bits or fewer. */
float small_float_to(graphi_element type, uint8_t bits);

/* The pattern nearest to a number, ties to even. `saturate`: what is beyond the largest becomes that, else infinity, or
 * NaN where there is none. Types of 4 and 6 bits always saturate. */
uint8_t small_float_from(graphi_element type, float number, bool saturate);

#endif
