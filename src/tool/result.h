/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a command, in the one schema "graphi-result/1" (docs/results-schema.md): built by commands and
 * benchmarks, written as JSON, printed as a table, drawn as SVG. Everything not measured is null, with the reason in
 * `notes`. */
#ifndef TOOL_RESULT_H
#define TOOL_RESULT_H

#include "graphi/graphi.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct result {
    json_t *root, *rows, *train, *plan, *goals, *files, *notes;
};

const char *result_commit(void); /* of the sources that were built; "unknown": they were not in git */

/* The words typed, as a list; exits the program when out of memory. */
json_t *result_words(int argc, char **argv);

/* A fresh result with every key of the schema present; exits the program when out of memory (CLI and benchmarks only).
 */
struct result result_begin(const char *command, const char *experiment, int argc, char **argv);
void result_end(struct result *result);

/* A member of an object or a list that the result is of; the value is the result's then, and given back. Both exit the
 * program when out of memory, or where there is no value for that reason. */
json_t *result_set(json_t *object, const char *key, json_t *value);
void result_append(json_t *list, json_t *value);

/* With a note where others used it while it was measured. */
void result_machine(struct result *result, const graphi_machine *machine);
void result_model(struct result *result, const graphi_model_info *about, const char *task, const graphi_graph *graph,
                  const graphi_plan *plan);
void result_plan(struct result *result, const graphi_plan *plan, const graphi_run *run);

/* A new row with every key null or empty but these; fill with result_number and its like (keys as in the schema).
 * Borrowed reference. */
json_t *result_row(struct result *result, const char *id, const char *engine);
void result_setting(json_t *row, const graphi_decision *setting);
/* A note where executors of a simulated setting take all cores, so that a dedicated driver shares one: of real
 * executions the run tells. */
void result_note_driver(struct result *result, const graphi_decision *setting, int cores);
void result_number(json_t *row, const char *key, double value);

/* gflops and fraction_of_limit of a time: both from the same FLOPs: where arithmetic is the limit, their ratio is the
 * roof. */
struct rating {
    double flops, limit_ms; /* of one execution; limit_ms 0: unknown */
    double roof_gflops; /* that the limit follows from; 0: from bandwidth, or there is none */
    bool bfloat16;      /* it is that of bfloat16 dot products, not of float32 */
};
/* roof_gflops, and roof_of where it is not float32, of a row or a goal; nothing where the roof is 0. */
void result_roof(json_t *line, struct rating rating);
void result_rate(json_t *row, struct rating rating, double median_ms);
void result_integer(json_t *row, const char *key, int64_t value);
void result_string(json_t *row, const char *key, const char *value);

/* n samples in ms → "n" and "time_ms" (median, quartiles, p99, minimum). Samples stay in their order, here and below:
 * the i-th of one thing is the pair of the i-th of another. */
void result_times(json_t *row, const double *ms, int n);

/* Paired samples of this row and another, taken in alternation: median ratio a/b with its quartiles. */
void result_ratio(json_t *row, const char *against, const double *a_ms, const double *b_ms, int n);

void result_goal(struct result *result, const char *name, double value, double goal, bool at_least);
void result_note(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3))); /* said once */

/* The number, or null where it is not finite, which JSON cannot say, and a note (once). */
json_t *result_metric(struct result *result, double value);
void result_file(struct result *result, const char *path); /* named once, however often it was written */
void result_timeline(struct result *result, const char *prefix); /* PREFIX.json and PREFIX.html */

double result_median(const double *values, int n); /* n > 0 */
/* The rows as people read them, the caller's: of a sweep by time within each group of ids, the fastest called best; of
 * others as they are. NULL: out of memory, or there are none. */
json_t *result_sorted(const json_t *root);

double result_paired(const double *a_ms, const double *b_ms, int n); /* the median of result_ratio */
void result_sort(double *values, int n); /* ascending */

/* A stored result whose parts have the types of docs/results-schema.md; *root is the caller's. Errors, reported, *root
 * untouched: INVALID, IO. */
graphi_status result_read(const char *file, json_t **root);

/* Columns that hold anything, as an aligned text table; goals and notes below it. All of it, or MEMORY, reported. */
graphi_status result_print(const json_t *root, FILE *out);
void result_print_notes(const json_t *root, FILE *out); /* these alone */

/* A horizontal bar chart of rows by median time, one bar a row, in groups of ids that begin alike, each with its own
 * scale; peers and simulated rows marked. Atomic. Errors: IO, reported. */
graphi_status result_svg(const json_t *root, const char *path);

/* Text of a picture: at most so many bytes, no part of a character, with what SVG has a meaning for written as
 * entities. */
void result_escape(FILE *file, const char *text, size_t most);

graphi_status result_write(const json_t *root, const char *path); /* "-": stdout; otherwise atomic */

#endif
