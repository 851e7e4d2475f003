/* SPDX-License-Identifier: Apache-2.0 */
/* Results that were stored earlier. A file may come from anywhere: whatever the table and the picture read is looked at
 * first, so that they need not. */
#include "tool/report.h"
#include "tool/result.h"

#include <errno.h>
#include <string.h>

static int check_row(json_t *row, json_error_t *error)
{
    json_t *time = json_object_get(row, "time_ms"), *ratio = json_object_get(row, "ratio");
    int bad =
        json_unpack_ex(row, error, JSON_VALIDATE_ONLY, "{s:s,s:s,s:b,s:s}", "id", "engine", "simulated", "reason");
    if (!bad && time && !json_is_null(time))
        bad = json_unpack_ex(time, error, JSON_VALIDATE_ONLY, "{s:F,s:F,s:F}", "median", "p25", "p75");
    if (!bad && ratio && !json_is_null(ratio))
        bad = json_unpack_ex(ratio, error, JSON_VALIDATE_ONLY, "{s:s,s:F,s:F,s:F}", "against", "median", "low", "high");
    return bad;
}

static int check_goal(json_t *goal, json_error_t *error)
{
    return json_unpack_ex(goal, error, JSON_VALIDATE_ONLY, "{s:s,s:F,s:F,s:b}", "name", "value", "goal", "met");
}

static int check_text(json_t *text, json_error_t *error)
{
    return json_unpack_ex(text, error, JSON_VALIDATE_ONLY, "s");
}

/* 0 if what the table and the picture read has the types of docs/results-schema.md. */
static int check(json_t *root, json_error_t *error)
{
    static const struct {
        const char *key;
        int (*item)(json_t *item, json_error_t *error);
    } arrays[] = {{"rows", check_row}, {"goals", check_goal}, {"notes", check_text}, {"files", check_text}};
    const char *schema = "";
    int bad = json_unpack_ex(root, error, 0, "{s:s}", "schema", &schema);
    if (!bad && strcmp(schema, "graphi-result/1") != 0) {
        snprintf(error->text, sizeof error->text, "schema '%.40s'", schema);
        return -1;
    }
    if (!bad)
        bad = json_unpack_ex(root, error, JSON_VALIDATE_ONLY, "{s:s}", "command");
    json_t *machine = json_object_get(root, "machine"), *item;
    if (!bad && machine && !json_is_null(machine))
        bad = json_unpack_ex(machine, error, JSON_VALIDATE_ONLY, "{s:s,s:i,s:s}", "cpu", "cores", "isa");
    for (size_t a = 0; !bad && a < sizeof arrays / sizeof *arrays; a++) {
        json_t *array = json_object_get(root, arrays[a].key);
        size_t index;
        if (!json_is_array(array)) {
            snprintf(error->text, sizeof error->text, "no array '%s'", arrays[a].key);
            return -1;
        }
        json_array_foreach(array, index, item)
            if (!bad)
                bad = arrays[a].item(item, error);
    }
    return bad;
}

graphi_status result_read(const char *file, json_t **out)
{
    json_error_t error = {0};
    json_t *root = json_load_file(file, 0, &error);
    if (!root && json_error_code(&error) == json_error_cannot_open_file)
        return report_error(GRAPHI_IO, file, "found no readable file (%s), expected a result", strerror(errno));
    if (!root)
        return report_error(GRAPHI_INVALID, file, "found %s in line %d, expected JSON", error.text, error.line);
    if (check(root, &error) == 0) {
        *out = root;
        return GRAPHI_OK;
    }
    json_decref(root);
    return report_error(GRAPHI_INVALID, file, "found %s, expected a result (docs/results-schema.md)", error.text);
}
