/* SPDX-License-Identifier: Apache-2.0 */
/* graphi conformance [DIR]: every test of ONNX's backend suite below a folder, model.onnx with test_data_set_N beside
 * it, each of input_I.pb and output_I.pb. A table counts by operator what passed, failed, and is not supported. Usual
 * size: 1,000 to 2,500 tests. */
#include "cli/commands.h"
#include "tool/report.h"
#include "tool/result.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORTS = 256, DEEPEST = 6 };

#define SUITE "/usr/share/libonnx-testdata/data"

enum verdict { PASSED, FAILED, UNSUPPORTED, VERDICTS };

struct group {
    char name[128];
    int count[VERDICTS];
    char reason[300]; /* the first */
};

struct suite {
    const struct options *options;
    struct result result;
    struct group *groups;
    size_t group_count, group_room;
    char last_test[256], last_group[128]; /* the form of a test that is written out comes after it */
    int count[VERDICTS];
};

static void count_test(struct suite *s, const char *operator, enum verdict verdict, const char *reason)
{
    size_t i = 0;
    while (i < s->group_count && strcmp(s->groups[i].name, operator) != 0)
        i++;
    if (i == s->group_room) {
        const size_t room = s->group_room ? 2 * s->group_room : 64;
        struct group *grown = realloc(s->groups, room * sizeof *grown);
        if (!grown)
            return;
        s->groups = grown;
        s->group_room = room;
    }
    if (i == s->group_count) {
        memset(&s->groups[i], 0, sizeof s->groups[i]);
        snprintf(s->groups[i].name, sizeof s->groups[i].name, "%s", operator);
        s->group_count++;
    }
    if (verdict != PASSED && !*s->groups[i].reason)
        snprintf(s->groups[i].reason, sizeof s->groups[i].reason, "%.299s", reason);
    s->groups[i].count[verdict]++;
    s->count[verdict]++;
}

/* The only operator of a model, or that of the test whose written-out form it is. */
static void name_group(struct suite *s, const char *test, const graphi_session *session, char *out, size_t size)
{
    graphi_session_operator op;
    const size_t length = strlen(s->last_test);
    snprintf(out, size, "(graphs of several)");
    if (length && strncmp(test, s->last_test, length) == 0 && strncmp(test + length, "_expanded", 9) == 0) {
        snprintf(out, size, "%s", s->last_group);
        return;
    }
    if (session && graphi_session_operator_at(session, 0, &op) && !graphi_session_operator_at(session, 1, &op) &&
        op.nodes == 1)
        snprintf(out, size, "%s%s%s", op.domain, *op.domain ? "." : "", op.name);
    snprintf(s->last_test, sizeof s->last_test, "%s", test);
    snprintf(s->last_group, sizeof s->last_group, "%s", out);
}

static const char *kind_of(const graphi_session_port *port)
{
    return port->optional ? "optional" : port->kind == GRAPHI_KIND_SEQUENCE ? "sequence" : "tensor";
}

/* Older suites store bfloat16 as uint16. */
static graphi_status take_as_bfloat16(graphi_tensor **value)
{
    graphi_tensor_info info;
    graphi_tensor *other;
    graphi_tensor_get_info(*value, &info);
    if (info.element != GRAPHI_ELEMENT_UINT16)
        return GRAPHI_OK;
    const graphi_status status = graphi_tensor_create(GRAPHI_ELEMENT_BFLOAT16, info.rank, info.dims, info.data, &other);
    if (status == GRAPHI_OK) {
        graphi_tensor_destroy(*value);
        *value = other;
    }
    return status;
}

/* Without tolerances asked for: 1e-5 + 1e-4 |expected|, or those of ONNX's own runner, 1e-7 + 1e-3 |expected|. */
static graphi_status compare(const struct options *o, const graphi_tensor *found, const graphi_tensor *expected)
{
    graphi_status status =
        graphi_tensor_compare(found, expected, o->rtol_given ? o->rtol : 1e-4, o->atol_given ? o->atol : 1e-5);
    if (status == GRAPHI_MISSED && !o->rtol_given && !o->atol_given)
        status = graphi_tensor_compare(found, expected, 1e-3, 1e-7);
    return status;
}

/* Values of one data set in the order of the model's ports. */
static graphi_status load_values(const char *folder, const char *what, const graphi_session *session,
                                 graphi_session_port_kind kind, const char **names, graphi_tensor **values,
                                 size_t *count)
{
    char path[4096];
    graphi_session_port port;
    for (size_t i = 0; i < PORTS && graphi_session_port_at(session, kind, i, &port); i++) {
        snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, what, i);
        if (access(path, F_OK) != 0)
            break;
        graphi_status status = graphi_tensor_load(path, NULL, kind_of(&port), &values[i]);
        if (status == GRAPHI_OK && port.element == GRAPHI_ELEMENT_BFLOAT16)
            status = take_as_bfloat16(&values[i]);
        if (status != GRAPHI_OK)
            return status;
        names[i] = port.name;
        (*count)++;
    }
    return GRAPHI_OK;
}

static void drop_values(graphi_tensor **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        graphi_tensor_destroy(values[i]);
}

