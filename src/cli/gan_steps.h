/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of training by what a state counts, for whoever reads checkpoints: those of the GAN are several runs. */
#ifndef CLI_GAN_STEPS_H
#define CLI_GAN_STEPS_H

#include <stdbool.h>
#include <stdint.h>

enum { GAN_GENERATOR_RUNS = 2 }; /* of a step, after one of the discriminator */

/* Whether a network is trained by gan_train. */
bool gan_is(const char *name);

/* Training steps of a network after so many runs with updates, which its state counts: dcgan's have several. */
uint64_t gan_steps(const char *name, uint64_t runs);

#endif
