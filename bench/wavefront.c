/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt 7.4: the diagonal order of a 4-layer LSTM's cells on 8 executors, simulated; writes the timeline
 * (--timeline PREFIX, else wavefront.json and .html in --out or the working folder) and reads the order off it.
 * tests/test_wavefront.c asserts it. */
#include "study.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 8, MOST_STEPS = 128 };

struct cells {
    double start[MOST_LAYERS][MOST_STEPS]; /* latest start of a forward operation; 0: none */
    int layers, steps;
};

static void add_event(struct cells *cells, const json_t *event)
{
    int layer, step;
    const json_t *arguments = json_object_get(event, "args");
    const char *name = json_string_value(json_object_get(arguments, "node"));
    const char *pass = json_string_value(json_object_get(event, "cat"));
    const char *scope = name ? strstr(name, "layer") : NULL;
    if (!scope || sscanf(scope, "layer%d/t%d", &layer, &step) != 2 || layer >= MOST_LAYERS || step >= MOST_STEPS ||
        layer < 0 || step < 0 || !pass || strcmp(pass, "forward") != 0)
        return;
    double start = json_number_value(json_object_get(event, "ts")) + 1e-3;
    if (start > cells->start[layer][step])
        cells->start[layer][step] = start;
    cells->layers = layer + 1 > cells->layers ? layer + 1 : cells->layers;
    cells->steps = step + 1 > cells->steps ? step + 1 : cells->steps;
}

static graphi_status read_timeline(const char *path, struct cells *cells)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *event;
    size_t i;
    if (!root)
        return report_error(GRAPHI_IO, path, "found %s, expected the timeline that was just written", error.text);
    json_array_foreach(json_object_get(root, "traceEvents"), i, event) add_event(cells, event);
    json_decref(root);
    return GRAPHI_OK;
}

/* Pairs of cells on different diagonals, and how many of them start in the wrong order. */
static void judge(struct bench *bench, const struct cells *c, const char *policy)
{
    int pairs = 0, wrong = 0;
    for (int la = 0; la < c->layers; la++)
        for (int ta = 0; ta < c->steps; ta++)
            for (int lb = 0; lb < c->layers; lb++)
                for (int tb = 0; tb < c->steps; tb++)
                    if (la + ta < lb + tb) {
                        pairs++;
                        wrong += c->start[la][ta] > c->start[lb][tb];
                    }
    char goal[128];
    snprintf(goal, sizeof goal, "%s: pairs of cells out of diagonal order, of %d", policy, pairs);
    if (strcmp(policy, "critical-path") == 0)
        result_goal(&bench->result, goal, wrong, 0, false);
    else
        result_note(&bench->result, "%s: %d", goal, wrong);
}

static graphi_status one(struct study *s, graphi_policy policy, const char *prefix)
{
    char path[4200];
    struct cells cells = {.layers = 0};
    graphi_simulation out;
    graphi_setting setting = study_setting(policy, 8, s->about.cores >= 64 ? 8 : 1);
    graphi_status status = graphi_plan_simulate(s->plan, s->machine, &setting, prefix, &out);
    if (status)
        return report_failure(status);
    status = study_row(s, graphi_policy_name(policy), &setting, NULL, 0, &out);
    snprintf(path, sizeof path, "%s.json", prefix);
    if (!status)
        status = read_timeline(path, &cells);
    if (status)
        return status;
    judge(s->bench, &cells, graphi_policy_name(policy));
    result_file(&s->bench->result, path);
    return GRAPHI_OK;
}

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct study s;
    char prefix[4100], other[4150];
    const struct options *o = &bench->options;
    snprintf(prefix, sizeof prefix, "%s%s%s",
             o->timeline ? o->timeline
             : o->out    ? o->out
                         : "",
             !o->timeline && o->out ? "/" : "", o->timeline ? "" : "wavefront");
    graphi_status status = study_open(bench, network, size, &s);
    if (!status && !s.missing)
        status = one(&s, GRAPHI_POLICY_CRITICAL_PATH, prefix);
    snprintf(other, sizeof other, "%s-naive", prefix);
    if (!status && !s.missing && !o->quick)
        status = one(&s, GRAPHI_POLICY_NAIVE, other);
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm", NULL};
    bench->options.disable = bench->options.disable ? bench->options.disable : "merge";
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "wavefront", run);
}
