/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated settings of networks. */
#include "study.h"
#include "tool/described.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *study_description = "xeon-phi-7250";

graphi_status study_machine(struct bench *bench, const char *name, graphi_machine **out)
{
    return job_described(&bench->options, bench->options.machine ? bench->options.machine : name, out);
}

void study_passes_off(struct bench *bench, const char *passes, const char *reason)
{
    if (bench->options.disable)
        return;
    bench->options.disable = passes;
    result_note(&bench->result, "passes %s are off: %s (--disable none: ours)", passes, reason);
}

void study_papers_graph(struct bench *bench)
{
    study_passes_off(bench, STUDY_PAPERS_GRAPH, "operations as small as the paper's");
}

void study_of_paper(struct bench *bench)
{
    study_description = STUDY_PAPERS_MACHINE;
    study_papers_graph(bench);
}

static bool measures(const struct options *o) { return o->tune_given && o->tune > 0; }

/* Shares timed here, extended to the machine. */
static graphi_status measure(struct study *s, const graphi_plan_options *options)
{
    struct bench *bench = s->bench;
    graphi_plan *timed = NULL;
    graphi_status status = bench->machine ? GRAPHI_OK : job_at_hand(&bench->options, &bench->machine);
    if (status)
        return status;
    report_progress(bench->options.quiet, "%s: timing shares", s->name);
    status = job_profile_there(&bench->options, s->plan, s->graph, options, bench->machine, s->machine, NULL, &timed);
    if (status)
        return bench_failure(status);
    graphi_plan_destroy(s->plan);
    s->plan = timed;
    return GRAPHI_OK;
}

static graphi_status compile(struct study *s)
{
    /* no ordering edges for memory: the graph alone decides what may run side by side */
    graphi_plan_options options;
    graphi_status status = job_plan_options(&s->bench->options, &options);
    if (status)
        return status;
    options.setting = (graphi_setting){0};
    options.arena_target = INT64_MAX / 4;
    if ((status = graphi_plan_create(s->graph, s->machine, &options, &s->plan)) != GRAPHI_OK)
        return bench_failure(status);
    return measures(&s->bench->options) ? measure(s, &options) : GRAPHI_OK;
}

static graphi_status open_machine(struct bench *bench, const char *name, const char *size, struct study *s)
{
    *s = (struct study){.bench = bench, .name = name, .size = size};
    if (bench->options.interval && !measures(&bench->options))
        return report_usage("--interval", "nothing to measure", "--tune SECONDS too");
    if (job_setting_asked(&bench->options))
        return report_usage("bench", "a setting (--executors, --width, --policy, ...)",
                            "none: this experiment goes through settings of its own");
    graphi_status status = study_machine(bench, study_description, &s->machine);
    if (status)
        return status;
    graphi_machine_get_info(s->machine, &s->about);
    result_machine(&bench->result, s->machine);
    return GRAPHI_OK;
}

graphi_status study_open_graph(struct bench *bench, const char *label, graphi_graph *graph, struct study *s)
{
    graphi_status status = open_machine(bench, label, "", s);
    s->graph = graph;
    return status ? status : compile(s);
}

graphi_status study_open_network(struct bench *bench, const char *network, const char *size, struct study *s)
{
    graphi_status status = open_machine(bench, network, size, s);
    if (status)
        return status;
    job_model_options(&bench->options, &s->model);
    s->model.size = size;
    status = graphi_model_get_info(network, &s->model, &s->info);
    if (!status)
        status = graphi_model_create(network, &s->model, &s->graph);
    if (status)
        return report_failure(status);
    job_note_size(&bench->options, &s->info, &bench->result);
    bench_note_role(bench, network);
    return compile(s);
}

static graphi_status with_network(struct bench *bench, const char *network, const char *size,
                                  graphi_status (*body)(struct study *study))
{
    struct study s;
    graphi_status status = study_open_network(bench, network, size, &s);
    if (!status)
        status = body(&s);
    study_close(&s);
    return status;
}

void study_close(struct study *s)
{
    graphi_plan_destroy(s->plan);
    graphi_graph_destroy(s->graph);
    graphi_machine_destroy(s->machine);
    *s = (struct study){0};
}

