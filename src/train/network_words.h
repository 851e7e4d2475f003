/* SPDX-License-Identifier: Apache-2.0 */
/* A network as it would be typed, since parameters of the same names and shapes may belong to another. */
#ifndef TRAIN_NETWORK_WORDS_H
#define TRAIN_NETWORK_WORDS_H

#include "graphi/models.h"

enum { NETWORK_BYTES = 256 };

/* With what changes the function that the parameters are of; what else training goes on with; and what of that a text's
 * has: dropout and clipping may go by the size. "": not said. */
struct network_words {
    char computes[NETWORK_BYTES], trained[NETWORK_BYTES], text[NETWORK_BYTES];
};

/* Of a built-in network with these options and sizes; of any other (model NULL) its name alone. */
void network_words_of(const char *name, const graphi_model_options *model, const graphi_model_info *info,
                      struct network_words *words);

/* Whether `word` is one of the words of `list`, separated by spaces. */
bool network_words_listed(const char *list, const char *word);

#endif
