/* SPDX-License-Identifier: Apache-2.0 */
/* The table of passes, their order and their switches. */
#include "passes/passes.h"

#include "graph/op.h"
#include "graphi/plan.h"

#include <string.h>

/* X(name, when, again, after, summary): a row of struct pass. `after` names the passes whose work this one builds on
 * or would undo; what these need themselves is implied. */
#define PASS_LIST(X)                                                                                                   \
    X(inline, ALWAYS, 0, "", "calls of sub-graphs become their bodies")                                                \
    X(images, ALWAYS, 0, "inline", "convolutions read images of bfloat16 as float32 numbers")                          \
    X(sequences, ALWAYS, 0, "inline", "recurrences are cut, unrolled or left as they are, as asked for")               \
    X(order, ALWAYS, 1, "inline sequences", "updates of parameters follow every reader of the old content")            \
    X(recurrences, ALWAYS, 0, "sequences", "recurrent weights are packed for the members of teams")                    \
    X(dead, USUAL, 1, "inline", "operations that nothing depends on are removed")                                      \
    X(norm, USUAL, 0, "inline", "batch normalization by given statistics is element-wise work, which fuses")           \
    X(fold, USUAL, 0, "norm", "operations on constants are computed once")                                             \
    X(identities, USUAL, 0, "order fold", "x*1, x+0, reshape of reshape, transpose of transpose")                      \
    X(cse, USUAL, 0, "identities", "equal operations on equal values are computed once")                               \
    X(derive, USUAL, 0, "order norm identities cse",                                                                   \
      "what follows from parameters that are not updated is computed once, batch normalization into weights")          \
    X(pool, USUAL, 0, "identities",                                                                                    \
      "relu and bias gradients work on the results of a max-pool rather than on its image")                            \
    X(sums, USUAL, 0, "order dead cse", "a sum of matrix products is one product of several pairs")                    \
    X(reduce, USUAL, 0, "order dead cse pool",                                                                         \
      "a sum over time of gradients of a weight, or of a bias, is one batch-reduce product")                           \
    X(tables, USUAL, 0, "order dead", "a sum over time of gradients of a table of embeddings is one, of all ids")      \
    X(merge, REQUEST, 0, "sums", "products and convolutions that share an input are one (may alter rounding)")         \
    X(ready, USUAL, 0, "sums reduce merge", "sums of products are in the order in which their operands are there")     \
    X(batch, USUAL, 0, "ready", "products of few rows by one weight that do not wait for each other are one")          \
    X(stages, USUAL, 0, "ready batch", "many cores begin sums of products before their last operands are there")       \
    X(epilogue, USUAL, 0, "derive pool stages",                                                                        \
      "bias and activation run on the tiles of the product or convolution before them")                                \
    X(bands, USUAL, 0, "epilogue",                                                                                     \
      "a pool works on some rows of its convolution at a time, whose image is never whole")                            \
    X(recompute, USUAL, 0, "order epilogue",                                                                           \
      "what follows from small values or one kept array is made again in the backward pass")                           \
    X(fusion, USUAL, 0, "derive bands recompute", "connected element-wise operations are one program")                 \
    X(pack, USUAL, 0, "derive stages bands", "weights are packed once for all products that read them")                \
    X(round, USUAL, 0, "images pack", "images that several convolutions round to bfloat16 are rounded once")           \
    X(reuse, USUAL, 0, "fusion round",                                                                                 \
      "operations on one weight follow each other where all weights are more than the caches hold")                    \
    X(bodies, ALWAYS, 0, "inline reuse", "vertex functions keep what is read, and get the passes of any graph")

const struct pass passes[] = {
#define X(name, when, again, after, summary) {#name, summary, pass_##name, PASS_##when, again, after},
    PASS_LIST(X)
#undef X
    {0},
};

/* The name of a pass that can be switched, by `when` of the table. */
#define SWITCHED_ALWAYS(name) ""
#define SWITCHED_USUAL(name) ", " #name
#define SWITCHED_REQUEST(name) ", " #name

