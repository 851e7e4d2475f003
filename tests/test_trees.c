/* SPDX-License-Identifier: Apache-2.0 */
/* Input graphs: every format, what a batch holds, splits, resuming, and every kind of bad file. */
#include "base/memory.h"
#include "folder.h"
#include "graphi/trees.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

static struct folder folder;

static const graphi_trees_options whole = {.batch = 1, .validation = -1, .ordered = true};

static const char *text_file(const char *name, const char *text)
{
    return folder_write(&folder, name, text, strlen(text));
}

static graphi_trees *open_or_fail(const char *path, graphi_trees_options options)
{
    graphi_trees *trees = NULL;
    if (graphi_trees_open(path, &options, &trees) != GRAPHI_OK)
        fail_msg("%s", graphi_message());
    return trees;
}

static graphi_trees_info info_of(const graphi_trees *trees)
{
    graphi_trees_info info;
    graphi_trees_get_info(trees, &info);
    return info;
}

static graphi_trees_batch next(graphi_trees *trees)
{
    graphi_trees_batch batch;
    assert_int_equal(graphi_trees_next(trees, &batch), GRAPHI_OK);
    return batch;
}

static void expect(const int32_t *found, int64_t count, const char *wanted)
{
    char text[512] = "";
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), i ? " %d" : "%d", found[i]);
    assert_string_equal(text, wanted);
}

static void expect_words(const graphi_trees *t, const int32_t *ids, int64_t count, const char *wanted)
{
    char text[512] = "";
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 ids[i] < 0 ? "." : graphi_trees_word(t, ids[i], NULL));
    assert_string_equal(text, wanted);
}

/* The file is refused with this in its message. */
static void refused(const char *name, const char *text, const char *wanted)
{
    graphi_trees *trees = NULL;
    assert_int_equal(graphi_trees_open(text_file(name, text), &whole, &trees), GRAPHI_INVALID);
    assert_null(trees);
    if (!strstr(graphi_message(), wanted))
        fail_msg("found '%s', expected '%s' in it", graphi_message(), wanted);
}

/* --- formats --- */

/* Children before parents, words at leaves alone, a no-break space within a word, a tree over two lines. */
static void s_expressions(void **state)
{
    graphi_trees *t = open_or_fail(text_file("one.txt", "(3 (2 It) (4 works))\n (1 (0 8\xc2\xa0half)\n  (2 (2 It)) )\n"
                                                        "( (NP))"),
                                   (graphi_trees_options){.batch = 2, .validation = -1, .ordered = true, .skip = true});
    graphi_trees_info info = info_of(t);
    assert_int_equal(info.format, GRAPHI_TREES_SEXPR);
    assert_int_equal(info.samples, 2);
    assert_int_equal(info.skipped, 1);
    assert_non_null(strstr(graphi_trees_skipped(t, 0), "one.txt:4:6: found ')', expected a word or a child"));
    assert_null(graphi_trees_skipped(t, 1));
    assert_int_equal(info.classes, 5);
    assert_int_equal(info.vocabulary, 4); /* <unk> is always there */
    assert_int_equal(info.rounds, 3);
    assert_int_equal(info.children, 2);
    const graphi_trees_batch b = next(t);
    expect(b.sample_begin, 3, "0 3 7");
    expect(b.sample, b.vertices, "0 0 0 1 1 1 1");
    expect(b.child_begin, 8, "0 0 0 2 2 2 3 5");
    expect(b.child, b.edges, "0 1 4 3 5");
    expect(b.label, b.vertices, "2 4 3 0 2 2 1");
    expect(b.function, b.vertices, "0 0 1 0 0 1 1");
    expect(b.root, b.samples, "2 6");
    expect_words(t, b.token, b.vertices, "It works . 8\xc2\xa0half It . .");
    assert_int_equal(b.token[0], 0);             /* the most frequent */
    assert_null(graphi_trees_label(t, 0, NULL)); /* numbers */
    graphi_trees_close(t);
}

static void names_of_labels(void **state)
{
    graphi_trees *t = open_or_fail(text_file("one.mrg", "( (S (NP (DT a)) (NP b)))"), whole);
    const graphi_trees_batch b = next(t);
    assert_int_equal(b.vertices, 5);
    assert_int_equal(b.label[4], -1);
    assert_string_equal(graphi_trees_label(t, b.label[1], NULL), "NP");
    assert_int_equal(b.label[1], 0);
    assert_int_equal(info_of(t).classes, 3);
    assert_int_equal(info_of(t).unlabelled, 1);
    graphi_trees_close(t);
}

