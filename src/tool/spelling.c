/* SPDX-License-Identifier: Apache-2.0 */
/* Distance of words by letters (Levenshtein), a row of its table at a time. Usual size: ten letters, sixty names. */
#include "tool/spelling.h"

#include <string.h>

enum { MOST_LETTERS = 40 };

static int least(int a, int b) { return a < b ? a : b; }

int spelling_distance(const char *typed, size_t length, const char *name)
{
    const size_t letters = strlen(name), shorter = length < letters ? length : letters;
    int row[MOST_LETTERS + 1];
    if (length > MOST_LETTERS || letters > MOST_LETTERS)
        return SPELLING_MOST + 1;
    if (shorter >= 4 && strncmp(typed, name, shorter) == 0)
        return 1;
    for (size_t n = 0; n <= letters; n++)
        row[n] = (int)n;
    for (size_t t = 1; t <= length; t++) {
        int corner = row[0]; /* of the row before, one to the left */
        row[0] = (int)t;
        for (size_t n = 1; n <= letters; n++) {
            int above = row[n];
            row[n] = least(least(above, row[n - 1]) + 1, corner + (typed[t - 1] != name[n - 1]));
            corner = above;
        }
    }
    return row[letters];
}
