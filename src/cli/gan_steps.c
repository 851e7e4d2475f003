/* SPDX-License-Identifier: Apache-2.0 */
/* Which network is the GAN, and how many runs are a step of it. */
#include "cli/gan_steps.h"

#include <string.h>

bool gan_is(const char *name)
{
    return name && strcmp(name, "dcgan") == 0;
}

uint64_t gan_steps(const char *name, uint64_t runs)
{
    return gan_is(name) ? runs / (1 + GAN_GENERATOR_RUNS) : runs;
}
