/* SPDX-License-Identifier: Apache-2.0 */
/* Files as people have them: packed, with other line ends, marks and encodings, under other names. Public reports of
 * other projects tell each of these; what went wrong there was never said. */
#include "folder.h"
#include "graphi/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <zlib.h>
#include <cmocka.h>

static struct folder folder;

static const char poem[] = "sun moon\nstar sun\nrain sun\nsun moon\nwind sun\nleaf sun\n";
enum { TOKENS = 18, TEXT = sizeof poem - 1 };

static graphi_data *open_or_fail(const char *path, graphi_data_options options)
{
    graphi_data *data = NULL;
    if (graphi_data_open(path, &options, &data) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return data;
}

static void refused(const char *path, const char *word)
{
    graphi_data *data = NULL;
    assert_int_equal(graphi_data_open(path, &(graphi_data_options){.batch = 1, .steps = 2, .validation = -1}, &data),
                     GRAPHI_INVALID);
    if (!strstr(graphi_message(), word))
        fail_msg("message \"%s\" lacks \"%s\"", graphi_message(), word);
}

/* Appends a gzip member. */
static size_t pack(uint8_t *out, size_t room, const void *data, size_t size)
{
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size, .next_out = out, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t packed = z.total_out;
    deflateEnd(&z);
    return packed;
}

static void read_text(const char *path, bool characters, graphi_data_info *info)
{
    graphi_data *data =
        open_or_fail(path, (graphi_data_options){.batch = 1, .steps = 2, .validation = -1, .characters = characters});
    graphi_data_get_info(data, info);
    graphi_data_close(data);
}

/* Line ends, marks and packing are read as part of the words: the same text then has other tokens. */
static void texts_are_the_same(void **state)
{
    char lines[7][512];
    size_t sizes[7] = {0};
    graphi_data_info plain, info;
    folder_make(&folder);
    read_text(folder_write(&folder, "text.txt", poem, TEXT), false, &plain);
    assert_int_equal(plain.samples, TOKENS);
    static const char *const ends[] = {"\r", "\r\n", "\n"}, *const begins[] = {"", "", "\xef\xbb\xbf"};
    for (int way = 0; way < 3; way++) {
        sizes[way] = (size_t)sprintf(lines[way], "%s", begins[way]);
        for (const char *c = poem; *c; c++)
            sizes[way] += (size_t)sprintf(lines[way] + sizes[way], "%.*s", *c == '\n' ? (int)strlen(ends[way]) : 1,
                                          *c == '\n' ? ends[way] : c);
    }
    sizes[3] = pack((uint8_t *)lines[3], sizeof lines[3], poem, TEXT);
    sizes[4] = pack((uint8_t *)lines[4], sizeof lines[4], poem, TEXT / 2);
    sizes[4] += pack((uint8_t *)lines[4] + sizes[4], sizeof lines[4] - sizes[4], "", 0);
    sizes[4] += pack((uint8_t *)lines[4] + sizes[4], sizeof lines[4] - sizes[4], poem + TEXT / 2, TEXT - TEXT / 2);
    memcpy(lines[5], lines[4], sizes[4]);
    memset(lines[5] + sizes[4], 0, 20); /* as a tape fills its last block */
    sizes[5] = sizes[4] + 20;
    sizes[6] = pack((uint8_t *)lines[6], sizeof lines[6], lines[2], sizes[2]);
    for (int way = 0; way < 7; way++)
        for (int characters = 0; characters < 2; characters++) {
            read_text(folder_write(&folder, "text.txt", poem, TEXT), characters, &plain);
            read_text(folder_write(&folder, "other", lines[way], sizes[way]), characters, &info);
            if (info.samples != plain.samples || info.hash != plain.hash)
                fail_msg("way %d: found %lld tokens, expected %lld with the same hash", way, (long long)info.samples,
                         (long long)plain.samples);
        }
    folder_remove(&folder);
}

/* Two texts with a mark each, one behind the other: the second mark would be part of a word. */
static void marks_of_joined_texts_are_skipped(void **state)
{
    static const char joined[] = "\xef\xbb\xbfsun moon\n\xef\xbb\xbfsun moon\n", plain[] = "sun moon\nsun moon\n";
    graphi_data_info a, b;
    folder_make(&folder);
    read_text(folder_write(&folder, "a", joined, sizeof joined - 1), false, &a);
    read_text(folder_write(&folder, "b", plain, sizeof plain - 1), false, &b);
    assert_true(a.samples == 6 && a.hash == b.hash);
    folder_remove(&folder);
}

/* A network learns an archive as it learns a text. */
static void other_bytes_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *word;
    } kinds[] = {{"PK\3\4....................", 24, "zip archive"},
                 {"BZh91AY&SY..............", 24, "bzip2"},
                 {"\xfd"
                  "7zXZ\0..................",
                  24, "xz data"},
                 {"\x28\xb5\x2f\xfd....................", 24, "Zstandard"},
                 {"\x93NUMPY\1\0................", 24, "NumPy array"},
                 {"\x89PNG\r\n\x1a\n................", 24, "PNG"},
                 {"%PDF-1.7................", 24, "PDF"},
                 {"\x48\0\0\0\0\0\0\0{\"a\":{}}.......", 24, "safetensors"},
                 {"\xff\xfes\0u\0n\0 \0s\0u\0n\0\n\0", 18, "iconv -f UTF-16 -t UTF-8"},
                 {"\xfe\xff\0s\0u\0n\0 \0s\0u\0n\0\n", 18, "iconv -f UTF-16 -t UTF-8"},
                 {"\xff\xfe\0\0s\0\0\0u\0\0\0n\0\0\0", 16, "iconv -f UTF-32 -t UTF-8"},
                 {"s\0u\0n\0 \0s\0u\0n\0\n\0", 16, "iconv -f UTF-16LE -t UTF-8"},
                 {"\0s\0u\0n\0 \0s\0u\0n\0\n", 16, "iconv -f UTF-16BE -t UTF-8"},
                 {"s\0\0\0u\0\0\0n\0\0\0\n\0\0\0", 16, "iconv -f UTF-32LE -t UTF-8"}};
    uint8_t packed[256], twice[256];
    folder_make(&folder);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        refused(folder_write(&folder, "text.txt", kinds[i].bytes, kinds[i].size), kinds[i].word);
        const size_t size = pack(packed, sizeof packed, kinds[i].bytes, kinds[i].size);
        refused(folder_write(&folder, "text.txt.gz", packed, size), kinds[i].word);
    }
    size_t size = pack(packed, sizeof packed, poem, TEXT);
    refused(folder_write(&folder, "twice.gz", twice, pack(twice, sizeof twice, packed, size)), "gzip data within gzip");
    refused(folder_write(&folder, "cut.gz", packed, size - 9), "gzip data cut off");
    refused(folder_write(&folder, "cut.gz", packed, size - 3), "gzip data cut off");
    memcpy(packed + size, "tail", 4);
    refused(folder_write(&folder, "tail.gz", packed, size + 4), "4 bytes behind");
    char tar[512] = "train.txt";
    memcpy(tar + 257, "ustar", 5);
    refused(folder_write(&folder, "data.tar.gz", packed, pack(packed, sizeof packed, tar, sizeof tar)), "tar archive");
    folder_remove(&folder);
}

