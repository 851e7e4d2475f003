/* SPDX-License-Identifier: Apache-2.0 */
/* Peak memory of this process beyond its start. */
#ifndef TOOL_RESIDENT_H
#define TOOL_RESIDENT_H

#include "tool/result.h"

/* What is resident now is the start; peaks before it are forgotten. */
void resident_begin(void);

/* peak_rss_bytes and peak_rss_absolute_bytes since then; where the system does not tell, a note instead. */
void resident_row(struct result *result, json_t *row);

#endif
