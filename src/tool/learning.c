/* SPDX-License-Identifier: Apache-2.0 */
/* The curve of a training: loss and metric by validation, as text and as a picture. */
#include "tool/learning.h"

#include "tool/result.h"

#include <math.h>
#include <string.h>

bool learning_is_told(const json_t *root)
{
    const json_t *train = json_object_get(root, "train");
    return json_is_integer(json_object_get(train, "steps")) && json_array_size(json_object_get(train, "loss")) > 0;
}

static const char *metric_of(const json_t *train)
{
    const char *name = json_string_value(json_object_get(train, "metric"));
    return name ? name : "metric";
}

/* What a missing value was: nothing to validate on, or a number that JSON cannot say. */
static const char *missing_value(const json_t *root)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(root, "notes"), i, note)
        if (strncmp(json_string_value(note) ? json_string_value(note) : "", "no validation", 13) == 0)
            return "-";
    return "inf";
}

/* `missing` where there is no number. */
static void print_cell(FILE *out, int width, const json_t *value, const char *missing)
{
    if (json_is_number(value))
        fprintf(out, " %*.4f", width, json_number_value(value));
    else
        fprintf(out, " %*s", width, missing);
}

void learning_print(const json_t *root, FILE *out)
{
    const json_t *train = json_object_get(root, "train"), *value = json_object_get(train, "value");
    const char *state = json_string_value(json_object_get(train, "state_sha256"));
    size_t i;
    json_t *item;
    fprintf(out, "%8s %10s %12s\n", "round", "loss", metric_of(train));
    json_array_foreach(json_object_get(train, "loss"), i, item)
    {
        const json_t *metric = json_array_get(value, i);
        fprintf(out, "%8zu", i + 1);
        print_cell(out, 10, item, "-");
        print_cell(out, 12, metric, json_is_null(metric) ? missing_value(root) : "-");
        fputc('\n', out);
    }
    if (state)
        fprintf(out, "state %s\n", state);
}

/* --- the picture --- */

enum { PANEL = 430, GAP = 110, HIGH = 200, LEFT = 90 };

struct range {
    double low, high;
};

static struct range range_of(const json_t *values)
{
    struct range range = {INFINITY, -INFINITY};
    size_t i;
    json_t *item;
    json_array_foreach(values, i, item) if (json_is_number(item))
    {
        range.low = fmin(range.low, json_number_value(item));
        range.high = fmax(range.high, json_number_value(item));
    }
    return range;
}

static void frame(FILE *file, const char *name, struct range range, size_t count, int x, int y)
{
    fprintf(file, "<path d='M%d %dv%dh%d' fill='none' stroke='#999'/>", x, y, HIGH, PANEL);
    fprintf(file, "<text x='%d' y='%d' font-weight='bold'>", x, y - 8);
    result_escape(file, name, 60);
    fprintf(file, "</text><text x='%d' y='%d' text-anchor='end' class='v'>%.4g</text>", x - 6, y + 10, range.high);
    fprintf(file, "<text x='%d' y='%d' text-anchor='end' class='v'>%.4g</text>", x - 6, y + HIGH, range.low);
    fprintf(file, "<text x='%d' y='%d' class='v'>1</text>", x, y + HIGH + 16);
    fprintf(file, "<text x='%d' y='%d' text-anchor='end' class='v'>validation %zu</text>\n", x + PANEL, y + HIGH + 16,
            count);
}

/* How far above the frame's lower edge, by halves: the range itself may be beyond the largest number. */
static double height_of(double value, struct range range)
{
    const double half = range.high / 2 - range.low / 2;
    return half > 0 ? HIGH * ((value / 2 - range.low / 2) / half) : 0;
}

/* A line through the values that are there, each a dot; where one is missing it goes on from the next. */
static void line(FILE *file, const json_t *values, struct range range, int x, int y)
{
    size_t i, count = json_array_size(values);
    double across = count > 1 ? (double)PANEL / (double)(count - 1) : 0;
    json_t *item;
    const bool dots = count <= PANEL / 4; /* of more the dots would be a band */
    fputs("<polyline fill='none' stroke='#2f6f9f' stroke-width='2' points='", file);
    json_array_foreach(values, i, item) if (json_is_number(item))
        fprintf(file, "%.1f,%.1f ", x + across * (double)i, y + HIGH - height_of(json_number_value(item), range));
    fputs("'/>\n", file);
    json_array_foreach(values, i, item) if (json_is_number(item) && dots)
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='3' fill='#2f6f9f'/>\n", x + across * (double)i,
                y + HIGH - height_of(json_number_value(item), range));
}

static void panel(FILE *file, const json_t *values, const char *name, int x, int y)
{
    struct range range = range_of(values);
    if (range.low > range.high) /* none was measured */
        return;
    frame(file, name, range, json_array_size(values), x, y);
    line(file, values, range, x, y);
}

int learning_height(const json_t *root) { return learning_is_told(root) ? HIGH + 70 : 0; }

void learning_draw(const json_t *root, FILE *file, int y)
{
    const json_t *train = json_object_get(root, "train");
    if (!learning_is_told(root))
        return;
    panel(file, json_object_get(train, "loss"), "loss", LEFT, y + 24);
    panel(file, json_object_get(train, "value"), metric_of(train), LEFT + PANEL + GAP, y + 24);
}
