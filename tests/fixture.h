/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of whole plans share: a call that must succeed, and machines that a program opens once: the one at hand,
 * and the description of a large one, for what is simulated. Include after cmocka.h. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "graphi/graphi.h"

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
    return graphi_machine_load("machines/xeon-phi-7250.json", &phi);
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

#endif
