/* SPDX-License-Identifier: Apache-2.0 */
/* graphi.txt 7.4: the diagonal order of a 4-layer LSTM's cells on 8 executors, simulated: critical path first, and the
 * paper's baseline as a queue, which has it too (docs/simulator.md), and at random. tests/test_wavefront.c asserts it.
 * --timeline PREFIX keeps the timelines, --out DIR draws the order: wavefront-order.svg, one box a cell. */
#include "picture.h"
#include "study.h"

#include <string.h>

enum { EXECUTORS = 8, MOST_LAYERS = 8, MOST_STEPS = 128 };

struct cells {
    double start[MOST_LAYERS][MOST_STEPS]; /* latest start of a forward operation; 0: none */
    int layers, steps;
};

static const graphi_policy policies[] = {GRAPHI_POLICY_CRITICAL_PATH, GRAPHI_POLICY_NAIVE, GRAPHI_POLICY_RANDOM};
enum { POLICIES = sizeof policies / sizeof *policies };

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

/* A diagonal takes 200 us; an executor that becomes free while the last products of one run may start the next one
 * first. */
static const double tie_us = 10;

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
                        wrong += c->start[la][ta] > c->start[lb][tb] + tie_us;
                    }
    char goal[128];
    snprintf(goal, sizeof goal, "%s (simulated): pairs of cells out of diagonal order, of %d", policy, pairs);
    if (strcmp(policy, "critical-path") == 0)
        result_goal(&bench->result, goal, wrong, 0, false);
    else
        result_note(&bench->result, "%s: %d", goal, wrong);
}

enum { BOX = 26, LAYERS = 4, PANEL = (LAYERS + 2) * BOX, MARGIN = 20 };

/* Layers upwards, steps to the right; the number and the hue of a box: when its cell starts among all. */
static void draw(struct picture *picture, const struct cells *c, int panel, const char *policy)
{
    char title[100], text[16];
    snprintf(title, sizeof title, "%s, simulated: layers upwards, steps to the right, numbered by start", policy);
    picture_text(picture, MARGIN, panel * PANEL + BOX, title);
    for (int layer = 0; layer < c->layers; layer++)
        for (int step = 0; step < c->steps; step++) {
            int rank = 0;
            for (int i = 0; i < c->layers * c->steps; i++)
                rank += c->start[i / c->steps][i % c->steps] < c->start[layer][step];
            snprintf(text, sizeof text, "%d", rank);
            picture_box(picture, MARGIN + step * BOX, panel * PANEL + (c->layers - layer) * BOX + BOX / 2, BOX, BOX,
                        330.0 * rank / (c->layers * c->steps), text);
        }
}

static graphi_status one(struct study *s, int p, struct picture *picture)
{
    char prefix[4200];
    struct cells cells = {.layers = 0};
    graphi_simulation out;
    json_t *events, *event;
    size_t i;
    const struct options *o = &s->bench->options;
    const char *name = graphi_policy_name(policies[p]);
    graphi_setting setting = study_setting(policies[p], EXECUTORS, s->about.cores >= 64 ? 8 : 1);
    snprintf(prefix, sizeof prefix, "%s%s%s", o->timeline ? o->timeline : "", p ? "-" : "", p ? name : "");
    if (!study_fits(s, name, setting.executors, setting.width))
        return GRAPHI_OK;
    graphi_status status = study_row(s, name, &setting, NULL, 0, &out);
    if (!status)
        status = study_timeline(s, &setting, o->timeline ? prefix : NULL, &out, &events);
    if (status)
        return status;
    json_array_foreach(events, i, event) add_event(&cells, event);
    json_decref(events);
    judge(s->bench, &cells, name);
    if (p == 0)
        status =
            picture_open_plain(picture, s->bench, "wavefront-order", 2 * MARGIN + cells.steps * BOX, POLICIES * PANEL);
    draw(picture, &cells, p, name);
    if (o->timeline)
        result_timeline(&s->bench->result, prefix);
    return status;
}

/* Cells are of layers and steps of time. */
static graphi_status check(const struct study *s)
{
    graphi_model_info info;
    if (graphi_model_get_info(s->name, NULL, &info) != GRAPHI_OK || info.steps < 1)
        return report_usage("bench wavefront", s->name, "a network of cells in time: lstm, phased-lstm, ptb");
    return GRAPHI_OK;
}

static graphi_status body(struct study *s)
{
    struct picture picture = {0};
    graphi_status checked = check(s);
    if (checked != GRAPHI_OK)
        return checked;
    graphi_status status = GRAPHI_OK;
    for (int p = 0; p < (s->bench->options.quick ? 1 : POLICIES) && !status; p++)
        status = one(s, p, &picture);
    return picture_close(&picture, status);
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"lstm", NULL};
    study_passes_off(bench, "stages", "a cell's gates begin when all that they read is there");
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "wavefront", run);
}
