/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target without libFuzzer: `fuzz_NAME ITERATIONS [SEED [SECONDS]]` mutates the target's seeds, `fuzz_NAME
 * FILE` repeats one input. Every input lies in a heap block of exactly its size, so that AddressSanitizer sees one byte
 * too far. Iteration i depends on SEED and i alone; a crash is found again by the number that is printed for it
 * (`fuzz_NAME 1 SEED+i`). */
#include "fuzz.h"

#include "base/random.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 16 };

struct dice {
    uint64_t key, used;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
    struct random4 r = random_philox(d->key, 0, d->used++);
    return (uint32_t)((uint64_t)r.v[0] * sides >> 32);
}

/* Numbers at which parsers break: limits of types, powers of two, small ones. */
static uint64_t hostile(struct dice *d)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       7,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x7fff,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x100000000,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffffffffffff};
    return numbers[roll(d, sizeof numbers / sizeof *numbers)];
}

static void overwrite(struct dice *d, uint8_t *data, size_t size, size_t width)
{
    uint64_t number = hostile(d);
    bool swapped = roll(d, 2);
    if (size < width)
        return;
    size_t at = roll(d, (uint32_t)(size - width + 1));
    for (size_t i = 0; i < width; i++)
        data[at + i] = (uint8_t)(number >> 8 * (swapped ? width - 1 - i : i));
}

/* Copies a stretch over another place. */
static void splice(struct dice *d, uint8_t *data, size_t size)
{
    size_t length = 1 + roll(d, (uint32_t)(size < 64 ? size : 64)), from, to;
    if (length > size)
        return;
    from = roll(d, (uint32_t)(size - length + 1));
    to = roll(d, (uint32_t)(size - length + 1));
    memmove(data + to, data + from, length);
}

/* Doubles a stretch, so that what is behind it moves. */
static size_t insert(struct dice *d, uint8_t *data, size_t size)
{
    size_t at = roll(d, (uint32_t)size), length = 1 + roll(d, 16);
    if (at + length > size || size + length > MOST)
        return size;
    memmove(data + at + length, data + at, size - at);
    return size + length;
}

static size_t cut(struct dice *d, uint8_t *data, size_t size)
{
    size_t at = roll(d, (uint32_t)size), length = 1 + roll(d, 16);
    if (at + length > size)
        return at ? at : size;
    memmove(data + at, data + at + length, size - at - length);
    return size - length;
}

/* Another digit for one that is there: headers written as text stay well-formed and say something else. */
static void other_digit(struct dice *d, uint8_t *data, size_t size)
{
    size_t start = roll(d, (uint32_t)size);
    for (size_t i = 0; i < size; i++) {
        uint8_t *at = &data[(start + i) % size];
        if (*at >= '0' && *at <= '9') {
            *at = (uint8_t)('0' + roll(d, 10));
            return;
        }
    }
}

static size_t mutate(struct dice *d, uint8_t *data, size_t size)
{
    static const char signs[] = "0123456789-.,:;()[]{}\"'\\ \n\xc3\xff";
    if (!size)
        return 0;
    switch (roll(d, 10)) {
    case 0: data[roll(d, (uint32_t)size)] ^= (uint8_t)(1u << roll(d, 8)); return size;
    case 1: data[roll(d, (uint32_t)size)] = (uint8_t)roll(d, 256); return size;
    case 2: data[roll(d, (uint32_t)size)] = (uint8_t)signs[roll(d, sizeof signs - 1)]; return size;
    case 3: overwrite(d, data, size, 1u << roll(d, 4)); return size;
    case 4: splice(d, data, size); return size;
    case 5: return insert(d, data, size);
    case 6: return cut(d, data, size);
    case 7: return roll(d, 4) ? size : roll(d, (uint32_t)size);         /* truncate */
    case 8: other_digit(d, data, size); return size;
    default: overwrite(d, data, size < 32 ? size : 32, 4); return size; /* headers stand in front */
    }
}

static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(6);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static volatile uint64_t current; /* for the message of a crash */

static void crashed(int sign)
{
    char text[128];
    int n = snprintf(text, sizeof text, "fuzz: signal %d at seed %llu\n", sign, (unsigned long long)current);
    if (n > 0 && write(2, text, (size_t)n) < 0)
        _exit(1);
    signal(sign, SIG_DFL);
    raise(sign);
}

static int repeat(const char *path)
{
    static uint8_t data[MOST];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "fuzz: cannot open %s\n", path);
        return 5;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    feed(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long long count = argc > 1 ? strtoull(argv[1], &end, 10) : 1000,
                       first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    time_t end_time = argc > 3 ? time(NULL) + atol(argv[3]) : 0; /* 0: none */
    if (end && *end)
        return repeat(argv[1]);
    static uint8_t data[MOST];
    unsigned seeds = 0;
    size_t size;
    for (; (size = fuzz_seed(seeds, data, sizeof data)); seeds++)
        feed(data, size);
    signal(SIGSEGV, crashed);
    signal(SIGABRT, crashed);
    signal(SIGFPE, crashed);
    for (current = first; seeds && current < first + count && (!end_time || time(NULL) < end_time); current++) {
        struct dice dice = {.key = current};
        size = fuzz_seed(roll(&dice, seeds), data, sizeof data);
        for (uint32_t n = 1 + roll(&dice, 6); n; n--)
            size = mutate(&dice, data, size);
        feed(data, size);
    }
    printf("%llu inputs from %u seeds\n", (unsigned long long)(current - first), seeds);
    return seeds ? 0 : 1;
}
