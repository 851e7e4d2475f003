/* SPDX-License-Identifier: Apache-2.0 */
/* A job's plan: what the options ask of it; whether it is loaded, tuned or made from estimates; where it is kept. */
#include "tool/plan.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool/curves.h"
#include "tool/described.h"
#include "tool/local_machine.h"
#include "tool/no_effect.h"
#include "tool/report.h"

/* Of a word that the table of options lets through; NULL: the first. */
static int index_of(const char *word, const char *const *names)
{
    int i = 0;
    while (word && strcmp(word, names[i]) != 0)
        i++;
    return i;
}

static const char *const switches[] = {"auto", "on", "off"};

static graphi_choice asked_choice(const char *word)
{
    static const graphi_choice choice[] = {GRAPHI_DEFAULT, GRAPHI_ON, GRAPHI_OFF};
    return choice[index_of(word, switches)];
}

static graphi_streaming asked_streaming(const struct options *o)
{
    static const graphi_streaming streaming[] = {GRAPHI_STREAM_BY_SIZE, GRAPHI_STREAM_ALWAYS, GRAPHI_STREAM_NEVER};
    return streaming[index_of(o->streaming, switches)];
}

static void set_parameter(graphi_setting *setting, const char *name, int64_t value)
{
    int i = 0;
    while (i < GRAPHI_SETTING_PARAMETERS - 1 && setting->parameters[i].name &&
           strcmp(setting->parameters[i].name, name) != 0)
        i++;
    setting->parameters[i] = (graphi_policy_parameter){name, value};
}

static graphi_status find_policy(const char *word, graphi_policy *out)
{
    char list[256] = "";
    for (int i = 0; i < GRAPHI_POLICIES; i++) {
        const char *name = graphi_policy_name((graphi_policy)i);
        if (strcmp(name, word) == 0) {
            *out = (graphi_policy)i;
            return GRAPHI_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", name);
    }
    return report_usage("--policy", word, "%s", list);
}

graphi_status job_plan_options(const struct options *options, graphi_plan_options *out)
{
    static const char *const drivers[] = {
#define X(NAME, text) text,
        GRAPHI_DRIVER_LIST(X)
#undef X
    };
    static const char *const precisions[] = {"float32", "bfloat16"};
    *out = (graphi_plan_options){
        .setting = {.driver = (graphi_driver)index_of(options->driver, drivers), .executors = options->executors,
                    .width = options->width, .backward_executors = options->backward_executors,
                    .depth = options->depth, .inlining = options->no_inline ? GRAPHI_OFF : GRAPHI_DEFAULT,
                    .pin = asked_choice(options->pin), .light = asked_choice(options->light),
                    .join = asked_choice(options->join)},
        .isa = options->isa,
        .precision = index_of(options->precision, precisions) ? GRAPHI_BF16 : GRAPHI_F32,
        .conv_error = options->conv_error,
        .allow_rounding = options->allow_rounding,
        .streaming = asked_streaming(options),
        .check_numerics = options->check_numerics,
        .disable = options->disable,
        .sequences = options->sequences,
        .weights = index_of(options->weights, precisions) ? GRAPHI_BF16 : GRAPHI_F32,
    };
    memcpy(out->setting.parameters, options->parameters, sizeof options->parameters);
    set_parameter(&out->setting, "seed", (int64_t)options->seed);
    return options->policy ? find_policy(options->policy, &out->setting.policy) : GRAPHI_OK;
}

/* A plan of next to nothing, refused for what the network's would be refused for: executors, threads, passes and
 * instruction sets that there are not. What depends on the chosen setting is left to that. */
static graphi_status try_options(const struct options *o, const graphi_plan_options *asked)
{
    const graphi_plan_options options = {
        .setting = {.policy = asked->setting.policy, .executors = o->executors, .width = o->width},
        .isa = asked->isa, .disable = asked->disable,
        .sequences = asked->sequences, .allow_rounding = asked->allow_rounding};
    graphi_machine *machine = NULL;
    graphi_graph *graph = NULL;
    graphi_plan *plan = NULL;
    graphi_status status = graphi_graph_create(&graph);
    if (status == GRAPHI_OK) {
        graphi_output(graph, "y", graphi_tanh(graph, graphi_input(graph, "x", GRAPHI_F32, 1, (int64_t[]){1})));
        status = job_capture(o, &machine);
    }
    if (machine && (status = graphi_plan_create(graph, machine, &options, &plan)) != GRAPHI_OK)
        report_failure(status);
    graphi_plan_destroy(plan);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(graph);
    return status;
}

graphi_status job_plan_check(const struct options *o)
{
    graphi_plan_options plan;
    graphi_status status = job_plan_options(o, &plan);
    if (status != GRAPHI_OK)
        return status;
    if (o->plan && o->tune > 0)
        return report_usage("--tune", "--plan too", "one of the two: a stored plan is not measured again");
    if (o->model && o->tune > 0)
        return report_usage("--tune", "--model too", "one of the two: what a model predicts is not measured");
    if (o->interval && (o->plan || o->model || (o->tune_given && o->tune <= 0)))
        return report_usage("--interval", "nothing to measure", "--tune SECONDS, without --plan or --model");
    if ((status = job_curves_check(o)) != GRAPHI_OK)
        return status;
    return o->machine ? GRAPHI_OK : try_options(o, &plan);
}

/* auto leaves the choice open, as nothing typed does. */
static bool asks(const char *word) { return word && strcmp(word, "auto") != 0; }

static bool asks_parameter(const struct options *o)
{
    graphi_policy_parameter_info p;
    for (int i = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &p); i++)
        for (const graphi_policy_parameter *typed = o->parameters; typed->name; typed++)
            if (strcmp(typed->name, p.name) == 0 && (typed->value || !p.toggle))
                return true;
    return false;
}

