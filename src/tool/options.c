/* SPDX-License-Identifier: Apache-2.0 */
/* Questions on what was typed. */
#include "tool/options.h"

#include <string.h>

#include "tool/report.h"

bool options_listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' '))
            return true;
    return false;
}

bool options_effect(const char *list, const char *word)
{
    graphi_policy_parameter_info p;
    bool parameter = false;
    for (int i = 0; graphi_policy_parameter_at(GRAPHI_POLICIES, i, &p) && !parameter; i++)
        parameter = p.argument && strcmp(p.name, word + 2) == 0;
    return options_listed(list, parameter ? "--policy" : word);
}

bool options_given(const struct options *options, const char *name)
{
    for (int i = 0; i < options->given_count; i++)
        if (strcmp(options->given[i], name) == 0)
            return true;
    return false;
}

graphi_status options_only(const struct options *options, const char *where, const char *list)
{
    for (int i = 0; i < options->given_count; i++)
        if (!options_effect(list, options->given[i]))
            return report_usage(where, options->given[i], "an option that has an effect there: %s", list);
    return GRAPHI_OK;
}

bool options_json_is_stdout(const struct options *options)
{
    return options->json && strcmp(options->json, "-") == 0;
}
