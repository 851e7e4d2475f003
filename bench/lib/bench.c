/* SPDX-License-Identifier: Apache-2.0 */
/* Alternating measurement of networks. */
#include "bench.h"
#include "rates.h"
#include "tool/described.h"
#include "tool/help.h"
#include "tool/local_machine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct command commands[] = {
    {"bench", "EXPERIMENT [M...]", "one experiment",
     OF_COMPILE | OF_CORES | OF_SETTING | OF_PLAN | OF_TIMELINE | OF_OUT | OF_NETWORK | OF_FORM | OF_DIRECTION |
         OF_PATH | OF_MACHINE | OF_BENCH,
     0, NULL, NULL},
    {0},
};

graphi_status bench_only(const struct bench *bench, const char *experiment, const char *honoured)
{
    char list[512];
    snprintf(list, sizeof list, BENCH_ALWAYS "%s", honoured);
    if (bench->options.rest_count && strncmp(honoured, "M...", 4) != 0)
        return report_usage(experiment, bench->options.rest[0], "no further word");
    for (int i = 1; i < bench->options.rest_count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(bench->options.rest[i], bench->options.rest[k]) == 0)
                return report_usage(experiment, bench->options.rest[i], "each word once");
    return options_only(&bench->options, experiment, list);
}

enum kind { MEASURED, STUDY, WIDTHS };

/* The machine at hand: all of it, if the experiment is about a described one, which --cores then limits. */
static graphi_status open_machine(struct bench *bench, enum kind kind, int least_cores)
{
    const struct options *o = &bench->options;
    bench->described = kind == STUDY || o->machine;
    if (kind == STUDY)
        return GRAPHI_OK;
    graphi_status status = bench->described || kind == WIDTHS ? job_at_hand(o, &bench->machine)
                                                              : job_machine(o, &bench->machine);
    if (status != GRAPHI_OK || bench->described || kind != WIDTHS)
        return status;
    graphi_machine_get_info(bench->machine, &bench->about);
    bench->described = bench->about.cores < least_cores;
    if (bench->described || !o->cores)
        return GRAPHI_OK;
    graphi_machine_destroy(bench->machine);
    bench->machine = NULL;
    return job_machine(o, &bench->machine);
}

static int run(int argc, char **argv, const char *experiment, bench_body body, enum kind kind, int least_cores)
{
    struct bench bench = {.others = ""};
    const struct experiment *about = experiment_find(experiment);
    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (!words)
        return report_error(GRAPHI_MEMORY, experiment, "found no memory, expected some");
    if (!about) {
        free(words);
        return report_error(GRAPHI_INVALID, experiment, "found no row in tool/experiments.c, expected one");
    }
    words[0] = argv[0];
    words[1] = "bench";
    words[2] = (char *)experiment;
    memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof *words);
    graphi_status status = options_parse(argc + 2, words, &bench.options);
    if (status == GRAPHI_OK && bench.options.help) {
        help_experiment(about, stdout);
        free(words);
        return GRAPHI_OK;
    }
    if (status == GRAPHI_OK)
        status = bench_only(&bench, experiment, about->honoured);
    report_catch_interrupts();
    if (status == GRAPHI_OK)
        status = open_machine(&bench, kind, least_cores);
    if (status == GRAPHI_OK) {
        bench.result = result_begin("bench", experiment, argc + 2, words);
        if (bench.machine) {
            graphi_machine_get_info(bench.machine, &bench.about);
            result_machine(&bench.result, bench.machine);
        }
        if (bench.options.isa || bench.options.precision)
            result_note(&bench.result, "our kernels: instruction set %s, multiplicands %s",
                        bench.options.isa ? bench.options.isa : "of the machine",
                        bench.options.precision ? bench.options.precision : "float32");
        status = body(&bench);
        const json_t *machine = json_object_get(bench.result.root, "machine");
        if (bench.about.captured && json_array_size(bench.result.rows) &&
            !json_is_true(json_object_get(machine, "simulated"))) {
            job_measure_again(bench.machine, &bench.about);
            rates_settle(&bench.result, &bench.about);
        }
        report_progress(bench.options.quiet, "%s", "");
        if (status == GRAPHI_INTERRUPTED)
            report_error(status, experiment,
                         "found %s, expected to measure until the end; what was measured is kept", report_signal());
        result_set(bench.result.root, "ok", json_boolean(status == GRAPHI_OK));
        size_t index;
        json_t *goal;
        json_array_foreach(bench.result.goals, index,
                           goal) if (status == GRAPHI_OK && !json_is_true(json_object_get(goal, "met"))) status =
            GRAPHI_MISSED;
        const bool refused =
            status == GRAPHI_USAGE && !json_array_size(bench.result.rows); /* words that it does not know */
        if (!refused && result_write(bench.result.root, "-") != GRAPHI_OK)
            status = GRAPHI_IO;
        result_end(&bench.result);
    }
    graphi_machine_destroy(bench.machine);
    free(words);
    return status;
}

