/* SPDX-License-Identifier: Apache-2.0 */
/* From typed options to something that runs. */
#include "cli/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/report.h"

static graphi_status one_of(const char *option, const char *word, const char *const *names, int *index)
{
    for (int i = 0; names[i]; i++)
        if (!word || strcmp(word, names[i]) == 0) {
            *index = i;
            return GRAPHI_OK;
        }
    char list[128] = "";
    for (int i = 0; names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    return report_usage(option, word, "%s", list);
}

graphi_status job_machine(const struct options *options, graphi_machine **out)
{
    int cores = options->cores;
    const char *variable = getenv("GRAPHI_NUM_THREADS");
    if (!cores && variable && *variable) {
        char *end;
        long value = strtol(variable, &end, 10);
        if (*end || value < 1 || value > 65536)
            return report_usage("GRAPHI_NUM_THREADS", variable, "a whole number from 1 to 65536");
        cores = (int)value;
    }
    graphi_status status = graphi_machine_create(cores, out);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = graphi_machine_measure(*out, 0.3);
    if (status != GRAPHI_OK) {
        graphi_machine_destroy(*out);
        *out = NULL;
        return report_failure(status);
    }
    return GRAPHI_OK;
}

graphi_status job_plan_options(const struct options *options, graphi_plan_options *out)
{
    static const char *const drivers[] = {"auto", "dedicated", "combining", NULL};
    static const char *const precisions[] = {"float32", "bfloat16", NULL};
    static const char *const pins[] = {"auto", "on", "off", NULL};
    int driver, precision, pin;
    if (one_of("--driver", options->driver, drivers, &driver) || one_of("--precision", options->precision, precisions, &precision) ||
        one_of("--pin", options->pin, pins, &pin))
        return GRAPHI_USAGE;
    *out = (graphi_plan_options){
        .setting = {.driver = (graphi_driver)driver, .executors = options->executors, .width = options->width,
                    .backward_executors = options->backward_executors, .depth = options->depth,
                    .no_inline = options->no_inline, .seed = options->seed, .unpinned = pin == 2},
        .isa = options->isa,
        .precision = precision ? GRAPHI_BF16 : GRAPHI_F32,
        .conv_error = options->conv_error,
        .allow_rounding = options->allow_rounding,
        .streaming = options->streaming ? GRAPHI_STREAM_ALWAYS : GRAPHI_STREAM_BY_SIZE,
        .check_numerics = options->check_numerics,
        .disable = options->disable,
    };
    if (!options->policy || graphi_policy_parse(options->policy, &out->setting.policy) == GRAPHI_OK)
        return GRAPHI_OK;
    char list[256] = "";
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", graphi_policy_name((graphi_policy)i));
    return report_usage("--policy", options->policy, "%s", list);
}

graphi_status job_model_options(const struct options *options, graphi_model_options *out)
{
    *out = (graphi_model_options){.size = options->size, .task = options->task, .merged = options->merged,
                                  .batch = options->batch, .image = options->image, .batch_norm = options->batch_norm,
                                  .lrn = options->lrn, .auxiliary = options->auxiliary,
                                  .bottleneck = options->bottleneck, .role = options->role};
    if (options->training && options->inference)
        return report_usage("--inference", "--training too", "one of the two");
    bool infers = options->command && strcmp(options->command, "run") == 0 ? !options->training : options->inference;
    out->evaluation = out->forward = infers;
    return GRAPHI_OK;
}

/* A splitmix64 stream: what the bench inputs are made of. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static graphi_status feed_one(graphi_run *run, const graphi_graph *graph, const char *name, const graphi_model_info *info,
                              uint64_t seed)
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK], count = 1;
    graphi_status status = graphi_value_type(graph, graphi_find(graph, name), &dtype, &rank, dims);
    if (status != GRAPHI_OK)
        return report_failure(status);
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    size_t bytes = (size_t)count * graphi_dtype_size(dtype);
    void *data = calloc(1, bytes ? bytes : 1);
    if (!data)
        return report_error(GRAPHI_MEMORY, name, "found no memory for %zu bytes, expected some", bytes);
    int64_t limit = info->feed == GRAPHI_MODEL_IMAGES ? info->classes : info->vocabulary;
    uint64_t state = seed * 1000003 + 17;
    for (const char *c = name; *c; c++)
        state = state * 31 + (uint64_t)*c;
    bool zero = strncmp(name, "h0/", 3) == 0 || strncmp(name, "c0/", 3) == 0;
    for (int64_t i = 0; i < count && !zero; i++) {
        uint64_t random = next_random(&state);
        if (dtype == GRAPHI_F32)
            ((float *)data)[i] = rank ? (float)(random >> 40) * 0x1p-23f - 1 : 0.01f;
        else if (dtype == GRAPHI_I32)
            ((int32_t *)data)[i] = (int32_t)(random % (uint64_t)(limit > 0 ? limit : 10));
    }
    status = graphi_run_set(run, name, data, bytes);
    free(data);
    return status == GRAPHI_OK ? status : report_failure(status);
}

graphi_status job_feed(graphi_run *run, const graphi_graph *graph, const graphi_model_info *info, uint64_t seed)
{
    const char *name;
    for (int i = 0; (name = graphi_graph_input_at(graph, i)); i++) {
        graphi_status status = feed_one(run, graph, name, info, seed);
        if (status != GRAPHI_OK)
            return status;
    }
    return GRAPHI_OK;
}

double job_limit_ms(const graphi_graph *graph, const graphi_machine *machine, bool training)
{
    graphi_machine_info about;
    graphi_graph_info size;
    graphi_machine_get_info(machine, &about);
    graphi_graph_get_info(graph, &size);
    double flops = size.forward_flops * (training ? 3 : 1);
    double arithmetic = about.roof_gflops > 0 ? flops / about.roof_gflops * 1e-6 : 0;
    double memory = about.bandwidth_gbs > 0 ? (double)size.parameter_elements * 4 / about.bandwidth_gbs * 1e-6 : 0;
    return arithmetic > memory ? arithmetic : memory;
}

/* The folder for plans: GRAPHI_PLAN_DIR, or the user's cache. "" when there is none. */
static void plan_folder(char *path, size_t size)
{
    const char *wanted = getenv("GRAPHI_PLAN_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *path = 0;
    if (wanted && *wanted)
        snprintf(path, size, "%s", wanted);
    else if (cache && *cache)
        snprintf(path, size, "%s/graphi", cache);
    else if (home && *home)
        snprintf(path, size, "%s/.cache/graphi", home);
    for (char *slash = path; *path && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    if (*path && mkdir(path, 0777) != 0 && errno != EEXIST)
        *path = 0;
}

static bool setting_asked(const struct options *o)
{
    return o->executors || o->width || o->driver || o->policy || o->depth || o->no_inline || o->backward_executors;
}

static void tell(void *context, const char *text)
{
    const struct options *options = context;
    report_progress(options->quiet, "%s", text);
}

bool job_stopped(void *context)
{
    (void)context;
    return report_interrupted();
}

/* Takes the stored plan if there is a fitting one. A refused or broken one is a note, not an error: it is measured again. */
static bool load_stored(struct job *job, const graphi_plan_options *plan)
{
    if (!*job->plan_path || setting_asked(job->options) || job->options->tune_given)
        return false;
    job->plan_loaded = graphi_plan_load(job->graph, job->machine, plan, job->plan_path, &job->plan) == GRAPHI_OK;
    return job->plan_loaded;
}

static graphi_status tune(struct job *job, double seconds)
{
    graphi_run *run;
    graphi_plan *better;
    graphi_status status = graphi_run_create(job->plan, job->state, &run);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = job_feed(run, job->graph, &job->info, job->options->seed);
    graphi_run_destroy(run);
    if (status != GRAPHI_OK)
        return status;
    graphi_tune_options how = {.seconds = seconds, .policies = strcmp(job->options->command, "profile") == 0, .progress = tell,
                               .stop = job_stopped, .context = (void *)job->options};
    status = graphi_plan_tune(job->plan, job->state, &how, &better);
    report_progress(job->options->quiet, "%s", "");
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_plan_destroy(job->plan);
    job->plan = better;
    if (*job->plan_path && graphi_plan_save(job->plan, job->plan_path) != GRAPHI_OK)
        *job->plan_path = 0; /* a full or unwritable cache costs a measurement next time, no more */
    return GRAPHI_OK;
}

static graphi_status make_plan(struct job *job, double seconds)
{
    const struct options *o = job->options;
    graphi_plan_options plan;
    graphi_status status = job_plan_options(o, &plan);
    if (status != GRAPHI_OK)
        return status;
    if (o->plan) {
        status = graphi_plan_load(job->graph, job->machine, &plan, o->plan, &job->plan);
        job->plan_loaded = status == GRAPHI_OK;
        return status == GRAPHI_OK ? status : report_failure(status);
    }
    if (load_stored(job, &plan))
        return GRAPHI_OK;
    status = graphi_plan_create(job->graph, job->machine, &plan, &job->plan);
    if (status != GRAPHI_OK)
        return report_failure(status);
    seconds = o->tune_given ? o->tune : seconds;
    return seconds > 0 && !setting_asked(o) ? tune(job, seconds) : GRAPHI_OK;
}

static void settle_plan_path(struct job *job)
{
    graphi_graph_info graph;
    graphi_machine_info machine;
    char folder[3900];
    graphi_graph_get_info(job->graph, &graph);
    graphi_machine_get_info(job->machine, &machine);
    plan_folder(folder, sizeof folder);
    if (*folder)
        snprintf(job->plan_path, sizeof job->plan_path, "%s/%s-%016llx-%016llx-%s.plan", folder, job->name,
                 (unsigned long long)graph.hash, (unsigned long long)machine.hash,
                 job->options->precision ? job->options->precision : "float32");
}

graphi_status job_open(const struct options *options, const char *name, const graphi_model_options *model, double seconds,
                       struct job *job)
{
    *job = (struct job){.options = options, .name = name, .model = *model};
    graphi_status status = graphi_model_get_info(name, model, &job->info);
    if (status == GRAPHI_OK)
        status = graphi_model_create(name, model, &job->graph);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = job_machine(options, &job->machine);
    if (status != GRAPHI_OK)
        return status;
    settle_plan_path(job);
    status = graphi_state_create(job->graph, options->seed, &job->state);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = make_plan(job, seconds);
    if (status != GRAPHI_OK)
        return status;
    if (options->save_plan && (status = graphi_plan_save(job->plan, options->save_plan)) != GRAPHI_OK)
        return report_failure(status);
    status = graphi_run_create(job->plan, job->state, &job->run);
    return status == GRAPHI_OK ? job_feed(job->run, job->graph, &job->info, options->seed) : report_failure(status);
}

void job_close(struct job *job)
{
    graphi_run_destroy(job->run);
    graphi_plan_destroy(job->plan);
    graphi_state_destroy(job->state);
    graphi_graph_destroy(job->graph);
    graphi_machine_destroy(job->machine);
    *job = (struct job){0};
}

graphi_status job_finish(const struct options *options, struct result *result)
{
    bool to_stdout = options->json && strcmp(options->json, "-") == 0;
    if (!to_stdout)
        result_print(result->root, stdout);
    if (options->out) {
        char file[4096];
        if (mkdir(options->out, 0777) != 0 && errno != EEXIST)
            return report_error(GRAPHI_IO, options->out, "found that it cannot be made (%s), expected a folder", strerror(errno));
        snprintf(file, sizeof file, "%s/%s.json", options->out, options->command);
        graphi_status status = result_write(result->root, file);
        if (status != GRAPHI_OK)
            return status;
    }
    return options->json ? result_write(result->root, options->json) : GRAPHI_OK;
}
