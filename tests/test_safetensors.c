/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors and .npy: round trips, what foreign files may hold, every kind of damage, and failures while writing. */
#include "base/file.h"
#include "base/memory.h"
#include "folder.h"
#include "graphi/array.h"
#include "train/npy.h"
#include "train/safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct folder folder;

static const float floats[6] = {1, -2, 3.5f, 0, 1e-30f, -1e30f};
static const uint8_t bytes[5] = {0, 1, 2, 254, 255};
static const int64_t longs[1] = {INT64_MIN};
static const uint16_t halves[3] = {0x3f80, 0xbf80, 0};
static const int32_t ints[2] = {-1, 7};

/* In no good order for alignment; names that JSON must escape. */
static const struct tensor_entry all[] = {
    {"bytes", GRAPHI_U8, 1, {5}, bytes, 5, NULL},
    {"a/\"quoted\\ name\"\n", GRAPHI_F32, 2, {2, 3}, floats, 24, NULL},
    {"half", GRAPHI_BF16, 3, {1, 3, 1}, halves, 6, NULL},
    {"scalar", GRAPHI_I64, 0, {0}, longs, 8, NULL},
    {"", GRAPHI_I32, 1, {2}, ints, 8, NULL},
    {"none", GRAPHI_F32, 2, {0, 7}, floats, 0, NULL},
};
enum { ALL = sizeof all / sizeof *all };
static const struct tensor_pair pairs[] = {{"step", "41"}, {"note", "\xc3\xa4\tb\""}, {"empty", ""}};

static const char *save_all(void)
{
    const char *path = folder_name(&folder, "all.safetensors");
    if (safetensors_save(path, all, ALL, pairs, 3) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return path;
}

/* A checkpoint loses a tensor, a shape, a bit or a metadata string; or a tensor lies where its type cannot be read. */
static void what_is_saved_is_loaded(void **state)
{
    struct tensor_file file;
    if (safetensors_load(save_all(), 1 << 20, &file) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    assert_int_equal(file.count, ALL);
    for (int i = 0; i < ALL; i++) {
        const struct tensor_entry *t = safetensors_find(&file, all[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, all[i].dtype);
        assert_int_equal(t->rank, all[i].rank);
        assert_memory_equal(t->dims, all[i].dims, (size_t)t->rank * sizeof *t->dims);
        assert_int_equal(t->bytes, all[i].bytes);
        assert_memory_equal(t->data, all[i].data, t->bytes);
        assert_int_equal((uintptr_t)t->data % graphi_dtype_size(t->dtype), 0);
    }
    assert_int_equal(((const char *)file.tensors[0].data - (const char *)file.bytes) % 64, 0);
    assert_int_equal(file.pair_count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(safetensors_metadata(&file, pairs[i].key), pairs[i].value);
    assert_null(safetensors_metadata(&file, "nothing"));
    assert_null(safetensors_find(&file, "nothing"));
    safetensors_free(&file);
}

/* Saving nothing at all, as for a network without parameters. */
static void empty_files_work(void **state)
{
    struct tensor_file file;
    const char *path = folder_name(&folder, "empty.safetensors");
    assert_int_equal(safetensors_save(path, NULL, 0, NULL, 0), GRAPHI_OK);
    assert_int_equal(safetensors_load(path, 1 << 20, &file), GRAPHI_OK);
    assert_int_equal(file.count + file.pair_count, 0);
    safetensors_free(&file);
}

/* What the caller got wrong is written to a file that nobody can read back. */
static void wrong_tensors_are_not_written(void **state)
{
    static const struct tensor_entry wrong[][2] = {
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}},
        {{"__metadata__", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"y", GRAPHI_F32, 1, {6}, floats, 24, NULL}},
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"y", GRAPHI_F32, 1, {6}, floats, 20, NULL}},
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"y", GRAPHI_F32, 2, {INT64_MAX, INT64_MAX}, floats, 24, NULL}},
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"y", GRAPHI_F32, 1, {-6}, floats, 24, NULL}},
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"\xff", GRAPHI_F32, 1, {6}, floats, 24, NULL}},
        {{"x", GRAPHI_F32, 1, {6}, floats, 24, NULL}, {"y", GRAPHI_F32, 7, {6}, floats, 24, NULL}},
    };
    static const struct tensor_pair twice[] = {{"k", "1"}, {"k", "2"}};
    const char *path = folder_name(&folder, "wrong.safetensors");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(safetensors_save(path, wrong[i], 2, NULL, 0), GRAPHI_INVALID);
    assert_int_equal(safetensors_save(path, NULL, 0, twice, 2), GRAPHI_INVALID);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* The header of a file and its data, as one block of exactly that size. */
