/* SPDX-License-Identifier: Apache-2.0 */
/* The table of shapes (shapes.h). */
#include "shapes.h"

#define PRODUCT(use, rows, columns, steps, uses, ...)                                                                  \
    {                                                                                                                  \
        use, false, {.m = rows, .n = columns, .k = steps, __VA_ARGS__}, {0}, uses                                      \
    }
#define GEMM(use, rows, columns, steps, ta, tb, ...)                                                                   \
    PRODUCT(use, rows, columns, steps, 0, .trans_a = ta, .trans_b = tb, __VA_ARGS__)
#define GOAL(use, rows, columns, steps) PRODUCT(use, rows, columns, steps, 1, .trans_a = 0)
#define CONV(times, use, images, height, across, in, out, side, step, border, ...)                                     \
    {                                                                                                                  \
        use, true, {0},                                                                                                \
            {.n = images,                                                                                              \
             .h = height,                                                                                              \
             .w = across,                                                                                              \
             .c = in,                                                                                                  \
             .k = out,                                                                                                 \
             .kernel = side,                                                                                           \
             .stride = step,                                                                                           \
             .pad = border,                                                                                            \
             __VA_ARGS__},                                                                                             \
            times                                                                                                      \
    }
/* One layer of an inception module of GoogLeNet small. */
#define PART(uses, use, side, c, k, kernel)                                                                            \
    CONV(uses, "googlenet small, " use, 32, side, side, c, k, kernel, 1, kernel / 2)

