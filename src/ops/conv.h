/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes `images`, `bands`, `pack` and `round` ask of convolutions. conv2d and conv2d_backward_data take,
 * instead of their weights, what conv_pack or conv_points made of them; the pass then sets two attributes: `algorithm`,
 * for which it was made, and `window`, the dims of the weights. */
#ifndef OPS_CONV_H
#define OPS_CONV_H

#include "graph/op.h"
#include "kernels/conv.h"

struct conv_node_options {
    enum isa isa;
    graphi_dtype multiplicands;
    double conv_error;
};

/* How many of the node's first inputs are images; 0: no convolution. */
int conv_node_images(const struct node *node);
/* Does the node pool its results already? */
bool conv_node_pooled(const struct node *node);
/* Input of the weights, of what is no gradient with respect to them. */
static inline int32_t conv_node_weights(const struct node *node) { return node->input[1]; }
/* The form in which the node's kernel will want its weights; NONE also for no convolution and one already prepared. */
enum conv_form_keep conv_node_form(const graphi_graph *graph, const struct node *node,
                                   const struct conv_node_options *options, struct conv_form *form);
/* Does it pay that the node's kernel pools its result as `pool` does, a max_pool or avg_pool? Then also how. */
bool conv_node_pools(const graphi_graph *graph, const struct node *node, const struct conv_node_options *options,
                     const struct node *pool, struct pool_spec *out);
/* How many of the node's first inputs are images that its kernel would round to bfloat16, and may as well get rounded.
 */
int conv_node_rounds(const graphi_graph *graph, const struct node *node, const struct conv_node_options *options);

#endif