bool job_setting_asked(const struct options *o)
{
    return o->executors || o->width || asks(o->driver) || o->policy || o->depth || o->no_inline ||
           o->backward_executors || asks_parameter(o) || asks(o->light) || asks(o->join);
}

/* That nobody joins is all that was asked for: a search heeds it. */
bool job_setting_open(const struct options *o)
{
    struct options others = *o;
    if (o->join && strcmp(o->join, "off") == 0)
        others.join = NULL;
    return !job_setting_asked(&others);
}

static bool is_profile(const struct options *o) { return strcmp(o->command, "profile") == 0; }

static void tell(void *context, const char *text)
{
    const struct options *options = context;
    report_progress(options->quiet, "%s", text);
}

/* A policy that chooses otherwise is weighed anew. */
static void change_parameters(graphi_setting *s, const graphi_setting *asked, const struct options *o)
{
    graphi_policy_parameter_info p;
    for (const graphi_policy_parameter *typed = o->parameters; typed->name; typed++)
        set_parameter(s, typed->name, typed->value);
    for (int i = 0; o->parameters[0].name && graphi_policy_parameter_at(s->policy, i, &p); i++)
        if (p.chooses) {
            const graphi_policy_parameter *wanted = graphi_setting_parameter(asked, p.name);
            set_parameter(s, p.name, wanted ? wanted->value : p.usual);
            s->uniform = GRAPHI_DEFAULT;
            s->depth = asked->depth;
        }
}

/* What a stored plan holds, with what was asked for in its place; what follows from that is chosen anew, a policy too
 * where executors are asked for: that of the plan may have none, or choose its own. */
static graphi_setting changed_setting(const graphi_setting *kept, const graphi_setting *asked, const struct options *o)
{
    graphi_setting s = o->policy || o->executors || o->width || o->backward_executors ? *asked : *kept;
    if (asks(o->driver))
        s.driver = asked->driver;
    if (o->depth)
        s.depth = asked->depth;
    if (asks(o->light))
        s.light = asked->light;
    if (asks(o->join))
        s.join = asked->join;
    change_parameters(&s, asked, o);
    if (o->seed_given)
        set_parameter(&s, "seed", (int64_t)o->seed);
    if (asked->inlining == GRAPHI_OFF)
        s.inlining = GRAPHI_OFF;
    s.pin = o->pin ? asked->pin : kept->pin;
    return s;
}

