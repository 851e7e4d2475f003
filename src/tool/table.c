/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a text table: one column a thing that rows say, left out where none says it. */
#include "base/utf8.h"
#include "tool/learning.h"
#include "tool/report.h"
#include "tool/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A column of the table: what a row says under this heading, "" for nothing. */
struct column {
    const char *heading;
    void (*cell)(const json_t *row, char *text, size_t size);
    bool left;
};

static void number_of(const json_t *object, const char *key, const char *format, char *text, size_t size)
{
    const json_t *value = json_object_get(object, key);
    *text = 0;
    if (json_is_number(value))
        snprintf(text, size, format, json_number_value(value));
}

static void cell_id(const json_t *row, char *text, size_t size)
{
    snprintf(text, size, "%s%s", json_string_value(json_object_get(row, "id")),
             json_is_true(json_object_get(row, "simulated")) ? " (simulated)" : "");
}

static void cell_engine(const json_t *row, char *text, size_t size)
{
    const char *version = json_string_value(json_object_get(row, "engine_version"));
    snprintf(text, size, "%s%s%s", json_string_value(json_object_get(row, "engine")), version ? " " : "",
             version ? version : "");
}

static void cell_setting(const json_t *row, char *text, size_t size)
{
    const json_t *executors = json_object_get(row, "executors"), *width = json_object_get(row, "width");
    const char *policy = json_string_value(json_object_get(row, "policy"));
    const char *driver = json_string_value(json_object_get(row, "driver"));
    snprintf(text, size, "%s", policy ? policy : ""); /* free-width policies have no split of the cores */
    if (json_is_integer(executors) && json_is_integer(width))
        snprintf(text, size, "%lldx%lld %s%s%s", (long long)json_integer_value(executors),
                 (long long)json_integer_value(width), policy ? policy : "", driver ? " " : "", driver ? driver : "");
    const json_t *backward = json_object_get(row, "backward_executors"), *depth = json_object_get(row, "depth");
    if (json_is_integer(backward))
        snprintf(text + strlen(text), size - strlen(text), ", %lld backward", (long long)json_integer_value(backward));
    if (json_is_integer(depth))
        snprintf(text + strlen(text), size - strlen(text), ", %lld ahead", (long long)json_integer_value(depth));
    if (json_is_true(json_object_get(row, "light")))
        snprintf(text + strlen(text), size - strlen(text), ", light");
    if (json_is_true(json_object_get(row, "join")))
        snprintf(text + strlen(text), size - strlen(text), ", joining");
}

static void cell_time(const json_t *row, char *text, size_t size)
{
    number_of(json_object_get(row, "time_ms"), "median", "%.3f", text, size);
}

static void cell_spread(const json_t *row, char *text, size_t size)
{
    const json_t *time = json_object_get(row, "time_ms");
    *text = 0;
    if (json_is_object(time))
        snprintf(text, size, "%.3f-%.3f", json_number_value(json_object_get(time, "p25")),
                 json_number_value(json_object_get(time, "p75")));
}

/* Of fewer it is the slowest one. */
static void cell_tail(const json_t *row, char *text, size_t size)
{
    *text = 0;
    if (json_integer_value(json_object_get(row, "n")) >= 100)
        number_of(json_object_get(row, "time_ms"), "p99", "%.3f", text, size);
}

/* Results hold time over the other's time; people read how much faster one is. Less than nothing is a damaged result's.
 * */
static void cell_speed_up(const json_t *row, char *text, size_t size)
{
    const json_t *ratio = json_object_get(row, "ratio");
    const double median = json_number_value(json_object_get(ratio, "median")),
                 low = json_number_value(json_object_get(ratio, "low")),
                 high = json_number_value(json_object_get(ratio, "high"));
    *text = 0;
    if (median > 0 && low > 0 && low < high)
        snprintf(text, size, "%.3f [%.3f-%.3f]", 1 / median, 1 / high, 1 / low);
    else if (median > 0) /* of a single pair: no quartiles */
        snprintf(text, size, "%.3f", 1 / median);
}

