/* SPDX-License-Identifier: Apache-2.0 */
/* Executions a second of one small model over one state, by one thread and by eight, in alternation: small graphs stay
 * on their caller's thread, so that threads wait for nothing but cores. The time of a row is that of an execution: what
 * a round took over how many executions it had. */
#include "five_nodes.h"

#include <pthread.h>
#include <time.h>

enum { THREADS = 8, ROUNDS = 30, QUICK_ROUNDS = 5 };

struct client {
    const struct five_nodes *five;
    graphi_run *run;
    pthread_barrier_t *barrier;
    pthread_t thread;
    int executions;
    graphi_status status;
    five_array x, y;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *serve(void *argument)
{
    struct client *client = argument;
    pthread_barrier_wait(client->barrier);
    for (int i = 0; i < client->executions && client->status == GRAPHI_OK; i++)
        client->status = graphi_run_execute(client->run);
    pthread_barrier_wait(client->barrier);
    return NULL;
}

/* Milliseconds an execution with so many threads; below 0: one failed. */
static double round_ms(struct client *client, int threads, int executions)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    int started = 0;
    for (; started < threads; started++) {
        client[started].barrier = &barrier;
        client[started].executions = executions / threads;
        if (pthread_create(&client[started].thread, NULL, serve, &client[started]) != 0)
            exit(told(GRAPHI_UNSUPPORTED)); /* the others wait for it */
    }
    pthread_barrier_wait(&barrier);
    const double begin = now_ms();
    pthread_barrier_wait(&barrier);
    const double ms = (now_ms() - begin) / (executions / threads * threads);
    bool good = true;
    for (int i = 0; i < threads; i++) {
        pthread_join(client[i].thread, NULL);
        good = good && client[i].status == GRAPHI_OK;
    }
    pthread_barrier_destroy(&barrier);
    return good ? ms : -1;
}

static void report(struct bench *bench, double ms[2][ROUNDS], int rounds)
{
    static const char *const id[] = {"1 thread", "8 threads"};
    for (int k = 0; k < 2; k++) {
        json_t *row = result_row(&bench->result, id[k], "graphi");
        result_times(row, ms[k], rounds);
        if (k)
            result_ratio(row, id[0], ms[1], ms[0], rounds);
    }
    const int cores = bench->about.cores < THREADS ? bench->about.cores : THREADS;
    result_goal(&bench->result, "throughput of eight threads over that of one",
                result_paired(ms[0], ms[1], rounds), 0.95 * cores, true);
    result_note(&bench->result, "the goal is 0.95 a core: 1.9 on two");
}

static graphi_status run(struct bench *bench)
{
    static struct client client[THREADS];
    static double ms[2][ROUNDS];
    struct five_nodes five;
    const int rounds = bench->options.quick ? QUICK_ROUNDS : ROUNDS, executions = bench->options.quick ? 8000 : 40000;
    graphi_status status = five_nodes_open(bench, &five);
    for (int i = 0; i < THREADS && status == GRAPHI_OK; i++) {
        client[i].five = &five;
        status = told(five_nodes_bind(&five, &client[i].x, &client[i].y, &client[i].run));
    }
    for (int r = 0; r < rounds && status == GRAPHI_OK; r++)
        for (int k = 0; k < 2 && status == GRAPHI_OK; k++) {
            ms[k][r] = round_ms(client, k ? THREADS : 1, executions);
            status = ms[k][r] < 0 ? GRAPHI_INVALID : report_interrupted() ? GRAPHI_INTERRUPTED : GRAPHI_OK;
        }
    if (status == GRAPHI_OK)
        report(bench, ms, rounds);
    for (int i = 0; i < THREADS; i++)
        graphi_run_destroy(client[i].run);
    five_nodes_close(&five);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "concurrency", run); }
