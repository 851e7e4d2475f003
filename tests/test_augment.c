/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation of images: where they are cut, that they are turned, and that numbers follow the global sample. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE, RECORD = 1 + PIXELS, IMAGES = 64, BATCH = 8 };

static struct folder folder;
static const char *path;

/* Pixel y, x of image i is y in red, x in green, i in blue: a batch tells where it was cut. */
static int make_file(void **state)
{
    static unsigned char record[IMAGES][RECORD];
    for (int i = 0; i < IMAGES; i++) {
        record[i][0] = (unsigned char)(i % 10);
        for (int p = 0; p < SIDE * SIDE; p++) {
            record[i][1 + p] = (unsigned char)(p / SIDE);
            record[i][1 + SIDE * SIDE + p] = (unsigned char)(p % SIDE);
            record[i][1 + 2 * SIDE * SIDE + p] = (unsigned char)i;
        }
    }
    folder_make(&folder);
    path = folder_write(&folder, "train.bin", record, sizeof record);
    return 0;
}

static int remove_file(void **state)
{
    folder_remove(&folder);
    return 0;
}

static graphi_data *open_data(const graphi_data_options *options)
{
    graphi_data *data;
    check_ok(graphi_data_open(path, options, &data));
    return data;
}

static void next(graphi_data *data, float *images)
{
    int32_t labels[BATCH];
    int64_t rows;
    check_ok(graphi_data_next(data, images, sizeof *images * PIXELS * BATCH, labels, sizeof labels, &rows));
    assert_int_equal(rows, BATCH);
}

/* The pixel of the file that pixel y, x of a batch's image is; -1: none, zero. */
static int source(const float *image, int y, int x, int channel)
{
    const float *pixel = image + (y * SIDE + x) * 3;
    return pixel[2] == 0 ? -1 : (int)lrintf(pixel[channel] * 255);
}

/* Images are cut from one place only, never turned, or torn: rows and columns that do not follow each other. */
static void images_are_cut_and_turned(void **state)
{
    static float images[PIXELS * BATCH];
    graphi_data *data = open_data(
        &(graphi_data_options){.batch = BATCH, .raw = true, .pad = 4, .flip = true, .validation = -1, .seed = 5});
    int tops = 0, lefts = 0, turns = 0, straight = 0;
    for (int i = 0; i < IMAGES / BATCH; i++) {
        next(data, images);
        for (int r = 0; r < BATCH; r++) {
            const float *image = images + r * PIXELS;
            const int middle = SIDE / 2, row = source(image, middle, middle, 0),
                      column = source(image, middle, middle, 1);
            if (row < 0)
                continue; /* image 0 has no blue */
            const int step = source(image, middle, middle + 1, 1) - column;
            assert_true(step == 1 || step == -1);
            assert_int_equal(source(image, middle + 1, middle, 0), row + 1);
            turns += step < 0;
            straight += step > 0;
            tops |= 1 << (row - middle + 4);
            lefts |= 1 << (step > 0 ? column - middle + 4 : SIDE - 1 - column - middle + 4);
            for (int y = 0; y < SIDE; y++) {
                const int from = row - middle + y;
                assert_int_equal(source(image, y, middle, 0), from >= 0 && from < SIDE ? from : -1);
            }
        }
    }
    assert_true(turns > 16 && straight > 16);
    assert_true(__builtin_popcount((unsigned)tops) > 6 && __builtin_popcount((unsigned)lefts) > 6);
    graphi_data_close(data);
}

/* A batch depends on those before it, or on how many samples a batch has: a training that goes on, or several solvers,
 * would see other images. */
