/* SPDX-License-Identifier: Apache-2.0 */
/* Scalability of single operations (graphi.txt Fig. 2): the paper's matrix product [64,512] x [512,512] and its product
 * of 32,768 elements, and others of the networks, at every width up to the cores; and the cost of a team by itself.
 * Each graph is a chain of dependent copies, so that nothing else can fill the cores. Widths of the paper's machine are
 * simulated by `graphi simulate`. */
#include "bench.h"

#include <string.h>

enum { COPIES = 64, EMPTY = 20000, MOST_WIDTHS = 256 };

struct operation {
    const char *name;
    int rank;
    int64_t dims[2], inner; /* of the value that flows through the chain; square weights for products */
    graphi_value (*next)(graphi_graph *graph, graphi_value x, graphi_value other);
    bool product;
    int copies;
};

static graphi_value product(graphi_graph *g, graphi_value x, graphi_value w) { return graphi_matmul(g, x, w, 0, 0); }
static graphi_value multiply(graphi_graph *g, graphi_value x, graphi_value y) { return graphi_mul(g, x, y); }
static graphi_value bend(graphi_graph *g, graphi_value x, graphi_value y)
{
    (void)y;
    return graphi_tanh(g, x);
}
static graphi_value nothing(graphi_graph *g, graphi_value x, graphi_value y)
{
    (void)y;
    return graphi_delay(g, 1, &x, 0);
}

static const struct operation operations[] = {
    {"product 64x512x512", 2, {64, 512}, 512, product, true, COPIES},
    {"product 64x128x128", 2, {64, 128}, 128, product, true, COPIES},
    {"product 512x512x512", 2, {512, 512}, 512, product, true, COPIES},
    {"multiply 32768 elements", 2, {64, 512}, 0, multiply, false, COPIES},
    {"tanh 32768 elements", 2, {64, 512}, 0, bend, false, COPIES},
    {"multiply 4194304 elements", 2, {2048, 2048}, 0, multiply, false, 8},
    {"empty", 0, {0, 0}, 0, nothing, false, EMPTY},
};

static graphi_status build(const struct operation *op, graphi_graph **out)
{
    graphi_status status = graphi_graph_create(out);
    if (status != GRAPHI_OK)
        return status;
    graphi_graph *g = *out;
    graphi_initializer small = {.kind = GRAPHI_INIT_UNIFORM, .a = -0.05, .b = 0.05};
    graphi_value x = graphi_input(g, "x", GRAPHI_F32, op->rank, op->dims);
    const int64_t square[] = {op->inner, op->inner};
    graphi_value other = graphi_parameter(g, "other", GRAPHI_F32, op->rank, op->product ? square : op->dims, &small);
    for (int i = 0; i < op->copies; i++)
        x = op->next(g, x, other);
    graphi_output(g, "y", x);
    return graphi_graph_status(g);
}

static graphi_status at_operation(struct bench *bench, const struct operation *op)
{
    static const graphi_model_info none;
    struct network network = {.name = op->name, .size = ""};
    struct contender list[MOST_WIDTHS] = {0};
    int widths = bench->about.cores < MOST_WIDTHS ? bench->about.cores : MOST_WIDTHS, rounds = 0;
    graphi_plan_options options = {.disable = "all",
                                   .setting = {.policy = GRAPHI_POLICY_CRITICAL_PATH,
                                               .executors = 1,
                                               .width = 1,
                                               .driver = GRAPHI_DRIVER_COMBINING,
                                               .inlining = GRAPHI_OFF}};
    graphi_status status = build(op, &network.graph);
    if (status == GRAPHI_OK &&
        (status = graphi_plan_create(network.graph, bench->machine, &options, &network.plan)) == GRAPHI_OK)
        status = graphi_state_create(network.graph, 1, &network.state);
    network.info = none;
    if (status == GRAPHI_OK && op->product)
        network.rating = job_rating(network.graph, &bench->about, GRAPHI_F32);
    if (status != GRAPHI_OK)
        report_failure(status);
    for (int w = 1; w <= widths && status == GRAPHI_OK; w++) {
        char id[64];
        graphi_setting setting = options.setting;
        setting.width = w;
        snprintf(id, sizeof id, "width %d", w);
        status = contender_open(bench, &network, id, &setting, &list[w - 1]);
    }
    if (status == GRAPHI_OK)
        status = bench_alternate(bench, op->name, list, widths, bench->options.seconds > 0 ? bench->options.seconds : 2,
                                 200, &rounds);
    double first = 0;
    for (int w = 0; w < widths; w++) {
        if (status == GRAPHI_OK) {
            json_t *row = bench_row(bench, &network, &list[w], &list[0], rounds);
            double median = json_number_value(json_object_get(json_object_get(row, "time_ms"), "median"));
            result_number(row, "overhead_ns_per_op", median * 1e6 / op->copies);
            first = w == 0 ? median : first;
            if (op->next == nothing && w == 1)
                result_goal(&bench->result, "team of two around an empty operation: ns more than alone",
                            (median - first) * 1e6 / op->copies, 250, false);
        }
    }
    for (int w = 0; w < widths; w++)
        contender_close(&list[w]);
    network_close(&network);
    return status;
}

static graphi_status run(struct bench *bench)
{
    graphi_status status = GRAPHI_OK;
    result_note(&bench->result, "ns/op: time of one operation of the chain, scheduling included");
    for (size_t i = 0; i < sizeof operations / sizeof *operations && status == GRAPHI_OK; i++)
        status = at_operation(bench, &operations[i]);
    return status;
}

int main(int argc, char **argv) { return bench_main(argc, argv, "op-scaling", run); }
