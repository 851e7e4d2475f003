/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of graphi bench. */
#include "tool/experiments.h"

#include <string.h>

#define REGRESSION BENCH_COMPILE " --seed --precision --size --seconds --quick --machine"
#define HILL_CLIMB BENCH_NETWORKS " --seconds --quick --machine --tune --interval"
#define FRAMEWORKS BENCH_NETWORKS BENCH_SETTING BENCH_TUNED " --seconds --quick"

const struct experiment experiments[] = {
    {"age", "whether steps get slower as a training gets older", "--seed --cores --units --quick", NULL, NULL},
    {"bfloat16", "training steps in bfloat16 beside our float32 and PyTorch's bfloat16",
     "M... --seed" BENCH_COMPILE BENCH_TRAINING BENCH_SETTING BENCH_TUNED " --seconds --quick", NULL, NULL},
    {"compile", "what compiling a plan costs, a setting chosen and one inherited",
     BENCH_NETWORKS BENCH_SETTING " --quick", NULL, NULL},
    {"concurrency", "one small model over one state, executed by one thread and by eight", "--quick", NULL, NULL},
    {"dynamic", "networks over input graphs, Tree-LSTM and Tree-FC beside DyNet and PyTorch (cavs.txt Figure 2)",
     "M... --units --batch --data --cores --isa --seconds --quick", NULL, NULL},
    {"events", "a message between two runs beside two bare words of memory", "--quick", NULL, NULL},
    {"figure-1", "three operations over the number of threads (concurrency-control.txt Figure 1), simulated",
     STUDY_OPERATIONS, NULL, NULL},
    {"figure-2", "one operation over threads, and many at once (graphi.txt Figures 2 and 3), simulated",
     STUDY_OPERATIONS, NULL, NULL},
    {"figure-3", "what each strategy adds (concurrency-control.txt Figure 3), simulated", STUDY_NETWORKS, NULL, NULL},
    {"figure-4", "operations side by side, with and without strategy 4 (concurrency-control.txt Figure 4), simulated",
     STUDY_NETWORKS, NULL, NULL},
    {"figure-6", "executors x threads against the sequential engine (graphi.txt Figure 6), simulated", STUDY_NETWORKS,
     NULL, NULL},
    {"frameworks", "training and inference beside TensorFlow, PyTorch and JAX; their names choose them", FRAMEWORKS,
     NULL, NULL},
    {"hill-climb", "hill climbing over widths against every width, measured from 3 cores on", HILL_CLIMB, NULL, NULL},
    {"inference", "ONNX models of a folder beside ONNX Runtime and OpenVINO; words choose models and peers",
     "M... --data --cores --seconds --quick", NULL, NULL},
    {"kernels", "kernels beside oneDNN, OpenBLAS and LIBXSMM; words choose shapes",
     "M... --cores --isa --precision --conv-error --quick", NULL, NULL},
    {"leases", "what cores cost: taken by each execution, held, entered", "--quick", NULL, NULL},
    {"loss-curves", "whether bfloat16 learns as float32 does", "M...", NULL, NULL},
    {"memory", "arena, live maximum and compile time of training plans", BENCH_NETWORKS BENCH_SETTING, NULL, NULL},
    {"normalization", "GoogLeNet's inference with batch normalization, against the same network without it",
     "--cores --quick", NULL, NULL},
    {"op-scaling", "single operations at every width, and what a team costs (graphi.txt Figure 2)", "--cores --seconds",
     NULL, NULL},
    {"options", "what graphi.txt tried and left, each on and off; with --machine simulated",
     BENCH_NETWORKS " --seconds --quick --machine --tune --interval", NULL, NULL},
    {"pinning", "pinned against executors that the system places (graphi.txt Figure 3)", BENCH_NETWORKS " --seconds",
     NULL, NULL},
    {"places", "where plans, states and runs of parts of the machine lie, page by page", "--quick", NULL, NULL},
    {"policies", "strategies 1 to 4 and malleable against the better uniform setting",
     BENCH_NETWORKS " --allow-rounding --interval --seconds --quick", NULL, NULL},
    {"python", "calls, training steps and import from Python, beside C and ONNX Runtime", "--quick", NULL, NULL},
    {"recurrent", "LSTM and GRU layers beside ONNX Runtime, OpenVINO and PyTorch (deepcpu.txt Table 1)",
     "M... --cores --isa --sequences --weights --executors --width --seconds --quick", NULL, NULL},
    {"regression", "models of operation times from counters (concurrency-control.txt III-B), measured from 8 cores on",
     REGRESSION, NULL, NULL},
    {"run-cost", "what a call costs: five small nodes, beside ONNX Runtime", "--quick", NULL, NULL},
    {"scheduler", "critical path first against the naive queue, FIFO and random order (graphi.txt Table 2)",
     BENCH_NETWORKS " --seconds", NULL, NULL},
    {"scheduling-cost", "100,000 short operations beside oneTBB, OpenMP and StarPU", "--cores --seed --quick", NULL,
     NULL},
    {"search", "malleable's search against random search and Nelder-Mead, simulated", STUDY_NETWORKS, NULL, NULL},
    {"simulator-error", "predicted against measured steps, every network and policy",
     BENCH_NETWORKS " --seconds --quick", NULL, NULL},
    {"solvers", "training steps by two solvers of half of the cores beside one of all (numa-caffe.txt)",
     "M... --seed --precision" BENCH_COMPILE BENCH_TRAINING " --seconds --quick", NULL, NULL},
    {"sparse", "training of a table of embeddings: rows that were read updated, against all rows", "--cores --quick",
     NULL, NULL},
    {"strategies", "every policy against the lower bound, simulated", STUDY_NETWORKS, NULL, NULL},
    {"sweep", "every policy, driver, executors x threads; the profiler's choice among them (graphi.txt Figure 6)",
     BENCH_NETWORKS BENCH_TUNED " --seconds", NULL, NULL},
    {"table-1", "inter-op x intra-op settings (concurrency-control.txt Table I), simulated", STUDY_NETWORKS, NULL,
     NULL},
    {"table-2", "best number of threads by input size (concurrency-control.txt Table II), simulated", STUDY_OPERATIONS,
     NULL, NULL},
    {"table-3", "two operations in turn and side by side (concurrency-control.txt Table III), simulated",
     STUDY_OPERATIONS, NULL, NULL},
    {"table-4", "regression models (concurrency-control.txt Table IV): regression under the paper's number", REGRESSION,
     NULL, NULL},
    {"table-5", "hill climbing (concurrency-control.txt Table V): hill-climb under the paper's number", HILL_CLIMB,
     NULL, NULL},
    {"table-6",
     "the five longest kinds of operations under strategies 1 and 2 (concurrency-control.txt Table VI), simulated",
     STUDY_NETWORKS, NULL, NULL},
    {"table-graphi", "critical path first over the naive queue on 64 cores (graphi.txt Table 2), simulated",
     STUDY_NETWORKS, NULL, NULL},
    {"waiting", "what executors lose in scheduling, in waiting and within teams",
     BENCH_NETWORKS BENCH_SETTING BENCH_TUNED " --seconds", NULL, NULL},
    {"wavefront", "the diagonal order of a 4-layer LSTM (graphi.txt 7.4), simulated", STUDY_NETWORKS " --timeline",
     NULL, NULL},
    {0},
};
const int experiments_count = sizeof experiments / sizeof *experiments - 1;

const struct experiment *experiment_find(const char *name)
{
    for (const struct experiment *e = experiments; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}
