/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that tell of commands and options: all from their tables. */
#include "tool/help.h"

#include "tool/experiments.h"

#include <string.h>

/* The passes that can be switched, as they are written. */
static void print_passes(FILE *out)
{
    graphi_pass pass;
    for (int i = 0; graphi_pass_at(i, &pass); i++)
        if (!pass.always)
            fprintf(out, " %s%s", pass.on_request ? "+" : "", pass.name);
}

static void print_summary(const struct option *option, FILE *out)
{
    fputs(option->summary, out);
    if (option->offset == offsetof(struct options, disable))
        print_passes(out);
    fputc('\n', out);
}

/* Options of some groups, and those that all commands have; of those only what has an effect in one of so many
 * experiments, where some are given. */
struct wanted {
    unsigned groups;
    const struct experiment *first;
    int count; /* 0: options of any command */
};

static bool is_wanted(const struct option *option, const struct wanted *wanted)
{
    if (!((wanted->groups | OF_COMMON) & option->group))
        return false;
    bool effect = !wanted->count || options_listed(BENCH_ALWAYS, option->name);
    for (int i = 0; i < wanted->count && !effect; i++)
        effect = options_effect(wanted->first[i].honoured, option->name);
    return effect;
}

/* How a list of options is written: what stands above those of a group, and one of them. */
struct form {
    void (*title)(const char *title, FILE *out);
    void (*option)(const struct option *option, FILE *out);
};

static void print_options(const struct wanted *wanted, const struct form *form, FILE *out)
{
    const char *title = NULL, *printed = NULL;
    for (const struct option_group *g = option_groups; g->flag; g++) {
        title = g->title ? g->title : title;
        for (const struct option *o = option_table(); o->name; o++) {
            if (o->group != g->flag || !is_wanted(o, wanted))
                continue;
            if (printed != title)
                form->title(title, out);
            printed = title;
            form->option(o, out);
        }
    }
}

/* What a command takes: of bench what has an effect in one of the experiments. */
static struct wanted wanted_by(const struct command *command)
{
    return (struct wanted){command->options, experiments, strcmp(command->name, "bench") ? 0 : experiments_count};
}

static void help_title(const char *title, FILE *out) { fprintf(out, "\n%s options\n", title); }

static void help_option(const struct option *option, FILE *out)
{
    char left[80];
    snprintf(left, sizeof left, "%s %s", option->name, option->argument ? option->argument : "");
    fprintf(out, "  %-34s ", left);
    print_summary(option, out);
}

static const struct form help_form = {help_title, help_option};

void help_overview(FILE *out)
{
    fprintf(out,
            "graphi %s: runs and trains deep-learning computation graphs on CPUs\n\nusage: graphi COMMAND [SUBJECT] "
            "[OPTIONS]\n\n",
            graphi_version());
    for (const struct command *c = commands; c->name; c++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", c->name, c->subject ? c->subject : "");
        fprintf(out, "  %-26s %s\n", left, c->summary);
    }
    fprintf(out, "\nnetworks:");
    for (int i = 0; graphi_model_at(i); i++)
        fprintf(out, " %s", graphi_model_at(i));
    fprintf(out, "\n\ngraphi COMMAND --help lists a command's options; graphi --version. Exit status: 0 ok, 1 goal "
                 "missed, 2 usage, 3 bad input,\n"
                 "4 unsupported, 5 input/output, 6 memory, 7 plan refused, 8 non-finite numbers, 130 interrupted.\n"
                 "Environment: GRAPHI_NUM_THREADS (at most so many cores of the machine at hand), "
                 "GRAPHI_PLAN_DIR (where plans and curves are kept),\n"
                 "GRAPHI_MEASURE_SECONDS (for how long each command measures the machine: 0.3).\n");
}

void help_command(const struct command *command, FILE *out)
{
    fprintf(out, "usage: graphi %s%s%s [OPTIONS]\n\n%s\n", command->name, command->subject ? " " : "",
            command->subject ? command->subject : "", command->summary);
    if (command->subjects) {
        fprintf(out, "\n%s:\n", command->subject);
        if (!command->subjects(out, true))
            fprintf(out, "  none in this build\n");
    }
    const struct wanted wanted = wanted_by(command);
    print_options(&wanted, &help_form, out);
}

void help_experiment(const struct experiment *experiment, FILE *out)
{
    bool words = strncmp(experiment->honoured, "M...", 4) == 0;
    fprintf(out, "usage: graphi bench %s%s [OPTIONS]\n\n%s\n", experiment->name, words ? " [M...]" : "",
            experiment->summary);
    print_options(&(struct wanted){command_find("bench")->options, experiment, 1}, &help_form, out);
}

/* Text of a man page: minus signs stay what they are typed as, and no line is a command of troff. */
static void man_text(const char *text, FILE *out)
{
    for (const char *c = text; *c; c++)
        fprintf(out, "%s%c", *c == '-' ? "\\" : c == text && strchr(".'", *c) ? "\\&" : "", *c);
}

