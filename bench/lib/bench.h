/* SPDX-License-Identifier: Apache-2.0 */
/* What the experiments share: options, the machine, networks under several settings measured in alternation, one
 * result. A program of bench/ is a body given to bench_main, which takes the words of tool/experiments.h; it prints its
 * result as JSON on standard output. Public API only. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "tool/experiments.h"
#include "tool/plan.h"
#include "tool/report.h"

struct bench {
    struct options options;
    struct result result;
    graphi_machine *machine; /* at hand; of studies NULL until something is timed here (study.c) */
    graphi_machine_info about;
    const char *others; /* words beside networks, as the message that refuses one has them */
    bool described; /* the experiment is about a described machine, and so is --cores */
    bool forward; /* networks are opened as their forward pass alone */
    bool policies; /* network_tune searches policies too, as graphi profile does */
    bool warm; /* short turns execute twice and count the second, which finds its arena in the caches as in a loop of
                  its own */
    int rounds; /* at least so many of bench_alternate, however long they take; 0: 3 to 5 by the seconds at hand */
};

typedef graphi_status (*bench_body)(struct bench *bench);
int bench_main(int argc, char **argv, const char *experiment, bench_body body);
int bench_study_main(int argc, char **argv, const char *experiment, bench_body body); /* all simulated: study.h */
int bench_widths_main(int argc, char **argv, const char *experiment, int cores,
                      bench_body body); /* measured where there are so many cores, else simulated */

/* USAGE where something was typed that is not honoured, or a word twice. bench_main has done it; for experiments of
 * two kinds. */
graphi_status bench_only(const struct bench *bench, const char *experiment, const char *honoured);

/* Tells of a failure, once: of an interruption bench_main tells. Returns the status. */
graphi_status bench_failure(graphi_status status);

/* A network in one size, ready to be run under several settings. */
struct network {
    const char *name, *size;
    graphi_model_options model;
    graphi_model_info info;
    graphi_graph *graph;
    graphi_state *state;
    graphi_plan *plan; /* static setting */
    struct rating rating;
    double weights_ms; /* weights_ms: what drawing the first weights took */
};
graphi_status network_open(struct bench *bench, const char *name, const char *size, const graphi_plan_options *options,
                           struct network *network);
/* Which of dcgan's graphs rows are about that name none; any other network: nothing. */
void bench_note_role(struct bench *bench, const char *network);

/* Feeds the network and replaces its plan by the tuned one. */
graphi_status network_tune(struct bench *bench, struct network *network, double seconds);
void network_close(struct network *network);

/* Calls body for every network x size that was asked for: words after the experiment choose networks, --size a size;
 * without words the four networks of graphi.txt, without --size the sizes given ("small,medium"), a network of one size
 * once. */
graphi_status bench_networks(struct bench *bench, const char *sizes,
                             graphi_status (*body)(struct bench *bench, const char *name, const char *size));

/* The request for a decided setting, for as long as the block lasts. */
#define REQUEST(decision) ((graphi_setting[]){graphi_decision_setting(decision)})

/* One of several things measured in alternation: once each a round. */
struct contender {
    char id[96];
    graphi_plan *plan;
    graphi_run *run;
    double *ms; /* one a round */
    double first_ms, feed_ms;
    double cpu_s; /* what this process computed in its last execution */
};
graphi_status contender_open(struct bench *bench, const struct network *network, const char *id,
                             const graphi_setting *setting, struct contender *contender);
/* The same in the memory of another, which is closed after it and whose inputs it has; NULL: in its own. */
graphi_status contender_beside(struct bench *bench, const struct network *network, const char *id,
                               const graphi_setting *setting, struct contender *host, struct contender *contender);
graphi_status contender_execute(struct contender *contender, double *ms);

/* Its turn among others: `twice`, and the second execution counts, unless the first of all (first_ms) was long. */
enum { BENCH_LONG_MS = 100 }; /* what runs longer walks through its memory, whatever ran before */
graphi_status bench_turn(struct contender *contender, bool twice, double *ms);
void contender_close(struct contender *contender);

/* Rounds until `seconds` are over (at least bench->rounds; without them 5, or 3 where a round takes a good part of the
 * seconds; at most max_rounds); gives the number of rounds. */
graphi_status bench_alternate(struct bench *bench, const char *title, struct contender *contender, int count,
                              double seconds, int max_rounds, int *rounds);

/* Goes on from *rounds, for those that are `in` (NULL: all): until `seconds` from now are over, but at least until
 * there are `least` rounds, at most `most` (up to BENCH_MAX_ROUNDS). */
graphi_status bench_rounds(struct bench *bench, const char *title, struct contender *contender, int count,
                           const bool *in, double seconds, int least, int most, int *rounds);

/* A row for a contender, with ratio against contender `base`. */
json_t *bench_row(struct bench *bench, const struct network *network, const struct contender *contender,
                  const struct contender *base, int rounds);

/* The usual experiment: several settings of one network in alternation for --seconds (default `seconds`), a row each,
 * ratios against entry `base`. A setting whose executions are those of one before it is not measured, and its row has
 * status missing. */
struct entry {
    char id[96];
    graphi_setting setting;
};
graphi_status bench_settings(struct bench *bench, const struct network *network, const struct entry *entry, int count,
                             int base, double seconds);

enum { BENCH_MAX_ROUNDS = 2000 };

#endif
