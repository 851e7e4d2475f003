/* SPDX-License-Identifier: Apache-2.0 */
/* PathNet (Fernando et al. 2017) in the form of graphi.txt Table 1: three layers of six active modules; a module is a
 * 3x3 convolution, ReLU and 2x2 max-pool; the modules' outputs are summed and given to every module of the next layer.
 */
#include "models/model.h"

#include <math.h>
#include <stdio.h>

enum { LAYERS = 3, MODULES = 6 };

static graphi_value module(graphi_graph *graph, int layer, int index, graphi_value x, int64_t in, int64_t out)
{
    char scope[40];
    snprintf(scope, sizeof scope, "layer%d/module%d", layer, index);
    graphi_scope(graph, scope);
    /* He's deviation, divided by the number of summed modules that feed this one: activations keep their size over
     * layers. */
    double deviation = sqrt(2.0 / (9.0 * (double)in)) / (layer ? MODULES : 1);
    graphi_value w =
        model_weight(graph, scope, "weight", 4, (int64_t[]){3, 3, in, out}, GRAPHI_INIT_NORMAL, 0, deviation);
    graphi_value y = graphi_conv2d(graph, x, w, GRAPHI_LIST(1, 1), GRAPHI_LIST(1, 1, 1, 1), GRAPHI_LIST(1, 1), 1);
    y = graphi_relu(graph, graphi_add(graph, y, model_bias(graph, scope, "bias", out)));
    return graphi_max_pool(graph, y, GRAPHI_LIST(2, 2), GRAPHI_LIST(2, 2), GRAPHI_LIST(0, 0, 0, 0), 0);
}

static void build(graphi_graph *graph, const graphi_model_info *s, const graphi_model_options *options)
{
    graphi_value x =
        graphi_input(graph, "images", GRAPHI_F32, 4, (int64_t[]){s->batch, s->image, s->image, s->channels});
    int64_t in = s->channels, side = s->image;
    for (int layer = 0; layer < LAYERS; layer++) {
        graphi_value sum = GRAPHI_NONE;
        for (int m = 0; m < MODULES; m++) {
            graphi_value y = module(graph, layer, m, x, in, s->units);
            sum = m ? graphi_add(graph, sum, y) : y;
        }
        x = sum;
        in = s->units;
        side /= 2;
    }
    graphi_scope(graph, "output");
    int64_t features = side * side * s->units;
    graphi_value flat = graphi_reshape(graph, x, GRAPHI_LIST(s->batch, features));
    graphi_value logits = model_dense(graph, "output", flat, features, s->classes);
    graphi_value loss = model_classify(graph, logits, s->batch);
    graphi_output(graph, "loss", loss);
    model_train(graph, loss, options, &(graphi_optimizer){.kind = GRAPHI_SGD});
}

const struct model model_pathnet = {
    .info = {.name = "pathnet",
             .summary = "three layers of six active convolution modules",
             .feed = GRAPHI_MODEL_IMAGES,
             .batch = 64,
             .channels = 3,
             .classes = 10,
             .metric = "accuracy",
             .rate = 0.005, /* at 0.02 two seeds of three lose their relus at once */
             .schedule = "constant",
             .epochs = 1},
    .size = {{.image = 32, .units = 16}, {.image = 48, .units = 32}, {.image = 64, .units = 48}},
    .switches = MODEL_IMAGE,
    .build = build,
};
