/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of ours and of a peer: each side steps for at least TURN_MS, then rests, so that nothing of it runs in the
 * other's turn. */
#ifndef BENCH_FRAMEWORKS_TURNS_H
#define BENCH_FRAMEWORKS_TURNS_H

#include "frameworks/ours.h"
#include "frameworks/peer.h"

enum { TURN_MS = 60 };

/* Asks the peer for the network of `ours` in one setting. The answer is the caller's; NULL: the peer has the reason. */
json_t *turns_load(struct peer *peer, const struct bench *bench, const struct ours *ours, const char *mode,
                   const char *setting);

/* Starts a peer and asks in which settings it has a network: an array of strings, the caller's; NULL: the peer has the
 * reason. Stop it in any case. */
json_t *turns_settings(struct peer *peer, const char *python, const char *script, const char *model, const char *mode);

/* How many steps make a turn, of so many milliseconds each. */
int turns_steps(double step_ms);

/* Median of n steps of the peer; negative on failure, or after so many seconds: the peer has the reason. */
double turns_peer(struct peer *peer, int n, double seconds);

/* Median of the steps of our turn. */
graphi_status turns_ours(struct ours *ours, double *median);

/* Between two turns: whoever had the last one stops spinning. */
void turns_rest(void);

#endif
