/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues of products and convolutions as attributes of their nodes, which passes set:
 *
 * - program: an encoded program, empty for none. Its input 0 is the product; inputs 1.. are the node's further inputs,
 *   behind those of the operation itself; each broadcasts to the result.
 * - outputs: of the program (1 without one). All have the type of the result. */
#ifndef OPS_EPILOGUE_H
#define OPS_EPILOGUE_H

#include "ops/check.h"

#include "kernels/epilogue.h"

#define EPILOGUE_ATTRIBUTES                                                                                            \
    {.name = "program", .type = GRAPHI_INTS, .internal = true},                                                        \
    {.name = "outputs", .type = GRAPHI_INT, .internal = true, .i = 1}

struct node_epilogue {
    struct epilogue_spec spec; /* points into this struct */
    struct program program;
    enum program_broadcast broadcast[PROGRAM_MAX_INPUTS];
    int64_t ld[PROGRAM_MAX_INPUTS];
    int64_t output_ld[PROGRAM_MAX_OUTPUTS];
};

/* Can a value of type `in` be an operand of an epilogue on results of type `out`? */
bool epilogue_accepts(const struct value_type *in, const struct value_type *out);

/* Has a node of flag OP_HOST an epilogue? */
static inline bool epilogue_given(const struct node *node)
{
    const int64_t *integers;
    return attr_ints(node, "program", &integers) > 0;
}

/* How many of the node's outputs are the epilogue's: all, as a rule. */
static inline int epilogue_outputs(const struct node *node) { return (int)attr_int(node, "outputs"); }

/* Checks the program of so many outputs and the further inputs from `first` on against out[0], and types the further
 * outputs. */
graphi_status epilogue_shape(const struct shape_call *call, int first, int outputs);

/* The same node's epilogue with its layouts; UNSUPPORTED when a layout is not row-strided. */
graphi_status epilogue_layout(const struct bind_call *call, int first, int outputs, struct node_epilogue *out);

/* True, and the graph broken, when the node has an epilogue: gradients are taken before passes run. */
bool epilogue_refuses_gradient(struct gradient_call *call);

#endif
