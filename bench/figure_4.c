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

/* The course of one timeline: how many operations ran until the event where one ends, and run after it where one
 * starts. */
struct course {
    const char *policy;
    double *x, *y;
    int points;
    double average, most;
};

/* Starts and ends of the timeline's operations in order; NULL: no memory. */
static struct event *events_of(const json_t *list, size_t *count)
{
    struct event *event = calloc(2 * json_array_size(list) + 1, sizeof *event);
    size_t i;
    json_t *item;
    *count = 0;
    json_array_foreach(list, i, item)
    {
        const json_t *leader =
            json_object_get(json_object_get(item, "args"), "leader"); /* one event a member of its team */
        double start = json_number_value(json_object_get(item, "ts")),
               took = json_number_value(json_object_get(item, "dur"));
        if (!event || took <= 0 || json_integer_value(leader) != json_integer_value(json_object_get(item, "tid")))
            continue;
        event[(*count)++] = (struct event){round(1000 * start), 1}; /* in ns: ends and starts of one moment stay one */
        event[(*count)++] = (struct event){round(1000 * (start + took)), -1};
    }
    if (event)
        qsort(event, *count, sizeof *event, by_time);
    return event;
}

static void follow(const json_t *list, struct course *c)
{
    size_t count;
    struct event *event = events_of(list, &count);
    const size_t from = count > EVENTS ? (count - EVENTS) / 2 : 0, shown = count > EVENTS ? EVENTS : count;
    int running = 0;
    for (size_t i = 0; event && i < from + shown; i++) {
        const int before = running;
        running += event[i].change;
        if (i < from)
            continue;
        const int beside = before > running ? before : running;
        c->x[c->points] = 100.0 * (double)(i - from) / (double)shown;
        c->y[c->points++] = beside;
        c->average += beside / (double)shown;
        c->most = fmax(c->most, beside);
    }
    free(event);
}

static graphi_status course_of(struct study *s, graphi_policy policy, struct course *c)
{
    graphi_simulation out = {0};
    json_t *events = NULL;
    graphi_setting setting = {.policy = policy, .executors = s->about.cores, .width = 1, .light = GRAPHI_OFF};
    *c = (struct course){.policy = graphi_policy_name(policy),
                         .x = calloc(EVENTS, sizeof *c->x),
                         .y = calloc(EVENTS, sizeof *c->y)};
    graphi_status status = study_timeline(s, &setting, NULL, &out, &events);
    if (!status && c->x && c->y)
        follow(events, c);
    json_decref(events);
    return status;
}

static graphi_status draw(struct study *s)
{
    enum { COURSES = 2, LOWEST = 6 /* what the picture is high at least */ };
    static const graphi_policy policies[COURSES] = {GRAPHI_POLICY_S1234, GRAPHI_POLICY_S123};
    struct course course[COURSES] = {{0}};
    struct picture picture;
    char name[160], title[160], text[80];
    double most = LOWEST;
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < COURSES && s->bench->options.out && !status; i++) {
        status = course_of(s, policies[i], &course[i]);
        most = fmax(most, course[i].most);
    }
    snprintf(name, sizeof name, "figure-4-%s", s->name);
    snprintf(title, sizeof title, "%s %s, simulated %s", s->name, s->size, s->about.name);
    if (!status) {
        status = picture_open(&picture, s->bench, name, title, "% of the events", "operations side by side", 100, most);
        for (int i = 0; i < COURSES && picture.file && !status; i++) {
            snprintf(text, sizeof text, "%s, average %.2f", course[i].policy, course[i].average);
            picture_line(&picture, course[i].x, course[i].y, course[i].points, 1 - i, 0.8);
            picture_name(&picture, text, 1 - i);
        }
        status = picture_close(&picture, status);
    }
    for (int i = 0; i < COURSES; i++) {
        free(course[i].x);
        free(course[i].y);
    }
    return status;
}

static graphi_status compare(struct study *s)
{
    graphi_simulation without, with;
    graphi_setting setting = {
        .policy = GRAPHI_POLICY_S123, .executors = s->about.cores, .width = 1, .light = GRAPHI_OFF};
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
    study_of_paper(bench);
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", NULL};
    return study_each(bench, networks, compare);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "figure-4", run);
}
