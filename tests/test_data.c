/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets: every format, what a batch holds, order and resuming, scaling, and every kind of bad file. */
#include "base/memory.h"
#include "folder.h"
#include "graphi/data.h"
#include "train/npy.h"
#include "train/resample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

static struct folder folder;

enum { COUNT = 40, SIDE = 4, PIXELS = SIDE * SIDE };

/* Image i is filled with i + position; its label is i modulo 5. */
static void make_pixels(uint8_t *pixels, int first, int count)
{
    for (int i = 0; i < count * PIXELS; i++)
        pixels[i] = (uint8_t)(first + i / PIXELS + i % PIXELS);
}

static size_t make_idx(uint8_t *out, int rank, const uint32_t *sizes, const uint8_t *data, size_t bytes)
{
    memcpy(out, (uint8_t[]){0, 0, 8, (uint8_t)rank}, 4);
    for (int i = 0; i < rank; i++)
        for (int b = 0; b < 4; b++)
            out[4 + 4 * i + b] = (uint8_t)(sizes[i] >> (24 - 8 * b));
    memcpy(out + 4 + 4 * rank, data, bytes);
    return 4 + 4 * (size_t)rank + bytes;
}

static void write_maybe_gz(const char *file, const uint8_t *data, size_t size, bool packed)
{
    char name[256];
    uint8_t out[8192];
    snprintf(name, sizeof name, "%s%s", file, packed ? ".gz" : "");
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size, .next_out = out, .avail_out = sizeof out};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    folder_write(&folder, name, packed ? out : data, packed ? z.total_out : size);
    deflateEnd(&z);
}

static void write_idx(bool packed)
{
    uint8_t pixels[COUNT * PIXELS], labels[COUNT], file[1024];
    for (int test = 0; test < 2; test++) {
        int count = test ? 7 : COUNT;
        make_pixels(pixels, test ? 100 : 0, count);
        for (int i = 0; i < count; i++)
            labels[i] = (uint8_t)(i % 5);
        size_t size = make_idx(file, 3, (uint32_t[]){(uint32_t)count, SIDE, SIDE}, pixels, (size_t)count * PIXELS);
        write_maybe_gz(test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte", file, size, packed);
        size = make_idx(file, 1, (uint32_t[]){(uint32_t)count}, labels, (size_t)count);
        write_maybe_gz(test ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte", file, size, packed);
    }
}

static graphi_data *open_or_fail(const char *path, graphi_data_options options)
{
    graphi_data *data = NULL;
    if (graphi_data_open(path, &options, &data) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return data;
}

/* Opening fails with a code, and the message names the file and what was expected. */
static void refused(const char *path, graphi_data_options options, graphi_status expected, const char *word)
{
    graphi_data *data = (graphi_data *)&folder;
    graphi_status got = graphi_data_open(path, &options, &data);
    if (got != expected)
        fail_msg("%s: found %s (%s), expected %s", path, graphi_status_name(got), graphi_message(),
                 graphi_status_name(expected));
    assert_ptr_equal(data, &folder);
    if (!strstr(graphi_message(), word) || !strstr(graphi_message(), "expected"))
        fail_msg("message \"%s\" lacks \"%s\" or \"expected\"", graphi_message(), word);
}

/* A split loses or repeats samples, mixes labels up, or plain and .gz differ. */
static void idx_batches_hold_the_samples(void **state)
{
    for (int packed = 0; packed < 2; packed++) {
        folder_make(&folder);
        write_idx(packed);
        graphi_data *train =
                        open_or_fail(folder.path, (graphi_data_options){.batch = 8, .raw = true, .validation = 0.2}),
                    *other[2];
        graphi_data_info info;
        graphi_data_get_info(train, &info);
        assert_int_equal(info.format, GRAPHI_DATA_IDX);
        assert_int_equal(info.samples, 32);
        assert_int_equal(info.batches, 4);
        assert_int_equal(info.classes, 5);
        assert_int_equal(info.labels, 5);
        assert_true(info.height == SIDE && info.width == SIDE && info.channels == 1);
        assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 3, &other[0]), GRAPHI_OK);
        assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &other[1]), GRAPHI_OK);
        float images[8 * PIXELS];
        int32_t labels[8];
        int64_t rows;
        int seen[COUNT] = {0};
        for (int b = 0; b < 4 + 3; b++) { /* 8 samples in batches of 3: 3, 3, 2 */
            assert_int_equal(graphi_data_next(b < 4 ? train : other[0], images, sizeof images, labels, sizeof labels,
                                              &rows),
                             GRAPHI_OK);
            assert_int_equal(rows, b < 4 ? 8 : b < 6 ? 3 : 2);
            for (int r = 0; r < rows; r++) {
                int sample = (int)lroundf(images[r * PIXELS] * 255);
                seen[sample]++;
                assert_int_equal(labels[r], sample % 5);
                assert_true(fabsf(images[r * PIXELS + 9] * 255 - (float)(sample + 9)) < 1e-4f);
            }
        }
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(seen[i], 1);
        assert_int_equal(graphi_data_get_position(train).epoch, 1);
        assert_int_equal(graphi_data_get_position(train).index, 0);
        graphi_data_close(train); /* the others live on */
        assert_int_equal(graphi_data_next(other[1], images, sizeof images, labels, sizeof labels, &rows), GRAPHI_OK);
        assert_int_equal(rows, 7);
        assert_true(fabsf(images[0] * 255 - 100) < 1e-4f);
        graphi_data_close(other[0]);
        graphi_data_close(other[1]);
        folder_remove(&folder);
    }
}

