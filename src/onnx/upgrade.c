/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades of operators of the default domain from opset 6 on: a table of what changed, by operator and the opset that
 * changed it. A node written for an older one goes through every row of its operator in order. Source: ONNX's
 * Changelog.md. One thread builds a model. */
#include "onnx/draft.h"

#include <string.h>

enum change {
    TO_INPUT,      /* the attribute becomes an int64 input */
    TO_INPUT_LIKE, /* a float becomes an input of input 0's type */
    DROP,          /* the attribute means nothing any more */
    SET,           /* an attribute of ours or of the newer form, where it is absent: an integer */
    SAY,           /* as SET, a string */
    RENAME,        /* the operator has another name */
    WORD,          /* the attribute's word `text` is `more` now */
    BROADCAST,     /* axis: the second input's dimensions begin there */
    SCALES,        /* Upsample's and Resize 10's input 1 is input 2 now */
};

static const struct upgrade {
    const char *type;
    int64_t before; /* the opset that changed it */
    enum change change;
    const char *attribute;
    int input, number;
    const char *text, *more;
} table[] = {
    {"Add", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Sub", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Mul", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Div", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Pow", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"And", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Or", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Xor", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Equal", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Greater", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"Less", 7, BROADCAST, "axis", 0, 0, NULL, NULL},
    {"PRelu", 7, BROADCAST, "axis", 1, 0, NULL, NULL},
    {"Gemm", 7, DROP, "broadcast", 0, 0, NULL, NULL},
    {"BatchNormalization", 7, DROP, "is_test", 0, 0, NULL, NULL},
    {"BatchNormalization", 9, DROP, "spatial", 0, 0, NULL, NULL},
    {"Dropout", 7, DROP, "is_test", 0, 0, NULL, NULL},
    {"Dropout", 12, TO_INPUT_LIKE, "ratio", 1, 0, NULL, NULL},
    {"LSTM", 7, DROP, "output_sequence", 0, 0, NULL, NULL},
    {"GRU", 7, DROP, "output_sequence", 0, 0, NULL, NULL},
    {"RNN", 7, DROP, "output_sequence", 0, 0, NULL, NULL},
    {"Upsample", 9, TO_INPUT, "scales", 1, 0, NULL, NULL},
    {"Upsample", 10, RENAME, NULL, 0, 0, "Resize", NULL},
    {"Resize", 11, SCALES, NULL, 0, 0, NULL, NULL},
    {"Scatter", 11, RENAME, NULL, 0, 0, "ScatterElements", NULL},
    {"TopK", 10, TO_INPUT, "k", 1, 0, NULL, NULL},
    {"Slice", 10, TO_INPUT, "starts", 1, 0, NULL, NULL},
    {"Slice", 10, TO_INPUT, "ends", 2, 0, NULL, NULL},
    {"Slice", 10, TO_INPUT, "axes", 3, 0, NULL, NULL},
    {"Clip", 11, TO_INPUT_LIKE, "min", 1, 0, NULL, NULL},
    {"Clip", 11, TO_INPUT_LIKE, "max", 2, 0, NULL, NULL},
    {"Pad", 11, TO_INPUT, "pads", 1, 0, NULL, NULL},
    {"Pad", 11, TO_INPUT_LIKE, "value", 2, 0, NULL, NULL},
    {"Split", 13, TO_INPUT, "split", 1, 0, NULL, NULL},
    {"Squeeze", 13, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"Unsqueeze", 13, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceSum", 13, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceMean", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceMax", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceMin", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceProd", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceL1", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceL2", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceLogSum", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceLogSumExp", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"ReduceSumSquare", 18, TO_INPUT, "axes", 1, 0, NULL, NULL},
    {"Softmax", 13, SET, "flat", 0, 1, NULL, NULL},
    {"LogSoftmax", 13, SET, "flat", 0, 1, NULL, NULL},
    {"Hardmax", 13, SET, "flat", 0, 1, NULL, NULL},
    {"GridSample", 20, WORD, "mode", 0, 0, "bilinear", "linear"},
    {"GridSample", 20, WORD, "mode", 0, 0, "bicubic", "cubic"},
    {"RoiAlign", 16, SAY, "coordinate_transformation_mode", 0, 0, "output_half_pixel", NULL},
    {"Reshape", 5, TO_INPUT, "shape", 1, 0, NULL, NULL},
    {"DFT", 20, SET, "axis", 0, 1, NULL, NULL},
    {"DFT", 20, TO_INPUT, "axis", 2, 0, NULL, NULL},
};

const struct attribute *draft_attribute(const struct draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->attribute_count; i++)
        if (strcmp(draft->attributes[i].name, name) == 0)
            return &draft->attributes[i];
    return NULL;
}

