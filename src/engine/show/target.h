/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a stored plan, in words: hashes decide whether it fits, facts tell a reader why it does not. */
#ifndef ENGINE_TARGET_H
#define ENGINE_TARGET_H

#include "base/text.h"
#include "engine/cost/json_file.h"
#include "engine/compile/plan.h"

/* The member "for" of a plan's file. */
void target_write(struct text *text, const struct compiled *compiled, const graphi_machine *machine);

/* REFUSED unless the file is for this graph, machine and options: the first fact that differs, or, where none does or
 * the file tells none, the hashes. */
graphi_status target_check(const struct json_file *file, const struct compiled *compiled);

#endif