static void man_entry(const char *name, const char *text, FILE *out)
{
    fprintf(out, ".TP\n.B ");
    man_text(name, out);
    fputc('\n', out);
    man_text(text, out);
    fputc('\n', out);
}

static void man_title(const char *title, FILE *out) { fprintf(out, ".SS %s options\n", title); }

static void man_option(const struct option *option, FILE *out)
{
    char left[80];
    snprintf(left, sizeof left, "%s%s%s", option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
    man_entry(left, option->summary, out);
    if (option->offset != offsetof(struct options, disable))
        return;
    fputs("\\&", out); /* a line that begins with a blank would stand apart */
    print_passes(out);
    fputc('\n', out);
}

static void man_group(const char *title, FILE *out) { fprintf(out, ".br\n%s:\n", title); }

static void man_name(const struct option *option, FILE *out)
{
    fprintf(out, "\\fB");
    man_text(option->name, out);
    fprintf(out, "\\fR\n");
}

static const struct form man_form = {man_title, man_option}, man_names = {man_group, man_name};

static void man_command(const struct command *command, FILE *out)
{
    const struct wanted wanted = wanted_by(command);
    fprintf(out, ".SS graphi %s%s%s\n", command->name, command->subject ? " " : "",
            command->subject ? command->subject : "");
    man_text(command->summary, out);
    fputc('\n', out);
    print_options(&wanted, &man_names, out);
}

static void man_examples(FILE *out)
{
    static const char *const examples[][2] = {
        {"graphi info", "what the scheduler sees of this machine"},
        {"graphi train pathnet --epochs 2 --checkpoint p.safetensors",
         "learns Fashion-MNIST; Ctrl-C leaves a checkpoint"},
        {"graphi train --resume p.safetensors", "goes on bit for bit; nothing is typed again"},
        {"graphi eval pathnet --checkpoint p.safetensors", "loss and accuracy on the test split"},
        {"graphi run pathnet --checkpoint p.safetensors --batch 8 --input images=x.npy --output out",
         "logits of 8 images"},
        {"graphi run phased-lstm --training --timeline step",
         "step.html: every operation on its executor"},
        {"graphi profile lstm --size medium --tune 20 --explain",
         "searches executors x threads, stores the plan, says why"},
        {"graphi generate lstm --checkpoint text.safetensors --prompt Juliet", "text from a trained language model"},
        {"graphi run model.onnx --input x=x.npy --output out", "an ONNX model; inspect says what is inside"},
        {"graphi simulate lstm --machine xeon-phi-7250 --executors 8 --width 8",
         "the same scheduler on 68 simulated cores"},
        {"graphi bench sweep pathnet --size small", "every policy, driver, executors x threads, in alternation"},
    };
    fprintf(out, ".SH EXAMPLES\n");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        man_entry(examples[i][0], examples[i][1], out);
}

static void man_networks(FILE *out)
{
    graphi_model_info about;
    fprintf(out, ".SH NETWORKS\n");
    for (int i = 0; graphi_model_at(i); i++)
        if (graphi_model_get_info(graphi_model_at(i), NULL, &about) == GRAPHI_OK)
            man_entry(about.name, about.summary, out);
}

void help_man(FILE *out)
{
    fprintf(out, ".TH GRAPHI 1 \"\" \"graphi %s\"\n.ad l\n.nh\n", graphi_version());
    fprintf(out, ".SH NAME\ngraphi \\- runs and trains deep-learning computation graphs on CPUs\n"
                 ".SH SYNOPSIS\n.B graphi\nCOMMAND [SUBJECT] [OPTIONS]\n"
                 ".SH COMMANDS\nEach with the options that it takes, told under OPTIONS; M is one of NETWORKS.\n");
    for (const struct command *c = commands; c->name; c++)
        man_command(c, out);
    man_networks(out);
    fprintf(out, ".SH OPTIONS\n");
    print_options(&(struct wanted){~0u, NULL, 0}, &man_form, out);
    fprintf(out, ".SH EXPERIMENTS\nof graphi bench, where they were built;\n"
                 ".B graphi bench EXPERIMENT \\-\\-help\nlists what has an effect in one.\n");
    for (const struct experiment *e = experiments; e->name; e++)
        man_entry(e->name, e->summary, out);
    man_examples(out);
    fprintf(out, ".SH EXIT STATUS\n0 ok, 1 a comparison or goal missed, 2 usage, 3 bad input, 4 unsupported, "
                 "5 input/output, 6 memory, 7 plan refused, 8 non-finite numbers, 130 interrupted\n.SH ENVIRONMENT\n");
    man_entry("GRAPHI_NUM_THREADS", "at most so many cores of the machine at hand, where --cores does not say how many",
              out);
    man_entry("GRAPHI_PLAN_DIR",
              "folder of stored plans and curves; without it $XDG_CACHE_HOME/graphi (an absolute path), else "
              "~/.cache/graphi",
              out);
    man_entry("GRAPHI_MEASURE_SECONDS",
              "for how long a command measures the machine at hand, 0.3; a result tells where it was shorter", out);
}
