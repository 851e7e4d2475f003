/* SPDX-License-Identifier: Apache-2.0 */
/* The curve of a training in a result ("train" of docs/results-schema.md): what was reached at each validation. */
#ifndef TOOL_LEARNING_H
#define TOOL_LEARNING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

bool learning_is_told(const json_t *root); /* false: of eval, which has one score */
void learning_print(const json_t *root, FILE *out); /* a line a validation */

/* Two panels, loss and metric, from `y` on in a picture 1280 wide; learning_height: how much they need, 0: none. */
int learning_height(const json_t *root);
void learning_draw(const json_t *root, FILE *file, int y);

#endif
