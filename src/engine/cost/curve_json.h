/* SPDX-License-Identifier: Apache-2.0 */
/* A cost curve with its class's key as a JSON object, in stored plans and in files of curves. */
#ifndef ENGINE_CURVE_JSON_H
#define ENGINE_CURVE_JSON_H

#include "base/text.h"
#include "engine/cost/json_file.h"
#include "schedule/schedule.h"

void curve_write(struct text *text, uint64_t key, const struct cost_curve *curve);

/* The element of its list that `file` says. INVALID, naming the key. */
graphi_status curve_read(const struct json_file *file, json_t *object, uint64_t *key, struct cost_curve *curve);

#endif
