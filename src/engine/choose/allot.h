/* SPDX-License-Identifier: Apache-2.0 */
/* Widths and order of all tasks, found before the run by searching in virtual time (allot.c), for the malleable policy.
 */
#ifndef ENGINE_ALLOT_H
#define ENGINE_ALLOT_H

#include "engine/choose/draft.h"

/* For a draft whose policy is malleable: its allotment is what the search found when its simulated makespan is shorter
 * than that of deciding widths during the run, and NULL otherwise; predicted_ns becomes the shorter of the two.
 * Drafts of other policies, and of graphs too large to be simulated many times, stay as they are. Deterministic; one
 * thread; below 0.1 s of computing on two workers, below 1 s on any number. */
graphi_status allot_search(struct draft *draft);

#endif
