/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a training's checkpoint. */
#ifndef TRAIN_TRAINER_SAVE_H
#define TRAIN_TRAINER_SAVE_H

#include "train/training.h"

/* Whether the file under the name of the checkpoint may be written over. Errors: INVALID, IO. */
graphi_status trainer_guard(const struct graphi_trainer *trainer);

/* Which file is there now, so that saving sees who else writes it. */
void trainer_watch(struct graphi_trainer *trainer);

#endif
