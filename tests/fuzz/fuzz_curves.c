/* SPDX-License-Identifier: Apache-2.0 */
/* Files of curves. What is accepted must serve a plan, which must simulate, and be stored again as itself. */
#include "fuzz.h"
#include "numbers.h"
#include "small_graph.h"

#include "base/file.h"
#include "engine/cost/curve_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static graphi_graph *graph;
static graphi_machine *machine;
static graphi_plan *plan;
static char *stored; /* a valid file: every class of the plan, measured and predicted */
static size_t stored_size, head; /* head: where its curves begin */

static void once(void)
{
    graphi_state *state;
    graphi_plan *measured;
    graphi_curves *curves;
    graphi_class class;
    graphi_climb climb = {.samples = 2, .width = {1, 2}, .compact_ns = {900, 500}, .spread_ns = {0, 450}};
    void *data;
    graph = small_graph("curves");
    must(graphi_machine_create(0, &machine));
    must(graphi_plan_create(graph, machine, NULL, &plan));
    must(graphi_state_create(graph, 1, &state));
    must(graphi_curves_open(machine, path, &curves));
    must(graphi_plan_profile(plan, state, &(graphi_profile_options){.seconds = 0.2, .curves = curves}, &measured));
    for (int i = 0; graphi_plan_class_at(plan, i, &class); i++)
        must(graphi_curves_add(curves, class.key, "model", &climb));
    must(graphi_curves_save(curves));
    must(file_read(path, 1 << 16, &data, &stored_size));
    stored = data;
    head = (size_t)(strstr(stored, "\"curves\"") - stored);
    graphi_curves_close(curves);
    graphi_plan_destroy(measured);
    graphi_state_destroy(state);
}

static void use(const graphi_curves *curves, const char *model)
{
    graphi_plan *with;
    graphi_simulation simulation;
    graphi_status status = graphi_plan_with(plan, &(graphi_plan_change){.curves = curves, .model = model}, &with);
    if (status == GRAPHI_INVALID && model)
        return;
    must(status);
    must(graphi_plan_simulate(with, &(graphi_simulate_options){.truth = plan}, &simulation));
    if (!isfinite(simulation.makespan_ms) || simulation.makespan_ms < 0)
        abort();
    must(graphi_plan_simulate(with, NULL, &simulation));
    graphi_plan_destroy(with);
}

/* Added to, it is written whole, and read as what was written. */
static void store(graphi_curves *curves)
{
    graphi_curves *again;
    const graphi_climb climb = {.samples = 1, .width = {1}, .compact_ns = {7}};
    must(graphi_curves_add(curves, 1, "fuzz", &climb));
    must(graphi_curves_save(curves));
    must(graphi_curves_open(machine, path, &again));
    if (curve_set_count(again) != curve_set_count(curves))
        abort();
    graphi_curves_close(again);
}

static void load(const void *data, size_t size)
{
    graphi_curves *curves;
    fuzz_write(path, data, size);
    graphi_status status = graphi_curves_open(machine, path, &curves);
    if (status == GRAPHI_OK) {
        use(curves, NULL);
        use(curves, "model");
        if (size % 8 == 0) /* a write is synced: few of them */
            store(curves);
        graphi_curves_close(curves);
    } else if (status != GRAPHI_INVALID && status != GRAPHI_REFUSED) {
        must(status);
    }
}

static void remove_lock(void)
{
    char name[80];
    snprintf(name, sizeof name, "%s.lock", path);
    unlink(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!stored) {
        once();
        atexit(remove_lock);
    }
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
    memcpy(out, stored + from, stored_size - from);
    return stored_size - from;
}
