/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a training. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "train/training.h"

/* Those that the caller did not give. */
graphi_status trainer_compile(struct graphi_trainer *trainer);

#endif
