/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a network in a checkpoint. They are what the command's options are called, so that a message says what
 * to type; files of all versions have these. */
#include "train/network_words.h"

#include <stdio.h>
#include <string.h>

static void add_switch(char *text, bool given, const char *name)
{
    const size_t used = strlen(text);
    if (given)
        snprintf(text + used, NETWORK_BYTES - used, "%s%s", used ? " " : "", name);
}

void network_words_of(const char *name, const graphi_model_options *m, const graphi_model_info *info,
                      struct network_words *words)
{
    char image[48];
    graphi_model_info usual;
    *words = (struct network_words){0};
    snprintf(words->computes, NETWORK_BYTES, "%s", name);
    if (!m)
        return;
    add_switch(words->computes, m->merged, "--merged");
    add_switch(words->computes, m->batch_norm, "--batch-norm");
    add_switch(words->computes, m->lrn, "--lrn");
    add_switch(words->computes, m->bottleneck, "--bottleneck");
    if (graphi_model_get_info(name, NULL, &usual) == GRAPHI_OK) {
        snprintf(image, sizeof image, "--layers %lld", (long long)info->layers);
        add_switch(words->computes, info->layers != usual.layers, image);
    }
    snprintf(words->trained, NETWORK_BYTES, "--task %s", m->task ? m->task : "bench");
    snprintf(image, sizeof image, "--image %lld", (long long)info->image);
    add_switch(words->trained, info->feed == GRAPHI_MODEL_IMAGES, image);
    add_switch(words->trained, m->auxiliary, "--auxiliary");
    snprintf(image, sizeof image, "--dropout %g", m->dropout);
    add_switch(words->trained, m->dropout > 0, image);
    snprintf(image, sizeof image, "--optimizer %.16s", m->optimizer ? m->optimizer : "");
    add_switch(words->trained, m->optimizer, image);
    if (info->feed == GRAPHI_MODEL_TEXT)
        snprintf(words->text, NETWORK_BYTES, "--size %s --unroll %lld", m->size ? m->size : "small",
                 (long long)info->steps);
}

bool network_words_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return true;
    return false;
}