static void parent_pointers(void **state)
{
    text_file("sst.tokens", "a b c\nx\nthe|dog\n");
    text_file("sst.labels", "0 1 0 # 2\n1\n0|1|2\n");
    graphi_trees *t = open_or_fail(text_file("sst.parents", "4 4 5 5 0\n0\n3|3|0\n"), whole);
    graphi_trees_batch b = next(t);
    assert_int_equal(info_of(t).format, GRAPHI_TREES_PARENTS);
    expect(b.child_begin, 6, "0 0 0 0 2 4");
    expect(b.child, 4, "0 1 2 3");
    expect(b.label, 5, "0 1 0 -1 2");
    expect(b.function, 5, "0 0 0 1 1");
    assert_int_equal(b.root[0], 4);
    b = next(t);
    expect_words(t, b.token, b.vertices, "x");
    b = next(t);
    expect_words(t, b.token, b.vertices, "the dog .");
    graphi_trees_close(t);
}

static const char conllu[] = "# text = vamonos al mar\n"
                             "1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
                             "1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
                             "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_\n"
                             "3\tal mar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_\n"
                             "3.1\tnada\t_\t_\t_\t_\t_\t_\t_\t_\n"
                             "\n"
                             "1\tno\t_\t_\t_\t_\t2\tobj\t_\t_\n"
                             "2\tsi\t_\t_\t_\t_\t0\troot\t_\t_";

static void dependencies(void **state)
{
    graphi_trees *t = open_or_fail(text_file("es.conllu", conllu), whole);
    graphi_trees_batch b = next(t);
    expect(b.child_begin, 4, "0 2 2 2");
    expect(b.child, 2, "1 2");
    expect_words(t, b.token, 3, "vamos nos al mar");
    assert_string_equal(graphi_trees_label(t, b.label[0], NULL), "root");
    assert_string_equal(graphi_trees_label(t, b.label[2], NULL), "obl");
    assert_int_equal(b.label[1], 0); /* obj and root come twice, the bytes decide */
    assert_int_equal(b.root[0], 0);
    b = next(t);
    assert_int_equal(b.root[0], 1);
    expect(b.child, b.edges, "0");
    graphi_trees_close(t);
}

/* A diamond with a second sink: several parents, several roots. */
static void edge_lists(void **state)
{
    const char text[] =
        "# made\nt # 0\nv 0 2 a\nv 1 1\nv 2 1 _ 7\nv 3 0\nv 4 0 b\ne 0 1\ne 0 2 9\ne 1 3\ne 2 3\ne 0 4\n"
        "t # 1\nv 0 5\n\n1 0\n2 0\n2 1\nt # -1\n";
    graphi_trees *t = open_or_fail(text_file("made.edges", text), whole);
    assert_int_equal(info_of(t).samples, 3);
    graphi_trees_batch b = next(t);
    expect(b.child_begin, 6, "0 0 1 2 4 5");
    expect(b.child, 5, "0 0 1 2 0");
    expect(b.label, 5, "2 1 1 0 0");
    expect(b.function, 5, "0 1 7 1 0");
    assert_int_equal(b.root[0], 3);
    b = next(t);
    assert_int_equal(b.vertices, 1);
    b = next(t);
    expect(b.child, b.edges, "1 2 2");
    expect(b.label, 3, "-1 -1 -1");
    assert_int_equal(b.root[0], 0);
    graphi_trees_close(t);
}

static void lines(void **state)
{
    const char *path = text_file("plain.txt", "the cat sat\n\nthe dog\n");
    graphi_trees *t = open_or_fail(path, whole);
    assert_int_equal(info_of(t).samples, 2);
    graphi_trees_batch b = next(t);
    expect_words(t, b.token, b.vertices, "<eos> the cat sat");
    expect_words(t, b.label, b.vertices, "the cat sat <eos>");
    expect(b.child_begin, 5, "0 0 1 2 3");
    expect(b.child, 3, "0 1 2");
    assert_int_equal(b.root[0], 3);
    assert_int_equal(info_of(t).classes, info_of(t).vocabulary);
    graphi_trees_close(t);
    graphi_trees_options fixed = whole;
    fixed.steps = 3;
    t = open_or_fail(path, fixed);
    assert_int_equal(info_of(t).samples, 2); /* of 8 words the last 2 are a rest */
    next(t);
    b = next(t);
    expect_words(t, b.token, b.vertices, "sat <eos> <eos>");
    expect_words(t, b.label, b.vertices, "<eos> <eos> the");
    graphi_trees_close(t);
}

