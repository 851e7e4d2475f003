/* SPDX-License-Identifier: Apache-2.0 */
/* What a transport between processes gives: point-to-point messages and nothing else; sums are ours, in our order. A
 * transport is a plugin (src/mpi), loaded where it is asked for, so that the library needs none. */
#ifndef GROUP_TRANSPORT_H
#define GROUP_TRANSPORT_H

#include <stddef.h>

enum { TRANSPORT_VERSION = 1, TRANSPORT_REQUEST_BYTES = 64 };

/* A message under way, of the transport's own kind. */
struct transport_request {
    _Alignas(16) unsigned char bytes[TRANSPORT_REQUEST_BYTES];
};

/* local: among the processes of one host. */
struct transport_place {
    int rank, ranks, local_rank, local_ranks;
};

/* One thread calls at a time. Functions that can fail give 0 where they succeed. */
struct transport {
    int version;
    const char *name;
    int (*start)(struct transport_place *place, char *message, size_t size);
    int (*send)(const void *data, size_t bytes, int to, int tag, struct transport_request *request);
    int (*receive)(void *data, size_t bytes, int from, int tag, struct transport_request *request);
    int (*test)(struct transport_request *request); /* 1: it is done; 0: not yet; below 0: it failed */
    void (*abort)(int code);                        /* ends all processes */
    void (*finish)(void);
};

/* What a plugin exports. */
const struct transport *graphi_transport(void);

#endif
