/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets: images with labels, or text, handed out in batches.
 *
 * What a path may be (the format is found by the names there, or said in the options):
 *   IDX    a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and, for testing, t10k-*, for validation
 *          validation-*; or one images file whose labels file lies beside it; train-images.idx3-ubyte is the same
 *          Debian's dataset-fashion-mnist: /usr/share/datasets/fashion-mnist
 *   CIFAR  CIFAR-10 binary: a folder of *.bin, or one such file
 *   NPY    a folder with images.npy (any real or integer type, [N, H, W, C] or [N, H, W]; bytes are divided by 255) and
 *          labels.npy (whole numbers, [N] or [N, 1]); optional test_images.npy, test_labels.npy, validation_images.npy,
 *          validation_labels.npy; also train_images.npy, x_train.npy and y_train.npy, and so on
 *   TEXT   any other file, or a folder with train.txt, valid.txt, test.txt (also ptb.train.txt, wiki.train.tokens and
 *          so on)
 *   IMAGES whichever of the first three is there
 * Files for validation have valid, validation, val or dev in their names as a word, those for testing test or t10k. Any
 * file may be gzip (.gz), of one member or several. Lines of text end in LF, CRLF or CR; a UTF-8 mark of byte order is
 * skipped. What is no text, and text of other encodings that a mark or bytes of zero betray, is refused.
 *
 * A data set is used by one thread at a time; several data sets may be used by several threads. Batches are decoded by
 * the thread that asks for them; graphi_data_next allocates nothing. */
#ifndef GRAPHI_DATA_H
#define GRAPHI_DATA_H

#include "graphi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphi_data graphi_data;

typedef enum graphi_data_format {
    GRAPHI_DATA_AUTO,
    GRAPHI_DATA_IDX,
    GRAPHI_DATA_CIFAR,
    GRAPHI_DATA_NPY,
    GRAPHI_DATA_TEXT,
    GRAPHI_DATA_IMAGES /* only in options */
} graphi_data_format;

typedef enum graphi_data_split { GRAPHI_TRAIN, GRAPHI_VALIDATION, GRAPHI_TEST } graphi_data_split;

/* Channels that a stored image may have at most. */
#define GRAPHI_DATA_CHANNELS 16

/* Pixels that augmentation may add at most. */
#define GRAPHI_DATA_AUGMENT 1024

/* Zero is the default everywhere. */
typedef struct graphi_data_options {
    graphi_data_format format;
    graphi_data_split split;
    int64_t batch; /* samples a batch; text: rows. 0: 32 */
    /* Where validation has no files of its own: the fraction of the training samples that is held out for it (images:
     * fixed by their number alone; text: the end). 0: 0.1; negative: nothing. */
    double validation;
    uint64_t seed; /* of the order of training samples, a new one each epoch */
    bool ordered;  /* training samples in the order of the files */
    /* images */
    int64_t height, width; /* scaled bilinearly, half-pixel centres (PyTorch's align_corners=False). 0: as stored */
    int64_t channels;      /* 0: as stored; more than one from grey: repeated */
    bool raw;              /* no normalisation to mean 0 and deviation 1; uint8 is divided by 255 all the same */
    bool bytes;            /* mean 0 in units of bytes: 255 (x - mean); the deviation stays. Not beside raw */
    /* Augmentation of training images, by the seed and the sample's place in the whole training. Others are cut from
     * the middle. */
    int64_t crop; /* scaled so much higher and wider, and cut at random */
    int64_t pad;  /* zeros around, and cut at random */
    bool flip;    /* half of them turned left to right */
    int64_t classes;       /* labels must be below; 0: the highest label of the training files + 1 */
    size_t cache_bytes;    /* scaled images are kept if all of a split fit in this; 0: none are kept */
    /* text */
    int64_t steps;      /* tokens of a row in one batch. 0: 20 */
    bool characters;    /* a token is a character (a UTF-8 sequence, or any other byte) instead of a word */
    int64_t vocabulary; /* most tokens told apart, the rarest become <unk>. 0: all */
    /* The tokens by number instead of those of the training text, as a checkpoint has them (data.vocabulary): a JSON
     * list of words, of which <unk> is one; those that are no UTF-8 are lists of bytes. NULL: of the training text. */
    const char *words;
} graphi_data_options;

