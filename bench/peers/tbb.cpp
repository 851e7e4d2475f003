// SPDX-License-Identifier: Apache-2.0
// The task graph as a oneTBB flow graph.
#include "tasks.h"

#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

namespace
{
using namespace oneapi::tbb::flow;

struct flow {
    oneapi::tbb::global_control control;
    oneapi::tbb::task_arena arena;
    std::unique_ptr<graph> whole;
    std::unique_ptr<broadcast_node<continue_msg>> start;
    std::vector<std::unique_ptr<continue_node<continue_msg>>> nodes;

    explicit flow(const peer_graph *g)
        : control(oneapi::tbb::global_control::max_allowed_parallelism, static_cast<size_t>(g->threads)),
          arena(g->threads)
    {
        arena.execute([&] {
            whole = std::make_unique<graph>();
            start = std::make_unique<broadcast_node<continue_msg>>(*whole);
            const int64_t ns = g->nanoseconds;
            for (int32_t i = 0; i < g->count; i++) {
                nodes.push_back(std::make_unique<continue_node<continue_msg>>(*whole, [ns](const continue_msg &) {
                    peer_spin(ns);
                    return continue_msg();
                }));
                if (g->inputs_begin[i] == g->inputs_begin[i + 1])
                    make_edge(*start, *nodes[i]);
                for (int32_t e = g->inputs_begin[i]; e < g->inputs_begin[i + 1]; e++)
                    make_edge(*nodes[g->inputs[e]], *nodes[i]);
            }
        });
    }

    double run()
    {
        int64_t begin = peer_now_ns();
        arena.execute([&] {
            start->try_put(continue_msg());
            whole->wait_for_all();
        });
        return static_cast<double>(peer_now_ns() - begin) * 1e-6;
    }
};

std::unique_ptr<flow> current;
} // namespace

extern "C" double peer_tbb(const struct peer_graph *graph, int reset)
{
    if (reset || !current) {
        current.reset();
        current = std::make_unique<flow>(graph);
    }
    return current->run();
}
