/* SPDX-License-Identifier: Apache-2.0 */
/* See fusion_group.h: lists of nodes, joined and moved in constant time but for the numbers of their members. */
#include "passes/fusion_group.h"

#include "graph/op.h"

bool is_row_sum(const graphi_graph *graph, const struct node *node)
{
    if (!node_is(node, IS_SUM_TO))
        return false;
    const struct value_type *in = &graph_value(graph, node->input[0])->type,
                            *out = &graph_value(graph, node->output)->type;
    return in->rank == 2 && in->symbol < 0 && in->dims[0] > 1 && in->dims[1] > 1 && out->rank == 1 &&
           out->dims[0] == in->dims[1];
}

const struct value_type *fusion_domain(const struct fuser *f, int32_t id)
{
    const struct node *node = graph_node(f->graph, id);
    return &graph_value(f->graph, is_row_sum(f->graph, node) ? node->input[0] : node->output)->type;
}

bool fusion_alike(const struct fuser *f, int32_t one, int32_t two)
{
    return f->group[one] >= 0 && f->group[two] >= 0 &&
           graph_node(f->graph, one)->backward == graph_node(f->graph, two)->backward &&
           graph_node(f->graph, one)->derived == graph_node(f->graph, two)->derived &&
           type_equal(fusion_domain(f, one), fusion_domain(f, two));
}

bool fusion_joins(const struct fuser *f, int32_t from, int32_t to)
{
    return fusion_alike(f, from, to) && !is_row_sum(f->graph, graph_node(f->graph, from));
}

void fusion_join(struct fuser *f, int32_t into, int32_t from)
{
    struct group *a = &f->groups[into], *b = &f->groups[from];
    for (int32_t id = b->head; id >= 0; id = f->next[id]) {
        f->group[id] = into;
        f->depth[id] = a->depth;
    }
    f->next[a->tail] = b->head;
    a->tail = b->tail;
    a->count += b->count;
    b->count = 0;
    b->head = b->tail = -1;
}

void fusion_move(struct fuser *f, int32_t id, int32_t to)
{
    struct group *from = &f->groups[f->group[id]];
    int32_t before = -1;
    for (int32_t at = from->head; at != id; at = f->next[at])
        before = at;
    *(before >= 0 ? &f->next[before] : &from->head) = f->next[id];
    from->tail = from->tail == id ? before : from->tail;
    from->count--;
    f->group[id] = to;
    f->depth[id] = f->groups[to].depth;
    f->next[id] = -1;
    f->next[f->groups[to].tail] = id;
    f->groups[to].tail = id;
    f->groups[to].count++;
}
