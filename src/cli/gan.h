/* SPDX-License-Identifier: Apache-2.0 */
/* Training of the GAN, which is two plans in alternation over one state. */
#ifndef CLI_GAN_H
#define CLI_GAN_H

#include "tool/options.h"

/* `graphi train dcgan`: gives the exit status. */
int gan_train(const struct options *options);

#endif