/* --- splits, order, batches --- */

static void write_trees(const char *name, int count, const char *word)
{
    char text[8192] = "";
    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), i % 3 ? "(%d %s%d)\n" : "(%d (1 %s) (0 w%d))\n",
                 i % 4, word, i);
    text_file(name, text);
}

static void splits(void **state)
{
    write_trees("sst.train.txt", 40, "seen");
    write_trees("sst.dev.txt", 7, "other");
    text_file("README.txt", "(0 nothing)");
    graphi_trees *train = open_or_fail(folder.path, (graphi_trees_options){.batch = 16}), *dev = NULL, *test = NULL;
    assert_int_equal(info_of(train).batches, 2);
    assert_int_equal(graphi_trees_open_split(train, GRAPHI_VALIDATION, 3, &dev), GRAPHI_OK);
    assert_int_equal(graphi_trees_open_split(train, GRAPHI_TEST, 0, &test), GRAPHI_UNSUPPORTED);
    graphi_trees_close(train);
    const graphi_trees_info info = info_of(dev);
    assert_int_equal(info.samples, 7);
    assert_int_equal(info.batches, 3);
    assert_int_equal(info.unknown, 7); /* other, other1, other2 ... */
    graphi_trees_batch b = next(dev);
    assert_int_equal(b.samples, 3);
    assert_true(b.vertices <= info.batch_vertices && b.edges <= info.batch_edges);
    next(dev);
    b = next(dev);
    assert_int_equal(b.samples, 1);
    graphi_trees_close(dev);
}

/* Held out samples are none of the training ones, whatever the seed. */
static void held_out(void **state)
{
    write_trees("all.txt", 40, "seen");
    char name[1024];
    snprintf(name, sizeof name, "%s/all.txt", folder.path);
    graphi_trees *train = open_or_fail(name, (graphi_trees_options){.batch = 4, .seed = 7}), *held = NULL;
    assert_int_equal(graphi_trees_open_split(train, GRAPHI_VALIDATION, 0, &held), GRAPHI_OK);
    assert_int_equal(info_of(train).samples, 36);
    assert_int_equal(info_of(held).samples, 4);
    assert_int_equal(info_of(train).vertices + info_of(held).vertices, 40 + 2 * 14);
    assert_int_equal(info_of(train).unknown, 0);
    assert_true(info_of(held).unknown > 0);
    graphi_trees_close(train);
    graphi_trees_close(held);
}

static void resuming(void **state)
{
    write_trees("train.txt", 40, "seen");
    graphi_trees *t = open_or_fail(folder.path, (graphi_trees_options){.batch = 7, .validation = -1, .seed = 3});
    int32_t first[64], later[64];
    graphi_trees_batch b = next(t);
    memcpy(first, b.token, (size_t)b.vertices * sizeof *first);
    for (int i = 1; i < 5; i++)
        next(t);
    const graphi_data_position at = graphi_trees_get_position(t);
    assert_int_equal(at.epoch, 1);
    b = next(t);
    memcpy(later, b.token, (size_t)b.vertices * sizeof *later);
    assert_memory_not_equal(first, later, 4 * sizeof *first); /* another order in the next epoch */
    next(t);
    assert_int_equal(graphi_trees_set_position(t, at), GRAPHI_OK);
    const uint64_t before = mem_allocations();
    b = next(t);
    assert_int_equal(mem_allocations(), before);
    assert_memory_equal(b.token, later, (size_t)b.vertices * sizeof *later);
    assert_int_equal(graphi_trees_set_position(t, (graphi_data_position){0, 5}), GRAPHI_INVALID);
    graphi_trees_close(t);
}

