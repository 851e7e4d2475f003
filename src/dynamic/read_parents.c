/* SPDX-License-Identifier: Apache-2.0 */
/* Parent pointers: a line a sample in each of two or three files, read side by side. Vertices are numbered as their
 * numbers stand there. Usual size: 40 vertices. */
#include "dynamic/format.h"

#include "base/status.h"

enum { TOKENS, LABELS };

/* The lines of one sample. */
struct lines {
    struct piece parents, tokens, labels;
    char separator; /* 0: blanks */
};

/* Of every file one line, also where the sample fails, so that they stay side by side. */
static graphi_status take_lines(struct reading *r, struct lines *l)
{
    const struct cursor *lacking = NULL;
    *l = (struct lines){.parents = cursor_line(&r->at)};
    for (size_t i = 0; i < l->parents.length; i++)
        if (l->parents.text[i] == '|')
            l->separator = '|';
    for (int i = 0; i < FORMAT_BESIDE; i++) {
        struct cursor *beside = &r->beside[i];
        if (!beside->name)
            continue;
        if (beside->next == beside->end)
            lacking = beside;
        else
            *(i == TOKENS ? &l->tokens : &l->labels) = cursor_line(beside);
    }
    if (lacking)
        return fail_at(lacking, cursor_place(lacking), "a line for each one of the file of parents",
                       "its end at line %lld of that", (long long)l->parents.place.line);
    return GRAPHI_OK;
}

static graphi_status read_parents(struct reading *r, struct lines *l)
{
    struct piece part;
    int32_t vertex;
    while (piece_next(&l->parents, l->separator, &part)) {
        const int64_t parent = piece_number(part);
        if (parent < 0)
            return fail_at(&r->at, part.place, "the number of a parent, 0 of a root", "'%.*s'", SHOWN(part));
        TRY(forest_vertex(r->forest, part.place, &vertex));
        if (parent)
            TRY(forest_edge(r->forest, vertex, parent - 1));
    }
    for (size_t e = 0; e < r->forest->edges.count; e++) {
        const struct forest_edge edge = r->forest->edges.data[e];
        if (edge.parent >= forest_size(r->forest))
            return fail_at(&r->at, r->forest->places.data[edge.child], "0 to the number of vertices",
                           "parent %d of %d vertices", edge.parent + 1, forest_size(r->forest));
    }
    return GRAPHI_OK;
}

static graphi_status read_tokens(struct reading *r, struct lines *l)
{
    struct piece part;
    int32_t vertex = 0;
    for (; piece_next(&l->tokens, l->separator, &part); vertex++) {
        if (vertex >= forest_size(r->forest))
            return fail_at(&r->beside[TOKENS], part.place, "at most one a vertex", "word %d of %d vertices", vertex + 1,
                           forest_size(r->forest));
        if (!part.length)
            return fail_at(&r->beside[TOKENS], part.place, "a word", "'|'");
        TRY(forest_word(r->forest, vertex, part));
    }
    return vertex ? GRAPHI_OK : fail_at(&r->beside[TOKENS], l->tokens.place, "a word at least", "a line without words");
}

static graphi_status read_labels(struct reading *r, struct lines *l)
{
    const int32_t vertices = forest_size(r->forest);
    struct piece part;
    int32_t vertex = 0;
    for (; vertex < vertices && piece_next(&l->labels, l->separator, &part); vertex++)
        if (part.length && !piece_is(part, "#") && !piece_is(part, "_"))
            TRY(forest_label(r->forest, &r->beside[LABELS], vertex, part));
    if (vertex == vertices && piece_is_blank(l->labels))
        return GRAPHI_OK;
    return fail_at(&r->beside[LABELS], l->labels.place, "a label a vertex, # for none", "%s labels than %d vertices",
                   vertex == vertices ? "more" : "fewer", vertices);
}

static graphi_status sample(struct reading *r)
{
    struct lines lines;
    TRY(take_lines(r, &lines));
    TRY(read_parents(r, &lines));
    if (r->beside[TOKENS].name)
        TRY(read_tokens(r, &lines));
    return r->beside[LABELS].name ? read_labels(r, &lines) : GRAPHI_OK;
}

static bool more(struct reading *r)
{
    return r->at.next < r->at.end;
}

static void recover(struct reading *r) {}

const struct tree_format tree_format_parents = {
    .name = "parent pointers",
    .format = GRAPHI_TREES_PARENTS,
    .ends = {".parents"},
    .beside = {[TOKENS] = {.ends = {".tokens", ".toks"}, .needed = true}, [LABELS] = {.ends = {".labels"}}},
    .tree = true,
    .more = more,
    .sample = sample,
    .recover = recover,
};
