/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that train together: records of all of them, and one sum of their blocks. One thread calls at a time. */
#ifndef GROUP_RANKS_H
#define GROUP_RANKS_H

#include <stdbool.h>

#include "graphi/group.h"
#include "group/exchange.h"
#include "group/transport.h"

struct graphi_ranks {
    void *library;
    const struct transport *transport;
    struct transport_place place;
    double timeout_s;
    bool started, broken; /* broken: a message failed or did not come; the others are told when it is closed */
    struct transport_request *request;
    int *peer; /* of each request: whose message is waited for, -1: it is done */
    int requests, room;
};

/* Every rank's record, in their order, into `all` [ranks][bytes]. IO: a rank sent none in time, by its number. */
graphi_status ranks_gather(struct graphi_ranks *ranks, const void *record, size_t bytes, const char *what, void *all);

/* The sum of the blocks of all solvers of all ranks, by `all`, whose members are they, into `to`: this rank's have
 * their numbers there, those of others room for what comes. Each rank adds a segment, and all take it. */
graphi_status ranks_sum(struct graphi_ranks *ranks, struct exchange *all, int solvers, float *to);

#endif