static void drop(struct draft *draft, const char *name)
{
    const struct attribute *a = draft_attribute(draft, name);
    if (a)
        draft->attributes[a - draft->attributes] = draft->attributes[--draft->attribute_count];
}

/* Room for inputs up to `input`, those between left out. */
static graphi_status set_input(struct draft_maker *maker, struct draft *draft, int input, int value)
{
    if (input >= draft->ins) {
        int *in = arena_alloc(&maker->model->arena, (size_t)(input + 1) * sizeof *in);
        if (!in)
            return fail_memory(maker->where, (size_t)input * sizeof *in);
        for (int i = 0; i <= input; i++)
            in[i] = i < draft->ins ? draft->in[i] : -1;
        draft->in = in;
        draft->ins = input + 1;
    }
    draft->in[input] = value;
    return GRAPHI_OK;
}

static graphi_status list_of(const struct draft_maker *maker, const struct attribute *a, graphi_tensor **out)
{
    const int64_t count = a->kind == ATTRIBUTE_INT ? 1 : (int64_t)a->count;
    if (a->kind == ATTRIBUTE_FLOATS) {
        TRY(value_new(maker->where, T_F32, 1, &count, out));
        memcpy((*out)->data, a->floats, (*out)->bytes);
        return GRAPHI_OK;
    }
    if (a->kind != ATTRIBUTE_INT && a->kind != ATTRIBUTE_INTS)
        return fail(GRAPHI_INVALID, maker->where, "found another type of %s, expected integers", a->name);
    return value_list(maker->where, count, a->kind == ATTRIBUTE_INT ? &a->i : a->ints, out);
}

static graphi_status to_input(struct draft_maker *maker, struct draft *draft, const struct upgrade *row)
{
    const struct attribute *a = draft_attribute(draft, row->attribute);
    graphi_tensor *list;
    int value;
    if (!a)
        return GRAPHI_OK;
    TRY(list_of(maker, a, &list));
    TRY(draft_constant(maker, list, &value));
    TRY(set_input(maker, draft, row->input, value));
    drop(draft, row->attribute);
    return GRAPHI_OK;
}

static graphi_status to_input_like(struct draft_maker *maker, struct draft *draft, const struct upgrade *row)
{
    const struct attribute *a = draft_attribute(draft, row->attribute);
    graphi_tensor *number;
    int in[2], value;
    if (!a || draft->ins < 1)
        return GRAPHI_OK;
    if (a->kind != ATTRIBUTE_FLOAT)
        return fail(GRAPHI_INVALID, maker->where, "found another type of %s, expected a float", a->name);
    TRY(value_number(maker->where, T_F32, a->f, &number));
    TRY(draft_constant(maker, number, &in[0]));
    in[1] = draft->in[0];
    TRY(draft_node(maker, "CastLike", in, 2, &value));
    TRY(set_input(maker, draft, row->input, value));
    drop(draft, row->attribute);
    return GRAPHI_OK;
}

static graphi_status add_attribute(struct draft_maker *maker, struct draft *draft, const struct upgrade *row)
{
    if (draft_attribute(draft, row->attribute))
        return GRAPHI_OK;
    struct attribute *list = arena_alloc(&maker->model->arena, (draft->attribute_count + 1) * sizeof *list);
    if (!list)
        return fail_memory(maker->where, (draft->attribute_count + 1) * sizeof *list);
    if (draft->attribute_count)
        memcpy(list, draft->attributes, draft->attribute_count * sizeof *list);
    list[draft->attribute_count] = (struct attribute){
        .name = row->attribute, .kind = row->text ? ATTRIBUTE_STRING : ATTRIBUTE_INT, .i = row->number, .s = row->text};
    draft->attributes = list;
    draft->attribute_count++;
    return GRAPHI_OK;
}

