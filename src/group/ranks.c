/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between processes, polled by whoever waits, with a time limit: a rank that has died or hangs is named. Usual
 * size: 2 to 64 ranks, blocks of 1 to 250 MB. */
#include "group/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "machine/parking.h"

enum { TAG_RECORD = 1, TAG_SUM = 2, TAG_PIECE = 16, NODES = EXCHANGE_NODES };

/* --- messages --- */

static graphi_status make_room(struct graphi_ranks *r)
{
    if (r->requests < r->room)
        return GRAPHI_OK;
    const size_t old = (size_t)r->room, now = old ? 2 * old : 64;
    struct transport_request *requests = mem_resize(r->request, old * sizeof *requests, now * sizeof *requests);
    r->request = requests ? requests : r->request;
    int *peers = requests ? mem_resize(r->peer, old * sizeof *peers, now * sizeof *peers) : NULL;
    r->peer = peers ? peers : r->peer;
    if (!peers)
        return fail_memory("messages", now * sizeof *requests);
    r->room = (int)now;
    return GRAPHI_OK;
}

static graphi_status broken(struct graphi_ranks *r, int rank, const char *found, const char *what)
{
    char name[32];
    snprintf(name, sizeof name, "rank %d", rank);
    r->broken = true;
    return fail(GRAPHI_IO, name, "found %s, expected its %s", found, what);
}

static graphi_status post(struct graphi_ranks *r, bool sends, void *data, size_t bytes, int peer, int tag,
                          const char *what)
{
    if (!bytes)
        return GRAPHI_OK;
    TRY(make_room(r));
    struct transport_request *request = &r->request[r->requests];
    const int error = sends ? r->transport->send(data, bytes, peer, tag, request)
                            : r->transport->receive(data, bytes, peer, tag, request);
    if (error)
        return broken(r, peer, "that no message can be sent or received", what);
    r->peer[r->requests++] = peer;
    return GRAPHI_OK;
}

/* Those that are done leave; the number of those that are not, -1: one failed. */
static int poll(struct graphi_ranks *r, int *failed)
{
    int kept = 0;
    for (int i = 0; i < r->requests; i++) {
        const int done = r->transport->test(&r->request[i]);
        if (done < 0)
            *failed = r->peer[i];
        if (done)
            continue;
        r->request[kept] = r->request[i];
        r->peer[kept++] = r->peer[i];
    }
    return kept;
}

static graphi_status wait_all(struct graphi_ranks *r, const char *what)
{
    int64_t moved = clock_ns();
    unsigned turns = 0;
    int failed = -1;
    while (r->requests) {
        const int left = poll(r, &failed);
        if (failed >= 0)
            return broken(r, failed, "a message that failed", what);
        if (left != r->requests) {
            moved = clock_ns();
            turns = 0;
        }
        r->requests = left;
        if (left && (double)(clock_ns() - moved) * 1e-9 > r->timeout_s) {
            char found[64];
            snprintf(found, sizeof found, "nothing for %g s", r->timeout_s);
            return broken(r, r->peer[0], found, what);
        }
        spin_turn(&turns);
    }
    return GRAPHI_OK;
}

/* --- records and sums --- */

graphi_status ranks_gather(struct graphi_ranks *r, const void *record, size_t bytes, const char *what, void *all)
{
    const int own = r->place.rank;
    memcpy((char *)all + bytes * (size_t)own, record, bytes);
    for (int i = 0; i < r->place.ranks; i++) {
        if (i == own)
            continue;
        TRY(post(r, false, (char *)all + bytes * (size_t)i, bytes, i, TAG_RECORD, what));
        TRY(post(r, true, (char *)all + bytes * (size_t)own, bytes, i, TAG_RECORD, what));
    }
    return wait_all(r, what);
}

/* Floats of a rank's segment, in whole lines of the cache. */
static size_t segment(const struct graphi_ranks *r, const struct exchange *all, int rank)
{
    enum { LINE = 16 };
    const size_t lines = (all->floats + LINE - 1) / LINE;
    const size_t at = lines * (size_t)rank / (size_t)r->place.ranks * LINE;
    return at < all->floats ? at : all->floats;
}

