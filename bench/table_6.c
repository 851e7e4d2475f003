/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table VI: the five most time-consuming kinds of operations with 68 threads each, and with the
 * widths of strategies 1 and 2 (every operation of a kind as wide as is best for the kind's largest, which is the one
 * that takes longest at its own best width); simulated. The paper's kinds are TensorFlow's and do not all exist here
 * (Tile, InputConversion, ToTf), so its twenty cells are rows of their own. */
#include "study.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KINDS = 128, TOP = 5 };

struct kind {
    char name[64];
    double uniform_ns, chosen_ns;
    double largest_ns; /* at its best width: strategy 2 gives that width and mode to all of the kind */
    int width;
    bool spread;
};

/* ms: with 68 threads, under strategies 1 and 2. */
static const struct {
    const char *network;
    struct {
        const char *kind;
        double uniform_ms, chosen_ms;
    } cell[TOP];
} paper[] = {{"resnet50",
              {{"Conv2DBackpropFilter", 158, 146},
               {"InputConversion", 131, 122},
               {"Tile", 107, 105},
               {"Mul", 103, 100},
               {"ToTf", 79, 78}}},
             {"dcgan",
              {{"Conv2DBackpropInput", 164, 144},
               {"Conv2DBackpropFilter", 133, 110},
               {"ApplyAdam", 84, 72},
               {"BiasAddGrad", 26, 23},
               {"FusedBatchNorm", 15, 14}}},
             {"inception-v3",
              {{"AvgPool", 759, 730},
               {"Tile", 539, 532},
               {"Conv2DBackpropFilter", 479, 475},
               {"MaxPooling", 455, 422},
               {"InputConversion", 416, 413}}},
             {"ptb",
              {{"SparseSoftmaxCross", 11.71, 8.76},
               {"BiasAddGrad", 2.03, 1.98},
               {"Mul", 1.36, 1.09},
               {"AddN", 1.02, 0.87},
               {"MatMul", 0.95, 0.93}}}};

static int kind_of(struct kind *kinds, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return i;
    if (*count == MOST_KINDS)
        return MOST_KINDS - 1;
    snprintf(kinds[*count].name, sizeof kinds->name, "%s", name);
    return (*count)++;
}

static int by_time(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    return (x->uniform_ns < y->uniform_ns) - (x->uniform_ns > y->uniform_ns);
}

static int sum_kinds(const struct study *s, struct kind *kinds)
{
    int count = 0;
    graphi_class class;
    for (int i = 0; graphi_plan_class_at(s->plan, i, &class); i++) {
        struct kind *k = &kinds[kind_of(kinds, &count, class.kind)];
        double ns = graphi_plan_class_ns(s->plan, i, s->machine, s->about.cores, false, NULL);
        k->uniform_ns += (double)class.operations * ns;
        double best_ns = graphi_plan_class_ns(s->plan, i, s->machine, class.best_width, class.best_spread, NULL);
        if (best_ns > k->largest_ns) {
            k->largest_ns = best_ns;
            k->width = class.best_width;
            k->spread = class.best_spread;
        }
    }
    for (int i = 0; graphi_plan_class_at(s->plan, i, &class); i++) {
        struct kind *k = &kinds[kind_of(kinds, &count, class.kind)];
        double ns = graphi_plan_class_ns(s->plan, i, s->machine, k->width, k->spread, NULL);
        k->chosen_ns += (double)class.operations * ns;
    }
    return count;
}

static void add_rows(struct study *s, const struct kind *kind)
{
    char id[STUDY_ID], base[STUDY_ID];
    double uniform_ms = kind->uniform_ns / 1e6;
    study_id(s, base, "%.63s %d threads", kind->name, s->about.cores);
    study_id(s, id, "%.63s s12", kind->name);
    study_operation(s->bench, base, s->about.cores, uniform_ms, NULL, 0);
    study_operation(s->bench, id, kind->width, kind->chosen_ns / 1e6, base, uniform_ms);
}

static void add_paper(struct study *s)
{
    for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
        for (int k = 0; k < TOP && strcmp(paper[i].network, s->name) == 0; k++) {
            char id[STUDY_ID], base[STUDY_ID];
            double uniform_ms = paper[i].cell[k].uniform_ms, chosen_ms = paper[i].cell[k].chosen_ms;
            study_id(s, base, "%s 68 threads", paper[i].cell[k].kind);
            study_id(s, id, "%s s12", paper[i].cell[k].kind);
            study_paper(s->bench, "concurrency-control.txt Table VI", base, "", 0, uniform_ms);
            study_paper(s->bench, "concurrency-control.txt Table VI", id, base, chosen_ms / uniform_ms, chosen_ms);
        }
}

static graphi_status body(struct study *s)
{
    struct kind kinds[MOST_KINDS];
    memset(kinds, 0, sizeof kinds);
    int count = sum_kinds(s, kinds);
    qsort(kinds, (size_t)count, sizeof *kinds, by_time);
    for (int i = 0; i < TOP && i < count; i++)
        add_rows(s, &kinds[i]);
    add_paper(s);
    return GRAPHI_OK;
}

static graphi_status run(struct bench *bench)
{
    study_of_paper(bench);
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", "ptb", NULL};
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_study_main(argc, argv, "table-6", run);
}
