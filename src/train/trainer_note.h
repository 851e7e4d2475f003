/* SPDX-License-Identifier: Apache-2.0 */
/* What a training tells that is no error. */
#ifndef TRAIN_TRAINER_NOTE_H
#define TRAIN_TRAINER_NOTE_H

#include "train/training.h"

/* To the callback `note`, if there is one. */
void trainer_note(const struct graphi_trainer *trainer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
