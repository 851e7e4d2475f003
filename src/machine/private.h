/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this layer share among themselves. */
#ifndef MACHINE_PRIVATE_H
#define MACHINE_PRIVATE_H

#include "machine/machine.h"

#include <sched.h>

/* A set of hardware threads, wide enough for any kernel of today (cpu_set_t ends at 1024). */
#define MASK_CPUS 8192
struct cpu_mask {
    unsigned long bits[MASK_CPUS / (8 * sizeof(unsigned long))];
};

static inline cpu_set_t *mask_set(struct cpu_mask *mask) { return (cpu_set_t *)mask; }

static inline bool mask_has(const struct cpu_mask *mask, int cpu)
{
    return cpu >= 0 && cpu < MASK_CPUS && CPU_ISSET_S(cpu, sizeof *mask, (const cpu_set_t *)mask);
}

static inline void mask_add(struct cpu_mask *mask, int cpu)
{
    if (cpu >= 0 && cpu < MASK_CPUS)
        CPU_SET_S(cpu, sizeof *mask, mask_set(mask));
}

static inline void mask_remove(struct cpu_mask *mask, int cpu)
{
    if (cpu >= 0 && cpu < MASK_CPUS)
        CPU_CLR_S(cpu, sizeof *mask, mask_set(mask));
}

/* What this thread may use: not the one core that a lease has pinned it to, but what it had before. False: nobody can
 * tell. topology.c. */
bool usable_mask(struct cpu_mask *mask);

/* --- leases between processes: corelock.c; called with the registry's mutex held --- */

enum core_lock { CORE_OURS, CORE_FOREIGN, CORE_UNKNOWN /* no lock file can be had */ };

/* Takes the lock of a core for this process; *holder is the process that has it when CORE_FOREIGN (0: not known). */
enum core_lock core_lock_take(int os_index, int *holder);

/* After the last lock of a lease: until now others would have seen them. True: others no longer found the file, or this
 * process had lost it; what the process had is locked in another one where there is one, and the lease's cores are to
 * be released and tried again. */
bool core_lock_renew(void);
void core_lock_release(int os_index);
void core_lock_folder(const char *path);
void core_lock_forget(void); /* after fork(), in the child, which has none of the locks */

/* --- measured loops: roof.c --- */

struct roof_kernel {
    const char *isa;                              /* needs at least this instruction set */
    double (*multiply)(long rounds);              /* independent multiply-adds in registers; gives the FLOPs done */
    double (*dot_bf16)(long rounds);              /* bfloat16 dot products, or NULL */
    double (*read)(const void *data, long bytes); /* reads all (a multiple of 1024 bytes); gives something of the sum */
};

/* The widest loops that run on `isa` ("plain", "avx2", "avx512", "bf16"). */
const struct roof_kernel *roof_kernel(const char *isa);

#endif
