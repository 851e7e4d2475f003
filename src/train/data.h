/* SPDX-License-Identifier: Apache-2.0 */
/* What the library knows of an open data set beside its public description. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "graphi/data.h"

/* With which it was opened, checked, zeros replaced by the defaults. */
const graphi_data_options *data_options(const graphi_data *data);

#endif