static void cell_against(const json_t *row, char *text, size_t size)
{
    const char *against = json_string_value(json_object_get(json_object_get(row, "ratio"), "against"));
    const char *id = json_string_value(json_object_get(row, "id")), *group = id ? strstr(id, ": ") : NULL;
    const size_t length = group ? (size_t)(group - id) + 2 : 0; /* "lstm small: ", where both begin so */
    if (against && length && strncmp(id, against, length) == 0)
        against += length;
    snprintf(text, size, "%s", against ? against : "");
}

static void cell_gflops(const json_t *row, char *text, size_t size) { number_of(row, "gflops", "%.1f", text, size); }
static void cell_gbs(const json_t *row, char *text, size_t size) { number_of(row, "gbs", "%.1f", text, size); }
static void cell_bound(const json_t *row, char *text, size_t size)
{
    number_of(row, "lower_bound_ms", "%.3f", text, size);
}
static void cell_predicted(const json_t *row, char *text, size_t size)
{
    number_of(row, "predicted_ms", "%.3f", text, size);
}
static void cell_first(const json_t *row, char *text, size_t size) { number_of(row, "load_ms", "%.1f", text, size); }
static void cell_overhead(const json_t *row, char *text, size_t size)
{
    number_of(row, "overhead_ns_per_op", "%.1f", text, size);
}

static void cell_limit(const json_t *row, char *text, size_t size)
{
    const json_t *value = json_object_get(row, "fraction_of_limit");
    *text = 0;
    if (json_is_number(value))
        snprintf(text, size, "%.1f %%", 100 * json_number_value(value));
}

static void cell_memory(const json_t *row, char *text, size_t size)
{
    const json_t *value = json_object_get(row, "peak_rss_bytes");
    *text = 0;
    if (json_is_number(value))
        snprintf(text, size, "%.1f", json_number_value(value) / 1e6);
}

/* What of the gain over a peer comes from where: factors, whose product is the ratio. */
static void cell_gain(const json_t *row, char *text, size_t size)
{
    const json_t *gain = json_object_get(row, "gain"), *kernels = json_object_get(gain, "kernels");
    const json_t *interference = json_object_get(gain, "interference");
    const json_t *scheduling = json_object_get(gain, "scheduling");
    *text = 0;
    if (json_is_number(kernels) && json_is_number(interference) && json_is_number(scheduling))
        snprintf(text, size, "%.2f x %.2f x %.2f", json_number_value(kernels), json_number_value(interference),
                 json_number_value(scheduling));
}

/* Of a performance model, with what a paper reports. */
static void cell_accuracy(const json_t *row, char *text, size_t size)
{
    const json_t *value = json_object_get(row, "accuracy"), *paper = json_object_get(row, "paper_accuracy");
    *text = 0;
    if (json_is_number(value) && json_is_number(paper))
        snprintf(text, size, "%.1f %% (paper %.0f %%)", 100 * json_number_value(value), 100 * json_number_value(paper));
    else if (json_is_number(value))
        snprintf(text, size, "%.1f %%", 100 * json_number_value(value));
}

static void cell_r2(const json_t *row, char *text, size_t size) { number_of(row, "r2", "%.3f", text, size); }