/* A resumed training sees other batches than the one that was not interrupted, or every epoch has the same order. */
static void position_restores_exactly(void **state)
{
    folder_make(&folder);
    write_idx(false);
    graphi_data_options options = {.batch = 7, .seed = 5, .height = 6, .width = 5, .cache_bytes = 1 << 20};
    graphi_data *one = open_or_fail(folder.path, options), *two = open_or_fail(folder.path, options);
    float a[7 * 30], b[7 * 30], first[7 * 30];
    int32_t la[7], lb[7];
    int64_t rows;
    for (int i = 0; i < 23; i++) {
        graphi_data_position position = graphi_data_get_position(one);
        assert_int_equal(position.epoch, i / 5);
        assert_int_equal(position.index, i % 5);
        graphi_data_next(one, a, sizeof a, la, sizeof la, &rows);
        graphi_data *fresh = open_or_fail(folder.path, options);
        for (int again = 0; again < 2; again++) {
            graphi_data *it = again ? fresh : two;
            assert_int_equal(graphi_data_set_position(it, position), GRAPHI_OK);
            graphi_data_next(it, b, sizeof b, lb, sizeof lb, &rows);
            assert_memory_equal(a, b, sizeof a);
            assert_memory_equal(la, lb, sizeof la);
        }
        graphi_data_close(fresh);
        if (i == 0)
            memcpy(first, a, sizeof a);
        if (i == 5)
            assert_memory_not_equal(first, a, sizeof a);
    }
    assert_int_equal(graphi_data_set_position(one, (graphi_data_position){0, 5}), GRAPHI_INVALID);
    assert_int_equal(graphi_data_set_position(one, (graphi_data_position){-1, 0}), GRAPHI_INVALID);
    graphi_data_close(one);
    graphi_data_close(two);
    folder_remove(&folder);
}

/* The training step allocates, or the cache changes what a batch holds. */
static void batches_allocate_nothing(void **state)
{
    folder_make(&folder);
    write_idx(true);
    graphi_data *plain =
        open_or_fail(folder.path, (graphi_data_options){.batch = 6, .height = 9, .width = 9, .channels = 3});
    graphi_data *cached = open_or_fail(
        folder.path,
        (graphi_data_options){.batch = 6, .height = 9, .width = 9, .channels = 3, .cache_bytes = 36 * 81 * 4});
    float a[6 * 243], b[6 * 243];
    int32_t labels[6];
    int64_t rows;
    uint64_t before = mem_allocations();
    for (int i = 0; i < 14; i++) {
        graphi_data_next(plain, a, sizeof a, labels, sizeof labels, &rows);
        graphi_data_next(cached, b, sizeof b, labels, sizeof labels, &rows);
        assert_memory_equal(a, b, sizeof a);
        for (int p = 0; p < 6 * 243; p += 3)
            assert_true(a[p] == a[p + 1] && a[p] == a[p + 2]);
    }
    assert_int_equal(mem_allocations(), before);
    graphi_data_close(plain);
    graphi_data_close(cached);
    folder_remove(&folder);
}

static uint64_t hash_of(graphi_data_options options)
{
    graphi_data *data = open_or_fail(folder.path, options);
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    graphi_data_close(data);
    return info.hash;
}

/* Other images with the same labels, mean and deviation are taken for the same data: training goes on with them. */
static void hash_is_of_the_pixels(void **state)
{
    const graphi_data_options options[] = {{.batch = 8}, {.batch = 8, .raw = true}};
    uint8_t pixels[COUNT * PIXELS], file[1024];
    uint64_t hash[2];
    folder_make(&folder);
    write_idx(false);
    for (int raw = 0; raw < 2; raw++)
        hash[raw] = hash_of(options[raw]);
    assert_true(hash[0] != hash[1]);
    make_pixels(pixels, 0, COUNT);
    uint8_t first = pixels[0];
    pixels[0] = pixels[1];
    pixels[1] = first;
    size_t size = make_idx(file, 3, (uint32_t[]){COUNT, SIDE, SIDE}, pixels, sizeof pixels);
    write_maybe_gz("train-images-idx3-ubyte", file, size, false);
    for (int raw = 0; raw < 2; raw++)
        assert_true(hash_of(options[raw]) != hash[raw]);
    write_idx(true); /* the first again, packed: beside it plain files are taken */
    assert_int_equal(unlink(folder_name(&folder, "train-images-idx3-ubyte")), 0);
    for (int raw = 0; raw < 2; raw++)
        assert_true(hash_of(options[raw]) == hash[raw]);
    folder_remove(&folder);
}

