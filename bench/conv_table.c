/* SPDX-License-Identifier: Apache-2.0 */
/* Prints src/kernels/conv_table.inc: for classes of 3 x 3 and 5 x 5 convolutions, the time of every algorithm that the
 * kernels have, in float32 and with multiplicands of bfloat16, in per cent of the direct one's in float32. One thread,
 * CPU time, algorithms in turn, medians; all classes five times over, minutes apart, and of these the lowest: who
 * shares the machine disturbs one of them, rarely all. The classes are the networks' shapes at training size and a grid
 * around them down to single images. The machine must multiply bfloat16 itself: emulated, it would be no measure of
 * machines that do. The heading names version, commit, processor and day.
 *
 *   build/release/conv_table > src/kernels/conv_table.inc   (about six minutes)
 *
 *   build/release/conv_table forward (data, weights)        the lines of one direction, forward with the heading: the
 *                                                           three outputs in this order are the file
 *
 *   build/release/conv_table times                          GFLOP/s of the direct algorithm's FLOPs, to read */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "graphi/machine.h"
#include "kernels/conv.h"
#include "kernels/conv_choice.h"
#include "kernels/conv_shape.h"
#include "tool/result.h"

struct class {
    int window, side, images, c, k;
};

static const struct class classes[] = {
    /* PathNet and GoogLeNet, small to large */
    {3, 32, 32, 3, 16},
    {3, 16, 64, 16, 16},
    {3, 24, 64, 32, 32},
    {3, 32, 64, 48, 48},
    {3, 32, 32, 64, 192},
    {3, 16, 32, 96, 128},
    {3, 16, 32, 128, 192},
    {3, 8, 32, 96, 208},
    {3, 8, 32, 160, 320},
    {3, 4, 32, 192, 384},
    {3, 48, 8, 128, 384},
    {3, 24, 16, 192, 256},
    {3, 12, 32, 192, 416},
    {3, 12, 32, 320, 640},
    {3, 6, 32, 384, 768},
    {5, 16, 32, 16, 32},
    {5, 16, 32, 32, 96},
    {5, 8, 32, 16, 48},
    {5, 8, 32, 32, 128},
    {5, 4, 32, 48, 128},
    {5, 24, 32, 32, 64},
    {5, 12, 32, 64, 256},
    {5, 6, 32, 96, 256},
    /* images of other networks */
    {3, 56, 8, 64, 64},
    {3, 28, 16, 128, 128},
    {3, 14, 16, 256, 256},
    {3, 7, 32, 512, 512},
    {3, 112, 1, 64, 64},
    {3, 56, 1, 64, 64},
    {3, 28, 1, 128, 128},
    {3, 14, 1, 256, 256},
    {3, 7, 1, 512, 512},
    {3, 28, 1, 32, 32},
    {3, 14, 1, 64, 64},
    {3, 7, 1, 64, 64},
    {3, 28, 32, 16, 64},
    {3, 28, 32, 64, 16},
    {3, 14, 8, 32, 32},
    {3, 7, 8, 128, 128},
    {5, 27, 8, 64, 192},
    {5, 14, 1, 32, 64},
    {5, 28, 1, 32, 32},
    {5, 28, 16, 16, 16},
    {5, 14, 16, 64, 64},
};

enum { ROUNDS = 5, PASSES = 5, PRECISIONS = 2, CLASSES = sizeof classes / sizeof *classes };
static const graphi_dtype precision[PRECISIONS] = {GRAPHI_F32, GRAPHI_BF16};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *numbers(int64_t count)
{
    float *data = mem_alloc((size_t)count * sizeof *data);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = (float)((i * 7919 + 13) % 1009) / 1009 - 0.5f;
    return data;
}

/* seconds[algorithm], 0 where there is none. False when memory is missing. */
static bool measure(const struct conv_spec *given, double *seconds)
{
    const struct conv_shape *s = &given->shape;
    float *x = numbers(s->n * s->h * s->w * s->c), *w = numbers(s->kh * s->kw * s->c * s->k),
          *y = numbers(s->n * s->oh * s->ow * s->k);
    struct kernel kernel[CONV_ALGORITHMS] = {{0}};
    void *workspace[CONV_ALGORITHMS] = {0};
    double took[CONV_ALGORITHMS][ROUNDS];
    bool good = x && w && y;
    for (int a = CONV_DIRECT; a < CONV_ALGORITHMS; a++) {
        struct conv_spec spec = *given;
        spec.algorithm = (enum conv_algorithm)a;
        if (!conv_possible(&spec, spec.algorithm))
            continue;
        good = good && conv_bind(&spec, isa_detect(), &kernel[a]) == GRAPHI_OK &&
               (workspace[a] = mem_alloc(kernel[a].workspace + 64)) != NULL;
    }
    for (int round = -1; good && round < ROUNDS; round++)
        for (int a = CONV_DIRECT; a < CONV_ALGORITHMS; a++) {
            if (!kernel[a].run)
                continue;
            struct kernel_array in[] = {{given->direction == CONV_BACKWARD_DATA ? y : x, s->n},
                                        {given->direction == CONV_BACKWARD_WEIGHTS ? y : w, s->n}};
            struct kernel_array out = {given->direction == CONV_FORWARD         ? y
                                       : given->direction == CONV_BACKWARD_DATA ? x
                                                                                : w,
                                       s->n};
            struct kernel_call call = {.in = in, .out = &out, .params = kernel[a].params, .workspace = workspace[a]};
            double begin = now();
            kernel_run_serial(&kernel[a], &call);
            if (round >= 0)
                took[a][round] = now() - begin;
        }
    for (int a = CONV_DIRECT; a < CONV_ALGORITHMS; a++) {
        seconds[a] = 0;
        if (kernel[a].run && good) {
            qsort(took[a], ROUNDS, sizeof(double), ascending);
            seconds[a] = took[a][ROUNDS / 2];
        }
        mem_free(workspace[a]);
        kernel_fini(&kernel[a]);
    }
    mem_free(x);
    mem_free(w);
    mem_free(y);
    return good;
}

