/* SPDX-License-Identifier: Apache-2.0 */
/* concurrency-control.txt Table VI: the five most time-consuming kinds of operations with 68 threads each, and with the
 * widths of strategies 1 and 2 (every operation of a kind as wide as is best for the kind's largest); simulated. The
 * paper's kinds are TensorFlow's and do not all exist here: its best speed-ups stand in the notes. */
#include "study.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KINDS = 128, TOP = 5 };

struct kind {
    char name[64];
    double uniform_ns, chosen_ns, largest_ns;
    int width;
};

static const struct {
    const char *network, *text;
} paper[] = {
    {"resnet50", "1.01 to 1.08"}, {"dcgan", "1.03 to 1.21"}, {"inception-v3", "1.01 to 1.08"}, {"ptb", "1.02 to 1.34"}};

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
        if (class.serial_ns > k->largest_ns) {
            k->largest_ns = class.serial_ns;
            k->width = class.best_width;
        }
    }
    for (int i = 0; graphi_plan_class_at(s->plan, i, &class); i++) {
        struct kind *k = &kinds[kind_of(kinds, &count, class.kind)];
        k->chosen_ns += (double)class.operations * graphi_plan_class_ns(s->plan, i, s->machine, k->width, false, NULL);
    }
    return count;
}

static void add_row(struct study *s, const char *kind, const char *how, int width, double ns, double base_ns)
{
    char id[160], base[160];
    double ms = ns / 1e6, base_ms = base_ns / 1e6;
    snprintf(id, sizeof id, "%s %s: %s %s", s->name, s->size, kind, how);
    snprintf(base, sizeof base, "%s %s: %s 68 threads", s->name, s->size, kind);
    json_t *row = result_row(&s->bench->result, id, "graphi");
    json_object_set_new(row, "simulated", json_true());
    result_integer(row, "executors", 1);
    result_integer(row, "width", width);
    result_times(row, &ms, 1);
    if (base_ns > 0)
        result_ratio(row, base, &ms, &base_ms, 1);
}

static graphi_status body(struct bench *bench, const char *network, const char *size)
{
    struct study s;
    struct kind kinds[MOST_KINDS];
    memset(kinds, 0, sizeof kinds);
    graphi_status status = study_open(bench, network, size, &s);
    if (!status && !s.missing) {
        int count = sum_kinds(&s, kinds);
        qsort(kinds, (size_t)count, sizeof *kinds, by_time);
        for (int i = 0; i < TOP && i < count; i++) {
            add_row(&s, kinds[i].name, "68 threads", s.about.cores, kinds[i].uniform_ns, 0);
            add_row(&s, kinds[i].name, "s12", kinds[i].width, kinds[i].chosen_ns, kinds[i].uniform_ns);
        }
        for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
            if (strcmp(paper[i].network, network) == 0)
                result_note(&bench->result, "%s: Table VI has speed-ups of %s over its five kinds", network,
                            paper[i].text);
    }
    study_close(&s);
    return status;
}

static graphi_status run(struct bench *bench)
{
    static const char *const networks[] = {"resnet50", "dcgan", "inception-v3", "ptb", NULL};
    return study_each(bench, networks, body);
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "table-6", run);
}
