/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the child for times. Where its environment lacks nothing is installed: `graphi bench frameworks` does that. */
#include "pytorch.h"

#include "frameworks/peer.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    struct peer peer;
    enum { UNTRIED, RUNNING, MISSING } state;
    char version[64], reason[300];
} child;

static double fail_for(const char *reason)
{
    snprintf(child.reason, sizeof child.reason, "%s", reason);
    return -1;
}

static void start(void)
{
    char scripts[4096], environments[4096], script[4200], python[4200];
    peer_folders(scripts, environments, sizeof scripts);
    snprintf(script, sizeof script, "%s/kernels_pytorch.py", scripts);
    snprintf(python, sizeof python, "%s/pytorch/bin/python", environments);
    child.state = MISSING;
    if (access(python, X_OK) != 0) {
        fail_for("no environment of PyTorch: make peers makes it, or graphi bench frameworks pytorch");
        return;
    }
    json_t *answer = peer_start(&child.peer, python, script, NULL)
                         ? peer_ask(&child.peer, json_pack("{s:s}", "cmd", "version"), 120)
                         : NULL;
    const char *version = json_string_value(json_object_get(answer, "version"));
    if (version) {
        child.state = RUNNING;
        snprintf(child.version, sizeof child.version, "%s", version);
    } else {
        fail_for(child.peer.reason);
    }
    json_decref(answer);
}

/* The request is stolen. Afterwards a pause, so that its threads sleep in others' turns. */
static double ask(json_t *request)
{
    if (child.state == UNTRIED)
        start();
    if (child.state == MISSING) {
        json_decref(request);
        return -1;
    }
    json_t *answer = peer_ask(&child.peer, request, 120), *ms = json_object_get(answer, "ms");
    double time = json_is_number(ms) ? json_number_value(ms) : fail_for(child.peer.reason);
    json_decref(answer);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return time;
}

double pytorch_gemm(const struct peer_gemm *s, int threads, int repeat, int copies)
{
    return ask(json_pack("{s:s,s:I,s:I,s:I,s:b,s:b,s:i,s:i,s:i}", "cmd", "gemm", "m", (json_int_t)s->m, "n",
                         (json_int_t)s->n, "k", (json_int_t)s->k, "trans_a", s->trans_a, "trans_b", s->trans_b,
                         "threads", threads, "repeat", repeat, "copies", copies));
}

double pytorch_conv(const struct peer_conv *s, int threads, int repeat, int copies)
{
    return ask(json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:[I,I],s:I,s:[I,I],s:I,s:i,s:i,s:i,s:i}", "cmd", "conv", "n",
                         (json_int_t)s->n, "h", (json_int_t)s->h, "w", (json_int_t)s->w, "c", (json_int_t)s->c, "k",
                         (json_int_t)s->k, "kernel", (json_int_t)s->kernel, (json_int_t)peer_width(s), "stride",
                         (json_int_t)s->stride, "pad", (json_int_t)s->pad, (json_int_t)peer_pad_width(s), "groups",
                         (json_int_t)peer_groups(s), "direction", s->direction, "threads", threads, "repeat", repeat,
                         "copies", copies));
}

const char *pytorch_version(void) { return child.version; }
const char *pytorch_reason(void) { return child.reason; }

void pytorch_stop(void)
{
    if (child.state != UNTRIED)
        peer_stop(&child.peer);
    child.state = UNTRIED;
}