static void vocabularies(void **state)
{
    const char *path = text_file("one.txt", "(1 (0 a) (0 (0 b) (0 (0 a) (0 c))))");
    graphi_trees_options options = whole;
    options.vocabulary = 2;
    graphi_trees *t = open_or_fail(path, options);
    assert_int_equal(info_of(t).vocabulary, 2);
    assert_int_equal(info_of(t).unknown, 2);
    graphi_trees_close(t);
    options = whole;
    options.words = "[\"c\", \"<unk>\", \"a\"]";
    t = open_or_fail(path, options);
    graphi_trees_batch b = next(t);
    expect(b.token, b.vertices, "2 1 2 0 -1 -1 -1");
    graphi_trees_close(t);
}

static void packed(void **state)
{
    const char text[] = "(1 (0 a) (0 b))\r\n(0 a)\r\n";
    gzFile file = gzopen(folder_name(&folder, "one.txt.gz"), "wb");
    assert_int_equal(gzwrite(file, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(gzclose(file), Z_OK);
    graphi_trees *t = open_or_fail(folder.name, whole);
    assert_int_equal(info_of(t).samples, 2);
    graphi_trees_close(t);
}

/* --- hostile files --- */

/* No recursion: such a nest would need a stack of a hundred megabytes. */
static void deep(void **state)
{
    enum { DEPTH = 1000000 };
    char *text = malloc(4 * DEPTH + 16), *at = text;
    assert_non_null(text);
    for (int i = 0; i < DEPTH; i++, at += 3)
        memcpy(at, "(2 ", 3);
    at += sprintf(at, "a");
    memset(at, ')', DEPTH);
    folder_write(&folder, "deep.txt", text, (size_t)(at - text) + DEPTH);
    graphi_trees *t = open_or_fail(folder.name, whole);
    assert_int_equal(info_of(t).rounds, DEPTH);
    assert_int_equal(next(t).vertices, DEPTH);
    graphi_trees_close(t);
    folder_write(&folder, "deep.txt", text, (size_t)(at - text) + DEPTH / 2); /* cut off */
    assert_int_equal(graphi_trees_open(folder.name, &whole, &t), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "the end of the file with 500000 parentheses open since line 1"));
    free(text);
}

static void bad_expressions(void **state)
{
    refused("bad.txt", "(2 (2 a) (2 b)\n(1 c)\n", ":2:1: found the next tree with 1 parentheses open since line 1");
    refused("bad.txt", "(2 a b)", ":1:6: found 'b', expected ')'");
    refused("bad.txt", "(2 a (2 b))", "found '(', expected ')' after the word");
    refused("bad.txt", "(2 (1 a) b)", "found 'b', expected a parenthesis");
    refused("bad.txt", "(2 a))", ":1:6: found ')', expected '(' where a tree begins");
    refused("bad.txt", "(2 a) b", "found 'b', expected '('");
    refused("bad.txt", "(2 a)\n()", ":2:2: found ')', expected a word or a child");
    refused("bad.txt", "(2 (2 a) (two b))", ":1:11: found label 'two', expected a number");
    refused("bad.txt", "(2 (-1 a) (2 b))", "label -1 of");
    refused("bad.txt", "(2 (99999999999999999999 a) (2 b))", "label 99999999999999999999 of");
    refused("bad.sexpr", "", "found no sample");
    graphi_trees_options five = whole;
    graphi_trees *t = NULL;
    five.classes = 5;
    assert_int_equal(graphi_trees_open(text_file("bad.txt", "(4 a)\n(5 b)"), &five, &t), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), ":2:2: found label 5 of 5 classes"));
}

static void bad_parents(void **state)
{
    text_file("bad.tokens", "a b c\n");
    refused("bad.parents", "2 3 1\n", "found a cycle at vertex");
    refused("bad.parents", "1 0 2\n", "found a cycle at vertex 1 of 3");
    refused("bad.parents", "0 1 0\n", ":1:5: found a second root at vertex 3 of 3");
    refused("bad.parents", "0 4 1\n", ":1:3: found parent 4 of 3 vertices");
    refused("bad.parents", "0 -1 1\n", "found '-1', expected the number of a parent");
    refused("bad.parents", "0 1\n", "bad.tokens:1:5: found word 3 of 2 vertices");
    refused("bad.parents", "\n", "word 1 of 0 vertices");
    refused("bad.parents", "0 1 1\n0\n", "bad.tokens:2:1: found its end at line 2");
    text_file("bad.tokens", "a b c\nd\n");
    refused("bad.parents", "0 1 1\n", "bad.tokens:2:1: found a further line");
    text_file("bad.labels", "0 1\n1\n");
    refused("bad.parents", "0 1 1\n0\n", "bad.labels:1:4: found fewer labels");
    text_file("bad.labels", "0 1 2 3\n1\n");
    refused("bad.parents", "0 1 1\n0\n", "bad.labels:1:7: found more labels");
    remove(folder_name(&folder, "bad.tokens"));
    graphi_trees *t = NULL;
    assert_int_equal(graphi_trees_open(text_file("bad.parents", "0\n"), &whole, &t), GRAPHI_IO);
    assert_non_null(strstr(graphi_message(), "bad.tokens"));
}

