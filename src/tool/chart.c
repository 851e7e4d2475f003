/* SPDX-License-Identifier: Apache-2.0 */
/* A result as an SVG picture: one horizontal bar a row, by median time, or by accuracy (of 100 %) where a model was
 * judged. Rows whose ids begin alike ("lstm small training: ...") are one group under one heading and share a scale, so
 * that a network of milliseconds is not lost beside one of seconds; it is logarithmic where the longest takes 30 times
 * as long as the shortest. Where some rows tell times and others accuracies,
 * headings say which, instead of the title. A bar says what it is by its colour: ours, ours in virtual time, a peer's.
 * Quartiles are a whisker; the lower bound is a tick, and so is the accuracy that a paper gives. Below them, of a
 * training: its curve (learning.c). */
#include "tool/learning.h"
#include "tool/output.h"
#include "tool/result.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 1280, LEFT = 330, LENGTH = 430, LINE = 22, TOP = 72, LABEL = 60 };

enum mark { OURS, SIMULATED, PEER, MARKS };

static const struct {
    const char *fill, *text;
} marks[MARKS] = {{"#2f6f9f", "Graphi"}, {"#b9a5d6", "simulated"}, {"#b5b5b5", "peer"}};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double time_of(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(json_object_get(row, "time_ms"), key));
}

/* What a row's bar is of. */
enum measure { NOTHING, TIME, ACCURACY };

static const char *const measures[] = {"", "median time, less is better", "accuracy, more is better"};

static enum measure measure_of(const json_t *row)
{
    if (json_is_object(json_object_get(row, "time_ms")))
        return TIME;
    return json_is_number(json_object_get(row, "accuracy")) ? ACCURACY : NOTHING;
}

/* Where an accuracy ends on the scale: models may be worse than nothing. */
static double accuracy_end(const json_t *row, const char *key)
{
    return LENGTH * fmin(1, fmax(0, json_number_value(json_object_get(row, key))));
}

/* The part of an id that names its group: what stands before ": ", else all of it. */
static size_t group_of(const char *id)
{
    const char *end = strstr(id, ": ");
    return end ? (size_t)(end - id) : strlen(id);
}

static bool same_group(const char *a, const char *b)
{
    size_t length = group_of(a);
    return length == group_of(b) && strncmp(a, b, length) == 0;
}

/* What stands behind the group's name; "" if nothing does. */
static const char *rest_of(const char *id)
{
    const char *rest = id + group_of(id);
    return *rest ? rest + 2 : rest;
}

static enum mark mark_of(const json_t *row)
{
    if (json_is_true(json_object_get(row, "simulated")))
        return SIMULATED;
    return strncmp(text_of(row, "engine"), "graphi", 6) == 0 ? OURS : PEER;
}

struct group {
    size_t count;
    double longest; /* time that its scale must hold, ms */
    double shortest; /* median; 0: there is none */
    double decade; /* where a logarithmic scale begins, ms; 0: it is linear, from 0 */
    bool named;     /* false: rows that share nothing */
    enum measure measure;
};

/* From here on medians of a group are seen better by their quotients: the shortest bar would be no bar. */
static const double wide = 30;

/* Where a time ends on the group's scale: one below zero, which only a damaged result has, at its beginning. */
static double time_end(const struct group *group, double ms)
{
    if (group->decade > 0)
        return ms > group->decade ? LENGTH * fmin(1, log(ms / group->decade) / log(group->longest / group->decade)) : 0;
    return group->longest > 0 ? LENGTH * fmin(1, fmax(0, ms / group->longest)) : 0;
}

/* The group that begins with row `first`. Where no id names a group all rows of one measure are one. */
static struct group group_at(const json_t *rows, size_t first, bool named)
{
    struct group group = {.named = named};
    const char *head = text_of(json_array_get(rows, first), "id");
    for (size_t i = first; i < json_array_size(rows); i++, group.count++) {
        const json_t *row = json_array_get(rows, i);
        const enum measure measure = measure_of(row);
        if (named && !same_group(head, text_of(row, "id")))
            break;
        if (measure && group.measure && measure != group.measure)
            break;
        group.measure = measure ? measure : group.measure;
        group.longest = fmax(group.longest, fmax(time_of(row, "median"), time_of(row, "p75")));
        if (time_of(row, "median") > 0)
            group.shortest = group.shortest > 0 ? fmin(group.shortest, time_of(row, "median")) : time_of(row, "median");
        group.longest = fmax(group.longest, json_number_value(json_object_get(row, "lower_bound_ms")));
    }
    if (group.shortest > 0 && group.longest > wide * group.shortest)
        group.decade = pow(10, ceil(log10(group.shortest)) - 1); /* the shortest has a bar */
    return group;
}

