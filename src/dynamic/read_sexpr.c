/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as s-expressions, as the Stanford Sentiment Treebank and the Penn Treebank have them. A vertex is numbered when
 * its parenthesis closes, so children come before parents. Nesting is a stack of our own. Usual size: 38 vertices. */
#include "dynamic/format.h"

#include "base/status.h"

/* A parenthesis that is open. */
struct node {
    struct piece label, word; /* length 0: none yet */
    struct place place;
    size_t done; /* where its children begin among the vertices that have no parent yet */
};

struct nest {
    ARRAY(struct node) open;
    ARRAY(int32_t) done; /* vertices that wait for their parent */
};

static const char lost_memory[] = "open parentheses";

static bool is_atom(char c)
{
    return c != '(' && c != ')' && !cursor_is_blank(c);
}

static struct piece take_atom(struct cursor *c)
{
    struct piece atom = {c->next, 0, cursor_place(c)};
    while (c->next < c->end && is_atom(*c->next))
        c->next++;
    atom.length = (size_t)(c->next - atom.text);
    return atom;
}

static graphi_status open_node(struct cursor *c, struct nest *n)
{
    const struct node *top = n->open.count ? &n->open.data[n->open.count - 1] : NULL;
    const struct place place = cursor_place(c);
    if (top && place.column == 1)
        return fail_at(c, place, "those before to be closed", "the next tree with %zu parentheses open since line %lld",
                       n->open.count, (long long)n->open.data[0].place.line);
    if (top && top->word.length)
        return fail_at(c, place, "')' after the word of a leaf", "'('");
    const struct node node = {.place = place, .done = n->done.count};
    cursor_step(c);
    return array_push(&n->open, node) ? GRAPHI_OK : fail_memory(lost_memory, n->open.count * 2 * sizeof node);
}

/* The first atom is the label, another one the word of a leaf. */
static graphi_status add_atom(struct cursor *c, struct nest *n)
{
    struct node *top = n->open.count ? &n->open.data[n->open.count - 1] : NULL;
    const struct piece atom = take_atom(c);
    if (!top)
        return fail_at(c, atom.place, "'(' where a tree begins", "'%.*s'", SHOWN(atom));
    if (n->done.count > top->done)
        return fail_at(c, atom.place, "a parenthesis after a child", "'%.*s'", SHOWN(atom));
    if (top->word.length)
        return fail_at(c, atom.place, "')' after the word of a leaf", "'%.*s'", SHOWN(atom));
    *(top->label.length ? &top->word : &top->label) = atom;
    return GRAPHI_OK;
}

static graphi_status close_node(struct reading *r, struct nest *n)
{
    struct forest *f = r->forest;
    const struct place place = cursor_place(&r->at);
    cursor_step(&r->at);
    if (!n->open.count)
        return fail_at(&r->at, place, "'(' where a tree begins", "')'");
    const struct node node = n->open.data[n->open.count - 1];
    int32_t vertex;
    if (!node.word.length && n->done.count == node.done)
        return fail_at(&r->at, place, "a word or a child before it", "')'");
    TRY(forest_vertex(f, node.place, &vertex));
    if (node.word.length)
        TRY(forest_word(f, vertex, node.word));
    if (node.label.length)
        TRY(forest_label(f, &r->at, vertex, node.label));
    for (size_t i = node.done; i < n->done.count; i++)
        TRY(forest_edge(f, n->done.data[i], vertex));
    n->done.count = node.done;
    n->open.count--;
    return array_push(&n->done, vertex) ? GRAPHI_OK : fail_memory(lost_memory, n->done.count * 2 * sizeof vertex);
}

static graphi_status read_tree(struct reading *r, struct nest *n)
{
    struct cursor *c = &r->at;
    do {
        if (c->next == c->end)
            return fail_at(c, cursor_place(c), "')'", "the end of the file with %zu parentheses open since line %lld",
                           n->open.count, (long long)n->open.data[0].place.line);
        if (*c->next == '(')
            TRY(open_node(c, n));
        else if (*c->next == ')')
            TRY(close_node(r, n));
        else if (is_atom(*c->next))
            TRY(add_atom(c, n));
        else
            cursor_step(c);
    } while (n->open.count);
    return GRAPHI_OK;
}

static graphi_status sample(struct reading *r)
{
    struct nest nest = {0};
    graphi_status status = read_tree(r, &nest);
    array_free(&nest.open);
    array_free(&nest.done);
    return status;
}

static bool more(struct reading *r)
{
    while (r->at.next < r->at.end && cursor_is_blank(*r->at.next))
        cursor_step(&r->at);
    return r->at.next < r->at.end;
}

static void recover(struct reading *r)
{
    while (r->at.next < r->at.end && !(*r->at.next == '(' && cursor_place(&r->at).column == 1))
        cursor_step(&r->at);
}

const struct tree_format tree_format_sexpr = {
    .name = "s-expressions",
    .format = GRAPHI_TREES_SEXPR,
    .ends = {".mrg", ".ptb", ".sexpr", ".trees"},
    .tree = true,
    .more = more,
    .sample = sample,
    .recover = recover,
};
