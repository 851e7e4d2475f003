/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a network that a command is about. What is wrong is reported. */
#ifndef CLI_FORM_H
#define CLI_FORM_H

#include "cli/samples.h"
#include "tool/options.h"

/* Opens the data and fills the model options that fit them: classes, channels, vocabulary. */
graphi_status form_with_data(const struct options *options, const char *name, graphi_data_split split,
                             graphi_model_options *model, struct samples *data);

/* The same of the network that --checkpoint is of, over the data that it was trained on, or others, whose words are
 * numbered as it numbers them. *whole: it is another text, of one file and with no --split asked for: all of it is the
 * training split. */
graphi_status form_trained(const struct options *options, const char *name, graphi_model_options *model,
                           struct samples *data, bool *whole);

/* The form of the network that the options ask for (job_model_options): with --data the one that learns from this data,
 * which is opened as training opens it and nothing else is read of; with --classes alone the one that learns from any
 * of so many classes; with --checkpoint the one that the file is of. */
graphi_status form_asked(const struct options *options, const char *name, graphi_model_options *model);

#endif
