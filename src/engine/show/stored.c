/* SPDX-License-Identifier: Apache-2.0 */
/* Stored plans: what tuning found, as JSON: the setting, the curves, what was tried, forms that round otherwise, and
 * who they are for. The compiled form is not stored: compiling takes milliseconds and must fit this library. A file is
 * taken only when graph, machine, compile options and version are equal, and every field is checked: it may come from
 * anywhere. Usual size: 30 KB. */
#include "base/file.h"
#include "base/status.h"
#include "engine/cost/curve_json.h"
#include "engine/choose/planning.h"
#include "engine/cost/cost.h"
#include "engine/tune/race.h"
#include "engine/compile/rounding.h"
#include "engine/show/target.h"
#include "machine/machine.h"
#include "schedule/ring.h"
#include "schedule/policy.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "graphi-plan/8";

/* Integers of a setting: key, range, the request's value, what a value of the file makes of the request.
 * X(key, low, high, wrote, read) */
#define SETTING_FIELDS(X)                                                                                              \
    X(executors, 1, 65536, s.executors, setting->executors = (int)value)                                               \
    X(width, 1, 65536, s.width, setting->width = (int)value)                                                           \
    X(backward_executors, 0, 65536, s.backward_executors, setting->backward_executors = (int)value)                    \
    X(depth, 0, RING_DEPTH, s.depth, setting->depth = (int)value)                                                      \
    X(no_inline, 0, 1, s.inlining == GRAPHI_OFF, setting->inlining = value ? GRAPHI_OFF : GRAPHI_DEFAULT)              \
    X(light, -1, 1, s.light, setting->light = (graphi_choice)value)                                                    \
    X(uniform, 0, 1, s.uniform == GRAPHI_ON, setting->uniform = value ? GRAPHI_ON : GRAPHI_DEFAULT)                    \
    X(join, -1, 1, s.join, setting->join = (graphi_choice)value)                                                       \
    X(unpinned, 0, 1, s.pin == GRAPHI_OFF, setting->pin = value ? GRAPHI_OFF : GRAPHI_DEFAULT)

/* --- writing --- */

static void add_hash(struct text *text, const char *key, uint64_t hash)
{
    text_add(text, "  \"%s\": \"%016" PRIx64 "\",\n", key, hash);
}

enum { PARAMETER_KEY = 40 };

static const char *parameter_key(const char *name, char *key)
{
    snprintf(key, PARAMETER_KEY, "%s", name);
    for (char *c = key; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return key;
}

/* As the request that it is read as. */
static void add_setting(struct text *text, const graphi_decision *decision)
{
    const graphi_setting s = graphi_decision_setting(decision);
    graphi_policy_parameter_info p;
    char key[PARAMETER_KEY];
    text_add(text, "\"setting\": {\"policy\": \"%s\", \"driver\": %d", graphi_policy_name(s.policy), (int)s.driver);
    for (int i = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &p); i++)
        text_add(text, ", \"%s\": %" PRId64, parameter_key(p.name, key),
                 policy_heeds(&s, p.name) ? policy_parameter(&s, p.name) : p.usual);
#define X(key, low, high, wrote, read) text_add(text, ", \"" #key "\": %d", (int)(wrote));
    SETTING_FIELDS(X)
#undef X
    text_add(text, "}");
}

static void add_tried(struct text *text, const graphi_plan *plan)
{
    text_add(text, ",\n  \"tried\": [");
    for (size_t i = 0; i < plan->tried.count; i++) {
        const struct tried *t = &plan->tried.data[i];
        text_add(text, i ? ",\n    {" : "\n    {");
        add_setting(text, &t->setting);
        text_add(text, ", \"chosen\": %s, \"predicted_ns\": %.9g, \"ms\": [", t->chosen ? "true" : "false",
                 fmin(t->predicted_ns, MOST_NS));
        for (int k = 0; k < t->rounds; k++)
            text_add(text, k ? ", %.9g" : "%.9g", t->ms[k]);
        text_add(text, "]}");
    }
    text_add(text, "\n  ]");
}

