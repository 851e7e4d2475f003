/* SPDX-License-Identifier: Apache-2.0 */
/* Stored plans. What is accepted must explain itself, simulate, and be stored again as itself. Mutated files seldom
 * keep the hashes, so most inputs get the right head put in front of what was mutated. */
#include "fuzz.h"
#include "numbers.h"
#include "small_graph.h"

#include "base/file.h"
#include "graphi/graphi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static graphi_graph *graph;
static graphi_machine *machine;
static void *stored; /* a valid file */
static size_t stored_size, head; /* head: where its setting begins */

static void once(void)
{
    graphi_plan *plan;
    graph = small_graph("plan");
    must(graphi_machine_create(0, &machine));
    must(graphi_plan_create(graph, machine, NULL, &plan));
    must(graphi_plan_save(plan, path));
    must(file_read(path, 1 << 16, &stored, &stored_size));
    head = (size_t)(strstr(stored, "\"setting\"") - (char *)stored);
    graphi_plan_destroy(plan);
}

static void use(graphi_plan *plan)
{
    graphi_plan_info info, again;
    graphi_simulation simulation;
    graphi_plan *copy;
    char *text;
    graphi_plan_get_info(plan, &info);
    if (!isfinite(info.lower_bound_ms) || !isfinite(info.predicted_ms) || info.critical_path_ms < 0)
        abort();
    must(graphi_plan_explain(plan, true, &text));
    graphi_free(text);
    must(graphi_plan_simulate(plan, NULL, &simulation));
    must(graphi_plan_save(plan, path));
    must(graphi_plan_load(graph, machine, NULL, path, &copy));
    graphi_plan_get_info(copy, &again);
    if (info.hash != again.hash || info.lower_bound_ms != again.lower_bound_ms)
        abort();
    graphi_plan_destroy(copy);
}

static void load(const void *data, size_t size)
{
    graphi_plan *plan;
    fuzz_write(path, data, size);
    graphi_status status = graphi_plan_load(graph, machine, NULL, path, &plan);
    if (status == GRAPHI_OK) {
        use(plan);
        graphi_plan_destroy(plan);
    } else if (status != GRAPHI_INVALID && status != GRAPHI_REFUSED) {
        must(status);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!stored)
        once();
    fuzz_file(stored, head, data, size, load);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    if (!stored)
        once();
    size_t from = which == 0 ? 0 : head;
    if (which > 7 || stored_size - from > size)
        return 0;
    memcpy(out, (char *)stored + from, stored_size - from);
    return stored_size - from;
}