graphi_status study_simulate(struct study *s, const graphi_setting *setting, graphi_simulation *out)
{
    if (report_interrupted())
        return GRAPHI_INTERRUPTED;
    report_progress(s->bench->options.quiet, "%s %s: %d x %d %s", s->name, s->size ? s->size : "", setting->executors,
                    setting->width, graphi_policy_name(setting->policy));
    graphi_status status =
        graphi_plan_simulate(s->plan, &(graphi_simulate_options){.setting = setting, .machine = s->machine}, out);
    if (status)
        return report_failure(status);
    s->host_ns_per_op = out->host_ns_per_op;
    return GRAPHI_OK;
}

graphi_status study_timeline(struct study *s, const graphi_setting *setting, const char *prefix, graphi_simulation *out,
                             json_t **events)
{
    char folder[] = "/tmp/graphi-timeline-XXXXXX", own[sizeof folder + 16], path[4200];
    json_error_t error;
    *events = NULL;
    if (!prefix && !mkdtemp(folder))
        return report_error(GRAPHI_IO, folder, "found that it cannot be made, expected a folder for a timeline");
    snprintf(own, sizeof own, "%s/timeline", folder);
    const char *used = prefix ? prefix : own;
    graphi_status status = graphi_plan_simulate(
        s->plan, &(graphi_simulate_options){.setting = setting, .machine = s->machine, .timeline = used}, out);
    if (status)
        status = report_failure(status);
    snprintf(path, sizeof path, "%s.json", used);
    json_t *root = status ? NULL : json_load_file(path, 0, &error);
    if (!status && !root)
        status = report_error(GRAPHI_IO, path, "found %s, expected the timeline that was just written", error.text);
    *events = json_incref(json_object_get(root, "traceEvents"));
    json_decref(root);
    if (!prefix) {
        unlink(path);
        snprintf(path, sizeof path, "%s.html", used);
        unlink(path);
        rmdir(folder);
    }
    return status;
}

void study_id(const struct study *s, char id[STUDY_ID], const char *form, ...)
{
    va_list rest;
    const char *size = s->size ? s->size : "";
    int used = snprintf(id, STUDY_ID, "%s%s%s: ", s->name, *size ? " " : "", size);
    va_start(rest, form);
    if (used < STUDY_ID)
        vsnprintf(id + used, (size_t)(STUDY_ID - used), form, rest);
    va_end(rest);
}

graphi_status study_row(struct study *s, const char *label, const graphi_setting *setting, const char *base_label,
                        double base_ms, graphi_simulation *out)
{
    char id[STUDY_ID], base[STUDY_ID];
    graphi_status status = study_simulate(s, setting, out);
    if (status)
        return status;
    study_id(s, id, "%s", label);
    json_t *row = result_row(&s->bench->result, id, "graphi");
    double ms = out->makespan_ms;
    result_setting(row, &out->setting);
    result_set(row, "simulated", json_true());
    if (out->setting.policy != setting->policy) {
        result_string(row, "status", "missing");
        result_string(row, "reason", "on so few cores all its teams are of one size");
        return GRAPHI_OK;
    }
    result_note_driver(&s->bench->result, &out->setting, s->about.cores);
    result_times(row, &ms, 1);
    if (base_label) {
        study_id(s, base, "%s", base_label);
        result_ratio(row, base, &ms, &base_ms, 1);
    }
    result_number(row, "lower_bound_ms", out->lower_bound_ms);
    result_number(row, "overhead_ns_per_op", out->host_ns_per_op);
    return GRAPHI_OK;
}

void study_operation(struct bench *bench, const char *id, int width, double ms, const char *base, double base_ms)
{
    json_t *row = result_row(&bench->result, id, "graphi");
    result_set(row, "simulated", json_true());
    result_integer(row, "executors", 1);
    result_integer(row, "width", width);
    if (base)
        result_ratio(row, base, &ms, &base_ms, 1);
    result_times(row, &ms, 1);
}

/* "GROUP, paper: REST": rows of one group are drawn on one scale. */
static void paper_id(const char *id, char *own, size_t size)
{
    int group = (int)strcspn(id, ":");
    snprintf(own, size, "%.*s, paper%s", group, id, id + group);
}

static json_t *find_row(const struct bench *bench, const char *id)
{
    size_t i;
    json_t *row;
    json_array_foreach(bench->result.rows, i, row) if (strcmp(json_string_value(json_object_get(row, "id")), id) == 0)
        return row;
    return NULL;
}

