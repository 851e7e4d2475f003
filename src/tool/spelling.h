/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some names a mistyped word was probably meant to be. */
#ifndef TOOL_SPELLING_H
#define TOOL_SPELLING_H

#include <stddef.h>

/* How far `length` letters of `typed` are from `name`: letters changed, added or left out; 1 where one of the two, of
 * four letters or more, begins with the other. From 3 on it is another word. */
enum { SPELLING_MOST = 2 };
int spelling_distance(const char *typed, size_t length, const char *name);

#endif
