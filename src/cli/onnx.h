/* SPDX-License-Identifier: Apache-2.0 */
/* `graphi run FILE.onnx`, `graphi profile FILE.onnx` and `graphi inspect FILE.onnx`. */
#ifndef CLI_ONNX_H
#define CLI_ONNX_H

#include "tool/options.h"

/* Whether a subject is such a file: it ends in .onnx. */
bool onnx_named(const char *subject);

int onnx_run(const struct options *options);
int onnx_profile(const struct options *options);
int onnx_inspect(const struct options *options);

#endif