/* Normalised training images have another mean than 0 or deviation than 1. */
static void normalisation_is_of_the_training_split(void **state)
{
    folder_make(&folder);
    write_idx(false);
    graphi_data *data = open_or_fail(folder.path, (graphi_data_options){.batch = 36, .ordered = true});
    float images[36 * PIXELS];
    int32_t labels[36];
    int64_t rows;
    graphi_data_next(data, images, sizeof images, labels, sizeof labels, &rows);
    double sum = 0, squares = 0;
    for (int i = 0; i < 36 * PIXELS; i++) {
        sum += (double)images[i];
        squares += (double)images[i] * (double)images[i];
    }
    assert_true(fabs(sum / (36 * PIXELS)) < 1e-5);
    assert_true(fabs(squares / (36 * PIXELS) - 1) < 1e-5);
    for (int r = 1; r < 36; r++)
        assert_true(images[r * PIXELS] > images[(r - 1) * PIXELS]); /* in the order of the file */
    graphi_data_close(data);
    folder_remove(&folder);
}

/* Scaling reads at other places than PyTorch; the numbers are interpolate(mode="bilinear", align_corners=False)'s,
 * worked out from its definition by hand. */
static void scaling_has_half_pixel_centres(void **state)
{
    static const float in[4] = {0, 1, 2, 3};
    static const float up[16] = {0,    0.25f, 0.75f, 1,    0.5f, 0.75f, 1.25f, 1.5f,
                                 1.5f, 1.75f, 2.25f, 2.5f, 2,    2.25f, 2.75f, 3};
    static const float down[1] = {1.5f};
    struct resampler r;
    float out[16];
    assert_int_equal(resampler_init(&r, 2, 2, 4, 4), GRAPHI_OK);
    resample(&r, 1, in, out);
    assert_memory_equal(out, up, sizeof up);
    resampler_free(&r);
    assert_int_equal(resampler_init(&r, 2, 2, 1, 1), GRAPHI_OK);
    resample(&r, 1, in, out);
    assert_memory_equal(out, down, sizeof down);
    resampler_free(&r);
    assert_int_equal(resampler_init(&r, 1, 4, 1, 2), GRAPHI_OK); /* no smoothing: between pixels 0 and 1, 2 and 3 */
    resample(&r, 1, in, out);
    assert_true(out[0] == 0.5f && out[1] == 2.5f);
    resampler_free(&r);
    assert_int_equal(resampler_init(&r, 1, 2, 1, 4), GRAPHI_OK); /* two channels */
    resample(&r, 2, in, out);
    assert_memory_equal(out, ((float[]){0, 1, 0.5f, 1.5f, 1.5f, 2.5f, 2, 3}), 8 * sizeof *out);
    resampler_free(&r);
}

/* Planes are taken for interleaved colours, or the batches of a folder for test data. */
static void cifar_folders_are_read(void **state)
{
    enum { RECORD = 3073 };
    folder_make(&folder);
    static uint8_t file[3 * RECORD];
    for (int batch = 0; batch < 3; batch++) {
        for (int i = 0; i < 3; i++) {
            uint8_t *record = file + i * RECORD;
            record[0] = (uint8_t)(batch * 3 + i);
            for (int p = 0; p < 3072; p++)
                record[1 + p] = (uint8_t)(p / 1024 * 50 + p % 32 + record[0]);
        }
        folder_write(&folder,
                     batch == 2 ? "test_batch.bin"
                     : batch    ? "data_batch_2.bin"
                                : "data_batch_1.bin",
                     file, sizeof file);
    }
    graphi_data *train =
        open_or_fail(folder.path, (graphi_data_options){.batch = 6, .raw = true, .ordered = true, .validation = -1});
    graphi_data *test, *none;
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 3, &test), GRAPHI_OK);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 3, &none), GRAPHI_UNSUPPORTED);
    graphi_data_info info;
    graphi_data_get_info(train, &info);
    assert_true(info.format == GRAPHI_DATA_CIFAR && info.classes == 10 && info.channels == 3 && info.height == 32);
    static float images[6 * 3072];
    int32_t labels[6];
    int64_t rows;
    for (int t = 0; t < 2; t++) {
        graphi_data_next(t ? test : train, images, sizeof images, labels, sizeof labels, &rows);
        assert_int_equal(rows, t ? 3 : 6);
        for (int r = 0; r < rows; r++) {
            assert_int_equal(labels[r], t * 6 + r);
            for (int c = 0; c < 3; c++)
                assert_true(fabsf(images[r * 3072 + 33 * 3 + c] * 255 - (float)(c * 50 + 1 + labels[r])) < 1e-4f);
        }
    }
    graphi_data_close(train);
    graphi_data_close(test);
    char path[1024];
    strcpy(path, folder_name(&folder, "data_batch_2.bin"));
    graphi_data *single = open_or_fail(path, (graphi_data_options){.batch = 3, .ordered = true, .validation = -1});
    graphi_data_next(single, images, sizeof images, labels, sizeof labels, &rows);
    assert_true(labels[0] == 3 && labels[2] == 5);
    graphi_data_close(single);
    refused(path, (graphi_data_options){.batch = 3, .split = GRAPHI_TEST}, GRAPHI_UNSUPPORTED, "test");
    file[RECORD] = 10;
    folder_write(&folder, "data_batch_2.bin", file, sizeof file);
    refused(folder.path, (graphi_data_options){.batch = 3}, GRAPHI_INVALID, "label 10");
    folder_write(&folder, "data_batch_2.bin", file, RECORD - 1);
    refused(folder.path, (graphi_data_options){.batch = 3}, GRAPHI_INVALID, "data_batch_2.bin: found 3072 bytes");
    folder_write(&folder, "data_batch_2.bin", file, 0);
    refused(folder.path, (graphi_data_options){.batch = 3}, GRAPHI_INVALID, "found 0 bytes");
    folder_remove(&folder);
}

