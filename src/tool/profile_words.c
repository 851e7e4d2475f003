/* SPDX-License-Identifier: Apache-2.0 */
/* Commands have graphs of their own by default, and compile options of a plan's own file: what was asked for is told
 * again in words of profile. */
#include "tool/profile_words.h"

#include <stdarg.h>
#include <string.h>

#include "tool/option_value.h"

/* What a graph, its machine or its compiled form depends on beside the options of the network; of these --task is taken
 * for granted by commands, and the job tells it. */
static const char *const asked[] = {
    "--checkpoint", "--data", "--classes", "--level", "--vocabulary", "--cores",
    "--precision", "--isa", "--allow-rounding", "--conv-error", "--disable", "--streaming",
    "--sequences", "--weights",
};

static bool among(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_asked(const struct option *option)
{
    return option->group & (OF_NETWORK | OF_FORM) ? strcmp(option->name, "--task") != 0
                                                  : among(asked, sizeof asked / sizeof *asked, option->name);
}

struct line {
    char *text;
    size_t size, used;
};

static __attribute__((format(printf, 2, 3))) void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line->text + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    line->used += wanted < 0 ? line->size : (size_t)wanted;
    if (line->used >= line->size)
        line->used = line->size - 1; /* full: told at the end */
}

/* As a shell takes it for one word. */
static void add_word(struct line *line, const char *word)
{
    if (word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%")] == 0) {
        add(line, " %s", word);
        return;
    }
    add(line, " '");
    for (; *word; word++)
        add(line, *word == '\'' ? "'\\%c'" : "%c", *word);
    add(line, "'");
}

static void add_option(struct line *line, const struct option *option, const struct options *options)
{
    char word[4096];
    if (!option_write(option, options, word, sizeof word))
        return;
    add(line, " %s", option->name);
    if (option->kind != FLAG)
        add_word(line, word);
}

/* profile has no --check-numerics, and reads no data unless it is told to. */
static bool has_words(const struct job *job)
{
    const struct options *o = job->options;
    const bool sized = job->model.classes || job->model.vocabulary;
    return !o->check_numerics && (!sized || o->checkpoint || o->data || o->classes || o->level || o->vocabulary);
}

bool profile_words(const struct job *job, char *text, size_t size)
{
    const struct options *o = job->options;
    struct line line = {text, size, 0};
    *text = 0;
    if (!has_words(job))
        return false;
    add(&line, "graphi profile %s", job->name);
    if (job->model.evaluation)
        add(&line, " --inference");
    if (job->model.task && !(o->checkpoint && !o->task)) /* else it is the checkpoint's */
        add(&line, " --task %s", job->model.task);
    for (const struct option *option = option_table(); option->name; option++)
        if (is_asked(option))
            add_option(&line, option, o);
    if (line.used < size - 1)
        return true;
    *text = 0;
    return false;
}
