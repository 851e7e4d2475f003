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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/pack.h"

/* The rows of the next block, in bytes: row r is offset[r] on from where they begin. One of both strides is 0. */
struct block_rows {
    int64_t begin, stride; /* from one row to the next */
    const int64_t *offset;
    int64_t offset_stride; /* likewise, of the table */
};

/* A run. When it ends A, C and part are those of what follows, and blocks is 0. */
struct block_run {
    struct block_rows a, c;                          /* A's from where each segment begins */
    const void *const *segment_a, *const *segment_b; /* a, b and k of struct micro_call */
    const int32_t *steps;
    int64_t segments;   /* at least one */
    int64_t col;        /* the blocks' first byte in lines of B */
    int64_t step, line; /* of A and B from one step to the next, in bytes */
    int64_t accumulate;
    int64_t blocks;          /* at least one */
    const void *const *soon; /* SPACED: as in struct asked, of four parts */
    int64_t soon_offset, soon_stride;
    int64_t part; /* of the first block; each has one of its own */
};

/* Sanitizers see what is handed over where a compiler reads it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ASSEMBLER = false };
#else
enum { ASSEMBLER = true };
#endif

enum { DENSE_STEP = 4, DENSE_LINE = 4 * PANEL_MAX };
_Static_assert(DENSE_LINE == 256, "the assembler below");

/* A field of the struct, in rdi. */
#define THE(field) "%c[" #field "](%%rdi)"
#define OFFSET_OF(name, field) [name] "i"(offsetof(struct block_run, field))
#define OFFSETS                                                                                                        \
    OFFSET_OF(a_begin, a.begin), OFFSET_OF(a_stride, a.stride), OFFSET_OF(a_offset, a.offset),                         \
    OFFSET_OF(a_offset_stride, a.offset_stride), OFFSET_OF(c_begin, c.begin), OFFSET_OF(c_stride, c.stride),           \
    OFFSET_OF(c_offset, c.offset), OFFSET_OF(c_offset_stride, c.offset_stride), OFFSET_OF(segment_a, segment_a),       \
    OFFSET_OF(segment_b, segment_b), OFFSET_OF(steps, steps), OFFSET_OF(segments, segments), OFFSET_OF(col, col),      \
    OFFSET_OF(step, step), OFFSET_OF(line, line), OFFSET_OF(accumulate, accumulate), OFFSET_OF(blocks, blocks),        \
    OFFSET_OF(soon, soon), OFFSET_OF(soon_offset, soon_offset), OFFSET_OF(soon_stride, soon_stride),                   \
    OFFSET_OF(part, part)

/* ymm0 to 11: sums, ymm12 and 13: a line of B, ymm14: an element of A. r8 to r13: rows of A from the element in rax on;
 * rdx: the line; rcx: steps left; rsi: segment; r14: what is asked for; r15 and rbx: step and line where they are not
 * known. Between blocks and segments rax, rbx, rcx and rdx are anything. X(row, its place in tables, its sums). */
#define EACH_4(X) X("r8", "0", "0", "1") X("r9", "8", "2", "3") X("r10", "16", "4", "5") X("r11", "24", "6", "7")
#define EACH_5(X) EACH_4(X) X("r12", "32", "8", "9")
#define EACH_6(X) EACH_5(X) X("r13", "40", "10", "11")

#define FIND(row, at, low, high) "mov " at "(%%rax), %%" row "\nadd %%rcx, %%" row "\n"
#define CLEAR(row, at, low, high)                                                                                      \
    "vxorps %%xmm" low ", %%xmm" low ", %%xmm" low "\nvxorps %%xmm" high ", %%xmm" high ", %%xmm" high "\n"
/* One line a row, which most tiles begin on. */
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
#define APART_SPREAD "mov " THE(step) ", %%r15\nmov " THE(line) ", %%rbx\n"

#define START_NOTHING ""
#define ASK_NOTHING ""
#define PART_NOTHING ""
/* A line every four steps of whole turns, from this part's quarter of them on. */
#define START_SPACED                                                                                                   \
    "mov " THE(part) ", %%r14\nimul %%rcx, %%r14\nsar $2, %%r14\nimul " THE(soon_stride) ", %%r14\n"                   \
    "mov " THE(soon) ", %%rbx\nadd (%%rbx,%%rsi,8), %%r14\nadd " THE(soon_offset) ", %%r14\n"
#define ASK_SPACED "prefetcht0 (%%r14)\nadd " THE(soon_stride) ", %%r14\n"
#define PART_SPACED "incq " THE(part) "\n"

#define START_BLOCK(rows)                                                                                              \
    "mov " THE(a_offset) ", %%rax\nmov " THE(a_begin) ", %%rcx\n" EACH_##rows(FIND)                                    \
    "imul $" #rows ", " THE(a_stride) ", %%rdx\nadd %%rdx, %%rcx\nmov %%rcx, " THE(a_begin) "\n"                       \
    "imul $" #rows ", " THE(a_offset_stride) ", %%rdx\nadd %%rdx, %%rax\nmov %%rax, " THE(a_offset) "\n"               \
    "xor %%esi, %%esi\nmov " THE(c_offset) ", %%rax\nmov " THE(c_begin) ", %%rdx\n"                                    \
    "cmpq $0, " THE(accumulate) "\njne 8f\n"                                                                           \
    EACH_##rows(ASK_C) EACH_##rows(CLEAR)

#define END_BLOCK(rows)                                                                                                \
    "mov " THE(c_offset) ", %%rax\nmov " THE(c_begin) ", %%rdx\n" EACH_##rows(STORE_C)                                 \
    "imul $" #rows ", " THE(c_stride) ", %%rcx\nadd %%rcx, %%rdx\nmov %%rdx, " THE(c_begin) "\n"                       \
    "imul $" #rows ", " THE(c_offset_stride) ", %%rcx\nadd %%rcx, %%rax\nmov %%rax, " THE(c_offset) "\n"

#define RUN_BLOCKS(rows, asks, density)                                                                                \
    __asm__ volatile(                                                                                                  \
        "1:\n" START_BLOCK(rows)                                                                                       \
        "2:\nmov " THE(steps) ", %%rcx\nmovslq (%%rcx,%%rsi,4), %%rcx\n" START_##asks                                  \
        "mov " THE(segment_a) ", %%rax\nmov (%%rax,%%rsi,8), %%rax\n"                                                  \
        "mov " THE(segment_b) ", %%rdx\nmov (%%rdx,%%rsi,8), %%rdx\nadd " THE(col) ", %%rdx\n" APART_##density         \
        "sub $8, %%rcx\njl 5f\n.p2align 5\n"                                                                           \
        "4:\n" TURN_##density(rows, ASK_##asks) "sub $8, %%rcx\njge 4b\n"                                              \
        "5:\nadd $8, %%rcx\njle 7f\n"                                                                                  \
        "6:\n" NEXT_##density(rows) "dec %%rcx\njg 6b\n"                                                               \
        "7:\ninc %%rsi\ncmp " THE(segments) ", %%rsi\njl 2b\n" END_BLOCK(rows) PART_##asks                             \
        "decq " THE(blocks) "\njg 1b\njmp 9f\n"                                                                        \
        "8:\n" EACH_##rows(LOAD_C) "jmp 2b\n"                                                                          \
        "9:\n"                                                                                                         \
        :                                                                                                              \
        : "D"(run), OFFSETS                                                                                            \
        : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ymm0", "ymm1",     \
          "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", \
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
