/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a run, by number. A run belongs to its caller. */
#include "onnx/graph_run.h"

graphi_tensor *interpreter_value(const struct interpreter *run, int number)
{
    if (number < 0)
        return NULL;
    return run->values[number] ? run->values[number] : run->model->values.data[number].constant;
}

void interpreter_set(struct interpreter *run, int number, graphi_tensor *value)
{
    value_drop(run->values[number]);
    run->values[number] = value;
}
