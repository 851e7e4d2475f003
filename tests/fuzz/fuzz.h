/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target is: one file tests/fuzz/fuzz_NAME.c with these two functions. libFuzzer calls the first alone;
 * without it, driver.c mutates the seeds with a deterministic generator and calls the first with every result. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds one input to a loader. Must return 0 whatever the input, free what it allocated, and abort on a wrong result.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes valid input number `which` to out[0 .. size) and gives its length; 0: there are no more. */
size_t fuzz_seed(unsigned which, uint8_t *out, size_t size);

#endif
