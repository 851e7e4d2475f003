/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of fusion as programs: what they read and store, whether that keeps to the limits, and the nodes that run
 * them. Sums over rows are the last outputs. Usual size: 5 to 70 instructions. */
#include "passes/fusion_write.h"

#include "ops/elementwise.h"

#include <stdlib.h>
#include <string.h>

/* What a group would be as a program. */
struct measure {
    int inputs, immediates, instructions, outputs, sums;
    int32_t input[PROGRAM_MAX_INPUTS];
    int32_t immediate[PROGRAM_MAX_INSTRUCTIONS];
    int32_t output[PROGRAM_MAX_OUTPUTS]; /* the sums behind what is stored */
};

/* The inputs that a node reads once it is in a program: an assign reads its value, not the parameter. */
static int first_input(const struct node *node) { return node_is(node, IS_ASSIGN) ? 1 : 0; }

static int instructions(const struct node *node)
{
    return node_has(node, OP_ELEMENTWISE) ? elementwise_instructions(node) : 0; /* assignments and sums: none */
}

static bool measure_inputs(const struct fuser *f, const struct node *node, const int32_t *member, int count,
                           struct measure *m)
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

static bool measure_outputs(const struct fuser *f, const struct node *node, const int32_t *member, int count,
                            struct measure *m)
{
    for (int k = 0; k < node->outputs; k++) {
        int32_t v = node->output + k;
        bool stored = f->uses.output[v] || graph_value(f->graph, v)->assigns >= 0;
        for (int32_t u = f->uses.begin[v]; !stored && u < f->uses.begin[v + 1]; u++)
            stored = !listed(member, count, f->uses.list[u]);
        if (!stored)
            continue;
        if (m->outputs == PROGRAM_MAX_OUTPUTS)
            return false;
        int at = is_row_sum(f->graph, node) ? m->outputs : m->outputs - m->sums;
        memmove(m->output + at + 1, m->output + at, sizeof *m->output * (size_t)(m->outputs - at));
        m->output[at] = v;
        m->outputs++;
        m->sums += is_row_sum(f->graph, node);
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

static bool fit(struct fuser *f, int members)
{
    struct measure m;
    return measure(f, f->member, members, &m);
}

bool fusion_fits(struct fuser *f, const int32_t *groups, int count, int32_t more)
{
    int members = more >= 0;
    for (int i = 0; i < count; i++)
        members += f->groups[groups[i]].count;
    if (members > 2 * PROGRAM_MAX_INSTRUCTIONS)
        return false;
    members = 0;
    for (int i = 0; i < count; i++)
        members += gather(f, groups[i], f->member + members);
    if (more >= 0)
        f->member[members++] = more;
    return fit(f, members);
}

bool fusion_fits_without(struct fuser *f, int32_t group, int32_t less)
{
    int members = gather(f, group, f->member), kept = 0;
    for (int i = 0; i < members; i++)
        if (f->member[i] != less)
            f->member[kept++] = f->member[i];
    return !kept || fit(f, kept);
}

/* --- writing programs --- */

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
    *program = (struct program){.inputs = m->inputs, .outputs = m->outputs, .sums = m->sums};
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
        if (node_is(node, IS_ASSIGN) || is_row_sum(f->graph, node))
            result[0] = argument[first_input(node)];
        else
            TRY(elementwise_append(node, argument, program, result));
        for (int k = 0; k < node->outputs; k++)
            set_number(&n, node->output + k, result[k]);
    }
    for (int i = 0; i < m->outputs; i++)
        program->output[i] = get_number(&n, m->output[i]);
    return GRAPHI_OK;
}

static graphi_status emit(struct fuser *f, const int32_t *member, int count, const struct measure *m,
                          struct value_map *map)
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
    for (int k = 0; k < m->outputs; k++) {
        struct value *old = &f->graph->values.data[m->output[k]];
        f->graph->values.data[out + k].assigns = old->assigns;
        old->assigns = -1;
        TRY(map_set(map, f->graph, m->output[k], out + k));
    }
    for (int i = 0; i < count; i++)
        TRY(graph_supersede(f->graph, member[i], id));
    return GRAPHI_OK;
}

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Groups of one node stay as they are: their own kernel is the same program. */
graphi_status fusion_write(struct fuser *f, struct value_map *map)
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
