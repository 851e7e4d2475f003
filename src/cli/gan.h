/* SPDX-License-Identifier: Apache-2.0 */
/* Training of the GAN, which is two plans in alternation over one state. */
#ifndef CLI_GAN_H
#define CLI_GAN_H

#include "cli/options.h"

/* Whether a network is trained by gan_train. */
bool gan_is(const char *name);

/* Training steps of a network after so many runs with updates, which its state counts: dcgan's have several. */
uint64_t gan_steps(const char *name, uint64_t runs);

/* `graphi train dcgan`: gives the exit status. */
int gan_train(const struct options *options);

#endif
