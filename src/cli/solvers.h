/* SPDX-License-Identifier: Apache-2.0 */
/* Training by several solvers (graphi/group.h), as the options ask for it. */
#ifndef CLI_SOLVERS_H
#define CLI_SOLVERS_H

#include "tool/job.h"

/* Whether any option asks for a group. */
bool solvers_asked(const struct options *options);

/* What is wrong with these options whatever the network: USAGE, reported. */
graphi_status solvers_check(const struct options *options);

/* --transport mpi: joins the other processes. Those but the first write neither result nor checkpoint, are quiet, and
 * have a log of their own: `own` is the options so changed, which live as long as the process. NULL where there are
 * none. Reported. */
graphi_status solvers_join(const struct options *options, struct options *own, graphi_ranks **ranks);

/* Whether this process is not the first. */
bool solvers_follow(const graphi_ranks *ranks);

/* The group over the job's state, for graphs of other batches of its network. Reported. */
graphi_status solvers_open(const struct options *options, graphi_ranks *ranks, struct job *job, graphi_group **out);

/* What a checkpoint says of leaves, into at least 16 bytes: the number, or "". */
void solvers_leaves(const struct job *job, char *word);

/* Whether it is a value of --solvers, of --reduction. */
bool solvers_are_count(const char *word);
bool solvers_are_reduction(const char *word);

/* The row of a training by a group, and what its solvers have to tell. */
void solvers_result(struct job *job, const graphi_group *group, struct result *result);

#endif
