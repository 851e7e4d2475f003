/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in networks, made with the public API alone (src/models). A network comes in two tasks: "bench" is the form
 * in which everything is timed, "real" learns from data. Names of inputs and outputs:
 *
 * - image networks: inputs "images" float32 [batch,H,W,C], "labels" int32 [batch]; outputs "loss" (what is minimized,
 *   auxiliary classifiers included), "logits" [batch,classes]
 * - text networks: inputs "tokens", "targets" int32 [batch,steps]; outputs "loss" (mean cross-entropy, nats),
 *   of the evaluation form also "logits" [steps*batch,vocabulary] (time-major)
 * - lstm and phased-lstm, bench: inputs "x" [steps*batch,units] (time-major), "h0/L", "c0/L" [batch,units], phased-lstm
 *   also "time" [steps*batch,1]; outputs "loss" and "gradient/PARAMETER" for every parameter
 * - dcgan, three graphs over one state. Role "discriminator": inputs "images" in [0,1], "labels", "z" float32
 *   [batch,100]; outputs "loss", "loss/real", "loss/fake". "generator": inputs "z", "labels"; output "loss". "sample":
 *   inputs "z", "labels"; output "images" in [0,1]. A training step is one run of the discriminator's update, then two
 *   of the generator's
 * - ptb: a text network in both tasks; what its updates follow is the loss times `steps`, the sum over time
 * - dynamic networks (graphi/dynamic.h), a batch by graphi_frontier_feed: inputs "words", "labels" int32 [vertices];
 *   treefc: "root" float32 [vertices, 1] in place of labels, 1 at roots. Of two functions 0 is for words, 1 for what
 *   has children. Outputs "loss" (mean cross-entropy of vertices), "logits" [vertices, classes]
 *
 * Training graphs with updates take the float32 scalar input "learning_rate". */
#ifndef GRAPHI_MODELS_H
#define GRAPHI_MODELS_H

#include "graphi/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_model_options {
    const char *size;     /* "small", "medium", "large"; NULL: small. Networks of one size take each for that one */
    const char *task;     /* "bench" or "real"; NULL: bench */
    bool evaluation;      /* forward only: no updates, no dropout, running statistics; carried states under "eval/" */
    bool forward;         /* bench: only the forward pass */
    bool merged;          /* the gates of a cell as one product instead of one a gate */
    int64_t batch;        /* 0: the network's own */
    int64_t image;        /* image side; 0: the size's */
    int64_t classes;      /* 0: 10, googlenet and inception-v3 bench 1000 */
    int64_t vocabulary;   /* text networks, real */
    int64_t steps, units; /* sequence length of lstm, phased-lstm, ptb; neurons (channels, width). 0: the size's */
    bool batch_norm, lrn; /* googlenet's switches */
    bool auxiliary;       /* googlenet and inception-v3: auxiliary classifiers */
    bool bottleneck;      /* resnet20, resnet50: blocks of three convolutions */
    /* dynamic networks: bounds of a batch (graphi_frontier_options). 0: the network's, times the batch */
    int64_t vertices, edges, children;
    int64_t block_rows; /* most vertices evaluated together; 1: one at a time, the serial policy; 0: 512 */
    bool in_rounds;     /* graphi_dynamic_options.in_rounds */
    bool dense;           /* updates are of whole tables, as groups of solvers add them (graphi_optimizer.sparse OFF) */
    int64_t layers;       /* lstm, phased-lstm, ptb: of cells, at most 8; 0: the network's own */
    /* Of language models. dropout: the part of the embedding and of each layer's results that training drops, below 1;
     * 0: the network's own. optimizer: "sgd", "momentum" (0.9), "adam" or "adagrad"; NULL: the network's own. Another
     * one than that starts from a rate of its own. */
    double dropout;
    const char *optimizer;
    const char *role;     /* dcgan: "discriminator", "generator", "sample"; NULL: discriminator */
} graphi_model_options;

typedef enum graphi_model_feed {
    GRAPHI_MODEL_IMAGES,
    GRAPHI_MODEL_TEXT,
    GRAPHI_MODEL_VECTORS,
    GRAPHI_MODEL_TREES
} graphi_model_feed;

/* Sizes after all defaults, and how the network is usually trained. Texts are static. */
typedef struct graphi_model_info {
    const char *name, *summary;
    const char *size; /* which of the three; NULL: the network has one size */
    graphi_model_feed feed;
    int64_t batch, image, channels, classes, steps, units, layers, vocabulary;
    int64_t vertices, edges, children; /* dynamic networks: bounds of a batch */
    int functions;                     /* and how many vertex functions */
    const char *metric;   /* "accuracy" or "perplexity"; NULL: dcgan has none */
    double rate;          /* learning rate that the schedule starts from */
    const char *schedule; /* graphi_schedule_parse */
    int epochs;
    bool bytes;          /* images are bytes less their mean (graphi_data_options.bytes) */
    const char *augment; /* graphi_data_augment; NULL: nothing */
} graphi_model_info;

/* The i-th built-in network's name, static text; NULL past the end. Any thread. */
GRAPHI_API const char *graphi_model_at(int i);

/* options NULL: the defaults. *out is the caller's graph (graphi_graph_destroy). Errors of both, the result untouched:
 * INVALID for an unknown name (the message lists what exists), size, task or role of a network that has roles, a count
 * below 0, or sizes beyond what is built; USAGE for an option, a role too, that the network does not have (which do);
 * graphi_model_create also MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_model_get_info(const char *name, const graphi_model_options *options,
                                               graphi_model_info *info);
GRAPHI_API graphi_status graphi_model_create(const char *name, const graphi_model_options *options, graphi_graph **out);

#ifdef __cplusplus
}
#endif
#endif
