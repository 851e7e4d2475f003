/* SPDX-License-Identifier: Apache-2.0 */
/* How to ask graphi profile for the graph of another command. */
#ifndef TOOL_PROFILE_WORDS_H
#define TOOL_PROFILE_WORDS_H

#include "tool/job.h"

/* What to type so that the plan that profile stores is the one that this job looks for: "graphi profile NETWORK ...",
 * for a shell. False, text "": there are no such words, or no room for them. */
bool profile_words(const struct job *job, char *text, size_t size);

#endif
