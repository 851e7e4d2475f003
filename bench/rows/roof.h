/* SPDX-License-Identifier: Apache-2.0 */
/* What plain loops need for the same traffic: the limit that memory-bound kernels are held against. */
#ifndef BENCH_ROWS_ROOF_H
#define BENCH_ROWS_ROOF_H

#include <stdbool.h>
#include <stdint.h>

/* Compulsory traffic of one instance of a kernel in bytes. */
struct traffic {
    int64_t read, written;
    bool in_place; /* what is written is the first part of what is read */
};

static inline int64_t traffic_bytes(const struct traffic *t) { return t->read + t->written; }
static inline int64_t traffic_footprint(const struct traffic *t) { return t->read + (t->in_place ? 0 : t->written); }

/* Median time in ms of reading and writing this much once, out of `repeat` rounds over `copies` separate instances, on
 * `threads` threads that have a part of each: what is written is copied from what is read as far as that goes, the rest
 * is read alone, or filled. The better of ordinary and streaming stores. Negative: no memory or no threads. */
double roof_ms(const struct traffic *traffic, int threads, int repeat, int copies);

#endif
