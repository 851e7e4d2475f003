/* SPDX-License-Identifier: Apache-2.0 */
/* Dependency trees in CoNLL-U (universaldependencies.org/format.html): ten columns between tabs, a word a line, a blank
 * line after each sentence. Usual size: 16 words. */
#include "dynamic/format.h"

#include "base/status.h"

#include <string.h>

enum { ID, FORM, HEAD = 6, RELATION, COLUMNS = 10 };

static bool at_blank_line(const struct cursor *c)
{
    struct cursor ahead = *c;
    return piece_is_blank(cursor_line(&ahead));
}

/* Splits a line at its tabs. */
static graphi_status split(struct cursor *c, struct piece line, struct piece column[COLUMNS])
{
    const struct place place = line.place;
    bool within = true;
    int count = 0;
    for (; within && count < COLUMNS; count++) {
        const char *tab = memchr(line.text, '\t', line.length);
        const size_t length = tab ? (size_t)(tab - line.text) : line.length;
        column[count] = (struct piece){line.text, length, line.place};
        within = tab != NULL;
        line.text += length + within;
        line.place.column += (int64_t)length + within;
        line.length -= length + within;
    }
    return count == COLUMNS && !within
               ? GRAPHI_OK
               : fail_at(c, place, "10 columns between tabs", "%s", within ? "more than 10 columns" : "fewer columns");
}

/* A range of words (3-4) or an empty node (5.1). */
static bool is_passed_over(struct piece id)
{
    struct piece first = id;
    for (first.length = 0; first.length < id.length && id.text[first.length] >= '0' && id.text[first.length] <= '9';)
        first.length++;
    if (!first.length || first.length == id.length || !strchr("-.", id.text[first.length]))
        return false;
    const struct piece rest = {id.text + first.length + 1, id.length - first.length - 1, id.place};
    return piece_number(first) >= 0 && piece_number(rest) > 0;
}

static graphi_status read_word(struct reading *r, struct piece line)
{
    struct piece column[COLUMNS];
    int32_t vertex;
    TRY(split(&r->at, line, column));
    if (is_passed_over(column[ID]))
        return GRAPHI_OK;
    if (piece_number(column[ID]) != forest_size(r->forest) + 1)
        return fail_at(&r->at, column[ID].place, "words numbered from 1", "ID '%.*s' of word %d", SHOWN(column[ID]),
                       forest_size(r->forest) + 1);
    if (!column[FORM].length)
        return fail_at(&r->at, column[FORM].place, "a form", "none");
    const int64_t head = piece_number(column[HEAD]);
    if (head < 0)
        return fail_at(&r->at, column[HEAD].place, "the number of a word, 0 of a root", "head '%.*s'",
                       SHOWN(column[HEAD]));
    TRY(forest_vertex(r->forest, column[HEAD].place, &vertex));
    TRY(forest_word(r->forest, vertex, column[FORM]));
    if (column[RELATION].length && !piece_is(column[RELATION], "_"))
        TRY(forest_label(r->forest, &r->at, vertex, column[RELATION]));
    return head ? forest_edge(r->forest, vertex, head - 1) : GRAPHI_OK;
}

static graphi_status sample(struct reading *r)
{
    if (r->forest->kind == LABELS_OPEN)
        r->forest->kind = LABELS_NAMES;
    while (r->at.next < r->at.end && !at_blank_line(&r->at)) {
        const struct piece line = cursor_line(&r->at);
        if (*line.text != '#')
            TRY(read_word(r, line));
    }
    for (size_t e = 0; e < r->forest->edges.count; e++) {
        const struct forest_edge edge = r->forest->edges.data[e];
        if (edge.parent >= forest_size(r->forest))
            return fail_at(&r->at, r->forest->places.data[edge.child], "0 to the number of words",
                           "head %d of %d words", edge.parent + 1, forest_size(r->forest));
    }
    return GRAPHI_OK;
}

static bool more(struct reading *r)
{
    while (r->at.next < r->at.end && at_blank_line(&r->at))
        cursor_line(&r->at);
    return r->at.next < r->at.end;
}

static void recover(struct reading *r)
{
    while (r->at.next < r->at.end && !at_blank_line(&r->at))
        cursor_line(&r->at);
}

const struct tree_format tree_format_conllu = {
    .name = "CoNLL-U",
    .format = GRAPHI_TREES_CONLLU,
    .ends = {".conllu", ".conll"},
    .tree = true,
    .more = more,
    .sample = sample,
    .recover = recover,
};