static bool any_named(const json_t *rows)
{
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
        if (*rest_of(text_of(row, "id")))
            return true;
    return false;
}

static bool any_ratio(const json_t *rows)
{
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
        if (json_is_object(json_object_get(row, "ratio")))
            return true;
    return false;
}

/* What all bars are of; NOTHING: some are of times, others of accuracies. */
static enum measure measure_of_all(const json_t *rows)
{
    bool seen[] = {false, false, false};
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
        seen[measure_of(row)] = true;
    return seen[TIME] && seen[ACCURACY] ? NOTHING : seen[ACCURACY] ? ACCURACY : TIME;
}

static void label(FILE *file, const json_t *row, const struct group *group, int y)
{
    const char *id = text_of(row, "id"), *rest = group->named ? rest_of(id) : id;
    fprintf(file, "<text x='%d' y='%d' text-anchor='end'>", LEFT - 10, y + 14);
    result_escape(file, *rest ? rest : text_of(row, "engine"), LABEL);
    fputs(mark_of(row) == SIMULATED ? " (simulated)</text>" : "</text>", file);
}

static void accuracy(FILE *file, const json_t *row)
{
    const json_t *paper = json_object_get(row, "paper_accuracy"), *r2 = json_object_get(row, "r2");
    fprintf(file, "%.1f %%", 100 * json_number_value(json_object_get(row, "accuracy")));
    if (json_is_number(paper))
        fprintf(file, " (paper %.0f %%)", 100 * json_number_value(paper));
    if (json_is_number(r2))
        fprintf(file, ", R2 %.2f", json_number_value(r2));
}

/* Time, what it is of another row's and of the limit; or why there is none. */
static void figures(FILE *file, const json_t *row, const struct group *group, int y)
{
    const json_t *ratio = json_object_get(row, "ratio"), *limit = json_object_get(row, "fraction_of_limit");
    const char *reason = text_of(row, "reason"), *comma = measure_of(row) || *reason ? ", " : "";
    fprintf(file, "<text x='%d' y='%d' class='v'>", LEFT + LENGTH + 12, y + 14);
    if (measure_of(row) == TIME)
        fprintf(file, "%.4g ms", time_of(row, "median"));
    else if (measure_of(row) == ACCURACY)
        accuracy(file, row);
    else
        result_escape(file, reason, LABEL);
    if (json_is_object(ratio)) {
        const char *against = text_of(ratio, "against");
        bool near = group->named && same_group(text_of(row, "id"), against) && *rest_of(against);
        const double median = json_number_value(json_object_get(ratio, "median")); /* time over time */
        fprintf(file, "%sspeed-up %.3f over ", comma, median > 0 ? 1 / median : 0);
        result_escape(file, near ? rest_of(against) : against, LABEL);
        comma = ", ";
    }
    if (json_is_number(limit))
        fprintf(file, "%s%.0f %% of limit", comma, 100 * json_number_value(limit));
    fputs("</text>\n", file);
}

static void tick(FILE *file, double x, int y)
{
    fprintf(file, "<path d='M%.1f %dv%d' stroke='#c0392b' stroke-width='2'/>", x, y, LINE - 3);
}

static void bar(FILE *file, const json_t *row, const struct group *group, int y)
{
    const json_t *bound = json_object_get(row, "lower_bound_ms");
    label(file, row, group, y);
    if (measure_of(row) == TIME) {
        double low = LEFT + time_end(group, time_of(row, "p25")), high = LEFT + time_end(group, time_of(row, "p75"));
        fprintf(file, "<rect x='%d' y='%d' width='%.1f' height='%d' fill='%s'/>", LEFT, y + 1,
                time_end(group, time_of(row, "median")), LINE - 5, marks[mark_of(row)].fill);
        if (high - low >= 1)
            fprintf(file, "<path d='M%.1f %dH%.1f' stroke='black'/>", low, y + LINE / 2 - 1, high);
    }
    else if (measure_of(row) == ACCURACY)
        fprintf(file, "<rect x='%d' y='%d' width='%.1f' height='%d' fill='%s'/>", LEFT, y + 1,
                accuracy_end(row, "accuracy"), LINE - 5, marks[mark_of(row)].fill);
    if (json_is_number(bound))
        tick(file, LEFT + time_end(group, json_number_value(bound)), y);
    if (json_is_number(json_object_get(row, "paper_accuracy")))
        tick(file, LEFT + accuracy_end(row, "paper_accuracy"), y);
    figures(file, row, group, y);
}

