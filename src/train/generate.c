/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens one after the other from a language model of one step: execute, draw from the logits, feed what was drawn.
 * Softmax and sums are made in double precision in the order of the vocabulary, so that one seed gives one text. */
#include "graphi/generate.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/compile/ports.h"
#include "engine/run/run.h"

#include <math.h>
#include <stdlib.h>

struct sampler {
    graphi_run *run;
    const graphi_generate_options *options;
    int64_t vocabulary;
    float *logits, *sorted;
    uint64_t drawn; /* how many tokens were: the counter of random numbers */
};

static graphi_status feed(const struct sampler *s, int32_t token)
{
    if (token < 0 || token >= s->vocabulary)
        return fail(GRAPHI_INVALID, "generate", "found token %d, expected 0 to %lld", token,
                    (long long)s->vocabulary - 1);
    TRY(graphi_run_set(s->run, "tokens", GRAPHI_I32, &token, sizeof token));
    TRY(graphi_run_execute(s->run));
    TRY(graphi_run_get(s->run, "logits", GRAPHI_F32, s->logits, (size_t)s->vocabulary * sizeof *s->logits));
    for (int64_t i = 0; i < s->vocabulary; i++)
        if (!isfinite(s->logits[i]))
            return fail(GRAPHI_NONFINITE, "generate", "found logit %g of token %lld, expected a number",
                        (double)s->logits[i], (long long)i);
    return GRAPHI_OK;
}

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The least logit that is among the top_k; of equal ones more may be. */
static float threshold(const struct sampler *s)
{
    const int64_t k = s->options->top_k;
    if (k <= 0 || k >= s->vocabulary)
        return -INFINITY;
    for (int64_t i = 0; i < s->vocabulary; i++)
        s->sorted[i] = s->logits[i];
    qsort(s->sorted, (size_t)s->vocabulary, sizeof *s->sorted, descending);
    return s->sorted[k - 1];
}

static int32_t most_likely(const struct sampler *s)
{
    int32_t best = 0;
    for (int32_t i = 1; i < s->vocabulary; i++)
        if (s->logits[i] > s->logits[best])
            best = i;
    return best;
}

static int32_t draw(struct sampler *s)
{
    const double temperature = s->options->temperature;
    const int32_t best = most_likely(s);
    if (temperature == 0)
        return best;
    const float least = threshold(s);
    const struct random4 random = random_philox(s->options->seed, 0, s->drawn++);
    const double unit = ((double)(random.v[0] >> 6) * 0x1p26 + (double)(random.v[1] >> 6)) * 0x1p-52;
    double sum = 0, reached = 0;
    for (int64_t i = 0; i < s->vocabulary; i++)
        if (s->logits[i] >= least)
            sum += exp(((double)s->logits[i] - (double)s->logits[best]) / temperature);
    int32_t last = best;
    for (int32_t i = 0; i < s->vocabulary; i++) {
        if (s->logits[i] < least)
            continue;
        reached += exp(((double)s->logits[i] - (double)s->logits[best]) / temperature);
        last = i;
        if (reached > unit * sum)
            return i;
    }
    return last;
}

static graphi_status go_on(struct sampler *s, const int32_t *prompt, int64_t prompt_count, int32_t *tokens,
                           int64_t count, int64_t *made)
{
    for (int64_t i = 0; i < prompt_count; i++)
        TRY(feed(s, prompt[i]));
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = draw(s);
        *made = i + 1;
        if (s->options->token && !s->options->token(s->options->context, tokens[i]))
            break;
        if (i + 1 < count)
            TRY(feed(s, tokens[i]));
    }
    return GRAPHI_OK;
}

/* The type of the run's logits tells how many tokens there are. */
static graphi_status find_vocabulary(const graphi_run *run, int64_t *vocabulary)
{
    const struct compiled *c = run->plan->compiled;
    const int32_t i = plan_output(c, "logits");
    const struct value_type *type = i < 0 ? NULL : &graph_value(c->graph, c->outputs.data[i].value)->type;
    if (!type || type->rank != 2 || type->dims[0] != 1 || type->dtype != GRAPHI_F32 || plan_input(c, "tokens") < 0)
        return fail(GRAPHI_INVALID, "generate",
                    "found %s, expected a language model's evaluation form of batch 1 and "
                    "one step: input 'tokens' [1,1], output 'logits' [1,vocabulary]",
                    !type ? "no output 'logits'" : "another form");
    *vocabulary = type->dims[1];
    return GRAPHI_OK;
}

static graphi_status check(const graphi_run *run, const graphi_generate_options *o, const int32_t *prompt,
                           int64_t prompt_count, const int32_t *tokens, int64_t count, const int64_t *made)
{
    if (!run || (count > 0 && !tokens) || !made)
        return fail(GRAPHI_INVALID, "generate", "found NULL, expected a run and room for tokens");
    if (!prompt || prompt_count < 1 || count < 0)
        return fail(GRAPHI_INVALID, "generate", "found a prompt of %lld tokens, expected at least 1",
                    (long long)prompt_count);
    if (!(o->temperature >= 0) || isinf(o->temperature) || o->top_k < 0)
        return fail(GRAPHI_INVALID, "generate", "found temperature %g, top_k %lld, expected none below 0",
                    o->temperature, (long long)o->top_k);
    return GRAPHI_OK;
}

graphi_status graphi_generate(graphi_run *run, const graphi_generate_options *options, const int32_t *prompt,
                              int64_t prompt_count, int32_t *tokens, int64_t count, int64_t *made)
{
    static const graphi_generate_options usual = {0};
    struct sampler s = {.run = run, .options = options ? options : &usual};
    TRY(check(run, s.options, prompt, prompt_count, tokens, count, made));
    TRY(find_vocabulary(run, &s.vocabulary));
    *made = 0;
    s.logits = mem_zalloc_array((size_t)s.vocabulary, 2 * sizeof *s.logits);
    if (!s.logits)
        return fail_memory("generate", (size_t)s.vocabulary * 2 * sizeof *s.logits);
    s.sorted = s.logits + s.vocabulary;
    graphi_status status = go_on(&s, prompt, prompt_count, tokens, count, made);
    mem_free(s.logits);
    return status;
}
