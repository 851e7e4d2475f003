/* SPDX-License-Identifier: Apache-2.0 */
/* The table of forms that round otherwise. Pure functions; any thread. */
#include "engine/compile/rounding.h"

#include <string.h>

/* Winograd's largest tiles have errors of up to 16 times the direct algorithm's (conv_choice.c). */
const struct rounding_form rounding_forms[ROUNDING_FORMS] = {
    {"merged-products", "+merge", 0, NULL},    /* products and convolutions that share an input are one */
    {"large-tiles", NULL, 16, NULL},           /* convolutions with errors of up to 16 times the direct algorithm's */
    {"direct-convolutions", NULL, 1, NULL},    /* no convolution by Winograd's algorithm */
    {"separate-gradients", "reduce", 0, NULL}, /* each step of a sequence has a weight gradient, which are then added */
    {"separate-sums", "sums", 0, NULL},        /* the products of a sum are operations of their own */
    {"streamlined", NULL, 0, "streamlined"},
    {"partitioned", NULL, 0, "partitioned"},
    {"chunked", NULL, 0, "chunked:16"},
    {"across", NULL, 0, "across"},
};

uint32_t rounding_with(uint32_t forms, int form)
{
    for (int i = 0; i < ROUNDING_FORMS; i++)
        if ((rounding_forms[form].conv_error > 0 && rounding_forms[i].conv_error > 0) ||
            (rounding_forms[form].sequences && rounding_forms[i].sequences))
            forms &= ~(UINT32_C(1) << i);
    return forms | UINT32_C(1) << form;
}

void rounding_passes(uint32_t forms, const char *disable, struct text *out)
{
    text_add(out, "%s", disable ? disable : "");
    for (int i = 0; i < ROUNDING_FORMS; i++)
        if (forms >> i & 1 && rounding_forms[i].passes)
            text_add(out, ",%s", rounding_forms[i].passes);
}

double rounding_conv_error(uint32_t forms, double asked)
{
    for (int i = 0; i < ROUNDING_FORMS; i++)
        if (forms >> i & 1 && rounding_forms[i].conv_error > 0)
            return rounding_forms[i].conv_error;
    return asked;
}

const char *rounding_sequences(uint32_t forms, const char *asked)
{
    for (int i = 0; i < ROUNDING_FORMS; i++)
        if (forms >> i & 1 && rounding_forms[i].sequences)
            return rounding_forms[i].sequences;
    return asked;
}

uint32_t rounding_alters(uint32_t forms)
{
    for (int i = 0; i < ROUNDING_FORMS; i++)
        if (rounding_forms[i].sequences)
            forms &= ~(UINT32_C(1) << i);
    return forms;
}

void rounding_names(uint32_t forms, const char *between, struct text *out)
{
    for (int i = 0, named = 0; i < ROUNDING_FORMS; i++)
        if (forms >> i & 1)
            text_add(out, "%s%s", named++ ? between : "", rounding_forms[i].name);
}

bool rounding_parse(const char *names, uint32_t *forms)
{
    uint32_t found = 0;
    for (bool more = *names; more;) {
        int form = 0;
        size_t size = strcspn(names, ",");
        while (form < ROUNDING_FORMS &&
               (strlen(rounding_forms[form].name) != size || strncmp(rounding_forms[form].name, names, size)))
            form++;
        if (form == ROUNDING_FORMS || found != (rounding_with(found, form) & ~(UINT32_C(1) << form)))
            return false;
        found = rounding_with(found, form);
        more = names[size] == ',';
        names += size + more;
    }
    *forms = found;
    return true;
}
