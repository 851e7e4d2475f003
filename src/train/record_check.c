/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint compared with what is asked for, and what is not asked for taken from it. */
#include "train/record_check.h"

#include <string.h>

#include "base/status.h"

static graphi_status check_words(const char *path, const char *found, const char *expected)
{
    if (!*found || strcmp(found, expected) == 0)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, path, "found a checkpoint of '%s', expected one of '%s'", found, expected);
}

static graphi_status check_number(const char *path, const char *option, long long found, int64_t expected)
{
    if (!found || found == expected)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, path, "found a checkpoint of %s %lld, expected %lld", option, found,
                (long long)expected);
}

static graphi_status words_of(const struct network *network, struct network_words *words, graphi_model_info *info)
{
    *info = (graphi_model_info){0};
    if (network->model)
        TRY(graphi_model_get_info(network->name, network->model, info));
    network_words_of(network->name, network->model, info, words);
    return GRAPHI_OK;
}

graphi_status record_check(const char *path, const struct record *record, const struct network *network)
{
    struct network_words words;
    graphi_model_info info;
    if (!network->name)
        return GRAPHI_OK;
    TRY(words_of(network, &words, &info));
    TRY(check_words(path, record->network.computes, words.computes));
    return network->model ? check_number(path, "--units", record->units, info.units) : GRAPHI_OK;
}

graphi_status record_check_form(const char *path, const struct record *record, const struct network *network)
{
    struct network_words words;
    graphi_model_info info;
    if (!network->name)
        return GRAPHI_OK;
    TRY(words_of(network, &words, &info));
    TRY(check_words(path, record->network.trained, words.trained));
    return check_words(path, record->network.text, words.text);
}

graphi_status record_check_place(const char *path, const struct record *record, uint64_t hash, int64_t batch,
                                 uint64_t seed)
{
    if (record->found != RECORD_PLACED)
        return fail(GRAPHI_INVALID, path, "found no position in the data, expected a checkpoint that training wrote");
    if (record->hash != hash)
        return fail(GRAPHI_INVALID, path, "found a checkpoint of other data (%016llx), expected %016llx", record->hash,
                    (unsigned long long)hash);
    if (record->batch != batch)
        return fail(GRAPHI_INVALID, path, "found a checkpoint of --batch %lld, expected %lld", record->batch,
                    (long long)batch);
    if (record->seed != seed)
        return fail(GRAPHI_INVALID, path, "found a checkpoint of --seed %llu, expected %llu", record->seed,
                    (unsigned long long)seed);
    return GRAPHI_OK;
}

/* --- completing --- */

static void take(int64_t *asked, int64_t found)
{
    if (*asked == 0 && found > 0)
        *asked = found;
}

/* Whatever else is asked for: it is of another network. */
static bool is_of(const struct record *record, const char *name)
{
    const char *computes = record->network.computes;
    const size_t length = strcspn(computes, " ");
    return !length || (strlen(name) == length && strncmp(computes, name, length) == 0);
}

/* Of a text without a limit all words are told apart. */
static graphi_status check_limit(const char *path, const struct record *record, int64_t expected)
{
    if (record->limit || !record->level || !expected)
        return check_number(path, "--vocabulary", record->limit, expected);
    return fail(GRAPHI_INVALID, path, "found a checkpoint of all words, expected one of --vocabulary %lld",
                (long long)expected);
}

static bool has_one_size(const char *name)
{
    graphi_model_info info;
    return graphi_model_get_info(name, NULL, &info) == GRAPHI_OK && !info.size;
}

static void take_switches(const struct record *record, graphi_model_options *m)
{
    const char *computes = record->network.computes;
    m->merged |= network_words_listed(computes, "--merged");
    m->batch_norm |= network_words_listed(computes, "--batch-norm");
    m->lrn |= network_words_listed(computes, "--lrn");
    m->bottleneck |= network_words_listed(computes, "--bottleneck");
    m->auxiliary |= network_words_listed(record->network.trained, "--auxiliary");
}

graphi_status record_complete(const char *path, const struct record *record, const char *name, graphi_form *out)
{
    graphi_form form = *out;
    graphi_model_options *m = &form.model;
    const char *task = record_task(record), *size = record_size(record);
    /* Else the size that is asked for says units and steps. */
    const bool sized = !m->size || (size && strcmp(size, m->size) == 0) || has_one_size(name);
    if (!is_of(record, name))
        return check_words(path, record->network.computes, name);
    if (form.level && record->level && strcmp(form.level, record->level) != 0)
        return fail(GRAPHI_INVALID, path, "found a checkpoint of --level %s, expected %s", record->level, form.level);
    m->task = m->task ? m->task : task ? task : "real";
    m->size = m->size ? m->size : size;
    form.level = form.level ? form.level : record->level;
    if (sized) {
        take(&m->units, record->units);
        take(&m->steps, record_unroll(record));
    }
    take(&m->layers, record_layers(record));
    if (!(m->dropout > 0))
        m->dropout = record_dropout(record);
    m->optimizer = m->optimizer ? m->optimizer : record_optimizer(record);
    take(&m->image, record_image(record));
    take(&m->batch, record->batch);
    take(&m->classes, record->classes);
    take(&form.vocabulary, record->limit);
    take_switches(record, m);
    TRY(check_limit(path, record, form.vocabulary));
    TRY(check_number(path, "--classes", record->classes, m->classes));
    *out = form;
    return GRAPHI_OK;
}