static void cell_status(const json_t *row, char *text, size_t size)
{
    const char *status = json_string_value(json_object_get(row, "status"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    *text = 0;
    if ((status && strcmp(status, "ok") != 0) || (reason && *reason))
        snprintf(text, size, "%s%s%s", strcmp(status ? status : "ok", "ok") ? status : "", reason && *reason ? " " : "",
                 reason ? reason : "");
}

static const struct column columns[] = {
    {"what", cell_id, true},         {"engine", cell_engine, true},   {"setting", cell_setting, true},
    {"ms", cell_time, false},        {"p25-p75", cell_spread, false}, {"p99", cell_tail, false},
    {"speed-up (>1: faster)", cell_speed_up, false}, {"against", cell_against, true}, {"GFLOP/s", cell_gflops, false},
    {"GB/s", cell_gbs, false},       {"of limit", cell_limit, false}, {"bound ms", cell_bound, false},
    {"predicted ms", cell_predicted, false}, {"first ms", cell_first, false}, {"ns/op", cell_overhead, false},
    {"peak MB", cell_memory, false},
    {"kernels x no interference x scheduling", cell_gain, true},
    {"accuracy", cell_accuracy, false}, {"R2", cell_r2, false},       {"", cell_status, true},
};
enum { COLUMNS = sizeof columns / sizeof *columns, CELL = 1024 }; /* three numbers of any size: none loses digits */

/* A text that the cell has no room for ends with the last character that is whole. */
static void fill(const struct column *column, const json_t *row, char *cell)
{
    column->cell(row, cell, CELL);
    while (*cell && utf8_bytes(cell))
        cell += utf8_bytes(cell);
    *cell = 0;
}

static void print_row(FILE *out, const json_t *row, const int *widths)
{
    char cell[CELL];
    for (int c = 0; c < COLUMNS; c++) {
        if (!widths[c])
            continue;
        snprintf(cell, sizeof cell, "%s", columns[c].heading);
        if (row)
            fill(&columns[c], row, cell);
        fprintf(out, columns[c].left ? "%-*s  " : "%*s  ", widths[c], cell);
    }
    fputc('\n', out);
}

/* A long table says once what all its rows say of engine or speed-up: it is wide enough without. */
enum { LONG = 8 };

static void say_once(const json_t *rows, int *widths, FILE *out)
{
    static const struct {
        void (*cell)(const json_t *row, char *text, size_t size);
        const char *what;
    } once[] = {{cell_engine, "engine: "}, {cell_against, "speed-ups over: "}};
    char first[CELL], cell[CELL];
    size_t index;
    json_t *row;
    for (size_t k = 0; k < sizeof once / sizeof *once && json_array_size(rows) >= LONG; k++) {
        bool same = true;
        *first = 0;
        json_array_foreach(rows, index, row)
        {
            fill(&(struct column){"", once[k].cell, true}, row, cell);
            same &= !*cell || !*first || strcmp(cell, first) == 0;
            if (!*first)
                snprintf(first, sizeof first, "%s", cell);
        }
        for (int c = 0; same && *first && c < COLUMNS; c++)
            if (columns[c].cell == once[k].cell) {
                widths[c] = 0;
                fprintf(out, "%s%s\n", once[k].what, first);
            }
    }
}

static void print_rows(const json_t *rows, FILE *out)
{
    int widths[COLUMNS] = {0};
    char cell[CELL];
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row) for (int c = 0; c < COLUMNS; c++)
    {
        fill(&columns[c], row, cell);
        int length = (int)strlen(cell);
        widths[c] = length > widths[c] ? length : widths[c];
    }
    say_once(rows, widths, out);
    for (int c = 0; c < COLUMNS; c++)
        if (widths[c] && widths[c] < (int)strlen(columns[c].heading))
            widths[c] = (int)strlen(columns[c].heading);
    print_row(out, NULL, widths);
    json_array_foreach(rows, index, row) print_row(out, row, widths);
}

/* Networks without time have no steps; older results do not tell units. */
static void print_count(const json_t *model, const char *key, FILE *out)
{
    const json_t *count = json_object_get(model, key);
    if (json_is_integer(count))
        fprintf(out, ", %s %lld", key, (long long)json_integer_value(count));
}

static void print_model(const json_t *model, FILE *out)
{
    const char *size = json_string_value(json_object_get(model, "size"));
    const char *task = json_string_value(json_object_get(model, "task"));
    fprintf(out, "%s%s%s%s%s", json_string_value(json_object_get(model, "name")), size ? " " : "", size ? size : "",
            task ? " " : "", task ? task : "");
    print_count(model, "units", out);
    print_count(model, "steps", out);
    print_count(model, "batch", out);
    if (json_is_integer(json_object_get(model, "nodes")))
        fprintf(out, ", %lld operations", (long long)json_integer_value(json_object_get(model, "nodes")));
    fputc('\n', out);
}

static void print_plan(const json_t *plan, FILE *out)
{
    const json_t *arena = json_object_get(plan, "arena_bytes"), *compiled = json_object_get(plan, "compile_ms");
    const double live = json_number_value(json_object_get(plan, "live_maximum_bytes"));
    if (!json_is_number(arena) || !json_is_number(compiled)) /* a damaged result */
        return;
    fprintf(out, "arena %.1f MB", json_number_value(arena) / 1e6);
    if (live > 0)
        fprintf(out, " (%.2f of the live maximum)", json_number_value(arena) / live);
    fprintf(out, ", compiled in %.0f ms", json_number_value(compiled));
    const char *isa = json_string_value(json_object_get(plan, "isa"));
    const char *precision = json_string_value(json_object_get(plan, "precision"));
    if (isa && precision) /* not of older results */
        fprintf(out, ", kernels %s, multiplicands %s", isa, precision);
    fputc('\n', out);
}

void result_print_notes(const json_t *root, FILE *out)
{
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(root, "notes"), index, item) fprintf(out, "note: %s\n", json_string_value(item));
}

