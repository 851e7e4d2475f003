/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options and what is derived from it. An argument written a|b|c takes one of these words. Groups: c
 * common, k cores, m how they are used, p plan, o output, w written files, n network, d data, t train, r run, s
 * simulate, b bench, e export, v serve. */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/near.h"
#include "cli/report.h"

enum kind { FLAG, TEXT, SEED, SMALL, COUNT, REAL, LIST }; /* whole numbers: uint64_t, int, int64_t */

struct option {
    const char *name, *argument, *summary;
    char group;
    enum kind kind;
    size_t offset;
    size_t given; /* offset of a bool set when the option occurs; or of a list's count; 0: none */
    double low, high;
};

#define AT(member) offsetof(struct options, member)
#define MANY 1e15
#define WORD(NAME, name, text) " " text

static const struct option table[] = {
    {"--json", "FILE", "write the result; -: standard output is the JSON alone", 'c', TEXT, AT(json), 0, 0, 0},
    {"--quiet", NULL, "no progress", 'c', FLAG, AT(quiet), 0, 0, 0},
    {"--seed", "N", "of parameters, shuffling, random policy", 'c', SEED, AT(seed), AT(seed_given), 0, MANY},
    {"--isa", "plain|avx2|avx512|bf16", "instruction set; default: the best here", 'c', TEXT, AT(isa), 0, 0, 0},
    {"--precision", "float32|bfloat16", "of multiplicands in products and convolutions", 'c', TEXT, AT(precision), 0, 0,
     0},
    {"--help", NULL, "this text", 'c', FLAG, AT(help), 0, 0, 0},
    {"--version", NULL, "version, commit and instruction set", 'c', FLAG, AT(version), 0, 0, 0},
    {"--cores", "N", "use at most N cores; with --machine: of the described ones", 'k', SMALL, AT(cores), 0, 1, 65536},
    {"--executors", "K", "operations side by side", 'm', SMALL, AT(executors), 0, 1, 65536},
    {"--width", "W", "threads an executor; K*W may not exceed the cores", 'm', SMALL, AT(width), 0, 1, 65536},
    {"--driver", "auto|dedicated|combining", "who runs the scheduling step", 'm', TEXT, AT(driver), 0, 0, 0},
    {"--pin", "auto|on|off", "threads on cores of their own; auto goes on where that cannot be, on fails", 'm', TEXT,
     AT(pin), 0, 0, 0},
    {"--policy", "NAME", "one of" GRAPHI_POLICY_LIST(WORD), 'm', TEXT, AT(policy), 0, 0, 0},
    {"--depth", "N", "of an executor's buffer; default 1, more where operations are short", 'm', SMALL, AT(depth), 0, 1,
     8},
    {"--backward-executors", "K", "another number of executors in the backward pass", 'm', SMALL,
     AT(backward_executors), 0, 1, 65536},
    {"--light", "auto|on|off",
     "a further executor of one thread for small operations, where others leave a core; auto: from 16 cores on", 'm',
     TEXT, AT(light), 0, 0, 0},
    {"--candidates", "N", "s123, s1234: fastest widths of an operation that are weighed; default 3, or fewer", 'm',
     SMALL, AT(candidates), 0, 1, 8},
    {"--tolerance", "N", "s123, s1234: threads off the width of the operation's kind; default 2", 'm', SMALL,
     AT(tolerance), AT(tolerance_given), 0, 65536},
    {"--keep-uniform", "auto|on|off",
     "s1 to s1234: one width for all unless others are predicted to gain 2 %; auto: over operations measured here", 'm',
     TEXT, AT(keep_uniform), 0, 0, 0},
    {"--no-inline", NULL, "schedule tiny operations like all others", 'm', FLAG, AT(no_inline), 0, 0, 0},
    {"--tune", "SECONDS", "measure operations for so long and, unless one is asked for, settings; 0: choose statically",
     'p', REAL, AT(tune), AT(tune_given), 0, 86400},
    {"--interval", "N", "of hill climbing over widths, threads; default 4, less below 32 cores", 'p', SMALL,
     AT(interval), 0, 1, 65536},
    {"--plan", "FILE", "use a stored plan, under the setting asked for beside it", 'p', TEXT, AT(plan), 0, 0, 0},
    {"--save-plan", "FILE", "store the plan", 'p', TEXT, AT(save_plan), 0, 0, 0},
    {"--curves", "FILE",
     "times of operation classes, known ones taken from it and measured ones added; none: neither; default: beside the "
     "stored plans",
     'p', TEXT, AT(curves), 0, 0, 0},
    {"--model", "NAME",
     "of the curves in that file those that this model predicts direct the choices; simulate: time passes by the "
     "others",
     'p', TEXT, AT(model), 0, 0, 0},
    {"--explain", NULL, "say what was chosen and why, for the plan and every operation", 'p', FLAG, AT(explain), 0, 0,
     0},
    {"--allow-rounding", NULL,
     "tuning also tries forms that round otherwise: merged products, other convolutions, sums apart", 'p', FLAG,
     AT(allow_rounding), 0, 0, 0},
    {"--conv-error", "X",
     "error budget of fast convolutions, times the direct algorithm's; 1: that one alone; default 4, bfloat16 8", 'p',
     REAL, AT(conv_error), 0, 1, 1e6},
    {"--disable", "PASSES", "switch passes off, comma-separated; +NAME switches one on that is off; all or", 'p', TEXT,
     AT(disable), 0, 0, 0},
    {"--streaming", NULL, "streaming stores for all element-wise results, not only where they pay", 'p', FLAG,
     AT(streaming), 0, 0, 0},
    {"--timeline", "PREFIX", "write PREFIX.json and PREFIX.html", 'o', TEXT, AT(timeline), 0, 0, 0},
    {"--out", "PATH",
     "folder of written files; inspect: a file, Graphviz if it ends in .dot; info: the machine description", 'w', TEXT,
     AT(out), 0, 0, 0},
    {"--size", "small|medium|large", "of a built-in network", 'n', TEXT, AT(size), 0, 0, 0},
    {"--task", "bench|real", "the timed form, or the one that learns from data", 'n', TEXT, AT(task), 0, 0, 0},
    {"--batch", "N", "samples a step", 'n', COUNT, AT(batch), 0, 1, 1 << 20},
    {"--image", "N", "side of the images", 'n', COUNT, AT(image), 0, 8, 4096},
    {"--training", NULL, "run: the training step instead of inference", 'n', FLAG, AT(training), 0, 0, 0},
    {"--inference", NULL, "profile, simulate, bench: inference instead of the training step", 'n', FLAG, AT(inference),
     0, 0, 0},
    {"--merged", NULL, "gates of a recurrent cell as one product", 'n', FLAG, AT(merged), 0, 0, 0},
    {"--batch-norm", NULL, "googlenet: batch normalization", 'n', FLAG, AT(batch_norm), 0, 0, 0},
    {"--lrn", NULL, "googlenet: local response normalization", 'n', FLAG, AT(lrn), 0, 0, 0},
    {"--auxiliary", NULL, "googlenet, inception-v3: auxiliary classifiers", 'n', FLAG, AT(auxiliary), 0, 0, 0},
    {"--bottleneck", NULL, "resnet20, resnet50: blocks of three convolutions", 'n', FLAG, AT(bottleneck), 0, 0, 0},
    {"--role", "discriminator|generator|sample", "dcgan: which of its graphs", 'n', TEXT, AT(role), 0, 0, 0},
    {"--data", "PATH", "data set: IDX, CIFAR-10, .npy folder, text file", 'd', TEXT, AT(data), 0, 0, 0},
    {"--classes", "N", "labels of images, 0 to N-1; default: to the highest in the training files", 'd', COUNT,
     AT(classes), 0, 1, 1 << 20},
    {"--level", "word|character", "of a text", 'd', TEXT, AT(level), 0, 0, 0},
    {"--steps", "N", "stop after N training steps; eval: batches of the test split; default: all", 'd', COUNT,
     AT(steps), 0, 1, MANY},
    {"--epochs", "N", "passes over the data", 't', COUNT, AT(epochs), 0, 1, 1e6},
    {"--lr", "X", "learning rate that the schedule starts from", 't', REAL, AT(lr), AT(lr_given), 0, 1e6},
    {"--schedule", "TEXT", "constant, step:0.5:10e, cosine:5000,warmup:100, ... (docs/data.md)", 't', TEXT,
     AT(schedule), 0, 0, 0},
    {"--checkpoint", "FILE", "safetensors file, written at the end, on Ctrl-C and every --every steps; eval: read", 'd',
     TEXT, AT(checkpoint), 0, 0, 0},
    {"--every", "N", "steps between checkpoints", 't', COUNT, AT(every), 0, 1, MANY},
    {"--resume", NULL, "continue from the checkpoint, bit for bit", 't', FLAG, AT(resume), 0, 0, 0},
    {"--validate", "N",
     "steps between validations (dcgan: samples, as --out DIR/samples-STEP.png); default: each epoch", 't', COUNT,
     AT(validate), 0, 1, MANY},
    {"--log", "FILE.csv", "step, loss, rate, metric as CSV, a row at each validation", 't', TEXT, AT(log), 0, 0, 0},
    {"--check-numerics", NULL, "report the first operation that gives NaN or infinity", 'd', FLAG, AT(check_numerics),
     0, 0, 0},
    {"--input", "NAME=FILE.npy", "content of an input", 'r', LIST, AT(input), AT(input_count), 0, 0},
    {"--inputs", "FILE.npz", "contents of inputs (not available in this build)", 'r', TEXT, AT(inputs), 0, 0, 0},
    {"--shape", "NAME=1x3x224x224", "shape of an input (not available in this build)", 'r', LIST, AT(shape),
     AT(shape_count), 0, 0},
    {"--output", "DIR", "write each output as NAME.npy", 'r', TEXT, AT(output), 0, 0, 0},
    {"--repeat", "N", "executions", 'r', COUNT, AT(repeat), 0, 1, MANY},
    {"--compare", "FILE.npz", "expected outputs (not available in this build)", 'r', TEXT, AT(compare), 0, 0, 0},
    {"--rtol", "X", "relative tolerance (not available in this build)", 'r', REAL, AT(rtol), AT(rtol_given), 0, 1},
    {"--atol", "X", "absolute tolerance (not available in this build)", 'r', REAL, AT(atol), AT(atol_given), 0, MANY},
    {"--machine", "FILE", "machine description (machines/*.json)", 's', TEXT, AT(machine), 0, 0, 0},
    {"--onnx", "FILE", "the network as ONNX", 'e', TEXT, AT(onnx), 0, 0, 0},
    {"--port", "N", "where to listen", 'v', SMALL, AT(port), 0, 1, 65535},
    {"--quick", NULL, "less of it: one size or setting instead of all, fewer rounds, no step over a minute", 'b', FLAG,
     AT(quick), 0, 0, 0},
    {"--seconds", "X", "time for the measurement", 'b', REAL, AT(seconds), 0, 0.001, 86400},
};
enum { OPTIONS = sizeof table / sizeof *table };

