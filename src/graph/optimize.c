/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments and optimizers. Every update is composed of primitive operations that end in `assign`, so that fusion
 * makes one element-wise program a parameter (or a group of them). The arithmetic follows PyTorch's torch.optim and
 * clip_grad_norm_, operation by operation, so that ten training steps agree with it to rounding. */
#include "graph/graph.h"

#include "base/float_mode.h"
#include "graph/op.h"
#include "graph/sparse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

graphi_value graphi_assign(graphi_graph *graph, graphi_value parameter, graphi_value value)
{
    if (!graph || graph->status != GRAPHI_OK)
        return GRAPHI_NONE;
    if (parameter < 0 || (size_t)parameter >= graph->values.count ||
        graph_value(graph, parameter)->kind != VALUE_PARAMETER)
        return graph_broken(graph, fail(GRAPHI_INVALID, "assign", "found value %d, expected a parameter", parameter));
    if (graph_value(graph, parameter)->assigned)
        return graph_broken(graph, fail(GRAPHI_INVALID, "assign", "found a second assignment of '%s', expected one",
                                        graph_value(graph, parameter)->name));
    graphi_value result =
        graph_append(graph, op_find("assign"), 2, (graphi_value[]){parameter, value}, 0, NULL, 0, NULL);
    if (result != GRAPHI_NONE) {
        graph->values.data[result].assigns = parameter;
        graph->values.data[parameter].assigned = true;
    }
    return result;
}

/* The optimizer at work: its settings with defaults and the values that all parameters share. */
struct update {
    graphi_graph *graph;
    graphi_optimizer options;
    graphi_value momentum, decay, clip;              /* scalars; GRAPHI_NONE when not used */
    graphi_value beta1, beta2, rest1, rest2; /* Adam: beta and 1 - beta */
    graphi_value step_size; /* Adam: lr r / (1 - beta1^t), with r = sqrt(1 - beta2^t) */
    graphi_value epsilon;   /* Adam: epsilon r; Adagrad: epsilon */
    graphi_value rate;      /* of the parameter at hand: step_size or the learning rate, multiplied */
};

static graphi_value scalar(graphi_graph *graph, double number)
{
    return graphi_constant(graph, GRAPHI_F32, 0, NULL, &(float){(float)number});
}

static graphi_value op1(graphi_graph *graph, const char *kind, graphi_value a)
{
    return graphi_op(graph, kind, 1, &a, 0, NULL);
}

static graphi_value op2(graphi_graph *graph, const char *kind, graphi_value a, graphi_value b)
{
    return graphi_op(graph, kind, 2, (graphi_value[]){a, b}, 0, NULL);
}

/* min(1, clip / (norm of all gradients together + 1e-6)) */
static graphi_value clip_factor(struct update *u, int n, const struct update_target *target)
{
    graphi_graph *graph = u->graph;
    graphi_value total = GRAPHI_NONE;
    for (int i = 0; i < n; i++) {
        graphi_value sum = sparse_squares(graph, &target[i]);
        total = total == GRAPHI_NONE ? sum : op2(graph, "add", total, sum);
    }
    graphi_value norm = op2(graph, "add", op1(graph, "sqrt", total), scalar(graph, 1e-6));
    return op2(graph, "min", op2(graph, "div", scalar(graph, u->options.clip_norm), norm), scalar(graph, 1));
}

/* A second update is told as such, not by the names of what the first one keeps. */
static graphi_status check_fresh(const graphi_graph *graph, int n, const graphi_value *parameter)
{
    for (int i = 0; i < n; i++)
        if (graph_value(graph, parameter[i])->assigned)
            return fail(GRAPHI_INVALID, "minimize",
                        "found '%s', which graphi_minimize or graphi_assign updates already, expected none of these",
                        graph_value(graph, parameter[i])->name);
    return GRAPHI_OK;
}

