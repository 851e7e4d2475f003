/* SPDX-License-Identifier: Apache-2.0 */
/* How long measuring may go on. */
#ifndef ENGINE_PATIENCE_H
#define ENGINE_PATIENCE_H

#include "graphi/types.h"

#include <stdbool.h>
#include <stdint.h>

/* Until when to measure, whom to ask between executions whether to go on, and who may run something after each round
 * (NULL: nobody). */
struct patience {
    int64_t deadline; /* clock_ns */
    bool (*stop)(void *context);
    graphi_status (*between)(void *context);
    void *context;
};
bool patience_over(const struct patience *patience);           /* the deadline has passed */
graphi_status patience_stopped(const struct patience *patience); /* INTERRUPTED, with a message, when asked to stop */

#endif
