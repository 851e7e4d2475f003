/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of values (form.h). Any thread. */
#include "flow/form.h"

#include "base/memory.h"
#include "base/status.h"

#include <string.h>

static bool small(const graphi_tensor *value)
{
    return value->kind == GRAPHI_KIND_TENSOR && value->count <= FORM_CONTENT_MOST;
}

graphi_status form_of(const graphi_tensor *value, int number, bool asked, struct form *out)
{
    *out = (struct form){.number = number, .given = value != NULL, .asked = asked};
    if (!value)
        return GRAPHI_OK;
    out->kind = value->kind;
    if (value->kind != GRAPHI_KIND_TENSOR)
        return GRAPHI_OK;
    out->type = value->type;
    out->rank = value->rank;
    memcpy(out->dims, value->dims, (size_t)value->rank * sizeof *out->dims);
    if (!asked || !small(value))
        return GRAPHI_OK;
    TRY(value_new("plan", value->type, value->rank, value->dims, &out->content));
    memcpy(out->content->data, value->data, value->bytes);
    return GRAPHI_OK;
}

bool form_fits(const struct form *form, const graphi_tensor *value)
{
    if (!value || !form->given)
        return !value && !form->given;
    if (value->kind != form->kind)
        return false;
    return value->kind != GRAPHI_KIND_TENSOR ||
           (value->type == form->type && value->rank == form->rank &&
            memcmp(value->dims, form->dims, (size_t)form->rank * sizeof *form->dims) == 0);
}

bool form_holds(const struct form *form, const graphi_tensor *value)
{
    return form_fits(form, value) && (!form->content || memcmp(form->content->data, value->data, value->bytes) == 0);
}

void form_list_free(struct form *forms, size_t count)
{
    for (size_t i = 0; forms && i < count; i++)
        value_drop(forms[i].content);
    mem_free(forms);
}
