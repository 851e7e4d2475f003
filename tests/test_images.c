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

/* --- arrays as people have them --- */

/* A file with a header as NumPy writes it, or as given. */
static void save_raw(const char *file, const char *descr, const char *order, const char *shape, const void *data,
                     size_t bytes)
{
    uint8_t whole[4096] = "\x93NUMPY\1";
    const int length = snprintf((char *)whole + 10, 256, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr,
                                order, shape);
    whole[8] = (uint8_t)length;
    memcpy(whole + 10 + length, data, bytes);
    folder_write(&folder, file, whole, 10 + (size_t)length + bytes);
}

/* All of them in their order, as they are stored. */
static graphi_data *open_or_fail_raw(void)
{
    graphi_data_options all = {.batch = 1, .ordered = true, .validation = -1, .raw = true};
    graphi_data *data = NULL;
    graphi_data_info info;
    if (graphi_data_open(folder.path, &all, &data) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    graphi_data_get_info(data, &info);
    graphi_data_close(data);
    all.batch = info.samples;
    if (graphi_data_open(folder.path, &all, &data) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return data;
}

/* The bytes of whole numbers 0 … count − 1 of a type, little-endian. */
static size_t numbers(uint8_t *out, char kind, size_t size, int many)
{
    memset(out, 0, size * (size_t)many);
    for (int i = 0; i < many; i++) {
        uint8_t *at = out + size * (size_t)i;
        const float single = (float)i;
        const double twice = i;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        if (kind == 'V')
            memcpy(at, (uint16_t[]){(uint16_t)(bits >> 16)}, 2);
        else if (kind == 'f' && size == 2) /* exponent 15, ten bits of fraction */
            memcpy(at, (uint16_t[]){i ? (uint16_t)((bits >> 13) - (112u << 10)) : 0}, 2);
        else if (kind == 'f' && size > 8) {
            const int exponent = i ? (int)(bits >> 23) - 127 : 0;
            const uint64_t fraction = (uint64_t)i << (63 - exponent);
            memcpy(at, &fraction, 8);
            memcpy(at + 8, (uint16_t[]){i ? (uint16_t)(16383 + exponent) : 0}, 2);
        } else if (kind == 'f')
            memcpy(at, size == 4 ? (const void *)&single : &twice, size);
        else
            *at = (uint8_t)i;
    }
    return size * (size_t)many;
}

static void swap_each(uint8_t *bytes, size_t size, int many)
{
    for (int i = 0; i < many; i++, bytes += size)
        for (size_t b = 0; b < size / 2; b++) {
            const uint8_t low = bytes[b];
            bytes[b] = bytes[size - 1 - b];
            bytes[size - 1 - b] = low;
        }
}

static const struct {
    char kind;
    size_t size;
} kinds[] = {{'b', 1}, {'i', 1}, {'i', 2}, {'i', 4}, {'i', 8}, {'u', 1},  {'u', 2}, {'u', 4},
             {'u', 8}, {'f', 2}, {'f', 4}, {'f', 8}, {'V', 2}, {'f', 12}, {'f', 16}};

/* Each type in either order of bytes, as images and as labels, [N] and [N, 1]: none is refused, none is misread. */
static void all_types_of_numpy_are_read(void **state)
{
    enum { N = 4, CELLS = 2 * 2, ALL = N * CELLS };
    uint8_t bytes[16 * ALL];
    char descr[16];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int big = 0; big < 2; big++) {
            const bool truth = kinds[k].kind == 'b';
            folder_make(&folder);
            snprintf(descr, sizeof descr, "'%c%c%zu'", big ? '>' : kinds[k].size == 1 ? '|' : '<', kinds[k].kind,
                     kinds[k].size);
            size_t size = numbers(bytes, kinds[k].kind, kinds[k].size, ALL);
            if (big)
                swap_each(bytes, kinds[k].size, ALL);
            save_raw("images.npy", descr, "False", "(4, 2, 2, 1)", bytes, size);
            save_raw("labels.npy", descr, "False", big ? "(4, 1)" : "(4,)", bytes, size / CELLS);
            graphi_data *data = open_or_fail_raw();
            float x[ALL];
            int32_t labels[N];
            int64_t rows;
            assert_int_equal(graphi_data_next(data, x, sizeof x, labels, sizeof labels, &rows), GRAPHI_OK);
            const float scale = kinds[k].kind == 'u' && kinds[k].size == 1 ? 255 : 1;
            for (int i = 0; i < ALL; i++)
                if (fabsf(x[i] * scale - (float)(truth ? i > 0 : i)) > 1e-5f)
                    fail_msg("%s: found %g at %d", descr, (double)x[i], i);
            for (int i = 0; i < N; i++)
                assert_int_equal(labels[i], truth ? i > 0 : i);
            graphi_data_close(data);
            folder_remove(&folder);
        }
}

/* The first dimension is the fastest: an image then has pixels of all the others. Headers of Python 2 have long
 * numbers. */
static void fortran_order_and_old_headers(void **state)
{
    enum { N = 2, H = 3, W = 2, ALL = N * H * W };
    float fortran[ALL], x[ALL];
    uint8_t bytes[ALL];
    int32_t labels[N];
    int64_t rows;
    for (int type = 0; type < 2; type++) {
        folder_make(&folder);
        for (int n = 0; n < N; n++)
            for (int h = 0; h < H; h++)
                for (int w = 0; w < W; w++) {
                    fortran[n + N * (h + H * w)] = (float)((n * H + h) * W + w);
                    bytes[n + N * (h + H * w)] = (uint8_t)((n * H + h) * W + w);
                }
        save_raw("images.npy", type ? "u'|u1'" : "'<f4'", "True", "(2L, 3L, 2L)", type ? (const void *)bytes : fortran,
                 type ? sizeof bytes : sizeof fortran);
        save_raw("labels.npy", "'<i4'", "True", "(2L,)", (int32_t[]){1, 0}, 8);
        graphi_data *data = open_or_fail_raw();
        assert_int_equal(graphi_data_next(data, x, sizeof x, labels, sizeof labels, &rows), GRAPHI_OK);
        for (int i = 0; i < ALL; i++)
            assert_true(fabsf(x[i] * (type ? 255.0f : 1.0f) - (float)i) < 1e-5f);
        assert_true(labels[0] == 1 && labels[1] == 0);
        graphi_data_close(data);
        folder_remove(&folder);
    }
}

/* A number that does not fit becomes another one. */
static void arrays_are_checked_for_range(void **state)
{
    static const struct {
        const char *descr;
        uint8_t bytes[16];
        size_t size;
        const char *word;
    } cases[] = {{"'<u8'", {0, 0, 0, 0, 0, 0, 0, 0x80}, 8, "expected a whole number of 64 bits"},
                 {"'<u4'", {0, 0, 0, 0x80}, 4, "found label 2147483648"},
                 {"'|i1'", {0xff}, 1, "found label -1"},
                 {"'<f2'", {0, 0x38}, 2, "found 0.5 at 0, expected a whole number"},
                 {"'<f2'", {0, 0x7c}, 2, "found inf at 0"},
                 {"'<V2'", {0x80, 0x7f}, 2, "found inf at 0"},
                 {"'>i2'", {0xff, 0xff}, 2, "found label -1"},
                 {"'<f16'", {[15] = 0x40}, 16, "found a longdouble at 0"},
                 {"'<c8'", {0}, 8, "found element type \"<c8\", expected bool, integers"},
                 {"'<U2'", {0}, 8, "expected bool, integers"},
                 {"[('a', '<i4')]", {0}, 4, "found a structured type"}};
    const float pixels[4] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_data *none = NULL;
        folder_make(&folder);
        save_raw("images.npy", "'<f4'", "False", "(1, 2, 2)", pixels, sizeof pixels);
        save_raw("labels.npy", cases[i].descr, "False", "(1,)", cases[i].bytes, cases[i].size);
        assert_true(graphi_data_open(folder.path, NULL, &none) != GRAPHI_OK);
        if (!strstr(graphi_message(), cases[i].word))
            fail_msg("message \"%s\" lacks \"%s\"", graphi_message(), cases[i].word);
        folder_remove(&folder);
    }
}