/* The opset before 7 broadcast where asked: the second input's dimensions lie from `axis` on, which needs the first
 * one's rank; without an axis they lie at the end, as now. */
static graphi_status broadcast(struct draft_maker *maker, struct draft *draft, const struct upgrade *row)
{
    const struct attribute channels = {.kind = ATTRIBUTE_INT, .i = 1}; /* PRelu's slopes */
    const struct attribute *axis = row->input ? &channels : draft_attribute(draft, row->attribute);
    if (axis && axis->kind == ATTRIBUTE_INT && draft->ins == 2 && draft->in[0] >= 0 && draft->in[1] >= 0) {
        const struct model_value *a = &maker->model->values.data[draft->in[0]],
                                 *b = &maker->model->values.data[draft->in[1]];
        const int rank = a->rank, inner = b->constant ? b->constant->rank : b->rank;
        if (rank < 0 || inner < 0)
            return fail(GRAPHI_UNSUPPORTED, maker->where,
                        "found broadcasting from axis %lld of an unknown rank, expected "
                        "opset 7 and later",
                        (long long)axis->i);
        int64_t axes[VALUE_RANK], from = axis->i < 0 ? axis->i + rank : axis->i;
        int count = 0, in[2] = {draft->in[1], 0};
        graphi_tensor *list;
        for (int64_t k = from + inner; k < rank && count < VALUE_RANK; k++, count++)
            axes[count] = inner + count;
        if (count) {
            TRY(value_list(maker->where, count, axes, &list));
            TRY(draft_constant(maker, list, &in[1]));
            TRY(draft_node(maker, "Unsqueeze", in, 2, &draft->in[1]));
        }
    }
    drop(draft, "axis");
    drop(draft, "broadcast");
    return GRAPHI_OK;
}

/* Input 1 was scales; coordinates were scaled without an offset. */
static graphi_status move_scales(struct draft_maker *maker, struct draft *draft)
{
    static const struct upgrade forms[] = {
        {.attribute = "coordinate_transformation_mode", .text = "asymmetric"},
        {.attribute = "nearest_mode", .text = "floor"},
    };
    if (draft->ins < 2)
        return GRAPHI_OK;
    const int scales = draft->in[1];
    TRY(set_input(maker, draft, 2, scales));
    draft->in[1] = -1;
    for (int i = 0; i < 2; i++)
        TRY(add_attribute(maker, draft, &forms[i]));
    return GRAPHI_OK;
}

static graphi_status apply(struct draft_maker *maker, struct draft *draft, const struct upgrade *row)
{
    struct attribute *a;
    switch (row->change) {
    case TO_INPUT:
        return to_input(maker, draft, row);
    case TO_INPUT_LIKE:
        return to_input_like(maker, draft, row);
    case DROP:
        drop(draft, row->attribute);
        return GRAPHI_OK;
    case SET:
    case SAY:
        return add_attribute(maker, draft, row);
    case RENAME:
        draft->type = row->text;
        return GRAPHI_OK;
    case WORD:
        a = (struct attribute *)draft_attribute(draft, row->attribute);
        if (a && a->kind == ATTRIBUTE_STRING && strcmp(a->s, row->text) == 0)
            a->s = row->more;
        return GRAPHI_OK;
    case BROADCAST:
        return broadcast(maker, draft, row);
    case SCALES:
        return move_scales(maker, draft);
    }
    return GRAPHI_OK;
}

graphi_status draft_upgrade(struct draft_maker *maker, struct draft *draft)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (draft->version < table[i].before && strcmp(draft->type, table[i].type) == 0)
            TRY(apply(maker, draft, &table[i]));
    return GRAPHI_OK;
}
