/* SPDX-License-Identifier: Apache-2.0 */
/* See rates.h. */
#include "rates.h"

#include <math.h>
#include <string.h>

void rates_goal(struct result *result, const char *name, double value, double goal, double roof_gflops)
{
    result_goal(result, name, value, goal, true);
    if (roof_gflops > 0)
        result_set(json_array_get(result->goals, json_array_size(result->goals) - 1), "roof_gflops",
                            json_real(roof_gflops));
}

/* What stands under `key` in all of `list` against the roof. Gives the lowest that it stood against, or `lowest`. */
static double put_against(json_t *list, const char *key, double roof, double lowest)
{
    size_t index;
    json_t *line;
    json_array_foreach(list, index, line)
    {
        const double stood = json_number_value(json_object_get(line, "roof_gflops")),
                     value = json_number_value(json_object_get(line, key)) * stood / roof;
        if (!(stood > 0 && stood < roof))
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
    size_t index;
    json_t *row;
    json_array_foreach(result->rows, index, row)
    {
        const char *engine = json_string_value(json_object_get(row, "engine"));
        if (strcmp(engine, "graphi") == 0 && !json_is_true(json_object_get(row, "simulated")) &&
            json_is_number(json_object_get(row, "gflops")) &&
            json_number_value(json_object_get(row, "fraction_of_limit")) > 1.05) {
            result_note(result, "above 100 %% of the limit: convolutions by Winograd's algorithm, which multiplies "
                                "less than the direct one whose FLOPs the limit counts, bfloat16, or a roof measured "
                                "in a slower minute");
            return;
        }
    }
}

void rates_settle(struct result *result, const graphi_machine_info *best)
{
    json_t *machine = json_object_get(result->root, "machine");
    double lowest = put_against(result->rows, "fraction_of_limit", best->roof_gflops, best->roof_gflops);
    lowest = put_against(result->goals, "value", best->roof_gflops, lowest);
    result_number(machine, "roof_gflops", best->roof_gflops);
    if (best->roof_gflops > 1.03 * lowest)
        result_note(result,
                    "the roof was read as %.0f GFLOP/s once and as %.0f later: all stands against the higher; what was "
                    "measured in between may have been slowed down as well",
                    lowest, best->roof_gflops);
    tell_fast(result);
}
