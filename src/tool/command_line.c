/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of the command line. */
#include "tool/command_line.h"

#include <string.h>

#include "tool/option_value.h"
#include "tool/report.h"
#include "tool/spelling.h"

const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static graphi_status unknown_command(const char *word)
{
    const char *meant = NULL;
    int nearest = SPELLING_MOST + 1;
    for (const struct command *c = commands; c->name; c++) {
        int distance = spelling_distance(word, strlen(word), c->name);
        if (distance < nearest)
            nearest = distance, meant = c->name;
    }
    return report_usage("command", word, "%s%s of those that graphi --help lists", meant ? meant : "",
                        meant ? ", or another" : "one");
}

static bool has_option(const struct command *command, const struct option *option)
{
    return !command || ((command->options | OF_COMMON) & option->group);
}

/* The letters behind the two lines, which every option has. */
static graphi_status unknown_option(const struct command *command, const char *word, size_t length)
{
    const char *meant = NULL;
    int nearest = SPELLING_MOST + 1;
    for (const struct option *o = option_table(); o->name && length > 2; o++) {
        int distance = spelling_distance(word + 2, length - 2, o->name + 2);
        if (distance < nearest && has_option(command, o))
            nearest = distance, meant = o->name;
    }
    return report_usage("option", word, "%s%s of those that graphi %s%s--help lists", meant ? meant : "",
                        meant ? ", or another" : "one", command ? command->name : "", command ? " " : "");
}

static graphi_status no_such_option(const struct command *command, const char *word)
{
    return report_usage(command->name, word, "an option that '%s' has (graphi %s --help)", command->name,
                        command->name);
}

/* Options may stand before the command too. */
static graphi_status check_given(const struct command *command, const struct options *options)
{
    for (int i = 0; i < options->given_count; i++)
        for (const struct option *o = option_table(); o->name; o++)
            if (options->given[i] == o->name && !has_option(command, o))
                return no_such_option(command, o->name);
    return GRAPHI_OK;
}

static graphi_status store(const struct option *option, const char *word, struct options *options)
{
    struct option_wrong wrong;
    return option_read(option, word, options, &wrong) ? GRAPHI_OK
                                                      : report_usage(option->name, wrong.found, "%s", wrong.expected);
}

static graphi_status parse_option(int argc, char **argv, int *i, const struct command *command, struct options *options)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (const struct option *option = option_table(); option->name; option++) {
        if (strlen(option->name) != length || strncmp(option->name, word, length) != 0)
            continue;
        if (!has_option(command, option))
            return no_such_option(command, word);
        if (options->given_count == OPTIONS_MOST)
            return report_usage(option->name, "more options than that", "at most %d", OPTIONS_MOST);
        options->given[options->given_count++] = option->name;
        if (option->kind == FLAG)
            return equals ? report_usage(option->name, word, "no value") : store(option, NULL, options);
        if (equals)
            return store(option, equals + 1, options);
        if (*i + 1 >= argc)
            return report_usage(option->name, "nothing", "%s", option->argument);
        return store(option, argv[++*i], options);
    }
    return unknown_option(command, word, length);
}

graphi_status options_parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.argc = argc, .argv = argv};
    const struct command *command = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0) {
            options->help = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            graphi_status status = parse_option(argc, argv, &i, command, options);
            if (status != GRAPHI_OK)
                return status;
        } else if (!options->command) {
            options->command = argv[i];
            command = command_find(argv[i]);
            if (!command)
                return unknown_command(argv[i]);
            graphi_status status = check_given(command, options);
            if (status != GRAPHI_OK)
                return status;
        } else if (!options->subject) {
            if (!command->subject)
                return report_usage(command->name, argv[i], "no further word");
            options->subject = argv[i];
        } else if (!strstr(command->subject, "...") || options->rest_count == OPTIONS_MOST) {
            return report_usage(command->name, argv[i], "no further word after '%s'", options->subject);
        } else {
            options->rest[options->rest_count++] = argv[i];
        }
    }
    return GRAPHI_OK;
}