#define X(name, when, again, after, summary) SWITCHED_##when(name)
static const char switched[] = "all, none" PASS_LIST(X);
#undef X

bool graphi_pass_at(int index, graphi_pass *pass)
{
    if (!pass)
        return false;
    static const int count = sizeof passes / sizeof *passes - 1;
    if (index < 0 || index >= count)
        return false;
    const struct pass *p = &passes[index];
    *pass = (graphi_pass){.name = p->name, .summary = p->summary,
                          .always = p->when == PASS_ALWAYS,
                          .on_request = p->when == PASS_REQUEST};
    return true;
}

/* Calls of the next word of a comma-separated list; 0 at its end. */
static size_t next_word(const char **list, const char **word)
{
    *list += strspn(*list, ", ");
    *word = *list;
    size_t size = strcspn(*list, ", ");
    *list += size;
    return size;
}

/* Does a word of the list mean this pass? "all" means every pass that is not asked for, "none" none. */
static bool means(const struct pass *pass, const char *word, size_t size)
{
    bool all = size == 3 && strncmp(word, "all", 3) == 0;
    return (all && pass->when != PASS_REQUEST) || (strlen(pass->name) == size && strncmp(word, pass->name, size) == 0);
}

bool pass_enabled(const struct pass *pass, const char *disable)
{
    bool enabled = pass->when != PASS_REQUEST;
    const char *list = disable ? disable : "", *word;
    for (size_t size; (size = next_word(&list, &word));) {
        bool plus = *word == '+';
        if (means(pass, word + plus, size - plus))
            enabled = plus;
    }
    return enabled || pass->when == PASS_ALWAYS;
}

uint64_t passes_mask(const char *disable)
{
    uint64_t mask = 0;
    _Static_assert(sizeof passes / sizeof *passes <= 64, "a bit for each pass");
    for (const struct pass *pass = passes; pass->name; pass++)
        mask = mask << 1 | pass_enabled(pass, disable);
    return mask;
}

graphi_status graphi_pass_check(const char *disable)
{
    const char *list = disable ? disable : "", *word;
    for (size_t size; (size = next_word(&list, &word));) {
        bool plus = *word == '+', known = size == 4 && strncmp(word, "none", 4) == 0;
        for (const struct pass *pass = passes; pass->name; pass++)
            known |= pass->when != PASS_ALWAYS && means(pass, word + plus, size - plus);
        if (!known)
            return fail(GRAPHI_USAGE, "passes", "found '%.*s', expected %s", (int)size, word, switched);
    }
    return GRAPHI_OK;
}

/* The row of the pass that the word names, of those before `end`; NULL: none has this name. */
static const struct pass *find_before(const struct pass *table, const struct pass *end, const char *word, size_t size)
{
    for (const struct pass *pass = table; pass < end; pass++)
        if (strlen(pass->name) == size && strncmp(pass->name, word, size) == 0)
            return pass;
    return NULL;
}

graphi_status passes_check_order(const struct pass *table)
{
    for (const struct pass *pass = table; pass->name; pass++) {
        const char *list = pass->after, *word;
        for (size_t size; (size = next_word(&list, &word));)
            if (!find_before(table, pass, word, size))
                return fail(GRAPHI_INVALID, "passes", "found %s in the table, expected %.*s before it", pass->name,
                            (int)size, word);
    }
    return GRAPHI_OK;
}

graphi_status passes_run(graphi_graph *graph, const struct pass_options *options)
{
    const struct pass *pass = passes;
    struct pass_options with = *options;
    with.all = passes_run;
    for (const struct pass *p = passes; p->name; p++)
        with.packs |= p->run == pass_pack && pass_enabled(p, options->disable);
    options = &with;
    TRY(graphi_pass_check(options->disable));
    for (; pass->name; pass++)
        if (pass_enabled(pass, options->disable))
            TRY(pass->run(graph, options));
    while (pass-- > passes)
        if (pass->again && pass_enabled(pass, options->disable))
            TRY(pass->run(graph, options));
    return GRAPHI_OK;
}

graphi_status pass_inline(graphi_graph *graph, const struct pass_options *options) { return graph_inline(graph); }