/* One a class, or none. */
static void add_curves(struct text *text, const char *key, const struct compiled *c, const struct cost_curve *curves)
{
    text_add(text, ",\n  \"%s\": [", key);
    for (int32_t i = 0; curves && i < c->curves; i++) {
        text_add(text, i ? ",\n    " : "\n    ");
        curve_write(text, c->class_key[i], &curves[i]);
    }
    text_add(text, "\n  ]");
}

graphi_status graphi_plan_save(const graphi_plan *plan, const char *path)
{
    GIVEN(plan);
    const struct compiled *c = plan->compiled;
    struct text text = {0};
    text_add(&text, "{\n  \"schema\": \"%s\",\n  \"version\": \"%s\",\n", schema, graphi_version());
    add_hash(&text, "graph", c->graph_hash);
    add_hash(&text, "machine", machine_hash(plan->machine));
    add_hash(&text, "options", c->hash);
    target_write(&text, c, plan->machine);
    text_add(&text, "  \"rounding\": \"");
    rounding_names(c->rounding, ",", &text);
    text_add(&text, "\",\n");
    text_add(&text, "  \"operations\": %d,\n", (int)c->tasks);
    text_add(&text, "  ");
    add_setting(&text, &plan->setting);
    text_add(&text, ",\n");
    text_add(&text, "  \"measured\": %s,\n  \"measured_ns\": %.17g,\n", plan->measured ? "true" : "false",
             fmin(plan->measured_ns, MOST_NS));
    if (plan->others > 0)
        text_add(&text, "  \"others\": %.9g,\n  \"disturbed\": %d,\n", plan->others, plan->disturbed);
    text_add(&text, "  \"why\": ");
    text_add_json_string(&text, plan->why.data ? plan->why.data : "");
    add_curves(&text, "curves", c, plan->curves);
    add_curves(&text, "observed", c, plan->observed);
    add_tried(&text, plan);
    text_add(&text, "\n}\n");
    graphi_status status = text.broken ? fail_memory("plan", text.count) : file_replace(path, text.data, text.count);
    text_free(&text);
    return status;
}

/* --- reading --- */

/* GRAPHI_POLICIES: there is none of that name. */
static graphi_policy policy_named(const char *name)
{
    int i = 0;
    while (i < GRAPHI_POLICIES && strcmp(graphi_policy_name((graphi_policy)i), name) != 0)
        i++;
    return (graphi_policy)i;
}

/* One that there was not yet when the file was written has its usual value. */
static graphi_status read_parameters(const struct json_file *r, json_t *object, graphi_setting *setting)
{
    graphi_policy_parameter_info p;
    char key[PARAMETER_KEY];
    int64_t value;
    for (int i = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &p); i++) {
        if (!json_object_get(object, parameter_key(p.name, key)))
            continue;
        TRY(json_file_integer(r, object, key, p.low < 0 ? p.low : 0, p.high, &value)); /* 0: not given */
        if (value >= p.low && policy_heeds(setting, p.name))
            policy_set(setting, p.name, value);
    }
    return GRAPHI_OK;
}

