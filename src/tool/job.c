/* SPDX-License-Identifier: Apache-2.0 */
/* From typed options to something that runs, but for its plan (plan.c), and what commands do with it. */
#include "tool/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/described.h"
#include "tool/local_machine.h"
#include "tool/made_graphs.h"
#include "tool/report.h"
#include "tool/resident.h"

graphi_status job_network(const char *where, const char *name, const char *others)
{
    char list[256] = "";
    for (int i = 0; graphi_model_at(i); i++) {
        if (strcmp(graphi_model_at(i), name) == 0)
            return GRAPHI_OK;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", graphi_model_at(i));
    }
    return report_usage(where, name, "a network: %s%s", list, others);
}

void job_tell_others(const struct options *options, const char *what, double share)
{
    if (share > 0 && !options->quiet)
        report_warning("others used %.0f %% of the cores while %s was measured: measure again when they do not",
                       100 * share, what);
}

graphi_status job_model_options(const struct options *options, graphi_model_options *out)
{
    *out = (graphi_model_options){.size = options->size, .task = options->task, .merged = options->merged,
                                  .batch = options->batch, .image = options->image, .units = options->units,
                                  .steps = options->unroll, .batch_norm = options->batch_norm,
                                  .lrn = options->lrn, .auxiliary = options->auxiliary,
                                  .bottleneck = options->bottleneck, .layers = options->layers,
                                  .dropout = options->dropout, .optimizer = options->optimizer,
                                  .role = options->role};
    if (options->training && options->inference)
        return report_usage("--inference", "--training too", "one of the two");
    bool infers = options->command && strcmp(options->command, "run") == 0 ? !options->training : options->inference;
    out->evaluation = out->forward = infers;
    return GRAPHI_OK;
}

