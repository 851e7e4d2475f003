/* SPDX-License-Identifier: Apache-2.0 */
/* What training images are changed by: cut out at random, and turned left to right. Numbers are keyed by the seed and
 * the global number of the sample, so batches are the same however they are split, and after going on. */
#ifndef TRAIN_AUGMENT_H
#define TRAIN_AUGMENT_H

#include "graphi/data.h"

/* Of images [height + crop, width + crop, stored] that become [height, width, channels]. */
struct augmentation {
    int64_t height, width, stored, channels;
    int64_t crop, pad; /* larger by `crop`, with `pad` zeros around, it is cut anywhere */
    bool flip;         /* half of the images */
    bool random;       /* false: cut from the middle, never turned: what is not trained on */
    uint64_t seed;
};

/* in [height + crop, width + crop, stored] to out [height, width, channels], one stored channel repeated. Any thread.
 */
void augment_image(const struct augmentation *how, uint64_t sample, const float *in, float *out);

#endif
