/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of plans and of machines start from: a graph of a few operations, a scratch file that goes with
 * the process, and calls that must not fail. */
#ifndef FUZZ_SMALL_GRAPH_H
#define FUZZ_SMALL_GRAPH_H

#include "graphi/graphi.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void must(graphi_status status)
{
    if (status == GRAPHI_OK)
        return;
    fprintf(stderr, "%s\n", graphi_message());
    abort();
}

static void remove_file(void) { unlink(path); }

/* Names the scratch file, and makes the graph; it stays until the process ends, as plans borrow from it. */
static graphi_graph *small_graph(const char *target)
{
    graphi_graph *graph;
    snprintf(path, sizeof path, "%s/graphi-fuzz-%s-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", target,
             (int)getpid());
    atexit(remove_file);
    must(graphi_graph_create(&graph));
    graphi_value x = graphi_input(graph, "x", GRAPHI_F32, 2, (int64_t[]){64, 64});
    graphi_value w = graphi_parameter(graph, "w", GRAPHI_F32, 2, (int64_t[]){64, 64}, NULL);
    for (int i = 0; i < 3; i++)
        x = graphi_add(graph, graphi_matmul(graph, x, w, 0, 0), graphi_softmax(graph, x));
    graphi_output(graph, "y", x);
    return graph;
}

#endif