static graphi_status parse(const char *header, uint64_t length, size_t data)
{
    size_t size = 8 + strlen(header) + data;
    uint8_t *block = calloc(1, size);
    memcpy(block, &length, 8);
    memcpy(block + 8, header, strlen(header));
    struct tensor_file file;
    graphi_status status = safetensors_parse("hostile", block, size, &file);
    if (status == GRAPHI_OK)
        safetensors_free(&file);
    free(block);
    return status;
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* A damaged or hostile file is read as weights, or reads beyond its end. */
static void damage_is_refused(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        graphi_status expected;
    } cases[] = {
        {"{}", 0, GRAPHI_OK},
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}   ", 8, GRAPHI_OK},
        {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("U8", "[1]", "[8,9]") "}", 9, GRAPHI_OK},
        {"{}", 1, GRAPHI_INVALID},                                   /* data of nobody */
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 7, GRAPHI_INVALID}, /* truncated */
        {"{\"a\":" T("F32", "[2]", "[0,8]") "}", 9, GRAPHI_INVALID}, /* too long */
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, GRAPHI_INVALID}, /* shape */
        {"{\"a\":" T("F32", "[2]", "[8,0]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":" T("F32", "[2]", "[-8,0]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[2,6]") "}", 6, GRAPHI_INVALID}, /* overlap */
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[5,9]") "}", 9, GRAPHI_INVALID}, /* hole */
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[0,4]") "}", 4, GRAPHI_INVALID}, /* same place */
        {"{\"a\":" T("F32", "[4611686018427387904,4]", "[0,0]") "}", 0, GRAPHI_INVALID},              /* 2^64 bytes */
        {"{\"a\":" T("U8", "[9223372036854775807,3]", "[0,8]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[99999999999999999999]", "[0,8]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[-1]", "[0,0]") "}", 0, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[1.0]", "[0,1]") "}", 1, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "\"4\"", "[0,4]") "}", 4, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[4]", "[0]") "}", 4, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[4]", "[0,4,4]") "}", 4, GRAPHI_INVALID},
        {"{\"a\":" T("Q5", "[4]", "[0,3]") "}", 3, GRAPHI_OK}, /* nobody may ask for it */
        {"{\"a\":" T("F64", "[1]", "[0,8]") "}", 8, GRAPHI_OK},
        {"{\"a\":" T("U8", "[1,1,1,1,1,1,1]", "[0,1]") "}", 1, GRAPHI_OK},
        {"{\"a\":" T("U8", "[1,1,1,1,1,1,2]", "[0,1]") "}", 1, GRAPHI_INVALID},
        {"{\"a\":" T("F64", "[-1]", "[0,8]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":" T("F64", "[1]", "[0,9]") "}", 8, GRAPHI_INVALID},
        {"{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, GRAPHI_INVALID},
        {"{\"a\":4}", 0, GRAPHI_INVALID},
        {"{\"a\":{}}", 0, GRAPHI_INVALID},
        {"{\"a\":" T("U8", "[1]", "[0,1]") ",\"a\":" T("U8", "[1]", "[0,1]") "}", 1, GRAPHI_INVALID}, /* a name twice */
        {"{\"__metadata__\":3}", 0, GRAPHI_INVALID},
        {"{\"__metadata__\":{\"k\":3}}", 0, GRAPHI_INVALID},
        {"{\"__metadata__\":{\"k\":\"v\"}}", 0, GRAPHI_OK},
        {"{\"a\":" T("U8", "[[[[1]]]]", "[0,1]") "}", 1, GRAPHI_INVALID}, /* deep */
        {"[]", 0, GRAPHI_INVALID},
        {" {}", 0, GRAPHI_INVALID},
        {"{", 0, GRAPHI_INVALID},
        {"", 0, GRAPHI_INVALID},
        {"{\"\xff\":1}", 0, GRAPHI_INVALID},
        {"{\"a\\u0000b\":1}", 0, GRAPHI_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphi_status got = parse(cases[i].header, strlen(cases[i].header), cases[i].data);
        if (got != cases[i].expected)
            fail_msg("%s: found %s (%s), expected %s", cases[i].header, graphi_status_name(got), graphi_message(),
                     graphi_status_name(cases[i].expected));
        if (got != GRAPHI_OK)
            assert_non_null(strstr(graphi_message(), ": hostile: found "));
    }
    assert_int_equal(parse("{}", UINT64_MAX, 0), GRAPHI_INVALID);
    assert_int_equal(parse("{}", 3, 0), GRAPHI_INVALID);
    assert_int_equal(parse("{}", (uint64_t)1 << 60, 0), GRAPHI_INVALID);
    for (size_t size = 0; size < 8; size++) {
        struct tensor_file file;
        uint8_t zeros[8] = {0};
        assert_int_equal(safetensors_parse("short", zeros, size, &file), GRAPHI_INVALID);
    }
    assert_int_equal(safetensors_load(folder_name(&folder, "missing"), 1 << 20, &(struct tensor_file){0}), GRAPHI_IO);
}

/* A file cut anywhere must be refused: a killed copy of a checkpoint. */
static void every_truncation_is_refused(void **state)
{
    void *data;
    size_t size;
    assert_int_equal(file_read(save_all(), 1 << 20, &data, &size), GRAPHI_OK);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, data, cut);
        assert_int_equal(safetensors_parse("cut", part, cut, &(struct tensor_file){0}), GRAPHI_INVALID);
        free(part);
    }
    mem_free(data);
}

