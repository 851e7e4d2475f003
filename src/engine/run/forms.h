/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of parameters in a state: found by what they are made of, shared by runs, and freed. */
#ifndef ENGINE_FORMS_H
#define ENGINE_FORMS_H

#include "engine/run/parameter.h"

/* A form to find or make room for. */
struct form_wanted {
    uint64_t key;
    struct parameter **source;
    int sources;
    size_t bytes;
    const struct kernel *kernel; /* packs whole sources; NULL: parts of them, or what was made of them */
    bool passing;                /* only forms are made of it */
};

/* Finds `count` forms or makes room for those that are missing, all in one block; before that, forms that no run reads
 * go. They are the run's until it gives them back. MEMORY, nothing taken. Any thread. */
graphi_status state_take_forms(graphi_state *state, const struct form_wanted *wanted, size_t count,
                               struct packed_form **out);

/* NULL is accepted. passing: as it was wanted. Any thread. */
void state_give_form(graphi_state *state, struct packed_form *form, bool passing);

/* All of them, with the state. */
void state_free_forms(graphi_state *state);

/* --- under the mutex, while it is made --- */

/* Before it is written. */
void form_renew(struct packed_form *form);

/* It has been: of its sources as they are. */
void form_made(struct packed_form *form);

/* Gives its pages back where only other forms are made of it, and these are there. */
void form_pass(struct packed_form *form);

#endif
