/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary and tokens of any bytes. The first byte's bits: characters, a vocabulary limit, tokens held out. */
#include "fuzz.h"

#include "base/memory.h"
#include "train/encoding.h"
#include "train/reader.h"
#include "train/tokens.h"

#include <stdlib.h>
#include <string.h>

/* What a file goes through before: it may get shorter, never longer, and has no CR then. */
static void make_text(const uint8_t *data, size_t size)
{
    size_t left = size;
    void *copy = mem_alloc(size + 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    if (reader_unpack("fuzz", (size_t)1 << 20, &copy, &left) != GRAPHI_OK)
        return;
    const size_t before = left;
    if (encoding_text("fuzz", copy, &left) == GRAPHI_OK && (left > before || memchr(copy, '\r', left)))
        abort();
    mem_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    make_text(data + 1, size - 1);
    struct vocabulary vocabulary;
    int32_t *ids = NULL;
    int64_t count = 0;
    const bool characters = data[0] & 1;
    const int64_t tokens = tokens_count(data + 1, size - 1, characters) - (data[0] >> 4 & 7);
    graphi_status status =
        vocabulary_build("fuzz", data + 1, size - 1, characters, tokens, data[0] >> 1 & 7, &vocabulary);
    if (status == GRAPHI_OK && vocabulary_encode(&vocabulary, "fuzz", data + 1, size - 1, &ids, &count) == GRAPHI_OK)
        for (int64_t i = 0; i < count; i++)
            if (ids[i] < 0 || (size_t)ids[i] >= vocabulary.count)
                abort();
    mem_free(ids);
    vocabulary_free(&vocabulary);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const char *const texts[] = {"\x00the cat and the dog\nthe end <unk> of it\n",
                                        ("\x01Gr\xc3\xbc\xc3\x9f"
                                         "e \xe2\x82\xac \xf0\x9f\x98\x80\n"),
                                        "\x06one one two three three three\r\nfour\tfive\n"};
    static const uint8_t packed[] = {0,    0x1f, 0x8b, 8,    0, 0,    0,    0,    0,    2, 0xff, 0x4b, 0x54,
                                     0x48, 0x52, 0xe0, 0x02, 0, 0x5e, 0xaf, 0x8c, 0xe6, 5, 0,    0,    0};
    if (which == 3) {
        memcpy(out, packed, sizeof packed);
        return sizeof packed;
    }
    if (which > 2)
        return 0;
    size_t length = 1 + strlen(texts[which] + 1);
    memcpy(out, texts[which], length);
    return length;
}
