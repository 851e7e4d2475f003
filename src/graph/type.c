/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values and attributes of nodes: counting, comparing, naming. Pure functions, any thread. */
#include "graph/graph.h"

#include "graph/op.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int64_t type_count(const struct value_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}

int64_t type_bytes(const struct value_type *type) { return type_count(type) * (int64_t)graphi_dtype_size(type->dtype); }

bool type_equal(const struct value_type *a, const struct value_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->symbol == b->symbol &&
           memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

void type_text(const struct value_type *type, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s[", graphi_dtype_name(type->dtype));
    for (int i = 0; i < type->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%lld", i ? "," : "",
                                 i == 0 && type->symbol >= 0 ? "<=" : "", (long long)type->dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static const graphi_attribute *find(const struct node *node, const char *name, graphi_attribute_type type)
{
    for (int i = 0; i < node->attributes; i++)
        if (strcmp(node->attribute[i].name, name) == 0) {
            assert(node->attribute[i].type == type);
            return &node->attribute[i];
        }
    assert(!"the schema has this attribute");
    return NULL;
}

int64_t attr_int(const struct node *node, const char *name) { return find(node, name, GRAPHI_INT)->i; }

double attr_float(const struct node *node, const char *name) { return find(node, name, GRAPHI_FLOAT)->f; }

int attr_ints(const struct node *node, const char *name, const int64_t **ints)
{
    const graphi_attribute *attribute = find(node, name, GRAPHI_INTS);
    *ints = attribute->ints;
    return attribute->count;
}

static bool attribute_equal(const graphi_attribute *a, const graphi_attribute *b)
{
    switch (a->type) {
    case GRAPHI_INT:
        return a->i == b->i;
    case GRAPHI_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case GRAPHI_INTS:
        break;
    }
    return a->count == b->count && (a->count == 0 || memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->count) == 0);
}

bool attributes_equal(const struct node *a, const struct node *b)
{
    for (int i = 0; i < a->attributes; i++)
        if (!attribute_equal(&a->attribute[i], &b->attribute[i]))
            return false;
    return true;
}

bool attribute_is_default(const graphi_attribute *attribute, const struct op_attribute *schema)
{
    if (schema->required)
        return false;
    switch (attribute->type) {
    case GRAPHI_INT:
        return attribute->i == schema->i;
    case GRAPHI_FLOAT:
        return memcmp(&attribute->f, &schema->f, sizeof schema->f) == 0; /* -0.0 is not 0 */
    case GRAPHI_INTS:
        break;
    }
    return attribute->count == 0;
}

static void describe(const char *kind, const char *scope, int32_t id, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, *scope ? "%s '%s'" : "%s", kind, scope);
    if (id >= 0 && used < size)
        snprintf(text + used, size - used, " (node %d)", id);
}

void node_text(const graphi_graph *graph, int32_t node, char *text, size_t size)
{
    if (node == (int32_t)graph->nodes.count) { /* the one being appended: kind unknown here */
        describe("node", graph->scope, node, text, size);
        return;
    }
    const struct node *n = graph_node(graph, node);
    describe(n->kind ? n->kind->name : "removed", n->scope, n->origin, text, size);
}

double node_flops(const graphi_graph *graph, int32_t node)
{
    const struct node *n = graph_node(graph, node);
    const struct value_type **in = mem_zalloc_array((size_t)n->inputs + 1, sizeof *in);
    struct value_type *out = mem_zalloc_array((size_t)n->outputs + 1, sizeof *out);
    double flops = 0;
    if (in && out) {
        for (int i = 0; i < n->inputs; i++)
            in[i] = &graph_value(graph, n->input[i])->type;
        for (int i = 0; i < n->outputs; i++) {
            out[i] = graph_value(graph, n->output + i)->type;
            flops += (double)type_count(&out[i]);
        }
        if (n->kind->flops)
            flops = n->kind->flops(&(struct shape_call){n->kind->name, graph, n, in, out});
    }
    mem_free(in);
    mem_free(out);
    return flops;
}
