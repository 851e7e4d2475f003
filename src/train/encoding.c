/* SPDX-License-Identifier: Apache-2.0 */
/* A network learns whatever bytes it is given: an archive as well as a text, and nobody sees it in the loss. So what is
 * no text is recognised before. Usual size: 5 MB. */
#include "train/encoding.h"

#include "base/status.h"

#include <string.h>

static const char unpack[] = "a text: unpack it first";
static const char recode[] = "UTF-8"; /* and how to get it */

/* The first that matches counts: UTF-32's mark begins with that of UTF-16. */
static const struct {
    size_t offset, length;
    const char *bytes, *what, *expected;
} kinds[] = {
    {0, 4, "\xff\xfe\0\0", "UTF-32", recode},
    {0, 4, "\0\0\xfe\xff", "UTF-32", recode},
    {0, 2, "\xff\xfe", "UTF-16", recode},
    {0, 2, "\xfe\xff", "UTF-16", recode},
    {0, 4, "\x2b\x2f\x76\x38", "UTF-7", recode},
    {0, 4, "\xdd\x73\x66\x73", "UTF-EBCDIC", recode},
    {0, 4, "PK\3\4", "a zip archive (.zip, .npz, .docx)", unpack},
    {0, 4, "PK\5\6", "an empty zip archive", unpack},
    {0, 2, "\x1f\x8b", "gzip data within gzip data", unpack},
    {0, 3, "BZh", "bzip2 data", unpack},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     "xz data", unpack},
    {0, 4, "\x28\xb5\x2f\xfd", "Zstandard data", unpack},
    {0, 4, "\x04\x22\x4d\x18", "LZ4 data", unpack},
    {0, 2, "\x1f\x9d", "compress data (.Z)", unpack},
    {0, 6, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", unpack},
    {0, 6, "Rar!\x1a\x07", "a RAR archive", unpack},
    {257, 5, "ustar", "a tar archive", unpack},
    {0, 6, "\x93NUMPY", "a NumPy array", "a text, or an array in a folder as images.npy"},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file", "a text"},
    {0, 4, "PAR1", "a Parquet file", "a text"},
    {0, 6, "ARROW1", "an Arrow file", "a text"},
    {0, 5, "%PDF-", "a PDF", "a text (pdftotext makes one)"},
    {0, 8, "\x89PNG\r\n\x1a\n", "a picture (PNG)", "a text"},
    {0, 3, "\xff\xd8\xff", "a picture (JPEG)", "a text"},
    {0, 4, "GIF8", "a picture (GIF)", "a text"},
    {0, 4,
     "\x7f"
     "ELF",
     "a program", "a text"},
    {0, 16, "SQLite format 3\0", "an SQLite database", "a text"},
    {0, 4, "\0\0\x08\x03", "IDX images", "a text, or a name as train-images-idx3-ubyte"},
    {0, 4, "\0\0\x08\x01", "IDX labels", "a text"},
    {8, 2, "{\"", "a safetensors file", "a text"},
    {0, 2, "\x80\2", "a Python pickle", "a text"},
    {0, 2, "\x80\3", "a Python pickle", "a text"},
    {0, 2, "\x80\4", "a Python pickle", "a text"},
    {0, 2, "\x80\5", "a Python pickle", "a text"},
};

/* The eight bytes before the header of safetensors are a length, whose upper bytes are 0: a text has none such. */
static bool matches(size_t kind, const char *bytes, size_t size)
{
    const size_t offset = kinds[kind].offset, length = kinds[kind].length;
    if (size < offset + length || memcmp(bytes + offset, kinds[kind].bytes, length) != 0)
        return false;
    return offset != 8 || memcmp(bytes + 5, "\0\0\0", 3) == 0;
}

static graphi_status refuse(const char *where, const char *found, const char *expected)
{
    if (expected != recode)
        return fail(GRAPHI_INVALID, where, "found %s, expected %s", found, expected);
    return fail(GRAPHI_INVALID, where, "found %s, expected UTF-8 (iconv -f %s -t UTF-8 makes it)", found, found);
}

/* Without a mark: of letters of most alphabets every other byte is 0 in UTF-16, three of four in UTF-32. */
static const char *wide_letters(const unsigned char *bytes, size_t size)
{
    size_t zeros[4] = {0}, seen = size < 4096 ? size / 4 * 4 : 4096;
    for (size_t i = 0; i < seen; i++)
        zeros[i % 4] += bytes[i] == 0;
    const size_t quarter = seen / 4, even = zeros[0] + zeros[2], odd = zeros[1] + zeros[3];
    if (seen < 8 || even + odd < seen / 4)
        return NULL;
    if (zeros[1] + zeros[2] == 2 * quarter && (zeros[0] == quarter || zeros[3] == quarter))
        return zeros[0] == quarter ? "UTF-32BE" : "UTF-32LE";
    if (even && odd) /* some bytes of zero, without such an order */
        return NULL;
    return even ? "UTF-16BE" : "UTF-16LE";
}

static bool is_mark(const unsigned char *bytes, size_t left)
{
    return left >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
}

/* Marks stand at the beginning, and where several files were put together. */
static size_t straighten(unsigned char *bytes, size_t size)
{
    size_t to = 0;
    bool begins = true; /* a line */
    for (size_t from = 0; from < size; from++) {
        if (begins && is_mark(bytes + from, size - from)) {
            from += 2;
            continue;
        }
        unsigned char c = bytes[from];
        if (c == '\r') {
            c = '\n';
            from += from + 1 < size && bytes[from + 1] == '\n';
        }
        bytes[to++] = c;
        begins = c == '\n';
    }
    return to;
}

graphi_status encoding_text(const char *where, void *bytes, size_t *size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (matches(i, bytes, *size))
            return refuse(where, kinds[i].what, kinds[i].expected);
    const char *wide = wide_letters(bytes, *size);
    if (wide)
        return refuse(where, wide, recode);
    *size = straighten(bytes, *size);
    return GRAPHI_OK;
}