#define WORD(id, head) id "\tw\t_\t_\t_\t_\t" head "\trel\t_\t_\n"

static void bad_dependencies(void **state)
{
    refused("bad.conllu", WORD("1", "2") WORD("2", "1"), "found a cycle at vertex");
    refused("bad.conllu", WORD("1", "0") WORD("2", "3") WORD("3", "2"), "found a cycle at vertex");
    refused("bad.conllu", WORD("1", "1"), "found a cycle at vertex 1 of 1");
    refused("bad.conllu", WORD("1", "0") WORD("2", "0"), ":2:13: found a second root at vertex 2 of 2");
    refused("bad.conllu", WORD("1", "0") WORD("2", "9"), ":2:13: found head 9 of 2 words");
    refused("bad.conllu", WORD("1", "_"), ":1:13: found head '_'");
    refused("bad.conllu", WORD("1", "0") WORD("3", "1"), ":2:1: found ID '3' of word 2");
    refused("bad.conllu", WORD("1", "0") "2\tw\t_\t_\t_\t_\t1\trel\t_\n", ":2:1: found fewer columns");
    refused("bad.conllu", WORD("1", "0") "2\tw\t_\t_\t_\t_\t1\trel\t_\t_\t_\n", ":2:1: found more than 10 columns");
    refused("bad.conllu", WORD("1", "0") "2\tw\t_\t_", "found fewer columns"); /* cut off */
    refused("bad.conllu", WORD("1", "0") "\n# alone\n\n", ":3:1: found a sample without vertices");
}

static void bad_edges(void **state)
{
    refused("bad.edges", "0 1\n1 2\n2 0\n", "found a cycle at vertex");
    refused("bad.edges", "v 0 1\nv 1 1\ne 0 2\n", "found edge 0 to 2 of 2 vertices");
    refused("bad.edges", "0 999999999\n", "found vertices up to 999999999 in 1 edges");
    refused("bad.edges", "v 0 1\nv 2 1\n", ":2:3: found '2' as vertex 1");
    refused("bad.edges", "t # 0\nt # 1\nv 0 1\n", ":1:1: found a sample without vertices");
    refused("bad.edges", "0 1\n1\n", "a line that begins '1'");
    refused("bad.edges", "v 0 1 a 1000\n", "found '1000', expected the number of a function");
}

