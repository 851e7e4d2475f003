/* SPDX-License-Identifier: Apache-2.0 */
/* What tuning says of its circumstances. */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "engine/compile/plan.h"

/* Says of a plan that was tuned from `base` what others had of the cores: `share`, or where operations were `left` as
 * they were, what they had then if that is more; and how often in a row they had some. */
void tune_mark(graphi_plan *plan, const graphi_plan *base, double share, bool left);

#endif
