/* SPDX-License-Identifier: Apache-2.0 */
/* The most usual blocks of isa/micro.c with AVX2, 4 to 6 rows of two vectors, in assembler. Compilers keep twelve sums
 * in registers over a loop of several steps only with copies between them, and each instruction counts where somebody
 * else uses the core's other hardware thread. What they make of block() there is the twin: the same elements in the
 * same order, to the bit.
 *
 * A step has two loads of a line of B, and a broadcast and two multiplications for each row of A; eight are a turn.
 * Where steps of A and lines of B lie at known distances no pointer moves within one. Blocks below each other are one
 * run: the next one's first loads are under way while this one's last sums are added. */
#ifndef KERNELS_ISA_MICRO_AVX2_H
#define KERNELS_ISA_MICRO_AVX2_H

#include "kernels/pack.h"

/* The rows of the next block, in bytes: row r is offset[r] on from where they begin. One of both strides is 0. */
struct block_rows {
    int64_t begin, stride; /* from one row to the next */
    const int64_t *offset;
    int64_t offset_stride; /* likewise, of the table */
};

/* A run, 8 bytes each as the assembler reads them. A and C are behind it when it ends. */
struct block_run {
    struct block_rows a, c; /* A's begin at each segment's */
    const void *const *segment_a, *const *segment_b; /* as in struct micro_call */
    const int32_t *steps;
    int64_t segments;       /* at least one */
    int64_t col;            /* the blocks' first byte in lines of B */
    int64_t step, line;     /* of A and B from one step to the next, in bytes */
    int64_t accumulate;
    int64_t blocks;         /* at least one */
    const void *const *soon; /* SPACED: as in struct asked, of four parts */
    int64_t soon_offset, soon_stride;
    int64_t part;
};

#define FIELD(number, name) _Static_assert(offsetof(struct block_run, name) == 8 * number, "the assembler below")
#define A_BEGIN "0(%%rdi)"
#define A_STRIDE "8(%%rdi)"
#define A_OFFSET "16(%%rdi)"
#define A_OFFSET_STRIDE "24(%%rdi)"
#define C_BEGIN "32(%%rdi)"
#define C_STRIDE "40(%%rdi)"
#define C_OFFSET "48(%%rdi)"
#define C_OFFSET_STRIDE "56(%%rdi)"
#define SEGMENT_A "64(%%rdi)"
#define SEGMENT_B "72(%%rdi)"
#define STEPS "80(%%rdi)"
#define SEGMENTS "88(%%rdi)"
#define COL "96(%%rdi)"
#define STEP "104(%%rdi)"
#define B_LINE "112(%%rdi)"
#define ACCUMULATE "120(%%rdi)"
#define BLOCKS_LEFT "128(%%rdi)"
#define SOON "136(%%rdi)"
#define SOON_OFFSET "144(%%rdi)"
#define SOON_STRIDE "152(%%rdi)"
#define PART "160(%%rdi)"
FIELD(2, a.offset);
FIELD(4, c.begin);
FIELD(8, segment_a);
FIELD(12, col);
FIELD(16, blocks);
FIELD(20, part);

enum { DENSE_STEP = 4, DENSE_LINE = 4 * PANEL_MAX };
_Static_assert(DENSE_LINE == 256, "the assembler below");

/* rdi: the struct. ymm0 to 11: sums, ymm12 and 13: a line of B, ymm14: an element of A. r8 to r13: rows of A from the
 * element in rax on; rdx: the line; rcx: steps left; rsi: segment; r14: what is asked for; r15 and rbx: step and line
 * where they are not known. X(row, its place in tables, its sums). */
#define EACH_4(X) X("r8", "0", "0", "1") X("r9", "8", "2", "3") X("r10", "16", "4", "5") X("r11", "24", "6", "7")
#define EACH_5(X) EACH_4(X) X("r12", "32", "8", "9")
#define EACH_6(X) EACH_5(X) X("r13", "40", "10", "11")

#define FIND(row, at, low, high) "mov " at "(%%rax), %%" row "\nadd %%rcx, %%" row "\n"
#define CLEAR(row, at, low, high)                                                                                      \
    "vxorps %%xmm" low ", %%xmm" low ", %%xmm" low "\nvxorps %%xmm" high ", %%xmm" high ", %%xmm" high "\n"
#define ASK_C(row, at, low, high) "mov " at "(%%rax), %%rcx\nprefetchw (%%rdx,%%rcx)\n"
#define LOAD_C(row, at, low, high)                                                                                     \
    "mov " at "(%%rax), %%rcx\nvmovups (%%rdx,%%rcx), %%ymm" low "\nvmovups 32(%%rdx,%%rcx), %%ymm" high "\n"
#define STORE_C(row, at, low, high)                                                                                    \
    "mov " at "(%%rax), %%rcx\nvmovups %%ymm" low ", (%%rdx,%%rcx)\nvmovups %%ymm" high ", 32(%%rdx,%%rcx)\n"
#define MULTIPLY(row, at, low, high)                                                                                   \
    "vbroadcastss AT*4(%%rax,%%" row "), %%ymm14\n"                                                                    \
    "vfmadd231ps %%ymm12, %%ymm14, %%ymm" low "\nvfmadd231ps %%ymm13, %%ymm14, %%ymm" high "\n"

/* AT: how many steps on. */
#define ON(at, rows)                                                                                                   \
    ".set AT, " at "\nvmovups AT*256(%%rdx), %%ymm12\nvmovups 32+AT*256(%%rdx), %%ymm13\n" EACH_##rows(MULTIPLY)