static graphi_value slot(struct update *u, graphi_value parameter, const char *what, double start)
{
    const struct value *value = graph_value(u->graph, parameter);
    char name[512];
    snprintf(name, sizeof name, "%.480s/%s", value->name, what);
    const struct value_type type = value->type;
    const graphi_initializer first = {.kind = start != 0 ? GRAPHI_INIT_CONSTANT : GRAPHI_INIT_ZERO, .a = start};
    graphi_value made = graphi_parameter(u->graph, name, type.dtype, type.rank, type.dims, &first);
    graphi_freeze(u->graph, made);
    return made;
}

static void assign_to(graphi_graph *graph, const struct update_target *t, graphi_value parameter, graphi_value value)
{
    graphi_assign(graph, parameter, sparse_written(graph, t, parameter, value));
}

static graphi_value momentum_step(struct update *u, const struct update_target *t, graphi_value gradient)
{
    graphi_graph *graph = u->graph;
    const bool inside = u->options.rate_in_velocity;
    graphi_value velocity = slot(u, t->parameter, "momentum", 0);
    graphi_value added = inside ? op2(graph, "mul", gradient, u->rate) : gradient;
    graphi_value next = op2(graph, "add", op2(graph, "mul", sparse_read(graph, t, velocity), u->momentum), added);
    assign_to(graph, t, velocity, next);
    return inside ? next : op2(graph, "mul", next, u->rate);
}

/* lr m / (1 - beta1^t) / (sqrt(v) / r + epsilon), r carried out of the elements: one division less for each. */
static graphi_value adam_step(struct update *u, const struct update_target *t, graphi_value gradient)
{
    graphi_graph *graph = u->graph;
    graphi_value m = slot(u, t->parameter, "adam_m", 0), v = slot(u, t->parameter, "adam_v", 0);
    graphi_value next_m = op2(graph, "add", op2(graph, "mul", sparse_read(graph, t, m), u->beta1),
                              op2(graph, "mul", gradient, u->rest1));
    graphi_value square = op2(graph, "mul", op1(graph, "square", gradient), u->rest2);
    graphi_value next_v = op2(graph, "add", op2(graph, "mul", sparse_read(graph, t, v), u->beta2), square);
    assign_to(graph, t, m, next_m);
    assign_to(graph, t, v, next_v);
    graphi_value below = op2(graph, "add", op1(graph, "sqrt", next_v), u->epsilon);
    return op2(graph, "mul", op2(graph, "div", next_m, below), u->rate);
}

/* lr g / (sqrt(sum of all g^2 so far) + epsilon) */
static graphi_value adagrad_step(struct update *u, const struct update_target *t, graphi_value gradient)
{
    graphi_graph *graph = u->graph;
    graphi_value sum = slot(u, t->parameter, "adagrad", u->options.accumulator);
    graphi_value next = op2(graph, "add", sparse_read(graph, t, sum), op1(graph, "square", gradient));
    assign_to(graph, t, sum, next);
    graphi_value below = op2(graph, "add", op1(graph, "sqrt", next), u->epsilon);
    return op2(graph, "mul", op2(graph, "div", gradient, below), u->rate);
}

static graphi_value sgd_step(struct update *u, const struct update_target *t, graphi_value gradient)
{
    return op2(u->graph, "mul", gradient, u->rate);
}

/* What is subtracted from the parameter, one row a graphi_optimizer_kind; whether a gradient of 0 changes nothing. */
static const struct rule {
    graphi_value (*step)(struct update *, const struct update_target *, graphi_value);
    bool rests;
    double epsilon; /* by default */
} rules[] = {[GRAPHI_SGD] = {sgd_step, true, 0},
             [GRAPHI_MOMENTUM] = {momentum_step, false, 0},
             [GRAPHI_ADAM] = {adam_step, false, 1e-8},
             [GRAPHI_ADAGRAD] = {adagrad_step, true, 1e-10}};

/* 1 - beta^t = 2 h / (1 + h) with h = tanh(-t ln(beta) / 2): to a few units in the last place where beta^t is so near
 * 1 that a difference would keep nothing of it. */
static graphi_value correction(graphi_graph *graph, double beta, graphi_value t)
{
    graphi_value h = op1(graph, "tanh", op2(graph, "mul", t, scalar(graph, -log(beta) / 2)));
    return op2(graph, "div", op2(graph, "add", h, h), op2(graph, "add", h, scalar(graph, 1)));
}

