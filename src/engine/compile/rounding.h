/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a graph that tuning compiles one after the other, runs in alternation, and keeps where they are faster
 * (rounding_search.c): choices of the compiler that gain or lose time by the machine. Most alter the last bits of
 * results: without --allow-rounding a graph is compiled in none of these, and tuning leaves bits as they are. Lowerings
 * of sequences alter none and are tried wherever a graph has recurrences (deepcpu.txt 5.2.2, calibration). A set of
 * forms is a bit mask over the table; a stored plan names its forms, and the bits follow from them. */
#ifndef ENGINE_ROUNDING_H
#define ENGINE_ROUNDING_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct rounding_form {
    const char *name;
    const char *passes; /* added to the list of switched passes; NULL: none */
    double conv_error;  /* error budget of convolutions; 0: as asked */
    const char *sequences; /* lowering of recurrences, of the same bits; NULL: as asked */
};
enum { ROUNDING_FORMS = 9 };
extern const struct rounding_form rounding_forms[ROUNDING_FORMS];

/* The list of passes with those of the forms, and the error budget. */
void rounding_passes(uint32_t forms, const char *disable, struct text *out);
double rounding_conv_error(uint32_t forms, double asked);
const char *rounding_sequences(uint32_t forms, const char *asked);

/* Those that alter bits. */
uint32_t rounding_alters(uint32_t forms);

void rounding_names(uint32_t forms, const char *between, struct text *out);
bool rounding_parse(const char *names, uint32_t *forms); /* separated by commas; false: some name is none */

/* The forms to try after `forms` was found to be best: one of the table, which takes the place of those that contradict
 * it. */
uint32_t rounding_with(uint32_t forms, int form);

#endif
