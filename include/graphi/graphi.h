/* SPDX-License-Identifier: Apache-2.0 */
/* Everything Graphi offers: the core, and the companions for who studies or steers schedules (curves, profile,
 * simulate), which a program that trains or serves needs nothing of. */
#ifndef GRAPHI_H
#define GRAPHI_H

#include "graphi/array.h"
#include "graphi/checkpoint.h"
#include "graphi/curves.h"
#include "graphi/data.h"
#include "graphi/dynamic.h"
#include "graphi/event.h"
#include "graphi/frontier.h"
#include "graphi/attention.h"
#include "graphi/generate.h"
#include "graphi/graph.h"
#include "graphi/group.h"
#include "graphi/lease.h"
#include "graphi/machine.h"
#include "graphi/models.h"
#include "graphi/ops.h"
#include "graphi/place.h"
#include "graphi/plan.h"
#include "graphi/profile.h"
#include "graphi/recurrent.h"
#include "graphi/run.h"
#include "graphi/schedule.h"
#include "graphi/session.h"
#include "graphi/simulate.h"
#include "graphi/state.h"
#include "graphi/tensor.h"
#include "graphi/train.h"
#include "graphi/trees.h"
#include "graphi/types.h"

#endif
