/* SPDX-License-Identifier: Apache-2.0 */
/* Building and writing of results. */
#include "tool/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tool/commit.h" /* made at every build */
#include "tool/measuring.h"
#include "tool/output.h"

const char *result_commit(void) { return GRAPHI_COMMIT; }

static void *checked(void *memory)
{
    if (!memory) {
        fprintf(stderr, "graphi: error: MEMORY: result: found no memory, expected some\n");
        exit(GRAPHI_MEMORY);
    }
    return memory;
}

json_t *result_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, checked(value)) != 0)
        checked(NULL);
    return value;
}

void result_append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, checked(value)) != 0)
        checked(NULL);
}

/* JSON is UTF-8, file names are any bytes: a byte that belongs to no character becomes "?". NULL becomes null. */
static json_t *text(const char *value)
{
    json_t *string = value ? json_string(value) : json_null();
    if (string)
        return string;
    char *copy = strdup(value);
    for (char *at = copy; at && *at;) {
        size_t bytes = utf8_bytes(at);
        *at = bytes ? *at : '?';
        at += bytes ? bytes : 1;
    }
    string = copy ? json_string(copy) : NULL;
    free(copy);
    return string;
}

json_t *result_words(int argc, char **argv)
{
    json_t *words = checked(json_array());
    for (int i = 0; i < argc; i++) { /* of the program its name alone: where it lies says nothing about the result */
        const char *slash = i ? NULL : strrchr(argv[i], '/');
        result_append(words, text(slash ? slash + 1 : argv[i]));
    }
    return words;
}

struct result result_begin(const char *command, const char *experiment, int argc, char **argv)
{
    struct result r = {.root = checked(json_object())};
    result_set(r.root, "schema", json_string("graphi-result/1"));
    result_set(r.root, "command", json_string(command));
    result_set(r.root, "experiment", text(experiment));
    result_set(r.root, "argv", result_words(argc, argv));
    result_set(r.root, "ok", json_true());
    result_set(r.root, "graphi", json_pack("{s:s,s:s}", "version", graphi_version(), "commit", GRAPHI_COMMIT));
    result_set(r.root, "machine", json_null());
    result_set(r.root, "model", json_null());
    r.rows = result_set(r.root, "rows", json_array());
    r.train = result_set(r.root, "train", json_null());
    r.plan = result_set(r.root, "plan", json_null());
    r.goals = result_set(r.root, "goals", json_array());
    r.files = result_set(r.root, "files", json_array());
    r.notes = result_set(r.root, "notes", json_array());
    return r;
}

void result_end(struct result *result)
{
    json_decref(result->root);
    *result = (struct result){0};
}

static json_t *hexadecimal(uint64_t value)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)value);
    return json_string(hex);
}

static json_t *number(double value) { return value > 0 || value < 0 ? json_real(value) : json_null(); }

void result_machine(struct result *result, const graphi_machine *machine)
{
    graphi_machine_info info;
    graphi_machine_get_info(machine, &info);
    json_t *object = result_set(result->root, "machine", json_object());
    result_set(object, "name", text(info.name));
    result_set(object, "cpu", text(info.cpu));
    result_set(object, "cores", json_integer(info.cores));
    result_set(object, "quota", number(info.quota));
    result_set(object, "isa", json_string(info.isa));
    result_set(object, "roof_gflops", number(info.roof_gflops));
    result_set(object, "roof_bf16_gflops", number(info.roof_bf16_gflops));
    result_set(object, "bandwidth_gbs", number(info.bandwidth_gbs));
    result_set(object, "simulated", json_boolean(!info.captured));
    result_set(object, "hash", hexadecimal(info.hash));
    if (info.others > 0)
        result_note(result, "others used %.0f %% of the cores while the machine was measured: its rates may be higher",
                    100 * info.others);
    if (info.captured && info.roof_gflops > 0 && info.bandwidth_gbs <= 0)
        result_note(result, "memory bandwidth is not measured: limits of memory (control group, ulimit -v) leave no "
                            "buffers of twice the level-3 cache, %.0f MB",
                    2 * (double)info.l3_bytes * 1e-6);
    const double shortened = measuring_shortened();
    if (info.captured && info.roof_gflops > 0 && shortened > 0)
        result_note(result, "the machine was measured for %g s (GRAPHI_MEASURE_SECONDS): its rates may be higher",
                    shortened);
}

void result_model(struct result *result, const graphi_model_info *about, const char *task, const graphi_graph *graph,
                  const graphi_plan *plan)
{
    json_t *object = result_set(result->root, "model", json_object());
    graphi_graph_info info = {0};
    if (graph)
        graphi_graph_get_info(graph, &info);
    graphi_plan_info compiled = {0};
    if (plan)
        graphi_plan_get_info(plan, &compiled);
    result_set(object, "name", json_string(about->name));
    result_set(object, "size", text(about->size));
    result_set(object, "task", text(task));
    result_set(object, "batch", json_integer(about->batch));
    result_set(object, "units", json_integer(about->units));
    result_set(object, "steps", about->steps ? json_integer(about->steps) : json_null());
    result_set(object, "graph_hash", hexadecimal(info.hash));
    result_set(object, "nodes", json_integer(info.nodes));
    result_set(object, "flop", number(info.flops));
    result_set(object, "bytes", number(compiled.bytes));
}

