/* SPDX-License-Identifier: Apache-2.0 */
/* A group from options, and what a result says of it. One thread. */
#include "cli/solvers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/plan.h"
#include "tool/report.h"

enum { USUAL_LEAVES = 8 };

bool solvers_asked(const struct options *o)
{
    return o->solvers || o->deterministic || o->leaves || o->reduction || o->must_place || o->oversubscribe ||
           (o->transport && strcmp(o->transport, "mpi") == 0);
}

/* A whole number up to `most` and nothing behind it; 0: none. */
static int count_of(const char *word, int most)
{
    char *end;
    const long value = *word >= '1' && *word <= '9' ? strtol(word, &end, 10) : 0;
    return value > 0 && value <= most && !*end ? (int)value : 0;
}

bool solvers_are_count(const char *word)
{
    return strcmp(word, "nodes") == 0 || count_of(word, GRAPHI_GROUP_SOLVERS);
}

/* "tree:4", and the others by their names. */
static bool read_reduction(const char *word, graphi_reduction *reduction, int *arity)
{
    static const char *const names[] = {
#define X(NAME, text) text,
        GRAPHI_REDUCTION_LIST(X)
#undef X
    };
    const size_t length = strcspn(word, ":");
    for (int i = 0; i < GRAPHI_REDUCTIONS; i++)
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0) {
            *reduction = (graphi_reduction)i;
            *arity = word[length] ? count_of(word + length + 1, GRAPHI_GROUP_SOLVERS) : 0;
            return !word[length] || (i == GRAPHI_REDUCTION_TREE && *arity);
        }
    return false;
}

bool solvers_are_reduction(const char *word)
{
    graphi_reduction reduction;
    int arity;
    return read_reduction(word, &reduction, &arity);
}

void solvers_leaves(const struct job *job, char *word)
{
    const struct options *o = job->options;
    if (o->deterministic)
        snprintf(word, 16, "%d", o->leaves ? o->leaves : USUAL_LEAVES);
}

graphi_status solvers_check(const struct options *o)
{
    const char *beside = o->plan ? "--plan" : o->save_plan ? "--save-plan" : o->timeline ? "--timeline" : NULL;
    if (!solvers_asked(o))
        return GRAPHI_OK;
    if (o->solvers && !solvers_are_count(o->solvers))
        return report_usage("--solvers", o->solvers, "1 to %d, or nodes", GRAPHI_GROUP_SOLVERS);
    if (o->reduction && !solvers_are_reduction(o->reduction))
        return report_usage("--reduction", o->reduction, "pair, owner, tree, tree:ARITY, ring or flat");
    if (o->leaves && !o->deterministic)
        return report_usage("--leaves", "no --deterministic", "both");
    if (o->rank_timeout > 0 && (!o->transport || strcmp(o->transport, "mpi") != 0))
        return report_usage("--rank-timeout", "no --transport mpi", "both");
    if (o->must_place && o->oversubscribe)
        return report_usage("--must-place", "--oversubscribe too", "one of the two");
    if (beside)
        return report_usage(beside, "solvers", "one of the two: plans of solvers are chosen statically");
    return GRAPHI_OK;
}

static graphi_status build(void *context, int64_t batch, graphi_graph **out)
{
    const struct job *job = context;
    graphi_model_options model = job->model;
    model.batch = batch;
    model.dense = true;
    return graphi_model_create(job->name, &model, out);
}

/* Beside the command, as it is built, or where it is installed. */
static void find_plugin(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - 32);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, "graphi-mpi.so");
    if (access(path, R_OK) != 0)
        snprintf(path, size, "%s/graphi-mpi.so", GRAPHI_LIBEXEC);
}

bool solvers_follow(const graphi_ranks *ranks)
{
    graphi_ranks_info info;
    return graphi_ranks_get_info(ranks, &info) && info.rank > 0;
}

graphi_status solvers_join(const struct options *options, struct options *own, graphi_ranks **ranks)
{
    static char path[4200], log[4200];
    graphi_ranks_info info;
    *own = *options;
    *ranks = NULL;
    if (!options->transport || strcmp(options->transport, "mpi") != 0)
        return GRAPHI_OK;
    find_plugin(path, sizeof path);
    const graphi_status status = graphi_ranks_open(path, options->rank_timeout, ranks);
    if (status != GRAPHI_OK)
        return report_failure(status);
    if (!solvers_follow(*ranks))
        return GRAPHI_OK;
    graphi_ranks_get_info(*ranks, &info);
    own->quiet = true;
    own->explain = false;
    own->json = own->out = NULL;
    if (own->log)
        snprintf(log, sizeof log, "%s.%d", own->log, info.rank);
    own->log = own->log ? log : NULL;
    return GRAPHI_OK;
}

static bool stopped(void *context)
{
    return report_interrupted() != 0;
}

graphi_status solvers_open(const struct options *o, graphi_ranks *ranks, struct job *job, graphi_group **out)
{
    graphi_plan_options plan;
    graphi_status status = job_plan_options(o, &plan);
    if (status != GRAPHI_OK)
        return status;
    const bool nodes = o->solvers && strcmp(o->solvers, "nodes") == 0;
    graphi_group_options how = {.build = build,
                                .context = job,
                                .batch = job->info.batch,
                                .solvers = nodes        ? 0
                                           : o->solvers ? count_of(o->solvers, GRAPHI_GROUP_SOLVERS)
                                                        : 1,
                                .deterministic = o->deterministic,
                                .leaves = o->leaves,
                                .oversubscribe = o->oversubscribe,
                                .must_place = o->must_place,
                                .machine = job->machine,
                                .plan = &plan,
                                .ranks = ranks,
                                .stop = stopped,
                                .seed = o->seed,
                                .state = job->state};
    if (o->reduction)
        read_reduction(o->reduction, &how.reduction, &how.arity);
    status = graphi_group_create(&how, out);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* --- what is told --- */

static void note_solvers(const graphi_group *group, struct result *result)
{
    graphi_solver_info solver;
    for (int i = 0; graphi_group_at(group, i, &solver); i++)
        if (*solver.note)
            result_note(result, "solver %d: %s", i, solver.note);
}

void solvers_result(struct job *job, const graphi_group *group, struct result *result)
{
    static const char *const names[] = {
#define X(NAME, text) text,
        GRAPHI_REDUCTION_LIST(X)
#undef X
    };
    graphi_group_info info;
    graphi_solver_info first = {0};
    graphi_plan_info plan;
    graphi_group_get_info(group, &info);
    graphi_group_at(group, 0, &first);
    graphi_plan_get_info(first.plan, &plan);
    result_plan(result, first.plan, NULL);
    json_t *row = result_row(result, job->name, "graphi");
    result_setting(row, &plan.setting);
    job_times(job, row, result);
    result_set(row, "solvers", json_integer(info.solvers));
    result_set(row, "leaves", info.leaves ? json_integer(info.leaves) : json_null());
    result_set(row, "reduction", json_string(names[info.reduction]));
    result_set(row, "gradient_bytes", json_integer(info.gradient_bytes));
    note_solvers(group, result);
    if (job->options->oversubscribe)
        result_note(result, "solvers took turns on the cores (--oversubscribe): times are not those of a group");
}
