/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options, to which policies add their parameters. An argument written a|b|c takes one of these words. */
#include "tool/option_table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tool/options.h"

#define AT(member) offsetof(struct options, member)
#define MANY 1e15
#define WORD(NAME, name, text) " " text

static const struct option rows[] = {
    {"--json", "FILE", "write the result; -: standard output is the JSON alone", OF_COMMON, TEXT, AT(json), 0, 0, 0},
    {"--quiet", NULL, "no progress", OF_COMMON, FLAG, AT(quiet), 0, 0, 0},
    {"--seed", "N", "of parameters, shuffling, random policy; default 0", OF_COMPILE, SEED, AT(seed), AT(seed_given), 0,
     MANY},
    {"--isa", "plain|avx2|avx512|bf16", "instruction set; default: the best here", OF_COMPILE, TEXT, AT(isa), 0, 0, 0},
    {"--precision", "float32|bfloat16", "of multiplicands in products and convolutions", OF_COMPILE, TEXT,
     AT(precision), 0, 0, 0},
    {"--help", NULL, "this text", OF_COMMON, FLAG, AT(help), 0, 0, 0},
    {"--version", NULL, "version, commit and instruction set", OF_COMMON, FLAG, AT(version), 0, 0, 0},
    {"--cores", "N", "use N cores, no more than there are; with --machine: of the described ones", OF_CORES, SMALL,
     AT(cores), 0, 1, 65536},
    {"--executors", "K", "operations side by side", OF_SETTING, SMALL, AT(executors), 0, 1, 65536},
    {"--width", "W", "threads an executor; K*W may not exceed the cores", OF_SETTING, SMALL, AT(width), 0, 1, 65536},
    {"--driver", "auto|dedicated|combining|static", "who runs the scheduling step", OF_SETTING, TEXT, AT(driver), 0, 0,
     0},
    {"--pin", "auto|on|off", "threads on cores of their own; auto goes on where that cannot be, on fails", OF_SETTING,
     TEXT, AT(pin), 0, 0, 0},
    {"--policy", "NAME", "one of" GRAPHI_POLICY_LIST(WORD), OF_SETTING, TEXT, AT(policy), 0, 0, 0},
    {"--depth", "N", "of an executor's buffer; default 1, more where operations are short", OF_SETTING, SMALL,
     AT(depth), 0, 1, 8},
    {"--backward-executors", "K", "another number of executors in the backward pass", OF_SETTING, SMALL,
     AT(backward_executors), 0, 1, 65536},
    {"--light", "auto|on|off",
     "a further executor of one thread for small operations, where others leave a core; auto: from 16 cores on",
     OF_SETTING, TEXT, AT(light), 0, 0, 0},
    {"--join", "auto|on|off",
     "executors of one thread that have nothing ready take part in what others run; auto: where tuning finds it faster",
     OF_SETTING, TEXT, AT(join), 0, 0, 0},
    {"--no-inline", NULL, "schedule tiny operations like all others", OF_SETTING, FLAG, AT(no_inline), 0, 0, 0},
    {"--tune", "SECONDS",
     "measure operations for so long and, unless one is asked for, settings, at most twice as long where these do not "
     "tell; 0: choose statically",
     OF_PLAN, REAL, AT(tune), AT(tune_given), 0, 86400},
    {"--interval", "N", "of hill climbing over widths, threads; default 4, less below 32 cores", OF_PLAN, SMALL,
     AT(interval), 0, 1, 65536},
    {"--plan", "FILE", "use a stored plan, under the setting asked for beside it", OF_PLAN, TEXT, AT(plan), 0, 0, 0},
    {"--save-plan", "FILE", "store the plan", OF_PLAN, TEXT, AT(save_plan), 0, 0, 0},
    {"--curves", "FILE",
     "times of operation classes, known ones taken from it and measured ones added; none: neither; default: beside the "
     "stored plans",
     OF_PLAN, TEXT, AT(curves), 0, 0, 0},
    {"--model", "NAME",
     "of the curves in that file those that this model predicts direct the choices; simulate: time passes by the "
     "others",
     OF_PLAN, TEXT, AT(model), 0, 0, 0},
    {"--explain", NULL, "say what was chosen and why, for the plan and every operation", OF_PLAN, FLAG, AT(explain), 0,
     0, 0},
    {"--allow-rounding", NULL,
     "tuning also tries forms that round otherwise: merged products, other convolutions, sums apart", OF_PLAN, FLAG,
     AT(allow_rounding), 0, 0, 0},
    {"--sequences", "LOWERING",
     "how recurrences run: auto, streamlined, partitioned, partitioned:IxJxK (rows, units, and under --allow-rounding "
     "k), chunked:STEPS, unrolled, eight, fused, across; +:WIDTH behind a loop: its shares",
     OF_PLAN, TEXT, AT(sequences), 0, 0, 0},
    {"--weights", "float32|bfloat16", "of recurrences as the forward pass reads them, for serving", OF_PLAN, TEXT,
     AT(weights), 0, 0, 0},
    {"--conv-error", "X",
     "error budget of fast convolutions, times the direct algorithm's; 1: that one alone; default 4, bfloat16 8",
     OF_PLAN, REAL, AT(conv_error), 0, 1, 1e6},
    {"--disable", "PASSES", "passes switched off, comma-separated; +NAME switches one on; all, none or", OF_PLAN, TEXT,
     AT(disable), 0, 0, 0},
    {"--streaming", "auto|on|off",
     "stores past the caches; auto: of results whose size pays for them; on: wherever there are any", OF_PLAN, TEXT,
     AT(streaming), 0, 0, 0},
    {"--timeline", "PREFIX", "write PREFIX.json and PREFIX.html", OF_TIMELINE, TEXT, AT(timeline), 0, 0, 0},
    {"--out", "PATH",
     "folder of written files; inspect: a file, Graphviz if it ends in .dot; info: the machine description", OF_OUT,
     TEXT, AT(out), 0, 0, 0},
    {"--size", "small|medium|large", "of a built-in network", OF_NETWORK, TEXT, AT(size), 0, 0, 0},
    {"--task", "bench|real", "the timed form, or the one that learns from data, default of train, eval, --checkpoint",
     OF_NETWORK, TEXT, AT(task), 0, 0, 0},
    {"--batch", "N", "samples a step; default: the network's", OF_NETWORK, COUNT, AT(batch), 0, 1, 1 << 20},
    {"--image", "N", "side of the images; default: the size's", OF_NETWORK, COUNT, AT(image), 0, 8, 4096},
    {"--units", "N",
     "neurons of a layer; of images the channels, or (googlenet, inception-v3) what multiplies the published ones; "
     "default: the size's",
     OF_NETWORK, COUNT, AT(units), 0, 1, 1 << 20},
    {"--unroll", "N", "lstm, phased-lstm, ptb: steps of time in an execution, of text at most 256; default: the size's",
     OF_FORM, COUNT, AT(unroll), 0, 1, 1 << 16},
    {"--training", NULL, "run: the training step instead of inference", OF_DIRECTION, FLAG, AT(training), 0, 0, 0},
    {"--inference", NULL, "profile, simulate, bench: inference instead of the training step", OF_DIRECTION, FLAG,
     AT(inference), 0, 0, 0},
    {"--merged", NULL, "gates of a recurrent cell as one product: lstm, phased-lstm", OF_FORM, FLAG, AT(merged), 0, 0,
     0},
    {"--batch-norm", NULL, "googlenet: batch normalization", OF_FORM, FLAG, AT(batch_norm), 0, 0, 0},
    {"--lrn", NULL, "googlenet: local response normalization", OF_FORM, FLAG, AT(lrn), 0, 0, 0},
    {"--auxiliary", NULL, "googlenet, inception-v3: auxiliary classifiers", OF_FORM, FLAG, AT(auxiliary), 0, 0, 0},
    {"--bottleneck", NULL, "resnet20, resnet50: blocks of three convolutions", OF_FORM, FLAG, AT(bottleneck), 0, 0, 0},
    {"--layers", "N", "lstm, phased-lstm, ptb: at most 8; default: the network's", OF_FORM, COUNT, AT(layers), 0, 1,
     8},
    {"--dropout", "X",
     "language models: part of the embedding and of each layer's results that training drops; default: the network's",
     OF_FORM, REAL, AT(dropout), 0, 0, 0.999},
    {"--optimizer", "sgd|momentum|adam|adagrad", "language models; default: the network's", OF_FORM, TEXT,
     AT(optimizer), 0, 0, 0},
    {"--role", "discriminator|generator|sample", "dcgan: which of its graphs", OF_FORM, TEXT, AT(role), 0, 0, 0},
    {"--checkpoint", "FILE",
     "safetensors file, written at the end, on Ctrl-C and every --every steps; eval, run: read; profile, simulate, "
     "inspect: the network that it is of",
     OF_CHECKPOINT, TEXT, AT(checkpoint), 0, 0, 0},
    {"--data", "PATH",
     "data set: IDX, CIFAR-10, .npy folder, text file; profile, run, simulate, inspect: the network that "
     "learns from it; bench inference: folder of ONNX models",
     OF_PATH, TEXT, AT(data), 0, 0, 0},
    {"--classes", "N", "labels of images, 0 to N-1; default: to the highest in the training files", OF_DATA, COUNT,
     AT(classes), 0, 1, 1 << 20},
    {"--level", "word|character", "of a text", OF_TEXT, TEXT, AT(level), 0, 0, 0},
    {"--vocabulary", "N", "of a text: the most frequent words (of --level), the others are <unk>; default: all",
     OF_TEXT, COUNT, AT(vocabulary), 0, 2, 1 << 30},
    {"--split", "train|validation|test", "of the data; default: test, of a single file what training holds out",
     OF_SPLIT, TEXT, AT(split), 0, 0, 0},
    {"--steps", "N", "stop after N training steps; eval: batches of the split; default: all", OF_USE, COUNT,
     AT(steps), 0, 1, MANY},
    {"--augment", "TEXT",
     "of training images: crop:N,pad:N,flip or some of these, none (docs/data.md); default: the network's",
     OF_USE, TEXT, AT(augment), 0, 0, 0},
    {"--skip-bad", NULL, "input graphs: bad samples are left out and told; without it, the first is an error", OF_USE,
     FLAG, AT(skip_bad), 0, 0, 0},
    {"--check-numerics", NULL, "report the first operation that gives NaN or infinity", OF_USE, FLAG,
     AT(check_numerics), 0, 0, 0},
    {"--epochs", "N", "passes over the data; default: the network's", OF_TRAIN, COUNT, AT(epochs), 0, 1, 1e6},
    {"--lr", "X", "learning rate that the schedule starts from; default: the network's", OF_TRAIN, REAL, AT(lr),
     AT(lr_given), 0, 1e6},
    {"--schedule", "TEXT", "constant, step:0.5:10e, cosine:5000,warmup:100, ... (docs/data.md)", OF_TRAIN, TEXT,
     AT(schedule), 0, 0, 0},
    {"--every", "N", "steps between checkpoints; default: one at the end", OF_TRAIN, COUNT, AT(every), 0, 1, MANY},
    {"--resume", NULL,
     "go on from the checkpoint, bit for bit, with all that is not typed again: train --resume FILE, demo --resume "
     "--checkpoint FILE",
     OF_TRAIN, FLAG, AT(resume), 0, 0, 0},
    {"--overwrite", NULL, "a checkpoint that is there is written over; without it, it is refused", OF_TRAIN, FLAG,
     AT(overwrite), 0, 0, 0},
    {"--validate", "N",
     "steps between validations (dcgan: samples, as --out DIR/samples-STEP.png); default: each epoch", OF_TRAIN, COUNT,
     AT(validate), 0, 1, MANY},
    {"--patience", "N",
     "training ends after so many validations in a row none of which was better than the best; default: never",
     OF_TRAIN, COUNT, AT(patience), 0, 1, MANY},
    {"--best", "FILE", "a checkpoint of the best validation, written over by a better one", OF_TRAIN, TEXT, AT(best),
     0, 0, 0},
    {"--log", "FILE.csv", "step, loss, rate, metric as CSV, a row at each validation", OF_TRAIN, TEXT, AT(log), 0, 0,
     0},
    {"--solvers", "N", "train by N solvers, each on a part of the cores; nodes: one for each NUMA node", OF_GROUP, TEXT,
     AT(solvers), 0, 0, 0},
    {"--deterministic", NULL, "the same bits for every number of solvers: gradients are added by one tree over leaves",
     OF_GROUP, FLAG, AT(deterministic), 0, 0, 0},
    {"--leaves", "L", "parts of the batch, which they divide; default 8", OF_GROUP, SMALL, AT(leaves), 0, 1,
     GRAPHI_GROUP_LEAVES},
    {"--reduction", "HOW", "how gradients are added: pair, owner, tree:ARITY, ring or flat; default: pair of two "
     "solvers, owner of more",
     OF_GROUP, TEXT, AT(reduction), 0, 0, 0},
    {"--transport", "shared|mpi", "mpi: every process that mpirun starts has such solvers (docs/solvers.md)", OF_GROUP,
     TEXT, AT(transport), 0, 0, 0},
    {"--rank-timeout", "SECONDS", "of a process that sends nothing; default 60", OF_GROUP, REAL, AT(rank_timeout), 0,
     0.1, 86400},
    {"--must-place", NULL, "fail where a solver's threads cannot be kept on its cores", OF_GROUP, FLAG, AT(must_place),
     0, 0, 0},
    {"--oversubscribe", NULL, "more solvers than cores, which take turns: for tests", OF_GROUP, FLAG,
     AT(oversubscribe), 0, 0, 0},
    {"--input", "NAME=FILE.npy", "content of an input", OF_INPUT, LIST, AT(input), AT(input_count), 0, 0},
    {"--inputs", "FILE.npz", "FILE.onnx: contents of inputs, by name", OF_INPUT, TEXT, AT(inputs), 0, 0, 0},
    {"--shape", "NAME=1x3x224x224", "FILE.onnx: size of an input that is random", OF_INPUT, LIST, AT(shape),
     AT(shape_count), 0, 0},
    {"--host", NULL, "FILE.onnx: operator by operator, without a plan", OF_RUN, FLAG, AT(host), 0, 0, 0},
    {"--compare", "FILE.npz", "FILE.onnx: expected outputs, by name; exit 1 where one differs", OF_RUN, TEXT,
     AT(compare), 0, 0, 0},
    {"--rtol", "X", "relative tolerance of a comparison; default 1e-4", OF_COMPARE, REAL, AT(rtol), AT(rtol_given), 0,
     1e6},
    {"--atol", "X", "absolute tolerance of a comparison; default 1e-5", OF_COMPARE, REAL, AT(atol), AT(atol_given), 0,
     1e6},
    {"--output", "DIR", "write each output as NAME.npy; eval: of every sample", OF_OUTPUT, TEXT, AT(output), 0, 0, 0},
    {"--repeat", "N", "executions; default 10", OF_RUN, COUNT, AT(repeat), 0, 1, MANY},
    {"--prompt", "TEXT", "what the text begins with; default: a line's end", OF_GENERATE, TEXT, AT(prompt), 0, 0, 0},
    {"--length", "N", "tokens that are drawn; default 200", OF_GENERATE, COUNT, AT(length), 0, 1, MANY},
    {"--temperature", "X", "logits are divided by it; 0: the most likely token; default 1", OF_GENERATE, REAL,
     AT(temperature), AT(temperature_given), 0, 1e6},
    {"--top-k", "N", "draw from so many of the most likely tokens; default: all", OF_GENERATE, COUNT, AT(top_k), 0, 1,
     MANY},
    {"--machine", "FILE", "machine description; a name alone: one that comes with Graphi, as xeon-phi-7250", OF_MACHINE,
     TEXT, AT(machine), 0, 0, 0},
    {"--quick", NULL, "less of it: one size or setting instead of all, fewer rounds, no step over a minute", OF_BENCH,
     FLAG, AT(quick), 0, 0, 0},
    {"--seconds", "X", "time for the measurement", OF_BENCH, REAL, AT(seconds), 0, 0.001, 86400},
    {0},
};