/* Adam's common part: t counts up once a run; the name stays free for a second optimizer on other parameters. */
static void prepare_adam(struct update *u)
{
    graphi_graph *graph = u->graph;
    char name[600];
    snprintf(name, sizeof name, "%.500sadam/step", u->options.only ? u->options.only : "");
    for (int i = 2; graph_find_source(graph, name) >= 0; i++)
        snprintf(name, sizeof name, "%.500sadam/step%d", u->options.only ? u->options.only : "", i);
    graphi_value step = graphi_parameter(graph, name, GRAPHI_F32, 0, NULL, NULL);
    graphi_freeze(graph, step);
    graphi_value one = scalar(graph, 1), next = op2(graph, "add", step, one);
    graphi_assign(graph, step, next);
    u->beta1 = scalar(graph, u->options.beta1);
    u->beta2 = scalar(graph, u->options.beta2);
    u->rest1 = scalar(graph, 1 - u->options.beta1);
    u->rest2 = scalar(graph, 1 - u->options.beta2);
    graphi_value root = op1(graph, "sqrt", correction(graph, u->options.beta2, next));
    graphi_value rate = op2(graph, "div", u->options.learning_rate, correction(graph, u->options.beta1, next));
    u->step_size = op2(graph, "mul", rate, root);
    u->epsilon = op2(graph, "mul", scalar(graph, u->options.epsilon), root);
}

static double or_default(double number, double usual) { return number != 0 ? number : usual; }

/* What the rate is for this parameter. */
static graphi_value rate_of(struct update *u, graphi_value parameter)
{
    const struct value *value = graph_value(u->graph, parameter);
    const graphi_value rate = u->options.kind == GRAPHI_ADAM ? u->step_size : u->options.learning_rate;
    if (!value->multiplied || value->rate == 1)
        return rate;
    return op2(u->graph, "mul", rate, scalar(u->graph, value->rate));
}

/* By what the decay is multiplied for this parameter. */
static double decay_times(const struct update *u, graphi_value parameter)
{
    const struct value *value = graph_value(u->graph, parameter);
    return value->multiplied ? value->decay : value->type.rank > 1;
}

/* gradient + decay * what is there of the parameter */
static graphi_value decayed(struct update *u, graphi_value parameter, graphi_value old, graphi_value gradient)
{
    const double times = decay_times(u, parameter);
    graphi_value decay = u->decay;
    if (decay == GRAPHI_NONE || times == 0)
        return gradient;
    if (times != 1)
        decay = scalar(u->graph, u->options.weight_decay * times);
    return op2(u->graph, "add", gradient, op2(u->graph, "mul", old, decay));
}

/* A list where it is asked for; otherwise where its results are those of the dense form, and it is the faster one: rows
 * of it are written, read and written again, those of the dense form as well. */
static graphi_status choose_form(const struct update *u, struct update_target *target)
{
    const struct sparse_ids ids = sparse_ids(u->graph, target);
    const struct value *table = graph_value(u->graph, target->parameter);
    const bool same = rules[u->options.kind].rests && ids.alike &&
                      (u->options.weight_decay == 0 || decay_times(u, target->parameter) == 0);
    const bool faster = 2 * ids.count <= table->type.dims[0];
    if (ids.bounded && u->options.sparse == GRAPHI_ON)
        return fail(GRAPHI_UNSUPPORTED, "minimize",
                    "found several lookups of '%s' whose ids follow a symbol, expected one lookup, fixed sizes, or "
                    "sparse updates not to be asked for", table->name);
    if (ids.count && (u->options.sparse == GRAPHI_ON || (!u->options.sparse && same && faster)))
        sparse_gradient(u->graph, target);
    return u->graph->status;
}

static void append_update(struct update *u, const struct update_target *t)
{
    graphi_graph *graph = u->graph;
    graphi_value g = t->gradient, old = sparse_read(graph, t, t->parameter);
    if (u->clip != GRAPHI_NONE)
        g = op2(graph, "mul", g, u->clip);
    g = decayed(u, t->parameter, old, g);
    u->rate = rate_of(u, t->parameter);
    graphi_value step = rules[u->options.kind].step(u, t, g);
    assign_to(graph, t, t->parameter, op2(graph, "sub", old, step));
}

