/* SPDX-License-Identifier: Apache-2.0 */
/* Groups as programs. */
#ifndef PASSES_FUSION_WRITE_H
#define PASSES_FUSION_WRITE_H

#include "passes/fusion_group.h"

/* Would the union of these groups (distinct), and a node more (-1: none), keep to the limits of programs? */
bool fusion_fits(struct fuser *f, const int32_t *groups, int count, int32_t more);
/* Would a group without this member? */
bool fusion_fits_without(struct fuser *f, int32_t group, int32_t less);

/* Groups of several nodes become programs. */
graphi_status fusion_write(struct fuser *f, struct value_map *map);

#endif
