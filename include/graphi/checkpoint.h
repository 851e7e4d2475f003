/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that training wrote: what they say of their network, data and place, and loading them for something else
 * than going on (graphi/train.h does that). docs/training.md lists the strings. */
#ifndef GRAPHI_CHECKPOINT_H
#define GRAPHI_CHECKPOINT_H

#include "graphi/data.h"
#include "graphi/models.h"
#include "graphi/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a file says beside its parameters. */
typedef struct graphi_checkpoint graphi_checkpoint;

typedef struct graphi_checkpoint_info {
    bool own;                  /* Graphi wrote it; other programs' files have parameters alone */
    uint64_t step, seed;       /* step: executions with updates, as graphi_state_step */
    const char *network;       /* a built-in one; NULL: another, or it does not say */
    const char *words;         /* the network as it was named, with its switches; "": it does not say */
    const char *level;         /* "word" or "character"; NULL: not said */
    int64_t units, classes, vocabulary, limit, image, unroll, batch; /* 0: not said; limit: of the vocabulary */
    bool placed;               /* it has a place in the data, and can be gone on from */
    graphi_data_position at;
    uint64_t hash, encoding;   /* of the data, as graphi_data_info */
    bool encoded;              /* encoding is said */
    bool owes;                 /* a validation was stopped */
} graphi_checkpoint_info;

/* A built-in network as far as it is asked for, and what its data are: zero is not. */
typedef struct graphi_form {
    graphi_model_options model; /* its vocabulary aside, which the data tell */
    const char *level;          /* of text: "word" or "character" */
    int64_t vocabulary;         /* most tokens told apart */
} graphi_form;

/* Reads what the file says. *out is the caller's (graphi_checkpoint_close). Errors: IO, INVALID, MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_checkpoint_open(const char *path, graphi_checkpoint **out);
GRAPHI_API void graphi_checkpoint_close(graphi_checkpoint *checkpoint); /* NULL is accepted */

/* Texts live as long as the checkpoint, or are static. */
GRAPHI_API void graphi_checkpoint_get_info(const graphi_checkpoint *checkpoint, graphi_checkpoint_info *info);

/* The string of that key, of docs/training.md; NULL: there is none. Lives as long as the checkpoint. */
GRAPHI_API const char *graphi_checkpoint_text(const graphi_checkpoint *checkpoint, const char *key);

/* What is not asked for of a built-in network becomes what the file says: task (real where it says none), size, units,
 * steps, image, batch, classes, switches, level, vocabulary. INVALID where it is of another network, or of another
 * level, classes, units or vocabulary than were asked for; *form is then as it was. */
GRAPHI_API graphi_status graphi_checkpoint_complete(const graphi_checkpoint *checkpoint, const char *network,
                                                    graphi_form *form);

/* Loads the parameters into a state of the network (NULL: of any that has them). `data` (may be NULL): what they are to
 * be evaluated on. INVALID where the file is of another network, lacks a parameter, or was trained where numbers in a
 * batch meant something else; the state is then unchanged. IO, MEMORY. */
GRAPHI_API graphi_status graphi_checkpoint_load(const graphi_checkpoint *checkpoint, graphi_state *state,
                                                const char *network, const graphi_model_options *model,
                                                const graphi_data *data);

#ifdef __cplusplus
}
#endif
#endif
