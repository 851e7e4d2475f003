/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands, a file each (run is in profile.c, help in main.c); each gives the exit status. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "tool/command_line.h"

int command_info(const struct options *options);
int command_demo(const struct options *options);
int command_train(const struct options *options);
int command_eval(const struct options *options);
int command_generate(const struct options *options);
int command_profile(const struct options *options);
int command_run(const struct options *options);
int command_inspect(const struct options *options);
int command_simulate(const struct options *options);
int command_bench(const struct options *options);
int command_conformance(const struct options *options);
int command_show(const struct options *options);
int command_help(const struct options *options);

/* The names that command_bench() takes in this build; with summaries a line each. */
bool bench_experiments(FILE *out, bool summaries);

#endif
