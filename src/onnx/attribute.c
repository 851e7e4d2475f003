/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes out of messages (attribute.h). Files of before IR 2 tell no type: the field that is there does. Tensors
 * are kept by the model as values of known content, which frees them. One thread builds a model. */
#include "onnx/attribute.h"

#include "onnx/draft.h"
#include "onnx/tensor.h"

#include <string.h>

/* AttributeProto.AttributeType */
enum { NONE, FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TYPE = 13 };

static int type_of(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type != NONE)
        return a->type;
    return a->has_f       ? FLOAT
           : a->has_i     ? INT
           : a->has_s     ? STRING
           : a->t         ? TENSOR
           : a->g         ? GRAPH
           : a->n_floats  ? FLOATS
           : a->n_ints    ? INTS
           : a->n_strings ? STRINGS
                          : INTS;
}

static graphi_status text_of(const struct attribute_source *from, const ProtobufCBinaryData *bytes, const char **out)
{
    char *text = arena_alloc(&from->model->arena, bytes->len + 1);
    if (!text)
        return fail_memory(from->where, bytes->len);
    if (bytes->len)
        memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = 0;
    *out = text;
    return GRAPHI_OK;
}

static graphi_status tensor_of(const struct attribute_source *from, const Onnx__AttributeProto *a,
                               struct attribute *out)
{
    int value;
    if (!a->t)
        return fail(GRAPHI_INVALID, from->where, "found no tensor in attribute %.80s, expected one", out->name);
    TRY(onnx_tensor(from->where, a->t, from->folder, &out->tensor));
    struct draft_maker maker = {.model = from->model, .where = from->where};
    return draft_constant(&maker, out->tensor, &value);
}

static graphi_status copy_list(const struct attribute_source *from, const void *list, size_t count, size_t size,
                               void **out)
{
    *out = arena_alloc(&from->model->arena, count * size + 1);
    if (!*out)
        return fail_memory(from->where, count * size);
    if (count)
        memcpy(*out, list, count * size);
    return GRAPHI_OK;
}

static graphi_status strings_of(const struct attribute_source *from, const Onnx__AttributeProto *a,
                                struct attribute *out)
{
    out->strings = arena_alloc(&from->model->arena, (a->n_strings + 1) * sizeof *out->strings);
    if (!out->strings)
        return fail_memory(from->where, a->n_strings * sizeof *out->strings);
    for (size_t i = 0; i < a->n_strings; i++)
        TRY(text_of(from, &a->strings[i], &out->strings[i]));
    return GRAPHI_OK;
}

static graphi_status read_one(const struct attribute_source *from, const Onnx__AttributeProto *a, struct attribute *out)
{
    static const enum attribute_kind kinds[] = {
        [FLOAT] = ATTRIBUTE_FLOAT,   [INT] = ATTRIBUTE_INT,   [STRING] = ATTRIBUTE_STRING,  [TENSOR] = ATTRIBUTE_TENSOR,
        [FLOATS] = ATTRIBUTE_FLOATS, [INTS] = ATTRIBUTE_INTS, [STRINGS] = ATTRIBUTE_STRINGS};
    const int type = type_of(a);
    if (type < FLOAT || type == GRAPH || (type > STRINGS && type != TYPE))
        return fail(GRAPHI_UNSUPPORTED, from->where,
                    "found attribute %.80s of type %d, expected numbers, strings or "
                    "tensors",
                    out->name, type);
    out->kind = type == TYPE ? ATTRIBUTE_INT : kinds[type]; /* a type says nothing that a run does not */
    out->i = a->i;
    out->f = a->f;
    switch (type) {
    case STRING:
        return text_of(from, &a->s, &out->s);
    case TENSOR:
        return tensor_of(from, a, out);
    case FLOATS:
        out->count = a->n_floats;
        return copy_list(from, a->floats, a->n_floats, sizeof(float), (void **)&out->floats);
    case INTS:
        out->count = a->n_ints;
        return copy_list(from, a->ints, a->n_ints, sizeof(int64_t), (void **)&out->ints);
    case STRINGS:
        out->count = a->n_strings;
        return strings_of(from, a, out);
    default:
        return GRAPHI_OK;
    }
}

static const struct attribute *given(const struct attribute_source *from, const char *name)
{
    for (size_t i = 0; i < from->given_count; i++)
        if (strcmp(from->given[i].name, name) == 0)
            return &from->given[i];
    return NULL;
}

graphi_status attributes_read(const struct attribute_source *from, Onnx__AttributeProto *const *list, size_t count,
                              struct attribute **out, size_t *out_count)
{
    struct attribute *all = arena_alloc(&from->model->arena, (count + 1) * sizeof *all);
    size_t used = 0;
    if (!all)
        return fail_memory(from->where, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        const Onnx__AttributeProto *a = list[i];
        struct attribute *to = &all[used];
        if (a->g || type_of(a) == GRAPH)
            continue;
        char *name = arena_string(&from->model->arena, a->name ? a->name : "");
        if (!name)
            return fail_memory(from->where, 1);
        if (a->ref_attr_name && *a->ref_attr_name) {
            const struct attribute *referred = given(from, a->ref_attr_name);
            if (!referred)
                continue;
            *to = *referred;
        }
        to->name = name;
        used++;
        if (!(a->ref_attr_name && *a->ref_attr_name))
            TRY(read_one(from, a, to));
    }
    *out = all;
    *out_count = used;
    return GRAPHI_OK;
}
