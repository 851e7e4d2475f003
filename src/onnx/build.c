/* SPDX-License-Identifier: Apache-2.0 */
/* From the message of a model to its canonical graph (model.h): names become numbers, functions are inlined where they
 * are called, nodes are sorted and upgraded, and what there is no operator for is collected. Functions and bodies go
 * deeper by recursion, to DEEPEST at most. One thread builds a model. */
#include "onnx/attribute.h"
#include "onnx/draft.h"
#include "onnx/last.h"
#include "onnx/order.h"
#include "onnx/scope.h"
#include "onnx/tensor.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 60, NODES_MOST = 1 << 22 };

struct builder {
    struct onnx_model *model;
    const Onnx__ModelProto *proto;
    const char *where, *folder;
    bool partly;
    struct text unsupported;
    size_t unsupported_named;
};

/* Where nodes go, and what their words mean there. */
struct place {
    struct scope *scope;
    struct model_graph *graph;
    Onnx__OperatorSetIdProto *const *imports;
    size_t import_count;
    const struct attribute *given; /* of the function's call */
    size_t given_count;
    int depth;
};

static graphi_status no_memory(const struct builder *b)
{
    return fail_memory(b->where, sizeof(struct model_node));
}

static const char *text_or(const char *text)
{
    return text ? text : "";
}

static void free_graph(struct model_graph *graph)
{
    for (size_t i = 0; graph && i < graph->nodes.count; i++)
        for (int k = 0; k < 2; k++)
            free_graph(graph->nodes.data[i].body[k]);
    if (!graph)
        return;
    array_free(&graph->nodes);
    array_free(&graph->inputs);
    array_free(&graph->outputs);
}

/* A name that this graph gives to a value, once. */
static graphi_status declare(struct builder *b, struct scope *scope, const char *name, int *out)
{
    if (scope_own(scope, name) != SCOPE_NOT)
        return fail(GRAPHI_INVALID, b->where, "found the name \"%.200s\" twice, expected each value once", name);
    TRY(model_value_add(b->model, name, out));
    return scope_add(scope, b->model->values.data[*out].name, *out) ? GRAPHI_OK : no_memory(b);
}

static graphi_status read_shape(struct builder *b, const Onnx__TensorShapeProto *shape, struct model_value *value)
{
    if (shape->n_dim > VALUE_RANK)
        return fail(GRAPHI_UNSUPPORTED, b->where, "found rank %zu of \"%.200s\", expected at most %d", shape->n_dim,
                    value->name, VALUE_RANK);
    value->rank = (int)shape->n_dim;
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        value->dims[i] = dim->has_dim_value && dim->dim_value >= 0 ? dim->dim_value : -1;
        if (dim->dim_param && *dim->dim_param && !(value->symbols[i] = arena_string(&b->model->arena, dim->dim_param)))
            return no_memory(b);
    }
    return GRAPHI_OK;
}

static graphi_status read_type(struct builder *b, const Onnx__TypeProto *type, int number)
{
    struct model_value *value = &b->model->values.data[number];
    for (int depth = 0; type && type->optional_type && depth < 4; depth++) {
        value->optional = true;
        type = type->optional_type->elem_type;
    }
    if (!type)
        return GRAPHI_OK;
    if (type->sequence_type) {
        value->kind = GRAPHI_KIND_SEQUENCE;
        return GRAPHI_OK;
    }
    if (!type->tensor_type)
        return GRAPHI_OK;
    value->type = (graphi_element)type->tensor_type->elem_type;
    return type->tensor_type->shape ? read_shape(b, type->tensor_type->shape, value) : GRAPHI_OK;
}

static graphi_status version_of(const struct builder *b, const struct place *p, const char *domain, int64_t *out)
{
    for (size_t i = 0; i < p->import_count; i++) {
        const char *name = text_or(p->imports[i]->domain);
        if (strcmp(strcmp(name, "ai.onnx") == 0 ? "" : name, domain) == 0) {
            *out = p->imports[i]->version;
            return GRAPHI_OK;
        }
    }
    return fail(GRAPHI_INVALID, b->where,
                "found a node of domain \"%.100s\", of which no opset is imported, expected one", domain);
}

static const Onnx__FunctionProto *find_function(const struct builder *b, const char *domain, const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < b->proto->n_functions; i++) {
        const Onnx__FunctionProto *f = b->proto->functions[i];
        const char *in = text_or(f->domain);
        if (strcmp(text_or(f->name), text_or(n->op_type)) == 0 &&
            strcmp(strcmp(in, "ai.onnx") == 0 ? "" : in, domain) == 0 &&
            strcmp(text_or(f->overload), text_or(n->overload)) == 0)
            return f;
    }
    return NULL;
}