const struct shape kernels_shapes[] = {
    GEMM("lstm small, one gate", 64, 128, 128, 0, 0),
    GEMM("lstm small, four gates", 64, 512, 128, 0, 0),
    GOAL("lstm medium, one gate", 64, 512, 512),
    GEMM("lstm medium, four gates", 64, 2048, 512, 0, 0),
    GEMM("lstm large, one gate", 64, 1024, 1024, 0, 0),
    GEMM("lstm medium, gradient of x", 64, 512, 512, 0, 1),
    GEMM("lstm medium, gradient of w", 512, 512, 64, 1, 0),
    GEMM("ptb small, four gates", 20, 800, 200, 0, 0),
    GEMM("ptb medium, four gates", 20, 2600, 650, 0, 0),
    GEMM("ptb large, four gates", 20, 6000, 1500, 0, 0),
    GEMM("ptb small, logits", 400, 10000, 200, 0, 0),
    GEMM("ptb small, gradient of the logits' weights", 200, 10000, 400, 1, 0),
    GEMM("dcgan, generator dense1", 64, 1024, 110, 0, 0),
    GEMM("dcgan, generator dense2", 64, 6272, 1034, 0, 0),
    GEMM("inception-v3, classifier", 16, 1000, 2048, 0, 0),
    GEMM("square", 1024, 1024, 1024, 0, 0),
    GEMM("batched, 48 products of", 64, 64, 64, 0, 0, .batch = 48),
    GEMM("batched, 12 products of", 128, 64, 128, 0, 1, .batch = 12),
    GEMM("bfloat16, lstm medium, one gate", 64, 512, 512, 0, 0, .bfloat16 = true),
    GEMM("bfloat16, lstm medium, four gates", 64, 2048, 512, 0, 0, .bfloat16 = true),
    GEMM("bfloat16, lstm large, one gate", 64, 1024, 1024, 0, 0, .bfloat16 = true),
    GEMM("bfloat16, square", 1024, 1024, 1024, 0, 0, .bfloat16 = true),
    CONV(6, "pathnet small, layer 1", 64, 32, 32, 3, 16, 3, 1, 1),
    CONV(6, "pathnet small, layer 2", 64, 16, 16, 16, 16, 3, 1, 1),
    CONV(6, "pathnet small, layer 3", 64, 8, 8, 16, 16, 3, 1, 1),
    CONV(0, "pathnet medium, layer 2", 64, 24, 24, 32, 32, 3, 1, 1),
    CONV(0, "pathnet large, layer 2", 64, 32, 32, 48, 48, 3, 1, 1),
    CONV(1, "googlenet small, conv1", 32, 128, 128, 3, 64, 7, 2, 3),
    CONV(1, "googlenet small, conv2 1x1", 32, 32, 32, 64, 64, 1, 1, 0),
    CONV(1, "googlenet small, conv2 3x3", 32, 32, 32, 64, 192, 3, 1, 1),
    PART(1, "3a 1x1", 16, 192, 64, 1),
    PART(1, "3a 1x1 before 3x3", 16, 192, 96, 1),
    PART(1, "3a 3x3", 16, 96, 128, 3),
    PART(1, "3a 1x1 before 5x5", 16, 192, 16, 1),
    PART(1, "3a 5x5", 16, 16, 32, 5),
    PART(1, "3a 1x1 after pool", 16, 192, 32, 1),
    PART(2, "3b 1x1", 16, 256, 128, 1),
    PART(1, "3b 3x3", 16, 128, 192, 3),
    PART(1, "3b 1x1 before 5x5", 16, 256, 32, 1),
    PART(1, "3b 5x5", 16, 32, 96, 5),
    PART(1, "3b 1x1 after pool", 16, 256, 64, 1),
    PART(1, "4a 1x1", 8, 480, 192, 1),
    PART(1, "4a 1x1 before 3x3", 8, 480, 96, 1),
    PART(1, "4a 3x3", 8, 96, 208, 3),
    PART(1, "4a 1x1 before 5x5", 8, 480, 16, 1),
    PART(1, "4a 5x5", 8, 16, 48, 5),
    PART(1, "4a 1x1 after pool", 8, 480, 64, 1),
    PART(1, "4b 1x1", 8, 512, 160, 1),
    PART(2, "4b 1x1 before 3x3", 8, 512, 112, 1),
    PART(1, "4b 3x3", 8, 112, 224, 3),
    PART(2, "4b 1x1 before 5x5", 8, 512, 24, 1),
    PART(2, "4b 5x5", 8, 24, 64, 5),
    PART(3, "4b 1x1 after pool", 8, 512, 64, 1),
    PART(2, "4c 1x1", 8, 512, 128, 1),
    PART(1, "4c 3x3", 8, 128, 256, 3),
    PART(1, "4d 1x1 before 3x3", 8, 512, 144, 1),
    PART(1, "4d 3x3", 8, 144, 288, 3),
    PART(1, "4d 1x1 before 5x5", 8, 512, 32, 1),
    PART(1, "4d 5x5", 8, 32, 64, 5),
    PART(1, "4e 1x1", 8, 528, 256, 1),
    PART(1, "4e 1x1 before 3x3", 8, 528, 160, 1),
    PART(1, "4e 3x3", 8, 160, 320, 3),
    PART(1, "4e 1x1 before 5x5", 8, 528, 32, 1),
    PART(1, "4e 5x5", 8, 32, 128, 5),
    PART(1, "4e 1x1 after pool", 8, 528, 128, 1),
    PART(1, "5a 1x1", 4, 832, 256, 1),
    PART(1, "5a 1x1 before 3x3", 4, 832, 160, 1),
    PART(1, "5a 3x3", 4, 160, 320, 3),
    PART(1, "5a 1x1 before 5x5", 4, 832, 32, 1),
    PART(1, "5a 5x5", 4, 32, 128, 5),
    PART(2, "5a 1x1 after pool", 4, 832, 128, 1),
    PART(1, "5b 1x1", 4, 832, 384, 1),
    PART(1, "5b 1x1 before 3x3", 4, 832, 192, 1),
    PART(1, "5b 3x3", 4, 192, 384, 3),
    PART(1, "5b 1x1 before 5x5", 4, 832, 48, 1),
    PART(1, "5b 5x5", 4, 48, 128, 5),
    CONV(0, "googlenet medium, conv2 3x3", 32, 48, 48, 128, 384, 3, 1, 1),
    CONV(0, "googlenet medium, 4e 3x3", 32, 12, 12, 320, 640, 3, 1, 1),
    CONV(0, "resnet20, stage 1 3x3", 64, 32, 32, 16, 16, 3, 1, 1),
    CONV(0, "resnet20, stage 2 3x3/2", 64, 32, 32, 16, 32, 3, 2, 1),
    CONV(0, "resnet20, stage 2 projection", 64, 32, 32, 16, 32, 1, 2, 0),
    CONV(0, "resnet20, stage 2 3x3", 64, 16, 16, 32, 32, 3, 1, 1),
    CONV(0, "resnet20, stage 3 3x3", 64, 8, 8, 64, 64, 3, 1, 1),
    CONV(0, "resnet50 of bottlenecks, stage 1 1x1", 64, 32, 32, 64, 256, 1, 1, 0),
    CONV(0, "dcgan, discriminator conv2 5x5/2", 64, 14, 14, 21, 74, 5, 2, 2),
    CONV(0, "dcgan, generator conv1 5x5/2", 64, 14, 14, 128, 138, 5, 2, 2),
    CONV(0, "inception-v3, stem 3x3/2", 16, 299, 299, 3, 32, 3, 2, 0),
    CONV(0, "inception-v3, stem 3x3 valid", 16, 73, 73, 80, 192, 3, 1, 0),
    CONV(0, "inception-v3, 5b 1x1", 16, 35, 35, 192, 64, 1, 1, 0),
    CONV(0, "inception-v3, 5b 5x5", 16, 35, 35, 48, 64, 5, 1, 2),
    CONV(0, "inception-v3, 5b 3x3", 16, 35, 35, 64, 96, 3, 1, 1),
    CONV(0, "inception-v3, 6a 3x3/2", 16, 35, 35, 288, 384, 3, 2, 0),
    CONV(0, "inception-v3, 6b 1x7", 16, 17, 17, 128, 128, 1, 1, 0, .width = 7, .pad_width = 3),
    CONV(0, "inception-v3, 6b 7x1", 16, 17, 17, 128, 192, 7, 1, 3, .width = 1, .pad_width = 0),
    CONV(0, "inception-v3, 7b 3x3", 16, 8, 8, 448, 384, 3, 1, 1),
    CONV(0, "inception-v3, 7b 1x3", 16, 8, 8, 384, 384, 1, 1, 0, .width = 3, .pad_width = 1),
    CONV(0, "inception-v3, 7b 1x1", 16, 8, 8, 1280, 320, 1, 1, 0),
    CONV(0, "depthwise 3x3", 32, 28, 28, 128, 128, 3, 1, 1, .groups = 128),
    CONV(0, "depthwise 3x3/2", 32, 56, 56, 64, 64, 3, 2, 1, .groups = 64),
    CONV(0, "few channels, dcgan, generator conv2 5x5/2", 64, 28, 28, 1, 138, 5, 2, 2),
    CONV(0, "few channels, super-resolution 9x9", 4, 128, 128, 64, 3, 9, 1, 4),
    CONV(0, "few channels, mask 3x3", 8, 64, 64, 32, 1, 3, 1, 1),
    CONV(0, "two groups 5x5", 32, 27, 27, 96, 256, 5, 1, 2, .groups = 2),
    CONV(0, "images 11x11/4", 32, 224, 224, 3, 64, 11, 4, 2),
    CONV(0, "bfloat16, googlenet small, conv2 3x3", 32, 32, 32, 64, 192, 3, 1, 1, .bfloat16 = true),
    CONV(0, "bfloat16, googlenet small, 3b 1x1", 32, 16, 16, 256, 128, 1, 1, 0, .bfloat16 = true),
    CONV(0, "bfloat16, googlenet small, 4e 3x3", 32, 8, 8, 160, 320, 3, 1, 1, .bfloat16 = true),
};
const int kernels_shape_count = sizeof kernels_shapes / sizeof *kernels_shapes;

double kernels_flops(const struct shape *s)
{
    const struct peer_conv *c = &s->conv;
    if (!s->is_conv)
        return 2.0 * (double)peer_batch(&s->gemm) * (double)s->gemm.m * (double)s->gemm.n * (double)s->gemm.k;
    return 2.0 * (double)(c->n * peer_out_height(c) * peer_out_width(c) * c->k) *
           (double)(c->c / peer_groups(c) * c->kernel * peer_width(c));
}

bool kernels_have_choice(const struct shape *s)
{
    const struct peer_conv *c = &s->conv;
    return s->is_conv && c->stride == 1 && (c->kernel == 3 || c->kernel == 5) && peer_width(c) == c->kernel &&
           peer_groups(c) == 1;
}