static const struct {
    char letter;
    const char *title;
} groups[] = {{'c', "common"}, {'k', "machine"}, {'m', NULL}, {'p', "plan"},     {'o', "timeline"}, {'w', "output"},
              {'n', "network"}, {'d', "data"},  {'t', "train"},  {'r', "run"},     {'s', "simulate"}, {'b', "bench"},
              {'e', "export"}, {'v', "serve"}};
enum { GROUPS = sizeof groups / sizeof *groups };

/* Whether `word` is one of the words of `list`, "a|b|c". */
static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; length && at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == 0 || at[length] == '|'))
            return true;
    return false;
}

static graphi_status store(const struct option *option, const char *word, struct options *options)
{
    char *at = (char *)options + option->offset;
    char *end;
    errno = 0;
    switch (option->kind) {
    case FLAG:
        *(bool *)at = true;
        return GRAPHI_OK;
    case TEXT:
        if (strchr(option->argument, '|') && !listed(option->argument, word))
            return report_usage(option->name, word, "%s", option->argument);
        if (!*word) /* a variable that is not set, and a checkpoint that cannot be written after hours */
            return report_usage(option->name, word, "%s", option->argument);
        if (strcmp(option->argument, "PREFIX") == 0 && word[strlen(word) - 1] == '/') /* ".json" and ".html" there */
            return report_usage(option->name, word, "a folder and the beginning of file names in it");
        *(const char **)at = word;
        return GRAPHI_OK;
    case LIST: {
        if (!*word)
            return report_usage(option->name, word, "%s", option->argument);
        int *count = (int *)((char *)options + option->given);
        if (*count == 32)
            return report_usage(option->name, "more than 32 of them", "at most 32");
        ((const char **)at)[(*count)++] = word;
        return GRAPHI_OK;
    }
    case SEED:
    case SMALL:
    case COUNT: {
        long long value = strtoll(word, &end, 10);
        if (errno || *end || end == word || (double)value < option->low || (double)value > option->high)
            return report_usage(option->name, word, "a whole number from %.0f to %.0f", option->low, option->high);
        if (option->kind == SEED)
            *(uint64_t *)at = (uint64_t)value;
        else if (option->kind == SMALL)
            *(int *)at = (int)value;
        else
            *(int64_t *)at = value;
        if (option->given)
            *(bool *)((char *)options + option->given) = true;
        return GRAPHI_OK;
    }
    case REAL: {
        double value = strtod(word, &end);
        if (errno || *end || end == word || !(value >= option->low && value <= option->high))
            return report_usage(option->name, word, "a number from %g to %g", option->low, option->high);
        *(double *)at = value;
        if (option->given)
            *(bool *)((char *)options + option->given) = true;
        return GRAPHI_OK;
    }
    }
    return GRAPHI_OK;
}

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
    int nearest = NEAR_MOST + 1;
    for (const struct command *c = commands; c->name; c++) {
        int distance = near_distance(word, strlen(word), c->name);
        if (distance < nearest)
            nearest = distance, meant = c->name;
    }
    return report_usage("command", word, "%s%s of those that graphi --help lists", meant ? meant : "",
                        meant ? ", or another" : "one");
}