/* So that whoever adds gradients of several solvers (group/split.h) finds them: each is the result of a node, and read
 * for one update alone. Those of rows cannot be added number by number. */
static void mark_gradient(graphi_graph *graph, struct update_target *t)
{
    graph->values.data[t->parameter].by_rows = t->rows != GRAPHI_NONE;
    if (t->rows != GRAPHI_NONE)
        return;
    const struct value *value = graph_value(graph, t->gradient);
    if (value->kind != VALUE_RESULT || value->updates)
        t->gradient = op1(graph, "identity", t->gradient);
    if (t->gradient != GRAPHI_NONE)
        graph->values.data[t->gradient].updates = t->parameter + 1;
}

static graphi_status append_updates(struct update *u, int n, struct update_target *target)
{
    graphi_graph *graph = u->graph;
    for (int i = 0; i < n; i++)
        TRY(choose_form(u, &target[i]));
    for (int i = 0; i < n; i++)
        mark_gradient(graph, &target[i]);
    graph->updating = true;
    graphi_scope(graph, "update");
    if (u->options.kind == GRAPHI_MOMENTUM)
        u->momentum = scalar(graph, or_default(u->options.momentum, 0.9));
    if (u->options.kind == GRAPHI_ADAM)
        prepare_adam(u);
    if (u->options.kind == GRAPHI_ADAGRAD)
        u->epsilon = scalar(graph, u->options.epsilon);
    u->clip = u->options.clip_norm > 0 ? clip_factor(u, n, target) : GRAPHI_NONE;
    u->decay = u->options.weight_decay != 0 ? scalar(graph, u->options.weight_decay) : GRAPHI_NONE;
    for (int i = 0; i < n && graph->status == GRAPHI_OK; i++) {
        char scope[512];
        snprintf(scope, sizeof scope, "update/%.500s", graph_value(graph, target[i].parameter)->name);
        graphi_scope(graph, scope);
        append_update(u, &target[i]);
    }
    return graph->status;
}

/* Fills `parameter` with the trainable ones; gives how many. */
static int trainable(const graphi_graph *graph, const char *only, graphi_value *parameter)
{
    int n = 0;
    for (size_t v = 0; v < graph->values.count; v++) {
        const struct value *value = &graph->values.data[v];
        if (value->kind == VALUE_PARAMETER && !value->frozen && value->type.dtype == GRAPHI_F32 &&
            (!only || strncmp(value->name, only, strlen(only)) == 0))
            parameter[n++] = (graphi_value)v;
    }
    return n;
}

/* A field that was forgotten is a value, too. */
static const char *none_given(graphi_value rate)
{
    return rate == 0 ? " (value 0, the graph's first, as where none is given)" : "";
}

static graphi_status check_rate(const graphi_graph *graph, graphi_value rate, int n, const graphi_value *parameter)
{
    for (int i = 0; i < n; i++)
        if (parameter[i] == rate)
            return fail(GRAPHI_INVALID, "minimize",
                        "found the trained parameter '%s' as learning rate%s, expected a value that is not trained",
                        graph_value(graph, rate)->name, none_given(rate));
    return GRAPHI_OK;
}

