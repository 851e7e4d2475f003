/* SPDX-License-Identifier: Apache-2.0 */
/* The graphi command: finds the subcommand in one table and runs it. */
#include "cli/commands.h"
#include "cli/onnx.h"
#include "cli/outputs.h"
#include "cli/resume.h"
#include "tool/experiments.h"
#include "tool/help.h"
#include "tool/job.h"
#include "tool/plan.h"
#include "tool/report.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    /* What any command that compiles a network takes. */
    OF_COMPILED = OF_COMPILE | OF_CORES | OF_SETTING | OF_PLAN | OF_TIMELINE | OF_OUT | OF_NETWORK,
    OF_ANY_FORM = OF_FORM | OF_DIRECTION,
    OF_TRAINED = OF_CHECKPOINT | OF_PATH | OF_DATA | OF_TEXT, /* the network that data or a checkpoint are of */
    OF_LEARNING = OF_COMPILED | OF_FORM | OF_TRAINED | OF_USE,
};

const struct command commands[] = {
    {"info", NULL, "topology, instruction set, quota, effective threads, measured roof", OF_CORES | OF_OUT,
     COMMAND_OUT_IS_FILE, command_info, NULL},
    {"demo", NULL, "train PathNet on Fashion-MNIST, compare engines, write timeline.html",
     OF_COMPILED | OF_CHECKPOINT | OF_PATH | OF_DATA | OF_USE | OF_TRAIN, COMMAND_TRAINS, command_demo, NULL},
    {"train", "M", "train a network on real data", OF_LEARNING | OF_TRAIN | OF_GROUP, COMMAND_TRAINS, command_train,
     NULL},
    {"eval", "M", "loss and metric of a checkpoint on the test split", OF_LEARNING | OF_SPLIT | OF_OUTPUT,
     COMMAND_SCORES, command_eval, NULL},
    {"generate", "M", "text from a trained language model", OF_COMPILED | OF_FORM | OF_CHECKPOINT | OF_GENERATE, 0,
     command_generate, NULL},
    {"profile", "M", "search the setting, write the plan, explain it; of an ONNX file: times and timelines",
     OF_COMPILED | OF_ANY_FORM | OF_TRAINED | OF_INPUT, 0, command_profile, NULL},
    {"run", "M", "run an ONNX file or a built-in network on given inputs",
     OF_COMPILED | OF_ANY_FORM | OF_TRAINED | OF_INPUT | OF_RUN | OF_OUTPUT | OF_COMPARE, 0,
     command_run, NULL},
    {"inspect", "M", "what is inside an ONNX file or a network",
     OF_OUT | OF_NETWORK | OF_ANY_FORM | OF_TRAINED | OF_INPUT, COMMAND_OUT_IS_FILE, command_inspect, NULL},
    {"simulate", "M", "run in virtual time on a machine description",
     OF_COMPILED | OF_ANY_FORM | OF_TRAINED | OF_MACHINE, 0, command_simulate, NULL},
    {"bench", "EXPERIMENT [M...]", "one experiment, ours and peers in one run",
     OF_COMPILED | OF_ANY_FORM | OF_PATH | OF_MACHINE | OF_BENCH, COMMAND_OWN_PLANS, command_bench, bench_experiments},
    {"show", "FILE...", "results stored by --json as tables; --out DIR: as pictures", OF_OUT, COMMAND_OUT_LATER,
     command_show, NULL},
    {"conformance", "[DIR]", "ONNX backend tests, a table per operator", OF_COMPARE, 0, command_conformance, NULL},
    {"help", "[bash|zsh|fish|man]", "this overview, completion for a shell, or the man page", 0, 0, command_help, NULL},
    {0},
};

int command_help(const struct options *options)
{
    if (!options->subject)
        help_overview(stdout);
    else if (strcmp(options->subject, "bash") == 0 || strcmp(options->subject, "completion") == 0)
        help_bash(stdout);
    else if (strcmp(options->subject, "zsh") == 0)
        help_zsh(stdout);
    else if (strcmp(options->subject, "fish") == 0)
        help_fish(stdout);
    else if (strcmp(options->subject, "man") == 0)
        help_man(stdout);
    else if (command_find(options->subject))
        help_command(command_find(options->subject), stdout);
    else
        return report_usage("help", options->subject, "a command, bash, zsh, fish or man");
    return GRAPHI_OK;
}