/* That of the plan, or of an element of a list. */
static graphi_status read_setting(const struct json_file *r, const json_t *owner, graphi_setting *setting)
{
    json_t *object = json_object_get(owner, "setting");
    const char *policy = NULL;
    int64_t value;
    if (!json_is_object(object))
        return json_file_wrong(r, "setting", object, "an object");
    TRY(json_file_text(r, object, "policy", &policy));
    setting->policy = policy_named(policy);
    if (setting->policy == GRAPHI_POLICIES)
        return json_file_wrong(r, "policy", json_object_get(object, "policy"), "the name of a policy");
    TRY(json_file_integer(r, object, "driver", GRAPHI_DRIVER_AUTO, GRAPHI_DRIVERS - 1, &value));
    setting->driver = (graphi_driver)value;
    TRY(read_parameters(r, object, setting));
#define X(key, low, high, wrote, read)                                                                                 \
    TRY(json_file_integer(r, object, #key, low, high, &value));                                                        \
    read;
    SETTING_FIELDS(X)
#undef X
    return GRAPHI_OK;
}

/* By key: a curve of each class of the plan. */
static graphi_status read_curves(const struct json_file *r, const char *name, const struct compiled *c,
                                 struct cost_curve *curves)
{
    json_t *list = json_object_get(r->root, name);
    if (!json_is_array(list) || json_array_size(list) != (size_t)c->curves) {
        char expected[64];
        snprintf(expected, sizeof expected, "a list of %d curves", (int)c->curves);
        return json_file_wrong(r, name, list, expected);
    }
    for (int32_t i = 0; i < c->curves; i++) {
        const struct json_file at = {.path = r->path, .root = r->root, .list = name, .index = (size_t)i};
        uint64_t key;
        TRY(curve_read(&at, json_array_get(list, (size_t)i), &key, &curves[i]));
        if (key != c->class_key[i])
            return fail(GRAPHI_REFUSED, r->path,
                        "found the curve of another kernel for class %d, expected this build's", (int)i);
    }
    return GRAPHI_OK;
}

/* Beside curves that a model predicts those that it took the place of; an empty list where none does. */
static graphi_status read_observed(const struct json_file *r, const struct compiled *c, struct cost_curve *observed,
                                   bool *any)
{
    json_t *list = json_object_get(r->root, "observed");
    *any = !json_is_array(list) || json_array_size(list) > 0;
    return *any ? read_curves(r, "observed", c, observed) : GRAPHI_OK;
}

static graphi_status read_times(const struct json_file *at, const json_t *list, double ms[RACE_ROUNDS], int *count)
{
    static const double least_ms = 1e-6; /* they are divided by */
    if (!json_is_array(list) || json_array_size(list) > RACE_ROUNDS)
        return json_file_wrong(at, "ms", list, "a list of at most as many times as a race has rounds");
    *count = (int)json_array_size(list);
    for (int i = 0; i < *count; i++)
        if (!json_file_number(json_array_get(list, (size_t)i), least_ms, &ms[i]))
            return json_file_wrong(at, "ms", json_array_get(list, (size_t)i), "a time");
    return GRAPHI_OK;
}

/* What was tried; files of earlier versions do not say. */
static graphi_status read_tried(const struct json_file *r, graphi_plan *plan)
{
    const json_t *list = json_object_get(r->root, "tried");
    if (!list)
        return GRAPHI_OK;
    if (!json_is_array(list))
        return json_file_wrong(r, "tried", list, "a list of settings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct json_file at = {.path = r->path, .root = r->root, .list = "tried", .index = i};
        const json_t *object = json_array_get(list, i), *predicted = json_object_get(object, "predicted_ns");
        double ms[RACE_ROUNDS];
        struct tried tried = {.ms = ms, .chosen = json_is_true(json_object_get(object, "chosen"))};
        if (!json_is_boolean(json_object_get(object, "chosen")))
            return json_file_wrong(&at, "chosen", json_object_get(object, "chosen"), "true or false");
        graphi_setting setting = {0};
        TRY(read_setting(&at, object, &setting));
        tried.setting = setting_decision(&setting);
        if (!json_file_number(predicted, 0, &tried.predicted_ns))
            return json_file_wrong(&at, "predicted_ns", predicted, "a number that is not negative");
        TRY(read_times(&at, json_object_get(object, "ms"), ms, &tried.rounds));
        TRY(tried_add(plan, &tried));
    }
    return GRAPHI_OK;
}

/* Only in files of plans that were tuned beside others. */
static graphi_status read_others(const struct json_file *r, double *others, int *disturbed)
{
    const json_t *share = json_object_get(r->root, "others");
    int64_t times = 0;
    if (!share)
        return GRAPHI_OK;
    if (!json_file_number(share, 0, others) || *others > 1)
        return json_file_wrong(r, "others", share, "a share of the cores");
    TRY(json_file_integer(r, r->root, "disturbed", 0, INT_MAX, &times));
    *disturbed = (int)times;
    return GRAPHI_OK;
}

static graphi_status check_fit(const struct json_file *r, const struct compiled *c)
{
    int64_t operations;
    TRY(json_file_expect(r, "version", graphi_version()));
    TRY(target_check(r, c));
    return json_file_integer(r, r->root, "operations", c->tasks, c->tasks, &operations);
}

/* Before anything is compiled: a plan that gives other bits is taken only where that was allowed. */
static graphi_status read_rounding(const struct json_file *r, const graphi_plan_options *options, uint32_t *out)
{
    const char *names = NULL;
    TRY(json_file_expect(r, "schema", schema));
    TRY(json_file_text(r, r->root, "rounding", &names));
    if (!rounding_parse(names, out))
        return json_file_wrong(r, "rounding", json_object_get(r->root, "rounding"),
                               "names of forms, separated by commas");
    if (!rounding_alters(*out) || (options && options->allow_rounding))
        return GRAPHI_OK;
    return fail(GRAPHI_REFUSED, r->path,
                "found a plan that rounds otherwise (%.100s), expected options that allow rounding beside it", names);
}

static graphi_status apply(const struct json_file *r, const graphi_plan *fresh, graphi_plan **out)
{
    const struct compiled *c = fresh->compiled;
    graphi_setting setting = {0};
    double measured_ns, others = 0;
    int disturbed = 0;
    bool any = false;
    const char *why = NULL;
    graphi_plan *plan = NULL;
    TRY(check_fit(r, c));
    TRY(read_setting(r, r->root, &setting));
    if (fresh->setting.must_pin) /* of this process, not of the plan */
        setting.pin = GRAPHI_ON;
    TRY(json_file_text(r, r->root, "why", &why));
    const json_t *step_ns = json_object_get(r->root, "measured_ns"), *measured = json_object_get(r->root, "measured");
    if (!json_file_number(step_ns, 0, &measured_ns))
        return json_file_wrong(r, "measured_ns", step_ns, "a number that is not negative");
    if (!json_is_boolean(measured))
        return json_file_wrong(r, "measured", measured, "true or false");
    TRY(read_others(r, &others, &disturbed));
    struct cost_curve *curves = mem_zalloc_array(2 * ((size_t)c->curves + 1), sizeof *curves);
    if (!curves)
        return fail_memory("plan", 2 * (size_t)c->curves * sizeof *curves);
    struct cost_curve *observed = curves + c->curves;
    graphi_status status = read_curves(r, "curves", c, curves);
    if (!status)
        status = read_observed(r, c, observed, &any);
    const struct plan_parts parts = {.machine = fresh->machine,
                                     .curves = curves,
                                     .observed = any ? observed : NULL,
                                     .measured = json_is_true(measured),
                                     .setting = &setting};
    if (!status)
        status = plan_make(fresh->compiled, &parts, &plan);
    mem_free(curves);
    if (status == GRAPHI_USAGE)
        return json_file_wrong(r, "setting", json_object_get(r->root, "setting"),
                               "executors and widths that fit the machine");
    if (!status)
        status = read_tried(r, plan);
    if (status) {
        graphi_plan_destroy(plan);
        return status;
    }
    plan->measured_ns = measured_ns;
    plan->others = others;
    plan->disturbed = disturbed;
    text_free(&plan->why);
    text_add(&plan->why, "stored plan %s:\n%s", r->path, why);
    *out = plan;
    return GRAPHI_OK;
}

graphi_status graphi_plan_load(const graphi_graph *graph, const graphi_machine *machine,
                               const graphi_plan_options *options, const char *path, graphi_plan **out)
{
    GIVEN(graph);
    GIVEN(machine);
    GIVEN(out);
    struct json_file file;
    graphi_plan *fresh;
    uint32_t rounding = 0;
    TRY(json_file_open(path, &file));
    graphi_status status = read_rounding(&file, options, &rounding);
    if (!status)
        status = plan_compile(graph, machine, options, rounding, &fresh);
    if (!status) {
        status = apply(&file, fresh, out);
        graphi_plan_destroy(fresh);
    }
    json_file_close(&file);
    return status;
}
