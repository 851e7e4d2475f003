/* SPDX-License-Identifier: Apache-2.0 */
/* A cost curve as JSON, in stored plans and in files of curves alike: key, where it comes from, times at ascending
 * widths. What is read is as sound as what was measured here, or refused. Usual size: 200 bytes on two cores, 2 KB
 * on 68. */
#include "engine/cost/curve_json.h"

#include "base/status.h"
#include "engine/cost/cost.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_numbers(struct text *text, const char *key, const double *number, int count)
{
    text_add(text, "\"%s\": [", key);
    for (int i = 0; i < count; i++)
        text_add(text, "%s%.17g", i ? ", " : "", fmin(number[i], MOST_NS)); /* never "inf", which is no JSON */
    text_add(text, "], ");
}

void curve_write(struct text *text, uint64_t key, const struct cost_curve *curve)
{
    double width[CURVE_SAMPLES];
    for (int i = 0; i < curve->samples; i++)
        width[i] = curve->width[i];
    text_add(text, "{\"key\": \"%016" PRIx64 "\", \"source\": \"%s\", \"model\": ", key,
             curve_source_name(curve->source));
    text_add_json_string(text, curve->model);
    text_add(text, ", ");
    add_numbers(text, "width", width, curve->samples);
    add_numbers(text, "ns", curve->ns, curve->samples);
    add_numbers(text, "spread_ns", curve->spread_ns, curve->samples);
    add_numbers(text, "moved", curve->moved, 2);
    text_add(text, "\"interval\": %d, \"last\": %d, \"spread_last\": %d, \"beside\": %.17g, \"in_order\": %.17g",
             curve->interval, curve->last, curve->spread_last, curve->beside, curve->in_order);
    text_add(text, curve->disturbed ? ", \"disturbed\": true}" : "}");
}

static graphi_status read_source(const struct json_file *r, json_t *object, struct cost_curve *curve)
{
    const char *word = NULL, *model = NULL;
    int source = 0;
    TRY(json_file_text(r, object, "source", &word));
    while (source < GRAPHI_CURVE_SOURCES && strcmp(curve_source_name((graphi_curve_source)source), word) != 0)
        source++;
    if (source == GRAPHI_CURVE_SOURCES)
        return json_file_wrong(r, "source", json_object_get(object, "source"),
                               "modelled, measured, stored or predicted");
    curve->source = (graphi_curve_source)source;
    TRY(json_file_text(r, object, "model", &model));
    bool named = curve->source == GRAPHI_CURVE_PREDICTED;
    if (strlen(model) >= sizeof curve->model || named != (*model != 0))
        return json_file_wrong(r, "model", json_object_get(object, "model"),
                               "a name of at most 31 bytes of what predicted the curve, none where nothing did");
    snprintf(curve->model, sizeof curve->model, "%s", model);
    return GRAPHI_OK;
}

static graphi_status read_list(const struct json_file *r, json_t *object, const char *key, size_t count,
                               const char *what, json_t **out)
{
    char expected[64];
    *out = json_object_get(object, key);
    if (json_is_array(*out) && json_array_size(*out) == count)
        return GRAPHI_OK;
    snprintf(expected, sizeof expected, "a list of %zu %s", count, what);
    return json_file_wrong(r, key, *out, expected);
}

static graphi_status read_compact(const struct json_file *r, const json_t *value, double *out)
{
    return json_file_number(value, LEAST_NS, out) ? GRAPHI_OK
                                                  : json_file_wrong(r, "ns", value, "durations from 1 to 1e14 ns");
}

static graphi_status read_spread(const struct json_file *r, const json_t *value, double *out)
{
    if (json_file_number(value, 0, out) && (*out == 0 || *out >= LEAST_NS))
        return GRAPHI_OK;
    return json_file_wrong(r, "spread_ns", value, "durations from 1 to 1e14 ns, 0 where none was measured");
}

static graphi_status read_samples(const struct json_file *r, json_t *object, struct cost_curve *curve)
{
    json_t *width = json_object_get(object, "width"), *ns, *spread;
    static const char each[] = "durations, one for each \"width\"";
    size_t count = json_array_size(width);
    if (count < 1 || count > CURVE_SAMPLES)
        return json_file_wrong(r, "width", width, "a list of 1 to 72 widths");
    TRY(read_list(r, object, "ns", count, each, &ns));
    TRY(read_list(r, object, "spread_ns", count, each, &spread));
    for (size_t i = 0; i < count; i++) {
        double w, before = i ? curve->width[i - 1] : 0;
        if (!json_file_number(json_array_get(width, i), 1, &w) || w > 65536 || w != floor(w) || w <= before ||
            (i == 0 && w != 1))
            return json_file_wrong(r, "width", json_array_get(width, i), "ascending whole widths that start at 1");
        TRY(read_compact(r, json_array_get(ns, i), &curve->ns[i]));
        TRY(read_spread(r, json_array_get(spread, i), &curve->spread_ns[i]));
        curve->width[i] = (int)w;
        curve->samples++;
        if (i == 0 || curve->ns[i] < curve_ns(curve, curve->best))
            curve->best = (int)w;
    }
    return GRAPHI_OK;
}

/* 0, or what class_factors gives. */
static graphi_status read_factor(const struct json_file *r, const char *key, const json_t *value, double most,
                                 double *out)
{
    char expected[64];
    if (json_file_number(value, 0, out) && (*out == 0 || (*out >= 0.8 && *out <= most)))
        return GRAPHI_OK;
    snprintf(expected, sizeof expected, "0 or a factor from 0.8 to %g", most);
    return json_file_wrong(r, key, value, expected);
}

/* Not there: false. */
static graphi_status read_disturbed(const struct json_file *r, json_t *object, struct cost_curve *curve)
{
    const json_t *value = json_object_get(object, "disturbed");
    curve->disturbed = json_is_true(value);
    return !value || json_is_boolean(value) ? GRAPHI_OK
                                            : json_file_wrong(r, "disturbed", value, "true or false, or nothing");
}

/* Files that do not know of it have none. */
static graphi_status read_moved(const struct json_file *r, json_t *object, struct cost_curve *curve)
{
    json_t *list;
    if (!json_object_get(object, "moved"))
        return GRAPHI_OK;
    TRY(read_list(r, object, "moved", 2, "factors", &list));
    for (size_t i = 0; i < 2; i++)
        TRY(read_factor(r, "moved", json_array_get(list, i), MOST_MOVED, &curve->moved[i]));
    return GRAPHI_OK;
}

graphi_status curve_read(const struct json_file *r, json_t *object, uint64_t *key, struct cost_curve *curve)
{
    int64_t interval, last, spread_last;
    *curve = (struct cost_curve){0};
    TRY(json_file_hash(r, object, "key", key));
    TRY(read_source(r, object, curve));
    TRY(read_samples(r, object, curve));
    TRY(json_file_integer(r, object, "interval", 0, 65536, &interval));
    TRY(json_file_integer(r, object, "last", 0, 65536, &last));
    TRY(json_file_integer(r, object, "spread_last", 0, 65536, &spread_last));
    curve->interval = (int)interval;
    curve->last = (int)last;
    curve->spread_last = (int)spread_last;
    TRY(read_factor(r, "beside", json_object_get(object, "beside"), MOST_LONGER, &curve->beside));
    TRY(read_factor(r, "in_order", json_object_get(object, "in_order"), MOST_LONGER, &curve->in_order));
    TRY(read_disturbed(r, object, curve));
    return read_moved(r, object, curve);
}
