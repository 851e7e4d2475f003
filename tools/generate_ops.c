/* SPDX-License-Identifier: Apache-2.0 */
/* Prints include/graphi/ops.h (readable builders) and docs/operations.md from the table of operations; `make docs` runs
 * it and a test compares. As JSON it is what the Python package makes its functions of. Attributes that only passes set
 * ("program", "pairs", ...) are left out of the builders. */
#include "base/text.h"
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

/* Products and convolutions take further inputs and outputs only when a pass gives them an epilogue or more pairs. */
static bool extended_by_passes(const struct op_kind *kind)
{
    for (const struct op_attribute *a = kind->attributes; a && a->name; a++)
        if (strcmp(a->name, "program") == 0)
            return true;
    return false;
}

/* In lines of at most 120 columns, broken at spaces, the further ones indented. Frees it. */
static void print_wrapped(struct text *text, const char *indent)
{
    const char *at = text->data;
    for (int room = 120; (int)strlen(at) > room; room = 120 - (int)strlen(indent)) {
        int length = room;
        while (at[length] != ' ')
            length--;
        printf("%.*s\n%s", length, at, indent);
        at += length + 1;
    }
    printf("%s\n", at);
    text_free(text);
}

static void parameter(const struct op_attribute *a, struct text *text)
{
    static const char *const types[] = {"int64_t %s", "double %s", "const int64_t *%s, int %s_count"};
    text_add(text, ", ");
    text_add(text, types[a->type], a->name, a->name);
}

static void initializer(const struct op_attribute *a)
{
    static const char *const forms[] = {"graphi_int(\"%s\", %s)", "graphi_float(\"%s\", %s)",
                                        "graphi_ints(\"%s\", %s, %s_count)"};
    printf("        ");
    printf(forms[a->type], a->name, a->name, a->name);
    printf(",\n");
}

static void builder(const struct op_kind *kind)
{
    bool list = kind->max_inputs != kind->min_inputs && !extended_by_passes(kind);
    int attributes = 0;
    struct text comment = {0}, head = {0};
    text_add(&comment, "/* %s%s%s */", kind->summary ? kind->summary : kind->name, kind->shapes ? ": " : "",
             kind->shapes ? kind->shapes : "");
    print_wrapped(&comment, " * ");
    text_add(&head, "static inline graphi_value graphi_%s(graphi_graph *graph", kind->name);
    if (list)
        text_add(&head, ", int inputs, const graphi_value *input");
    for (int i = 0; !list && i < kind->min_inputs; i++)
        text_add(&head, ", graphi_value %c", "abcdefgh"[i]);
    for (const struct op_attribute *a = kind->attributes; a && a->name; a++)
        if (!a->internal)
            parameter(a, &head), attributes++;
    text_add(&head, ")");
    print_wrapped(&head, "    ");
    printf("{\n");
    if (!list) {
        printf("    graphi_value input[] = {");
        for (int i = 0; i < kind->min_inputs; i++)
            printf("%s%c", i ? ", " : "", "abcdefgh"[i]);
        printf("%s};\n", kind->min_inputs ? "" : "GRAPHI_NONE");
    }
    if (attributes) {
        printf("    graphi_attribute attribute[] = {\n");
        for (const struct op_attribute *a = kind->attributes; a && a->name; a++)
            if (!a->internal)
                initializer(a);
        printf("    };\n");
    }
    printf("    return graphi_op(graph, \"%s\", ", kind->name);
    list ? printf("inputs") : printf("%d", kind->min_inputs);
    printf(", input, %d, %s);\n}\n\n", attributes, attributes ? "attribute" : "NULL");
}