int bench_main(int argc, char **argv, const char *experiment, bench_body body)
{
    return run(argc, argv, experiment, body, MEASURED, 0);
}

int bench_study_main(int argc, char **argv, const char *experiment, bench_body body)
{
    return run(argc, argv, experiment, body, STUDY, 0);
}

int bench_widths_main(int argc, char **argv, const char *experiment, int cores, bench_body body)
{
    return run(argc, argv, experiment, body, WIDTHS, cores);
}

graphi_status bench_failure(graphi_status status)
{
    return status == GRAPHI_INTERRUPTED ? status : report_failure(status);
}

static graphi_status draw_weights(struct bench *bench, struct network *n)
{
    double begin = report_seconds();
    graphi_status status = graphi_state_create(n->graph, bench->options.seed, &n->state);
    n->weights_ms = (report_seconds() - begin) * 1e3;
    return status;
}

void bench_note_role(struct bench *bench, const char *network)
{
    if (strcmp(network, "dcgan") == 0 && !bench->options.role)
        result_note(&bench->result,
                    "dcgan: the discriminator's update alone; a training step has two of the generator's as well "
                    "(--role generator)");
}

graphi_status network_open(struct bench *bench, const char *name, const char *size, const graphi_plan_options *options,
                           struct network *n)
{
    graphi_plan_options plan;
    *n = (struct network){.name = name, .size = size};
    graphi_status status = job_network("bench", name, "");
    if (status != GRAPHI_OK)
        return status;
    if ((status = job_model_options(&bench->options, &n->model)) != GRAPHI_OK)
        return status;
    n->model.size = size;
    n->model.forward = n->model.forward || bench->forward;
    if ((status = job_plan_options(&bench->options, &plan)) != GRAPHI_OK)
        return status;
    if ((status = graphi_model_get_info(name, &n->model, &n->info)) != GRAPHI_OK ||
        (status = graphi_model_create(name, &n->model, &n->graph)) != GRAPHI_OK ||
        (status = draw_weights(bench, n)) != GRAPHI_OK ||
        (status = graphi_plan_create(n->graph, bench->machine, options ? options : &plan, &n->plan)) != GRAPHI_OK) {
        network_close(n);
        return report_failure(status);
    }
    n->rating = job_rating(n->graph, &bench->about, (options ? options : &plan)->precision);
    job_note_size(&bench->options, &n->info, &bench->result);
    bench_note_role(bench, name);
    return GRAPHI_OK;
}

void network_close(struct network *n)
{
    graphi_plan_destroy(n->plan);
    graphi_state_destroy(n->state);
    graphi_graph_destroy(n->graph);
    *n = (struct network){0};
}

static void tell(void *context, const char *text)
{
    const struct bench *bench = context;
    report_progress(bench->options.quiet, "%s", text);
}

graphi_status network_tune(struct bench *bench, struct network *network, double seconds)
{
    graphi_run *run;
    graphi_plan *better;
    graphi_plan_info info;
    graphi_tune_options how = {.seconds = seconds, .policies = bench->policies, .progress = tell, .stop = report_stop,
                                  .context = bench};
    graphi_plan_get_info(network->plan, &info);
    if (!job_setting_open(&bench->options))
        how.setting = REQUEST(&info.setting);
    graphi_status status = graphi_run_create(network->plan, network->state, &run);
    if (status != GRAPHI_OK)
        return report_failure(status);
    status = job_feed(run, network->graph, &network->info, bench->options.seed);
    graphi_run_destroy(run); /* leaves its inputs in the state: tuning measures with them */
    if (status != GRAPHI_OK)
        return status;
    if ((status = graphi_plan_tune(network->plan, network->state, &how, &better)) != GRAPHI_OK)
        return bench_failure(status);
    graphi_plan_destroy(network->plan);
    network->plan = better;
    return GRAPHI_OK;
}

