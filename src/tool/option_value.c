/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options by the kinds of the table: from words, which are typed or come from a file, and back. */
#include "tool/option_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct option *option_find(const char *name)
{
    for (const struct option *o = option_table(); o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

/* Whether `word` is one of the words of `list`, "a|b|c". */
static bool listed(const char *list, const char *word)
{
    size_t length = strcspn(word, "|"); /* several words are none of them */
    for (const char *at = list; length && !word[length] && at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == 0 || at[length] == '|'))
            return true;
    return false;
}

static __attribute__((format(printf, 2, 3))) bool refuse(struct option_wrong *wrong, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wrong->expected, sizeof wrong->expected, format, arguments);
    va_end(arguments);
    return false;
}

static bool read_text(const struct option *option, const char *word, const char **at, struct option_wrong *wrong)
{
    if (!*word) /* a variable that is not set, and a checkpoint that cannot be written after hours */
        return refuse(wrong, "%s", option->argument);
    if (strchr(option->argument, '|') && !listed(option->argument, word))
        return refuse(wrong, "%s", option->argument);
    if (strcmp(option->argument, "PREFIX") == 0 && word[strlen(word) - 1] == '/') /* ".json" and ".html" there */
        return refuse(wrong, "a folder and the beginning of file names in it");
    *at = word;
    return true;
}

static bool read_list(const struct option *option, const char *word, const char **at, int *count,
                      struct option_wrong *wrong)
{
    if (!*word)
        return refuse(wrong, "%s", option->argument);
    if (*count == 32) {
        wrong->found = "more than 32 of them";
        return refuse(wrong, "at most 32");
    }
    at[(*count)++] = word;
    return true;
}

static bool read_whole(const struct option *option, const char *word, void *at, struct option_wrong *wrong)
{
    char *end;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (errno || *end || isspace((unsigned char)*word) || end == word || (double)value < option->low ||
        (double)value > option->high)
        return refuse(wrong, "a whole number from %.0f to %.0f", option->low, option->high);
    if (option->kind == SEED)
        *(uint64_t *)at = (uint64_t)value;
    else if (option->kind == SMALL)
        *(int *)at = (int)value;
    else
        *(int64_t *)at = value;
    return true;
}

static bool read_real(const struct option *option, const char *word, double *at, struct option_wrong *wrong)
{
    char *end;
    errno = 0;
    double value = strtod(word, &end);
    if (errno || *end || isspace((unsigned char)*word) || end == word ||
        !(value >= option->low && value <= option->high))
        return refuse(wrong, "a number from %g to %g", option->low, option->high);
    *at = value;
    return true;
}

/* The typed parameter, or the place of the next one; NULL: there is no room. */
static graphi_policy_parameter *parameter_at(const struct option *option, graphi_policy_parameter *parameters)
{
    for (int i = 0; i < GRAPHI_SETTING_PARAMETERS - 1; i++)
        if (!parameters[i].name || strcmp(parameters[i].name, option->name + 2) == 0)
            return &parameters[i];
    return NULL;
}

static const char *const toggles[] = {"off", "auto", "on"};

static bool read_parameter(const struct option *option, const char *word, graphi_policy_parameter *parameters,
                           struct option_wrong *wrong)
{
    graphi_policy_parameter *at = parameter_at(option, parameters);
    int64_t value = -1;
    if (!at)
        return refuse(wrong, "at most %d parameters", GRAPHI_SETTING_PARAMETERS - 1);
    if (!strchr(option->argument, '|')) {
        if (!read_whole(option, word, &value, wrong))
            return false;
    } else {
        if (!listed(option->argument, word))
            return refuse(wrong, "%s", option->argument);
        while (strcmp(toggles[value + 1], word) != 0)
            value++;
    }
    *at = (graphi_policy_parameter){option->name + 2, value};
    return true;
}

bool option_read(const struct option *option, const char *word, struct options *options, struct option_wrong *wrong)
{
    char *at = (char *)options + option->offset, *given = option->given ? (char *)options + option->given : NULL;
    bool right = true;
    *wrong = (struct option_wrong){.found = word};
    switch (option->kind) {
    case FLAG:
        *(bool *)at = true;
        return true;
    case TEXT: return read_text(option, word, (const char **)at, wrong);
    case PARAMETER: return read_parameter(option, word, (graphi_policy_parameter *)at, wrong);
    case LIST: return read_list(option, word, (const char **)at, (int *)given, wrong);
    case SEED:
    case SMALL:
    case COUNT: right = read_whole(option, word, at, wrong); break;
    case REAL: right = read_real(option, word, (double *)at, wrong); break;
    }
    if (right && given)
        *(bool *)given = true;
    return right;
}

static bool write_real(double value, char *word, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(word, size, "%.*g", digits, value);
        if (strtod(word, NULL) == value)
            break;
    }
    return true;
}

/* Zero is none, but where it is known that it was given. */
bool option_write(const struct option *option, const struct options *options, char *word, size_t size)
{
    const char *at = (const char *)options + option->offset;
    const bool given = option->given && option->kind != LIST && *(const bool *)((const char *)options + option->given);
    long long whole = 0;
    const graphi_policy_parameter *parameter = NULL;
    switch (option->kind) {
    case PARAMETER:
        parameter = parameter_at(option, (graphi_policy_parameter *)at);
        if (!parameter || !parameter->name)
            return false;
        return strchr(option->argument, '|') ? snprintf(word, size, "%s", toggles[parameter->value + 1]) > 0
                                             : snprintf(word, size, "%lld", (long long)parameter->value) > 0;
    case FLAG: return *(const bool *)at && snprintf(word, size, "yes") > 0;
    case TEXT: return *(const char *const *)at && (size_t)snprintf(word, size, "%s", *(const char *const *)at) < size;
    case REAL: return (given || *(const double *)at > 0) && write_real(*(const double *)at, word, size);
    case SMALL: whole = *(const int *)at; break;
    case COUNT: whole = *(const int64_t *)at; break;
    default: return false;
    }
    return (given || whole) && snprintf(word, size, "%lld", whole) > 0;
}
