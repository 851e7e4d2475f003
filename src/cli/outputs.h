/* SPDX-License-Identifier: Apache-2.0 */
/* What a command will write: nothing of what it reads, no two files of one name, and all of it in places that can be
 * written. */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include "tool/command_line.h"

/* Before any work, of all options that name files; folders that are missing are made. USAGE or IO, reported. */
graphi_status outputs_check(const struct command *command, const struct options *options);

/* Of a file in the folder of --output, whose name an option does not tell: USAGE, reported, where the command reads it.
 */
graphi_status outputs_check_answer(const struct options *options, const char *path);

#endif