static void save_npy(const char *file, enum npy_type type, int rank, const int64_t *dims, const void *data)
{
    assert_int_equal(npy_save(folder_name(&folder, file), type, rank, dims, data), GRAPHI_OK);
}

/* Arrays of floats are scaled like bytes, or labels of the wrong width are read; a test set that does not match is
 * taken. */
static void npy_folders_are_read(void **state)
{
    folder_make(&folder);
    static const float images[4 * 2 * 3 * 2] = {[0] = -5, [1] = 2, [12] = 7};
    static const int64_t labels[4] = {3, 1, 2, 0};
    static const int32_t test_labels[2] = {1, 3}, bad_labels[2] = {1, 4}, negative[4] = {0, -1, 2, 3};
    save_npy("images.npy", NPY_F4, 4, (int64_t[]){4, 2, 3, 2}, images);
    save_npy("labels.npy", NPY_I8, 1, (int64_t[]){4}, labels);
    graphi_data_options options = {.batch = 4, .raw = true, .ordered = true, .validation = -1};
    graphi_data *train = open_or_fail(folder.path, options), *test;
    float out[48];
    int32_t got[4];
    int64_t rows;
    graphi_data_next(train, out, sizeof out, got, sizeof got, &rows);
    assert_memory_equal(out, images, sizeof out);
    assert_true(got[0] == 3 && got[1] == 1 && got[2] == 2 && got[3] == 0);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_UNSUPPORTED);
    save_npy("test_images.npy", NPY_F4, 4, (int64_t[]){2, 4, 3, 2}, images); /* of another height: scaled */
    save_npy("test_labels.npy", NPY_I4, 1, (int64_t[]){2}, test_labels);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_OK);
    graphi_data_next(test, out, sizeof out, got, sizeof got, &rows);
    assert_true(rows == 2 && got[1] == 3);
    graphi_data_close(test);
    save_npy("test_labels.npy", NPY_I4, 1, (int64_t[]){2}, bad_labels);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "test_labels.npy: found label 4 at 1, expected 0 to 3"));
    save_npy("test_labels.npy", NPY_I4, 1, (int64_t[]){2}, test_labels);
    save_npy("test_images.npy", NPY_F4, 4, (int64_t[]){2, 2, 3, 1}, images);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_INVALID);
    graphi_data_close(train);
    refused(folder.path, (graphi_data_options){.batch = 1, .classes = 3}, GRAPHI_INVALID, "label 3 at 0");
    refused(folder.path, (graphi_data_options){.batch = 1, .channels = 3}, GRAPHI_INVALID, "2 channels");
    save_npy("labels.npy", NPY_I4, 1, (int64_t[]){4}, negative);
    refused(folder.path, options, GRAPHI_INVALID, "labels.npy: found label -1 at 1");
    save_npy("labels.npy", NPY_I4, 1, (int64_t[]){2}, negative);
    refused(folder.path, options, GRAPHI_INVALID, "found 2 labels, expected 4");
    save_npy("labels.npy", NPY_F4, 1, (int64_t[]){4}, images);
    refused(folder.path, options, GRAPHI_INVALID, "found label -5 at 0"); /* of floats the whole ones */
    save_npy("images.npy", NPY_F4, 2, (int64_t[]){4, 12}, images);
    refused(folder.path, options, GRAPHI_INVALID, "rank 2");
    save_npy("images.npy", NPY_F4, 4, (int64_t[]){0, 2, 3, 2}, images);
    refused(folder.path, options, GRAPHI_INVALID, "0 images");
    float infinite[12] = {[7] = INFINITY};
    save_npy("images.npy", NPY_F4, 4, (int64_t[]){1, 2, 3, 2}, infinite);
    refused(folder.path, options, GRAPHI_INVALID, "inf at element 7");
    unlink(folder_name(&folder, "labels.npy"));
    save_npy("images.npy", NPY_F4, 4, (int64_t[]){4, 2, 3, 2}, images);
    refused(folder.path, options, GRAPHI_IO, "labels.npy");
    folder_remove(&folder);
}

/* Every damage of an IDX file that was thought of, plain and packed: nothing is believed, nothing is allocated for a
 * lie. */