/* Out of memory leaks, crashes, or leaves half a result. */
static void allocation_failures_are_reported(void **state)
{
    char path[1024];
    strcpy(path, save_all());
    graphi_status status = GRAPHI_MEMORY;
    struct tensor_file file, untouched;
    memset(&file, 0x5a, sizeof file);
    untouched = file;
    for (int n = 0; status != GRAPHI_OK; n++) {
        mem_fail_after(n);
        status = safetensors_load(path, 1 << 20, &file);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || (status == GRAPHI_MEMORY && !memcmp(&file, &untouched, sizeof file)));
        assert_true(n < 200);
    }
    safetensors_free(&file);
    status = GRAPHI_MEMORY;
    for (int n = 0; status != GRAPHI_OK; n++) {
        mem_fail_after(n);
        status = safetensors_save(path, all, ALL, pairs, 3);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || status == GRAPHI_MEMORY);
        assert_true(n < 200);
    }
}

/* A full disk destroys the last good checkpoint, or leaves rubbish beside it. */
static void write_failures_leave_the_old_file(void **state)
{
    char path[1024];
    strcpy(path, save_all());
    void *before, *after;
    size_t size, size_after;
    assert_int_equal(file_read(path, 1 << 20, &before, &size), GRAPHI_OK);
    int files = folder_count(&folder);
    graphi_status status = GRAPHI_IO;
    int failures = 0;
    for (; status != GRAPHI_OK; failures++) {
        file_fail_after(failures);
        status = safetensors_save(path, all + 1, 3, NULL, 0);
        file_fail_after(-1);
        if (status == GRAPHI_OK)
            break;
        assert_int_equal(status, GRAPHI_IO);
        assert_int_equal(file_read(path, 1 << 20, &after, &size_after), GRAPHI_OK);
        assert_int_equal(size, size_after);
        assert_memory_equal(before, after, size);
        mem_free(after);
        assert_int_equal(folder_count(&folder), files);
    }
    assert_true(failures >= 7); /* length, header, three tensors, sync, rename */
    mem_free(before);
}

