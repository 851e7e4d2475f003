/* SPDX-License-Identifier: Apache-2.0 */
/* The list of formats, and the loop over the samples of a text that all of them share. */
#include "dynamic/format.h"

#include "base/status.h"

#include <string.h>

static const struct tree_format *const formats[] = {&tree_format_sexpr, &tree_format_parents, &tree_format_conllu,
                                                    &tree_format_edges, &tree_format_lines};

const struct tree_format *tree_format_at(int i)
{
    return i >= 0 && (size_t)i < sizeof formats / sizeof *formats ? formats[i] : NULL;
}

const struct tree_format *tree_format_of(graphi_trees_format format)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->format == format)
            return formats[i];
    return NULL;
}

static graphi_status read_one(const struct tree_format *format, struct reading *r)
{
    const struct place start = cursor_place(&r->at);
    TRY(forest_begin(r->forest));
    TRY(format->sample(r));
    return forest_end(r->forest, &r->at, start);
}

/* A file beside that goes on belongs to another one. */
static graphi_status check_beside(const struct reading *r)
{
    for (int i = 0; i < FORMAT_BESIDE; i++)
        if (r->beside[i].name && r->beside[i].next < r->beside[i].end)
            return fail_at(&r->beside[i], cursor_place(&r->beside[i]), "its end, as that of the file of parents",
                           "a further line");
    return GRAPHI_OK;
}

graphi_status tree_format_read(const struct tree_format *format, struct reading *r, bool skip)
{
    r->forest->tree = format->tree;
    while (format->more(r)) {
        graphi_status status = read_one(format, r);
        if (status == GRAPHI_OK)
            continue;
        if (status != GRAPHI_INVALID || !skip)
            return status;
        if (!forest_drop(r->forest, graphi_message()))
            return fail_memory("a message", strlen(graphi_message()));
        format->recover(r);
    }
    return check_beside(r);
}
