/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as files that are asked about: what they say, without a state to load them into. Any thread. */
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"
#include "train/record_check.h"

struct pair {
    char *key, *value;
};

struct graphi_checkpoint {
    char *path;
    struct record record;
    ARRAY(struct pair) pairs;
    bool broken; /* out of memory */
};

static void add(void *context, const char *key, const char *value)
{
    graphi_checkpoint *c = context;
    const struct pair pair = {mem_string(key), mem_string(value)};
    record_add(&c->record, key, value);
    if (pair.key && pair.value && array_push(&c->pairs, pair))
        return;
    mem_free(pair.key);
    mem_free(pair.value);
    c->broken = true;
}

graphi_status graphi_checkpoint_open(const char *path, graphi_checkpoint **out)
{
    GIVEN(path);
    GIVEN(out);
    graphi_checkpoint *c = mem_zalloc(sizeof *c);
    graphi_status status = GRAPHI_OK;
    if (!c || !(c->path = mem_string(path ? path : ""))) {
        mem_free(c);
        return fail_memory("checkpoint", sizeof *c);
    }
    c->record = record_none();
    status = graphi_state_load(NULL, path, add, c);
    if (status == GRAPHI_OK && c->broken)
        status = fail_memory(path, sizeof(struct pair));
    if (status == GRAPHI_OK)
        *out = c;
    else
        graphi_checkpoint_close(c);
    return status;
}

void graphi_checkpoint_close(graphi_checkpoint *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->pairs.count; i++) {
        mem_free(c->pairs.data[i].key);
        mem_free(c->pairs.data[i].value);
    }
    array_free(&c->pairs);
    mem_free(c->path);
    mem_free(c);
}

const char *graphi_checkpoint_text(const graphi_checkpoint *c, const char *key)
{
    if (!c || !key)
        return NULL;
    for (size_t i = 0; i < c->pairs.count; i++)
        if (strcmp(c->pairs.data[i].key, key) == 0)
            return c->pairs.data[i].value;
    return NULL;
}

void graphi_checkpoint_get_info(const graphi_checkpoint *c, graphi_checkpoint_info *info)
{
    if (info)
        *info = (graphi_checkpoint_info){.words = ""};
    if (!info || !c)
        return;
    const struct record *r = &c->record;
    *info = (graphi_checkpoint_info){.own = r->own,
                                     .step = r->step,
                                     .seed = r->seed,
                                     .network = record_network(r),
                                     .words = r->network.computes,
                                     .level = r->level,
                                     .units = r->units,
                                     .classes = r->classes,
                                     .vocabulary = r->vocabulary,
                                     .limit = r->limit,
                                     .image = record_image(r),
                                     .unroll = record_unroll(r),
                                     .batch = r->batch,
                                     .placed = r->found == RECORD_PLACED,
                                     .at = {r->epoch, r->index},
                                     .hash = r->hash,
                                     .encoding = r->encoding,
                                     .encoded = r->encoded,
                                     .owes = r->owes};
}

graphi_status graphi_checkpoint_complete(const graphi_checkpoint *c, const char *network, graphi_form *out)
{
    GIVEN(c);
    GIVEN(network);
    GIVEN(out);
    graphi_form form = *out;
    TRY(record_complete(c->path, &c->record, network, &form));
    TRY(record_check(c->path, &c->record, &(struct network){network, &form.model}));
    *out = form;
    return GRAPHI_OK;
}

graphi_status graphi_checkpoint_load(const graphi_checkpoint *c, graphi_state *state, const char *network,
                                     const graphi_model_options *model, const graphi_data *data)
{
    GIVEN(c);
    GIVEN(state);
    const struct network asked = {network, model};
    graphi_data_info info;
    TRY(record_check(c->path, &c->record, &asked)); /* before which parameters differ */
    if (data && c->record.encoded) {
        graphi_data_get_info(data, &info);
        if (c->record.encoding != info.encoding)
            return fail(GRAPHI_INVALID, c->path,
                        "found a checkpoint of training data with another %s (%016llx), expected that of --data "
                        "(%016llx): the files it was trained on, beside any test files",
                        info.format == GRAPHI_DATA_TEXT ? "vocabulary" : "normalisation", c->record.encoding,
                        (unsigned long long)info.encoding);
    }
    return graphi_state_load(state, c->path, NULL, NULL);
}
