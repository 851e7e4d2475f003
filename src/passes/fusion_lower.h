/* SPDX-License-Identifier: Apache-2.0 */
/* Work moved between groups. */
#ifndef PASSES_FUSION_LOWER_H
#define PASSES_FUSION_LOWER_H

#include "passes/fusion_group.h"

/* Nodes go to the deeper group that alone reads them where that saves memory traffic; then groups to their consumers.
 */
graphi_status fusion_lower(struct fuser *f);

#endif
