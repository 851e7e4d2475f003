/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of random input graphs, for tests of frontiers and of vertex functions. Include after fixture.h. */
#ifndef TESTS_INPUT_GRAPHS_H
#define TESTS_INPUT_GRAPHS_H

#include <string.h>

enum { H = 19, X = 7, MOST = 600, MOST_EDGES = 2400 };

static uint32_t random_state = 1;

static inline uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * n >> 24);
}

static inline float random_number(void)
{
    return (float)random_below(2001) / 1000 - 1;
}

/* A batch of graphs; `function` is 0 where there are no children, else 1, as trees with words at leaves have it. */
struct batch {
    graphi_input_graphs graphs;
    int32_t sample[MOST], function[MOST], begin[MOST + 1], child[MOST_EDGES], word[MOST];
    float x[MOST * X];
    graphi_vertex_values value[2];
};

static inline void begin_batch(struct batch *b)
{
    memset(&b->graphs, 0, sizeof b->graphs);
    b->begin[0] = 0;
    b->value[0] = (graphi_vertex_values){"x", GRAPHI_F32, X, b->x};
    b->value[1] = (graphi_vertex_values){"word", GRAPHI_I32, 1, b->word};
    b->graphs.sample = b->sample;
    b->graphs.function = b->function;
    b->graphs.child_begin = b->begin;
    b->graphs.child = b->child;
    b->graphs.values = 1;
    b->graphs.value = b->value;
}

/* Vertices in an order in which children need not come first. */
static inline void add_sample(struct batch *b, int vertices, int most_children)
{
    const int32_t first = (int32_t)b->graphs.vertices;
    int32_t order[MOST];
    for (int i = 0; i < vertices; i++) {
        const int k = (int)random_below((uint32_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    int32_t place[MOST];
    for (int i = 0; i < vertices; i++)
        place[order[i]] = i;
    for (int v = 0; v < vertices; v++) {
        const int children = place[v] ? (int)random_below((uint32_t)most_children + 1) : 0;
        for (int c = 0; c < children; c++)
            b->child[b->graphs.edges++] = first + order[random_below((uint32_t)place[v])];
        b->begin[b->graphs.vertices + 1] = (int32_t)b->graphs.edges;
        b->sample[b->graphs.vertices] = (int32_t)b->graphs.samples;
        b->function[b->graphs.vertices] = children > 0;
        b->word[b->graphs.vertices] = (int32_t)random_below(11);
        for (int i = 0; i < X; i++)
            b->x[b->graphs.vertices * X + i] = random_number();
        b->graphs.vertices++;
    }
    b->graphs.samples++;
}

static inline void random_batch(struct batch *b, int samples, int vertices, int children)
{
    begin_batch(b);
    for (int s = 0; s < samples; s++)
        add_sample(b, s % 5 == 4 ? 1 : 1 + (int)random_below((uint32_t)vertices), children);
}

static inline void expect_refused(graphi_status status, const char *text)
{
    assert_int_equal(status, GRAPHI_INVALID);
    if (!strstr(graphi_message(), text))
        fail_msg("found '%s', expected it to say '%s'", graphi_message(), text);
}

#endif