static void numbers_follow_the_sample(void **state)
{
    static float one[PIXELS * BATCH], other[PIXELS * BATCH];
    const graphi_data_options how = {.batch = BATCH, .pad = 4, .flip = true, .validation = -1, .seed = 5};
    graphi_data *data = open_data(&how), *again = open_data(&how);
    for (int i = 0; i < IMAGES / BATCH + 3; i++)
        next(data, one);
    check_ok(graphi_data_set_position(again, (graphi_data_position){1, 2}));
    next(again, other);
    assert_memory_equal(one, other, sizeof one);
    check_ok(graphi_data_set_position(again, (graphi_data_position){0, 2}));
    next(again, other);
    assert_memory_not_equal(one, other, sizeof one);
    graphi_data_close(data);
    graphi_data_close(again);
}

/* `crop` scales: what is cut from the middle for validation has the size of the network, and no zeros. */
static void others_are_cut_from_the_middle(void **state)
{
    enum { SMALL = 24 };
    static float images[SMALL * SMALL * 3 * BATCH], again[SMALL * SMALL * 3 * BATCH];
    int32_t labels[BATCH];
    int64_t rows;
    graphi_data *train = open_data(&(graphi_data_options){.batch = BATCH,
                                                          .raw = true,
                                                          .height = SMALL,
                                                          .width = SMALL,
                                                          .crop = SIDE - SMALL,
                                                          .flip = true,
                                                          .validation = 0.5});
    graphi_data *held;
    check_ok(graphi_data_open_split(train, GRAPHI_VALIDATION, 0, &held));
    check_ok(graphi_data_next(held, images, sizeof images, labels, sizeof labels, &rows));
    for (int64_t r = 0; r < rows; r++)
        for (int p = 0; p < SMALL * SMALL; p++) {
            const float *pixel = images + (r * SMALL * SMALL + p) * 3;
            assert_int_equal(lrintf(pixel[0] * 255), p / SMALL + (SIDE - SMALL) / 2);
            assert_int_equal(lrintf(pixel[1] * 255), p % SMALL + (SIDE - SMALL) / 2);
        }
    check_ok(graphi_data_set_position(held, (graphi_data_position){3, 0}));
    check_ok(graphi_data_next(held, again, sizeof again, labels, sizeof labels, &rows));
    assert_memory_equal(images, again, sizeof images);
    graphi_data_close(held);
    graphi_data_close(train);
}

/* A network that was made for bytes learns from numbers of another size. */
static void bytes_are_less_their_mean(void **state)
{
    static float images[PIXELS * BATCH];
    graphi_data *data =
        open_data(&(graphi_data_options){.batch = BATCH, .bytes = true, .ordered = true, .validation = -1});
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    next(data, images);
    for (int p = 0; p < SIDE * SIDE; p++)
        assert_true(fabsf(images[p * 3] - ((float)(p / SIDE) - (SIDE - 1) / 2.0f)) < 1e-3f);
    assert_true(fabsf(info.std[0] * 255 - 1) < 1e-6f && fabsf(info.mean[0] * 255 - (SIDE - 1) / 2.0f) < 1e-3f);
    graphi_data_close(data);
}

static void texts_are_read(void **state)
{
    graphi_data_options o = {.batch = 7, .crop = 1};
    check_ok(graphi_data_augment("crop:29,flip", &o));
    assert_true(o.crop == 29 && o.pad == 0 && o.flip && o.batch == 7);
    check_ok(graphi_data_augment("none", &o));
    assert_true(o.crop == 0 && !o.flip);
    static const char *const wrong[] = {"", "flop", "crop", "crop:", "crop:-1", "pad:2x", "crop:4,", "pad:1025"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (graphi_data_augment(wrong[i], NULL) != GRAPHI_INVALID)
            fail_msg("\"%s\" was taken", wrong[i]);
    graphi_data *data;
    assert_int_equal(graphi_data_open(path, &(graphi_data_options){.raw = true, .bytes = true}, &data), GRAPHI_INVALID);
    assert_int_equal(graphi_data_open(path, &(graphi_data_options){.pad = -1}, &data), GRAPHI_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_cut_and_turned),
        cmocka_unit_test(numbers_follow_the_sample),
        cmocka_unit_test(others_are_cut_from_the_middle),
        cmocka_unit_test(bytes_are_less_their_mean),
        cmocka_unit_test(texts_are_read),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
