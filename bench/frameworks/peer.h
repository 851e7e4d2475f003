/* SPDX-License-Identifier: Apache-2.0 */
/* A framework in a child process that is asked for steps by lines of JSON (bench/frameworks/common.py describes them).
 * One child lives at a time; while it is not asked it sleeps on its pipe. */
#ifndef BENCH_FRAMEWORKS_PEER_H
#define BENCH_FRAMEWORKS_PEER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct peer {
    pid_t pid;
    FILE *to;
    int from;
    FILE *log;        /* what it says on standard error */
    char folder[64];  /* its TMPDIR: a compiler's cache kept from an earlier run would hide what the first step costs */
    char *line;       /* answer being read */
    size_t used, size;
    char reason[300]; /* why the last call failed */
    bool resting;
    bool late;        /* it failed by taking too long */
};

/* Starts `python script`. With the word `pages` in the setting (NULL: none) the C library's allocator keeps what is
 * freed and asks for huge pages: a framework that allocates its results in every step otherwise gets many of them from
 * the system each time; what the user sets of it otherwise stays. False: reason. */
bool peer_start(struct peer *peer, const char *python, const char *script, const char *setting);

/* Whether PyTorch runs an operation at a time in this setting: neither compiled nor traced. */
bool peer_is_eager(const char *setting);

/* Sends the request (stolen) and waits at most `seconds` for the answer, which is the caller's. NULL: the reason is
 * in peer->reason, the child may have ended. Ctrl-C ends the waiting. */
json_t *peer_ask(struct peer *peer, json_t *request, double seconds);

/* Until it is asked again none of its threads runs: those of some frameworks spin on for longer than a turn. */
void peer_rest(struct peer *peer);

/* Ends the child and whatever it started. Harmless on a zeroed struct. */
void peer_stop(struct peer *peer);

/* Finds the folder of the peers' programs and of their environments, by the place of this program. */
void peer_folders(char *scripts, char *environments, size_t size);

/* Makes the environment of one peer when it lacks; true when it is there. Takes minutes; says so on standard error. */
bool peer_prepare(const char *scripts, const char *environments, const char *name, bool quiet);

#endif
