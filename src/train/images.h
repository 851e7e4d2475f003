/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled images as they are stored, channels last, and the parsers that make them from the bytes of a file (`where`
 * is the file's name for messages). A parser leaves *set for images_free whether it fails or not; nothing in the bytes
 * is trusted. */
#ifndef TRAIN_IMAGES_H
#define TRAIN_IMAGES_H

#include "graphi/types.h"

/* Bounds on what a file may declare; they keep every product below within 64 bits. */
enum { IMAGE_SIDE_MOST = 16384, IMAGE_CLASSES_MOST = 1 << 20 };
#define IMAGE_COUNT_MOST ((int64_t)1 << 30)

struct image_set {
    int64_t count, height, width, channels;
    uint8_t *bytes;  /* [count, height, width, channels], or */
    float *floats;   /* the same as numbers; one of the two is NULL */
    int32_t *labels; /* [count], all ≥ 0 */
    int64_t classes; /* the highest label + 1 */
};

graphi_status idx_parse_images(const char *where, const void *bytes, size_t size, struct image_set *set);
graphi_status idx_parse_labels(const char *where, const void *bytes, size_t size,
                               struct image_set *set); /* after the images */

/* Appends the records of one CIFAR-10 batch. */
graphi_status cifar_parse(const char *where, const void *bytes, size_t size, struct image_set *set);

/* Arrays of .npy files. */
graphi_status npy_parse_images(const char *where, const void *bytes, size_t size, struct image_set *set);
graphi_status npy_parse_labels(const char *where, const void *bytes, size_t size,
                               struct image_set *set); /* after the images */

/* INVALID if dimensions are outside the bounds above, or make more than `most` elements; else *elements is their
 * product. */
graphi_status images_check(const char *where, const struct image_set *set, uint64_t most, uint64_t *elements);

static inline int64_t image_elements(const struct image_set *set) { return set->height * set->width * set->channels; }

void images_free(struct image_set *set);

#endif