static graphi_status each_size(struct bench *bench, const char *name, const char *sizes,
                               graphi_status (*body)(struct bench *, const char *, const char *))
{
    static const char *const all[] = {"small", "medium", "large"};
    graphi_status status = GRAPHI_OK;
    for (int i = 0; i < 3 && status == GRAPHI_OK; i++)
        if (bench->options.size ? strcmp(bench->options.size, all[i]) == 0 : strstr(sizes, all[i]) != NULL)
            if ((status = report_interrupted() ? GRAPHI_INTERRUPTED : GRAPHI_OK) == GRAPHI_OK) {
                /* Not where a network is opened: memory is measured from there on. */
                job_measure_again(bench->machine, &bench->about);
                status = body(bench, name, all[i]);
                if (job_one_size(name)) /* which the others are, too */
                    break;
            }
    return status;
}

graphi_status bench_networks(struct bench *bench, const char *sizes,
                             graphi_status (*body)(struct bench *bench, const char *name, const char *size))
{
    static const char *const four[] = {"lstm", "phased-lstm", "pathnet", "googlenet"};
    const struct options *o = &bench->options;
    graphi_status status = GRAPHI_OK;
    int count = o->rest_count ? o->rest_count : 4;
    for (int i = 0; i < o->rest_count && status == GRAPHI_OK; i++) /* a mistyped one is found before hours are spent */
        status = job_network("bench", o->rest[i], bench->others);
    for (int i = 0; i < count && status == GRAPHI_OK; i++)
        status = each_size(bench, o->rest_count ? o->rest[i] : four[i], sizes, body);
    return status;
}

static graphi_status open_run(struct bench *bench, const struct network *network, const graphi_setting *setting,
                              struct contender *host, struct contender *c)
{
    graphi_status status = graphi_plan_with(network->plan, &(graphi_plan_change){.setting = setting}, &c->plan);
    if (status == GRAPHI_OK)
        status =
            host ? graphi_run_beside(host->run, c->plan, &c->run) : graphi_run_create(c->plan, network->state, &c->run);
    if (status != GRAPHI_OK || host)
        return status == GRAPHI_OK ? status : report_failure(status);
    double begin = report_seconds();
    status = job_feed(c->run, network->graph, &network->info, bench->options.seed);
    c->feed_ms = (report_seconds() - begin) * 1e3;
    return status;
}

graphi_status contender_beside(struct bench *bench, const struct network *network, const char *id,
                               const graphi_setting *setting, struct contender *host, struct contender *c)
{
    *c = (struct contender){0};
    snprintf(c->id, sizeof c->id, "%s", id);
    c->ms = malloc(BENCH_MAX_ROUNDS * sizeof *c->ms);
    if (!c->ms)
        return report_error(GRAPHI_MEMORY, id, "found no memory for times, expected some");
    return open_run(bench, network, setting, host, c);
}

graphi_status contender_open(struct bench *bench, const struct network *network, const char *id,
                             const graphi_setting *setting, struct contender *c)
{
    return contender_beside(bench, network, id, setting, NULL, c);
}

void contender_close(struct contender *c)
{
    graphi_run_destroy(c->run);
    graphi_plan_destroy(c->plan);
    free(c->ms);
    *c = (struct contender){0};
}

/* Threads compute all the time of an execution, whether they work or wait: nobody sleeps in it. What the host gave to
 * other guests counts where it tells. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

graphi_status contender_execute(struct contender *c, double *ms)
{
    graphi_run_info info;
    const double begin = cpu_seconds();
    graphi_status status = graphi_run_execute(c->run);
    c->cpu_s = cpu_seconds() - begin;
    if (status != GRAPHI_OK)
        return report_failure(status);
    graphi_run_get_info(c->run, &info);
    *ms = info.last_ms;
    return GRAPHI_OK;
}

graphi_status bench_turn(struct contender *c, bool twice, double *ms)
{
    graphi_status status = contender_execute(c, ms);
    return status == GRAPHI_OK && twice && c->first_ms <= BENCH_LONG_MS ? contender_execute(c, ms) : status;
}

graphi_status bench_rounds(struct bench *bench, const char *title, struct contender *contender, int count,
                           const bool *in, double seconds, int least, int most, int *rounds)
{
    const double start = report_seconds();
    graphi_status status = GRAPHI_OK;
    for (; *rounds < most && (*rounds < least || report_seconds() - start < seconds); ++*rounds) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(bench->options.quiet, "%s: round %d, %.0f of %.0f s", title, *rounds + 1,
                        report_seconds() - start, seconds);
        for (int k = 0; k < count; k++) { /* odd rounds backwards: nobody is always behind the same one */
            const int c = *rounds % 2 ? count - 1 - k : k;
            if ((!in || in[c]) &&
                (status = bench_turn(&contender[c], bench->warm, &contender[c].ms[*rounds])) != GRAPHI_OK)
                return status;
        }
    }
    return GRAPHI_OK;
}

