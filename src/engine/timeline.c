/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines as files. The page is src/engine/timeline/page.html with the data put in place of its marker; the build
 * turns it into timeline_page[]. Usual size: 300 to 20,000 events. */
#include "engine/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

extern const char timeline_page[];

static int by_start(const void *a, const void *b)
{
    const struct timeline_event *x = *(const struct timeline_event *const *)a,
                                *y = *(const struct timeline_event *const *)b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* An idle gap before an event on its lane: the part after the event became ready is scheduling, the part before is
 * starvation. */
static void charge_gap(struct timeline_lane *lane, int64_t from, const struct timeline_event *event)
{
    int64_t gap = event->start_ns - from;
    if (gap <= 0)
        return;
    int64_t ready = event->ready_ns > from ? event->ready_ns : from;
    int64_t late = event->start_ns > ready ? event->start_ns - ready : 0;
    lane->scheduling_ns += late < gap ? late : gap;
    lane->starved_ns += late < gap ? gap - late : 0;
}

void timeline_sum(const struct timeline *timeline, struct timeline_lane *out, struct timeline_totals *totals)
{
    *totals = (struct timeline_totals){0};
    size_t lanes = (size_t)timeline->lanes, count = (size_t)timeline->count;
    struct timeline_lane *lane = mem_zalloc_array(lanes, sizeof *lane);
    int64_t *until = mem_zalloc_array(lanes, sizeof *until);
    const struct timeline_event **order = mem_zalloc_array(count, sizeof *order);
    if (lane && until && order) {
        for (size_t i = 0; i < count; i++)
            order[i] = &timeline->events[i];
        qsort(order, count, sizeof *order, by_start);
        for (size_t i = 0; i < count; i++) {
            const struct timeline_event *e = order[i];
            totals->span_ns = e->end_ns > totals->span_ns ? e->end_ns : totals->span_ns;
            for (int m = e->leader; m < e->leader + e->width && m < timeline->lanes; m++) {
                charge_gap(&lane[m], until[m], e);
                int64_t from = e->start_ns > until[m] ? e->start_ns : until[m];
                lane[m].busy_ns += e->end_ns > from ? e->end_ns - from : 0;
                until[m] = e->end_ns > until[m] ? e->end_ns : until[m];
                lane[m].operations += m == e->leader;
            }
        }
        double whole = (double)totals->span_ns * timeline->lanes;
        for (size_t m = 0; m < lanes && whole > 0; m++) {
            lane[m].starved_ns += totals->span_ns - until[m]; /* the end of the step */
            totals->busy += (double)lane[m].busy_ns / whole;
            totals->starved += (double)lane[m].starved_ns / whole;
            totals->scheduling += (double)lane[m].scheduling_ns / whole;
        }
        if (out)
            memcpy(out, lane, lanes * sizeof *lane);
    }
    mem_free(lane);
    mem_free(until);
    mem_free(order);
}

void timeline_mark_critical(struct timeline_event *events, int64_t count, const int32_t *begin, const int32_t *list)
{
    int64_t at = -1;
    for (int64_t i = 0; i < count; i++)
        if (at < 0 || events[i].end_ns > events[at].end_ns)
            at = i;
    while (at >= 0 && !events[at].critical) {
        int64_t before = -1;
        events[at].critical = true;
        for (int32_t p = begin[at]; p < begin[at + 1]; p++)
            if (before < 0 || events[list[p]].end_ns > events[before].end_ns)
                before = list[p];
        at = before;
    }
}

static graphi_status finish(struct text *text, const char *path)
{
    graphi_status status = text->broken ? fail_memory(path, text->count) : file_replace(path, text->data, text->count);
    text_free(text);
    return status;
}

/* The format: an array of complete ("X") events with microsecond times, one thread a lane. */
static void chrome_event(struct text *text, const struct timeline_event *e, int lane)
{
    text_add(text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":", lane,
             (double)e->start_ns * 1e-3, (double)(e->end_ns - e->start_ns) * 1e-3,
             e->backward ? "backward" : "forward");
    text_add_json_string(text, e->kind);
    text_add(text, ",\"args\":{\"node\":");
    text_add_json_string(text, e->name);
    text_add(text, ",\"detail\":");
    text_add_json_string(text, e->detail);
    text_add(
        text,
        ",\"level_us\":%.3f,\"ready_us\":%.3f,\"width\":%d,\"leader\":%d,\"inlined\":%s,\"critical\":%s,\"flop\":%.0f,"
        "\"bytes\":%.0f}}",
        (double)e->level_ns * 1e-3, (double)e->ready_ns * 1e-3, e->width, e->leader, e->inlined ? "true" : "false",
        e->critical ? "true" : "false", e->flops, e->bytes);
}

graphi_status timeline_write_json(const struct timeline *timeline, const char *path)
{
    struct text text = {0};
    char name[400];
    snprintf(name, sizeof name, "%s%s", timeline->title, timeline->simulated ? " (simulated)" : "");
    text_add(&text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"simulated\":%s},\"traceEvents\":[\n",
             timeline->simulated ? "true" : "false");
    text_add(&text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    text_add_json_string(&text, name);
    text_add(&text, "}}");
    for (int lane = 0; lane < timeline->lanes; lane++)
        text_add(&text,
                 ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"worker %d%s\"}}",
                 lane, lane, timeline->simulated ? " (simulated)" : "");
    for (int64_t i = 0; i < timeline->count; i++)
        for (int m = 0; m < timeline->events[i].width; m++)
            chrome_event(&text, &timeline->events[i], timeline->events[i].leader + m);
    text_add(&text, "\n]}\n");
    return finish(&text, path);
}

static void page_data(struct text *text, const struct timeline *timeline)
{
    text_add(text, "{\"title\":");
    text_add_json_string(text, timeline->title);
    text_add(text, ",\"simulated\":%s,\"lanes\":%d,\"bound\":%lld,\"critical\":%lld,\"events\":[",
             timeline->simulated ? "true" : "false", timeline->lanes, (long long)timeline->lower_bound_ns,
             (long long)timeline->critical_path_ns);
    for (int64_t i = 0; i < timeline->count; i++) {
        const struct timeline_event *e = &timeline->events[i];
        text_add(text, "%s\n[", i ? "," : "");
        text_add_json_string(text, e->name);
        text_add(text, ",");
        text_add_json_string(text, e->kind);
        text_add(text, ",");
        text_add_json_string(text, e->detail);
        text_add(text, ",%lld,%lld,%lld,%lld,%d,%d,%d]", (long long)e->ready_ns, (long long)e->start_ns,
                 (long long)e->end_ns, (long long)e->level_ns, e->leader, e->width,
                 e->inlined | e->critical << 1 | e->backward << 2);
    }
    text_add(text, "],\"lane\":[");
    struct timeline_lane *lane = mem_zalloc_array((size_t)timeline->lanes, sizeof *lane);
    struct timeline_totals totals;
    timeline_sum(timeline, lane, &totals);
    for (int m = 0; lane && m < timeline->lanes; m++)
        text_add(text, "%s[%lld,%lld,%lld,%lld]", m ? "," : "", (long long)lane[m].busy_ns,
                 (long long)lane[m].starved_ns, (long long)lane[m].scheduling_ns, (long long)lane[m].operations);
    mem_free(lane);
    text_add(text, "]}");
}

/* "</script>" in a name would end the data early: '<' is written as an escape. */
static void add_escaped(struct text *text, const char *data)
{
    for (const char *from = data; *from;) {
        size_t plain = strcspn(from, "<");
        text_add(text, "%.*s", (int)plain, from);
        from += plain;
        if (*from)
            text_add(text, "\\u003c"), from++;
    }
}

graphi_status timeline_write_html(const struct timeline *timeline, const char *path)
{
    static const char marker[] = "/*DATA*/null";
    const char *title = strstr(timeline_page, "</title>"), *at = strstr(timeline_page, marker);
    struct text data = {0}, text = {0};
    page_data(&data, timeline);
    text.broken = data.broken;
    text_add(&text, "%.*s%s%.*s", (int)(title - timeline_page), timeline_page,
             timeline->simulated ? " (simulated)" : "", (int)(at - title), title);
    if (data.data)
        add_escaped(&text, data.data);
    text_add(&text, "%s", at + sizeof marker - 1);
    text_free(&data);
    return finish(&text, path);
}
