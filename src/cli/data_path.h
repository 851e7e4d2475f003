/* SPDX-License-Identifier: Apache-2.0 */
/* Where data lie. */
#ifndef CLI_DATA_PATH_H
#define CLI_DATA_PATH_H

#include "tool/options.h"

#define FASHION "/usr/share/datasets/fashion-mnist"

/* --data, or where images lie by default. */
static inline const char *data_path_of(const struct options *options)
{
    return options->data ? options->data : FASHION;
}

#endif
