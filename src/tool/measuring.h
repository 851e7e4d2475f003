/* SPDX-License-Identifier: Apache-2.0 */
/* For how long a command measures the machine at hand before it does what it is asked for. */
#ifndef TOOL_MEASURING_H
#define TOOL_MEASURING_H

#include "graphi/types.h"

/* A third of a second, or what GRAPHI_MEASURE_SECONDS says. USAGE, reported, where that is no time up to a minute. */
graphi_status measuring_seconds(double *seconds);

/* The variable's seconds where they are fewer than usual, which a result tells; 0: they are not. */
double measuring_shortened(void);

#endif