/* The words that must be there, and those that must name a network. */
static graphi_status check_subject(const struct command *command, const char *subject)
{
    if (!command->subject || (!subject && command->subject[0] == '['))
        return GRAPHI_OK;
    if (subject && onnx_named(subject) &&
        (command->run == command_run || command->run == command_inspect || command->run == command_profile))
        return GRAPHI_OK;
    if (strcmp(command->subject, "M") == 0)
        return job_network(command->name, subject ? subject : "nothing",
                           command->traits & COMMAND_TRAINS ? "" : ", or --checkpoint FILE");
    return subject ? GRAPHI_OK : report_usage(command->name, "nothing", "%s", command->subject);
}

/* A standard stream that the caller closed would be the next file opened, and messages would land in a checkpoint. What
 * stands there instead refuses every write, as a closed one does. A closed pipe or a limit of file sizes is an error
 * like a full disk: the work goes on to its checkpoint. */
static void keep_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
            break;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* Kernels need some stack: below a smaller limit they would end in a signal. It is raised where it may be. */
static graphi_status check_stack(void)
{
    enum { LEAST = 256 << 10, WANTED = 1 << 20 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= WANTED)
        return GRAPHI_OK;
    stack.rlim_cur = stack.rlim_max < WANTED ? stack.rlim_max : WANTED;
    if (setrlimit(RLIMIT_STACK, &stack) != 0)
        getrlimit(RLIMIT_STACK, &stack);
    if (stack.rlim_cur >= LEAST)
        return GRAPHI_OK;
    return report_error(GRAPHI_MEMORY, "stack", "found a limit of %llu KiB (ulimit -s), expected at least %d",
                        (unsigned long long)stack.rlim_cur >> 10, LEAST >> 10);
}

/* Full disks and closed pipes show when the last of standard output is written. */
static int finish(int status)
{
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (status == GRAPHI_OK && !written)
        return report_error(GRAPHI_IO, "standard output",
                            "found that it cannot be written, expected a place for the result");
    return status;
}

static int print_version(void)
{
    graphi_machine *machine;
    graphi_machine_info about = {.isa = "unknown"};
    if (graphi_machine_create(0, &machine) == GRAPHI_OK) {
        graphi_machine_get_info(machine, &about);
        graphi_machine_destroy(machine);
    }
    printf("graphi %s, commit %s, instruction set %s\n", graphi_version(), result_commit(), about.isa);
    return finish(GRAPHI_OK);
}

/* Its network, which a checkpoint is compared with, and the timeline that it always writes. */
static void settle_demo(struct options *o)
{
    o->subject = "pathnet";
    o->timeline = o->timeline ? o->timeline : "timeline";
}

/* A frame of its own, which holds paths: the stack is checked before it is made. */
__attribute__((noinline)) static int run(int argc, char **argv)
{
    struct options options;
    graphi_status status = options_parse(argc, argv, &options);
    if (status != GRAPHI_OK)
        return status;
    if (options.version)
        return print_version();
    if (!options.command) {
        help_overview(options.help ? stdout : stderr);
        return options.help ? finish(GRAPHI_OK) : (int)report_usage("command", "nothing", "one of those above");
    }
    const struct command *command = command_find(options.command);
    if (options.help) {
        const struct experiment *experiment =
            command->subjects && options.subject ? experiment_find(options.subject) : NULL;
        if (experiment)
            help_experiment(experiment, stdout);
        else
            help_command(command, stdout);
        return finish(GRAPHI_OK);
    }
    const bool trains = command->traits & COMMAND_TRAINS;
    if (trains && !command->subject)
        settle_demo(&options);
    if ((status = resume_options(&options)) != GRAPHI_OK ||
        (!trains && (status = resume_network(&options)) != GRAPHI_OK) ||
        (status = check_subject(command, options.subject)) != GRAPHI_OK ||
        (command->traits & COMMAND_SCORES && (status = resume_data(&options)) != GRAPHI_OK) ||
        (status = outputs_check(command, &options)) != GRAPHI_OK)
        return status;
    if (command->options & OF_PLAN && !(command->traits & COMMAND_OWN_PLANS) &&
        (status = job_plan_check(&options)) != GRAPHI_OK)
        return status;
    report_catch_interrupts();
    return finish(command->run(&options));
}

int main(int argc, char **argv)
{
    keep_streams();
    graphi_status status = check_stack();
    return status == GRAPHI_OK ? run(argc, argv) : (int)status;
}
