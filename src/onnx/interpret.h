/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a canonical graph node by node on host values: what is compiled for no plan, and the oracle of what is. */
#ifndef ONNX_INTERPRET_H
#define ONNX_INTERPRET_H

#include "onnx/model.h"

struct interpreter {
    const struct onnx_model *model;
    int64_t loop_limit;     /* trips of one Loop */
    graphi_tensor **values; /* of all numbers: what is there now; inputs are set before */
};

/* Runs the model's graph; results are in values[] until interpreter_end. Errors: of the operators, naming the node. */
graphi_status interpreter_run(struct interpreter *run);
/* The value of a number, constants among them; NULL: none. */
graphi_tensor *interpreter_value(const struct interpreter *run, int number);

#endif