static graphi_status resolve(const struct builder *b, const struct place *p, const Onnx__NodeProto *n, int **out)
{
    int *in = arena_alloc(&b->model->arena, (n->n_input + 1) * sizeof *in);
    if (!in)
        return no_memory(b);
    for (size_t i = 0; i < n->n_input; i++) {
        in[i] = *n->input[i] ? scope_find(p->scope, n->input[i]) : -1;
        if (in[i] == SCOPE_NOT)
            return fail(GRAPHI_INVALID, b->where,
                        "found that node \"%.100s\" (%.60s) reads \"%.200s\", expected a value "
                        "that is there",
                        text_or(n->name), text_or(n->op_type), n->input[i]);
    }
    *out = in;
    return GRAPHI_OK;
}

static graphi_status build_nodes(struct builder *b, const struct place *p, Onnx__NodeProto *const *nodes, size_t count);

/* The function's own defaults stand behind what the call gives. */
static graphi_status given_of(struct builder *b, const Onnx__FunctionProto *f, struct attribute *own, size_t own_count,
                              struct attribute **out, size_t *count)
{
    struct attribute *defaults, *all;
    size_t more;
    const struct attribute_source source = {.where = b->where, .folder = b->folder, .model = b->model};
    TRY(attributes_read(&source, f->attribute_proto, f->n_attribute_proto, &defaults, &more));
    all = arena_alloc(&b->model->arena, (own_count + more + 1) * sizeof *all);
    if (!all)
        return no_memory(b);
    if (own_count)
        memcpy(all, own, own_count * sizeof *all);
    if (more)
        memcpy(all + own_count, defaults, more * sizeof *all);
    *out = all;
    *count = own_count + more;
    return GRAPHI_OK;
}

static graphi_status inline_function(struct builder *b, const struct place *p, const Onnx__FunctionProto *f,
                                     const Onnx__NodeProto *n, const int *in, struct attribute *own, size_t own_count)
{
    struct scope scope = {0};
    struct place inner = {.scope = &scope,
                          .graph = p->graph,
                          .imports = f->opset_import,
                          .import_count = f->n_opset_import,
                          .depth = p->depth + 1};
    struct attribute *all = NULL;
    if (p->depth > DEEPEST)
        return fail(GRAPHI_INVALID, b->where, "found function \"%.200s\" more than %d deep, expected no circle",
                    text_or(f->name), DEEPEST);
    if (n->n_input > f->n_input || n->n_output > f->n_output)
        return fail(GRAPHI_INVALID, b->where,
                    "found %zu inputs and %zu outputs of function \"%.200s\", expected at most "
                    "%zu and %zu",
                    n->n_input, n->n_output, text_or(f->name), f->n_input, f->n_output);
    TRY(given_of(b, f, own, own_count, &all, &inner.given_count));
    inner.given = all;
    graphi_status status = GRAPHI_OK;
    for (size_t i = 0; i < f->n_input && status == GRAPHI_OK; i++)
        if (scope_own(&scope, f->input[i]) != SCOPE_NOT)
            status = fail(GRAPHI_INVALID, b->where, "found the name \"%.200s\" twice, expected once", f->input[i]);
        else if (!scope_add(&scope, f->input[i], i < n->n_input ? in[i] : -1))
            status = no_memory(b);
    if (status == GRAPHI_OK)
        status = build_nodes(b, &inner, f->node, f->n_node);
    for (size_t i = 0; i < n->n_output && status == GRAPHI_OK; i++) {
        const int value = scope_own(&scope, f->output[i]);
        if (!*n->output[i])
            continue;
        if (value < 0)
            status = fail(GRAPHI_INVALID, b->where, "found no \"%.200s\" in function \"%.200s\", expected its result",
                          f->output[i], text_or(f->name));
        else if (scope_own(p->scope, n->output[i]) != SCOPE_NOT)
            status = fail(GRAPHI_INVALID, b->where, "found the name \"%.200s\" twice, expected once", n->output[i]);
        else {
            char *name = arena_string(&b->model->arena, n->output[i]);
            status = name && scope_add(p->scope, name, value) ? GRAPHI_OK : no_memory(b);
            if (name && !*b->model->values.data[value].name)
                b->model->values.data[value].name = name;
        }
    }
    scope_free(&scope);
    return status;
}

