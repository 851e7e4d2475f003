/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a stored plan is for, in words: hashes decide whether it fits, facts tell a reader why it does not. */
#ifndef ENGINE_WHOM_H
#define ENGINE_WHOM_H

#include "base/text.h"
#include "engine/cost/json_file.h"
#include "engine/compile/plan.h"

/* The member "for" of a plan's file. */
void whom_write(struct text *text, const struct compiled *compiled, const graphi_machine *machine);

/* REFUSED unless the file is for this graph, machine and options: the first fact that differs, or, where none does or
 * the file tells none, the hashes. */
graphi_status whom_check(const struct json_file *file, const struct compiled *compiled);

#endif