static void bad_idx_files_are_refused(void **state)
{
    uint8_t pixels[6 * PIXELS] = {0}, labels[6] = {0, 1, 2, 3, 4, 5}, images_file[256], file[256];
    graphi_data_options options = {.batch = 1};
    size_t images_size = make_idx(images_file, 3, (uint32_t[]){6, SIDE, SIDE}, pixels, sizeof pixels);
    for (int packed = 0; packed < 2; packed++) {
        const struct {
            uint32_t sizes[3];
            int rank;
            size_t bytes;
            const char *word;
        } cases[] = {
            {{6, 4, 4}, 3, 95, packed ? "95 bytes of pixels" : "at most 95 values"},
            {{6, 4, 4}, 1, 96, "magic number 0x00000801, expected 0x00000803"},
            {{0, 4, 4}, 3, 0, "0 images"},
            {{6, 0, 4}, 3, 0, "0x4"},
            {{6, 4, 4}, 2, 96, "0x00000802"},
            {{0x80000000u, 0x80000000u, 0x80000000u}, 3, 96, "2147483648 images"},
            {{0x20000000, 16384, 16384}, 3, 96, "expected 144115188075855872"},
            {{6, 0xffffffffu, 4}, 3, 96, "4294967295x4"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            folder_make(&folder);
            size_t size = make_idx(file, cases[i].rank, cases[i].sizes, pixels, cases[i].bytes);
            write_maybe_gz("train-images-idx3-ubyte", file, size, packed);
            uint64_t before = mem_allocations();
            refused(folder.path, options, GRAPHI_INVALID, cases[i].word);
            assert_true(mem_allocations() - before < 20);
            folder_remove(&folder);
        }
        folder_make(&folder);
        write_maybe_gz("train-images-idx3-ubyte", images_file, images_size, packed);
        refused(folder.path, options, GRAPHI_IO, "train-labels-idx1-ubyte");
        write_maybe_gz("train-labels-idx1-ubyte", file, make_idx(file, 1, (uint32_t[]){5}, labels, 5), packed);
        refused(folder.path, options, GRAPHI_INVALID, "found 5 labels, expected 6");
        write_maybe_gz("train-labels-idx1-ubyte", file, make_idx(file, 1, (uint32_t[]){6}, labels, 5), packed);
        refused(folder.path, options, GRAPHI_INVALID, "labels before the file ends");
        write_maybe_gz("train-labels-idx1-ubyte", file, make_idx(file, 1, (uint32_t[]){6}, labels, 6), packed);
        refused(folder.path, (graphi_data_options){.batch = 1, .classes = 5}, GRAPHI_INVALID,
                "label 5 at 5, expected 0 to 4");
        refused(folder.path, (graphi_data_options){.batch = 100}, GRAPHI_INVALID, "batch of 100");
        graphi_data_close(open_or_fail(folder.path, options));
        images_file[images_size] = 0; /* one byte more than declared: a bomb, or another file's end */
        write_maybe_gz("train-images-idx3-ubyte", images_file, images_size + 1, packed);
        refused(folder.path, options, GRAPHI_INVALID, packed ? "more data than the header declares" : "1 bytes behind");
        folder_remove(&folder);
    }
}

/* A cut or altered .gz is read as pixels. */
static void damaged_gzip_is_refused(void **state)
{
    folder_make(&folder);
    write_idx(true);
    uint8_t whole[1024], part[1024];
    FILE *file = fopen(folder_name(&folder, "train-images-idx3-ubyte.gz"), "rb");
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut++) {
        folder_write(&folder, "train-images-idx3-ubyte.gz", whole, cut);
        refused(folder.path, (graphi_data_options){.batch = 1}, GRAPHI_INVALID, "train-images-idx3-ubyte.gz");
    }
    for (size_t at = 10; at < size; at++) { /* behind the header, whose time stamp nobody reads */
        memcpy(part, whole, size);
        part[at] ^= 0x40;
        folder_write(&folder, "train-images-idx3-ubyte.gz", part, size);
        refused(folder.path, (graphi_data_options){.batch = 1}, GRAPHI_INVALID, "train-images-idx3-ubyte.gz");
    }
    folder_remove(&folder);
}

/* A batch is written over the end of memory whose size the caller told. */
static void batches_do_not_outgrow_memory(void **state)
{
    folder_make(&folder);
    write_idx(false);
    folder_write(&folder, "train.txt", "a b c d e f g h i j k l m n o p q r s t\n", 40);
    for (int text = 0; text < 2; text++) {
        graphi_data *data = open_or_fail(folder.path, (graphi_data_options){.format = text ? GRAPHI_DATA_TEXT
                                                                                           : GRAPHI_DATA_IMAGES,
                                                                            .batch = 2, .steps = 3});
        const size_t inputs = text ? 6 : 2 * PIXELS, targets = text ? 6 : 2;
        float in[2 * PIXELS + 1];
        int32_t out[7];
        int64_t rows;
        for (int part = 0; part < 2; part++) {
            memset(in, 0xee, sizeof in);
            assert_int_equal(graphi_data_next(data, in, (inputs - !part) * 4, out, (targets - part) * 4, &rows),
                             GRAPHI_INVALID);
            assert_non_null(strstr(graphi_message(), part ? "for the targets" : "for the inputs"));
            assert_int_equal(((unsigned char *)in)[0], 0xee);
            assert_int_equal(graphi_data_get_position(data).index, 0);
        }
        assert_int_equal(graphi_data_next(data, in, inputs * 4, out, targets * 4, &rows), GRAPHI_OK);
        assert_int_equal(((unsigned char *)(in + inputs))[0], 0xee);
        graphi_data_close(data);
    }
    folder_remove(&folder);
}

