/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of an experiment as SVG, beside its bar chart: lines over two axes that begin at 0, or boxes. Drawn only
 * with --out DIR, as DIR/NAME.svg; without it every function does nothing. */
#ifndef BENCH_PICTURE_H
#define BENCH_PICTURE_H

#include "bench.h"

struct picture {
    struct bench *bench;
    FILE *file; /* NULL: not drawn */
    char path[4200];
    double most_x, most_y;
    int named;
};

/* Axes up to most_x and most_y, named so. In colours: 0 to 3. */
graphi_status picture_open(struct picture *picture, struct bench *bench, const char *name, const char *title,
                           const char *x_name, const char *y_name, double most_x, double most_y);
void picture_line(struct picture *picture, const double *x, const double *y, int count, int colour, double width);
void picture_point(struct picture *picture, double x, double y, int colour);
void picture_name(struct picture *picture, const char *name, int colour); /* one more line of the legend */

/* A picture without axes, `width` x `height` pixels. */
graphi_status picture_open_plain(struct picture *picture, struct bench *bench, const char *name, int width, int height);
void picture_box(struct picture *picture, int x, int y, int width, int height, double hue, const char *text);
void picture_text(struct picture *picture, int x, int y, const char *text);

/* Lists the file in the result. Of a full disk it says so, whatever the status before was; returns the first failure.
 */
graphi_status picture_close(struct picture *picture, graphi_status status);

#endif
