/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that tell of commands and options: all from their tables. */
#include "cli/help.h"

#include "cli/experiments.h"

#include <string.h>

#include "cli/option_table.h"

/* The passes that can be switched, by the lines of the library's list. */
static void print_passes(FILE *out)
{
    static const char always[] = " (always)";
    for (const char *line = graphi_pass_list(), *end; (end = strchr(line, '\n')); line = end + 1)
        if (strncmp(end - strlen(always), always, strlen(always)) != 0)
            fprintf(out, " %.*s", (int)strcspn(line, ":"), line);
}

static void print_summary(const struct option *option, FILE *out)
{
    fputs(option->summary, out);
    if (option->offset == offsetof(struct options, disable))
        print_passes(out);
    fputc('\n', out);
}

/* Options of some groups, by letter; of those only what has an effect in one of so many experiments, where some are
 * given. */
struct wanted {
    const char *letters;
    const struct experiment *first;
    int count; /* 0: options of any command */
};

static bool is_wanted(const struct option *option, const struct wanted *wanted)
{
    if (!strchr(wanted->letters, option->group))
        return false;
    bool effect = !wanted->count || options_listed(BENCH_ALWAYS, option->name);
    for (int i = 0; i < wanted->count && !effect; i++)
        effect = options_listed(wanted->first[i].honoured, option->name);
    return effect;
}

static void print_option(const struct option *option, FILE *out)
{
    char left[80];
    snprintf(left, sizeof left, "%s %s", option->name, option->argument ? option->argument : "");
    fprintf(out, "  %-34s ", left);
    print_summary(option, out);
}

static void print_options(const struct wanted *wanted, FILE *out)
{
    const char *title = NULL, *printed = NULL;
    for (const struct option_group *g = option_groups; g->letter; g++) {
        title = g->title ? g->title : title;
        for (const struct option *o = option_table; o->name; o++) {
            if (o->group != g->letter || !is_wanted(o, wanted))
                continue;
            if (printed != title)
                fprintf(out, "\n%s options\n", title);
            printed = title;
            print_option(o, out);
        }
    }
}

void help_overview(FILE *out)
{
    fprintf(out,
            "graphi %s: runs and trains deep-learning computation graphs on CPUs\n\nusage: graphi COMMAND [SUBJECT] "
            "[OPTIONS]\n\n",
            graphi_version());
    for (const struct command *c = commands; c->name; c++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", c->name, c->subject ? c->subject : "");
        fprintf(out, "  %-26s %s%s\n", left, c->summary, c->run ? "" : " (not available in this build)");
    }
    fprintf(out, "\nnetworks:");
    for (int i = 0; graphi_model_at(i); i++)
        fprintf(out, " %s", graphi_model_at(i));
    fprintf(out, "\n\ngraphi COMMAND --help lists a command's options; graphi --version. Exit status: 0 ok, 1 goal "
                 "missed, 2 usage, 3 bad input,\n"
                 "4 unsupported, 5 input/output, 6 memory, 7 plan refused, 8 non-finite numbers, 130 interrupted.\n"
                 "Environment: GRAPHI_NUM_THREADS (as --cores, of the machine at hand), GRAPHI_PLAN_DIR (where "
                 "plans and curves are kept).\n");
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
    char letters[16];
    snprintf(letters, sizeof letters, "%sc", command->groups);
    print_options(&(struct wanted){letters, experiments, strcmp(command->name, "bench") ? 0 : experiments_count}, out);
}

void help_experiment(const struct experiment *experiment, FILE *out)
{
    bool words = strncmp(experiment->honoured, "M...", 4) == 0;
    char letters[16];
    snprintf(letters, sizeof letters, "%sc", command_find("bench")->groups);
    fprintf(out, "usage: graphi bench %s%s [OPTIONS]\n\n%s\n", experiment->name, words ? " [M...]" : "",
            experiment->summary);
    print_options(&(struct wanted){letters, experiment, 1}, out);
}

void help_completion(FILE *out)
{
    fprintf(
        out,
        "# bash completion for graphi; source it or put it into /usr/share/bash-completion/completions/graphi\n"
        "_graphi() {\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n    case $last in\n");
    for (const struct option *o = option_table; o->name; o++)
        if (o->kind == TEXT && strchr(o->argument, '|'))
            fprintf(out, "    %s) COMPREPLY=($(IFS='|'; compgen -W '%s' -- \"$word\")); return ;;\n",
                    o->name, o->argument);
    fprintf(out, "    --policy) COMPREPLY=($(compgen -W '");
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        fprintf(out, "%s ", graphi_policy_name((graphi_policy)i));
    fprintf(out, "' -- \"$word\")); return ;;\n");
    for (const struct option *o = option_table; o->name; o++)
        if (o->argument && !strchr(o->argument, '|'))
            fprintf(out, "%s%s", o == option_table ? "    " : "|", o->name);
    fprintf(out, ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
    fprintf(out, "    esac\n    case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = commands; c->name; c++) {
        fprintf(out, "    %s) COMPREPLY=($(compgen -f -W \"", c->name);
        for (const struct option *o = option_table; o->name; o++)
            if (o->group == 'c' || strchr(c->groups, o->group))
                fprintf(out, "%s ", o->name);
        for (int i = 0; graphi_model_at(i); i++)
            fprintf(out, "%s ", graphi_model_at(i));
        if (c->subjects)
            c->subjects(out, false);
        fprintf(out, "\" -- \"$word\")) ;;\n");
    }
    fprintf(out, "    *) COMPREPLY=($(compgen -W \"");
    for (const struct command *c = commands; c->name; c++)
        fprintf(out, "%s ", c->name);
    fprintf(out, "\" -- \"$word\")) ;;\n    esac\n}\ncomplete -F _graphi graphi\n");
}

void help_man(FILE *out)
{
    fprintf(out,
            ".TH GRAPHI 1 \"\" \"graphi %s\"\n.SH NAME\ngraphi \\- runs and trains deep-learning computation graphs on "
            "CPUs\n"
            ".SH SYNOPSIS\n.B graphi\nCOMMAND [SUBJECT] [OPTIONS]\n.SH COMMANDS\n",
            graphi_version());
    for (const struct command *c = commands; c->name; c++)
        fprintf(out, ".TP\n.B %s %s\n%s\n", c->name, c->subject ? c->subject : "", c->summary);
    fprintf(out, ".SH OPTIONS\n");
    for (const struct option *o = option_table; o->name; o++) {
        fprintf(out, ".TP\n.B \\-%s %s\n", o->name + 1, o->argument ? o->argument : "");
        print_summary(o, out);
    }
    fprintf(
        out,
        ".SH EXIT STATUS\n0 ok, 1 a comparison or goal missed, 2 usage, 3 bad input, 4 unsupported, 5 input/output, "
        "6 memory, 7 plan refused, 8 non-finite numbers, 130 interrupted\n"
        ".SH ENVIRONMENT\nGRAPHI_NUM_THREADS, GRAPHI_PLAN_DIR\n");
}