static graphi_status replace_plan(struct job *job, graphi_status status, graphi_plan *plan)
{
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_plan_destroy(job->plan);
    job->plan = plan;
    return GRAPHI_OK;
}

/* The loaded plan's durations, the setting that was asked for. */
static graphi_status change_loaded(struct job *job, const graphi_setting *asked)
{
    graphi_plan_info info;
    graphi_plan *plan = NULL;
    job->plan_loaded = true;
    graphi_plan_get_info(job->plan, &info);
    const bool reseeded = job->options->seed_given && graphi_decision_parameter(&info.setting, "seed");
    const bool reopened = job->options->parameters[0].name != NULL; /* by auto, too: a stored plan has decided */
    if (!job_setting_asked(job->options) && !reopened && !job->options->pin && !reseeded)
        return GRAPHI_OK;
    const graphi_setting kept = graphi_decision_setting(&info.setting);
    const graphi_setting setting = changed_setting(&kept, asked, job->options);
    graphi_status status = graphi_plan_with(job->plan, &(graphi_plan_change){.setting = &setting}, &plan);
    return replace_plan(job, status, plan);
}

/* Whether a setting that runs operations in order, or one that was searched for, was weighed when it was tuned. */
static bool weighed(const graphi_plan *plan, bool searched)
{
    graphi_trial trial;
    graphi_policy_info policy;
    for (int i = 0; graphi_plan_trial_at(plan, i, &trial); i++)
        if (graphi_policy_get_info(trial.setting.policy, &policy) && (searched ? policy.searches : policy.in_order))
            return true;
    return false;
}

/* Whether it was tuned under a setting that was asked for: a search weighs the sequential engine beside others. */
static bool was_asked(const graphi_plan *plan)
{
    graphi_trial trial;
    const bool several = graphi_plan_trial_at(plan, 1, &trial);
    return graphi_plan_trial_at(plan, 0, &trial) && !(several && weighed(plan, false));
}

/* Measures the operations for so long and, setting NULL, searches the setting. */
static graphi_status tune(struct job *job, double seconds, const graphi_setting *setting)
{
    graphi_run *run;
    graphi_plan *better = NULL;
    graphi_plan_info info;
    graphi_status status = graphi_run_create(job->plan, job->state, &run);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = job_feed(run, job->graph, &job->info, job->options->seed);
    graphi_run_destroy(run);
    if (status != GRAPHI_OK)
        return status;
    graphi_tune_options how = {.seconds = seconds,
                               .setting = setting,
                               .policies = is_profile(job->options) || weighed(job->plan, true),
                               .interval = job->options->interval,
                               .curves = job->curves,
                               .progress = tell,
                               .stop = report_stop,
                               .context = (void *)job->options};
    status = graphi_plan_tune(job->plan, job->state, &how, &better);
    report_progress(job->options->quiet, "%s", "");
    if ((status = replace_plan(job, status, better)) != GRAPHI_OK)
        return status;
    graphi_plan_get_info(job->plan, &info);
    job_tell_others(job->options, job->name, info.others);
    return GRAPHI_OK;
}

/* The same for a described machine: shares are timed on the one at hand; the setting is chosen, not searched. */
static graphi_status tune_there(struct job *job, const graphi_plan_options *options)
{
    graphi_plan *timed = NULL, *better = NULL;
    graphi_status status = job_at_hand(job->options, &job->here);
    if (status != GRAPHI_OK)
        return status;
    report_progress(job->options->quiet, "%s: timing shares", job->name);
    status = job_profile_there(job->options, job->plan, job->graph, options, job->here, job->machine, job->curves,
                               &timed);
    report_progress(job->options->quiet, "%s", "");
    if (status == GRAPHI_OK)
        status = graphi_plan_with(timed, &(graphi_plan_change){.setting = &options->setting}, &better);
    graphi_plan_destroy(timed);
    return replace_plan(job, status, better);
}

