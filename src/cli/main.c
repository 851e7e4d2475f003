/* SPDX-License-Identifier: Apache-2.0 */
/* The graphi command: finds the subcommand in one table and runs it. */
#include "base/temporary.h"
#include "cli/commands.h"
#include "cli/resume.h"
#include "tool/experiments.h"
#include "tool/help.h"
#include "tool/job.h"
#include "tool/output.h"
#include "tool/plan.h"
#include "tool/report.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const struct command commands[] = {
    {"info", NULL, "topology, instruction set, quota, effective threads, measured roof", "kw", command_info, NULL},
    {"demo", NULL, "train PathNet on Fashion-MNIST, compare engines, write timeline.html", "gkmpownfdut",
     command_demo, NULL},
    {"train", "M", "train a network on real data", "gkmpownxfdlut", command_train, NULL},
    {"eval", "M", "loss and metric of a checkpoint on the test split", "gkmpwnxfdlua", command_eval, NULL},
    {"profile", "M", "search the setting, write the plan, explain it", "gkmpownxifdl", command_profile, NULL},
    {"run", "M", "run a built-in network on given inputs", "gkmpownxifdlra", command_run, NULL},
    {"inspect", "M", "what is inside a network", "wnxifdl", command_inspect, NULL},
    {"simulate", "M", "run in virtual time on a machine description", "gkmpownxifdls", command_simulate, NULL},
    {"bench", "EXPERIMENT [M...]", "one experiment, ours and peers in one run", "gkmpownxisb", command_bench,
     bench_experiments},
    {"show", "FILE...", "results stored by --json as tables; --out DIR: as pictures", "w", command_show, NULL},
    {"conformance", "[DIR]", "ONNX backend tests", "gkm", NULL, NULL},
    {"serve", "DIR", "Open Inference Protocol server", "gkmv", NULL, NULL},
    {"export", "M", "trained network out as ONNX", "nxe", NULL, NULL},
    {"help", "[completion|man]", "this overview, bash completion, or the man page", "", command_help, NULL},
    {0},
};

int command_help(const struct options *options)
{
    if (!options->subject)
        help_overview(stdout);
    else if (strcmp(options->subject, "completion") == 0)
        help_completion(stdout);
    else if (strcmp(options->subject, "man") == 0)
        help_man(stdout);
    else if (command_find(options->subject))
        help_command(command_find(options->subject), stdout);
    else
        return report_usage("help", options->subject, "a command, completion or man");
    return GRAPHI_OK;
}

/* The words that must be there, and those that must name a network. */
static graphi_status check_subject(const struct command *command, const char *subject)
{
    if (!command->subject || (!subject && command->subject[0] == '['))
        return GRAPHI_OK;
    if (strcmp(command->subject, "M") == 0)
        return job_network(command->name, subject ? subject : "nothing",
                           !command->run || command->run == command_train ? "" : ", or --checkpoint FILE");
    return subject ? GRAPHI_OK : report_usage(command->name, "nothing", "%s", command->subject);
}

/* Of other commands it is a folder. */
static bool out_is_file(const struct options *o)
{
    return strcmp(o->command, "inspect") == 0 || strcmp(o->command, "info") == 0;
}