static graphi_status check_options(const graphi_graph *graph, const graphi_optimizer *options)
{
    if (!options)
        return fail(GRAPHI_INVALID, "minimize", "found no optimizer, expected a graphi_optimizer");
    if ((unsigned)options->kind > GRAPHI_ADAGRAD)
        return fail(GRAPHI_INVALID, "minimize", "found optimizer %d, expected a graphi_optimizer_kind",
                    (int)options->kind);
    if (options->sparse < GRAPHI_OFF || options->sparse > GRAPHI_ON)
        return fail(GRAPHI_INVALID, "minimize", "found %d for sparse updates, expected a graphi_choice",
                    (int)options->sparse);
    graphi_value rate = options->learning_rate;
    if (rate < 0 || (size_t)rate >= graph->values.count)
        return fail(GRAPHI_INVALID, "minimize", "found value %d as learning rate, expected a value of this graph",
                    rate);
    const struct value_type *type = &graph_value(graph, rate)->type;
    if (type->dtype != GRAPHI_F32 || type->rank != 0) {
        char text[96];
        type_text(type, text, sizeof text);
        return fail(GRAPHI_INVALID, "minimize", "found a learning rate of type %s%s, expected float32[]", text,
                    none_given(rate));
    }
    const double zero_or_more[] = {options->momentum, options->beta1, options->beta2, options->epsilon,
                                   options->weight_decay, options->clip_norm, options->accumulator};
    for (size_t i = 0; i < sizeof zero_or_more / sizeof *zero_or_more; i++)
        if (!(zero_or_more[i] >= 0) || (i < 3 && (float)zero_or_more[i] >= 1)) /* as a float32 is what is used */
            return fail(GRAPHI_INVALID, "minimize",
                        "found %g, expected momentum and betas from 0 to below 1, the other numbers 0 or more",
                        zero_or_more[i]);
    return GRAPHI_OK;
}

/* Appends the updates of parameters whose gradients are there; the others stay as they are. */
static graphi_status update_all(graphi_graph *graph, const graphi_optimizer *optimizer, int n,
                                struct update_target *target)
{
    struct update u = {.graph = graph, .options = *optimizer};
    u.options.beta1 = or_default(optimizer->beta1, 0.9);
    u.options.beta2 = or_default(optimizer->beta2, 0.999);
    u.options.epsilon = or_default(optimizer->epsilon, rules[optimizer->kind].epsilon);
    const char *scope = graph->scope;
    const bool backward = graph->backward;
    graph->backward = true;
    graphi_status status = append_updates(&u, n, target);
    graph->updating = false;
    graph->backward = backward;
    graph->scope = scope;
    return status ? status : graph->status;
}

/* parameter, gradient: room for all of the graph's values; target: zeroed room. */
static graphi_status minimize_by(graphi_graph *graph, graphi_value loss, const graphi_optimizer *optimizer,
                                 graphi_value *parameter, graphi_value *gradient, struct update_target *target)
{
    const int n = trainable(graph, optimizer->only, parameter);
    int kept = 0;
    TRY(graphi_gradients(graph, loss, n, parameter, gradient));
    for (int i = 0; i < n; i++)
        if (gradient[i] != GRAPHI_NONE) {
            target[kept] = (struct update_target){parameter[i], gradient[i], GRAPHI_NONE};
            parameter[kept++] = parameter[i];
        }
    if (kept == 0)
        return fail(GRAPHI_INVALID, "minimize",
                    "found no trainable parameter that the loss depends on, expected one");
    TRY(check_rate(graph, optimizer->learning_rate, kept, parameter));
    TRY(check_fresh(graph, kept, parameter));
    return update_all(graph, optimizer, kept, target);
}

static graphi_status minimize(graphi_graph *graph, graphi_value loss, const graphi_optimizer *optimizer)
{
    TRY(graphi_graph_status(graph));
    graphi_status status = check_options(graph, optimizer);
    const size_t most = graph->values.count;
    graphi_value *parameter = status ? NULL : mem_zalloc_array(most * 2 + 1, sizeof *parameter);
    struct update_target *target = status ? NULL : mem_zalloc_array(most + 1, sizeof *target);
    if (!status && (!parameter || !target))
        status = fail_memory("minimize", most * (2 * sizeof *parameter + sizeof *target));
    if (!status)
        status = minimize_by(graph, loss, optimizer, parameter, parameter + most, target);
    mem_free(parameter);
    mem_free(target);
    graph_broken(graph, status);
    return status;
}

graphi_status graphi_minimize(graphi_graph *graph, graphi_value loss, const graphi_optimizer *optimizer)
{
    struct float_mode mode = float_mode_enter(); /* 1 - beta, and what is rounded to float32 */
    graphi_status status = minimize(graph, loss, optimizer);
    float_mode_leave(mode);
    return status;
}
