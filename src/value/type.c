/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes of element types: a table made of the public list. Any thread. */
#include "value/type.h"

static const struct {
    const char *name;
    size_t size;
} elements[] = {
#define X(name, number, bytes, text) [number] = {text, bytes},
    GRAPHI_ELEMENT_LIST(X)
#undef X
};
enum { ELEMENTS = sizeof elements / sizeof *elements };

const char *graphi_element_name(graphi_element element)
{
    return (unsigned)element < ELEMENTS && elements[element].name ? elements[element].name : "no element type";
}

size_t element_size(graphi_element type)
{
    return (unsigned)type < ELEMENTS ? elements[type].size : 0;
}

bool element_is_float(graphi_element type)
{
    switch (type) {
    case GRAPHI_ELEMENT_UINT4:
    case GRAPHI_ELEMENT_INT4:
    case GRAPHI_ELEMENT_UINT2:
    case GRAPHI_ELEMENT_INT2:
        return false;
    default:
        return type == T_F32 || type == T_F64 || type == T_F16 || type >= T_BF16;
    }
}