/* Every piece of a segment goes to who adds it. */
static graphi_status post_pieces(struct graphi_ranks *r, struct exchange *all, int solvers)
{
    const int own = r->place.rank;
    const size_t mine = segment(r, all, own), end = segment(r, all, own + 1);
    for (int m = 0; m < all->members; m++)
        for (int i = 0; i < all->member[m].nodes; i++) {
            float *block = all->member[m].block[i];
            const int rank = m / solvers, tag = TAG_PIECE + m * NODES + i;
            if (rank != own)
                TRY(post(r, false, block + mine, (end - mine) * sizeof *block, rank, tag, "gradients"));
            for (int to = 0; rank == own && to < r->place.ranks; to++) {
                const size_t begin = segment(r, all, to);
                if (to != own)
                    TRY(post(r, true, block + begin, (segment(r, all, to + 1) - begin) * sizeof *block, to, tag,
                             "readiness for gradients"));
            }
        }
    return GRAPHI_OK;
}

graphi_status ranks_sum(struct graphi_ranks *r, struct exchange *all, int solvers, float *to)
{
    const int own = r->place.rank;
    const size_t mine = segment(r, all, own), end = segment(r, all, own + 1);
    TRY(post_pieces(r, all, solvers));
    TRY(wait_all(r, "gradients"));
    exchange_sum_range(all, to, mine, end);
    for (int i = 0; i < r->place.ranks; i++) {
        const size_t begin = segment(r, all, i), bytes = (segment(r, all, i + 1) - begin) * sizeof *to;
        if (i == own)
            continue;
        TRY(post(r, false, to + begin, bytes, i, TAG_SUM, "sum of gradients"));
        TRY(post(r, true, to + mine, (end - mine) * sizeof *to, i, TAG_SUM, "readiness for a sum"));
    }
    return wait_all(r, "sum of gradients");
}

/* --- opening --- */

static graphi_status load(const char *plugin, struct graphi_ranks *r)
{
    char message[400] = "";
    r->library = dlopen(plugin, RTLD_NOW | RTLD_GLOBAL); /* MPI's own plugins look for its symbols */
    if (!r->library)
        return fail(GRAPHI_UNSUPPORTED, plugin, "found no transport there (%s), expected a plugin", dlerror());
    const struct transport *(*find)(void);
    *(void **)&find = dlsym(r->library, "graphi_transport");
    r->transport = find ? find() : NULL;
    if (!r->transport || r->transport->version != TRANSPORT_VERSION)
        return fail(GRAPHI_UNSUPPORTED, plugin, "found %s, expected a transport of version %d",
                    find ? "another version" : "no graphi_transport in it", TRANSPORT_VERSION);
    if (r->transport->start(&r->place, message, sizeof message))
        return fail(GRAPHI_UNSUPPORTED, r->transport->name, "found that it does not start (%s), expected it to",
                    message);
    r->started = true;
    return GRAPHI_OK;
}

graphi_status graphi_ranks_open(const char *plugin, double timeout_s, graphi_ranks **out)
{
    GIVEN(plugin);
    GIVEN(out);
    enum { USUAL_S = 60 };
    if (!(timeout_s >= 0))
        return fail(GRAPHI_INVALID, "ranks", "found a time limit of %g s, expected 0 or more", timeout_s);
    struct graphi_ranks *r = mem_zalloc(sizeof *r);
    if (!r)
        return fail_memory("ranks", sizeof *r);
    r->timeout_s = timeout_s > 0 ? timeout_s : USUAL_S;
    const graphi_status status = load(plugin, r);
    if (status == GRAPHI_OK)
        *out = r;
    else
        graphi_ranks_close(r);
    return status;
}

bool graphi_ranks_get_info(const graphi_ranks *r, graphi_ranks_info *info)
{
    if (!r || !info)
        return false;
    *info = (graphi_ranks_info){r->place.rank, r->place.ranks, r->place.local_rank, r->place.local_ranks};
    return true;
}

/* The library stays: MPI's threads and handlers may be there until the process ends. */
void graphi_ranks_close(graphi_ranks *r)
{
    if (!r)
        return;
    if (r->started && r->broken)
        r->transport->abort(GRAPHI_IO);
    else if (r->started)
        r->transport->finish();
    mem_free(r->request);
    mem_free(r->peer);
    mem_free(r);
}