/* Text is taken for images or images for text, where it was said which is wanted. */
static void the_other_kind_is_refused(void **state)
{
    folder_make(&folder);
    char path[1024];
    strcpy(path, folder_write(&folder, "train.txt", "a b c\n", 6));
    refused(path, (graphi_data_options){.format = GRAPHI_DATA_IMAGES}, GRAPHI_INVALID, "found text, expected images");
    refused(folder.path, (graphi_data_options){.format = GRAPHI_DATA_IMAGES}, GRAPHI_INVALID, "found text");
    static const char *const names[] = {"batch.bin", "images.npy", "train-images-idx3-ubyte"};
    for (int i = 0; i < 3; i++) {
        strcpy(path, folder_write(&folder, names[i], "a b c\n", 6));
        refused(path, (graphi_data_options){.format = GRAPHI_DATA_TEXT}, GRAPHI_INVALID, "found images, expected text");
    }
    folder_remove(&folder);
}

/* Validation text that is held out and too short for a batch is no split; a file that is too short is a broken one. */
static void short_validation_text(void **state)
{
    folder_make(&folder);
    char path[1024];
    graphi_data *other;
    strcpy(path, folder_write(&folder, "train.txt", "a b c d e f g h i j k l m n o p q r s t\n", 40));
    graphi_data *train = open_or_fail(path, (graphi_data_options){.batch = 2, .steps = 3});
    assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 0, &other), GRAPHI_UNSUPPORTED);
    graphi_data_close(train);
    folder_write(&folder, "valid.txt", "a b\n", 4);
    train = open_or_fail(folder.path, (graphi_data_options){.batch = 2, .steps = 3});
    assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 0, &other), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "valid.txt"));
    graphi_data_close(train);
    folder_remove(&folder);
}

/* The vocabulary's order, the split, the rows or the targets are not those of the PTB tutorial. */
static void words_are_numbered_and_cut_into_rows(void **state)
{
    folder_make(&folder);
    const char *text = " b a b c \n a b d \n a \xff b e\n"; /* b 4, a 3, <eos> 3, then c, d, e, \xff once each */
    folder_write(&folder, "train.txt", text, strlen(text));
    folder_write(&folder, "valid.txt", "a z b\n\n", 7);
    graphi_data *train = open_or_fail(folder.path, (graphi_data_options){.batch = 2, .steps = 3}), *valid, *none;
    graphi_data_info info;
    graphi_data_get_info(train, &info);
    assert_true(info.format == GRAPHI_DATA_TEXT && info.samples == 14 && info.batches == 2 && info.classes == 8);
    static const char *const words[8] = {"b", "<eos>", "a", "c", "d", "e", "\xff", "<unk>"};
    for (int i = 0; i < 8; i++) {
        size_t length;
        assert_string_equal(graphi_data_word(train, i, &length), words[i]);
        assert_int_equal(length, strlen(words[i]));
    }
    assert_null(graphi_data_word(train, 8, NULL));
    assert_null(graphi_data_word(train, -1, NULL));
    int32_t in[6], out[6];
    int64_t rows;
    /* b a b c <eos> a b | d <eos> a \xff b e <eos> */
    graphi_data_next(train, in, sizeof in, out, sizeof out, &rows);
    assert_memory_equal(in, ((int32_t[]){0, 2, 0, 4, 1, 2}), sizeof in);
    assert_memory_equal(out, ((int32_t[]){2, 0, 3, 1, 2, 6}), sizeof out);
    graphi_data_next(train, in, sizeof in, out, sizeof out, &rows);
    assert_memory_equal(in, ((int32_t[]){3, 1, 2, 6, 0, 5}), sizeof in);
    assert_memory_equal(out, ((int32_t[]){1, 2, 0, 0, 5, 1}), sizeof out);
    assert_int_equal(rows, 2);
    assert_int_equal(graphi_data_get_position(train).epoch, 1);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 1, &valid), GRAPHI_OK);
    graphi_data_next(valid, in, sizeof in, out, sizeof out, &rows);
    assert_memory_equal(in, ((int32_t[]){2, 7, 0}), 12); /* z is <unk> */
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 1, &none), GRAPHI_UNSUPPORTED);
    graphi_data_close(train);
    assert_string_equal(graphi_data_word(valid, 0, NULL), "b");
    graphi_data_close(valid);
    graphi_data *cut = open_or_fail(folder.path, (graphi_data_options){.batch = 1, .steps = 4, .vocabulary = 3});
    assert_string_equal(graphi_data_word(cut, 0, NULL), "b");
    assert_string_equal(graphi_data_word(cut, 2, NULL), "<unk>");
    graphi_data_next(cut, in, sizeof in, out, sizeof out, &rows);
    assert_memory_equal(in, ((int32_t[]){0, 2, 0, 2}), 16);
    graphi_data_close(cut);
    folder_remove(&folder);
}

/* Characters are bytes, or a broken UTF-8 sequence swallows its neighbour; what is held out of a single file is in the
 * vocabulary. */
