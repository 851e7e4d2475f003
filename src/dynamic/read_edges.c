/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as lists of edges and vertices, a line each, as gSpan's files have them. Any graph without cycles; a vertex
 * that is only named by edges has no word and no label. Usual size: tens of vertices. */
#include "dynamic/format.h"

#include "base/status.h"

enum { WORDS_MOST = 6, FUNCTIONS_MOST = 250 };

struct line {
    struct piece word[WORDS_MOST];
    int count;
};

static bool peek(const struct cursor *c, struct line *line)
{
    struct cursor ahead = *c;
    struct piece text = cursor_line(&ahead);
    *line = (struct line){0};
    while (line->count < WORDS_MOST && piece_next(&text, 0, &line->word[line->count]))
        line->count++;
    return line->count > 0;
}

static bool begins_sample(const struct line *line)
{
    return line->count && piece_is(line->word[0], "t");
}

/* gSpan's files end so. */
static bool is_last(const struct line *line)
{
    return begins_sample(line) && line->count == 3 && piece_is(line->word[2], "-1");
}

static bool is_comment(const struct line *line)
{
    return line->count && *line->word[0].text == '#';
}

static graphi_status read_vertex(struct reading *r, const struct line *line, bool *listed)
{
    const struct piece number = line->count > 1 ? line->word[1] : line->word[0];
    int32_t vertex;
    if (line->count < 2 || line->count > 5 || piece_number(number) != forest_size(r->forest))
        return fail_at(&r->at, number.place, "'v NUMBER LABEL WORD FUNCTION', numbered from 0", "'%.*s' as vertex %d",
                       SHOWN(number), forest_size(r->forest));
    *listed = true;
    TRY(forest_vertex(r->forest, number.place, &vertex));
    if (line->count > 2 && !piece_is(line->word[2], "_"))
        TRY(forest_label(r->forest, &r->at, vertex, line->word[2]));
    if (line->count > 3 && !piece_is(line->word[3], "_"))
        TRY(forest_word(r->forest, vertex, line->word[3]));
    if (line->count > 4) {
        const int64_t function = piece_number(line->word[4]);
        if (function < 0 || function > FUNCTIONS_MOST)
            return fail_at(&r->at, line->word[4].place, "the number of a function, 0 to 250", "'%.*s'",
                           SHOWN(line->word[4]));
        forest_function(r->forest, vertex, (int)function);
    }
    return GRAPHI_OK;
}

static graphi_status read_edge(struct reading *r, const struct line *line)
{
    const int first = piece_is(line->word[0], "e");
    int64_t end[2] = {-1, -1};
    for (int i = 0; i < 2 && first + i < line->count; i++)
        end[i] = piece_number(line->word[first + i]);
    if (end[0] < 0 || end[1] < 0 || line->count > first + 3)
        return fail_at(&r->at, line->word[0].place, "'e CHILD PARENT' or 'v NUMBER LABEL WORD FUNCTION'",
                       "a line that begins '%.*s'", SHOWN(line->word[0]));
    return forest_edge(r->forest, end[0], end[1]);
}

/* Vertices that are named by edges alone: a graph that hangs together has one more than edges at most. */
static graphi_status add_named(struct reading *r, struct place place)
{
    int64_t vertices = 0;
    int32_t vertex;
    for (size_t e = 0; e < r->forest->edges.count; e++) {
        const struct forest_edge edge = r->forest->edges.data[e];
        const int64_t highest = edge.child > edge.parent ? edge.child : edge.parent;
        vertices = highest >= vertices ? highest + 1 : vertices;
    }
    if (vertices > (int64_t)r->forest->edges.count + 1)
        return fail_at(&r->at, place, "a line 'v NUMBER' for each, since not all hang together",
                       "vertices up to %lld in %zu edges", (long long)vertices - 1, r->forest->edges.count);
    for (int64_t v = 0; v < vertices; v++)
        TRY(forest_vertex(r->forest, place, &vertex));
    return GRAPHI_OK;
}

static graphi_status check_ends(struct reading *r, struct place place)
{
    const int32_t vertices = forest_size(r->forest);
    for (size_t e = 0; e < r->forest->edges.count; e++) {
        const struct forest_edge edge = r->forest->edges.data[e];
        if (edge.child >= vertices || edge.parent >= vertices)
            return fail_at(&r->at, place, "edges between the vertices that are listed", "edge %d to %d of %d vertices",
                           edge.child, edge.parent, vertices);
    }
    return GRAPHI_OK;
}

static graphi_status sample(struct reading *r)
{
    const struct place start = cursor_place(&r->at);
    bool listed = false;
    struct line line;
    if (peek(&r->at, &line) && begins_sample(&line))
        cursor_line(&r->at);
    while (r->at.next < r->at.end && peek(&r->at, &line) && !begins_sample(&line)) {
        cursor_line(&r->at);
        if (!is_comment(&line))
            TRY(piece_is(line.word[0], "v") ? read_vertex(r, &line, &listed) : read_edge(r, &line));
    }
    return listed ? check_ends(r, start) : add_named(r, start);
}

static bool more(struct reading *r)
{
    struct line line;
    while (r->at.next < r->at.end && (!peek(&r->at, &line) || is_comment(&line) || is_last(&line)))
        cursor_line(&r->at);
    return r->at.next < r->at.end;
}

static void recover(struct reading *r)
{
    struct line line;
    while (r->at.next < r->at.end && peek(&r->at, &line) && !begins_sample(&line))
        cursor_line(&r->at);
}

const struct tree_format tree_format_edges = {
    .name = "edge lists",
    .format = GRAPHI_TREES_EDGES,
    .ends = {".edges", ".gspan"},
    .more = more,
    .sample = sample,
    .recover = recover,
};
