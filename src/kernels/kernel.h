/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel is: one operation bound to its shapes and an instruction set when the plan is made.
 *
 * A kernel is a sequence of barrier-free phases, each cut into shares. The engine runs every share of a phase exactly
 * once, on any thread, in any order, several at a time, and puts a barrier between phases. How the work is cut (shares,
 * tiles, k-splits) depends on the shapes, the options and the instruction set alone, never on the number of threads,
 * but where no bit of the result follows from it: so that has the same bits for every width.
 *
 * A loop kernel goes through its phases many times, as many as `steps` says from the data of the call, with a barrier
 * between steps. A member of a team has the same shares in every step, so that what they read stays in its cache;
 * nobody else may join.
 *
 * Kernels never start threads, allocate, block or print. run() returns GRAPHI_OK or a failure recorded with fail().
 * Every kernel has a plain twin (bound with ISA_PLAIN), its oracle. */
#ifndef KERNELS_KERNEL_H
#define KERNELS_KERNEL_H

#include "base/isa.h"
#include "base/number.h"
#include "graphi/types.h"

/* Shape and layout of one argument. Dimension 0 may be bounded: dims[0] is then the bound and the actual size comes
 * with each call. Strides are in elements; a dense array has strides[rank-1] = 1 and strides[i] = strides[i+1] *
 * dims[i+1]. */
struct array_desc {
    graphi_dtype dtype;
    int rank;
    int64_t dims[GRAPHI_MAX_RANK];
    int64_t strides[GRAPHI_MAX_RANK];
    bool bounded; /* dims[0] is a bound */
};

/* One argument of a call. rows is the actual size of dimension 0 (dims[0] unless bounded; 1 for rank 0). */
struct kernel_array {
    void *data;
    int64_t rows;
};

struct kernel_call {
    const struct kernel_array *in;
    const struct kernel_array *out; /* out may alias an input where the operation's table says so */
    void *workspace;                /* kernel.workspace bytes, 64-byte aligned, private to this call */
    const void *params;             /* kernel.params */
    uint64_t seed;                  /* random key of the run's state */
    uint64_t step;                  /* training step: random counters are keyed by (node, step, global sample) */
    uint64_t first_sample;          /* global index of row 0 of this step's batch */
    int width; /* runs of neighbours into which the shares of a phase are divided (split_range), each of one thread,
                * which may have several; 0: one thread. May differ from phase to phase. Never alters results: a
                * kernel may do a neighbour's share together with one where that is cheaper */
    int64_t loop; /* of a loop kernel: which of its steps, from 0 */
    int thread; /* the one that runs the share, below the most that calls have: whose scratch it may use (share_slot) */
};

typedef graphi_status (*kernel_function)(const struct kernel_call *call, int phase, int share);

enum { KERNEL_MAX_PHASES = 4 };

struct kernel {
    kernel_function run; /* what every call needs comes first (struct bound) */
    void *params;        /* one mem_alloc block, immutable after bind, freed by kernel_fini; NULL: none */
    int shares[KERNEL_MAX_PHASES]; /* >= 1 each */
    /* Of a loop kernel: at least 1, the same for all who ask in a call. NULL: there is one step. */
    int64_t (*steps)(const struct kernel_call *call);
    int32_t most_steps; /* of a loop kernel: at the bound */
    int8_t phases;
    bool apart; /* of a loop kernel: no share reads what another writes, so that no barrier is needed */
    int16_t pieces; /* runs of neighbours (kernel_call.width) that they may be cut into though one thread has all of
                     * them: more would cost too much of what doing neighbours together saves; 0: any number */
    const char *name;              /* static: "gemm", as the trace shows it */
    size_t params_bytes;           /* compared by bytes: no padding that is not zero */
    size_t workspace;              /* bytes */
    double flops;                  /* of the algorithm chosen */
    double bytes;                  /* compulsory traffic: arguments read plus results written */
    union {
        double known_ns; /* duration where it is known beforehand (delay); 0: estimated from flops and bytes */
        double work;     /* of a loop kernel: all that takes time on one core, in flops of a product */
    };
    /* Writes in[] back from out[], bit for bit, by the same phases and shares; data NULL: leaves that one out. NULL:
     * the results do not hold all of the arguments. */
    kernel_function undo;
};

/* The kernel that `like` describes, with params of its own: a copy of these. Without phases it has one. MEMORY, *kernel
 * untouched. */
graphi_status kernel_make(struct kernel like, const void *params, size_t bytes, struct kernel *kernel);
void kernel_fini(struct kernel *kernel); /* frees params; accepts a zeroed kernel */

int64_t kernel_steps(const struct kernel *kernel, const struct kernel_call *call);

/* Runs all shares of all phases in order on this thread (tests, sequential mode). */
graphi_status kernel_run_serial(const struct kernel *kernel, const struct kernel_call *call);

/* Descriptor helpers. */
struct array_desc array_dense(graphi_dtype dtype, int rank, const int64_t *dims);
int64_t array_count(const struct array_desc *desc); /* elements at the bound */
bool array_is_dense(const struct array_desc *desc);

/* Views the array as a matrix: all dimensions but the last become rows with one common stride *ld, the last is
 * contiguous. False when the strides do not allow it. Rank 0 and 1 give one row. */
bool array_as_matrix(const struct array_desc *desc, int64_t *rows, int64_t *cols, int64_t *ld);

/* Whether results go past the caches: as asked for, or by size where they, or they and what is read, take `far` bytes.
 */
static inline bool stores_past(graphi_streaming when, double bytes, double far)
{
    return when == GRAPHI_STREAM_ALWAYS || (when == GRAPHI_STREAM_BY_SIZE && bytes >= far);
}

/* Of what was sized for a level-2 cache of 1 MB as much as suits the processors of an instruction set: those before
 * AVX-512 usually have half of that. */
static inline int64_t level_2_part(int64_t size, enum isa isa) { return isa < ISA_AVX512 ? size / 2 : size; }

/* Splits `count` things into `parts` nearly equal ranges; part i is [*begin, *end). */
static inline void split_range(int64_t count, int parts, int i, int64_t *begin, int64_t *end)
{
    *begin = count * i / parts;
    *end = count * (i + 1) / parts;
}

#endif
