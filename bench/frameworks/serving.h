/* SPDX-License-Identifier: Apache-2.0 */
/* One model served by us and by a peer in turns of some milliseconds of executions. Neither side spins in the other's
 * turn: the peer is stopped in ours, our workers rest in its. */
#ifndef BENCH_FRAMEWORKS_SERVING_H
#define BENCH_FRAMEWORKS_SERVING_H

#include "bench.h"
#include "frameworks/peer.h"

enum { SERVING_ROUNDS = 400, SERVING_EACH = 2000 }; /* most turns of a peer, most executions that are kept of a side */

struct serving {
    struct bench *bench;
    const char *id;                      /* of our row */
    json_t *row;                         /* ours; it has the times that it had beside the best peer */
    graphi_status (*run)(void *context); /* one execution of ours, with its results at hand */
    void *context;
    double best;    /* least of the peers' times over ours; 0: none yet */
    double limit_s; /* for one turn of a peer */
};

/* n executions of ours; their times in ms. */
graphi_status serving_ours(const struct serving *serving, int n, double *ms);

/* Turns beside one peer, which answers "step"; its row gets times and ratio. OK also where the peer fails: its reason
 * says why. MEMORY, INTERRUPTED, and what our executions return. */
graphi_status serving_turns(struct serving *serving, struct peer *peer, json_t *row);

#endif
