/* SPDX-License-Identifier: Apache-2.0 */
/* What plans are told apart by: kind, type and sizes of a value, and its content where sizes or conditions of a model
 * follow from it. */
#ifndef FLOW_FORM_H
#define FLOW_FORM_H

#include "value/value.h"

struct form {
    int number; /* of the value */
    bool given; /* else there is none */
    bool asked; /* its content counts */
    graphi_tensor_kind kind;
    graphi_element type;
    int rank;
    int64_t dims[VALUE_RANK];
    graphi_tensor *content; /* a copy, where it counts and is small; NULL */
};

/* Contents of more elements are never told apart. */
enum { FORM_CONTENT_MOST = 64 };

/* MEMORY. value NULL: none. */
graphi_status form_of(const graphi_tensor *value, int number, bool asked, struct form *out);
bool form_holds(const struct form *form, const graphi_tensor *value);
/* The same but for contents. */
bool form_fits(const struct form *form, const graphi_tensor *value);
void form_list_free(struct form *forms, size_t count); /* the array as well; NULL is accepted */

#endif
