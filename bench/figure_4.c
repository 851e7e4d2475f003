/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Figure 4: operations side by side at the events (starts and ends) of one step, with and
 * without strategy 4; simulated. The paper's averages, over 6000 events in the middle of a step: 1.61, 1.62, 1.52
 * without and 1.89, 2.04, 1.74 with it (ResNet-50, DCGAN, Inception-v3). An operation that ends counts among those side
 * by side at its end. With --out also the courses: figure-4-NETWORK.svg, of at most as many events, with their average.
 */
#include "picture.h"
#include "study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *network;
    double without, with;
} paper[] = {{"resnet50", 1.61, 1.89}, {"dcgan", 1.62, 2.04}, {"inception-v3", 1.52, 1.74}};
enum { EVENTS = 6000 };

/* A start (+1) or an end (-1). */
struct event {
    double time;
    int change;
};

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return x->time != y->time ? (x->time > y->time) - (x->time < y->time) : x->change - y->change;
}

/* The course of one timeline as a line of the picture: how many operations ran until the event where one ends, and run
 * after it where one starts. */
static void draw_course(struct picture *picture, const json_t *list, int colour, const char *policy)
{
    size_t most = 2 * json_array_size(list), count = 0, i;
    struct event *event = calloc(most + 1, sizeof *event);
    double *x = calloc(EVENTS, sizeof *x), *y = calloc(EVENTS, sizeof *y);
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const json_t *leader =
            json_object_get(json_object_get(item, "args"), "leader"); /* one event a member of its team */
        double start = json_number_value(json_object_get(item, "ts")),
               took = json_number_value(json_object_get(item, "dur"));
        if (!event || took <= 0 || json_integer_value(leader) != json_integer_value(json_object_get(item, "tid")))
            continue;
        event[count++] = (struct event){round(1000 * start), 1}; /* in ns: ends and starts of one moment stay one */
        event[count++] = (struct event){round(1000 * (start + took)), -1};
    }
    if (event && x && y) {
        qsort(event, count, sizeof *event, by_time);
        size_t from = count > EVENTS ? (count - EVENTS) / 2 : 0, shown = count > EVENTS ? EVENTS : count, points = 0;
        int running = 0;
        double sum = 0;
        char name[80];
        for (i = 0; i < from + shown; i++) {
            int before = running;
            running += event[i].change;
            if (i >= from) {
                x[points] = 100.0 * (double)(i - from) / (double)shown;
                sum += y[points++] = before > running ? before : running;
            }
        }
        picture_line(picture, x, y, (int)points, colour, 0.8);
        snprintf(name, sizeof name, "%s, average %.2f", policy, points ? sum / (double)points : 0);
        picture_name(picture, name, colour);
    }
    free(event);
    free(x);
    free(y);
}

static graphi_status course(struct study *s, graphi_policy policy, struct picture *picture, int colour)
{
    graphi_simulation out = {0};
    json_t *events = NULL;
    graphi_setting setting = {.policy = policy, .executors = s->about.cores, .width = 1, .light = -1};
    graphi_status status = study_timeline(s, &setting, NULL, &out, &events);
    if (!status)
        draw_course(picture, events, colour, graphi_policy_name(policy));
    json_decref(events);
    return status;
}

static graphi_status draw(struct study *s)
{
    struct picture picture;
    char name[160], title[160];
    snprintf(name, sizeof name, "figure-4-%s", s->name);
    snprintf(title, sizeof title, "%s %s, simulated %s", s->name, s->size, s->about.name);
    graphi_status status =
        picture_open(&picture, s->bench, name, title, "% of the events", "operations side by side", 100, 6);
    if (!status && picture.file)
        status = course(s, GRAPHI_POLICY_S1234, &picture, 1);
    if (!status && picture.file)
        status = course(s, GRAPHI_POLICY_S123, &picture, 0);
    return picture_close(&picture, status);
}

static graphi_status compare(struct study *s)
{
    graphi_simulation without, with;
    graphi_setting setting = {.policy = GRAPHI_POLICY_S123, .executors = s->about.cores, .width = 1, .light = -1};
    graphi_status status = study_row(s, "s123", &setting, NULL, 0, &without);
    setting.policy = GRAPHI_POLICY_S1234;
    if (!status)
        status = study_row(s, "s1234", &setting, "s123", without.makespan_ms, &with);
    if (status)
        return status;
    char text[80] = "";
    for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
        if (strcmp(paper[i].network, s->name) == 0)
            snprintf(text, sizeof text, "; Figure 4: %.2f and %.2f", paper[i].without, paper[i].with);
    result_note(&s->bench->result, "%s (simulated): %.2f operations side by side with strategy 3, %.2f with 4%s",
                s->name, without.mean_corunning, with.mean_corunning, text);
    if (s->about.siblings == 0)
        result_note(&s->bench->result, "the described machine has one thread a core: strategy 4 has nothing to use");
    return draw(s);
}

static graphi_status run(struct bench *bench)
{
    study_description = STUDY_PAPERS_MACHINE;
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", NULL};
    return study_each(bench, networks, compare);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-4", run);
}