void result_plan(struct result *result, const graphi_plan *plan, const graphi_run *run)
{
    graphi_plan_info info;
    graphi_plan_get_info(plan, &info);
    result->plan = result_set(result->root, "plan", json_object());
    result_set(result->plan, "hash", hexadecimal(info.hash));
    result_set(result->plan, "isa", json_string(info.isa));
    result_set(result->plan, "precision", json_string(graphi_dtype_name(info.precision)));
    result_set(result->plan, "compile_ms", json_real(info.compile_ms));
    result_set(result->plan, "arena_bytes", json_integer(info.arena_bytes));
    result_set(result->plan, "sum_intermediate_bytes", json_integer(info.sum_intermediate_bytes));
    result_set(result->plan, "live_maximum_bytes", json_integer(info.live_maximum_bytes));
    result_set(result->plan, "allocations_in_step", json_null());
    if (run) {
        graphi_run_info last;
        graphi_run_get_info(run, &last);
        result_set(result->plan, "allocations_in_step", json_integer((json_int_t)last.allocations));
    }
}

json_t *result_row(struct result *result, const char *id, const char *engine)
{
    static const char *const empty[] = {
        "engine_version", "policy", "driver", "executors", "width", "n", "time_ms", "ratio", "gflops", "gbs",
        "fraction_of_limit", "peak_rss_bytes", "lower_bound_ms", "predicted_ms", "load_ms", "overhead_ns_per_op"};
    json_t *row = checked(json_object());
    result_set(row, "id", json_string(id));
    result_set(row, "engine", json_string(engine));
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        result_set(row, empty[i], json_null());
    result_set(row, "simulated", json_false());
    result_set(row, "status", json_string("ok"));
    result_set(row, "reason", json_string(""));
    if (strcmp(engine, "graphi") == 0)
        result_set(row, "engine_version", json_string(graphi_version()));
    result_append(result->rows, row);
    return row;
}

void result_setting(json_t *row, const graphi_decision *setting)
{
    result_set(row, "policy", json_string(graphi_policy_name(setting->policy)));
    result_set(row, "driver", json_string(graphi_driver_name(setting->driver)));
    if (setting->executors > 0) /* free-width policies have neither */
        result_set(row, "executors", json_integer(setting->executors));
    if (setting->width > 0)
        result_set(row, "width", json_integer(setting->width));
    result_set(row, "join", json_boolean(setting->joins));
    if (setting->backward_executors > 0)
        result_set(row, "backward_executors", json_integer(setting->backward_executors));
    if (setting->depth > 1)
        result_set(row, "depth", json_integer(setting->depth));
    if (setting->light)
        result_set(row, "light", json_true());
}

void result_note_driver(struct result *result, const graphi_decision *setting, int cores)
{
    const int workers = setting->executors * setting->width + (setting->light);
    if (setting->driver == GRAPHI_DRIVER_DEDICATED && workers >= cores)
        result_note(result,
                    "the dedicated driver shares a core with an executor, since executors take all %d: combining needs "
                    "none",
                    workers);
}

void result_number(json_t *row, const char *key, double value)
{
    result_set(row, key, isfinite(value) ? json_real(value) : json_null());
}


void result_roof(json_t *line, struct rating rating)
{
    if (rating.roof_gflops > 0)
        result_number(line, "roof_gflops", rating.roof_gflops);
    if (rating.roof_gflops > 0 && rating.bfloat16)
        result_string(line, "roof_of", "bfloat16");
}

void result_rate(json_t *row, struct rating rating, double median_ms)
{
    result_number(row, "gflops", rating.flops / median_ms * 1e-6);
    if (rating.limit_ms > 0)
        result_number(row, "fraction_of_limit", rating.limit_ms / median_ms);
    result_roof(row, rating);
}
void result_integer(json_t *row, const char *key, int64_t value) { result_set(row, key, json_integer(value)); }
void result_string(json_t *row, const char *key, const char *value) { result_set(row, key, text(value)); }

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int low = (int)at;
    return low + 1 < n ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

void result_sort(double *values, int n) { qsort(values, (size_t)n, sizeof *values, ascending); }

/* values[i], or values[i] / base[i], in ascending order; to be freed. */
static double *arranged(const double *values, const double *base, int n)
{
    double *copy = checked(malloc((size_t)n * sizeof *copy));
    for (int i = 0; i < n; i++)
        copy[i] = base ? values[i] / base[i] : values[i];
    result_sort(copy, n);
    return copy;
}

static double median_of(const double *values, const double *base, int n)
{
    double *copy = arranged(values, base, n), median = quantile(copy, n, 0.5);
    free(copy);
    return median;
}

double result_median(const double *values, int n) { return median_of(values, NULL, n); }
double result_paired(const double *a_ms, const double *b_ms, int n) { return median_of(a_ms, b_ms, n); }

