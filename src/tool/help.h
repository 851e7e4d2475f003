/* SPDX-License-Identifier: Apache-2.0 */
/* --help, the overview, shell completion and the man page. */
#ifndef TOOL_HELP_H
#define TOOL_HELP_H

#include <stdio.h>

#include "tool/command_line.h"

struct experiment;

void help_overview(FILE *out);
void help_command(const struct command *command, FILE *out);
void help_experiment(const struct experiment *experiment, FILE *out);
void help_bash(FILE *out); /* completion; completion.c */
void help_zsh(FILE *out);
void help_fish(FILE *out);
void help_man(FILE *out);        /* troff */

#endif