static bool same_inode(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* By name, there or not yet, or by what is there: ./x is x, and so is a link to it. A link that cannot be followed is
 * refused when it is checked as an output. */
static bool same_file(const char *a, const char *b)
{
    char one[2][4096], other[2][4096]; /* dirname and basename cut up what they are given */
    for (int i = 0; i < 2; i++) {
        snprintf(one[i], sizeof one[i], "%s", a);
        snprintf(other[i], sizeof other[i], "%s", b);
        (void)temporary_follow(one[i], sizeof one[i]);
        (void)temporary_follow(other[i], sizeof other[i]);
    }
    return strcmp(a, b) == 0 || same_inode(a, b) ||
           (strcmp(basename(one[0]), basename(other[0])) == 0 && same_inode(dirname(one[1]), dirname(other[1])));
}

/* Others only read a checkpoint. */
static bool trains(const struct options *o)
{
    return strcmp(o->command, "train") == 0 || strcmp(o->command, "demo") == 0;
}

/* Two files of one name: the later one would take the place of the earlier, or of what was read. */
static graphi_status check_names(const struct options *o)
{
    char events[4096], page[4096], own[4096];
    snprintf(own, sizeof own, "%s/%s.json", o->out ? o->out : "",
             strcmp(o->command, "bench") == 0 ? o->subject : o->command);
    snprintf(events, sizeof events, "%s.json", o->timeline ? o->timeline : "");
    snprintf(page, sizeof page, "%s.html", o->timeline ? o->timeline : "");
    const struct {
        const char *option, *path;
        bool read;
    } files[] = {{"--machine", o->machine, true},
                 {"--plan", o->plan, true},
                 {"--data", o->data, true},
                 {"--curves", o->curves, false},
                 {"--save-plan", o->save_plan, false},
                 {"--checkpoint", o->checkpoint, !trains(o)},
                 {"--log", o->log, false},
                 {"--timeline", o->timeline ? events : NULL, false},
                 {"--timeline", o->timeline ? page : NULL, false},
                 {"--out", !o->out || out_is_file(o) ? o->out : own, false},
                 {"--json", o->json, false}};
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++)
        for (int k = 0; k < i && files[i].path; k++) {
            bool same = files[k].path && same_file(files[i].path, files[k].path);
            bool plans = files[k].path == o->plan && files[i].path == o->save_plan; /* a stored plan is renewed */
            bool results = files[k].path == own && files[i].path == o->json;        /* the same twice */
            if (same && !plans && !results && !(files[i].read && files[k].read) && !output_in_place(files[i].path))
                return report_usage(files[i].option, files[i].path, "another file than that of %s", files[k].option);
        }
    return GRAPHI_OK;
}

/* show makes its folder with the first picture. */
static bool shows(const struct options *o) { return strcmp(o->command, "show") == 0; }

/* What will be written at the end of a long run must be writable at its beginning. */
static graphi_status check_outputs(const struct options *o)
{
    const struct {
        const char *path;
        bool folder;
    } outputs[] = {{o->json, false}, {o->save_plan, false},     {trains(o) ? o->checkpoint : NULL, false},
                   {o->log, false},  {shows(o) ? NULL : o->out, !out_is_file(o)},
                   {o->output, true}};
    static const char *const parts[] = {"json", "html"};
    char timeline[4096];
    graphi_status status = check_names(o);
    for (int i = 0; i < 2 && o->timeline && status == GRAPHI_OK; i++) {
        snprintf(timeline, sizeof timeline, "%s.%s", o->timeline, parts[i]);
        status = output_check(timeline, false);
    }
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && status == GRAPHI_OK; i++)
        status = output_check(outputs[i].path, outputs[i].folder);
    return status;
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
        const struct experiment *experiment = command->run == command_bench && options.subject
                                                  ? experiment_find(options.subject) : NULL;
        if (experiment)
            help_experiment(experiment, stdout);
        else
            help_command(command, stdout);
        return finish(GRAPHI_OK);
    }
    if (!command->run)
        return report_error(GRAPHI_UNSUPPORTED, command->name,
                            "found a command that is not available in this build, expected one that is");
    if (command->run == command_demo)
        settle_demo(&options);
    if ((status = resume_options(&options)) != GRAPHI_OK ||
        (!trains(&options) && (status = resume_network(&options)) != GRAPHI_OK) ||
        (status = check_subject(command, options.subject)) != GRAPHI_OK ||
        (command->run == command_eval && (status = resume_data(&options)) != GRAPHI_OK) ||
        (status = check_outputs(&options)) != GRAPHI_OK)
        return status;
    if (strchr(command->groups, 'p') && command->run != command_bench && /* whose experiments have plans of their own */
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
