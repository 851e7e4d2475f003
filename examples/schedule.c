/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling a graph of one's own: tasks of known durations under every policy, on a machine that need not exist. What
 * this shows: `delay` operations, a described machine, graphi_plan_simulate, the timeline of the best.
 *
 *     schedule [FILE [MACHINE [CORES]]]
 *
 * reads FILE (schedule.dag), a line a task, "id nanoseconds predecessors...", predecessors before it, # to the end of a
 * line left out; MACHINE is a description (share/graphi/machines; without one, the machine at hand), of which CORES may
 * be fewer. Everything printed is simulated; the best schedule is drawn in schedule.html. */
#include <graphi/graphi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 16, MOST = 4096 }; /* characters of a line; predecessors of a task */

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "schedule: error: %s\n", graphi_message());
        exit(status);
    }
}

static void mistake(const char *path, int number, const char *found, const char *expected)
{
    fprintf(stderr, "schedule: error: INVALID: %s:%d: found '%s', expected %s\n", path, number, found, expected);
    exit(GRAPHI_INVALID);
}

/* Appends the task of a line. Its result is an output under its id, so that the graph finds predecessors by name (one
 * after the other: for thousands of tasks). */
static void add_task(graphi_graph *graph, const char *path, int number, char *line)
{
    graphi_value input[MOST];
    int inputs = 0;
    char *end, *id = strtok(line, " \t\n"), *time = id ? strtok(NULL, " \t\n") : NULL;
    if (!id)
        return;
    long long nanoseconds = time ? strtoll(time, &end, 10) : -1;
    if (nanoseconds < 0 || *end)
        mistake(path, number, time ? time : "", "nanoseconds behind the id");
    for (char *before; (before = strtok(NULL, " \t\n")); inputs++) {
        if (inputs == MOST || graphi_find(graph, before) == GRAPHI_NONE)
            mistake(path, number, before, "the id of a task above, 4096 at most");
        input[inputs] = graphi_find(graph, before);
    }
    graphi_scope(graph, id); /* its name in the timeline */
    graphi_output(graph, id, graphi_delay(graph, inputs, input, nanoseconds));
}

static graphi_graph *read_graph(const char *path)
{
    static char line[LINE];
    graphi_graph *graph;
    graphi_port task;
    FILE *file = fopen(path, "r");
    check(graphi_graph_create(&graph));
    if (!file) {
        fprintf(stderr, "schedule: error: IO: %s: found no such file\n", path);
        exit(GRAPHI_IO);
    }
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            mistake(path, number, "a longer line", "65534 characters at most");
        line[strcspn(line, "#")] = 0;
        add_task(graph, path, number, line);
    }
    fclose(file);
    check(graphi_graph_status(graph)); /* an id twice, say */
    if (!graphi_graph_at(graph, GRAPHI_PORT_OUTPUT, 0, &task))
        mistake(path, 1, "", "a task");
    return graph;
}

int main(int count, char **word)
{
    const char *path = count > 1 ? word[1] : "schedule.dag";
    char *end = "";
    const int cores = count > 3 ? (int)strtol(word[3], &end, 10) : 0;
    graphi_machine *machine;
    graphi_machine_info about;
    graphi_plan *plan;
    if (*end || cores < 0)
        mistake("CORES", 1, word[3], "a number of cores");
    graphi_graph *graph = read_graph(path);
    check(count > 2 ? graphi_machine_load(word[2], cores, &machine) : graphi_machine_create(cores, &machine));
    graphi_machine_get_info(machine, &about);
    check(graphi_plan_create(graph, machine, &(graphi_plan_options){.disable = "all"}, &plan));

    /* A task is one thread's: an executor on every core. Short tasks go through the scheduler like all others. */
    graphi_setting setting = {.executors = about.cores, .width = 1, .inlining = GRAPHI_OFF}, best = setting;
    double least = 0;
    printf("%s on %d cores of %s, simulated\n", path, about.cores, about.name);
    printf("policy          makespan us     bound us     over   utilization\n");
    for (int policy = 0; policy < GRAPHI_POLICIES; policy++) {
        graphi_simulation s;
        setting.policy = (graphi_policy)policy;
        check(graphi_plan_simulate(plan, &(graphi_simulate_options){.setting = &setting}, &s));
        printf("%-14s %12.3f %12.3f %6.1f %% %11.1f %%\n", graphi_policy_name(setting.policy), 1e3 * s.makespan_ms,
               1e3 * s.lower_bound_ms, 100 * (s.makespan_ms / s.lower_bound_ms - 1), 100 * s.utilization);
        if (policy == 0 || s.makespan_ms < least)
            least = s.makespan_ms, best = setting;
    }
    graphi_simulation s;
    check(graphi_plan_simulate(plan, &(graphi_simulate_options){.setting = &best, .timeline = "schedule"}, &s));
    printf("the best, %s, is drawn in schedule.html\n", graphi_policy_name(best.policy));

    graphi_plan_destroy(plan);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(graph);
    return 0;
}