#define NEXT_DENSE(rows) ON("0", rows) "add $4, %%rax\nadd $256, %%rdx\n"
#define TURN_DENSE(rows, ask)                                                                                          \
    ask ON("0", rows) ON("1", rows) ON("2", rows) ON("3", rows)                                                        \
    ask ON("4", rows) ON("5", rows) ON("6", rows) ON("7", rows)                                                        \
    "add $8*4, %%rax\nadd $8*256, %%rdx\n"
#define APART_DENSE ""
#define NEXT_SPREAD(rows) ON("0", rows) "add %%r15, %%rax\nadd %%rbx, %%rdx\n"
#define HALF_SPREAD(rows) NEXT_SPREAD(rows) NEXT_SPREAD(rows) NEXT_SPREAD(rows) NEXT_SPREAD(rows)
#define TURN_SPREAD(rows, ask) ask HALF_SPREAD(rows) ask HALF_SPREAD(rows)
#define APART_SPREAD "mov " STEP ", %%r15\nmov " B_LINE ", %%rbx\n"

#define START_NOTHING ""
#define ASK_NOTHING ""
#define PART_NOTHING ""
/* A line every four steps, from this part's quarter of them on. */
#define START_SPACED                                                                                                   \
    "mov " PART ", %%r14\nimul %%rcx, %%r14\nsar $2, %%r14\nimul " SOON_STRIDE ", %%r14\n"                             \
    "mov " SOON ", %%rbx\nadd (%%rbx,%%rsi,8), %%r14\nadd " SOON_OFFSET ", %%r14\n"
#define ASK_SPACED "prefetcht0 (%%r14)\nadd " SOON_STRIDE ", %%r14\n"
#define PART_SPACED "incq " PART "\n"

#define START_BLOCK(rows)                                                                                              \
    "mov " A_OFFSET ", %%rax\nmov " A_BEGIN ", %%rcx\n" EACH_##rows(FIND)                                              \
    "imul $" #rows ", " A_STRIDE ", %%rdx\nadd %%rdx, %%rcx\nmov %%rcx, " A_BEGIN "\n"                                 \
    "imul $" #rows ", " A_OFFSET_STRIDE ", %%rdx\nadd %%rdx, %%rax\nmov %%rax, " A_OFFSET "\n"                         \
    "xor %%esi, %%esi\nmov " C_OFFSET ", %%rax\nmov " C_BEGIN ", %%rdx\ncmpq $0, " ACCUMULATE "\njne 8f\n"             \
    EACH_##rows(ASK_C) EACH_##rows(CLEAR)

#define END_BLOCK(rows)                                                                                                \
    "mov " C_OFFSET ", %%rax\nmov " C_BEGIN ", %%rdx\n" EACH_##rows(STORE_C)                                           \
    "imul $" #rows ", " C_STRIDE ", %%rcx\nadd %%rcx, %%rdx\nmov %%rdx, " C_BEGIN "\n"                                 \
    "imul $" #rows ", " C_OFFSET_STRIDE ", %%rcx\nadd %%rcx, %%rax\nmov %%rax, " C_OFFSET "\n"

#define RUN_BLOCKS(rows, asks, density)                                                                                \
    __asm__ volatile(                                                                                                  \
        "1:\n" START_BLOCK(rows)                                                                                       \
        "2:\nmov " STEPS ", %%rcx\nmovslq (%%rcx,%%rsi,4), %%rcx\n" START_##asks                                       \
        "mov " SEGMENT_A ", %%rax\nmov (%%rax,%%rsi,8), %%rax\n"                                                       \
        "mov " SEGMENT_B ", %%rdx\nmov (%%rdx,%%rsi,8), %%rdx\nadd " COL ", %%rdx\n" APART_##density                   \
        "sub $8, %%rcx\njl 5f\n.p2align 5\n"                                                                           \
        "4:\n" TURN_##density(rows, ASK_##asks) "sub $8, %%rcx\njge 4b\n"                                              \
        "5:\nadd $8, %%rcx\njle 7f\n"                                                                                  \
        "6:\n" NEXT_##density(rows) "dec %%rcx\njg 6b\n"                                                               \
        "7:\ninc %%rsi\ncmp " SEGMENTS ", %%rsi\njl 2b\n" END_BLOCK(rows) PART_##asks                                  \
        "decq " BLOCKS_LEFT "\njg 1b\njmp 9f\n"                                                                        \
        "8:\n" EACH_##rows(LOAD_C) "jmp 2b\n"                                                                          \
        "9:\n"                                                                                                         \
        :                                                                                                              \
        : "D"(run)                                                                                                     \
        : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",     \
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
          "cc", "memory")

#define DEFINE_RUN(rows, asks)                                                                                         \
    static void run_##asks##_##rows(struct block_run *run)                                                             \
    {                                                                                                                  \
        if (run->step == DENSE_STEP && run->line == DENSE_LINE)                                                        \
            RUN_BLOCKS(rows, asks, DENSE);                                                                             \
        else                                                                                                           \
            RUN_BLOCKS(rows, asks, SPREAD);                                                                            \
    }
DEFINE_RUN(4, NOTHING)
DEFINE_RUN(5, NOTHING)
DEFINE_RUN(6, NOTHING)
DEFINE_RUN(4, SPACED)
DEFINE_RUN(5, SPACED)
DEFINE_RUN(6, SPACED)

enum { RUN_ROWS_MIN = 4, RUN_ROWS_MAX = 6 };

/* [SPACED][rows - RUN_ROWS_MIN] */
static void (*const block_runs[2][RUN_ROWS_MAX - RUN_ROWS_MIN + 1])(struct block_run *run) = {
    {run_NOTHING_4, run_NOTHING_5, run_NOTHING_6}, {run_SPACED_4, run_SPACED_5, run_SPACED_6}};
#endif