/* The rest of the file goes on, and the labels of what was dropped decide nothing. */
static void skipping(void **state)
{
    graphi_trees_options options = whole;
    options.skip = true;
    graphi_trees *t = open_or_fail(text_file("skip.txt", "(bad (1 a)\n(4 a)\n(1 (2 b)\n(3 b)\n(2 c"), options);
    assert_int_equal(info_of(t).samples, 2);
    assert_int_equal(info_of(t).skipped, 3);
    assert_int_equal(info_of(t).classes, 5);
    assert_int_equal(info_of(t).vocabulary, 3);
    assert_non_null(strstr(info_of(t).note, "3 of 5 samples were left out; the first: INVALID: "));
    assert_int_equal(next(t).label[0], 4);
    graphi_trees_close(t);
    t = open_or_fail(text_file("skip.conllu", WORD("1", "2") "\n" WORD("1", "0") "\n" WORD("1", "x") WORD("2", "0")),
                     options);
    assert_int_equal(info_of(t).samples, 1);
    assert_int_equal(info_of(t).skipped, 2);
    graphi_trees_close(t);
    t = open_or_fail(text_file("skip.edges", "1 1\n\n0 1\n\nt # 2\nx\nv 0 1\nt # 3\nv 0 3\n"), options);
    assert_int_equal(info_of(t).samples, 2);
    assert_int_equal(info_of(t).skipped, 2);
    graphi_trees_close(t);
    assert_int_equal(graphi_trees_open(text_file("skip.txt", "(1 (\n(2"), &options, &t), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found no sample in 7 bytes of s-expressions; the first"));
}

static void bad_options(void **state)
{
    graphi_trees *t = NULL;
    const char *path = text_file("one.txt", "(1 a)");
    assert_int_equal(graphi_trees_open(path, &(graphi_trees_options){.batch = -1}, &t), GRAPHI_INVALID);
    assert_int_equal(graphi_trees_open(path, &(graphi_trees_options){.validation = 1}, &t), GRAPHI_INVALID);
    assert_int_equal(graphi_trees_open(path, &(graphi_trees_options){.format = 99}, &t), GRAPHI_INVALID);
    assert_int_equal(graphi_trees_open(path, &(graphi_trees_options){.batch = 2}, &t), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 1 training samples, expected at least a batch of 2"));
    assert_int_equal(graphi_trees_open("/none/there", NULL, &t), GRAPHI_IO);
    assert_int_equal(graphi_trees_open(text_file("one.txt", "PK\3\4"), NULL, &t), GRAPHI_INVALID);
    assert_null(t);
}

/* Every allocation fails once. */
static void memory(void **state)
{
    text_file("one.tokens", "a b c\nd\n");
    text_file("one.labels", "x y x\ny\n");
    const char *path = text_file("one.parents", "0 1 1\n0\n");
    graphi_status status = GRAPHI_MEMORY;
    graphi_trees *t = NULL;
    for (long n = 0; status == GRAPHI_MEMORY && n < 1000; n++) {
        mem_fail_after(n);
        status = graphi_trees_open(path, &whole, &t);
        mem_fail_after(-1);
    }
    assert_int_equal(status, GRAPHI_OK);
    graphi_trees_close(t);
}

/* What the trainer goes through: batches by position, words and labels of the vertices, roots alone where asked. */
static void feeding(void **state)
{
    graphi_trees *t = open_or_fail(text_file("one.txt", "(3 (2 a) (4 b))\n(1 a)\n"), whole);
    graphi_feed feed;
    int64_t rows;
    assert_int_equal(graphi_trees_feed(t, &(graphi_trees_feed_options){.functions = 2, .roots = true}, &feed),
                     GRAPHI_OK);
    assert_true(feed.batch == 1 && feed.batches == 2 && feed.hash == info_of(t).hash);
    const uint64_t before = mem_allocations();
    assert_int_equal(feed.next(feed.context, (graphi_data_position){0, 1}, NULL, &rows), GRAPHI_OK);
    expect(feed.targets(feed.context, &rows), 1, "1");
    assert_int_equal(rows, 1);
    assert_int_equal(feed.next(feed.context, (graphi_data_position){4, 0}, NULL, &rows), GRAPHI_OK);
    expect(feed.targets(feed.context, &rows), 3, "-1 -1 3");
    assert_int_equal(rows, 3);
    assert_int_equal(mem_allocations(), before);
    assert_int_equal(graphi_trees_feed(t, NULL, &feed), GRAPHI_OK);
    assert_int_equal(feed.next(feed.context, (graphi_data_position){0, 0}, NULL, &rows), GRAPHI_OK);
    expect(feed.targets(feed.context, &rows), 3, "2 4 3");
    graphi_trees_close(t);
    t = open_or_fail(text_file("one.txt", "(3 a)\n( (1 a))\n"), whole);
    assert_int_equal(graphi_trees_feed(t, NULL, &feed), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 1 of 3 vertices without a label"));
    graphi_trees_close(t);
}

static int begin(void **state)
{
    folder_make(&folder);
    return 0;
}

static int end(void **state)
{
    folder_remove(&folder);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(s_expressions),   TEST(names_of_labels), TEST(parent_pointers),  TEST(dependencies),
        TEST(edge_lists),      TEST(lines),           TEST(splits),           TEST(held_out),
        TEST(resuming),        TEST(vocabularies),    TEST(packed),           TEST(deep),
        TEST(bad_expressions), TEST(bad_parents),     TEST(bad_dependencies), TEST(bad_edges),
        TEST(skipping),        TEST(bad_options),     TEST(feeding),          TEST(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
