/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of whole plans share: a call that must succeed, and machines that a program opens once: the one at hand,
 * and the description of a large one, for what is simulated. Include after cmocka.h. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "graphi/graphi.h"

#include <stdlib.h>

/* Fails the test, at the line of the call, with the library's message. */
#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != GRAPHI_OK)                                                                                       \
            fail_msg("%s", graphi_message());                                                                          \
    } while (0)

static graphi_machine *machine, *phi;

static inline int open_machine(void **state)
{
    return graphi_machine_create(0, &machine);
}

static inline int open_phi(void **state)
{
    return graphi_machine_load("machines/xeon-phi-7250.json", 0, &phi);
}

static inline int open_machines(void **state)
{
    return open_machine(state) || open_phi(state);
}

static inline int close_machines(void **state)
{
    graphi_machine_destroy(machine);
    graphi_machine_destroy(phi);
    return 0;
}

/* A described machine of six cores, on whose plans the threads of teams share the cores at hand. The caller's. */
static inline graphi_machine *six_cores(void)
{
    graphi_machine *six;
    check_ok(graphi_machine_load("machines/knl-7210.json", 6, &six));
    return six;
}

/* Widths of teams: 1 to 6, then powers of two. */
static inline int next_width(int width)
{
    return width < 6 ? width + 1 : width == 6 ? 8 : 2 * width;
}

/* Feeds zeros to every input of the graph. */
static inline void feed_zeros(const graphi_graph *graph, graphi_run *run)
{
    graphi_port port;
    for (int i = 0; graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, &port); i++) {
        void *zeros = calloc(port.bytes, 1);
        check_ok(graphi_run_set(run, port.name, port.dtype, zeros, port.bytes));
        free(zeros);
    }
}

#endif