static void legend(FILE *file, const json_t *rows)
{
    bool seen[MARKS] = {false}, bound = false, paper = false;
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row) {
        seen[mark_of(row)] = true;
        bound |= json_is_number(json_object_get(row, "lower_bound_ms"));
        paper |= json_is_number(json_object_get(row, "paper_accuracy"));
    }
    int x = LEFT;
    for (int m = 0; m < MARKS; m++)
        if (seen[m]) {
            fprintf(file, "<rect x='%d' y='%d' width='12' height='12' fill='%s'/><text x='%d' y='%d'>%s</text>", x,
                    TOP - 24, marks[m].fill, x + 18, TOP - 14, marks[m].text);
            x += 100;
        }
    if (bound || paper)
        fprintf(file, "<path d='M%d %dv14' stroke='#c0392b' stroke-width='2'/><text x='%d' y='%d'>%s</text>", x + 6,
                TOP - 25, x + 18, TOP - 14, bound ? "lower bound" : "the paper");
    fputc('\n', file);
}

/* The group's name, and what its bars are of where `measured`. */
static void heading(FILE *file, const char *id, const struct group *group, bool measured, int y)
{
    const char *measure = measured ? measures[group->measure] : "";
    fprintf(file, "<text x='20' y='%d' font-weight='bold'>", y + 15);
    result_escape(file, id, group->named ? group_of(id) : 0);
    fprintf(file, "%s%s</text>\n", group->named && *measure ? ": " : "", measure);
}

/* The decades of a logarithmic scale, behind its bars, and what it is. */
static void decades(FILE *file, const struct group *group, int y)
{
    const int height = LINE * (int)group->count;
    for (double ms = group->decade; ms > 0 && ms <= group->longest; ms *= 10)
        fprintf(file, "<path d='M%.1f %dv%d' stroke='#ddd'/><text x='%.1f' y='%d' text-anchor='middle' class='v' "
                      "font-size='9'>%g ms</text>\n",
                LEFT + time_end(group, ms), y, height, LEFT + time_end(group, ms), y + height + 8, ms);
    if (group->decade > 0)
        fprintf(file, "<text x='%d' y='%d' text-anchor='end' class='v' font-size='9'>logarithmic</text>\n", LEFT - 10,
                y + height + 8);
}

/* The line below a group that names decades. */
static int scale_height(const struct group *group) { return group->decade > 0 ? LINE : 0; }

static void draw(const json_t *root, FILE *file)
{
    json_t *rows = result_sorted(root);
    const json_t *machine = json_object_get(root, "machine");
    const enum measure measure = measure_of_all(rows);
    const bool named = any_named(rows), headed = named || !measure;
    size_t count = json_array_size(rows), lines = count, size;
    for (size_t at = 0; at < count; at += size) {
        const struct group group = group_at(rows, at, named);
        size = group.count;
        lines += (size_t)headed + (size_t)(scale_height(&group) / LINE);
    }
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%zu' font-family='sans-serif' font-size='12'>\n"
            "<style>.v{fill:#444}</style><rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='20' y='24' font-size='16'>",
            WIDTH, TOP + LINE * lines + 20 + (size_t)learning_height(root));
    result_escape(file, *text_of(root, "experiment") ? text_of(root, "experiment") : text_of(root, "command"), LABEL);
    fprintf(file, "%s%s", measure ? ": " : "", measures[measure]);
    if (json_is_false(json_object_get(root, "ok")))
        fputs("; ended early", file);
    fputs("</text><text x='20' y='42' class='v'>", file);
    result_escape(file, text_of(machine, "cpu"), LABEL);
    fprintf(file, ", %lld cores%s%s</text>\n", (long long)json_integer_value(json_object_get(machine, "cores")),
            json_is_true(json_object_get(machine, "simulated")) ? ", simulated machine" : "",
            any_ratio(rows) ? "; a speed-up above 1 is faster" : "");
    legend(file, rows);
    int y = TOP;
    for (size_t at = 0; at < count;) {
        struct group group = group_at(rows, at, named);
        if (headed) {
            heading(file, text_of(json_array_get(rows, at), "id"), &group, !measure, y);
            y += LINE;
        }
        decades(file, &group, y);
        for (size_t i = 0; i < group.count; i++, y += LINE)
            bar(file, json_array_get(rows, at + i), &group, y);
        y += scale_height(&group);
        at += group.count;
    }
    learning_draw(root, file, y);
    json_decref(rows);
    fputs("</svg>\n", file);
}

graphi_status result_svg(const json_t *root, const char *path)
{
    struct output output;
    graphi_status status = output_begin(&output, path);
    if (status != GRAPHI_OK)
        return status;
    draw(root, output.file);
    return output_end(&output, !ferror(output.file));
}
