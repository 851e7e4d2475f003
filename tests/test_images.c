/* SPDX-License-Identifier: Apache-2.0 */
/* Images of several channels, as bytes and as floats: what they are normalised by, and what tells one data set from
 * another. */
#include "folder.h"
#include "graphi/data.h"
#include "train/images.h"
#include "train/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { COUNT = 6, SIDE = 4, CHANNELS = 3, PIXELS = COUNT * SIDE * SIDE, VALUES = PIXELS * CHANNELS };

static struct folder folder;
static const int64_t dims[] = {COUNT, SIDE, SIDE, CHANNELS}, count = COUNT;

static void save(const char *file, enum npy_type type, int rank, const int64_t *shape, const void *data)
{
    assert_int_equal(npy_save(folder_name(&folder, file), type, rank, shape, data), GRAPHI_OK);
}

/* Channel c has a mean and a deviation of its own; all of them are whole numbers below 256. */
static int value_at(int i)
{
    const int pixel = i / CHANNELS, c = i % CHANNELS;
    return 40 * c + pixel * (1 + c) % 60;
}

/* Training images in their order, so many of them; the others are held out. */
static graphi_data *open_some(int kept)
{
    const double part = (double)(COUNT - kept) / COUNT;
    const graphi_data_options options = {.batch = kept, .ordered = true, .validation = part > 0 ? part : -1};
    graphi_data *data;
    if (graphi_data_open(folder.path, &options, &data) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return data;
}

static graphi_data *open_all(void) { return open_some(COUNT); }

static void write_set(bool floats, const int64_t *labels)
{
    uint8_t bytes[VALUES];
    float numbers[VALUES];
    for (int i = 0; i < VALUES; i++) {
        bytes[i] = (uint8_t)value_at(i);
        numbers[i] = (float)value_at(i);
    }
    save("images.npy", floats ? NPY_F4 : NPY_U1, 4, dims, floats ? (const void *)numbers : bytes);
    save("labels.npy", NPY_I8, 1, &count, labels);
}

static const int64_t usual[COUNT] = {0, 1, 2, 3, 0, 1};

/* One channel by another's mean or deviation, or floats by the mean of their squares: networks learn all the same, but
 * worse. Or by what is held out, too: then that is not new to them. */
static void every_channel_has_mean_0_and_deviation_1(void **state)
{
    float x[VALUES];
    int32_t labels[COUNT];
    int64_t rows;
    for (int way = 0; way < 4; way++) {
        const int kept = way & 2 ? COUNT / 2 : COUNT, pixels = kept * SIDE * SIDE;
        folder_make(&folder);
        write_set(way & 1, usual);
        graphi_data *data = open_some(kept);
        assert_int_equal(graphi_data_next(data, x, sizeof x, labels, sizeof labels, &rows), GRAPHI_OK);
        assert_int_equal(rows, kept);
        for (int c = 0; c < CHANNELS; c++) {
            double sum = 0, squares = 0;
            for (int i = c; i < pixels * CHANNELS; i += CHANNELS) {
                sum += (double)x[i];
                squares += (double)x[i] * (double)x[i];
            }
            assert_true(fabs(sum / pixels) < 1e-5 && fabs(squares / pixels - 1) < 1e-5);
        }
        graphi_data_close(data);
        folder_remove(&folder);
    }
}

/* Training goes on with the labels of another task, or a network is evaluated on images that mean something else. */
static void other_data_have_other_hashes(void **state)
{
    static const int64_t turned[COUNT] = {1, 0, 2, 3, 0, 1};
    graphi_data_info info[3];
    folder_make(&folder);
    for (int i = 0; i < 3; i++) {
        write_set(i == 2, i == 1 ? turned : usual);
        graphi_data *data = open_all();
        graphi_data_get_info(data, &info[i]);
        graphi_data_close(data);
    }
    assert_true(info[0].hash != info[1].hash && info[0].hash != info[2].hash);
    assert_true(info[0].encoding == info[1].encoding && info[0].encoding != info[2].encoding);
    folder_remove(&folder);
}

/* A label that is one too high makes a network of more classes than any array of them has. */
static void labels_end_at_the_bound(void **state)
{
    int64_t labels[COUNT] = {0, IMAGE_CLASSES_MOST - 1};
    graphi_data *none = NULL;
    graphi_data_info info;
    folder_make(&folder);
    write_set(false, labels);
    graphi_data *data = open_all();
    graphi_data_get_info(data, &info);
    assert_int_equal(info.classes, IMAGE_CLASSES_MOST);
    graphi_data_close(data);
    labels[1]++;
    write_set(false, labels);
    assert_int_equal(graphi_data_open(folder.path, NULL, &none), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "labels.npy: found label 1048576 at 1, expected 0 to 1048575"));
    assert_null(none);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_channel_has_mean_0_and_deviation_1),
        cmocka_unit_test(other_data_have_other_hashes),
        cmocka_unit_test(labels_end_at_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
