/* SPDX-License-Identifier: Apache-2.0 */
/* Stored plans (B4): what tuning found, as JSON: the setting, the curves, forms that round otherwise, and who they are for. The
 * compiled form is not stored: compiling takes milliseconds and must fit this library. A file is taken only when graph, machine, compile options and version
 * are equal, and every field is checked: it may come from anywhere. Usual size: 20 KB. */
#include "base/file.h"
#include "base/status.h"
#include "engine/plan.h"
#include "engine/rounding.h"
#include "machine/machine.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "graphi-plan/4";
enum { MOST_BYTES = 64 << 20 };

/* Integers of a setting: name, field, range. X(name, low, high) */
#define SETTING_FIELDS(X)                                                                                              \
    X(executors, 1, 65536)                                                                                             \
    X(width, 1, 65536)                                                                                                 \
    X(backward_executors, 0, 65536)                                                                                    \
    X(depth, 0, 65536)                                                                                                 \
    X(no_inline, 0, 1)                                                                                                 \
    X(light, -1, 1)                                                                                                    \
    X(candidates, 0, 65536)                                                                                            \
    X(tolerance, 0, 65536)                                                                                             \
    X(unpinned, 0, 1)

/* --- writing ------------------------------------------------------------------------------------------------------------- */

static void add_hash(struct text *text, const char *key, uint64_t hash)
{
    text_add(text, "  \"%s\": \"%016" PRIx64 "\",\n", key, hash);
}

static void add_setting(struct text *text, const graphi_setting *s)
{
    text_add(text, "  \"setting\": {\"policy\": \"%s\", \"driver\": %d, \"seed\": %" PRId64, graphi_policy_name(s->policy),
             (int)s->driver, (int64_t)(s->seed & INT64_MAX));
#define X(name, low, high) text_add(text, ", \"" #name "\": %d", (int)s->name);
    SETTING_FIELDS(X)
#undef X
    text_add(text, "},\n");
}

static void add_numbers(struct text *text, const char *key, const double *number, int count)
{
    text_add(text, "\"%s\": [", key);
    for (int i = 0; i < count; i++)
        text_add(text, "%s%.17g", i ? ", " : "", fmin(number[i], MOST_NS)); /* never "inf", which is no JSON */
    text_add(text, "]");
}

static void add_curve(struct text *text, const struct cost_curve *curve)
{
    double width[CURVE_SAMPLES];
    for (int i = 0; i < curve->samples; i++)
        width[i] = curve->width[i];
    text_add(text, "{");
    add_numbers(text, "width", width, curve->samples);
    text_add(text, ", ");
    add_numbers(text, "ns", curve->ns, curve->samples);
    text_add(text, ", ");
    add_numbers(text, "spread_ns", curve->spread_ns, curve->samples);
    text_add(text, ", \"last\": %d, \"spread_last\": %d, \"beside\": %.17g, \"in_order\": %.17g, \"measured\": %s}", curve->last,
             curve->spread_last, curve->beside, curve->in_order, curve->measured ? "true" : "false");
}

graphi_status graphi_plan_save(const graphi_plan *plan, const char *path)
{
    const struct compiled *c = plan->compiled;
    struct text text = {0};
    text_add(&text, "{\n  \"schema\": \"%s\",\n  \"version\": \"%s\",\n", schema, graphi_version());
    add_hash(&text, "graph", c->graph_hash);
    add_hash(&text, "machine", c->machine_hash);
    add_hash(&text, "options", c->hash);
    text_add(&text, "  \"rounding\": \"");
    rounding_names(c->rounding, ",", &text);
    text_add(&text, "\",\n");
    text_add(&text, "  \"operations\": %d,\n", (int)c->tasks);
    add_setting(&text, &plan->setting);
    text_add(&text, "  \"measured\": %s,\n  \"measured_ns\": %.17g,\n", plan->measured ? "true" : "false",
             fmin(plan->measured_ns, MOST_NS));
    text_add(&text, "  \"why\": ");
    text_add_json_string(&text, plan->why.data ? plan->why.data : "");
    text_add(&text, ",\n  \"curves\": [");
    for (int32_t i = 0; i < c->curves; i++) {
        text_add(&text, i ? ",\n    " : "\n    ");
        add_curve(&text, &plan->curves[i]);
    }
    text_add(&text, "\n  ]\n}\n");
    graphi_status status = text.broken ? fail_memory("plan", text.count) : file_replace(path, text.data, text.count);
    text_free(&text);
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------------- */

struct reader {
    const char *path;
    json_t *root;
};

static graphi_status wrong(const struct reader *r, const char *key, const char *expected)
{
    char where[512];
    snprintf(where, sizeof where, "%.400s: key \"%s\"", r->path, key);
    return fail(GRAPHI_INVALID, where, "found none or another kind of value, expected %s", expected);
}

static graphi_status read_text(const struct reader *r, json_t *object, const char *key, const char **out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return wrong(r, key, "a text");
    *out = json_string_value(value);
    return GRAPHI_OK;
}

static graphi_status read_integer(const struct reader *r, json_t *object, const char *key, int64_t low, int64_t high,
                                  int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    char expected[96];
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, low, high);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return wrong(r, key, expected);
    *out = json_integer_value(value);
    return GRAPHI_OK;
}

