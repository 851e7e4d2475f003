/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary and tokens. Usual size: 5 MB of text, 930,000 words, 10,000 of them different. */
#include "train/tokens.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MOST ((size_t)1 << 30) /* of a text */
static const char end_of_line[] = "<eos>", unknown_word[] = "<unk>";

struct scanner {
    const unsigned char *next, *end;
    bool characters;
};

/* Bytes of the UTF-8 sequence at `p`, 1 if there is none. */
static size_t sequence(const unsigned char *p, const unsigned char *end)
{
    size_t length = *p >= 0xf0 && *p < 0xf5 ? 4 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xc2 && *p < 0xe0 ? 2 : 1;
    if ((size_t)(end - p) < length)
        return 1;
    const unsigned char least = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80; /* none longer than it must be, */
    const unsigned char most = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;  /* no surrogate, none beyond 0x10ffff */
    if (length > 1 && (p[1] < least || p[1] > most))
        return 1;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 1;
    return length;
}

static bool is_blank(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

static bool scan(struct scanner *s, const char **word, size_t *length)
{
    while (!s->characters && s->next < s->end && is_blank(*s->next))
        s->next++;
    if (s->next == s->end)
        return false;
    const unsigned char *start = s->next;
    if (s->characters) {
        s->next += sequence(start, s->end);
    } else if (*start == '\n') {
        s->next++;
        *word = end_of_line;
        *length = sizeof end_of_line - 1;
        return true;
    } else {
        while (s->next < s->end && *s->next != '\n' && !is_blank(*s->next))
            s->next++;
    }
    *word = (const char *)start;
    *length = (size_t)(s->next - start);
    return true;
}

static uint64_t hash_of(const char *word, size_t length)
{
    return hash_u64(hash_bytes(HASH_START, word, length), length);
}

int32_t vocabulary_find(const struct vocabulary *v, const char *word, size_t length)
{
    size_t seen = 0;
    int32_t at;
    while ((at = index_next(&v->index, hash_of(word, length), &seen)) >= 0 &&
           (v->words[at].length != length || memcmp(v->words[at].text, word, length)))
        continue;
    return at;
}

/* All words anew: they have been sorted. */
static bool number_words(struct vocabulary *v)
{
    index_free(&v->index);
    bool enough = true;
    for (size_t i = 0; i < v->count && enough; i++)
        enough = index_add(&v->index, hash_of(v->words[i].text, v->words[i].length), (int32_t)i);
    return enough;
}

bool vocabulary_add(struct vocabulary *v, const char *word, size_t length, uint32_t times)
{
    int32_t at = vocabulary_find(v, word, length);
    if (at >= 0) {
        v->words[at].count += times;
        return true;
    }
    char *text = arena_alloc(&v->arena, length + 1); /* zeroed, so a zero byte follows */
    if (!text || !array_grow((void **)&v->words, v->count, &v->capacity, sizeof *v->words, v->count + 1))
        return false;
    memcpy(text, word, length);
    v->words[v->count++] = (struct word){text, (uint32_t)length, times};
    return index_add(&v->index, hash_of(word, length), (int32_t)v->count - 1);
}

/* Descending frequency, then bytes, the shorter first. */
static int compare(const void *left, const void *right)
{
    const struct word *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_unknown(const struct word *w)
{
    return w->length == sizeof unknown_word - 1 && !memcmp(w->text, unknown_word, w->length);
}

/* Keeps the first `limit` words; <unk> takes the last place if it is not among them. */
static void cut(struct vocabulary *v, size_t limit)
{
    for (size_t i = limit; i < v->count; i++)
        if (is_unknown(&v->words[i]))
            v->words[limit - 1] = v->words[i];
    if (v->count > limit)
        v->count = limit;
}

int64_t tokens_count(const void *bytes, size_t size, bool characters)
{
    struct scanner s = {bytes, (const unsigned char *)bytes + size, characters};
    const char *word;
    size_t length;
    int64_t count = 0;
    while (scan(&s, &word, &length))
        count++;
    return count;
}

graphi_status vocabulary_order(struct vocabulary *v, int64_t limit, bool unknown)
{
    if (unknown && !vocabulary_add(v, unknown_word, sizeof unknown_word - 1, 0))
        return fail_memory("vocabulary", v->count * sizeof *v->words);
    if (v->count)
        qsort(v->words, v->count, sizeof *v->words, compare);
    if (limit)
        cut(v, (size_t)limit);
    if (!number_words(v))
        return fail_memory("vocabulary", v->count * sizeof *v->index.slots);
    v->unknown = vocabulary_find(v, unknown_word, sizeof unknown_word - 1);
    return GRAPHI_OK;
}

graphi_status vocabulary_build(const char *where, const void *bytes, size_t size, bool characters, int64_t tokens,
                               int64_t limit, struct vocabulary *out)
{
    *out = (struct vocabulary){.characters = characters};
    if (limit == 1 || limit < 0)
        return fail(GRAPHI_INVALID, "vocabulary", "found a limit of %lld, expected at least 2, or 0 for none",
                    (long long)limit);
    if (size > BYTES_MOST)
        return fail(GRAPHI_INVALID, where, "found %zu bytes of text, expected at most %zu", size, BYTES_MOST);
    struct scanner s = {bytes, (const unsigned char *)bytes + size, characters};
    const char *word;
    size_t length;
    bool fits = true;
    for (; fits && tokens > 0 && scan(&s, &word, &length); tokens--)
        fits = vocabulary_add(out, word, length, 1);
    if (fits && !out->count)
        return fail(GRAPHI_INVALID, where, "found no word in %zu bytes, expected text", size);
    return fits ? vocabulary_order(out, limit, true) : fail_memory("vocabulary", out->count * sizeof *out->words);
}

void vocabulary_begin(bool characters, struct vocabulary *out) { *out = (struct vocabulary){.characters = characters}; }

bool vocabulary_word(struct vocabulary *v, const char *word, size_t length)
{
    return vocabulary_add(v, word, length, 1);
}

graphi_status vocabulary_end(const char *where, int64_t words, struct vocabulary *v)
{
    v->unknown = v->count ? vocabulary_find(v, unknown_word, sizeof unknown_word - 1) : -1;
    if ((int64_t)v->count == words && v->unknown >= 0)
        return GRAPHI_OK;
    return fail(GRAPHI_INVALID, where, "found %zu different words of %lld, %s <unk>, expected each once, and <unk>",
                v->count, (long long)words, v->unknown < 0 ? "without" : "with");
}

graphi_status vocabulary_encode(const struct vocabulary *vocabulary, const char *where, const void *bytes, size_t size,
                                int32_t **ids, int64_t *count)
{
    if (size > BYTES_MOST)
        return fail(GRAPHI_INVALID, where, "found %zu bytes of text, expected at most %zu", size, BYTES_MOST);
    struct scanner s = {bytes, (const unsigned char *)bytes + size, vocabulary->characters};
    const char *word;
    size_t length;
    ARRAY(int32_t) result = {0};
    while (scan(&s, &word, &length)) {
        int32_t id = vocabulary_find(vocabulary, word, length);
        if (!array_push(&result, id >= 0 ? id : vocabulary->unknown)) {
            size_t wanted = result.count * 2 * sizeof *result.data;
            array_free(&result);
            return fail_memory(where, wanted);
        }
    }
    *ids = result.data;
    *count = (int64_t)result.count;
    return GRAPHI_OK;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    mem_free(vocabulary->words);
    index_free(&vocabulary->index);
    arena_free(&vocabulary->arena);
    *vocabulary = (struct vocabulary){0};
}