/* --- images --- */

enum { COUNT = 10, SIDE = 4, CIFAR = 3073 };

static size_t idx_images(uint8_t *out, int first)
{
    const uint8_t header[] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    memcpy(out, header, sizeof header);
    for (int i = 0; i < COUNT * SIDE * SIDE; i++)
        out[sizeof header + (size_t)i] = (uint8_t)(first + i);
    return sizeof header + COUNT * SIDE * SIDE;
}

static size_t idx_labels(uint8_t *out)
{
    const uint8_t header[] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    memcpy(out, header, sizeof header);
    for (int i = 0; i < COUNT; i++)
        out[sizeof header + (size_t)i] = (uint8_t)(i % 3);
    return sizeof header + COUNT;
}

/* In members of `part` bytes each; 0: as it is. */
static void write_parts(const char *file, const uint8_t *data, size_t size, size_t part)
{
    uint8_t out[4096];
    size_t used = 0;
    for (size_t at = 0; part && at < size; at += part)
        used += pack(out + used, sizeof out - used, data + at, size - at < part ? size - at : part);
    folder_write(&folder, file, part ? out : data, part ? used : size);
}

static int64_t samples_of(const graphi_data *train, graphi_data_split split)
{
    graphi_data *other;
    graphi_data_info info;
    const graphi_status status = graphi_data_open_split(train, split, 0, &other);
    if (status == GRAPHI_UNSUPPORTED)
        return 0;
    assert_int_equal(status, GRAPHI_OK);
    graphi_data_get_info(other, &info);
    graphi_data_close(other);
    return info.samples;
}