static void characters_of_any_bytes(void **state)
{
    folder_make(&folder);
    char path[1024];
    const char *text = "aaaa\xc3\xa4\xc3\xa4\xc3"
                       "bbb\n\xe2\x82\xac\xe2\x82";
    strcpy(path, folder_write(&folder, "any", text, strlen(text)));
    graphi_data *train =
        open_or_fail(path, (graphi_data_options){.batch = 1, .steps = 2, .characters = true, .validation = 0.3});
    graphi_data *valid;
    graphi_data_info info;
    graphi_data_get_info(train, &info);
    static const char *const words[] = {"a", "b", "\xc3\xa4", "\xc3", "<unk>"}; /* of what is not held out */
    assert_int_equal(info.classes, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(graphi_data_word(train, i, NULL), words[i]);
    assert_int_equal(info.samples, 10); /* 14, of which 4.2 are held out */
    assert_int_equal(graphi_data_open_split(train, GRAPHI_VALIDATION, 0, &valid), GRAPHI_OK);
    int32_t in[2], out[2];
    int64_t rows;
    graphi_data_next(valid, in, sizeof in, out, sizeof out, &rows);
    assert_memory_equal(in, ((int32_t[]){4, 4}), sizeof in);
    graphi_data_close(train);
    graphi_data_close(valid);
    train = open_or_fail(path, (graphi_data_options){.batch = 1, .steps = 2, .characters = true, .validation = -1});
    static const char *const all[] = {"a", "b", "\xc3\xa4", "\n", "\x82", "\xc3", "\xe2", "\xe2\x82\xac", "<unk>"};
    for (int i = 0; i < 9; i++)
        assert_string_equal(graphi_data_word(train, i, NULL), all[i]);
    graphi_data_close(train);
    refused(path, (graphi_data_options){.batch = 1, .steps = 20, .characters = true}, GRAPHI_INVALID,
            "expected at least 21");
    refused(path, (graphi_data_options){.batch = 50, .steps = 2, .characters = true}, GRAPHI_INVALID, "50 rows");
    refused(path, (graphi_data_options){.vocabulary = 1}, GRAPHI_INVALID, "limit of 1");
    strcpy(path, folder_write(&folder, "empty", "", 0));
    refused(path, (graphi_data_options){.batch = 1}, GRAPHI_INVALID, "no word");
    strcpy(path, folder_write(&folder, "blank", " \t \f ", 5));
    refused(path, (graphi_data_options){.batch = 1}, GRAPHI_INVALID, "no word");
    folder_remove(&folder);
}

/* One file is named instead of its folder: its labels and its test set are looked for under other names. */
static void single_files_find_their_neighbours(void **state)
{
    static const struct {
        const char *file, *labels; /* renamed to; NULL: as they are */
        bool packed, test;
    } cases[] = {{"train-images-idx3-ubyte", NULL, false, true},
                 {"train-images-idx3-ubyte.gz", NULL, true, true},
                 {"my-images-idx3-ubyte", "my-labels-idx1-ubyte", false, false},
                 {"digits-idx3-ubyte", "digits-idx3-ubyte-labels", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[256], other[256];
        folder_make(&folder);
        write_idx(cases[i].packed);
        strcpy(path, folder_name(&folder, cases[i].file));
        if (cases[i].labels) {
            strcpy(other, folder_name(&folder, "train-images-idx3-ubyte"));
            assert_int_equal(rename(other, path), 0);
            strcpy(other, folder_name(&folder, "train-labels-idx1-ubyte"));
            assert_int_equal(rename(other, folder_name(&folder, cases[i].labels)), 0);
        }
        graphi_data *train = open_or_fail(path, (graphi_data_options){.batch = 4}), *test = NULL;
        graphi_data_info info;
        graphi_data_get_info(train, &info);
        assert_true(info.format == GRAPHI_DATA_IDX && info.samples == COUNT - COUNT / 10 && info.labels == 5);
        graphi_status status = graphi_data_open_split(train, GRAPHI_TEST, 0, &test);
        assert_int_equal(status, cases[i].test ? GRAPHI_OK : GRAPHI_UNSUPPORTED);
        assert_int_equal(graphi_data_open_split(train, (graphi_data_split)9, 0, &test), GRAPHI_INVALID);
        assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, -1, &test), GRAPHI_INVALID);
        graphi_data_close(test);
        graphi_data_close(train);
        folder_remove(&folder);
    }
    folder_make(&folder);
    /* those beside it are other data than were asked for */
    refused(folder_write(&folder, "weights.npy", "", 0), (graphi_data_options){0}, GRAPHI_INVALID, "images.npy");
    refused(folder_write(&folder, "images.npy", "", 0), (graphi_data_options){0}, GRAPHI_INVALID, "images.npy");
    refused(folder_name(&folder, "weights.npy"), (graphi_data_options){0}, GRAPHI_INVALID, "a file named weights.npy");
    folder_remove(&folder);
}