static bool has_option(const struct command *command, const struct option *option)
{
    return !command || option->group == 'c' || strchr(command->groups, option->group);
}

/* The letters behind the two lines, which every option has. */
static graphi_status unknown_option(const struct command *command, const char *word, size_t length)
{
    const char *meant = NULL;
    int nearest = NEAR_MOST + 1;
    for (int o = 0; o < OPTIONS && length > 2; o++) {
        int distance = near_distance(word + 2, length - 2, table[o].name + 2);
        if (distance < nearest && has_option(command, &table[o]))
            nearest = distance, meant = table[o].name;
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
        for (int o = 0; o < OPTIONS; o++)
            if (options->given[i] == table[o].name && !has_option(command, &table[o]))
                return no_such_option(command, table[o].name);
    return GRAPHI_OK;
}

static graphi_status parse_option(int argc, char **argv, int *i, const struct command *command, struct options *options)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (int o = 0; o < OPTIONS; o++) {
        const struct option *option = &table[o];
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

/* Whether `word` is one of the words of `list`, separated by spaces. */
static bool in_list(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return true;
    return false;
}

graphi_status options_only(const struct options *options, const char *where, const char *list)
{
    for (int i = 0; i < options->given_count; i++)
        if (!in_list(list, options->given[i]))
            return report_usage(where, options->given[i], "an option that has an effect there: %s", list);
    return GRAPHI_OK;
}

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
    if (option->offset == AT(disable))
        print_passes(out);
    fputc('\n', out);
}

static void print_options(const char *letters, FILE *out)
{
    for (int g = 0; g < GROUPS; g++) {
        if (!strchr(letters, groups[g].letter))
            continue;
        if (groups[g].title) /* otherwise more of those above */
            fprintf(out, "\n%s options\n", groups[g].title);
        for (int o = 0; o < OPTIONS; o++) {
            if (table[o].group != groups[g].letter)
                continue;
            char left[80];
            snprintf(left, sizeof left, "%s %s", table[o].name, table[o].argument ? table[o].argument : "");
            fprintf(out, "  %-34s ", left);
            print_summary(&table[o], out);
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
        if (!command->subjects(out))
            fprintf(out, "  none in this build\n");
    }
    char letters[16];
    snprintf(letters, sizeof letters, "%sc", command->groups);
    print_options(letters, out);
}

void help_completion(FILE *out)
{
    fprintf(
        out,
        "# bash completion for graphi; source it or put it into /usr/share/bash-completion/completions/graphi\n"
        "_graphi() {\n    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n    case $last in\n");
    for (int o = 0; o < OPTIONS; o++)
        if (table[o].kind == TEXT && strchr(table[o].argument, '|'))
            fprintf(out, "    %s) COMPREPLY=($(IFS='|'; compgen -W '%s' -- \"$word\")); return ;;\n", table[o].name,
                    table[o].argument);
    fprintf(out, "    --policy) COMPREPLY=($(compgen -W '");
    for (int i = 0; i < GRAPHI_POLICIES; i++)
        fprintf(out, "%s ", graphi_policy_name((graphi_policy)i));
    fprintf(out, "' -- \"$word\")); return ;;\n");
    for (int o = 0; o < OPTIONS; o++)
        if (table[o].argument && !strchr(table[o].argument, '|'))
            fprintf(out, "%s%s", o ? "|" : "    ", table[o].name);
    fprintf(out, ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
    fprintf(out, "    esac\n    case ${COMP_WORDS[1]} in\n");
    for (const struct command *c = commands; c->name; c++) {
        fprintf(out, "    %s) COMPREPLY=($(compgen -f -W \"", c->name);
        for (int o = 0; o < OPTIONS; o++)
            if (table[o].group == 'c' || strchr(c->groups, table[o].group))
                fprintf(out, "%s ", table[o].name);
        for (int i = 0; graphi_model_at(i); i++)
            fprintf(out, "%s ", graphi_model_at(i));
        if (c->subjects)
            c->subjects(out);
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
    for (int o = 0; o < OPTIONS; o++) {
        fprintf(out, ".TP\n.B \\-%s %s\n", table[o].name + 1, table[o].argument ? table[o].argument : "");
        print_summary(&table[o], out);
    }
    fprintf(
        out,
        ".SH EXIT STATUS\n0 ok, 1 a comparison or goal missed, 2 usage, 3 bad input, 4 unsupported, 5 input/output, "
        "6 memory, 7 plan refused, 8 non-finite numbers, 130 interrupted\n"
        ".SH ENVIRONMENT\nGRAPHI_NUM_THREADS, GRAPHI_PLAN_DIR\n");
}