static graphi_status note_use(struct builder *b, const struct model_node *node)
{
    struct onnx_model *m = b->model;
    const bool supported = node->kind != NODE_UNSUPPORTED;
    m->node_count++;
    m->unsupported += !supported;
    for (size_t i = 0; i < m->uses.count; i++) {
        struct model_use *use = &m->uses.data[i];
        if (strcmp(use->type, node->type) == 0 && strcmp(use->domain, node->domain) == 0 &&
            use->supported == supported) {
            use->nodes++;
            return GRAPHI_OK;
        }
    }
    const struct model_use use = {node->domain, node->type, node->version, 1, supported};
    return array_push(&m->uses, use) ? GRAPHI_OK : no_memory(b);
}

/* Says which, as long as a message has room for it. */
static void note_unsupported(struct builder *b, const struct model_node *node, const char *attribute)
{
    if (b->unsupported.count > 700)
        return;
    text_add(&b->unsupported, "%s\"%.60s\" (%.60s of domain \"%.40s\" version %lld%s%.40s)",
             b->unsupported_named ? ", " : "", node->name, node->type, node->domain, (long long)node->version,
             attribute ? ", attribute " : "", attribute ? attribute : "");
    b->unsupported_named++;
}

static bool listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; length && (at = strstr(at, word)); at++) /* no name is found everywhere */
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0))
            return true;
    return false;
}

static const struct {
    const char *type;
    enum node_kind kind;
    const char *bodies[2];
} controls[] = {
    {"If", NODE_IF, {"then_branch", "else_branch"}},
    {"Loop", NODE_LOOP, {"body", NULL}},
    {"Scan", NODE_SCAN, {"body", NULL}},
    {"SequenceMap", NODE_MAP, {"body", NULL}},
};

static graphi_status build_body(struct builder *b, const struct place *p, const Onnx__GraphProto *from,
                                struct model_graph **out);

static graphi_status find_operator(struct builder *b, const struct place *p, const Onnx__NodeProto *n,
                                   struct model_node *node)
{
    const bool ours = !*node->domain;
    for (size_t c = 0; ours && c < sizeof controls / sizeof *controls; c++) {
        if (strcmp(controls[c].type, node->type) != 0)
            continue;
        node->kind = controls[c].kind;
        for (int k = 0; k < 2 && controls[c].bodies[k]; k++) {
            for (size_t i = 0; i < n->n_attribute; i++)
                if (n->attribute[i]->g && strcmp(text_or(n->attribute[i]->name), controls[c].bodies[k]) == 0 &&
                    !node->body[k])
                    TRY(build_body(b, p, n->attribute[i]->g, &node->body[k]));
            if (!node->body[k])
                return fail(GRAPHI_INVALID, b->where, "found no %s of node \"%.200s\" (%s), expected a graph",
                            controls[c].bodies[k], node->name, node->type);
        }
        return GRAPHI_OK;
    }
    char full[128]; /* other domains' operators are listed with it; a name that is cut off is none of theirs */
    snprintf(full, sizeof full, "%s%s%s", node->domain, ours ? "" : ".", node->type);
    node->op = host_op_find(full);
    const char *unknown = NULL;
    for (size_t i = 0; node->op && i < node->attribute_count; i++)
        if (!listed(node->op->attributes, node->attributes[i].name))
            unknown = node->attributes[i].name;
    if (!node->op || unknown) {
        node->kind = NODE_UNSUPPORTED;
        note_unsupported(b, node, unknown);
    }
    return GRAPHI_OK;
}

static graphi_status declare_outputs(struct builder *b, const struct place *p, const Onnx__NodeProto *n,
                                     struct model_node *node)
{
    node->outs = (int)n->n_output;
    while (node->outs && !*n->output[node->outs - 1])
        node->outs--;
    node->out = arena_alloc(&b->model->arena, ((size_t)node->outs + 1) * sizeof *node->out);
    if (!node->out)
        return no_memory(b);
    for (int i = 0; i < node->outs; i++) {
        node->out[i] = -1;
        if (*n->output[i])
            TRY(declare(b, p->scope, n->output[i], &node->out[i]));
    }
    return GRAPHI_OK;
}

