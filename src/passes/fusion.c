/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise fusion: connected element-wise nodes with results of one type become one `program` node.
 *
 * Groups must be convex: no path may leave a group and come back. Every node has a depth such that an edge between different
 * groups strictly raises it; nodes of one group share it. Then no cycle between groups can exist, and no search is needed:
 *   1. in array order a node's depth is the greatest of its producers', plus one where the producer cannot be in its group;
 *      it joins the groups of its producers that have this depth, if the result keeps to the limits of programs;
 *   2. from the deepest group on, a group all of whose other readers are deeper than one of its consumers is lowered to that
 *      consumer and joined with it (a mask that only the backward pass reads, say); consumers of one depth are joined first;
 *   3. groups of one depth that read the same value of their own shape are joined: it is read once for both.
 * Forward and backward nodes are not mixed: the forward pass would keep its operands alive until then.
 *
 * An `assign` whose value is made in the group becomes an output that takes over the parameter's storage. Inputs of smaller
 * shapes are taken where program_accepts says so; scalar constants become immediate instructions. Usual size: groups of 5 to
 * 40 nodes; linear in the graph. */
#include "passes/passes.h"

#include "graph/op.h"
#include "kernels/program.h"
#include "ops/elementwise.h"

#include <stdlib.h>
#include <string.h>

struct group {
    int32_t head, tail, count; /* members linked by fuser.next */
    int32_t depth;
};

/* What a group would be as a program. */
struct measure {
    int inputs, immediates, instructions, outputs;
    int32_t input[PROGRAM_MAX_INPUTS];
    int32_t immediate[PROGRAM_MAX_INSTRUCTIONS];
    int32_t output[PROGRAM_MAX_OUTPUTS];
};

struct fuser {
    graphi_graph *graph;
    int32_t nodes;
    int32_t *begin, *list; /* users of values */
    int32_t *depth, *group, *next; /* per node; group -1: not element-wise */
    bool *output;          /* value is an output of the graph */
    struct group *groups;
    int32_t count;
    int32_t *member;       /* scratch: members of the groups asked about */
};

static struct array_desc describe(const struct value *value)
{
    struct array_desc desc = array_dense(value->type.dtype, value->type.rank, value->type.dims);
    desc.bounded = value->type.symbol >= 0;
    return desc;
}

/* Results may be written in place of a parameter unless somebody sees it through a view: elements would change places. */
static bool assign_fusable(const struct fuser *f, const struct node *node)
{
    int32_t parameter = node->input[0];
    for (int32_t u = f->begin[parameter]; u < f->begin[parameter + 1]; u++)
        if (graph_node(f->graph, f->list[u])->kind->flags & OP_VIEW)
            return false;
    return graph_value(f->graph, parameter)->type.dtype == GRAPHI_F32;
}

static bool fusable(const struct fuser *f, const struct node *node)
{
    const graphi_graph *graph = f->graph;
    if (is_kind(node, "assign"))
        return assign_fusable(f, node);
    if (!(node->kind->flags & OP_ELEMENTWISE) || node->regions || node->inputs > PROGRAM_MAX_INPUTS || node->outputs != 1)
        return false;
    struct array_desc out = describe(graph_value(graph, node->output));
    if (out.dtype != GRAPHI_F32)
        return false;
    for (int k = 0; k < node->inputs; k++) {
        struct array_desc in = describe(graph_value(graph, node->input[k]));
        if (in.dtype != GRAPHI_F32 || !program_accepts(&in, &out))
            return false;
    }
    return true;
}

/* The inputs that a node reads once it is in a program: an assign reads its value, not the parameter. */
static int first_input(const struct node *node) { return is_kind(node, "assign") ? 1 : 0; }

static bool compatible(const struct fuser *f, int32_t from, int32_t to)
{
    if (f->group[from] < 0 || f->group[to] < 0)
        return false;
    const struct node *a = graph_node(f->graph, from), *b = graph_node(f->graph, to);
    return a->backward == b->backward &&
           type_equal(&graph_value(f->graph, a->output)->type, &graph_value(f->graph, b->output)->type);
}