enum { PARAMETERS = 32, ROWS = sizeof rows / sizeof *rows };
static struct option all[ROWS + PARAMETERS]; /* made once, by the one thread that parses */
static char names[PARAMETERS][40], summaries[PARAMETERS][240];

/* The policies that have it, and what it means. */
static void summarise(const graphi_policy_parameter_info *parameter, char *text, size_t size)
{
    graphi_policy_parameter_info p;
    *text = 0;
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++)
        for (int i = 0; graphi_policy_parameter_at((graphi_policy)policy, i, &p); i++)
            if (strcmp(p.name, parameter->name) == 0)
                snprintf(text + strlen(text), size - strlen(text), "%s%s", *text ? ", " : "",
                         graphi_policy_name((graphi_policy)policy));
    snprintf(text + strlen(text), size - strlen(text), ": %s", parameter->meaning);
}

/* Behind the rows, since help goes by groups. */
const struct option *option_table(void)
{
    graphi_policy_parameter_info p;
    if (all[0].name)
        return all;
    memcpy(all, rows, sizeof rows);
    struct option *next = all + ROWS - 1;
    for (int i = 0, k = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &p) && k < PARAMETERS; i++) {
        if (!p.argument)
            continue;
        snprintf(names[k], sizeof names[k], "--%s", p.name);
        summarise(&p, summaries[k], sizeof summaries[k]);
        *next++ = (struct option){names[k], p.argument, summaries[k], OF_SETTING, PARAMETER, AT(parameters), 0,
                                  p.low < 0 && !p.toggle ? 0 : (double)p.low, (double)p.high};
        k++;
    }
    return all;
}

const struct option_group option_groups[] = {
    {OF_COMMON, "common"},
    {OF_COMPILE, NULL},
    {OF_CORES, "machine"},
    {OF_SETTING, NULL},
    {OF_PLAN, "plan"},
    {OF_TIMELINE, "timeline"},
    {OF_OUT, "output"},
    {OF_NETWORK, "network"},
    {OF_FORM, NULL},
    {OF_DIRECTION, NULL},
    {OF_CHECKPOINT, "checkpoint"},
    {OF_PATH, "data"},
    {OF_DATA, NULL},
    {OF_TEXT, NULL},
    {OF_SPLIT, NULL},
    {OF_USE, NULL},
    {OF_TRAIN, "train"},
    {OF_GROUP, "solvers"},
    {OF_INPUT, "input"},
    {OF_RUN, "run"},
    {OF_OUTPUT, "array"},
    {OF_COMPARE, "compare"},
    {OF_GENERATE, "generate"},
    {OF_MACHINE, "simulate"},
    {OF_BENCH, "bench"},
    {0, NULL},
};
