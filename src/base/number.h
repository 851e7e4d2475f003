/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes, none below 0 or near the end of 63 bits. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

/* Whole cache lines: what begins behind them shares none with what is in them. */
static inline int64_t whole_lines(int64_t bytes) { return round_up(bytes, 64); }

#endif
