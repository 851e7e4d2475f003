/* SPDX-License-Identifier: Apache-2.0 */
/* The graphi command: finds the subcommand in one table and runs it. */
#include "cli/commands.h"
#include "cli/report.h"

#include <string.h>

const struct command commands[] = {
    {"info", NULL, "topology, instruction set, quota, effective threads, measured roof", "m", command_info},
    {"demo", NULL, "train PathNet on Fashion-MNIST, compare engines, write timeline.html", "mpont", command_demo},
    {"train", "M", "train a network on real data", "mpont", command_train},
    {"eval", "M", "loss and metric of a checkpoint on the test split", "mpont", command_eval},
    {"profile", "M", "search the setting, write the plan, explain it", "mpon", command_profile},
    {"run", "M", "run a built-in network on given inputs", "mponr", command_run},
    {"inspect", "M", "what is inside a network", "mpon", command_inspect},
    {"simulate", "M", "run in virtual time on a machine description", "mpons", command_simulate},
    {"bench", "EXPERIMENT [M...]", "one experiment, ours and peers in one run", "mponsb", command_bench},
    {"conformance", "[DIR]", "ONNX backend tests", "m", NULL},
    {"serve", "DIR", "Open Inference Protocol server", "m", NULL},
    {"export", "M", "trained network out as ONNX", "n", NULL},
    {"help", "[completion|man]", "this overview, bash completion, or the man page", "", command_help},
    {NULL, NULL, NULL, NULL, NULL},
};

static const struct command *find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

int command_help(const struct options *options)
{
    if (!options->subject)
        help_overview(stdout);
    else if (strcmp(options->subject, "completion") == 0)
        help_completion(stdout);
    else if (strcmp(options->subject, "man") == 0)
        help_man(stdout);
    else if (find(options->subject))
        help_command(find(options->subject), stdout);
    else
        return report_usage("help", options->subject, "a command, completion or man");
    return GRAPHI_OK;
}

int main(int argc, char **argv)
{
    struct options options;
    graphi_status status = options_parse(argc, argv, &options);
    if (status != GRAPHI_OK)
        return status;
    if (!options.command) {
        help_overview(options.help ? stdout : stderr);
        return options.help ? GRAPHI_OK : report_usage("command", "nothing", "one of those above");
    }
    const struct command *command = find(options.command);
    if (options.help) {
        help_command(command, stdout);
        return GRAPHI_OK;
    }
    if (!command->run)
        return report_error(GRAPHI_UNSUPPORTED, command->name, "found a command that is not available in this build, expected one that is");
    if (!options.subject && command->subject && command->subject[0] != '[')
        return report_usage(command->name, "nothing", "%s", command->subject);
    report_catch_interrupts();
    return command->run(&options);
}