/* Lowers `seconds` to what this pass measured; the first pass sets them. */
static bool measure_class(const struct class *at, enum conv_direction direction, bool sets,
                          double seconds[][CONV_ALGORITHMS])
{
    struct conv_spec spec = {.direction = direction,
                             .shape = {.n = at->images, .h = at->side, .w = at->side, .c = at->c, .k = at->k,
                                       .kh = at->window, .kw = at->window, .stride_h = 1, .stride_w = 1,
                                       .dilation_h = 1, .dilation_w = 1, .groups = 1, .pad_top = at->window / 2,
                                       .pad_left = at->window / 2, .pad_bottom = at->window / 2,
                                       .pad_right = at->window / 2}};
    if (conv_shape_finish(&spec.shape, "conv_table") != GRAPHI_OK)
        return false;
    for (int p = 0; p < PRECISIONS; p++) {
        double took[CONV_ALGORITHMS];
        spec.multiplicands = precision[p];
        if (!measure(&spec, took))
            return false;
        for (int a = CONV_DIRECT; a < CONV_ALGORITHMS; a++)
            if (sets || took[a] < seconds[p][a])
                seconds[p][a] = took[a];
    }
    return true;
}

static void print_class(const struct class *at, const char *direction, double seconds[][CONV_ALGORITHMS], bool times)
{
    double flops = 2.0 * at->images * at->side * at->side * at->window * at->window * at->c * at->k;
    printf("{%s, %d, %d, %d, %d, %d, {", direction, at->window, at->side, at->images, at->c, at->k);
    for (int p = 0; p < PRECISIONS; p++) {
        printf(p ? ", {0" : "{0");
        for (int a = CONV_DIRECT; a < CONV_ALGORITHMS; a++)
            printf(", %.0f", !seconds[p][a] ? 0
                             : times        ? 1e-9 * flops / seconds[p][a]
                                            : 100 * seconds[p][a] / seconds[0][CONV_DIRECT]);
        printf("}");
    }
    printf("}},\n");
}

static bool print_heading(bool times)
{
    graphi_machine *machine;
    graphi_machine_info about;
    char day[16] = "?";
    const time_t today = time(NULL);
    if (graphi_machine_create(1, &machine) != GRAPHI_OK) {
        fprintf(stderr, "conv_table: %s\n", graphi_message());
        return false;
    }
    graphi_machine_get_info(machine, &about);
    graphi_machine_destroy(machine);
    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&today));
    printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
           "/* Written by bench/conv_table.c (one thread): direction, window, side, images, c, k, then the time of no\n"
           " * algorithm, the direct one and Winograd's with 4, 6 and 8 points, in float32 and with bfloat16, %s.\n"
           " * Graphi %s, commit %s; %s, %s; %s. */\n",
           times ? "as GFLOP/s\n * of the direct one" : "in per cent of\n * the direct one's in float32",
           graphi_version(), *result_commit() ? result_commit() : "unknown", about.cpu, about.isa, day);
    return true;
}

int main(int argc, char **argv)
{
    if (isa_detect() != ISA_BF16) {
        fprintf(stderr, "conv_table: expected a machine with AVX512_BF16\n");
        return 1;
    }
    static const char *const names[] = {"CONV_FORWARD", "CONV_BACKWARD_DATA", "CONV_BACKWARD_WEIGHTS"};
    static const char *const words[] = {"forward", "data", "weights"};
    bool times = argc > 1 && strcmp(argv[1], "times") == 0;
    int first = CONV_FORWARD, last = CONV_BACKWARD_WEIGHTS;
    for (int d = CONV_FORWARD; d <= CONV_BACKWARD_WEIGHTS; d++)
        if (argc > 1 && strcmp(argv[1], words[d]) == 0)
            first = last = d;
    static double seconds[CONV_BACKWARD_WEIGHTS + 1][CLASSES][PRECISIONS][CONV_ALGORITHMS];
    for (int pass = 0; pass < PASSES; pass++)
        for (int d = first; d <= last; d++) {
            fprintf(stderr, "conv_table: pass %d of %d, %s\n", pass + 1, PASSES, words[d]);
            for (int i = 0; i < CLASSES; i++)
                if (!measure_class(&classes[i], (enum conv_direction)d, pass == 0, seconds[d][i])) {
                    fprintf(stderr, "conv_table: %s\n", graphi_message());
                    return 1;
                }
        }
    if (first == CONV_FORWARD && !print_heading(times))
        return 1;
    for (int d = first; d <= last; d++)
        for (int i = 0; i < CLASSES; i++)
            print_class(&classes[i], names[d], seconds[d][i], times);
    return 0;
}
