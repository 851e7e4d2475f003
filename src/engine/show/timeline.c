/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines as files. The page is timeline_page.html beside this with the data put in place of its marker; the build
 * turns it into timeline_page[]. Usual size: 300 to 20,000 events. */
#include "engine/show/timeline.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/show/timeline_sum.h"
#include "machine/machine.h"

extern const char timeline_page[];

static graphi_status finish(struct text *text, const char *path)
{
    graphi_status status = text->broken ? fail_memory(path, text->count) : file_replace(path, text->data, text->count);
    text_free(text);
    return status;
}

/* The format: an array of complete ("X") events with microsecond times, one thread a lane. */
static void chrome_event(struct text *text, const struct timeline_event *e, int member, bool averaged)
{
    text_add(text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":",
             timeline_member(e, member), (double)e->start_ns * 1e-3, (double)(e->end_ns - e->start_ns) * 1e-3,
             e->backward ? "backward" : "forward");
    text_add_json_string(text, e->kind);
    text_add(text, ",\"args\":{\"node\":");
    text_add_json_string(text, e->name);
    text_add(text, ",\"detail\":");
    text_add_json_string(text, e->detail);
    text_add(
        text,
        ",\"level_us\":%.3f,\"ready_us\":%.3f,\"width\":%d,\"leader\":%d,\"inlined\":%s,\"critical\":%s,\"flop\":%.0f,"
        "\"bytes\":%.0f,\"team_wait_us\":%.3f,\"joined\":%s",
        (double)e->level_ns * 1e-3, (double)e->ready_ns * 1e-3, e->width, e->leader, e->inlined ? "true" : "false",
        e->critical ? "true" : "false", e->flops, e->bytes, (double)timeline_waited(e, member) * 1e-3,
        e->joined ? "true" : "false");
    if (averaged && !e->joined)
        text_add(text, ",\"mean_us\":%.3f,\"deviation_us\":%.3f", e->mean_ns * 1e-3, e->deviation_ns * 1e-3);
    text_add(text, "}}");
}

void timeline_lane_name(const struct timeline *timeline, int lane, char *text, size_t size)
{
    const char *simulated = timeline->simulated ? " (simulated)" : "";
    if (timeline->light && lane == timeline->light)
        snprintf(text, size, "light executor%s", simulated);
    else if (timeline->siblings && lane >= timeline->siblings->cores)
        snprintf(text, size, "sibling of core %d%s", timeline->siblings->core[lane].sibling_of, simulated);
    else if (lane >= timeline->executors * timeline->team)
        snprintf(text, size, "worker %d%s", lane, simulated);
    else if (timeline->team == 1)
        snprintf(text, size, "executor %d%s", lane, simulated);
    else
        snprintf(text, size, "executor %d.%d%s", lane / timeline->team, lane % timeline->team, simulated);
}

graphi_status timeline_write_json(const struct timeline *timeline, const char *path)
{
    struct text text = {0};
    char name[400];
    struct timeline_totals totals;
    TRY(timeline_sum(timeline, NULL, &totals));
    snprintf(name, sizeof name, "%s%s", timeline->title, timeline->simulated ? " (simulated)" : "");
    text_add(&text,
             "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"simulated\":%s,\"executions\":%lld,\"busy\":%.6f,"
             "\"nothing_ready\":%.6f,\"scheduling\":%.6f,\"in_teams\":%.6f},\"traceEvents\":[\n",
             timeline->simulated ? "true" : "false", (long long)timeline->executions, totals.busy, totals.starved,
             totals.scheduling, totals.team);
    text_add(&text, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
    text_add_json_string(&text, name);
    text_add(&text, "}}");
    for (int lane = 0; lane < timeline->lanes; lane++) {
        timeline_lane_name(timeline, lane, name, sizeof name);
        text_add(&text, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                 lane, name);
    }
    for (int64_t i = 0; i < timeline->count; i++)
        for (int m = 0; m < timeline->events[i].width; m++)
            chrome_event(&text, &timeline->events[i], m, timeline->executions > 0);
    text_add(&text, "\n]}\n");
    return finish(&text, path);
}

/* 0: neighbours from the leader on. */
static void page_lanes(struct text *text, const struct timeline_event *e)
{
    bool neighbours = true;
    for (int m = 0; m < e->width; m++)
        neighbours = neighbours && timeline_member(e, m) == e->leader + m;
    text_add(text, neighbours ? ",0" : ",[");
    for (int m = 0; m < e->width && !neighbours; m++)
        text_add(text, "%s%d", m ? "," : "", timeline_member(e, m));
    text_add(text, neighbours ? "" : "]");
}

static void page_data(struct text *text, const struct timeline *timeline)
{
    text_add(text, "{\"title\":");
    text_add_json_string(text, timeline->title);
    text_add(text, ",\"simulated\":%s,\"lanes\":%d,\"executions\":%lld,\"bound\":%lld,\"critical\":%lld,\"events\":[",
             timeline->simulated ? "true" : "false", timeline->lanes, (long long)timeline->executions,
             (long long)timeline->lower_bound_ns, (long long)timeline->critical_path_ns);
    for (int64_t i = 0; i < timeline->count; i++) {
        const struct timeline_event *e = &timeline->events[i];
        text_add(text, "%s\n[", i ? "," : "");
        text_add_json_string(text, e->name);
        text_add(text, ",");
        text_add_json_string(text, e->kind);
        text_add(text, ",");
        text_add_json_string(text, e->detail);
        text_add(text, ",%lld,%lld,%lld,%lld,%d,%d,%d,%lld,%.0f,%.0f", (long long)e->ready_ns, (long long)e->start_ns,
                 (long long)e->end_ns, (long long)e->level_ns, e->leader, e->width,
                 e->inlined | e->critical << 1 | e->backward << 2 | e->joined << 3, (long long)timeline_team_wait(e),
                 e->mean_ns, e->deviation_ns);
        page_lanes(text, e);
        text_add(text, "]");
    }
    text_add(text, "],\"lane\":[");
    struct timeline_lane *lane = mem_zalloc_array((size_t)timeline->lanes, sizeof *lane);
    struct timeline_totals totals;
    text->broken = text->broken || !lane || timeline_sum(timeline, lane, &totals) != GRAPHI_OK;
    for (int m = 0; !text->broken && m < timeline->lanes; m++)
        text_add(text, "%s[%lld,%lld,%lld,%lld,%lld]", m ? "," : "", (long long)lane[m].busy_ns,
                 (long long)lane[m].starved_ns, (long long)lane[m].scheduling_ns, (long long)lane[m].team_ns,
                 (long long)lane[m].operations);
    mem_free(lane);
    text_add(text, "],\"names\":[");
    for (int m = 0; m < timeline->lanes; m++) {
        char name[64];
        timeline_lane_name(timeline, m, name, sizeof name);
        text_add(text, "%s\"%s\"", m ? "," : "", name);
    }
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
