/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent operators step by step, for what the loop operation has no form of. One thread lowers. */
#ifndef FLOW_UNROLLED_H
#define FLOW_UNROLLED_H

#include "flow/lower.h"

/* Inputs have the shapes that the operator's text asks for. UNSUPPORTED: more steps than are unrolled, or inputs that
 * are no floats; INVALID as lower_set. */
graphi_status lower_unrolled(struct lower_call *c);

#endif
