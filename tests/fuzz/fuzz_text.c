/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary and tokens of any bytes. The first byte's bits: characters, a vocabulary limit, tokens held out. */
#include "fuzz.h"

#include "base/memory.h"
#include "train/tokens.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
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
    if (which > 2)
        return 0;
    size_t length = 1 + strlen(texts[which] + 1);
    memcpy(out, texts[which], length);
    return length;
}