static graphi_status create_plan(struct job *job, const graphi_plan_options *plan)
{
    graphi_status status = graphi_plan_create(job->graph, job->machine, plan, &job->plan);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status create_run(struct job *job)
{
    graphi_status status = graphi_run_create(job->plan, job->state, &job->run);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* A full cache costs a measurement, no more. */
static void keep_plan(struct job *job)
{
    char folder[3900];
    job->plan_stored = *job->plan_path && graphi_plan_save(job->plan, job->plan_path) == GRAPHI_OK;
    if (job->plan_stored)
        return;
    if (*job->plan_path)
        snprintf(job->not_kept, sizeof job->not_kept, "%s", graphi_message());
    else {
        job_folder(folder, sizeof folder);
        snprintf(job->not_kept, sizeof job->not_kept, "GRAPHI_PLAN_DIR, XDG_CACHE_HOME or HOME give no folder (%s)",
                 strerror(errno));
    }
}

/* Into job->plan; NULL: there is none. One that is refused or broken is no error, but is told; nor is one that could
 * not be read, which may be sound, so that nothing takes its place. */
static graphi_status load_cached(struct job *job, const graphi_plan_options *plan)
{
    if (!*job->plan_path || access(job->plan_path, F_OK) != 0)
        return GRAPHI_OK;
    graphi_status status = graphi_plan_load(job->graph, job->machine, plan, job->plan_path, &job->plan);
    if (status == GRAPHI_OK) {
        job->asked = was_asked(job->plan);
        return GRAPHI_OK;
    }
    if (status == GRAPHI_MEMORY)
        return report_failure(status);
    snprintf(job->not_used, sizeof job->not_used, "%s", graphi_message());
    if (status == GRAPHI_IO)
        *job->plan_path = 0;
    return GRAPHI_OK;
}

/* A stored plan that was tuned while others used the cores, where they do not now, and it was not tuned so time and
 * again. One of a setting that was asked for is left as it is. */
static bool tunes_again(struct job *job, double seconds)
{
    enum { TIMES = 3 };
    const struct options *o = job->options;
    graphi_plan_info plan;
    graphi_machine_info now;
    graphi_plan_get_info(job->plan, &plan);
    graphi_machine_get_info(job->machine, &now);
    if (seconds <= 0 || !plan.disturbed || plan.disturbed >= TIMES || now.others > 0 || job->asked ||
        job_setting_asked(o) || o->pin)
        return false;
    job->disturbed = plan.others;
    return true;
}

static graphi_status make_plan(struct job *job, double seconds)
{
    const struct options *o = job->options;
    graphi_plan_options plan;
    graphi_status status = job_plan_options(o, &plan);
    if (status != GRAPHI_OK)
        return status;
    seconds = o->tune_given ? o->tune : seconds;
    if (o->interval && seconds <= 0)
        return report_usage("--interval", "nothing to measure", "--tune SECONDS, without --plan or --model");
    if (o->plan && (status = graphi_plan_load(job->graph, job->machine, &plan, o->plan, &job->plan)) != GRAPHI_OK)
        return report_failure(status);
    const bool cached = !job->described && !o->plan && !o->tune_given && !o->model && !job_curves_named(o);
    if (cached && (status = load_cached(job, &plan)) != GRAPHI_OK)
        return status;
    const bool stored = cached && job->plan;
    if (job->plan && !(stored && tunes_again(job, seconds))) {
        status = change_loaded(job, &plan.setting);
        return status == GRAPHI_OK ? job_curves_use(o, job->machine, NULL, &job->plan) : status;
    }
    if (!job->plan && (status = create_plan(job, &plan)) != GRAPHI_OK)
        return status;
    job->estimated = cached && seconds <= 0 && !job_setting_asked(o);
    if (seconds <= 0 || o->model)
        return job_curves_use(o, job->machine, &plan.setting, &job->plan);
    /* What is scaled from this machine to a described one is no curve of that machine, unless a file is named. */
    const bool curves = !job->described || job_curves_named(o);
    if ((status = curves ? job_curves_open(job) : GRAPHI_OK) != GRAPHI_OK ||
        (status = job->described ? tune_there(job, &plan)
                                 : tune(job, seconds, job_setting_open(o) ? NULL : &plan.setting)) != GRAPHI_OK ||
        (status = curves ? job_curves_keep(job) : GRAPHI_OK) != GRAPHI_OK)
        return status;
    if (!job->described && !job_curves_named(o) &&
        ((!job_setting_asked(o) && !o->pin) || is_profile(o))) /* what was asked for once is nobody's default */
        keep_plan(job);
    return GRAPHI_OK;
}

/* "", or where options that plans depend on are not the default, "-" and a hash (FNV-1a) of them: each choice has a
 * plan of its own, and none takes the place of the default one. */
static const char *special_options(const struct options *o, char text[18])
{
    char words[512];
    uint64_t hash = 0xcbf29ce484222325ull;
    const double usual = o->precision && strcmp(o->precision, "bfloat16") == 0 ? 8 : 4;
    const double conv_error = o->conv_error == usual ? 0 : o->conv_error;
    const int streaming = asked_streaming(o);
    const bool half = o->weights && strcmp(o->weights, "bfloat16") == 0;
    if (!o->isa && !o->disable && !o->sequences && !half && !(conv_error > 0) && !streaming && !o->check_numerics)
        return "";
    snprintf(words, sizeof words, "%s %a %d %d %s%s%s%s", o->isa ? o->isa : "", conv_error, streaming,
             o->check_numerics, o->disable ? o->disable : "", o->sequences ? " " : "",
             o->sequences ? o->sequences : "", half ? " bfloat16" : "");
    for (const char *c = words; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    snprintf(text, 18, "-%016llx", (unsigned long long)hash);
    return text;
}

static void settle_plan_path(struct job *job)
{
    graphi_graph_info graph;
    graphi_machine_info machine;
    char folder[3900], special[18];
    graphi_graph_get_info(job->graph, &graph);
    graphi_machine_get_info(job->machine, &machine);
    job_folder(folder, sizeof folder);
    if (*folder)
        snprintf(job->plan_path, sizeof job->plan_path, "%s/%s-%016llx-%016llx-%s%s%s.plan", folder, job->name,
                 (unsigned long long)graph.hash, (unsigned long long)machine.hash,
                 job->options->precision ? job->options->precision : "float32",
                 job->options->allow_rounding ? "-rounding" : "", special_options(job->options, special));
}

graphi_status job_plan(struct job *job, double seconds)
{
    const struct options *options = job->options;
    if (!job->described)
        settle_plan_path(job);
    graphi_status status = make_plan(job, seconds);
    if (status != GRAPHI_OK)
        return status;
    if (options->save_plan && (status = graphi_plan_save(job->plan, options->save_plan)) != GRAPHI_OK)
        return report_failure(status);
    if ((status = report_stopped(job->name, "to begin")) != GRAPHI_OK || job->described)
        return status;
    status = create_run(job);
    return status == GRAPHI_OK ? job_feed(job->run, job->graph, &job->info, options->seed) : status;
}

graphi_status job_plan_under(struct job *job, const graphi_setting *setting, double seconds)
{
    graphi_plan_options plan;
    graphi_status status = job_plan_options(job->options, &plan);
    if (setting)
        plan.setting = *setting;
    if (status == GRAPHI_OK)
        status = create_plan(job, &plan);
    if (status == GRAPHI_OK && seconds > 0)
        status = tune(job, seconds, &plan.setting);
    return status == GRAPHI_OK ? create_run(job) : status;
}

graphi_status job_open(const struct options *options, const char *name, const graphi_model_options *model,
                       double seconds, struct job *job)
{
    graphi_status status = job_begin(options, name, model, job);
    return status == GRAPHI_OK ? job_plan(job, seconds) : status;
}
