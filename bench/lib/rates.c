/* SPDX-License-Identifier: Apache-2.0 */
/* See rates.h. */
#include "rates.h"

#include "tool/job.h"

#include <math.h>
#include <string.h>

void rates_goal(struct result *result, const char *name, double value, double goal, struct rating rating)
{
    result_goal(result, name, value, goal, true);
    result_roof(json_array_get(result->goals, json_array_size(result->goals) - 1), rating);
}

/* What stands under `key` in all of `list` against the roof of this precision. Gives the lowest that it stood against,
 * or `lowest`. */
static double put_against(json_t *list, const char *key, struct rating best, double lowest)
{
    const double roof = best.roof_gflops;
    size_t index;
    json_t *line;
    json_array_foreach(list, index, line)
    {
        const double stood = json_number_value(json_object_get(line, "roof_gflops")),
                     value = json_number_value(json_object_get(line, key)) * stood / roof;
        if (!(stood > 0 && stood < roof) || best.bfloat16 != (json_object_get(line, "roof_of") != NULL))
            continue;
        lowest = fmin(lowest, stood);
        result_number(line, key, value);
        result_number(line, "roof_gflops", roof);
        if (json_object_get(line, "goal"))
            result_set(line, "met", json_boolean(value >= json_number_value(json_object_get(line, "goal"))));
    }
    return lowest;
}

/* Rates that no direct algorithm could have. */
static void tell_fast(struct result *result)
{
    char first[200] = "";
    int count = 0;
    size_t index;
    json_t *row;
    json_array_foreach(result->rows, index, row)
    {
        const char *engine = json_string_value(json_object_get(row, "engine"));
        if (strcmp(engine, "graphi") == 0 && !json_is_true(json_object_get(row, "simulated")) &&
            json_is_number(json_object_get(row, "gflops")) &&
            json_number_value(json_object_get(row, "fraction_of_limit")) > 1 && count++ == 0)
            snprintf(first, sizeof first, "%s", json_string_value(json_object_get(row, "id")));
    }
    if (count)
        result_note(result,
                    "above 100 %% of the limit are %d of our rows, the first of them %s: convolutions by Winograd's "
                    "algorithm, which multiplies less than the direct one whose FLOPs the limit counts, bfloat16 whose "
                    "roof is not known, or a roof measured in a slower minute",
                    count, first);
}

/* Puts all against the roof of one precision, and tells where it was read much lower. */
static void settle(struct result *result, struct rating best)
{
    double lowest = put_against(result->rows, "fraction_of_limit", best, best.roof_gflops);
    lowest = put_against(result->goals, "value", best, lowest);
    if (best.roof_gflops > 1.03 * lowest)
        result_note(result,
                    "the roof%s was read as %.0f GFLOP/s once and as %.0f later: all stands against the higher; what "
                    "was measured in between may have been slowed down as well",
                    best.bfloat16 ? " of bfloat16" : "", lowest, best.roof_gflops);
}

void rates_settle(struct result *result, const graphi_machine_info *best)
{
    json_t *machine = json_object_get(result->root, "machine");
    const struct rating bfloat16 = job_roof(best, GRAPHI_BF16);
    settle(result, job_roof(best, GRAPHI_F32));
    if (bfloat16.bfloat16)
        settle(result, bfloat16);
    if (json_is_object(machine))
        result_number(machine, "roof_gflops", best->roof_gflops);
    if (json_is_object(machine) && bfloat16.bfloat16)
        result_number(machine, "roof_bf16_gflops", bfloat16.roof_gflops);
    tell_fast(result);
}
