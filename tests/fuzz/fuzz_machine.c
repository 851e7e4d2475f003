/* SPDX-License-Identifier: Apache-2.0 */
/* Machine descriptions. What is accepted must print, simulate a small graph, and read back as itself. */
#include "fuzz.h"
#include "numbers.h"
#include "small_graph.h"

#include "graphi/graphi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static graphi_plan *plan;

static void once(void)
{
    static graphi_graph *graph; /* kept, as the plan borrows from both */
    static graphi_machine *here;
    graph = small_graph("machine");
    must(graphi_machine_create(1, &here));
    must(graphi_plan_create(graph, here, NULL, &plan));
}

static void use(graphi_machine *machine)
{
    graphi_machine_info info, again;
    graphi_simulation simulation;
    graphi_machine *copy;
    char *text;
    graphi_machine_get_info(machine, &info);
    must(graphi_machine_print(machine, &text));
    graphi_free(text);
    must(graphi_machine_save(machine, path));
    must(graphi_machine_load(path, 0, &copy));
    graphi_machine_get_info(copy, &again);
    if (info.hash != again.hash || info.cores != again.cores)
        abort();
    graphi_machine_destroy(copy);
    if (info.cores > 4096)
        return; /* more than the scheduler takes: told by another test */
    must(graphi_plan_simulate(plan, &(graphi_simulate_options){.machine = machine}, &simulation));
    if (!isfinite(simulation.makespan_ms) || simulation.makespan_ms < simulation.lower_bound_ms * 0.999)
        abort();
}

static void load(const void *data, size_t size)
{
    graphi_machine *machine;
    fuzz_write(path, data, size);
    if (graphi_machine_load(path, 0, &machine) == GRAPHI_OK) {
        use(machine);
        graphi_machine_destroy(machine);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char seed[1024];
    if (!plan)
        once();
    load(data, size);
    seed[fuzz_seed(size % 3, (uint8_t *)seed, sizeof seed - 1)] = 0;
    char *text = fuzz_change_numbers(seed, data, size);
    load(text, strlen(text));
    free(text);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const char *const seeds[] = {
        "{\"schema\":\"graphi-machine/"
        "1\",\"name\":\"a\",\"isa\":\"avx2\",\"groups\":[{\"numa\":0,\"tiles\":2,\"cores\":2}]}",
        "{\"schema\":\"graphi-machine/"
        "1\",\"name\":\"b\",\"cpu\":\"c\",\"isa\":\"plain\",\"quota\":1.5,\"l1_bytes\":32768,"
        "\"l2_bytes\":1048576,\"l3_bytes\":0,\"core_gflops\":40.5,\"bandwidth_gbs\":9,\"wake_ns\":50,\"barrier_ns\":"
        "200,"
        "\"lock_ns\":30,\"atomic_ns\":9,\"schedule_ns\":40,\"gemm_saturation\":8,\"elementwise_saturation\":16,"
        "\"unpinned_slowdown\":1.5,\"groups\":[{\"numa\":0,\"tiles\":1,\"cores\":3},{\"numa\":1,\"tiles\":1,\"cores\":"
        "1}],"
        "\"sibling_of\":[0,1]}",
        "{\"schema\":\"graphi-machine/"
        "1\",\"name\":\"d\",\"isa\":\"bf16\",\"core_gflops\":1e-9,\"core_bandwidth_gbs\":1e-300,"
        "\"bandwidth_gbs\":1e-300,\"wake_ns\":1e12,\"barrier_ns\":1e12,\"schedule_ns\":1e12,\"atomic_ns\":1e12,"
        "\"groups\":[{\"numa\":0,\"tiles\":9,\"cores\":1}]}"};
    if (which > 2 || strlen(seeds[which]) > size)
        return 0;
    memcpy(out, seeds[which], strlen(seeds[which]));
    return strlen(seeds[which]);
}
