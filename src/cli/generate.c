/* SPDX-License-Identifier: Apache-2.0 */
/* graphi generate: text from a trained language model, token by token as it is drawn. The text goes to standard output
 * (to standard error where that is the JSON's). */
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "tool/plan.h"
#include "tool/plan_notes.h"
#include "tool/report.h"

#include "graphi/generate.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    struct job job;
    graphi_vocabulary *vocabulary;
    bool characters, began;
    FILE *to;
};

/* Words are apart by a blank; <eos> ends a line. */
static void write_token(struct writer *w, int32_t token)
{
    size_t length = 0;
    const char *text = graphi_vocabulary_text(w->vocabulary, token, &length);
    if (!w->characters && strcmp(text, "<eos>") == 0) {
        fputc('\n', w->to);
        w->began = false;
        return;
    }
    if (!w->characters && w->began)
        fputc(' ', w->to);
    fwrite(text, 1, length, w->to);
    w->began = true;
}

static bool token_made(void *context, int32_t token)
{
    struct writer *w = context;
    job_clock(&w->job);
    write_token(w, token);
    fflush(w->to);
    return !report_interrupted();
}

/* The vocabulary that the file has; the network takes its size. */
static graphi_status open_vocabulary(const graphi_checkpoint *file, struct writer *w)
{
    const char *words = graphi_checkpoint_text(file, "data.vocabulary");
    graphi_checkpoint_info info;
    graphi_checkpoint_get_info(file, &info);
    if (!words)
        return report_error(GRAPHI_INVALID, w->job.options->checkpoint,
                            "found no vocabulary, expected a checkpoint of a network of text that has one");
    w->characters = info.level && strcmp(info.level, "character") == 0;
    graphi_status status = graphi_vocabulary_open(words, w->characters, &w->vocabulary);
    return status == GRAPHI_OK ? status : report_failure(status);
}

static graphi_status load(const graphi_checkpoint *file, const struct job *job)
{
    graphi_status status = graphi_checkpoint_load(file, job->state, job->name, &job->model, NULL);
    return status == GRAPHI_OK ? status : report_failure(status);
}

/* The evaluation form of one row and one step, with the weights of the file. */
static graphi_status open(const struct options *given, struct writer *w)
{
    struct options *options = &(struct options){0};
    *options = *given;
    graphi_checkpoint *file = NULL;
    graphi_model_options model;
    w->job.options = given;
    graphi_status status = checkpoint_open(given, &file);
    if (status == GRAPHI_OK && (status = checkpoint_complete(file, given->subject, options)) == GRAPHI_OK)
        status = open_vocabulary(file, w);
    if (status == GRAPHI_OK)
        status = job_model_options(options, &model);
    if (status == GRAPHI_OK) {
        model.task = "real";
        model.evaluation = true;
        model.batch = model.steps = 1;
        model.vocabulary = graphi_vocabulary_count(w->vocabulary);
        status = job_begin(given, given->subject, &model, &w->job);
    }
    if (status == GRAPHI_OK)
        status = load(file, &w->job);
    graphi_checkpoint_close(file);
    return status == GRAPHI_OK ? job_plan(&w->job, 0) : status;
}

static graphi_status generate(struct writer *w, struct result *result)
{
    const struct options *o = w->job.options;
    const int64_t length = o->length ? o->length : 200;
    const int32_t none = 0;
    int32_t *prompt = NULL, *tokens = malloc((size_t)length * sizeof *tokens);
    int64_t count = 0, made = 0;
    const graphi_generate_options how = {.temperature = o->temperature_given ? o->temperature : 1,
                                         .top_k = o->top_k,
                                         .seed = o->seed_given ? o->seed : 1,
                                         .token = token_made,
                                         .context = w};
    if (!tokens)
        return report_error(GRAPHI_MEMORY, "generate", "found no room for %lld tokens, expected it", (long long)length);
    const char *text = o->prompt ? o->prompt : w->characters ? "\n" : "<eos>";
    graphi_status status = graphi_vocabulary_encode(w->vocabulary, text, strlen(text), &prompt, &count);
    if (status == GRAPHI_OK)
        status =
            graphi_run_set(w->job.run, "targets", GRAPHI_I32, &none, sizeof none); /* of a loss that nobody reads */
    for (int64_t i = 0; status == GRAPHI_OK && o->prompt && i < count; i++)
        write_token(w, prompt[i]);
    if (status == GRAPHI_OK)
        status = graphi_state_zero(w->job.state, "eval/state/");
    if (status == GRAPHI_OK)
        status = graphi_generate(w->job.run, &how, prompt, count, tokens, length, &made);
    fputc('\n', w->to);
    if (status != GRAPHI_OK)
        report_failure(status);
    else if ((status = report_stopped("generate", "to write all of the text")) == GRAPHI_OK)
        result_note(result, "%lld tokens after a prompt of %lld, temperature %g, top %lld of %lld, seed %llu",
                    (long long)made, (long long)count, how.temperature,
                    (long long)(how.top_k ? how.top_k : graphi_vocabulary_count(w->vocabulary)),
                    (long long)graphi_vocabulary_count(w->vocabulary), (unsigned long long)how.seed);
    graphi_free(prompt);
    free(tokens);
    return status;
}

int command_generate(const struct options *options)
{
    struct writer w = {.to = options_json_is_stdout(options) ? stderr : stdout};
    if (!options->checkpoint)
        return report_usage("--checkpoint", "nothing", "the file that training wrote");
    struct result result = result_begin("generate", NULL, options->argc, options->argv);
    graphi_status status = open(options, &w);
    if (status == GRAPHI_OK) {
        job_describe(&w.job, &result);
        status = generate(&w, &result);
        job_row(&w.job, w.job.name, &result);
        result_plan(&result, w.job.plan, w.job.run);
        job_record(&w.job, &result);
        status = job_finish(options, &result, status);
    }
    graphi_vocabulary_close(w.vocabulary);
    job_close(&w.job);
    result_end(&result);
    return status;
}