static int instructions(const struct node *node)
{
    const int64_t *integers;
    if (is_kind(node, "assign"))
        return 0;
    if (is_kind(node, "add_n"))
        return node->inputs - 1;
    if (is_kind(node, "program"))
        return attr_ints(node, "program", &integers) > 1 ? (int)integers[1] : 0;
    return 1;
}

static bool listed(const int32_t *list, int count, int32_t id)
{
    for (int i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

static bool is_immediate(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->type.rank == 0 && value->type.dtype == GRAPHI_F32;
}

static bool measure_inputs(const struct fuser *f, const struct node *node, const int32_t *member, int count, struct measure *m)
{
    for (int k = first_input(node); k < node->inputs; k++) {
        int32_t v = node->input[k];
        const struct value *value = graph_value(f->graph, v);
        if (value->node >= 0 && listed(member, count, value->node))
            continue;
        bool immediate = is_immediate(value);
        int32_t *list = immediate ? m->immediate : m->input;
        int *n = immediate ? &m->immediates : &m->inputs;
        if (listed(list, *n, v))
            continue;
        if (*n == (immediate ? PROGRAM_MAX_INSTRUCTIONS : PROGRAM_MAX_INPUTS))
            return false;
        list[(*n)++] = v;
    }
    return true;
}

static bool measure_outputs(const struct fuser *f, const struct node *node, const int32_t *member, int count, struct measure *m)
{
    for (int k = 0; k < node->outputs; k++) {
        int32_t v = node->output + k;
        bool stored = f->output[v] || graph_value(f->graph, v)->assigns >= 0;
        for (int32_t u = f->begin[v]; !stored && u < f->begin[v + 1]; u++)
            stored = !listed(member, count, f->list[u]);
        if (!stored)
            continue;
        if (m->outputs == PROGRAM_MAX_OUTPUTS)
            return false;
        m->output[m->outputs++] = v;
    }
    return true;
}

/* False when the members do not make one program. */
static bool measure(const struct fuser *f, const int32_t *member, int count, struct measure *m)
{
    *m = (struct measure){0};
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(f->graph, member[i]);
        m->instructions += instructions(node);
        if (!measure_inputs(f, node, member, count, m) || !measure_outputs(f, node, member, count, m))
            return false;
    }
    return m->inputs >= 1 && m->instructions + m->immediates <= PROGRAM_MAX_INSTRUCTIONS;
}

static int gather(const struct fuser *f, int32_t group, int32_t *member)
{
    int count = 0;
    for (int32_t id = f->groups[group].head; id >= 0; id = f->next[id])
        member[count++] = id;
    return count;
}

/* Would the union of these groups (distinct) keep to the limits? */
static bool fits(struct fuser *f, const int32_t *groups, int count)
{
    int members = 0;
    for (int i = 0; i < count; i++)
        members += f->groups[groups[i]].count;
    if (members > 2 * PROGRAM_MAX_INSTRUCTIONS)
        return false;
    members = 0;
    for (int i = 0; i < count; i++)
        members += gather(f, groups[i], f->member + members);
    struct measure m;
    return measure(f, f->member, members, &m);
}

static void join(struct fuser *f, int32_t into, int32_t from)
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

static void new_group(struct fuser *f, int32_t id)
{
    f->group[id] = f->count;
    f->next[id] = -1;
    f->groups[f->count++] = (struct group){id, id, 1, 0};
}

/* Calls visit for everything that precedes the node. */
static void take_depth(const struct fuser *f, int32_t before, int32_t id, int32_t *depth)
{
    int32_t least = f->depth[before] + !compatible(f, before, id);
    *depth = least > *depth ? least : *depth;
}

enum { MOST_JOINED = 32 };

static int take_group(const struct fuser *f, int32_t before, int32_t id, int32_t depth, int32_t *groups, int count)
{
    if (!compatible(f, before, id) || f->depth[before] != depth || count > MOST_JOINED ||
        listed(groups, count, f->group[before]))
        return count;
    groups[count] = f->group[before];
    return count + 1;
}

static void place(struct fuser *f, int32_t id)
{
    const struct node *node = graph_node(f->graph, id);
    int32_t depth = 0;
    if (fusable(f, node))
        new_group(f, id);
    for (int k = 0; k < node->inputs; k++)
        if (graph_value(f->graph, node->input[k])->node >= 0)
            take_depth(f, graph_value(f->graph, node->input[k])->node, id, &depth);
    for (int a = 0; a < node->afters; a++)
        take_depth(f, node->after[a], id, &depth);
    int32_t own = f->group[id];
    if (own >= 0) {
        int32_t groups[MOST_JOINED + 2] = {own};
        int count = 1;
        for (int k = 0; k < node->inputs; k++)
            if (graph_value(f->graph, node->input[k])->node >= 0)
                count = take_group(f, graph_value(f->graph, node->input[k])->node, id, depth, groups, count);
        for (int a = 0; a < node->afters; a++)
            count = take_group(f, node->after[a], id, depth, groups, count);
        if (count > 1 && (count > MOST_JOINED || !fits(f, groups, count))) {
            depth++; /* an edge between groups raises the depth */
            count = 1;
        }
        f->groups[own].depth = depth;
        f->depth[id] = depth;
        for (int i = 1; i < count; i++)
            join(f, own, groups[i]);
    }
    f->depth[id] = depth;
}

/* --- lowering groups to their consumers ---------------------------------------------------------------------------------- */

/* Followers by `after` edges, as lists: first[node], then link[edge]. */
struct followers {
    int32_t *first, *node, *link;
};

static graphi_status find_followers(const struct fuser *f, struct followers *out)
{
    size_t edges = 0;
    for (int32_t i = 0; i < f->nodes; i++)
        edges += (size_t)graph_node(f->graph, i)->afters;
    out->first = mem_zalloc_array((size_t)f->nodes + 2 * edges + 1, sizeof *out->first);
    if (!out->first)
        return fail_memory("fusion", edges);
    out->node = out->first + f->nodes;
    out->link = out->node + edges;
    memset(out->first, 0xff, (size_t)f->nodes * sizeof *out->first);
    int32_t next = 0;
    for (int32_t i = 0; i < f->nodes; i++)
        for (int a = 0; a < graph_node(f->graph, i)->afters; a++) {
            int32_t before = graph_node(f->graph, i)->after[a];
            out->node[next] = i;
            out->link[next] = out->first[before];
            out->first[before] = next++;
        }
    return GRAPHI_OK;
}

/* Calls for every node that follows a group's member from outside the group. */
static void each_follower(const struct fuser *f, const struct followers *after, int32_t group,
                          void (*visit)(const struct fuser *, int32_t member, int32_t follower, void *), void *context)
{
    for (int32_t id = f->groups[group].head; id >= 0; id = f->next[id]) {
        const struct node *node = graph_node(f->graph, id);
        for (int k = 0; k < node->outputs; k++)
            for (int32_t u = f->begin[node->output + k]; u < f->begin[node->output + k + 1]; u++)
                if (f->group[f->list[u]] != group)
                    visit(f, id, f->list[u], context);
        for (int32_t e = after->first[id]; e >= 0; e = after->link[e])
            if (f->group[after->node[e]] != group)
                visit(f, id, after->node[e], context);
    }
}

struct lowering {
    int32_t target, depth; /* the shallowest compatible consumer group */
    int32_t other;         /* another compatible one of that depth, -1: none */
    bool legal;
};

static void find_target(const struct fuser *f, int32_t member, int32_t follower, void *context)
{
    struct lowering *l = context;
    if (compatible(f, member, follower) && (l->target < 0 || f->depth[follower] < l->depth)) {
        l->target = f->group[follower];
        l->depth = f->depth[follower];
    }
}

static void check_target(const struct fuser *f, int32_t member, int32_t follower, void *context)
{
    struct lowering *l = context;
    if (f->group[follower] == l->target || f->depth[follower] > l->depth)
        return;
    l->legal = false;
    if (compatible(f, member, follower))
        l->other = f->group[follower];
}

static void lower(struct fuser *f, const struct followers *after, int32_t group)
{
    struct lowering l = {.target = -1};
    each_follower(f, after, group, find_target, &l);
    if (l.target < 0)
        return;
    while (!l.legal) {
        l.legal = true;
        l.other = -1;
        each_follower(f, after, group, check_target, &l);
        if (!l.legal && (l.other < 0 || !fits(f, (int32_t[]){l.target, l.other}, 2)))
            return;
        if (!l.legal)
            join(f, l.target, l.other);
    }
    if (fits(f, (int32_t[]){l.target, group}, 2))
        join(f, l.target, group);
}

struct deep {
    int32_t depth, group;
};

static int deepest_first(const void *a, const void *b)
{
    const struct deep *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->group < y->group ? -1 : 1;
}

static graphi_status lower_all(struct fuser *f)
{
    struct followers after;
    TRY(find_followers(f, &after));
    struct deep *order = mem_zalloc_array((size_t)f->count + 1, sizeof *order);
    int32_t count = 0;
    for (int32_t g = 0; order && g < f->count; g++)
        if (f->groups[g].count)
            order[count++] = (struct deep){f->groups[g].depth, g};
    if (order)
        qsort(order, (size_t)count, sizeof *order, deepest_first);
    for (int32_t i = 0; order && i < count; i++)
        lower(f, &after, order[i].group);
    mem_free(after.first);
    mem_free(order);
    return order ? GRAPHI_OK : fail_memory("fusion", (size_t)f->count);
}

/* Readers of one value that have one depth: the first takes the others in, as far as they fit. */
static void join_siblings(struct fuser *f)
{
    for (size_t v = 0; v < f->graph->values.count; v++) {
        const struct value_type *type = &graph_value(f->graph, (int32_t)v)->type;
        for (int32_t u = f->begin[v]; u < f->begin[v + 1]; u++) {
            int32_t one = f->list[u];
            if (f->group[one] < 0 || !type_equal(type, &graph_value(f->graph, graph_node(f->graph, one)->output)->type))
                continue;
            for (int32_t w = u + 1; w < f->begin[v + 1] && w < u + MOST_JOINED; w++) {
                int32_t two = f->list[w];
                if (f->group[two] != f->group[one] && compatible(f, one, two) && f->depth[one] == f->depth[two] &&
                    fits(f, (int32_t[]){f->group[one], f->group[two]}, 2))
                    join(f, f->group[one], f->group[two]);
            }
        }
    }
}

/* --- writing programs ---------------------------------------------------------------------------------------------------- */

/* Which number each value has in the program being written. */
struct numbers {
    int32_t value[PROGRAM_MAX_INPUTS + 3 * PROGRAM_MAX_INSTRUCTIONS];
    int16_t number[PROGRAM_MAX_INPUTS + 3 * PROGRAM_MAX_INSTRUCTIONS];
    int count;
};

static void set_number(struct numbers *n, int32_t value, int16_t number)
{
    n->value[n->count] = value;
    n->number[n->count++] = number;
}

static int16_t get_number(const struct numbers *n, int32_t value)
{
    for (int i = 0; i < n->count; i++)
        if (n->value[i] == value)
            return n->number[i];
    return -1;
}

static graphi_status write_program(const struct fuser *f, const int32_t *member, int count, const struct measure *m,
                                   struct program *program)
{
    struct numbers n = {.count = 0};
    *program = (struct program){.inputs = m->inputs, .outputs = m->outputs};
    for (int i = 0; i < m->inputs; i++)
        set_number(&n, m->input[i], (int16_t)i);
    for (int i = 0; i < m->immediates; i++) {
        float number = *(const float *)graph_value(f->graph, m->immediate[i])->data;
        set_number(&n, m->immediate[i], (int16_t)(program->inputs + program->instructions));
        program->code[program->instructions++] =
            (struct program_instruction){.op = PROGRAM_IMM, .a = -1, .b = -1, .c = -1, .imm = number};
    }
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(f->graph, member[i]);
        int16_t argument[PROGRAM_MAX_INPUTS] = {0}, result[PROGRAM_MAX_OUTPUTS];
        for (int k = first_input(node); k < node->inputs; k++)
            argument[k] = get_number(&n, node->input[k]);
        if (is_kind(node, "assign"))
            result[0] = argument[1];
        else
            TRY(elementwise_append(node, argument, program, result));
        for (int k = 0; k < node->outputs; k++)
            set_number(&n, node->output + k, result[k]);
    }
    for (int i = 0; i < m->outputs; i++)
        program->output[i] = get_number(&n, m->output[i]);
    return GRAPHI_OK;
}

