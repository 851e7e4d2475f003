/* SPDX-License-Identifier: Apache-2.0 */
/* What was typed and has no use, as parts of a setting that the plan does not have: whoever reads its times should not
 * think that they are of these. */
#ifndef CLI_NO_EFFECT_H
#define CLI_NO_EFFECT_H

#include "cli/options.h"
#include "cli/result.h"

bool policy_is_strategy(graphi_policy policy); /* s1 to s1234 */

/* A note for each. `infers`: the graph has no backward pass. */
void no_effect_note(const struct options *options, const graphi_setting *setting, bool infers, struct result *result);

/* A note where --size was typed and the network has one size. */
void no_effect_size(const struct options *options, const graphi_model_info *network, struct result *result);

#endif