/* A finite number from `low`. */
static bool number_of(const json_t *value, double low, double *out)
{
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= low && *out <= MOST_NS;
}

/* 0, which an absent one is too, or what class_factors gives. */
static bool factor_of(const json_t *value, double *out)
{
    return !value || (number_of(value, 0, out) && (*out == 0 || (*out >= 0.8 && *out <= 4)));
}

static graphi_status read_setting(const struct reader *r, graphi_setting *setting)
{
    json_t *object = json_object_get(r->root, "setting");
    const char *policy = NULL;
    int64_t value;
    if (!json_is_object(object))
        return wrong(r, "setting", "an object");
    TRY(read_text(r, object, "policy", &policy));
    if (graphi_policy_parse(policy, &setting->policy) != GRAPHI_OK)
        return wrong(r, "policy", "the name of a policy");
    TRY(read_integer(r, object, "driver", GRAPHI_DRIVER_AUTO, GRAPHI_DRIVER_COMBINING, &value));
    setting->driver = (graphi_driver)value;
    TRY(read_integer(r, object, "seed", 0, INT64_MAX, &value));
    setting->seed = (uint64_t)value;
#define X(name, low, high)                                                                                             \
    TRY(read_integer(r, object, #name, low, high, &value));                                                            \
    setting->name = value;
    SETTING_FIELDS(X)
#undef X
    return GRAPHI_OK;
}

static graphi_status read_curve(const struct reader *r, json_t *object, struct cost_curve *curve)
{
    json_t *width = json_object_get(object, "width"), *ns = json_object_get(object, "ns"),
           *spread = json_object_get(object, "spread_ns");
    size_t count = json_array_size(width), most = sizeof curve->width / sizeof *curve->width;
    if (count < 1 || count > most || json_array_size(ns) != count || json_array_size(spread) != count)
        return wrong(r, "curves", "lists \"width\", \"ns\" and \"spread_ns\" of equal length, 1 to 72");
    for (size_t i = 0; i < count; i++) {
        double w, before = i ? curve->width[i - 1] : 0;
        if (!number_of(json_array_get(width, i), 1, &w) || w > 65536 || w != floor(w) || w <= before || (i == 0 && w != 1))
            return wrong(r, "curves", "ascending whole widths that start at 1");
        if (!number_of(json_array_get(ns, i), 0, &curve->ns[i]) || !number_of(json_array_get(spread, i), 0, &curve->spread_ns[i]))
            return wrong(r, "curves", "durations from 0 to 1e14 ns");
        curve->width[i] = (int)w;
        curve->samples++;
        if (i == 0 || curve->ns[i] < curve_ns(curve, curve->best))
            curve->best = (int)w;
    }
    curve->measured = json_is_true(json_object_get(object, "measured"));
    double last;
    if (number_of(json_object_get(object, "last"), 0, &last) && last <= 65536)
        curve->last = (int)last;
    if (number_of(json_object_get(object, "spread_last"), 0, &last) && last <= 65536)
        curve->spread_last = (int)last;
    if (!factor_of(json_object_get(object, "beside"), &curve->beside) || !factor_of(json_object_get(object, "in_order"), &curve->in_order))
        return wrong(r, "curves", "factors \"beside\" and \"in_order\" of 0 or 0.8 to 4");
    return GRAPHI_OK;
}

static graphi_status read_curves(const struct reader *r, const struct compiled *c, struct cost_curve *curves)
{
    json_t *list = json_object_get(r->root, "curves");
    if (!json_is_array(list) || json_array_size(list) != (size_t)c->curves) {
        char expected[64];
        snprintf(expected, sizeof expected, "a list of %d curves", (int)c->curves);
        return wrong(r, "curves", expected);
    }
    for (int32_t i = 0; i < c->curves; i++)
        TRY(read_curve(r, json_array_get(list, (size_t)i), &curves[i]));
    return GRAPHI_OK;
}

static graphi_status check_word(const struct reader *r, const char *key, const char *expected)
{
    const char *found = NULL;
    char where[512];
    TRY(read_text(r, r->root, key, &found));
    if (strcmp(found, expected) == 0)
        return GRAPHI_OK;
    snprintf(where, sizeof where, "%.400s", r->path);
    return fail(GRAPHI_REFUSED, where, "found a plan for %s %.100s, expected %s", key, found, expected);
}

static graphi_status check_hash(const struct reader *r, const char *key, uint64_t expected)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, expected);
    return check_word(r, key, text);
}

