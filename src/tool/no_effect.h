/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a setting that were asked for and that the plan has no use for: whoever reads its times should not think
 * that they are of these. */
#ifndef TOOL_NO_EFFECT_H
#define TOOL_NO_EFFECT_H

#include "tool/options.h"
#include "tool/result.h"

/* A note for each. `infers`: the graph has no backward pass; `siblings` of the machine. */
void no_effect_note(const struct options *options, const graphi_decision *setting, bool infers, int siblings,
                    struct result *result);

#endif
