/* SPDX-License-Identifier: Apache-2.0 */
/* The options that were typed, a field each; option_table.c says which. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include "graphi/graphi.h"

#include <stdio.h>

enum { OPTIONS_MOST = 64 }; /* words of a kind */

/* What was typed. Zero or NULL: not given. */
struct options {
    const char *command, *subject; /* "train", "pathnet" */
    const char *rest[OPTIONS_MOST];          /* further words: models of a benchmark */
    int rest_count;
    int argc;
    char **argv;
    const char *given[OPTIONS_MOST]; /* names of the options that were typed */
    int given_count;

    const char *json, *isa, *precision;
    bool quiet, help, version;
    uint64_t seed;
    bool seed_given;
    int cores, executors, width;
    const char *driver, *pin, *policy, *light, *join;
    double tune;
    bool tune_given;
    const char *plan, *save_plan, *curves, *model;
    bool explain, allow_rounding;
    double conv_error;
    const char *disable, *streaming, *sequences, *weights;
    int depth, backward_executors, interval;
    bool no_inline;
    graphi_policy_parameter parameters[GRAPHI_SETTING_PARAMETERS]; /* of policies; with room for the seed */
    const char *timeline, *out;
    const char *size, *task, *data;
    int64_t steps, epochs, batch, image, units, unroll, validate, classes, vocabulary;
    double lr;
    bool lr_given; /* 0: nothing is learnt */
    const char *schedule, *level, *split, *augment;
    const char *checkpoint;
    int64_t every, patience;
    const char *best;
    bool skip_bad; /* samples that are none */
    bool resume, overwrite, check_numerics, training, inference, merged, batch_norm, lrn, auxiliary, bottleneck;
    int64_t layers;
    double dropout;
    const char *optimizer;
    const char *role;
    const char *log;
    const char *solvers, *reduction, *transport;
    double rank_timeout;
    int leaves;
    bool deterministic, must_place, oversubscribe;
    const char *machine;
    const char *input[32];
    int input_count;
    const char *inputs, *compare;
    bool host;
    const char *shape[32];
    int shape_count;
    double rtol, atol;
    bool rtol_given, atol_given;
    const char *output;
    int64_t repeat;
    const char *prompt;
    int64_t length, top_k;
    double temperature;
    bool temperature_given;
    bool quick;
    double seconds;
};

/* Whether the option was typed: what a checkpoint says stands in the same fields. */
bool options_given(const struct options *options, const char *name);

/* Whether `word` is one of the words of `list`, separated by spaces. */
bool options_listed(const char *list, const char *word);

/* Whether an option is in such a list; parameters of policies are where --policy is. */
bool options_effect(const char *list, const char *word);

/* USAGE where an option was typed that is not in the list, names separated by spaces: it would have no effect. */
graphi_status options_only(const struct options *options, const char *where, const char *list);

/* --json -: standard output is the JSON alone. */
bool options_json_is_stdout(const struct options *options);

#endif