/* Both spellings of MNIST's names, mixed and packed in several members, in the folder and by the file. */
static void mnist_has_two_spellings(void **state)
{
    static const struct {
        const char *images, *labels, *test_images, *test_labels;
    } cases[] = {
        {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
        {"train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"},
        {"train-images.idx3-ubyte", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
         "t10k-labels.idx1-ubyte"},
        {"train-images-idx3-ubyte.gz", "train-labels.idx1-ubyte.gz", "test-images.idx3-ubyte",
         "test-labels.idx1-ubyte"},
    };
    uint8_t images[512], labels[64];
    const size_t image_bytes = idx_images(images, 3), label_bytes = idx_labels(labels);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int alone = 0; alone < 2; alone++) {
            folder_make(&folder);
            const char *const names[] = {cases[i].images, cases[i].labels, cases[i].test_images, cases[i].test_labels};
            for (int f = 0; f < 4; f++)
                write_parts(names[f], f % 2 ? labels : images, f % 2 ? label_bytes : image_bytes,
                            strstr(names[f], ".gz") ? 7 : 0);
            char path[1024];
            strcpy(path, alone ? folder_name(&folder, cases[i].images) : folder.path);
            graphi_data *train = open_or_fail(path, (graphi_data_options){.batch = 2, .validation = -1});
            graphi_data_info info;
            graphi_data_get_info(train, &info);
            assert_true(info.format == GRAPHI_DATA_IDX && info.samples == COUNT && info.labels == 3 && !info.note);
            assert_int_equal(samples_of(train, GRAPHI_TEST), COUNT);
            write_parts("valid-images.idx3-ubyte", images, image_bytes, 0);
            write_parts("valid-labels.idx1-ubyte", labels, label_bytes, 0);
            assert_int_equal(samples_of(train, GRAPHI_VALIDATION), COUNT);
            graphi_data_close(train);
            folder_remove(&folder);
        }
}

