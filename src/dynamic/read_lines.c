/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text as chains: every word is a vertex whose child is the word before it and whose label is the word after
 * it. So a language model over lines of any length, or over so many words at a time, is a network over input graphs.
 * Usual size: 21 words. */
#include "dynamic/format.h"

#include "base/status.h"

static const char end_word[] = "<eos>";

static bool is_end(struct piece word)
{
    return word.text == end_word;
}

/* The next word of the text; the end of a line is <eos>. False: the text is over. */
static bool take(struct cursor *c, struct piece *word)
{
    while (c->next < c->end && *c->next != '\n' && cursor_is_blank(*c->next))
        c->next++;
    *word = (struct piece){end_word, sizeof end_word - 1, cursor_place(c)};
    if (c->next == c->end)
        return false;
    if (*c->next == '\n') {
        cursor_step(c);
        return true;
    }
    word->text = c->next;
    while (c->next < c->end && !cursor_is_blank(*c->next))
        c->next++;
    word->length = (size_t)(c->next - word->text);
    return true;
}

static graphi_status add(struct reading *r, struct piece word, struct piece next)
{
    int32_t vertex;
    TRY(forest_vertex(r->forest, word.place, &vertex));
    TRY(forest_word(r->forest, vertex, word));
    TRY(forest_next_word(r->forest, vertex, next));
    return vertex ? forest_edge(r->forest, vertex - 1, vertex) : GRAPHI_OK;
}

/* A last line without its end has <eos> all the same. */
static graphi_status sample(struct reading *r)
{
    struct piece word = {end_word, sizeof end_word - 1, cursor_place(&r->at)}, next;
    if (r->steps && r->carried.length)
        word = r->carried;
    for (int64_t i = 0; !r->steps || i < r->steps; i++) {
        take(&r->at, &next);
        TRY(add(r, word, next));
        word = next;
        if (!r->steps && is_end(next))
            break;
    }
    r->carried = word;
    return GRAPHI_OK;
}

/* Whether so many words are still there: a rest is left out. */
static bool enough(struct cursor ahead, int64_t words)
{
    struct piece word;
    while (words && take(&ahead, &word))
        words--;
    return !words;
}

static bool more(struct reading *r)
{
    struct cursor *c = &r->at;
    while (!r->steps && c->next < c->end && cursor_is_blank(*c->next))
        cursor_step(c);
    return r->steps ? enough(*c, r->steps) : c->next < c->end;
}

static void recover(struct reading *r) {}

const struct tree_format tree_format_lines = {
    .name = "lines of text",
    .format = GRAPHI_TREES_LINES,
    .ends = {".txt", ".tokens", ".text", ".raw"},
    .tree = true,
    .more = more,
    .sample = sample,
    .recover = recover,
};
