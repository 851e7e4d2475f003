/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of random cases share: a few seconds' worth from seed 0 on, or, with SECONDS SEED on the command line,
 * as many from SEED on as there is time for. */
#ifndef TESTS_RANDOM_CASES_H
#define TESTS_RANDOM_CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static struct {
    double seconds, begin; /* seconds 0: the usual number of cases */
    uint64_t seed;
} cases;

static inline void cases_read(int argc, char **argv)
{
    cases.seconds = argc > 1 ? atof(argv[1]) : 0;
    cases.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
}

/* Whether there is to be another after so many. */
static inline bool cases_more(uint64_t done, uint64_t usual)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (!done)
        cases.begin = now;
    return cases.seconds > 0 ? now - cases.begin < cases.seconds : done < usual;
}

#endif
