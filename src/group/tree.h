/* SPDX-License-Identifier: Apache-2.0 */
/* One binary tree over the numbers of leaves, by which gradients are added in the deterministic mode. It depends on how
 * many leaves there are and on nothing else, so the sum has the same bits whoever adds which part of it. A node is a
 * range of leaves; one of more than one leaf is cut at the largest power of two below its size. */
#ifndef GROUP_TREE_H
#define GROUP_TREE_H

#include <stdbool.h>

enum { TREE_LEAVES_MOST = 1024, TREE_DEPTH_MOST = 12 };

/* A node: leaves low to high - 1. */
struct tree_node {
    int low, high;
};

/* Where the second child of a node of more than one leaf begins. */
static inline int tree_split(struct tree_node node)
{
    int half = 1;
    while (2 * half < node.high - node.low)
        half *= 2;
    return node.low + half;
}

/* Whether the two, side by side, are the children of one node of the tree over so many leaves. */
static inline bool tree_siblings(int leaves, struct tree_node first, struct tree_node second)
{
    struct tree_node at = {0, leaves};
    if (first.high != second.low)
        return false;
    while (at.low != first.low || at.high != second.high) {
        const int split = at.high - at.low > 1 ? tree_split(at) : at.high;
        if (second.high <= split && split < at.high)
            at.high = split;
        else if (first.low >= split)
            at.low = split;
        else
            return false;
        if (at.low > first.low || at.high < second.high)
            return false;
    }
    return tree_split(at) == first.high;
}

/* What is left of leaves first to first + count - 1 when they are added up one after the other: nodes into `node`, and
 * into *most how many there were at most meanwhile. */
static inline int tree_nodes(int leaves, int first, int count, struct tree_node *node, int *most)
{
    int nodes = 0;
    *most = 0;
    for (int leaf = first; leaf < first + count; leaf++) {
        node[nodes++] = (struct tree_node){leaf, leaf + 1};
        *most = nodes > *most ? nodes : *most;
        while (nodes > 1 && tree_siblings(leaves, node[nodes - 2], node[nodes - 1])) {
            nodes--;
            node[nodes - 1].high = node[nodes].high;
        }
    }
    return nodes;
}

#endif
