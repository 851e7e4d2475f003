/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the limit. The roof is read several times in a run, and a reading can be too low, never too high: rows and
 * goals say against which they stand ("roof_gflops"), and when all is measured they are put against the highest. The
 * bandwidth is read once, before anything is measured. */
#ifndef BENCH_RATES_H
#define BENCH_RATES_H

#include "tool/result.h"

/* A goal for a time's part of the limit: `value` (1, or 100 per cent, is the limit) is at least `goal`. Of
 * the rating its roof counts. */
void rates_goal(struct result *result, const char *name, double value, double goal, struct rating rating);

/* Puts rows and goals, and the machine of the result, against the roof of `best`, the machine at hand; notes say what a
 * reader must know. */
void rates_settle(struct result *result, const graphi_machine_info *best);

#endif
