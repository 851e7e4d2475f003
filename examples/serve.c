/* SPDX-License-Identifier: Apache-2.0 */
/* Serving: requests that come from several threads at a time, answered under two settings of one plan. Under the plan's
 * own, chosen for the least time of one execution, a request has all cores and the others wait for them; under one
 * executor of one thread each core answers a request of its own, and nobody waits. What this shows: many runs of one
 * plan over one state, which hold the weights once; graphi_plan_with; how long an execution waited for cores.
 *
 *     serve [SECONDS [NETWORK]]
 *
 * measures each for SECONDS (2) on an image network (googlenet; `graphi --help` names them) with one image a request,
 * and expects the same bits of every answer. A row has the setting, executors x threads, and how many clients ask at a
 * time; the answers that all of them get in a second; how long half of these, and 99 of 100, take at most; and which
 * part of the time was waiting for cores. */
#define _POSIX_C_SOURCE 200809L
#include <graphi/graphi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ANSWERS = 1 << 17 }; /* of a client */

static void check(graphi_status status)
{
    if (status != GRAPHI_OK) {
        fprintf(stderr, "serve: error: %s\n", graphi_message());
        exit(status);
    }
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "serve: error: found no memory\n");
        exit(GRAPHI_MEMORY);
    }
    return memory;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What is asked of whom, and the answer that is right. */
struct service {
    const graphi_plan *plan;
    graphi_state *state;
    float *image, *expected;
    size_t image_bytes, answer_bytes;
};

static void *array_like(const graphi_graph *graph, const char *name, size_t *bytes)
{
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    check(graphi_value_type(graph, graphi_find(graph, name), &dtype, &rank, dims));
    *bytes = graphi_dtype_size(dtype);
    for (int i = 0; i < rank; i++)
        *bytes *= (size_t)dims[i];
    return allocate(1, *bytes);
}

static void answer(const struct service *service, graphi_run *run, float *to)
{
    check(graphi_run_set(run, "images", GRAPHI_F32, service->image, service->image_bytes));
    check(graphi_run_execute(run));
    check(graphi_run_get(run, "logits", GRAPHI_F32, to, service->answer_bytes));
}

/* Who asks, and asks again as soon as the answer is there. */
struct client {
    const struct service *service;
    pthread_t thread;
    double until, waited_ms, total_ms, *ms; /* ms: of each answer */
    int answers, wrong;
};

static void *ask(void *context)
{
    struct client *c = context;
    float *to = allocate(1, c->service->answer_bytes);
    graphi_run *run; /* private to a thread, while plan and state are everyone's */
    graphi_run_info info;
    check(graphi_run_create(c->service->plan, c->service->state, &run));
    do {
        answer(c->service, run, to);
        graphi_run_get_info(run, &info);
        c->wrong += memcmp(to, c->service->expected, c->service->answer_bytes) != 0;
        c->ms[c->answers++] = info.last_ms; /* waited_ms is a part of it */
        c->total_ms += info.last_ms;
        c->waited_ms += info.waited_ms;
    } while (now() < c->until && c->answers < MOST_ANSWERS);
    graphi_run_destroy(run);
    free(to);
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* So many clients at a time, as a row of the table; gives how many answers were wrong. */
static int serve(const struct service *service, int clients, double seconds)
{
    struct client *client = allocate((size_t)clients, sizeof *client), all = {0};
    double begin = now();
    all.ms = allocate((size_t)clients * MOST_ANSWERS, sizeof *all.ms);
    for (int i = 0; i < clients; i++) {
        client[i] = (struct client){.service = service, .until = begin + seconds};
        client[i].ms = allocate(MOST_ANSWERS, sizeof *client[i].ms);
        if (pthread_create(&client[i].thread, NULL, ask, &client[i])) {
            fprintf(stderr, "serve: error: found no thread for client %d\n", i);
            exit(GRAPHI_UNSUPPORTED);
        }
    }
    for (int i = 0; i < clients; i++) {
        pthread_join(client[i].thread, NULL);
        memcpy(all.ms + all.answers, client[i].ms, (size_t)client[i].answers * sizeof *all.ms);
        free(client[i].ms);
        all.answers += client[i].answers;
        all.wrong += client[i].wrong;
        all.total_ms += client[i].total_ms;
        all.waited_ms += client[i].waited_ms;
    }
    double took = now() - begin;
    graphi_plan_info info;
    graphi_plan_get_info(service->plan, &info);
    qsort(all.ms, (size_t)all.answers, sizeof *all.ms, ascending);
    printf("%5d x %-3d %7d %12.1f %10.3f %10.3f %8.1f %%\n", info.setting.executors, info.setting.width, clients,
           all.answers / took, all.ms[all.answers / 2], all.ms[(int64_t)all.answers * 99 / 100],
           100 * all.waited_ms / all.total_ms);
    free(all.ms);
    free(client);
    return all.wrong;
}

/* One image a request. */
static graphi_graph *network(const char *name)
{
    const graphi_model_options single_image = {.evaluation = true, .batch = 1};
    graphi_model_info info;
    graphi_graph *graph;
    check(graphi_model_get_info(name, &single_image, &info));
    if (info.feed != GRAPHI_MODEL_IMAGES || !info.metric) {
        fprintf(stderr, "serve: error: found %s, expected a network that tells images apart\n", name);
        exit(GRAPHI_USAGE);
    }
    check(graphi_model_create(name, &single_image, &graph));
    return graph;
}

int main(int count, char **word)
{
    char *end = "";
    const double seconds = count > 1 ? strtod(word[1], &end) : 2;
    const graphi_plan_options options = {.outputs = "logits"}; /* then "labels" need not be fed */
    struct service service = {0};
    graphi_machine *machine;
    graphi_machine_info about;
    graphi_plan *own, *single;
    graphi_run *run;
    if (*end || !(seconds > 0) || count > 3) {
        fprintf(stderr, "usage: serve [SECONDS [NETWORK]]\n");
        return GRAPHI_USAGE;
    }
    graphi_graph *graph = network(count > 2 ? word[2] : "googlenet");
    check(graphi_machine_create(0, &machine));
    graphi_machine_get_info(machine, &about);
    check(graphi_state_create(graph, 1, &service.state)); /* a server would load its weights: graphi_state_load */
    check(graphi_plan_create(graph, machine, &options, &own));
    check(graphi_plan_with(own, &(graphi_plan_change){.setting = &(graphi_setting){.executors = 1, .width = 1}},
                           &single));

    service.image = array_like(graph, "images", &service.image_bytes);
    service.expected = array_like(graph, "logits", &service.answer_bytes);
    for (size_t i = 0; i < service.image_bytes / sizeof *service.image; i++)
        service.image[i] = (float)(i % 251) / 125 - 1;
    check(graphi_run_create(own, service.state, &run));
    answer(&service, run, service.expected); /* also packs the weights */

    printf("  setting   clients   requests/s     p50 ms     p99 ms    waiting\n");
    service.plan = own;
    int wrong = serve(&service, 1, seconds) + serve(&service, about.cores, seconds);
    service.plan = single;
    wrong += serve(&service, about.cores, seconds);
    printf("%d answers differ\n", wrong);

    graphi_run_destroy(run);
    graphi_plan_destroy(single);
    graphi_plan_destroy(own);
    graphi_state_destroy(service.state);
    graphi_machine_destroy(machine);
    graphi_graph_destroy(graph);
    free(service.image);
    free(service.expected);
    return wrong ? GRAPHI_MISSED : GRAPHI_OK;
}
