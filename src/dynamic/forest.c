/* SPDX-License-Identifier: Apache-2.0 */
/* Samples added, judged and dropped. Nothing here recurses: a chain may be a million vertices deep. */
#include "dynamic/forest.h"

#include "base/status.h"

#include <string.h>

static const uint8_t no_function = 255;

int64_t forest_samples(const struct forest *f)
{
    return f->sample_start.count ? (int64_t)f->sample_start.count - 1 : 0;
}

static int64_t first_vertex(const struct forest *f)
{
    return f->sample_start.data[f->sample_start.count - 1];
}

int32_t forest_size(const struct forest *f)
{
    return (int32_t)((int64_t)f->word.count - first_vertex(f));
}

/* Samples are read one after another, so that the last end is where the next one begins. */
graphi_status forest_begin(struct forest *f)
{
    f->edges.count = f->places.count = 0;
    f->kind_before = f->kind;
    if (f->sample_start.count)
        return GRAPHI_OK;
    return array_push(&f->sample_start, 0) && array_push(&f->child_start, 0) ? GRAPHI_OK : fail_memory("samples", 16);
}

graphi_status forest_vertex(struct forest *f, struct place place, int32_t *vertex)
{
    *vertex = forest_size(f);
    return array_push(&f->word, -1) && array_push(&f->label, -1) && array_push(&f->function, no_function) &&
                   array_push(&f->places, place)
               ? GRAPHI_OK
               : fail_memory("vertices", f->word.count * sizeof(int32_t) * 2);
}

static graphi_status number_of(struct vocabulary *v, struct piece text, int32_t *number)
{
    if ((*number = vocabulary_find(v, text.text, text.length)) >= 0)
        return GRAPHI_OK;
    *number = (int32_t)v->count;
    return vocabulary_add(v, text.text, text.length, 0) ? GRAPHI_OK : fail_memory("words", text.length);
}

graphi_status forest_word(struct forest *f, int32_t vertex, struct piece word)
{
    return number_of(&f->words, word, &f->word.data[first_vertex(f) + vertex]);
}

graphi_status forest_next_word(struct forest *f, int32_t vertex, struct piece word)
{
    f->kind = LABELS_WORDS;
    return number_of(&f->words, word, &f->label.data[first_vertex(f) + vertex]);
}

static bool looks_like_number(struct piece p)
{
    const size_t sign = p.length && (*p.text == '-' || *p.text == '+');
    for (size_t i = sign; i < p.length; i++)
        if (p.text[i] < '0' || p.text[i] > '9')
            return false;
    return p.length > sign;
}

graphi_status forest_label(struct forest *f, const struct cursor *cursor, int32_t vertex, struct piece label)
{
    int32_t *at = &f->label.data[first_vertex(f) + vertex];
    if (f->kind == LABELS_OPEN)
        f->kind = looks_like_number(label) ? LABELS_NUMBERS : LABELS_NAMES;
    if (f->kind == LABELS_NAMES)
        return number_of(&f->names, label, at);
    const int64_t number = piece_number(label), most = f->classes ? f->classes : FOREST_LABELS_MOST;
    if (number < 0 && !looks_like_number(label))
        return fail_at(cursor, label.place, "a number, as the first label is", "label '%.*s'", SHOWN(label));
    if (number < 0 || number >= most)
        return fail_at(cursor, label.place, "0 to the number of classes less one", "label %.*s of %lld classes",
                       SHOWN(label), (long long)most);
    *at = (int32_t)number;
    return GRAPHI_OK;
}

void forest_function(struct forest *f, int32_t vertex, int function)
{
    f->function.data[first_vertex(f) + vertex] = (uint8_t)function;
}

graphi_status forest_edge(struct forest *f, int64_t child, int64_t parent)
{
    const struct forest_edge edge = {(int32_t)child, (int32_t)parent};
    return array_push(&f->edges, edge) ? GRAPHI_OK : fail_memory("edges", f->edges.count * sizeof edge * 2);
}

/* --- the sample as a whole --- */

/* Child lists by parent; edges of one parent stay in their order. */
static graphi_status list_children(struct forest *f)
{
    const size_t vertices = (size_t)forest_size(f), before = f->children.count;
    if (!array_reserve(&f->child_start, f->child_start.count + vertices) ||
        !array_reserve(&f->children, before + f->edges.count))
        return fail_memory("child lists", (vertices + f->edges.count) * sizeof(int64_t));
    int64_t *start = f->child_start.data + f->child_start.count; /* start[v]: the end of v's list */
    for (size_t v = 0; v < vertices; v++)
        start[v] = 0;
    for (size_t e = 0; e < f->edges.count; e++)
        start[f->edges.data[e].parent]++;
    int64_t total = (int64_t)before;
    for (size_t v = 0; v < vertices; v++) {
        const int64_t count = start[v];
        start[v] = total; /* the next one of the list */
        total += count;
    }
    for (size_t e = 0; e < f->edges.count; e++)
        f->children.data[start[f->edges.data[e].parent]++] = f->edges.data[e].child;
    f->child_start.count += vertices;
    f->children.count += f->edges.count;
    return GRAPHI_OK;
}

/* Where following parents that were never reached leads: a vertex of a cycle. parents[v] > 0: not reached. */
static int32_t on_cycle(const struct forest *f, const int32_t *parents, int32_t *up)
{
    const int32_t vertices = forest_size(f);
    int32_t at = -1;
    for (size_t e = 0; e < f->edges.count; e++)
        if (parents[f->edges.data[e].parent] > 0)
            up[at = f->edges.data[e].child] = f->edges.data[e].parent;
    for (int32_t i = 0; i < vertices; i++)
        at = up[at];
    return at;
}