uint64_t job_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static graphi_status feed_one(graphi_run *run, const graphi_port *port, const graphi_model_info *info, uint64_t seed)
{
    void *data = calloc(1, port->bytes);
    if (!data)
        return report_error(GRAPHI_MEMORY, port->name, "found no memory for %zu bytes, expected some", port->bytes);
    const size_t count = port->bytes / graphi_dtype_size(port->dtype);
    int64_t limit = info->feed == GRAPHI_MODEL_IMAGES ? info->classes : info->vocabulary;
    uint64_t state = seed * 1000003 + 17;
    for (const char *c = port->name; *c; c++)
        state = state * 31 + (uint64_t)*c;
    bool zero = strncmp(port->name, "h0/", 3) == 0 || strncmp(port->name, "c0/", 3) == 0;
    for (size_t i = 0; i < count && !zero; i++) {
        uint64_t random = job_random(&state);
        if (port->dtype == GRAPHI_F32)
            ((float *)data)[i] = port->rank ? (float)(random >> 40) * 0x1p-23f - 1 : 0.01f;
        else if (port->dtype == GRAPHI_I32)
            ((int32_t *)data)[i] = (int32_t)(random % (uint64_t)(limit > 0 ? limit : 10));
    }
    graphi_status status = graphi_run_set(run, port->name, port->dtype, data, port->bytes);
    free(data);
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status job_feed(graphi_run *run, const graphi_graph *graph, const graphi_model_info *info, uint64_t seed)
{
    const bool trees = info->feed == GRAPHI_MODEL_TREES;
    graphi_status status = trees ? made_graphs_feed(info, seed, run) : GRAPHI_OK;
    graphi_port port;
    for (int i = 0; status == GRAPHI_OK && graphi_graph_at(graph, GRAPHI_PORT_INPUT, i, &port); i++)
        if (!trees || !port.rank) /* else of the batch */
            status = feed_one(run, &port, info, seed);
    return status;
}

struct rating job_roof(const graphi_machine_info *machine, graphi_dtype precision)
{
    const bool bfloat16 = precision == GRAPHI_BF16 && machine->roof_bf16_gflops > 0;
    return (struct rating){.roof_gflops = bfloat16 ? machine->roof_bf16_gflops : machine->roof_gflops,
                           .bfloat16 = bfloat16};
}

struct rating job_rating(const graphi_graph *graph, const graphi_machine_info *about, graphi_dtype precision)
{
    struct rating rating = job_roof(about, precision);
    graphi_graph_info size;
    graphi_graph_get_info(graph, &size);
    double arithmetic = rating.roof_gflops > 0 ? size.step_flops / rating.roof_gflops * 1e-6 : 0;
    double memory = about->bandwidth_gbs > 0 ? (double)size.read_elements * 4 / about->bandwidth_gbs * 1e-6 : 0;
    rating.flops = size.step_flops;
    rating.limit_ms = arithmetic > memory ? arithmetic : memory;
    if (!(arithmetic > memory))
        rating.roof_gflops = 0;
    return rating;
}

static graphi_status make_graph(struct job *job)
{
    graphi_status status = graphi_model_get_info(job->name, &job->model, &job->info);
    if (status == GRAPHI_OK)
        status = graphi_model_create(job->name, &job->model, &job->graph);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* What is no plan at all is said before anything is measured; whether it is this network's the library says after. */
static graphi_status check_plan(const char *path)
{
    struct stat found;
    json_error_t error = {.line = 0};
    char where[512];
    if (!path)
        return GRAPHI_OK;
    if (stat(path, &found) != 0)
        return report_error(GRAPHI_IO, path, "found no readable file (%s), expected one", strerror(errno));
    if (!S_ISREG(found.st_mode)) /* reading might wait for a writer */
        return GRAPHI_OK;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    const bool list = json_is_array(root); /* what is neither that nor an object is no JSON to the reader */
    json_decref(root);
    if (list)
        return report_error(GRAPHI_INVALID, path, "found a list, expected a JSON object");
    if (root || error.line < 1)
        return GRAPHI_OK;
    snprintf(where, sizeof where, "%.400s, line %d", path, error.line);
    return report_error(GRAPHI_INVALID, where, "found %s, expected JSON", error.text);
}

graphi_status job_begin(const struct options *options, const char *name, const graphi_model_options *model,
                        struct job *job)
{
    *job = (struct job){.options = options, .name = name, .model = *model, .described = options->machine};
    graphi_status status = options->machine ? job_described(options, options->machine, &job->machine) : GRAPHI_OK;
    if (status == GRAPHI_OK)
        status = check_plan(options->plan);
    if (status == GRAPHI_OK)
        status = make_graph(job);
    if (status != GRAPHI_OK || job->described)
        return status;
    status = job_machine(options, &job->machine);
    resident_begin(); /* what measuring the machine took is not the network's */
    if (status == GRAPHI_OK)
        status = report_stopped(name, "to begin");
    if (status != GRAPHI_OK)
        return status;
    status = graphi_state_create(job->graph, options->seed, &job->state);
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status job_beside(const struct job *first, const graphi_model_options *model, struct job *job)
{
    *job = (struct job){.options = first->options, .name = first->name, .model = *model, .machine = first->machine,
                        .state = first->state, .borrows = true};
    graphi_status status = make_graph(job);
    if (status == GRAPHI_OK && (status = graphi_state_extend(job->state, job->graph)) != GRAPHI_OK)
        report_failure(status);
    return status;
}

enum { CLOCKED = 1 << 20 };

/* No memory for it is no reason to stop. */
void job_clock_ms(struct job *job, double ms)
{
    int64_t at = job->clocked % CLOCKED;
    bool full = job->clocked < CLOCKED && (at & (at - 1)) == 0; /* 0, 1, 2, 4, ... are there */
    double *more = full ? realloc(job->ms, (size_t)(at ? 2 * at : 1) * sizeof *more) : job->ms;
    if (!more)
        return;
    job->ms = more;
    job->ms[at] = ms;
    job->clocked++;
}

void job_clock(struct job *job)
{
    graphi_run_info info;
    graphi_run_get_info(job->run, &info);
    job_clock_ms(job, info.last_ms);
}

static int clocked_of(const struct job *job) { return (int)(job->clocked < CLOCKED ? job->clocked : CLOCKED); }

void job_times(struct job *job, json_t *row, struct result *result)
{
    if (!clocked_of(job))
        return;
    result_times(row, job->ms, clocked_of(job));
    resident_row(result, row);
}

json_t *job_row(struct job *job, const char *id, struct result *result)
{
    graphi_plan_info plan;
    graphi_plan_get_info(job->plan, &plan);
    json_t *row = result_row(result, id, "graphi");
    const int count = clocked_of(job);
    result_setting(row, &plan.setting);
    result_number(row, "lower_bound_ms", plan.lower_bound_ms);
    result_number(row, "predicted_ms", plan.predicted_ms);
    if (!count)
        return row;
    graphi_machine_info machine;
    graphi_machine_get_info(job->machine, &machine);
    job_times(job, row, result);
    result_rate(row, job_rating(job->graph, &machine, plan.precision), result_median(job->ms, count));
    return row;
}

static void say(const struct options *options, graphi_status status, char *text)
{
    if (status == GRAPHI_OK)
        fputs(text, options_json_is_stdout(options) ? stderr : stdout);
    else
        report_failure(status); /* the rest of the command is not worth less */
    graphi_free(text);
}

void job_explain(const struct options *options, const graphi_plan *plan)
{
    char *text = NULL;
    graphi_status status = graphi_plan_explain(plan, options->explain, &text);
    say(options, status, text);
}

void job_explain_run(const struct options *options, const graphi_run *run)
{
    char *text = NULL;
    graphi_status status = options->explain ? graphi_run_explain(run, &text) : GRAPHI_OK;
    if (text || status != GRAPHI_OK)
        say(options, status, text);
}

void job_close(struct job *job)
{
    graphi_run_destroy(job->run);
    graphi_plan_destroy(job->plan);
    graphi_curves_close(job->curves);
    free(job->ms);
    graphi_graph_destroy(job->graph);
    if (!job->borrows) {
        graphi_state_destroy(job->state);
        graphi_machine_destroy(job->machine);
    }
    graphi_machine_destroy(job->here);
    *job = (struct job){0};
}

graphi_status job_timeline(const struct job *job, int executions, struct result *result)
{
    const char *prefix = job->options->timeline;
    if (!prefix)
        return GRAPHI_OK;
    graphi_status status = graphi_run_trace(job->run, true);
    for (int i = 0; i < executions && status == GRAPHI_OK; i++)
        status = graphi_run_execute(job->run);
    if (status == GRAPHI_OK)
        status = graphi_run_write_timeline(job->run, prefix);
    if (status != GRAPHI_OK)
        return report_failure(status);
    result_timeline(result, prefix);
    return GRAPHI_OK;
}

bool job_one_size(const char *network)
{
    graphi_model_info info;
    return graphi_model_get_info(network, NULL, &info) == GRAPHI_OK && !info.size;
}

void job_note_size(const struct options *options, const graphi_model_info *network, struct result *result)
{
    if (options_given(options, "--size") && !network->size)
        result_note(result, "--size has no effect: %s has one size", network->name);
}

void job_describe(const struct job *job, struct result *result)
{
    const graphi_model_options *m = &job->model;
    result_machine(result, job->machine);
    result_model(result, &job->info, m->task ? m->task : "bench", job->graph, job->plan);
    job_note_size(job->options, &job->info, result);
}

static graphi_status write_result(const struct options *options, struct result *result)
{
    graphi_status status = GRAPHI_OK;
    if (options->out) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s.json", options->out, options->command);
        status = result_write(result->root, file);
    }
    return status == GRAPHI_OK && options->json ? result_write(result->root, options->json) : status;
}

graphi_status job_write(const struct options *options, struct result *result, graphi_status status)
{
    result_set(result->root, "ok", json_boolean(status == GRAPHI_OK));
    graphi_status written = write_result(options, result);
    return status == GRAPHI_OK ? written : status;
}

graphi_status job_finish(const struct options *options, struct result *result, graphi_status status)
{
    graphi_status printed = GRAPHI_OK;
    status = job_write(options, result, status);
    if (!options_json_is_stdout(options)) /* last: whoever reads it may be gone */
        printed = result_print(result->root, stdout);
    return status == GRAPHI_OK ? printed : status;
}
