/* SPDX-License-Identifier: Apache-2.0 */
/* EACH_ISA(X) is X once for each value of enum isa, in their order, with the suffix of what kernels/isa has for it:
 * declarations and tables indexed by enum isa. Few files have anything to do with bfloat16's instructions and are
 * compiled for them (CMakeLists.txt): EACH_ISA_BF16(X) is of what those have, and all else has AVX-512's form there.
 * Where there are no others the plain form stands for all. */
#ifndef KERNELS_EACH_ISA_H
#define KERNELS_EACH_ISA_H

#if defined(__x86_64__)
#define EACH_ISA(X) X(plain) X(avx2) X(avx512) X(avx512)
#define EACH_ISA_BF16(X) X(plain) X(avx2) X(avx512) X(bf16)
#else
#define EACH_ISA(X) X(plain) X(plain) X(plain) X(plain)
#define EACH_ISA_BF16 EACH_ISA
#endif

#endif