static graphi_status fail_vertex(const struct forest *f, const struct cursor *c, int32_t v, const char *expected,
                                 const char *found)
{
    return fail_at(c, f->places.data[v], expected, "%s at vertex %d of %d", found, v + 1, forest_size(f));
}

/* Vertices from the roots on, each after all of its parents; the heights from the last one back. */
static graphi_status walk(struct forest *f, const struct cursor *c, int32_t *parents, int32_t *order, int32_t *height)
{
    const int32_t vertices = forest_size(f);
    const int64_t *start = f->child_start.data + first_vertex(f);
    int32_t done = 0;
    for (int32_t v = 0; v < vertices; v++)
        if (!parents[v])
            order[done++] = v;
    for (int32_t i = 0; i < done; i++)
        for (int64_t e = start[order[i]]; e < start[order[i] + 1]; e++)
            if (!--parents[f->children.data[e]])
                order[done++] = f->children.data[e];
    if (done < vertices)
        return fail_vertex(f, c, on_cycle(f, parents, order), "a graph without cycles", "a cycle");
    for (int32_t i = vertices - 1; i >= 0; i--) {
        const int32_t v = order[i];
        height[v] = 1;
        for (int64_t e = start[v]; e < start[v + 1]; e++)
            if (height[f->children.data[e]] >= height[v])
                height[v] = height[f->children.data[e]] + 1;
    }
    return GRAPHI_OK;
}

/* The root, and in trees that there is no second one and no second parent. */
static graphi_status find_root(struct forest *f, const struct cursor *c, const int32_t *parents, int32_t *root)
{
    *root = -1;
    for (int32_t v = 0; v < forest_size(f); v++) {
        if (f->tree && parents[v] > 1)
            return fail_vertex(f, c, v, "one parent", "a second parent");
        if (!parents[v] && *root >= 0 && f->tree)
            return fail_vertex(f, c, v, "one root", "a second root");
        if (!parents[v] && *root < 0)
            *root = v;
    }
    return GRAPHI_OK;
}

static void raise(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

/* What the sample, which is whole, adds to what is known of all. */
static void settle(struct forest *f, const int32_t *height)
{
    const size_t first = (size_t)first_vertex(f);
    for (size_t v = first; v < f->word.count; v++) {
        if (f->function.data[v] == no_function)
            f->function.data[v] = f->word.data[v] < 0;
        if (f->kind == LABELS_NUMBERS)
            raise(&f->label_end, (int64_t)f->label.data[v] + 1);
        raise(&f->children_most, f->child_start.data[v + 1] - f->child_start.data[v]);
        raise(&f->rounds_most, height[v - first]);
    }
}

graphi_status forest_end(struct forest *f, const struct cursor *cursor, struct place start)
{
    const size_t vertices = (size_t)forest_size(f);
    int32_t root;
    if (!vertices)
        return fail_at(cursor, start, "a sample of one vertex at least", "a sample without vertices");
    if (!array_reserve(&f->scratch, 3 * vertices))
        return fail_memory("a sample", 3 * vertices * sizeof *f->scratch.data);
    int32_t *parents = f->scratch.data;
    memset(parents, 0, vertices * sizeof *parents);
    for (size_t e = 0; e < f->edges.count; e++)
        parents[f->edges.data[e].child]++;
    TRY(list_children(f));
    TRY(find_root(f, cursor, parents, &root));
    TRY(walk(f, cursor, parents, parents + vertices, parents + 2 * vertices));
    settle(f, parents + 2 * vertices);
    return array_push(&f->root, root) && array_push(&f->sample_start, (int64_t)f->word.count)
               ? GRAPHI_OK
               : fail_memory("samples", f->root.count * sizeof(int64_t));
}

bool forest_drop(struct forest *f, const char *reason)
{
    const size_t vertices = (size_t)first_vertex(f);
    f->kind = f->kind_before;
    f->word.count = f->label.count = f->function.count = vertices;
    f->child_start.count = vertices + 1;
    f->children.count = (size_t)f->child_start.data[vertices];
    const int64_t at = f->skipped++;
    return at >= FOREST_KEPT_REASONS || (f->reasons[at] = mem_string(reason));
}

void forest_encode(struct forest *f, const int32_t *words, const int32_t *names)
{
    const int32_t *labels = f->kind == LABELS_WORDS ? words : f->kind == LABELS_NAMES ? names : NULL;
    for (size_t v = 0; v < f->word.count; v++) {
        if (f->word.data[v] >= 0)
            f->word.data[v] = words[f->word.data[v]];
        if (labels && f->label.data[v] >= 0)
            f->label.data[v] = labels[f->label.data[v]];
    }
    vocabulary_free(&f->words);
    vocabulary_free(&f->names);
    array_free(&f->edges);
    array_free(&f->places);
    array_free(&f->scratch);
}

void forest_free(struct forest *f)
{
    vocabulary_free(&f->words);
    vocabulary_free(&f->names);
    array_free(&f->sample_start);
    array_free(&f->root);
    array_free(&f->child_start);
    array_free(&f->children);
    array_free(&f->word);
    array_free(&f->label);
    array_free(&f->function);
    array_free(&f->edges);
    array_free(&f->places);
    array_free(&f->scratch);
    for (int i = 0; i < FOREST_KEPT_REASONS; i++)
        mem_free(f->reasons[i]);
}