/* Names of other habits: each is the training split with its labels, and what it stands for alone. */
static void arrays_have_usual_names(void **state)
{
    static const struct {
        const char *images, *labels, *test, *test_labels;
    } names[] = {{"train_images.npy", "train_labels.npy", "test_images.npy", "test_labels.npy"},
                 {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"},
                 {"X_train.npy", "y_train.npy", "X_val.npy", "y_val.npy"}};
    const uint8_t pixels[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 6; i++) {
        const int n = i / 2;
        folder_make(&folder);
        for (int test = 0; test < 2; test++) {
            save_raw(test ? names[n].test : names[n].images, "'|u1'", "False", "(2, 2, 2)", pixels, sizeof pixels);
            save_raw(test ? names[n].test_labels : names[n].labels, "'|u1'", "False", "(2,)", "\0\1", 2);
        }
        char path[1024];
        strcpy(path, i % 2 ? folder_name(&folder, names[n].images) : folder.path);
        graphi_data *train = NULL, *other = NULL;
        if (graphi_data_open(path, &(graphi_data_options){.batch = 2, .validation = -1}, &train) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        assert_int_equal(graphi_data_open_split(train, n < 2 ? GRAPHI_TEST : GRAPHI_VALIDATION, 0, &other), GRAPHI_OK);
        graphi_data_close(other);
        graphi_data_close(train);
        folder_remove(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_channel_has_mean_0_and_deviation_1),
        cmocka_unit_test(other_data_have_other_hashes),
        cmocka_unit_test(labels_end_at_the_bound),
        cmocka_unit_test(all_types_of_numpy_are_read),
        cmocka_unit_test(fortran_order_and_old_headers),
        cmocka_unit_test(arrays_are_checked_for_range),
        cmocka_unit_test(arrays_have_usual_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