static graphi_status check_fit(const struct reader *r, const struct compiled *c)
{
    int64_t operations;
    TRY(check_word(r, "version", graphi_version()));
    TRY(check_hash(r, "graph", c->graph_hash));
    TRY(check_hash(r, "machine", c->machine_hash));
    TRY(check_hash(r, "options", c->hash));
    return read_integer(r, r->root, "operations", c->tasks, c->tasks, &operations);
}

/* Before anything is compiled: a plan that gives other bits is taken only where that was allowed. */
static graphi_status read_rounding(const struct reader *r, const graphi_plan_options *options, uint32_t *out)
{
    const char *names = NULL;
    if (!json_is_object(r->root))
        return fail(GRAPHI_INVALID, r->path, "found something else, expected a JSON object");
    TRY(check_word(r, "schema", schema));
    TRY(read_text(r, r->root, "rounding", &names));
    if (!rounding_parse(names, out))
        return wrong(r, "rounding", "names of forms, separated by commas");
    if (!*out || (options && options->allow_rounding))
        return GRAPHI_OK;
    return fail(GRAPHI_REFUSED, r->path, "found a plan that rounds otherwise (%.100s), expected --allow-rounding beside it", names);
}

static graphi_status apply(const struct reader *r, const graphi_plan *fresh, graphi_plan **out)
{
    const struct compiled *c = fresh->compiled;
    graphi_setting setting = {0};
    double measured_ns;
    const char *why = NULL;
    TRY(check_fit(r, c));
    TRY(read_setting(r, &setting));
    setting.must_pin = fresh->setting.must_pin; /* of this process, not of the plan */
    TRY(read_text(r, r->root, "why", &why));
    if (!number_of(json_object_get(r->root, "measured_ns"), 0, &measured_ns))
        return wrong(r, "measured_ns", "a number that is not negative");
    struct cost_curve *curves = mem_zalloc_array((size_t)c->curves + 1, sizeof *curves);
    if (!curves)
        return fail_memory("plan", (size_t)c->curves * sizeof *curves);
    graphi_status status = read_curves(r, c, curves);
    if (!status)
        status = plan_over(fresh->compiled, fresh->machine, curves, json_is_true(json_object_get(r->root, "measured")),
                           &setting, out);
    mem_free(curves);
    if (status == GRAPHI_USAGE)
        return wrong(r, "setting", "executors and widths that fit the machine");
    if (!status) {
        (*out)->measured_ns = measured_ns;
        text_free(&(*out)->why);
        text_add(&(*out)->why, "stored plan %s:\n%s", r->path, why);
    }
    return status;
}

graphi_status graphi_plan_load(const graphi_graph *graph, const graphi_machine *machine, const graphi_plan_options *options,
                               const char *path, graphi_plan **out)
{
    void *data;
    size_t size;
    json_error_t error;
    graphi_plan *fresh;
    TRY(file_read(path, MOST_BYTES, &data, &size));
    struct reader reader = {.path = path, .root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error)};
    mem_free(data);
    if (!reader.root) {
        char where[512];
        snprintf(where, sizeof where, "%.400s, line %d", path, error.line);
        return fail(GRAPHI_INVALID, where, "found %s, expected JSON", error.text);
    }
    uint32_t rounding = 0;
    graphi_status status = read_rounding(&reader, options, &rounding);
    if (!status)
        status = plan_compile(graph, machine, options, rounding, &fresh);
    if (!status) {
        status = apply(&reader, fresh, out);
        graphi_plan_destroy(fresh);
    }
    json_decref(reader.root);
    return status;
}