void study_paper(struct bench *bench, const char *paper, const char *id, const char *against, double ratio, double ms)
{
    char own[200], base[200];
    double one = 1;
    paper_id(id, own, sizeof own);
    paper_id(against, base, sizeof base);
    if (ratio > 0 && !find_row(bench, base)) {
        json_t *unknown = result_row(&bench->result, base, paper);
        result_string(unknown, "status", "missing");
        result_string(unknown, "reason", "the text has ratios alone");
    }
    json_t *known = find_row(bench, own), *row = known ? known : result_row(&bench->result, own, paper);
    result_string(row, "status", "ok"); /* others were compared with it before */
    result_string(row, "reason", "");
    if (ms > 0)
        result_times(row, &ms, 1);
    if (ratio > 0)
        result_ratio(row, base, &ratio, &one, 1);
}

bool study_fits(struct study *s, const char *label, int executors, int width)
{
    char id[STUDY_ID];
    if (executors >= 1 && width >= 1 && executors * width <= s->about.cores)
        return true;
    study_id(s, id, "%s", label);
    study_missing(s->bench, id, "more threads than the machine has cores");
    return false;
}

void study_missing(struct bench *bench, const char *id, const char *reason)
{
    json_t *row = result_row(&bench->result, id, "graphi");
    result_string(row, "status", "missing");
    result_string(row, "reason", reason);
}

graphi_setting study_setting(graphi_policy policy, int executors, int width)
{
    bool loops = policy == GRAPHI_POLICY_NAIVE || policy == GRAPHI_POLICY_SEQUENTIAL;
    return (graphi_setting){
        .policy = policy, .executors = executors, .width = width, .light = loops ? GRAPHI_OFF : GRAPHI_DEFAULT};
}

static graphi_status try_split(struct study *s, graphi_policy policy, int executors, graphi_setting *setting,
                               graphi_simulation *best)
{
    int cores = s->about.cores;
    bool searches = policy == GRAPHI_POLICY_MALLEABLE; /* widths are searched for whatever the split */
    if (executors < 1 || executors > cores || (searches && executors > 1 && executors < cores))
        return GRAPHI_OK;
    graphi_setting candidate = study_setting(policy, executors, cores / executors);
    graphi_simulation now;
    graphi_status status = study_simulate(s, &candidate, &now);
    if (!status && now.setting.policy == policy &&
        (best->makespan_ms <= 0 || now.makespan_ms < best->makespan_ms)) {
        *best = now;
        *setting = candidate;
    }
    return status;
}

graphi_status study_best(struct study *s, graphi_policy policy, graphi_setting *setting, graphi_simulation *out)
{
    graphi_status status = GRAPHI_OK;
    graphi_plan_info info;
    graphi_plan_get_info(s->plan, &info);
    *out = (graphi_simulation){0};
    *setting = study_setting(policy, s->about.cores, 1);
    for (int k = 0; !status && (k = graphi_split_next(s->about.cores, k)) != 0;)
        status = try_split(s, policy, k, setting, out);
    return status ? status : try_split(s, policy, info.graph_width, setting, out);
}

static const char *size_of(const struct options *o) { return o->size ? o->size : o->quick ? "small" : "medium"; }

/* What was typed instead of the list, or the list; words that are no networks are found before anything is measured. */
static graphi_status chosen(const struct options *o, const char *const *networks, const char *const **names, int *count)
{
    graphi_status status = GRAPHI_OK;
    for (int i = 0; !status && i < o->rest_count; i++)
        status = job_network("bench", o->rest[i], "");
    *names = o->rest_count ? (const char *const *)o->rest : networks;
    for (*count = o->rest_count; !o->rest_count && networks[*count];)
        ++*count;
    return status;
}

graphi_status study_each(struct bench *bench, const char *const *networks, graphi_status (*body)(struct study *study))
{
    const char *const *names;
    int count;
    graphi_status status = chosen(&bench->options, networks, &names, &count);
    for (int i = 0; !status && i < count; i++)
        status = with_network(bench, names[i], size_of(&bench->options), body);
    return status;
}

graphi_status study_names(struct bench *bench, const char *const *networks,
                          graphi_status (*body)(struct bench *bench, const char *network, const char *size))
{
    const char *const *names;
    int count;
    graphi_status status = chosen(&bench->options, networks, &names, &count);
    for (int i = 0; !status && i < count; i++)
        status = body(bench, names[i], size_of(&bench->options));
    return status;
}