/* A save to a link or to a pipe replaces the link or the pipe by a file: /dev/stdout would be gone for everyone. */
static void links_and_pipes_stay(void **state)
{
    char target[1024], link[1024], pipe[1024], read_back[8] = "";
    struct stat info;
    strcpy(target, folder_name(&folder, "target"));
    strcpy(link, folder_name(&folder, "link"));
    strcpy(pipe, folder_name(&folder, "pipe"));
    assert_int_equal(file_replace(target, "old", 3), GRAPHI_OK);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(file_replace(link, "new", 3), GRAPHI_OK);
    assert_true(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    assert_true(lstat(target, &info) == 0 && S_ISREG(info.st_mode));
    unlink(target); /* a link to a file that is yet to be made, through another link */
    strcpy(pipe, folder_name(&folder, "second"));
    assert_int_equal(symlink("link", pipe), 0);
    assert_int_equal(file_replace(pipe, "new", 3), GRAPHI_OK);
    assert_true(lstat(pipe, &info) == 0 && S_ISLNK(info.st_mode));
    assert_true(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    assert_true(lstat(target, &info) == 0 && S_ISREG(info.st_mode));
    strcpy(pipe, folder_name(&folder, "round"));
    assert_int_equal(symlink("round", pipe), 0);
    assert_int_equal(file_replace(pipe, "new", 3), GRAPHI_IO);
    assert_true(lstat(pipe, &info) == 0 && S_ISLNK(info.st_mode));
    strcpy(pipe, folder_name(&folder, "pipe"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    assert_int_equal(file_replace(pipe, "through", 7), GRAPHI_OK);
    assert_true(lstat(pipe, &info) == 0 && S_ISFIFO(info.st_mode));
    assert_int_equal(read(reader, read_back, sizeof read_back), 7);
    assert_string_equal(read_back, "through");
    close(reader);
    assert_int_equal(file_replace(folder.path, "x", 1), GRAPHI_IO);
    void *data;
    size_t size;
    assert_int_equal(file_read(pipe, 8, &data, &size), GRAPHI_INVALID); /* and does not wait for a writer */
}

/* An array changes its shape, type or values on the way through a file. */
static void npy_round_trips(void **state)
{
    static const double doubles[2] = {0.1, -3};
    static const struct {
        enum npy_type type;
        int rank;
        int64_t dims[GRAPHI_MAX_RANK];
        const void *data;
        double first;
    } cases[] = {{NPY_F4, 2, {2, 3}, floats, 1},
                 {NPY_F8, 1, {2}, doubles, (double)0.1f},
                 {NPY_U1, 3, {5, 1, 1}, bytes, 0},
                 {NPY_I4, 1, {2}, ints, -1},
                 {NPY_I8, 0, {0}, longs, (double)INT64_MIN},
                 {NPY_F4, 6, {1, 1, 1, 1, 1, 6}, floats, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = folder_name(&folder, "array.npy");
        struct npy array;
        assert_int_equal(npy_save(path, cases[i].type, cases[i].rank, cases[i].dims, cases[i].data), GRAPHI_OK);
        if (npy_load(path, 1 << 20, &array) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        assert_int_equal(array.type, cases[i].type);
        assert_int_equal(array.rank, cases[i].rank);
        assert_memory_equal(array.dims, cases[i].dims, (size_t)array.rank * 8);
        assert_memory_equal(array.data, cases[i].data, array.bytes);
        assert_int_equal((uintptr_t)array.data % 64, 0);
        float values[6];
        assert_int_equal(npy_to_f32("test", &array, values), GRAPHI_OK);
        assert_true((double)values[0] == cases[i].first);
        int64_t numbers[6];
        assert_int_equal(npy_to_i64("array", &array, numbers),
                         cases[i].type == NPY_F4 || cases[i].type == NPY_F8 ? GRAPHI_INVALID : GRAPHI_OK);
        npy_free(&array);
    }
}

/* What a caller asks of an array that the file does not hold, or of a file that no array has, is done somehow. */
static void arrays_are_what_was_asked_for(void **state)
{
    static const int64_t numbers[2] = {1, (int64_t)1 << 40}, pair[] = {2}, one[] = {1}, less[] = {2, -1},
                         high[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, huge[] = {INT64_MAX, INT64_MAX};
    static const struct {
        graphi_dtype dtype;
        int rank;
        const int64_t *dims;
        graphi_status status;
        const char *words;
    } saved[] = {{(graphi_dtype)1000000, 1, pair, GRAPHI_UNSUPPORTED, "found no element type, expected float32"},
                 {GRAPHI_BF16, 1, pair, GRAPHI_UNSUPPORTED, "found bfloat16, expected float32"},
                 {GRAPHI_F32, GRAPHI_MAX_RANK + 1, high, GRAPHI_INVALID, "[1,1,1,1,1,1,1,1,1], expected at most 8"},
                 {GRAPHI_F32, -1, pair, GRAPHI_INVALID, "shape []"},
                 {GRAPHI_I64, 2, less, GRAPHI_INVALID, "shape [2,-1]"},
                 {GRAPHI_U8, 2, huge, GRAPHI_INVALID, "sizes from 0 on"}},
      loaded[] = {{GRAPHI_I64, 1, one, GRAPHI_INVALID, "found an array of shape [2], expected [1]"},
                  {GRAPHI_I64, 0, one, GRAPHI_INVALID, "found an array of shape [2], expected []"},
                  {GRAPHI_I32, 1, pair, GRAPHI_INVALID, "found 1099511627776 at element 1, expected an int32"},
                  {(graphi_dtype)-1, 1, pair, GRAPHI_UNSUPPORTED, "found no element type asked for"},
                  {GRAPHI_U8, 1, pair, GRAPHI_UNSUPPORTED, "expected float32, int32 or int64"}};
    const char *path = folder_name(&folder, "asked.npy");
    int64_t out[2];
    assert_int_equal(graphi_array_save(path, GRAPHI_I64, 1, pair, numbers), GRAPHI_OK);
    assert_int_equal(graphi_array_load(path, GRAPHI_I64, 1, pair, out), GRAPHI_OK);
    assert_memory_equal(out, numbers, sizeof out);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        assert_int_equal(graphi_array_save(path, saved[i].dtype, saved[i].rank, saved[i].dims, numbers),
                         saved[i].status);
        if (!strstr(graphi_message(), saved[i].words))
            fail_msg("found \"%s\", expected \"%s\"", graphi_message(), saved[i].words);
    }
    for (size_t i = 0; i < sizeof loaded / sizeof *loaded; i++) {
        assert_int_equal(graphi_array_load(path, loaded[i].dtype, loaded[i].rank, loaded[i].dims, out),
                         loaded[i].status);
        if (!strstr(graphi_message(), loaded[i].words))
            fail_msg("found \"%s\", expected \"%s\"", graphi_message(), loaded[i].words);
    }
}

/* A float beyond all integers has no conversion that C defines; those next to the bounds have one. */
static void only_whole_numbers_of_64_bits_are_integers(void **state)
{
    static const struct {
        double number;
        int64_t expected; /* 0: none */
    } cases[] = {{-7, -7},        {-0x1p63, INT64_MIN}, {0x1.fffffffffffffp62, INT64_MAX - 1023},
                 {0x1p63, 0},     {-0x1.0000000000001p63, 0},
                 {1e300, 0},      {0.5, 0},
                 {INFINITY, 0},   {NAN, 0}};
    const char *path = folder_name(&folder, "numbers.npy");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct npy array;
        int64_t found = 0;
        assert_int_equal(npy_save(path, NPY_F8, 0, NULL, &cases[i].number), GRAPHI_OK);
        assert_int_equal(npy_load(path, 1 << 20, &array), GRAPHI_OK);
        assert_int_equal(npy_to_i64("numbers", &array, &found), cases[i].expected ? GRAPHI_OK : GRAPHI_INVALID);
        assert_true(found == cases[i].expected);
        npy_free(&array);
    }
}

/* Ids that name another row, or an infinity out of a finite number, would be silently wrong. */
static void floats_hold_what_they_are_given(void **state)
{
    static const double doubles[] = {0.1, INFINITY, -INFINITY, NAN, 3.4e38, 1e300, -1e39};
    static const int64_t integers[] = {-16777217, 16777218, INT64_MIN, (int64_t)1 << 62, 16777217,
                                       ((int64_t)1 << 53) + 1, INT64_MAX};
    static const bool held[2][7] = {{1, 1, 1, 1, 1, 0, 0}, {0, 1, 1, 1, 0, 0, 0}};
    static const int32_t integer = 16777217;
    const char *path = folder_name(&folder, "floats.npy");
    float found;
    for (int i = 0; i < 14; i++) {
        const void *number = i < 7 ? (const void *)&doubles[i] : &integers[i - 7];
        struct npy array;
        assert_int_equal(npy_save(path, i < 7 ? NPY_F8 : NPY_I8, 0, NULL, number), GRAPHI_OK);
        assert_int_equal(npy_load(path, 1 << 20, &array), GRAPHI_OK);
        const graphi_status status = npy_to_f32("floats", &array, &found);
        npy_free(&array);
        if (status != (held[i / 7][i % 7] ? GRAPHI_OK : GRAPHI_INVALID))
            fail_msg("case %d gives %g with status %d", i, (double)found, status);
    }
    assert_int_equal(graphi_array_save(path, GRAPHI_I32, 0, NULL, &integer), GRAPHI_OK);
    assert_int_equal(graphi_array_load(path, GRAPHI_F32, 0, NULL, &found), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 16777217 at 0, expected a number that float32 holds"));
}

/* A header too long for version 1, as of an array that a program padded to a page. */
static void long_npy_headers_are_read(void **state)
{
    enum { START = 12, LENGTH = 70000, SIZE = START + LENGTH + 4 };
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
    static uint8_t block[SIZE];
    struct npy array;
    memset(block, ' ', SIZE);
    memcpy(block, "\x93NUMPY\x02\x00", 8);
    memcpy(block + 8, &(uint32_t){LENGTH}, 4); /* little-endian, as this machine */
    memcpy(block + START, header, sizeof header - 1);
    memcpy(block + START + LENGTH, &(float){3}, 4);
    assert_int_equal(npy_parse("long", block, SIZE, &array), GRAPHI_OK);
    assert_true(array.count == 1 && *(const float *)array.data == 3);
}

/* NumPy's own spelling is not understood, or what is no array of this form is. */
static void npy_headers_are_checked(void **state)
{
    static const struct {
        char version;
        const char *header;
        size_t data;
        graphi_status expected;
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n", 24, GRAPHI_OK},
        {2, "{\"shape\":(),\"descr\":\"|u1\",\"fortran_order\":False}", 1, GRAPHI_OK},
        {3, "{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }\n", 0, GRAPHI_OK},
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }\n", 4, GRAPHI_OK},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", 4, GRAPHI_OK},
        {1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", 4, GRAPHI_UNSUPPORTED},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n", 1, GRAPHI_UNSUPPORTED},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 5, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 3, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 0, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", 0, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, }\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'other': 3}\n", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, GRAPHI_INVALID},
        {1, "{'descr': '<f4", 0, GRAPHI_INVALID},
        {1, "", 0, GRAPHI_INVALID},
        {1, "{", 0, GRAPHI_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t start = cases[i].version == 1 ? 10 : 12, length = strlen(cases[i].header),
               size = start + length + cases[i].data;
        uint8_t *block = calloc(1, size);
        memcpy(block, "\x93NUMPY", 6);
        block[6] = (uint8_t)cases[i].version;
        block[8] = (uint8_t)length;
        memcpy(block + start, cases[i].header, length);
        struct npy array;
        graphi_status got = npy_parse("hostile", block, size, &array);
        if (got != cases[i].expected)
            fail_msg("%s: found %s, expected %s", cases[i].header, graphi_message(),
                     graphi_status_name(cases[i].expected));
        for (size_t cut = 0; got == GRAPHI_OK && cut < size; cut++) {
            uint8_t *part = malloc(cut ? cut : 1);
            memcpy(part, block, cut);
            assert_int_not_equal(npy_parse("cut", part, cut, &array), GRAPHI_OK);
            free(part);
        }
        free(block);
    }
}

static int make(void **state)
{
    folder_make(&folder);
    return 0;
}

static int clean(void **state)
{
    folder_remove(&folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),           cmocka_unit_test(empty_files_work),
        cmocka_unit_test(wrong_tensors_are_not_written),     cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(every_truncation_is_refused),       cmocka_unit_test(allocation_failures_are_reported),
        cmocka_unit_test(write_failures_leave_the_old_file), cmocka_unit_test(links_and_pipes_stay),
        cmocka_unit_test(arrays_are_what_was_asked_for),
        cmocka_unit_test(npy_round_trips),                   cmocka_unit_test(npy_headers_are_checked),
        cmocka_unit_test(long_npy_headers_are_read),
        cmocka_unit_test(only_whole_numbers_of_64_bits_are_integers),
        cmocka_unit_test(floats_hold_what_they_are_given),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