static graphi_status build_node(struct builder *b, const struct place *p, const Onnx__NodeProto *n)
{
    struct onnx_model *m = b->model;
    const char *domain = text_or(n->domain);
    struct draft draft = {.name = arena_string(&m->arena, text_or(n->name)),
                          .type = arena_string(&m->arena, text_or(n->op_type)),
                          .domain = arena_string(&m->arena, strcmp(domain, "ai.onnx") == 0 ? "" : domain),
                          .ins = (int)n->n_input};
    if (!draft.name || !draft.type || !draft.domain)
        return no_memory(b);
    if (m->node_count > NODES_MOST)
        return fail(GRAPHI_INVALID, b->where, "found more than %d nodes, expected fewer", NODES_MOST);
    TRY(version_of(b, p, draft.domain, &draft.version));
    TRY(resolve(b, p, n, &draft.in));
    const struct attribute_source source = {.where = b->where,
                                            .folder = b->folder,
                                            .model = m,
                                            .given = p->given,
                                            .given_count = p->given_count};
    TRY(attributes_read(&source, n->attribute, n->n_attribute, &draft.attributes, &draft.attribute_count));
    const Onnx__FunctionProto *f = find_function(b, draft.domain, n);
    if (f)
        return inline_function(b, p, f, n, draft.in, draft.attributes, draft.attribute_count);
    struct draft_maker maker = {.model = m, .graph = p->graph, .where = b->where};
    if (!*draft.domain)
        TRY(draft_upgrade(&maker, &draft));
    struct model_node node = {.name = draft.name,
                              .type = draft.type,
                              .domain = draft.domain,
                              .version = draft.version,
                              .ins = draft.ins,
                              .in = draft.in,
                              .attributes = draft.attributes,
                              .attribute_count = draft.attribute_count};
    while (node.ins && node.in[node.ins - 1] < 0)
        node.ins--;
    TRY(model_node_place(m, &node));
    graphi_status status = find_operator(b, p, n, &node);
    if (status == GRAPHI_OK)
        status = declare_outputs(b, p, n, &node);
    if (status == GRAPHI_OK)
        status = note_use(b, &node);
    if (status == GRAPHI_OK && !array_push(&p->graph->nodes, node))
        status = no_memory(b);
    for (int k = 0; k < 2 && status != GRAPHI_OK; k++)
        free_graph(node.body[k]);
    return status;
}

static graphi_status build_nodes(struct builder *b, const struct place *p, Onnx__NodeProto *const *nodes, size_t count)
{
    int *order = mem_alloc((count + 1) * sizeof *order);
    graphi_status status = order ? order_nodes(b->where, nodes, count, order) : no_memory(b);
    for (size_t i = 0; i < count && status == GRAPHI_OK; i++)
        status = build_node(b, p, nodes[order[i]]);
    mem_free(order);
    return status;
}

static graphi_status build_initializers(struct builder *b, const struct place *p, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_initializer; i++) {
        const Onnx__TensorProto *t = from->initializer[i];
        graphi_tensor *constant;
        int number;
        char where[256];
        snprintf(where, sizeof where, "%.160s, initializer \"%.60s\"", b->where, text_or(t->name));
        TRY(declare(b, p->scope, text_or(t->name), &number));
        TRY(onnx_tensor(where, t, b->folder, &constant));
        struct model_value *value = &b->model->values.data[number];
        value->constant = constant;
        value->type = constant->type;
        value->rank = constant->rank;
        memcpy(value->dims, constant->dims, sizeof value->dims);
        b->model->parameters++;
        b->model->parameter_elements += constant->count;
        b->model->parameter_bytes += (int64_t)constant->bytes;
    }
    if (from->n_sparse_initializer)
        return fail(GRAPHI_UNSUPPORTED, b->where, "found a sparse initializer, expected dense ones");
    return GRAPHI_OK;
}

static graphi_status build_inputs(struct builder *b, const struct place *p, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_input; i++) {
        const char *name = text_or(from->input[i]->name);
        int number = scope_own(p->scope, name);
        const bool has_default = number >= 0 && b->model->values.data[number].constant;
        if (!has_default)
            TRY(declare(b, p->scope, name, &number));
        if (!has_default)
            TRY(read_type(b, from->input[i]->type, number));
        if (!array_push(&p->graph->inputs, number))
            return no_memory(b);
    }
    return GRAPHI_OK;
}

static graphi_status build_outputs(struct builder *b, const struct place *p, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_output; i++) {
        const char *name = text_or(from->output[i]->name);
        const int number = scope_find(p->scope, name);
        if (number < 0)
            return fail(GRAPHI_INVALID, b->where, "found no value \"%.200s\", expected the output", name);
        if (b->model->values.data[number].rank < 0 && !b->model->values.data[number].constant)
            TRY(read_type(b, from->output[i]->type, number));
        if (!array_push(&p->graph->outputs, number))
            return no_memory(b);
    }
    return GRAPHI_OK;
}

static graphi_status build_infos(struct builder *b, const struct place *p, const Onnx__GraphProto *from)
{
    for (size_t i = 0; i < from->n_value_info; i++) {
        const int number = scope_own(p->scope, text_or(from->value_info[i]->name));
        if (number >= 0 && b->model->values.data[number].rank < 0)
            TRY(read_type(b, from->value_info[i]->type, number));
    }
    return GRAPHI_OK;
}