static graphi_status emit(struct fuser *f, const int32_t *member, int count, const struct measure *m, struct value_map *map)
{
    struct program program;
    TRY(write_program(f, member, count, m, &program));
    int64_t encoded[PROGRAM_MAX_ENCODED];
    graphi_attribute attributes[] = {
        {.name = "program", .type = GRAPHI_INTS, .ints = encoded, .count = program_encode(&program, encoded)},
        {.name = "outputs", .type = GRAPHI_INT, .i = m->outputs},
    };
    const struct node last = *graph_node(f->graph, member[count - 1]);
    int32_t id = (int32_t)f->graph->nodes.count;
    graphi_value out = graphi_op(f->graph, "program", m->inputs, m->input, 2, attributes);
    TRY(f->graph->status);
    adopt(f->graph, id, &last);
    if (!map_reach(map, f->graph))
        return fail_memory("fusion", f->graph->values.count);
    for (int k = 0; k < m->outputs; k++) {
        struct value *old = &f->graph->values.data[m->output[k]];
        f->graph->values.data[out + k].assigns = old->assigns;
        old->assigns = -1;
        map->to[m->output[k]] = out + k;
    }
    for (int i = 0; i < count; i++)
        TRY(graph_supersede(f->graph, member[i], id));
    return GRAPHI_OK;
}

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Groups of one node stay as they are: their own kernel is the same program. */
static graphi_status emit_all(struct fuser *f, struct value_map *map)
{
    for (int32_t g = 0; g < f->count; g++) {
        if (f->groups[g].count < 2)
            continue;
        int count = gather(f, g, f->member);
        qsort(f->member, (size_t)count, sizeof *f->member, ascending);
        struct measure m;
        if (measure(f, f->member, count, &m) && m.outputs)
            TRY(emit(f, f->member, count, &m, map));
    }
    return GRAPHI_OK;
}

