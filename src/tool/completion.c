/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for bash, zsh and fish, all from the tables of commands, options and experiments: what follows an option
 * that takes a word of a list, or a file; the subject of a command where it stands, experiments of bench before
 * anything else; then options and networks. */
#include "tool/help.h"

#include "tool/experiments.h"
#include "tool/option_table.h"

#include <string.h>

/* The words that an option takes, with blanks between them; false: it takes something else, or nothing. */
static bool put_values(const struct option *option, FILE *out)
{
    if (strcmp(option->name, "--policy") == 0) {
        for (int i = 0; i < GRAPHI_POLICIES; i++)
            fprintf(out, "%s%s", i ? " " : "", graphi_policy_name((graphi_policy)i));
        return true;
    }
    if (!option->argument || !strchr(option->argument, '|'))
        return false;
    for (const char *c = option->argument; *c; c++)
        fputc(*c == '|' ? ' ' : *c, out);
    return true;
}

static bool has_values(const struct option *option)
{
    return option->argument && (strcmp(option->name, "--policy") == 0 || strchr(option->argument, '|'));
}

static bool takes_networks(const struct command *command)
{
    return command->subject && (command->subject[0] == 'M' || strstr(command->subject, "[M"));
}

static bool takes_files(const struct command *command) { return command->subject && strstr(command->subject, "FILE"); }

static void put_networks(FILE *out)
{
    for (int i = 0; graphi_model_at(i); i++)
        fprintf(out, "%s ", graphi_model_at(i));
}

/* What the first word behind a command may be. */
static void put_subjects(const struct command *command, FILE *out)
{
    if (command->subjects)
        command->subjects(out, false);
    else if (strcmp(command->name, "help") == 0)
        for (const char *c = command->subject; *c; c++)
            fputc(strchr("[]|", *c) ? ' ' : *c, out);
    else if (takes_networks(command))
        put_networks(out);
}

static void put_options(const struct command *command, FILE *out)
{
    for (const struct option *o = option_table(); o->name; o++)
        if ((command->options | OF_COMMON) & o->group)
            fprintf(out, "%s ", o->name);
}

static void put_commands(FILE *out)
{
    for (const struct command *c = commands; c->name; c++)
        fprintf(out, "%s ", c->name);
}

/* The options behind which a file or a number follows, as a pattern of `case`. */
static void put_pattern_of_files(FILE *out)
{
    bool first = true;
    for (const struct option *o = option_table(); o->name; o++)
        if (o->argument && !has_values(o)) {
            fprintf(out, "%s%s", first ? "" : "|", o->name);
            first = false;
        }
}

/* A word of the shell, in single quotes. */
static void put_quoted(const char *text, const char *quote, FILE *out)
{
    fputc('\'', out);
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputs(quote, out);
        else
            fputc(*c, out);
    }
    fputc('\'', out);
}

static void bash_values(FILE *out)
{
    for (const struct option *o = option_table(); o->name; o++)
        if (has_values(o)) {
            fprintf(out, "    %s) COMPREPLY=($(compgen -W '", o->name);
            put_values(o, out);
            fprintf(out, "' -- \"$word\")); return ;;\n");
        }
    fputs("    ", out);
    put_pattern_of_files(out);
    fprintf(out, ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
}

void help_bash(FILE *out)
{
    fprintf(out,
            "# bash completion for graphi; source it or put it into /usr/share/bash-completion/completions/graphi\n"
            "_graphi() {\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} more= files=\n"
            "    case $last in\n");
    bash_values(out);
    fprintf(out, "    esac\n    case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = commands; c->name; c++) {
        fprintf(out, "    %s)\n        [[ $COMP_CWORD = 2 && $word != -* ]] && more=\"", c->name);
        put_subjects(c, out);
        fprintf(out, "\"\n        [[ $more ]] || more=\"");
        put_options(c, out);
        if (takes_networks(c))
            put_networks(out);
        fprintf(out, "\"%s ;;\n", takes_files(c) ? "; files=-f" : "");
    }
    fprintf(out, "    *) more=\"");
    put_commands(out);
    fprintf(out, "\" ;;\n    esac\n    COMPREPLY=($(compgen $files -W \"$more\" -- \"$word\"))\n}\n"
                 "complete -o default -F _graphi graphi\n");
}

static void zsh_values(FILE *out)
{
    for (const struct option *o = option_table(); o->name; o++)
        if (has_values(o)) {
            fprintf(out, "    %s) compadd -- ", o->name);
            put_values(o, out);
            fprintf(out, "; return ;;\n");
        }
    fputs("    ", out);
    put_pattern_of_files(out);
    fprintf(out, ") _files; return ;;\n");
}

void help_zsh(FILE *out)
{
    fprintf(out, "#compdef graphi\n# zsh completion for graphi; a file _graphi in a folder of $fpath\n_graphi() {\n"
                 "    local -a subjects\n    local place=${words[CURRENT]}\n"
                 "    if (( CURRENT == 2 )); then\n        subjects=(\n");
    for (const struct command *c = commands; c->name; c++) {
        char line[512];
        snprintf(line, sizeof line, "%s:%s", c->name, c->summary);
        fputs("            ", out);
        put_quoted(line, "'\\''", out);
        fputc('\n', out);
    }
    fprintf(out, "        )\n        _describe command subjects\n        return\n    fi\n"
                 "    case ${words[CURRENT-1]} in\n");
    zsh_values(out);
    fprintf(out, "    esac\n    case ${words[2]} in\n");
    for (const struct command *c = commands; c->name; c++) {
        fprintf(out, "    %s)\n        (( CURRENT == 3 )) && [[ $place != -* ]] && subjects=(", c->name);
        put_subjects(c, out);
        fprintf(out, ")\n        (( $#subjects )) || subjects=(");
        put_options(c, out);
        if (takes_networks(c))
            put_networks(out);
        fprintf(out, ")\n        compadd -- $subjects%s ;;\n", takes_files(c) ? "; _files" : "");
    }
    fprintf(out, "    esac\n}\n"
                 "if [[ $funcstack[1] = _graphi ]]; then _graphi \"$@\"; else compdef _graphi graphi; fi\n");
}

static void fish_option(const struct command *command, const struct option *option, FILE *out)
{
    fprintf(out, "complete -c graphi -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name + 2);
    if (has_values(option)) {
        fprintf(out, " -x -a '");
        put_values(option, out);
        fputc('\'', out);
    } else if (option->argument) {
        fprintf(out, " -r -F");
    }
    fprintf(out, " -d ");
    put_quoted(option->summary, "\\'", out);
    fputc('\n', out);
}

void help_fish(FILE *out)
{
    fprintf(out, "# fish completion for graphi; a file graphi.fish in ~/.config/fish/completions\n"
                 "complete -c graphi -f\n");
    for (const struct command *c = commands; c->name; c++) {
        fprintf(out, "complete -c graphi -n __fish_use_subcommand -a %s -d ", c->name);
        put_quoted(c->summary, "\\'", out);
        fprintf(out, "\ncomplete -c graphi -n '__fish_seen_subcommand_from %s; ", c->name);
        fprintf(out, "and test (count (commandline -opc)) -eq 2' -a '");
        put_subjects(c, out);
        fputs("'\n", out);
        if (takes_files(c))
            fprintf(out, "complete -c graphi -n '__fish_seen_subcommand_from %s' -F\n", c->name);
        for (const struct option *o = option_table(); o->name; o++)
            if ((c->options | OF_COMMON) & o->group)
                fish_option(c, o, out);
    }
}
