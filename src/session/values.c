/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the public API from and to files, and how two differ. Any thread. */
#include "onnx/tensor.h"
#include "value/element.h"
#include "value/npy.h"

#include "base/file.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), more = strlen(end);
    return length >= more && strcmp(path + length - more, end) == 0;
}

graphi_status graphi_tensor_load(const char *path, const char *name, const char *kind, graphi_tensor **out)
{
    GIVEN(out);
    TRY(file_check_path(path));
    if (ends_in(path, ".pb"))
        return onnx_value_load(path, kind, out);
    if (!ends_in(path, ".npz"))
        return npy_value_load(path, out);
    return name ? npz_value_load(path, name, out)
                : fail(GRAPHI_INVALID, path, "found no name of a member, expected one of the archive's");
}

graphi_status graphi_tensor_save(const graphi_tensor *value, const char *path)
{
    GIVEN(value);
    TRY(file_check_path(path));
    return npy_value_save(value, path);
}

static graphi_status differ_in_form(const graphi_tensor *found, const graphi_tensor *expected)
{
    struct value_text a, b;
    return fail(GRAPHI_MISSED, "compare", "found %s, expected %s", value_describe(found, &a),
                value_describe(expected, &b));
}

static bool agree(double a, double b, double rtol, double atol)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= atol + rtol * fabs(b);
}

static graphi_status compare_tensors(const graphi_tensor *found, const graphi_tensor *expected, double rtol,
                                     double atol)
{
    struct value_text text;
    if (found->type != expected->type || found->rank != expected->rank ||
        memcmp(found->dims, expected->dims, (size_t)found->rank * sizeof *found->dims) != 0)
        return differ_in_form(found, expected);
    const bool floats = element_is_float(found->type);
    for (int64_t i = 0; i < found->count; i++) {
        const double a = value_double(found, i), b = value_double(expected, i);
        if (floats ? !agree(a, b, rtol, atol)
                   : value_int(found, i) != value_int(expected, i) && !agree(a, b, rtol, atol))
            return fail(GRAPHI_MISSED, "compare", "found %.9g at element %lld of %s, expected %.9g", a, (long long)i,
                        value_describe(found, &text), b);
    }
    return GRAPHI_OK;
}

graphi_status graphi_tensor_compare(const graphi_tensor *found, const graphi_tensor *expected, double rtol, double atol)
{
    GIVEN(found);
    GIVEN(expected);
    if (found->kind != expected->kind)
        return differ_in_form(found, expected);
    if (found->kind == GRAPHI_KIND_NOTHING)
        return GRAPHI_OK;
    if (found->kind == GRAPHI_KIND_TENSOR)
        return compare_tensors(found, expected, rtol, atol);
    if (found->count != expected->count)
        return differ_in_form(found, expected);
    for (int64_t i = 0; i < found->count; i++)
        TRY(graphi_tensor_compare(found->items[i], expected->items[i], rtol, atol)); /* a few levels deep */
    return GRAPHI_OK;
}
