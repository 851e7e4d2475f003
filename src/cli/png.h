/* SPDX-License-Identifier: Apache-2.0 */
/* Writes images as PNG: 8 bits a sample, grey or colour. */
#ifndef CLI_PNG_H
#define CLI_PNG_H

#include "graphi/types.h"

/* `images` float [rows * columns, height, width, channels] in [0, 1], channels 1 or 3, as a grid with a border of one
 * pixel around each. The file appears under its name only when whole. Prints what is wrong. */
graphi_status png_write_grid(const char *path, const float *images, int64_t rows, int64_t columns, int64_t height,
                             int64_t width, int64_t channels);

#endif