/* A description need not know rates. */
static void print_machine(const json_t *machine, FILE *out)
{
    const json_t *roof = json_object_get(machine, "roof_gflops"), *memory = json_object_get(machine, "bandwidth_gbs");
    fprintf(out, "%s, %lld cores, %s", json_string_value(json_object_get(machine, "cpu")),
            (long long)json_integer_value(json_object_get(machine, "cores")),
            json_string_value(json_object_get(machine, "isa")));
    if (json_is_number(roof))
        fprintf(out, "; roof %.1f GFLOP/s", json_number_value(roof));
    if (json_is_number(memory))
        fprintf(out, "%s memory %.1f GB/s", json_is_number(roof) ? "," : ";", json_number_value(memory));
    fprintf(out, "%s\n", json_is_true(json_object_get(machine, "simulated")) ? " (simulated machine)" : "");
}

/* One number of a training that was judged elsewhere, as `eval` does. */
static void print_score(const json_t *train, FILE *out)
{
    const char *metric = json_string_value(json_object_get(train, "metric"));
    const json_t *loss = json_array_get(json_object_get(train, "loss"), 0);
    const json_t *value = json_array_get(json_object_get(train, "value"), 0);
    if (!metric || !json_is_null(json_object_get(train, "steps")) || !json_is_number(loss))
        return;
    if (json_is_number(value))
        fprintf(out, "%s %.4f, loss %.4f\n", metric, json_number_value(value), json_number_value(loss));
    else /* JSON does not say it */
        fprintf(out, "%s inf, loss %.4f\n", metric, json_number_value(loss));
}

static void print_all(const json_t *root, FILE *out)
{
    const json_t *machine = json_object_get(root, "machine"), *model = json_object_get(root, "model");
    size_t index;
    json_t *item;
    if (json_is_object(machine))
        print_machine(machine, out);
    if (json_is_string(json_object_get(model, "name")))
        print_model(model, out);
    if (json_is_object(json_object_get(root, "plan")))
        print_plan(json_object_get(root, "plan"), out);
    if (learning_is_told(root))
        learning_print(root, out);
    else
        print_score(json_object_get(root, "train"), out);
    json_t *rows = result_sorted(root);
    if (json_array_size(rows))
        print_rows(rows, out);
    json_decref(rows);
    json_array_foreach(json_object_get(root, "goals"), index, item)
        fprintf(out, "goal %s: %.4g against %.4g: %s\n", json_string_value(json_object_get(item, "name")),
                json_number_value(json_object_get(item, "value")), json_number_value(json_object_get(item, "goal")),
                json_is_true(json_object_get(item, "met")) ? "met" : "missed");
    if (json_is_false(json_object_get(root, "ok")))
        fputs("ended early: rows and goals are those that it had until then\n", out);
    result_print_notes(root, out);
    json_array_foreach(json_object_get(root, "files"), index, item) fprintf(out, "wrote %s\n", json_string_value(item));
}

graphi_status result_print(const json_t *root, FILE *out)
{
    char *text = NULL;
    size_t size;
    FILE *all = open_memstream(&text, &size);
    if (all)
        print_all(root, all);
    const bool whole = all && !ferror(all);
    if ((all && fclose(all) != 0) || !whole || !text) {
        free(text);
        return report_error(GRAPHI_MEMORY, "table", "found no memory for it, expected some");
    }
    utf8_tame(text, true); /* stored results and checkpoints come from anywhere */
    fputs(text, out);
    free(text);
    return GRAPHI_OK;
}
