/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model: the vocabulary that a checkpoint has, and tokens one after the other from a run. */
#ifndef GRAPHI_GENERATE_H
#define GRAPHI_GENERATE_H

#include "graphi/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_vocabulary graphi_vocabulary;

/* The tokens by number, as a checkpoint has them: graphi_checkpoint_text(c, "data.vocabulary"), a JSON list whose i-th
 * word is token i. characters: its data.level is "character". *out is the caller's (graphi_vocabulary_close). Errors,
 * *out untouched: INVALID, no list of different words with <unk> among them; MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_vocabulary_open(const char *words, bool characters, graphi_vocabulary **out);
GRAPHI_API void graphi_vocabulary_close(graphi_vocabulary *vocabulary); /* NULL is accepted */

/* How many tokens there are. Any thread. */
GRAPHI_API int64_t graphi_vocabulary_count(const graphi_vocabulary *vocabulary);

/* The text of a token and its length in bytes; a zero follows. NULL outside of 0 .. count - 1. Lives as long as the
 * vocabulary. Any thread. */
GRAPHI_API const char *graphi_vocabulary_text(const graphi_vocabulary *vocabulary, int64_t token, size_t *length);

/* The tokens of a text, as training numbers it; those it does not know are <unk>. *tokens is the caller's
 * (graphi_free). MEMORY, INVALID (more than 2^30 bytes). Any thread. */
GRAPHI_API graphi_status graphi_vocabulary_encode(const graphi_vocabulary *vocabulary, const char *text, size_t bytes,
                                                  int32_t **tokens, int64_t *count);

/* Zero fields: the most likely token each time. */
typedef struct graphi_generate_options {
    double temperature; /* logits are divided by it before a token is drawn; 0: the most likely one is taken */
    int64_t top_k;      /* only so many of the most likely ones; 0: all */
    uint64_t seed;
    bool (*token)(void *context, int32_t token); /* told of each as it comes; false ends. NULL: nobody is */
    void *context;
} graphi_generate_options;

/* Continues a prompt: feeds its tokens one by one, then draws `count` more, each fed in turn. The run is of a language
 * model's evaluation form of batch 1 and one step (graphi_model_options evaluation, batch, steps): int32 input "tokens"
 * [1,1], output "logits" [1,vocabulary], every other input set before; the state carried between steps stays with its
 * graphi_state, where a later call goes on (graphi_state_zero(state, "eval/state/") begins anew). *made: how many of
 * tokens[0 .. count) were written. The same seed gives the same tokens on any machine whose logits are the same.
 * Errors: INVALID, an empty prompt, a token beyond the vocabulary, a run of another form, numbers that are none; as
 * graphi_run_execute. One thread at a time a run. */
GRAPHI_API graphi_status graphi_generate(graphi_run *run, const graphi_generate_options *options,
                                         const int32_t *prompt, int64_t prompt_count, int32_t *tokens, int64_t count,
                                         int64_t *made);

#ifdef __cplusplus
}
#endif
#endif
