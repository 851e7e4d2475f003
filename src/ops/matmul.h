/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a matrix product as passes see them: its inputs are a left and a right operand for each pair, the base
 * if it has one, then those of its epilogue (epilogue.h). matmul.c says what each part means. */
#ifndef OPS_MATMUL_H
#define OPS_MATMUL_H

#include "graph/op.h"

/* The attributes of a matmul, in the order of its schema. */
enum product_attribute {
    PRODUCT_TRANS_A,
    PRODUCT_TRANS_B,
    PRODUCT_PAIRS,
    PRODUCT_PACKED,
    PRODUCT_BASE,
    PRODUCT_PROGRAM,
    PRODUCT_OUTPUTS,
};

static inline bool is_product(const struct node *node) { return node_is(node, IS_PRODUCT); }

/* Of products alone. */
static inline int product_pairs(const struct node *node) { return (int)node->attribute[PRODUCT_PAIRS].i; }
static inline bool product_trans_a(const struct node *node) { return node->attribute[PRODUCT_TRANS_A].i != 0; }
static inline bool product_trans_b(const struct node *node) { return node->attribute[PRODUCT_TRANS_B].i != 0; }
static inline bool product_packed(const struct node *node) { return node->attribute[PRODUCT_PACKED].i != 0; }
static inline bool product_has_base(const struct node *node) { return node->attribute[PRODUCT_BASE].i != 0; }
static inline int32_t product_left(const struct node *node, int pair) { return node->input[2 * pair]; }
static inline int32_t product_right(const struct node *node, int pair) { return node->input[2 * pair + 1]; }

/* Inputs before those of its epilogue. */
static inline int product_inputs(const struct node *node) { return 2 * product_pairs(node) + product_has_base(node); }

/* A product as the user or autodiff writes it: of no packed weight, without a base or a program. */
static inline bool is_plain_product(const struct node *node)
{
    return is_product(node) && !product_packed(node) && !product_has_base(node) &&
           node->attribute[PRODUCT_PROGRAM].count <= 0;
}

/* A weight gradient as autodiff writes it: what is summed over are the rows of both operands. */
static inline bool is_weight_gradient(const struct node *node) { return is_product(node) && product_trans_a(node); }

/* Operands of a product to be made; `input` has room for the base too. */
struct product_operands {
    graphi_value *input;
    int pairs;
    graphi_value base; /* GRAPHI_NONE: the sums begin with 0 */
};

static inline void product_pair(struct product_operands *to, int32_t left, int32_t right)
{
    to->input[2 * to->pairs] = left;
    to->input[2 * to->pairs + 1] = right;
    to->pairs++;
}

/* Appends the product of these pairs; GRAPHI_NONE: the graph's status says why. */
graphi_value product_append(graphi_graph *graph, const struct product_operands *of, bool trans_a, bool trans_b);

#endif
