/* SPDX-License-Identifier: Apache-2.0 */
/* Does bfloat16 learn as float32 does? The same real task (PathNet on Fashion-MNIST, or the networks that are named) is
 * trained by `graphi train` in both precisions with several seeds. Seeds of one precision differ by noise: initial
 * weights, order of the data. The goal says that the means of the two precisions differ by no more than noise explains:
 * at most 2.5 standard errors of their difference, on average over the rounds (one error is what chance gives on
 * average). Writes the curves as loss-curves-NETWORK.svg into --out. */
#include "picture.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 3, ROUNDS = 10, EVERY = 40 };
static const char *const precisions[] = {"float32", "bfloat16"};

struct curves {
    double loss[2][SEEDS][ROUNDS], metric[2][SEEDS][ROUNDS];
    int rounds;
};

/* The command beside this program: build/bench/.. or PREFIX/libexec/graphi/../../bin. */
static bool find_command(char *path, size_t size)
{
    char self[4000];
    struct stat about;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = 0;
    snprintf(path, size, "%s/../graphi", self);
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
        return true;
    snprintf(path, size, "%s/../../bin/graphi", self);
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static graphi_status train(const char *name, int precision, int seed, struct curves *curves)
{
    char command[4096], line[5000];
    json_error_t error;
    if (!find_command(command, sizeof command))
        return report_error(GRAPHI_IO, "loss-curves",
                            "found no graphi beside this program, expected it built or installed");
    snprintf(line, sizeof line, "'%s' train %s --steps %d --validate %d --seed %d --precision %s --quiet --json -",
             command, name, ROUNDS * EVERY, EVERY, seed + 1, precisions[precision]);
    FILE *in = popen(line, "r");
    json_t *root = in ? json_loadf(in, JSON_DISABLE_EOF_CHECK, &error) : NULL, *about = json_object_get(root, "train");
    json_t *loss = json_object_get(about, "loss"), *metric = json_object_get(about, "value");
    int rounds = (int)json_array_size(loss) < ROUNDS ? (int)json_array_size(loss) : ROUNDS;
    curves->rounds = curves->rounds && curves->rounds < rounds ? curves->rounds : rounds;
    for (int i = 0; i < rounds; i++) {
        curves->loss[precision][seed][i] = json_number_value(json_array_get(loss, (size_t)i));
        curves->metric[precision][seed][i] = json_number_value(json_array_get(metric, (size_t)i));
    }
    json_decref(root);
    int status = in ? pclose(in) : -1;
    status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (report_interrupted() || status == GRAPHI_INTERRUPTED)
        return GRAPHI_INTERRUPTED;
    return status == 0 && rounds
               ? GRAPHI_OK
               : report_error(GRAPHI_IO, name, "found exit %d of `graphi train`, expected its curve", status);
}

static double mean_of(const double values[SEEDS][ROUNDS], int round)
{
    double sum = 0;
    for (int s = 0; s < SEEDS; s++)
        sum += values[s][round];
    return sum / SEEDS;
}

static double variance_of(const double values[SEEDS][ROUNDS], int round)
{
    double mean = mean_of(values, round), sum = 0;
    for (int s = 0; s < SEEDS; s++)
        sum += (values[s][round] - mean) * (values[s][round] - mean);
    return sum / (SEEDS - 1);
}

/* Difference of the means in standard errors, averaged over the rounds. */
static double apart(double values[2][SEEDS][ROUNDS], int rounds)
{
    double sum = 0;
    for (int i = 0; i < rounds; i++) {
        double error = sqrt((variance_of(values[0], i) + variance_of(values[1], i)) / SEEDS);
        sum += fabs(mean_of(values[0], i) - mean_of(values[1], i)) / fmax(error, 1e-12);
    }
    return sum / rounds;
}

/* Every seed as a thin line, the mean as a thick one. */
static graphi_status draw(struct bench *bench, const struct curves *curves, const char *name)
{
    struct picture picture;
    char file[160], title[160];
    double most = 0, mean[ROUNDS], steps[ROUNDS];
    for (int i = 0; i < curves->rounds; i++)
        for (int k = 0; k < 2 * SEEDS; k++)
            most = fmax(most, curves->loss[k / SEEDS][k % SEEDS][i]);
    snprintf(file, sizeof file, "loss-curves-%s", name);
    snprintf(title, sizeof title, "%s: training loss, %d seeds each", name, SEEDS);
    graphi_status status =
        picture_open(&picture, bench, file, title, "steps", "loss", fmax(curves->rounds, 1) * EVERY, fmax(most, 1e-12));
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < curves->rounds; i++) {
            steps[i] = (i + 1) * EVERY;
            mean[i] = mean_of(curves->loss[p], i);
        }
        for (int s = 0; s < SEEDS; s++)
            picture_line(&picture, steps, curves->loss[p][s], curves->rounds, p, 0.6);
        picture_line(&picture, steps, mean, curves->rounds, p, 2.2);
        snprintf(title, sizeof title, "%s (thick: mean)", precisions[p]);
        picture_name(&picture, title, p);
    }
    return picture_close(&picture, status);
}

static graphi_status body(struct bench *bench, const char *name, const char *size)
{
    struct curves curves = {.rounds = 0};
    char title[160];
    (void)size;
    if (job_network("loss-curves", name, "") != GRAPHI_OK)
        return GRAPHI_USAGE;
    for (int s = 0; s < SEEDS; s++)
        for (int p = 0; p < 2; p++) {
            if (report_interrupted())
                return GRAPHI_INTERRUPTED;
            report_progress(bench->options.quiet, "loss-curves: %s, %s, seed %d of %d", name, precisions[p], s + 1,
                            SEEDS);
            graphi_status status = train(name, p, s, &curves);
            if (status != GRAPHI_OK)
                return status;
        }
    for (int i = 3; i < curves.rounds; i += 4)
        result_note(&bench->result,
                    "%s, step %d: loss %.4f (float32) and %.4f (bfloat16), deviations over seeds %.4f and %.4f", name,
                    (i + 1) * EVERY, mean_of(curves.loss[0], i), mean_of(curves.loss[1], i),
                    sqrt(variance_of(curves.loss[0], i)), sqrt(variance_of(curves.loss[1], i)));
    snprintf(title, sizeof title, "%s: difference of the mean losses, standard errors, average of %d rounds", name,
             curves.rounds);
    result_goal(&bench->result, title, apart(curves.loss, curves.rounds), 2.5, false);
    snprintf(title, sizeof title, "%s: the same of the validation metric", name);
    result_goal(&bench->result, title, apart(curves.metric, curves.rounds), 2.5, false);
    return draw(bench, &curves, name);
}

static graphi_status run(struct bench *bench)
{
    if (bench->options.rest_count > 0)
        return bench_networks(bench, "small", body);
    return body(bench, "pathnet", "small");
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, "loss-curves", run);
}
