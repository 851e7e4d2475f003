/* SPDX-License-Identifier: Apache-2.0 */
/* These tasks at these widths, in this order: what the search of the malleable policy finds, a caller of the simulator
 * gives, and measuring wants (struct allotment). */
#ifndef ENGINE_ALLOTMENT_H
#define ENGINE_ALLOTMENT_H

#include "schedule/schedule.h"

/* All as wide, keys 0; NULL: out of memory. */
struct allotment *allotment_create(size_t tasks, int width);
void allotment_destroy(struct allotment *allotment); /* accepts NULL */

#endif