static bool named(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* What graph.h has a function for, and what only passes make, gets no builder. */
static const char *const of_graph[] = {"assign", "call", "lstm", "gru", "rnn", "sequence_offsets",
                                      "frontier", "vertices", NULL};
static const char *const of_passes[] = {
    "program", "pack", "conv_pack", "conv_points", "recurrence_pack", "recurrence_gradient", "sequence_previous",
    "vertex_take", "vertex_put", "vertex_spread", "vertex_combine", "vertices_gradient", NULL};

static bool built(const char *name)
{
    return !named(of_graph, name) && !named(of_passes, name);
}

static void header(void)
{
    printf(
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/* Readable builders, generated from the table of operations by `make docs`: each is one call of graphi_op. "
        "Lists of\n"
        " * integers are passed as GRAPHI_LIST(1, 1), or NULL, 0 for the default. Shapes, attributes, defaults:\n"
        " * docs/operations.md. */\n"
        "#ifndef GRAPHI_OPS_H\n#define GRAPHI_OPS_H\n\n#include \"graphi/graph.h\"\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
        "#define GRAPHI_LIST(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / 8)\n\n"
        "static inline graphi_attribute graphi_int(const char *name, int64_t i)\n{\n"
        "    graphi_attribute a = {name, GRAPHI_INT, i, 0, NULL, 0};\n    return a;\n}\n\n"
        "static inline graphi_attribute graphi_float(const char *name, double f)\n{\n"
        "    graphi_attribute a = {name, GRAPHI_FLOAT, 0, f, NULL, 0};\n    return a;\n}\n\n"
        "static inline graphi_attribute graphi_ints(const char *name, const int64_t *ints, int count)\n{\n"
        "    graphi_attribute a = {name, GRAPHI_INTS, 0, 0, ints, count};\n    return a;\n}\n\n");
    for (int i = 0; op_at(i); i++)
        if (built(op_at(i)->name))
            builder(op_at(i));
    printf("#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static const char *const numbers =
    "\n"
    "**Sizes** of inputs, parameters and results are at least 1 along every dimension and at most 2^44 bytes\n"
    "in all. An empty value is INVALID when it is made. Windows of convolutions have at most 64 rows and\n"
    "columns.\n"
    "\n"
    "## Numbers\n"
    "Results have the same bits for every number of threads, policy and driver on one instruction set.\n"
    "Instruction sets differ in rounding.\n"
    "\n"
    "**Errors** are in units in the last place, over all floats (`tests/test_program.c` sweeps every\n"
    "exponent): at most 2 of `exp`, `log`, `rsqrt`, 4 of `tanh`, `sigmoid`, `softplus`, 1 of `pow`. `sqrt`,\n"
    "`div` and the like are rounded correctly. Softmax errs by 2e-6 + 2^-24 (maximum - x) of a probability.\n"
    "The order of a sum depends on shapes, and on whether the argument lies dense in memory. Winograd\n"
    "convolutions of a full batch err at most four times as much as direct ones, eight times with points in\n"
    "bfloat16 (`--conv-error`).\n"
    "\n"
    "**Special values.** Denormal numbers are kept, except by products of bfloat16 with `--isa bf16`. NaN and\n"
    "infinities go where IEEE 754 sends them, but the sign and payload of a NaN are not promised. `min`,\n"
    "`max` and pools give NaN if any is. Winograd's algorithm is the exception: a tile that reads one spreads\n"
    "it over its results (8 by 8 pixels), and an infinity may become a NaN. `--conv-error 1` takes direct\n"
    "convolutions. Training stops at a loss that is not finite, and `--check-numerics` names the operation.\n";

static const char *const introduction =
    "# Operations\n"
    "\n"
    "Generated from the table of operations by `make docs`. Inputs in order (`a`, `b`, … of the builders in\n"
    "`graphi/ops.h`); outputs, where \"as told\", by attribute `outputs`. Values are float32 unless said; `[]` is a\n"
    "scalar; a size that several inputs name is the same. *Broadcast*: inputs of any shapes that meet by numpy's\n"
    "rule, to the shape in which they meet. Marked `†`: only passes and builders of dynamic networks make it;\n"
    "marked `*`: `graphi/graph.h`, `graphi/recurrent.h` or `graphi/dynamic.h` has the function.\n"
    "\n"
    "- **Windows**: OH = (H + top + bottom - dilation (KH - 1) - 1) / stride + 1, and OW alike, rounded down.\n"
    "  `ceil_mode` rounds up, but for a window that would begin behind the image. KH, KW of a pool are its `kernel`.\n"
    "- **Products**: of b [K,N] take all dimensions of a before the last as rows. With `trans_a` and two\n"
    "  dimensions each K may be bounded in both. In all other cases dimensions before the last two broadcast.\n"
    "  The first may be bounded.\n"
    "- **Further inputs and outputs** (\"or more\", \"as told\") of products and convolutions are what passes append:\n"
    "  builders take two and give one.\n"
    "\n";

static const char *const of_attributes =
    "\n"
    "## Attributes\n"
    "In the order of a builder's arguments. A list is a pointer and a count, `GRAPHI_LIST(1, 1)`; its default, an\n"
    "empty one, is `NULL, 0`. Marked `†`: builders leave it out, only passes and gradients set it.\n"
    "\n";

static void print_cell(const char *text)
{
    for (const char *c = text ? text : ""; *c; c++)
        printf(*c == '|' ? "\\|" : "%c", *c); /* a bar would end the cell */
}

static void print_shapes(const struct op_kind *kind)
{
    if (kind->shapes || !(kind->flags & OP_ELEMENTWISE))
        print_cell(kind->shapes);
    else
        printf(kind->max_inputs == 1 ? "[...] to the same" : "broadcast");
}

static void print_kind(const struct op_kind *kind)
{
    const bool passes = named(of_passes, kind->name), graph = named(of_graph, kind->name);
    printf("| `%s`%s | ", kind->name, passes ? " †" : graph ? " *" : "");
    print_cell(kind->summary);
    printf(" | ");
    print_shapes(kind);
    printf(" | %d", kind->min_inputs);
    if (kind->max_inputs < 0)
        printf(" or more");
    else if (kind->max_inputs > kind->min_inputs)
        printf("–%d", kind->max_inputs);
    if (kind->outputs < 0)
        printf(" | as told | ");
    else
        printf(" | %d | ", kind->outputs);
    printf("%s |\n", kind->gradient ? "yes" : "–");
}

static void print_attribute(const struct op_kind *kind, const struct op_attribute *a)
{
    static const char *const types[] = {"integer", "number", "list"};
    printf("| `%s` | `%s`%s | %s | ", kind->name, a->name, a->internal ? " †" : "", types[a->type]);
    if (a->required)
        printf("required");
    else if (a->type == GRAPHI_INTS)
        printf("empty");
    else if (a->type == GRAPHI_FLOAT)
        printf("%g", a->f);
    else if (a->i == INT64_MAX)
        printf("2^63 - 1");
    else
        printf("%lld", (long long)a->i);
    printf(" | ");
    print_cell(a->meaning);
    printf(" |\n");
}

static void docs(void)
{
    printf("%s| operation | what it computes | shapes, inputs to outputs | inputs | outputs | gradient |\n"
           "|---|---|---|---|---|---|\n",
           introduction);
    for (int i = 0; op_at(i); i++)
        print_kind(op_at(i));
    printf("%s| operation | attribute | type | default | meaning |\n|---|---|---|---|---|\n", of_attributes);
    for (int i = 0; op_at(i); i++)
        for (const struct op_attribute *a = op_at(i)->attributes; a && a->name; a++)
            print_attribute(op_at(i), a);
    printf("%s", numbers);
}

static void print_quoted(const char *text)
{
    putchar('"');
    for (const char *c = text ? text : ""; *c; c++)
        printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    putchar('"');
}

static void field(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    print_quoted(text);
}

static void json_attribute(const struct op_attribute *a, bool first)
{
    static const char *const types[] = {"int", "float", "ints"};
    printf("%s\n   {\"name\": ", first ? "" : ",");
    print_quoted(a->name);
    field("type", types[a->type]);
    field("meaning", a->meaning);
    printf(", \"required\": %s, \"default\": ", a->required ? "true" : "false");
    if (a->type == GRAPHI_INTS)
        printf("[]}");
    else if (a->type == GRAPHI_FLOAT)
        printf("%.17g}", a->f);
    else
        printf("%lld}", (long long)a->i);
}

/* What builders take and give: passes append to some operations, so of these it is less than the table has. */
static void json_kind(const struct op_kind *kind)
{
    const bool list = kind->max_inputs != kind->min_inputs && !extended_by_passes(kind);
    printf(" {\"name\": ");
    print_quoted(kind->name);
    field("summary", kind->summary);
    const char *rule = kind->max_inputs == 1 ? "[...] to the same" : "inputs broadcast by numpy's rule";
    field("shapes", kind->shapes ? kind->shapes : rule);
    printf(", \"inputs\": %d, \"list\": %s, \"outputs\": %d, \"gradient\": %s, \"attributes\": [", kind->min_inputs,
           list ? "true" : "false", kind->outputs < 0 && extended_by_passes(kind) ? 1 : kind->outputs,
           kind->gradient ? "true" : "false");
    bool first = true;
    for (const struct op_attribute *a = kind->attributes; a && a->name; a++)
        if (!a->internal)
            json_attribute(a, first), first = false;
    printf("]}");
}

static void json(void)
{
    bool first = true;
    printf("[\n");
    for (int i = 0; op_at(i); i++)
        if (built(op_at(i)->name)) {
            printf(first ? "" : ",\n");
            json_kind(op_at(i));
            first = false;
        }
    printf("\n]\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "header") == 0)
        header();
    else if (argc == 2 && strcmp(argv[1], "docs") == 0)
        docs();
    else if (argc == 2 && strcmp(argv[1], "json") == 0)
        json();
    else
        return fprintf(stderr, "usage: generate_ops header|docs|json\n"), 2;
    return 0;
}
