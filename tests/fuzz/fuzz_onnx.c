/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX models: whatever the bytes, opening gives a session or a message. Models that open are run, but for those whose
 * sizes a few bytes could make large. */
#include "fuzz.h"

#include "../onnx_writer.h"

#include "graphi/graphi.h"

#include <stdlib.h>

/* Operators whose results may be much larger than what they read. */
static bool grows(const graphi_session *session)
{
    static const char *const names[] = {"ConstantOfShape", "Expand", "Tile", "Range", "Pad", "Loop",
                                        "OneHot",          "Resize"};
    graphi_session_operator op;
    for (size_t i = 0; graphi_session_operator_at(session, i, &op); i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(op.name, names[k]) == 0)
                return true;
    return false;
}

static void run(const graphi_session *session)
{
    graphi_session_port port;
    graphi_tensor *x, *results[16] = {NULL};
    size_t outputs = 0;
    while (outputs < 16 && graphi_session_port_at(session, GRAPHI_SESSION_OUTPUT, outputs, &port))
        outputs++;
    const int64_t count = 4;
    if (graphi_tensor_create(GRAPHI_ELEMENT_FLOAT32, 1, &count, (float[]){1, -2, 3, -4}, &x) != GRAPHI_OK)
        abort();
    const graphi_status status = graphi_session_run(session, (const char *const[]){"x"},
                                                    (const graphi_tensor *const[]){x}, 1, NULL, outputs, results);
    for (size_t i = 0; i < outputs; i++) {
        if (status == GRAPHI_OK && !results[i])
            abort();
        graphi_tensor_destroy(results[i]);
    }
    graphi_tensor_destroy(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graphi_session *session = NULL;
    if (graphi_session_open(NULL, data, size, NULL, &session) == GRAPHI_OK) {
        if (!grows(session))
            run(session);
        graphi_session_close(session);
    }
    return 0;
}

static struct proto chain(void)
{
    struct proto graph = {0}, node = node_of("Transpose", "m", "t");
    graph_port(&graph, 11, "x", 1, 1, (int64_t[]){-1});
    graph_constant(&graph, "two", 7, 1, (int64_t[]){2}, (int64_t[]){2, 2}, 16);
    graph_node(&graph, "Reshape", "x two", "m");
    node_ints(&node, "perm", 2, (int64_t[]){1, 0});
    proto_add(&graph, 1, &node);
    graph_node(&graph, "MatMul", "m t", "p");
    graph_node(&graph, "Softmax", "p", "y");
    graph_port(&graph, 12, "y", 1, 2, (int64_t[]){2, 2});
    return graph;
}

static struct proto branches(void)
{
    struct proto graph = {0}, yes = {0}, no = {0}, node = node_of("If", "c", "y");
    graph_node(&yes, "Neg", "x", "a");
    graph_port(&yes, 12, "a", 1, -1, NULL);
    graph_node(&no, "Abs", "x", "b");
    graph_port(&no, 12, "b", 1, -1, NULL);
    graph_port(&graph, 11, "x", 1, 1, (int64_t[]){4});
    graph_constant(&graph, "c", 9, 0, NULL, "\1", 1);
    node_graph(&node, "then_branch", &yes);
    node_graph(&node, "else_branch", &no);
    proto_add(&graph, 1, &node);
    graph_port(&graph, 12, "y", 1, -1, NULL);
    return graph;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    if (which > 2)
        return 0;
    const struct proto graph = which == 1 ? branches() : chain(), model = model_of(&graph, which == 2 ? 11 : 17);
    if (model.size > size)
        return 0;
    memcpy(out, model.data, model.size);
    return model.size;
}
