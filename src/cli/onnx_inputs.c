/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a model as --input, --inputs and --shape say, random where they say nothing. One thread. */
#include "cli/onnx_inputs.h"

#include "cli/onnx_random.h"
#include "tool/report.h"

#include <string.h>

struct finding {
    const struct options *options;
    const graphi_session *session;
    bool given_alone;
    struct onnx_inputs *to;
};

static const char *split_word(const char *word, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static const char *find_word(const char *const *words, int count, const char *name)
{
    const char *found = NULL;
    for (int i = 0; i < count && !found; i++)
        found = split_word(words[i], name);
    return found;
}

/* Words that name no input would have no effect. */
static graphi_status check_words(const struct finding *job, const char *option, const char *const *words, int count,
                                 const char *form)
{
    for (int i = 0; i < count; i++) {
        graphi_session_port port;
        bool known = false;
        for (size_t k = 0; !known && graphi_session_port_at(job->session, GRAPHI_SESSION_INPUT, k, &port); k++)
            known = split_word(words[i], port.name) != NULL;
        if (!known)
            return report_usage(option, words[i], "%s, NAME one of `graphi inspect`'s inputs", form);
    }
    return GRAPHI_OK;
}

/* NULL in *out: it is left out, since it has a default. */
static graphi_status find_input(struct finding *job, const graphi_session_port *port, size_t i, graphi_tensor **out)
{
    const struct options *o = job->options;
    const char *path = find_word(o->input, o->input_count, port->name);
    *out = NULL;
    if (path || o->inputs) {
        graphi_status status = graphi_tensor_load(path ? path : o->inputs, port->name, NULL, out);
        if (status == GRAPHI_OK || path || !port->has_default)
            return status == GRAPHI_OK ? status : report_failure(status);
        return GRAPHI_OK;
    }
    const bool wanted = !job->given_alone || find_word(o->shape, o->shape_count, port->name);
    if (port->has_default || port->optional || !wanted)
        return GRAPHI_OK;
    return onnx_random(port, find_word(o->shape, o->shape_count, port->name), i, out);
}

graphi_status onnx_inputs_find(const struct options *options, const graphi_session *session, bool given_alone,
                               struct onnx_inputs *out)
{
    struct finding finding = {options, session, given_alone, out}, *job = &finding;
    *out = (struct onnx_inputs){.count = 0};
    const struct options *o = job->options;
    graphi_session_port port;
    graphi_status status = check_words(job, "--input", o->input, o->input_count, "NAME=FILE.npy");
    if (status == GRAPHI_OK)
        status = check_words(job, "--shape", o->shape, o->shape_count, "NAME=1x3x224x224");
    for (size_t i = 0; status == GRAPHI_OK && graphi_session_port_at(job->session, GRAPHI_SESSION_INPUT, i, &port);
         i++) {
        if (job->to->count == ONNX_PORTS)
            return report_error(GRAPHI_UNSUPPORTED, o->subject, "found more than %d inputs, expected fewer",
                                ONNX_PORTS);
        job->to->names[job->to->count] = port.name;
        status = find_input(job, &port, i, &job->to->values[job->to->count]);
        job->to->count += status == GRAPHI_OK && job->to->values[job->to->count];
    }
    return status;
}

void onnx_inputs_free(struct onnx_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        graphi_tensor_destroy(inputs->values[i]);
}