/* A file for validation is trained on, because it is called otherwise than expected. */
static void splits_have_usual_names(void **state)
{
    static const char *const validation[] = {
        "valid.txt",     "val.txt",           "dev.txt",    "validation.txt",
        "ptb.valid.txt", "wiki.valid.tokens", "my_dev.txt", "corpus-validation.txt.gz"};
    folder_make(&folder);
    static uint8_t records[3 * CIFAR], packed[512];
    folder_write(&folder, "data_batch_1.bin", records, sizeof records);
    static const char *const bins[] = {"validation.bin", "val_batch.bin", "cifar-dev.bin"};
    for (int i = 0; i < 3; i++) {
        folder_write(&folder, bins[i], records, 2 * CIFAR);
        graphi_data *train = open_or_fail(folder.path, (graphi_data_options){.batch = 1});
        graphi_data_info info;
        graphi_data_get_info(train, &info);
        assert_true(info.samples == 3 && !info.note); /* nothing held out, nothing joined */
        assert_int_equal(samples_of(train, GRAPHI_VALIDATION), 2);
        graphi_data_close(train);
        unlink(folder_name(&folder, bins[i]));
    }
    folder_remove(&folder);
    for (size_t i = 0; i < sizeof validation / sizeof *validation; i++) {
        folder_make(&folder);
        const bool gz = strstr(validation[i], ".gz");
        folder_write(&folder, i == 5 ? "wiki.train.tokens" : "train.txt", poem, TEXT);
        const size_t size = gz ? pack(packed, sizeof packed, poem, TEXT / 2) : TEXT / 2;
        folder_write(&folder, validation[i], gz ? (const void *)packed : poem, size);
        graphi_data *train = open_or_fail(folder.path, (graphi_data_options){.batch = 1, .steps = 2});
        graphi_data_info info;
        graphi_data_get_info(train, &info);
        assert_true(info.samples == TOKENS && !info.note);
        assert_true(samples_of(train, GRAPHI_VALIDATION) > 2);
        graphi_data_close(train);
        folder_remove(&folder);
    }
}

static void expect_note(const char *words)
{
    graphi_data *data = open_or_fail(folder.path, (graphi_data_options){.batch = 1, .steps = 2});
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    assert_non_null(info.note);
    assert_string_equal(info.note, words);
    graphi_data_close(data);
}

/* What is in the folder and part of no split is passed over in silence; or what was not meant is put together. */
static void the_note_tells_what_was_left_out(void **state)
{
    static uint8_t records[CIFAR];
    folder_make(&folder);
    folder_write(&folder, "train.txt", poem, TEXT);
    folder_write(&folder, "held-out.txt", poem, TEXT);
    folder_write(&folder, "more.train.txt", poem, TEXT);
    folder_write(&folder, "README.txt", poem, TEXT);
    expect_note("left out: held-out.txt, more.train.txt");
    folder_remove(&folder);
    folder_make(&folder);
    folder_write(&folder, "a.bin", records, sizeof records);
    folder_write(&folder, "b.bin", records, sizeof records);
    folder_write(&folder, "test.bin", records, sizeof records);
    expect_note("joined for training: a.bin, b.bin");
    char name[32];
    for (int i = 0; i < 100; i++) /* more than a note has room for */
        folder_write(&folder, (snprintf(name, sizeof name, "many-%02d.bin", i), name), records, sizeof records);
    graphi_data *data = open_or_fail(folder.path, (graphi_data_options){.batch = 1});
    graphi_data_info info;
    graphi_data_get_info(data, &info);
    assert_true(strlen(info.note) < 512 && strstr(info.note, ", ...") == info.note + strlen(info.note) - 5);
    graphi_data_close(data);
    folder_remove(&folder);
}

/* Words that training never met are chance: how many there are is told. */
static void unknown_tokens_are_counted(void **state)
{
    folder_make(&folder);
    folder_write(&folder, "train.txt", poem, TEXT);
    folder_write(&folder, "test.txt", "sun fire moon water\n", 20);
    graphi_data *train = open_or_fail(folder.path, (graphi_data_options){.batch = 1, .steps = 2, .validation = -1}),
                *test;
    graphi_data_info info;
    graphi_data_get_info(train, &info);
    assert_int_equal(info.unknown, 0);
    assert_int_equal(graphi_data_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_OK);
    graphi_data_get_info(test, &info);
    assert_true(info.unknown == 2 && info.samples == 5);
    graphi_data_close(test);
    graphi_data_close(train);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_the_same),         cmocka_unit_test(marks_of_joined_texts_are_skipped),
        cmocka_unit_test(other_bytes_are_refused),    cmocka_unit_test(mnist_has_two_spellings),
        cmocka_unit_test(splits_have_usual_names),    cmocka_unit_test(the_note_tells_what_was_left_out),
        cmocka_unit_test(unknown_tokens_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
