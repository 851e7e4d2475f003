/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is fed from the command line. Usual size: one to three inputs. */
#ifndef CLI_ONNX_INPUTS_H
#define CLI_ONNX_INPUTS_H

#include "graphi/session.h"
#include "tool/options.h"

enum { ONNX_PORTS = 256 };

struct onnx_inputs {
    const char *names[ONNX_PORTS];
    graphi_tensor *values[ONNX_PORTS];
    size_t count;
};

/* Reports what is wrong. given_alone: inputs of which the options say nothing are left out; otherwise they are random,
 * but those that have a default or may hold nothing. Free them, after an error as well. */
graphi_status onnx_inputs_find(const struct options *options, const graphi_session *session, bool given_alone,
                               struct onnx_inputs *out);
void onnx_inputs_free(struct onnx_inputs *inputs);

#endif