static graphi_status fuser_init(struct fuser *f, graphi_graph *graph)
{
    *f = (struct fuser){.graph = graph, .nodes = (int32_t)graph->nodes.count};
    size_t nodes = graph->nodes.count;
    f->depth = mem_zalloc_array(nodes * 3 + 4 * PROGRAM_MAX_INSTRUCTIONS, sizeof *f->depth);
    f->output = mem_zalloc_array(graph->values.count + 1, sizeof *f->output);
    f->groups = mem_zalloc_array(nodes + 1, sizeof *f->groups);
    if (!f->depth || !f->output || !f->groups)
        return fail_memory("fusion", nodes * sizeof *f->groups);
    f->group = f->depth + nodes;
    f->next = f->group + nodes;
    f->member = f->next + nodes;
    memset(f->group, 0xff, nodes * sizeof *f->group);
    for (size_t i = 0; i < graph->outputs.count; i++)
        f->output[graph->outputs.data[i].value] = true;
    return graph_users(graph, &f->begin, &f->list);
}

graphi_status pass_fusion(graphi_graph *graph, const struct pass_options *options)
{
    struct fuser f;
    struct value_map map = {0};
    graphi_status status = fuser_init(&f, graph);
    if (status == GRAPHI_OK && !map_reach(&map, graph))
        status = fail_memory("fusion", graph->values.count);
    for (int32_t id = 0; status == GRAPHI_OK && id < f.nodes; id++)
        place(&f, id);
    if (status == GRAPHI_OK)
        status = lower_all(&f);
    if (status == GRAPHI_OK)
        join_siblings(&f);
    if (status == GRAPHI_OK)
        status = emit_all(&f, &map);
    mem_free(f.depth);
    mem_free(f.output);
    mem_free(f.groups);
    mem_free(f.begin);
    mem_free(f.list);
    if (status == GRAPHI_OK)
        return map_apply(&map, graph);
    map_free(&map);
    return status;
}
