/* SPDX-License-Identifier: Apache-2.0 */
/* The only door to the heap. Every allocation is aligned to 64 bytes (a cache line, an AVX-512 vector), counted, and
 * can be made to fail by tests: mem_fail_after(n) lets n more allocations pass in the whole process and fails every
 * later one (n < 0: off). Any thread. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when out of memory; mem_alloc(0) gives a valid unique pointer. */
void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
void *mem_zalloc_array(size_t count, size_t size); /* NULL also when count * size overflows */
void *mem_resize(void *old, size_t old_bytes, size_t bytes); /* keeps min(old_bytes, bytes); old survives failure */
char *mem_string(const char *text);
void mem_free(void *pointer); /* NULL is accepted */

/* Zeroed memory that becomes resident where it is first written, by whoever writes it: for the arena of a run.
 * From 256 KB on it is a mapping of its own, in huge pages where it is large, and where the calling thread's place says
 * (base/place.h); below, the heap's. NULL when out of
 * memory. mem_unmap takes the bytes that were asked for, and NULL. */
void *mem_map(size_t bytes);
void mem_unmap(void *pointer, size_t bytes);
bool mem_is_mapped(size_t bytes); /* large enough for that */

/* Gives the pages that lie wholly within an array back to the system; what it held is lost, its place stays. False
 * where there are none. mem_renew before it is written again: it may then lie in huge pages as before. */
bool mem_release(void *pointer, size_t bytes);
void mem_renew(void *pointer, size_t bytes);

/* Gives freed memory back to the system, after work that used much more than it leaves behind. Milliseconds. */
void mem_trim(void);

uint64_t mem_allocations(void); /* since the process started: a test counts none during steps */
void mem_fail_after(long n);

#endif