static graphi_status build_graph(struct builder *b, const struct place *p, const Onnx__GraphProto *from)
{
    p->graph->name = arena_string(&b->model->arena, text_or(from->name));
    if (!p->graph->name)
        return no_memory(b);
    TRY(build_initializers(b, p, from));
    TRY(build_inputs(b, p, from));
    TRY(build_nodes(b, p, from->node, from->n_node));
    TRY(build_outputs(b, p, from));
    return build_infos(b, p, from);
}

static graphi_status build_body(struct builder *b, const struct place *p, const Onnx__GraphProto *from,
                                struct model_graph **out)
{
    struct scope scope = {.parent = p->scope};
    struct place inner = *p;
    if (p->depth > DEEPEST)
        return fail(GRAPHI_INVALID, b->where, "found bodies more than %d deep, expected fewer", DEEPEST);
    inner.depth++;
    inner.scope = &scope;
    inner.graph = *out = arena_alloc(&b->model->arena, sizeof **out); /* before the nodes: it is freed with the model */
    if (!*out)
        return no_memory(b);
    graphi_status status = build_graph(b, &inner, from);
    scope_free(&scope);
    if (status != GRAPHI_OK) {
        free_graph(*out);
        *out = NULL;
    }
    return status;
}

static graphi_status check_versions(const struct builder *b)
{
    const Onnx__ModelProto *m = b->proto;
    if (!m->graph)
        return fail(GRAPHI_INVALID, b->where, "found no graph, expected an ONNX model");
    if (m->ir_version < 3 || m->ir_version > 14)
        return fail(m->ir_version > 14 ? GRAPHI_UNSUPPORTED : GRAPHI_INVALID, b->where,
                    "found IR version %lld, expected 3 to 14", (long long)m->ir_version);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = text_or(m->opset_import[i]->domain);
        const int64_t version = m->opset_import[i]->version;
        if (*domain && strcmp(domain, "ai.onnx") != 0)
            continue;
        b->model->opset = version;
        if (version < 6 || version > 28)
            return fail(GRAPHI_UNSUPPORTED, b->where, "found opset %lld, expected 6 to 28", (long long)version);
    }
    return GRAPHI_OK;
}

static graphi_status build(struct builder *b)
{
    struct scope scope = {0};
    struct onnx_model *m = b->model;
    TRY(check_versions(b));
    m->ir_version = b->proto->ir_version;
    m->producer = arena_string(&m->arena, text_or(b->proto->producer_name));
    m->graph = arena_alloc(&m->arena, sizeof *m->graph);
    if (!m->graph || !m->producer)
        return no_memory(b);
    const struct place p = {.scope = &scope,
                            .graph = m->graph,
                            .imports = b->proto->opset_import,
                            .import_count = b->proto->n_opset_import};
    graphi_status status = build_graph(b, &p, b->proto->graph);
    scope_free(&scope);
    TRY(status);
    if (m->unsupported && !b->partly)
        return fail(GRAPHI_UNSUPPORTED, b->where,
                    "found %lld nodes without an operator: %s%s, expected operators of "
                    "docs/onnx.md",
                    (long long)m->unsupported, b->unsupported.data,
                    b->unsupported_named < (size_t)m->unsupported ? ", ..." : "");
    return model_find_last(m);
}

graphi_status onnx_model_load(const char *where, const void *bytes, size_t size, const char *folder, bool partly,
                              struct onnx_model **out)
{
    ProtobufCMessage *proto;
    TRY(message_unpack(where, &onnx__model_proto__descriptor, bytes, size, &proto));
    struct builder b = {.proto = (const Onnx__ModelProto *)proto, .where = where, .folder = folder, .partly = partly};
    b.model = mem_zalloc(sizeof *b.model);
    graphi_status status = b.model ? build(&b) : fail_memory(where, sizeof *b.model);
    text_free(&b.unsupported);
    message_free(proto);
    if (status != GRAPHI_OK) {
        onnx_model_free(b.model);
        return status;
    }
    *out = b.model;
    return GRAPHI_OK;
}

void onnx_model_free(struct onnx_model *model)
{
    if (!model)
        return;
    free_graph(model->graph);
    for (size_t i = 0; i < model->values.count; i++)
        value_drop(model->values.data[i].constant);
    array_free(&model->values);
    array_free(&model->uses);
    arena_free(&model->arena);
    mem_free(model);
}
