/* SPDX-License-Identifier: Apache-2.0 */
/* The setting of a plan, as asked for and as chosen. */
#ifndef ENGINE_SETTING_H
#define ENGINE_SETTING_H

#include "engine/choose/draft.h"

/* The simulator knows what two sums do not (order, hand-over, tails); it takes its time, though: predicted_ns of
 * more tasks is an estimate that knows executors and widths alone. */
enum { MOST_SIMULATED_TASKS = 20000 };
enum { FEW_EXECUTORS = 16 }; /* less than that have a static driver unasked */

/* USAGE naming what is none: every setting of a caller, before it is looked at. */
graphi_status setting_check(const graphi_setting *wanted);
/* Fills what `wanted` leaves open; USAGE when it does not fit. Tells why in `why`. */
graphi_status setting_choose(struct draft *draft, const graphi_setting *wanted);

#endif
