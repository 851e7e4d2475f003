/* SPDX-License-Identifier: Apache-2.0 */
/* A stored plan that is for something else says what differs. */
#include "graphi/graphi.h"
#include "graphi/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "folder.h"

static struct folder folder;
static const char *path; /* in it */

/* relu(x w), of so many rows and columns, by the name of `output`. */
static graphi_graph *product(int64_t rows, int64_t columns, const char *output)
{
    graphi_graph *g;
    check_ok(graphi_graph_create(&g));
    const int64_t x[] = {rows, 4}, w[] = {4, columns};
    const graphi_value y = graphi_matmul(g, graphi_input(g, "x", GRAPHI_F32, 2, x),
                                         graphi_parameter(g, "w", GRAPHI_F32, 2, w, NULL), false, false);
    graphi_output(g, output, graphi_relu(g, y));
    return g;
}

/* Loading the stored plan for `graph` (destroyed) is refused with these words. */
static void refused(graphi_graph *graph, const graphi_machine *on, const graphi_plan_options *options,
                    const char *words)
{
    graphi_plan *plan = NULL;
    assert_int_equal(graphi_plan_load(graph, on, options, path, &plan), GRAPHI_REFUSED);
    assert_null(plan);
    if (!strstr(graphi_message(), words))
        fail_msg("found '%s', expected '%s' in it", graphi_message(), words);
    graphi_graph_destroy(graph);
}

static graphi_plan *stored(const graphi_graph *g)
{
    graphi_plan *plan;
    check_ok(graphi_plan_create(g, phi, NULL, &plan));
    check_ok(graphi_plan_save(plan, path));
    return plan;
}

static void differences_are_told(void **state)
{
    graphi_graph *g = product(8, 16, "y");
    graphi_plan *plan = stored(g);
    const graphi_plan_options fusion = {.disable = "fusion,+merge,cse,fusion"}, plain = {.isa = "plain"},
                              exact = {.conv_error = 1}, arena = {.arena_target = 4096},
                              checks = {.check_numerics = true}, always = {.streaming = GRAPHI_STREAM_ALWAYS},
                              rounded = {.precision = GRAPHI_BF16};
    refused(product(9, 16, "y"), phi, NULL, "another graph, inputs: x float32[8,4], expected x float32[9,4]");
    refused(product(8, 16, "z"), phi, NULL, "another graph, outputs: y float32[8,16], expected z float32[8,16]");
    refused(product(8, 16, "y"), machine, NULL, "another machine, processor: described: ");
    refused(product(8, 16, "y"), phi, &plain, "other options, instruction set: ");
    refused(product(8, 16, "y"), phi, &fusion, "passes switched: none, expected cse, +merge, fusion");
    refused(product(8, 16, "y"), phi, &exact, "convolution error: 4, expected 1");
    refused(product(8, 16, "y"), phi, &arena, "arena bytes: as planned, expected 4096");
    refused(product(8, 16, "y"), phi, &checks, "results checked: none, expected for NaN and infinities");
    refused(product(8, 16, "y"), phi, &always, "streaming stores: where it pays, expected always");
    refused(product(8, 16, "y"), phi, &rounded, "precision: float32, expected bfloat16");
    graphi_graph *more = product(8, 16, "y");
    graphi_parameter(more, "unused", GRAPHI_F32, 1, (const int64_t[]){3}, NULL);
    refused(more, phi, NULL, "parameters: 1 of 64 numbers, 0 updated, expected 2 of 67 numbers, 0 updated");
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* What a file says of itself decides nothing: hashes do. */
static void facts_decide_nothing(void **state)
{
    graphi_graph *g = product(8, 16, "y");
    graphi_plan *plan = stored(g), *loaded;
    FILE *file = fopen(path, "rb");
    char text[16384], other[16384];
    assert_non_null(file);
    const size_t count = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    text[count] = 0;
    char *at = strstr(text, "\"for\"");
    assert_non_null(at);
    static const char *const found[] = {"\"FOR\"", "\"for\": 7, \"x\"",
                                        "\"for\": {\"inputs\": [], \"nodes\": null}, \"x\""};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        const int size = snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, found[i], at + 5);
        assert_in_range(size, 1, sizeof other - 1);
        folder_write(&folder, "plan", other, (size_t)size);
        check_ok(graphi_plan_load(g, phi, NULL, path, &loaded));
        graphi_plan_destroy(loaded);
        refused(product(9, 16, "y"), phi, NULL, "stored for graph");
    }
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

/* The graph that a plan was made of had other facts than the one that it has become. */
static void a_changed_graph_is_not_told(void **state)
{
    graphi_graph *g = product(8, 16, "y");
    graphi_plan *plan = stored(g);
    graphi_input(g, "later", GRAPHI_F32, 0, NULL);
    check_ok(graphi_plan_save(plan, path));
    refused(product(9, 16, "y"), phi, NULL, "stored for graph");
    refused(product(8, 16, "y"), machine, NULL, "another machine, processor: ");
    graphi_plan_destroy(plan);
    graphi_graph_destroy(g);
}

static int open_all(void **state)
{
    folder_make(&folder);
    path = folder_name(&folder, "plan");
    return open_machines(state);
}

static int close_all(void **state)
{
    folder_remove(&folder);
    return close_machines(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_told),
        cmocka_unit_test(facts_decide_nothing),
        cmocka_unit_test(a_changed_graph_is_not_told),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