void result_times(json_t *row, const double *ms, int n)
{
    if (n < 1)
        return;
    double *s = arranged(ms, NULL, n);
    result_set(row, "n", json_integer(n));
    result_set(row, "time_ms",
               json_pack("{s:f,s:f,s:f,s:f,s:f}", "median", quantile(s, n, 0.5), "p25", quantile(s, n, 0.25), "p75",
                         quantile(s, n, 0.75), "p99", quantile(s, n, 0.99), "min", s[0]));
    free(s);
}

void result_ratio(json_t *row, const char *against, const double *a_ms, const double *b_ms, int n)
{
    if (n < 1)
        return;
    double *ratio = arranged(a_ms, b_ms, n);
    result_set(row, "ratio",
               json_pack("{s:s,s:f,s:f,s:f}", "against", against, "median", quantile(ratio, n, 0.5), "low",
                         quantile(ratio, n, 0.25), "high", quantile(ratio, n, 0.75)));
    free(ratio);
}

void result_goal(struct result *result, const char *name, double value, double goal, bool at_least)
{
    bool met = at_least ? value >= goal : value <= goal;
    result_append(result->goals,
                  json_pack("{s:s,s:f,s:f,s:b}", "name", name, "value", value, "goal", goal, "met", met));
}

void result_note(struct result *result, const char *format, ...)
{
    char line[1024];
    size_t i;
    json_t *other;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    json_t *note = checked(text(line));
    json_array_foreach(result->notes, i, other) if (json_equal(other, note)) break;
    if (*line && i == json_array_size(result->notes))
        result_append(result->notes, json_incref(note));
    json_decref(note);
}

json_t *result_metric(struct result *result, double value)
{
    if (isfinite(value))
        return checked(json_real(value));
    result_note(result, "null in train.value: infinite, a perplexity beyond 1e308");
    return json_null();
}

void result_file(struct result *result, const char *path)
{
    size_t i;
    json_t *known, *name = checked(text(path));
    json_array_foreach(result->files, i, known) if (json_equal(known, name)) break;
    if (i == json_array_size(result->files))
        result_append(result->files, json_incref(name));
    json_decref(name);
}

void result_timeline(struct result *result, const char *prefix)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.json", prefix);
    result_file(result, path);
    snprintf(path, sizeof path, "%s.html", prefix);
    result_file(result, path);
}

static bool dump_line(const json_t *value, FILE *file) { return json_dumpf(value, file, JSON_ENCODE_ANY) == 0; }

/* A line break, after a comma unless it is the first one, and the indentation. */
static void dump_break(FILE *file, bool first, int depth) { fprintf(file, "%s\n%*s", first ? "" : ",", depth, ""); }

/* A member a line, and of lists of objects, as rows are, an element a line: so that results can be read and compared
 * line by line. */
static bool dump(const json_t *value, FILE *file, int depth)
{
    const bool list = json_is_array(value) && json_is_object(json_array_get(value, 0));
    const char *key;
    json_t *part;
    size_t i;
    bool good = true;
    if (list) {
        fputc('[', file);
        json_array_foreach((json_t *)value, i, part) {
            dump_break(file, i == 0, depth + 1);
            good &= dump_line(part, file);
        }
        dump_break(file, true, depth);
        fputc(']', file);
    } else if (json_is_object(value)) {
        bool first = true;
        fputc('{', file);
        json_object_foreach((json_t *)value, key, part) {
            json_t *name = checked(json_string(key));
            dump_break(file, first, depth + 1);
            good &= dump_line(name, file);
            fputs(": ", file);
            good &= dump(part, file, depth + 1);
            json_decref(name);
            first = false;
        }
        dump_break(file, true, depth);
        fputc('}', file);
    } else {
        good = dump_line(value, file);
    }
    return good;
}

static bool write_all(const json_t *root, FILE *file)
{
    return dump(root, file, 0) && fputc('\n', file) != EOF && fflush(file) == 0 && !ferror(file);
}

graphi_status result_write(const json_t *root, const char *path)
{
    if (strcmp(path, "-") == 0) {
        bool good = write_all(root, stdout);
        if (!good)
            fprintf(
                stderr,
                "graphi: error: IO: standard output: found that it cannot be written (%s), expected a place for the "
                "result\n",
                strerror(errno));
        return good ? GRAPHI_OK : GRAPHI_IO;
    }
    struct output output;
    graphi_status status = output_begin(&output, path);
    if (status != GRAPHI_OK)
        return status;
    return output_end(&output, write_all(root, output.file));
}

/* Bytes of a character that JSON may hold and XML may not: U+FFFE or U+FFFF. */
static size_t no_character(const char *text)
{
    return strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0 ? 3 : 0;
}

void result_escape(FILE *file, const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    while (text[length] && length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--; /* not within a character of UTF-8 */
    for (size_t i = 0; i < length; i++) {
        const size_t none = no_character(text + i);
        if (none) {
            fputc('?', file);
            i += none - 1;
            continue;
        }
        switch (text[i]) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc((unsigned char)text[i] < ' ' ? ' ' : text[i], file);
        }
    }
}
