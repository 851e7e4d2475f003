/* SPDX-License-Identifier: Apache-2.0 */
/* On which memory nodes pages of this process lie. */
#ifndef MACHINE_PAGES_H
#define MACHINE_PAGES_H

#include "graphi/place.h"

/* Whom to ask; for tests that leave some out. */
enum pages_ask { PAGES_ASK_ALL, PAGES_ASK_MAPS, PAGES_ASK_NOBODY };

/* Adds `count` pages, ascending addresses of their starts, to *sums, whose page_bytes are set. */
void pages_add(void **page, size_t count, enum pages_ask ask, graphi_page_count *sums);

#endif