/* A wrong path says nothing of where data come from; wrong options are taken. */
static void paths_and_options_are_checked(void **state)
{
    folder_make(&folder);
    refused("/nowhere/fashion-mnist", (graphi_data_options){0}, GRAPHI_IO, "Debian package dataset-fashion-mnist");
    refused(folder.path, (graphi_data_options){0}, GRAPHI_INVALID, "Debian package dataset-fashion-mnist");
    refused("/dev/null", (graphi_data_options){0}, GRAPHI_INVALID, "regular file");
    write_idx(false);
    refused(folder.path, (graphi_data_options){.format = GRAPHI_DATA_CIFAR}, GRAPHI_INVALID, "no training files");
    static const graphi_data_options wrong[] = {
        {.batch = -1},
        {.batch = (int64_t)1 << 40},
        {.height = 1 << 20},
        {.width = -3},
        {.channels = 17},
        {.steps = -1},
        {.validation = 1},
        {.validation = NAN},
        {.split = (graphi_data_split)7},
        {.classes = -1},
        {.format = (graphi_data_format)9},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refused(folder.path, wrong[i], GRAPHI_INVALID, "found");
    folder_remove(&folder);
}

/* Opens everything that a path has, with allocation n failing; gives the status. */
static graphi_status open_failing(const char *path, long n, graphi_data_split split)
{
    graphi_data_options options = {
        .batch = 2, .steps = 2, .height = 5, .width = 5, .cache_bytes = 1 << 20, .split = split, .vocabulary = 4};
    graphi_data *data = (graphi_data *)&folder;
    mem_fail_after(n);
    graphi_status status = graphi_data_open(path, &options, &data);
    mem_fail_after(-1);
    if (status == GRAPHI_OK)
        graphi_data_close(data);
    else
        assert_ptr_equal(data, &folder);
    return status;
}

/* Out of memory at any point of any open leaks, crashes or is taken for bad data. */
static void allocation_failures_are_reported(void **state)
{
    static uint8_t records[6 * 3073];
    static const uint8_t images[6 * 12] = {0}, text[] = "one two two three three three four four four four\nfive six\n";
    static const int32_t labels[6] = {0};
    for (int format = 0; format < 5; format++) {
        folder_make(&folder);
        if (format < 2)
            write_idx(format == 1);
        if (format == 2) {
            folder_write(&folder, "a.bin", records, sizeof records);
            folder_write(&folder, "test.bin", records, sizeof records);
        }
        if (format == 3)
            for (int test = 0; test < 2; test++) {
                save_npy(test ? "test_images.npy" : "images.npy", NPY_U1, 4, (int64_t[]){6, 2, 2, 3}, images);
                save_npy(test ? "test_labels.npy" : "labels.npy", NPY_I4, 1, (int64_t[]){6}, labels);
            }
        if (format == 4) {
            folder_write(&folder, "train.txt", text, sizeof text);
            folder_write(&folder, "test.txt", text, sizeof text);
        }
        for (int split = 0; split < 2; split++) {
            graphi_status status = GRAPHI_MEMORY;
            for (long n = 0; status != GRAPHI_OK; n++) {
                status = open_failing(folder.path, n, split ? GRAPHI_TEST : GRAPHI_TRAIN);
                if (status != GRAPHI_OK && status != GRAPHI_MEMORY)
                    fail_msg("format %d, allocation %ld: %s", format, n, graphi_message());
                assert_true(n < 200);
            }
        }
        folder_remove(&folder);
    }
}

/* The Debian package's files are not understood. Skipped where it is not installed. */
static void fashion_mnist_is_read(void **state)
{
    const char *path = "/usr/share/datasets/fashion-mnist";
    if (access(path, R_OK) != 0)
        skip();
    graphi_data *data =
                    open_or_fail(path, (graphi_data_options){.batch = 64, .height = 32, .width = 32, .channels = 3}),
                *test;
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    assert_int_equal(info.samples, 54000);
    assert_int_equal(info.classes, 10);
    assert_true(fabsf(info.mean[0] - 0.286f) < 0.002f && fabsf(info.std[0] - 0.353f) < 0.002f);
    assert_int_equal(graphi_data_open_split(data, GRAPHI_TEST, 100, &test), GRAPHI_OK);
    graphi_data_get_info(test, &info);
    assert_int_equal(info.samples, 10000);
    assert_int_equal(info.batches, 100);
    graphi_data_close(data);
    graphi_data_close(test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_batches_hold_the_samples),
        cmocka_unit_test(position_restores_exactly),
        cmocka_unit_test(batches_allocate_nothing),
        cmocka_unit_test(hash_is_of_the_pixels),
        cmocka_unit_test(normalisation_is_of_the_training_split),
        cmocka_unit_test(scaling_has_half_pixel_centres),
        cmocka_unit_test(cifar_folders_are_read),
        cmocka_unit_test(npy_folders_are_read),
        cmocka_unit_test(bad_idx_files_are_refused),
        cmocka_unit_test(damaged_gzip_is_refused),
        cmocka_unit_test(batches_do_not_outgrow_memory),
        cmocka_unit_test(the_other_kind_is_refused),
        cmocka_unit_test(short_validation_text),
        cmocka_unit_test(words_are_numbered_and_cut_into_rows),
        cmocka_unit_test(characters_of_any_bytes),
        cmocka_unit_test(single_files_find_their_neighbours),
        cmocka_unit_test(paths_and_options_are_checked),
        cmocka_unit_test(allocation_failures_are_reported),
        cmocka_unit_test(fashion_mnist_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