graphi_status bench_alternate(struct bench *bench, const char *title, struct contender *contender, int count,
                              double seconds, int max_rounds, int *rounds)
{
    graphi_status status;
    double warm;
    double round = 0; /* seconds */
    for (int c = 0; c < count; c++) {
        if (report_interrupted())
            return GRAPHI_INTERRUPTED;
        report_progress(bench->options.quiet, "%s: warming up, %d of %d", title, c + 1, count);
        if ((status = contender_execute(&contender[c], &contender[c].first_ms)) != GRAPHI_OK)
            return status;
        warm = contender[c].first_ms;
        if (warm * count < 1e3 * seconds && (status = contender_execute(&contender[c], &warm)) != GRAPHI_OK)
            return status;
        round += warm * 1e-3;
    }
    int least = bench->rounds ? bench->rounds : seconds >= 5 * round ? 5 : seconds >= 4 * round ? 4 : 3;
    *rounds = 0;
    max_rounds = max_rounds < BENCH_MAX_ROUNDS ? max_rounds : BENCH_MAX_ROUNDS;
    return bench_rounds(bench, title, contender, count, NULL, seconds, least, max_rounds, rounds);
}

json_t *bench_row(struct bench *bench, const struct network *network, const struct contender *c,
                  const struct contender *base, int rounds)
{
    char id[200];
    snprintf(id, sizeof id, "%s%s%s: %s", network->name, *network->size ? " " : "", network->size, c->id);
    graphi_plan_info info;
    graphi_plan_get_info(c->plan, &info);
    json_t *row = result_row(&bench->result, id, "graphi");
    result_setting(row, &info.setting);
    if (base && base != c) {
        char against[200];
        snprintf(against, sizeof against, "%s%s%s: %s", network->name, *network->size ? " " : "", network->size,
                 base->id);
        result_ratio(row, against, c->ms, base->ms, rounds);
    }
    if (!rounds)
        return row;
    result_times(row, c->ms, rounds);
    if (network->rating.flops > 0)
        result_rate(row, network->rating, result_median(c->ms, rounds));
    result_number(row, "lower_bound_ms", info.lower_bound_ms);
    if (info.predicted_ms > 0)
        result_number(row, "predicted_ms", info.predicted_ms);
    return row;
}

static uint64_t executions_of(const struct contender *c)
{
    graphi_plan_info info;
    graphi_plan_get_info(c->plan, &info);
    return info.hash;
}

/* The first of them with the executions of the last. */
static int first_alike(const struct contender *list, int last)
{
    int i = 0;
    while (executions_of(&list[i]) != executions_of(&list[last]))
        i++;
    return i;
}

static void add_alike_row(struct bench *bench, const struct network *network, const struct contender *as,
                          const struct entry *entry)
{
    struct contender same = *as;
    char reason[200];
    snprintf(reason, sizeof reason, "executes as \"%.90s\" does: nothing to compare on these cores", as->id);
    snprintf(same.id, sizeof same.id, "%s", entry->id);
    json_t *row = bench_row(bench, network, &same, NULL, 0);
    result_string(row, "status", "missing");
    result_string(row, "reason", reason);
}

graphi_status bench_settings(struct bench *bench, const struct network *network, const struct entry *entry, int count,
                             int base, double seconds)
{
    enum { MOST = 64 };
    struct contender list[MOST] = {0};
    int at[MOST], opened = 0, rounds = 0;
    graphi_status status = GRAPHI_OK;
    char title[160];
    snprintf(title, sizeof title, "%s %s", network->name, network->size);
    for (int i = 0; i < count && status == GRAPHI_OK; i++) {
        status = contender_open(bench, network, entry[i].id, &entry[i].setting, &list[opened]);
        at[i] = status == GRAPHI_OK ? first_alike(list, opened) : opened;
        if (at[i] == opened)
            opened++;
        else
            contender_close(&list[opened]);
    }
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, title, list, opened,
                                 bench->options.seconds > 0 ? bench->options.seconds : seconds, 300, &rounds);
    for (int i = 0; i < count && status == GRAPHI_OK; i++)
        if (strcmp(list[at[i]].id, entry[i].id) == 0)
            bench_row(bench, network, &list[at[i]], &list[at[base]], rounds);
        else
            add_alike_row(bench, network, &list[at[i]], &entry[i]);
    for (int i = 0; i < count; i++) /* also one whose opening failed */
        contender_close(&list[i]);
    return status;
}
