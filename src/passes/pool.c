/* SPDX-License-Identifier: Apache-2.0 */
/* In training, work around a max-pool that has fewer results than elements is done on the results:
 *   - max_pool(relu(z)) = relu(max_pool(z)), forward and backward: z's gradient is the pool's gradient of what the relu
 *     lets through, instead of the pool's gradient (an image, mostly zeros) through the relu. The same bits, but for
 *     the sign of zeros: in a window whose largest element is not positive, where the places differ, neither form
 *     passes anything on;
 *   - a sum of the pool's gradient over all pixels (of the bias before it) is the sum of the gradient that went in,
 *     since each window gives its gradient to one element. Rounds otherwise, with fewer additions.
 * So an image is written once forward and once backward, and read twice less each way. Without gradients the relu stays
 * where it is, in the epilogue of the convolution before it. Usual case: PathNet's 18 modules, 2 x 2 windows. Linear in
 * the graph. */
#include "passes/edit.h"
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/program.h"

struct pools {
    graphi_graph *graph;
    struct uses uses;
    struct value_map map;
};

/* The nodes around relu's result r that are rewritten together. */
struct module {
    int32_t relu, pool; /* r = relu(z), (y, places) = max_pool(r) */
    int32_t give, pass; /* d = max_pool_grad(places, dy), select(r, d, 0) */
};

static const struct node *producer(const struct pools *p, int32_t value)
{
    int32_t id = graph_value(p->graph, value)->node;
    return id < 0 || !graph_node(p->graph, id)->kind ? NULL : graph_node(p->graph, id);
}

static int64_t elements(const struct pools *p, int32_t value)
{
    return type_count(&graph_value(p->graph, value)->type);
}

static int readers(const struct pools *p, int32_t value)
{
    return p->uses.output[value] ? -1 : uses_count(&p->uses, value);
}

/* Sorts one reader of r into the module; false: it needs r as it is. */
static bool take(const struct pools *p, int32_t id, int32_t r, struct module *m)
{
    const struct node *node = graph_node(p->graph, id);
    int32_t *role = node_is(node, IS_MAX_POOL) ? &m->pool : &m->pass;
    if (*role >= 0 || !node->kind || node->input[0] != r || (role == &m->pass && !node_computes(node, PROGRAM_SELECT)))
        return false;
    *role = id;
    return true;
}

/* Finds whoever gives to the pass. False: the backward part is not what differentiation makes of the forward part, or
 * somebody else reads of it. */
static bool matches(const struct pools *p, struct module *m)
{
    const int32_t places = graph_node(p->graph, m->pool)->output + 1;
    const struct node *pass = graph_node(p->graph, m->pass);
    m->give = graph_value(p->graph, pass->input[1])->node;
    if (m->give < 0 || readers(p, places) != 1 || !constant_is(p->graph, pass->input[2], 0) ||
        graph_value(p->graph, pass->input[2])->type.rank) /* of the image's shape: none for what is pooled */
        return false;
    const struct node *give = graph_node(p->graph, m->give);
    return node_is(give, IS_MAX_POOL_GRADIENT) && give->input[0] == places && readers(p, give->output) == 1 &&
           attributes_equal(graph_node(p->graph, m->pool), give);
}

static bool find_module(const struct pools *p, int32_t relu, struct module *m)
{
    const struct node *node = graph_node(p->graph, relu);
    if (!node_computes(node, PROGRAM_RELU) || readers(p, node->output) < 1)
        return false;
    *m = (struct module){relu, -1, -1, -1};
    for (int32_t u = p->uses.begin[node->output]; u < p->uses.begin[node->output + 1]; u++)
        if (!take(p, p->uses.list[u], node->output, m))
            return false;
    return m->pool >= 0 && m->pass >= 0 &&
           2 * elements(p, graph_node(p->graph, m->pool)->output) <= elements(p, node->output) && matches(p, m);
}

/* A node in place of `old`, whose result `replaced` (-1: none) becomes its own. */
static graphi_value put(struct pools *p, int32_t old, const struct node *like, int inputs, const graphi_value *input,
                        int32_t replaced)
{
    const struct node was = *graph_node(p->graph, old), form = *like;
    int32_t id = (int32_t)p->graph->nodes.count;
    graphi_value made = graphi_op(p->graph, form.kind->name, inputs, input, form.attributes, form.attribute);
    if (p->graph->status != GRAPHI_OK)
        return made;
    adopt(p->graph, id, &was);
    if ((replaced >= 0 && map_set(&p->map, p->graph, replaced, made) != GRAPHI_OK) ||
        graph_supersede(p->graph, old, id) != GRAPHI_OK)
        return graph_broken(p->graph, GRAPHI_MEMORY);
    return made;
}

static graphi_status turn_around(struct pools *p, const struct module *m)
{
    const struct node relu = *graph_node(p->graph, m->relu), pool = *graph_node(p->graph, m->pool);
    graphi_value z = relu.input[0], pooled = put(p, m->relu, &pool, 1, &z, -1);
    graphi_value y = put(p, m->pool, &relu, 1, &pooled, pool.output);
    TRY(p->graph->status);
    const struct node give = *graph_node(p->graph, m->give), pass = *graph_node(p->graph, m->pass);
    graphi_value through = put(p, m->give, &pass, 3, (graphi_value[]){y, give.input[1], pass.input[2]}, -1);
    put(p, m->pass, &give, 2, (graphi_value[]){pooled + 1, through}, pass.output);
    return p->graph->status;
}

/* sum_to(max_pool_grad(places, dy)) over all pixels. */
static graphi_status sum_before(struct pools *p, int32_t id)
{
    const struct node sum = *graph_node(p->graph, id);
    const struct node *give = producer(p, map_follow(&p->map, sum.input[0]));
    const struct value_type *type = &graph_value(p->graph, sum.output)->type;
    if (!give || !node_is(give, IS_MAX_POOL_GRADIENT) || type->rank != 1 ||
        graph_value(p->graph, sum.output)->assigns >= 0 ||
        type->dims[0] != graph_value(p->graph, give->output)->type.dims[3])
        return GRAPHI_OK;
    put(p, id, &sum, 1, &give->input[1], sum.output);
    return p->graph->status;
}

graphi_status pass_pool(graphi_graph *graph, const struct pass_options *options)
{
    struct pools p = {.graph = graph};
    graphi_status status = uses_open(graph, &p.uses);
    int32_t nodes = (int32_t)graph->nodes.count;
    for (int32_t id = 0; status == GRAPHI_OK && id < nodes; id++) {
        struct module m;
        if (!graph_node(graph, id)->kind)
            continue;
        if (find_module(&p, id, &m))
            status = turn_around(&p, &m);
        else if (node_is(graph_node(graph, id), IS_SUM_TO))
            status = sum_before(&p, id);
    }
    uses_close(&p.uses);
    return map_end(&p.map, graph, status);
}
