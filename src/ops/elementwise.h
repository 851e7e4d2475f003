/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise nodes as programs: what fusion asks. */
#ifndef OPS_ELEMENTWISE_H
#define OPS_ELEMENTWISE_H

#include "graph/op.h"
#include "kernels/program.h"

/* Appends the instructions of an OP_ELEMENTWISE node (a single operation, add_n, or a whole program) to `program`,
 * reading the values argument[i] for its inputs. Instructions are added behind those there are, so program->inputs
 * must be final. result[k] is the value number of output k (PROGRAM_MAX_OUTPUTS at most). UNSUPPORTED when the program
 * would be too long. */
graphi_status elementwise_append(const struct node *node, const int16_t *argument, struct program *program,
                                 int16_t *result);

/* How many those are. */
int elementwise_instructions(const struct node *node);

#endif