static graphi_status run_set(const struct suite *s, const char *folder, const graphi_session *session)
{
    const struct options *o = s->options;
    const char *names[PORTS], *outputs[PORTS];
    graphi_tensor *in[PORTS] = {0}, *expected[PORTS] = {0}, *found[PORTS] = {0};
    size_t ins = 0, outs = 0;
    graphi_status status = load_values(folder, "input", session, GRAPHI_SESSION_INPUT, names, in, &ins);
    if (status == GRAPHI_OK)
        status = load_values(folder, "output", session, GRAPHI_SESSION_OUTPUT, outputs, expected, &outs);
    if (status == GRAPHI_OK)
        status = graphi_session_run(session, names, (const graphi_tensor *const *)in, ins, outputs, outs, found);
    for (size_t i = 0; i < outs && status == GRAPHI_OK; i++)
        status = compare(o, found[i], expected[i]);
    drop_values(in, ins);
    drop_values(expected, outs);
    drop_values(found, outs);
    return status;
}

static graphi_status run_sets(const struct suite *s, const char *folder, const graphi_session *session)
{
    char set[4096];
    for (int i = 0;; i++) {
        snprintf(set, sizeof set, "%s/test_data_set_%d", folder, i);
        if (access(set, F_OK) != 0)
            return GRAPHI_OK;
        const graphi_status status = run_set(s, set, session);
        if (status != GRAPHI_OK)
            return status;
    }
}

static void run_test(struct suite *s, const char *folder, const char *model)
{
    const char *slash = strrchr(folder, '/'), *test = slash ? slash + 1 : folder;
    char group[128];
    graphi_session *session = NULL, *looked = NULL;
    graphi_status status = graphi_session_open(model, NULL, 0, NULL, &session);
    if (status == GRAPHI_OK)
        status = run_sets(s, folder, session);
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", status == GRAPHI_OK ? "" : graphi_message());
    if (!session && graphi_session_inspect(model, &looked) != GRAPHI_OK)
        looked = NULL;
    name_group(s, test, session ? session : looked, group, sizeof group);
    const enum verdict verdict = status == GRAPHI_OK ? PASSED : status == GRAPHI_UNSUPPORTED ? UNSUPPORTED : FAILED;
    count_test(s, group, verdict, reason);
    json_t *row = result_row(&s->result, test, "graphi");
    result_string(row, "operator", group);
    result_string(row, "status", verdict == PASSED ? "ok" : verdict == FAILED ? "failed" : "missing");
    result_string(row, "reason", reason);
    if (verdict == FAILED && !s->options->quiet)
        fprintf(stderr, "FAILED %s (%s): %s\n", test, group, reason);
    graphi_session_close(session);
    graphi_session_close(looked);
}

static void walk(struct suite *s, const char *folder, int depth)
{
    char path[4096];
    struct dirent **entries;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (access(path, F_OK) == 0) {
        run_test(s, folder, path);
        return;
    }
    const int count = depth < DEEPEST ? scandir(folder, &entries, NULL, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && !report_interrupted() &&
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path)
            walk(s, path, depth + 1);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct group *)left)->name, ((const struct group *)right)->name);
}

static void print_table(struct suite *s, FILE *out)
{
    qsort(s->groups, s->group_count, sizeof *s->groups, by_name);
    fprintf(out, "| operator | passed | failed | unsupported | first reason |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < s->group_count; i++) {
        struct group *g = &s->groups[i];
        for (char *c = g->reason; *c; c++)
            *c = *c == '|' ? '/' : *c;
        fprintf(out, "| %s | %d | %d | %d | %s |\n", g->name, g->count[PASSED], g->count[FAILED], g->count[UNSUPPORTED],
                g->reason);
    }
    fprintf(out, "| **all** | %d | %d | %d | |\n", s->count[PASSED], s->count[FAILED], s->count[UNSUPPORTED]);
}

int command_conformance(const struct options *options)
{
    struct suite s = {.options = options};
    const char *folder = options->subject ? options->subject : SUITE;
    if (access(folder, R_OK) != 0)
        return report_error(GRAPHI_IO, folder,
                            "found no folder of tests, expected ONNX's (Debian: libonnx-testdata; or "
                            "onnx/backend/test/data of the Python package)");
    s.result = result_begin("conformance", NULL, options->argc, options->argv);
    walk(&s, folder, 0);
    graphi_status status = report_stopped("conformance", "all tests");
    if (status == GRAPHI_OK && !s.count[PASSED] && !s.count[FAILED] && !s.count[UNSUPPORTED])
        status = report_error(GRAPHI_INVALID, folder, "found no model.onnx below it, expected tests");
    if (status == GRAPHI_OK && !options_json_is_stdout(options))
        print_table(&s, stdout);
    if (status == GRAPHI_OK && options->json)
        status = result_write(s.result.root, options->json);
    if (status == GRAPHI_OK && s.count[FAILED])
        status =
            report_error(GRAPHI_MISSED, "conformance", "found %d tests that failed, expected none", s.count[FAILED]);
    result_end(&s.result);
    free(s.groups);
    return status;
}