typedef struct graphi_data_info {
    graphi_data_format format;
    graphi_data_split split;
    int64_t samples;                 /* of this split; text: tokens */
    int64_t batches;                 /* of one epoch */
    int64_t batch;                   /* samples a batch */
    int64_t classes;                 /* labels, or the size of the vocabulary, <unk> included */
    int64_t labels;                  /* different ones that occur in the training files; text: classes */
    int64_t height, width, channels; /* of a batch: float32 [batch, height, width, channels] */
    int64_t steps;                   /* of a batch of text: int32 [batch, steps] */
    /* of the stored channels, over the training split; 0 and 1 if raw; the deviation 1 / 255 if bytes */
    float mean[GRAPHI_DATA_CHANNELS], std[GRAPHI_DATA_CHANNELS];
    /* of what the batches hold: shapes, pixels, labels, tokens, vocabulary, normalisation; for refusing to resume on
     * other data */
    uint64_t hash;
    /* of what a number in a batch means: vocabulary, or normalisation, of the training files; for refusing to evaluate
     * what was trained on other data. Every split has the same. */
    uint64_t encoding;
    int64_t unknown;  /* of a text's tokens in this split, those that are <unk> */
    const char *note; /* joined files of a folder, and those of no split; NULL: none. Lives as long as data */
} graphi_data_info;

/* Where a data set stands: `index` batches of epoch `epoch` have been given. */
typedef struct graphi_data_position {
    int64_t epoch, index;
} graphi_data_position;

/* Opens one split of the data at `path`; `options` may be NULL. *out is the caller's (graphi_data_close). Errors, *out
 * untouched: IO (missing, unreadable); INVALID (truncated, empty, wrong magic, label out of range, sizes that do not
 * agree, options out of range, images where the options ask for text or text where they ask for images), naming the
 * file, what was found and expected; UNSUPPORTED (there is no such split: no test files, too little held out for a
 * batch of validation text); MEMORY. Any thread. */
GRAPHI_API graphi_status graphi_data_open(const char *path, const graphi_data_options *options, graphi_data **out);

/* Reads "none", or of "crop:N", "pad:N" and "flip" those that are wanted, separated by commas, into the three fields.
 * options NULL: the text alone is judged. Error: INVALID naming the part, *options untouched. Any thread. */
GRAPHI_API graphi_status graphi_data_augment(const char *text, graphi_data_options *options);

/* Opens another split of the same files with the same options, `batch` excepted (0: the same): training files are not
 * read again, normalisation and vocabulary are shared. `data` may be closed before the new one. Errors as
 * graphi_data_open. */
GRAPHI_API graphi_status graphi_data_open_split(const graphi_data *data, graphi_data_split split, int64_t batch,
                                                graphi_data **out);

/* What the data set holds and what a batch is. Any thread. */
GRAPHI_API void graphi_data_get_info(const graphi_data *data, graphi_data_info *info);

/* Gives the next batch and steps on, at the end of an epoch into the next one.
 *   images  inputs float32 [batch, height, width, channels], targets int32 [batch]: the label
 *   text    inputs int32 [batch, steps], targets int32 [batch, steps]: the token after each input. Row r continues
 *           where row r of the batch before ended, but at index 0: carry the state along, and clear it there
 * *rows gets the number of samples: `batch`, but the last batch of an epoch of validation or test images may be smaller
 * (rows beyond are left untouched); training leaves out what does not fill a batch. The arrays are the caller's, of so
 * many bytes: INVALID, nothing written and position unchanged, if a whole batch does not fit. */
GRAPHI_API graphi_status graphi_data_next(graphi_data *data, void *inputs, size_t input_bytes, int32_t *targets,
                                          size_t target_bytes, int64_t *rows);

/* Position, for resuming: after set(get()) the same batches follow, on any machine. Set gives INVALID for an epoch
 * below zero or an index outside 0 … batches − 1, position unchanged. */
GRAPHI_API graphi_data_position graphi_data_get_position(const graphi_data *data);
GRAPHI_API graphi_status graphi_data_set_position(graphi_data *data, graphi_data_position position);

/* The text of token `id` and its length in bytes (it may hold any byte; a zero follows). NULL for images or outside
 * 0 … classes − 1. Lives as long as the data set. */
GRAPHI_API const char *graphi_data_word(const graphi_data *data, int64_t id, size_t *length);

/* NULL is accepted. */
GRAPHI_API void graphi_data_close(graphi_data *data);

#ifdef __cplusplus
}
#endif
#endif
