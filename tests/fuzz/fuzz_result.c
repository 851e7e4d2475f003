/* SPDX-License-Identifier: Apache-2.0 */
/* Stored results. What is accepted must print as a table and become a picture. */
#include "fuzz.h"
#include "numbers.h"

#include "tool/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char path[64];
static FILE *nowhere;

static const char valid[] =
    "{\"schema\": \"graphi-result/1\", \"command\": \"bench\", \"experiment\": \"frameworks\", \"machine\": "
    "{\"cpu\": \"a\", \"cores\": 2, \"isa\": \"avx2\", \"roof_gflops\": 150.5, \"bandwidth_gbs\": 9, "
    "\"simulated\": false}, \"rows\": [{\"id\": \"lstm small: ours\", \"engine\": \"graphi\", "
    "\"engine_version\": \"0.1.0\", \"policy\": \"fifo\", \"driver\": \"auto\", \"executors\": 2, \"width\": 1, "
    "\"n\": 7, \"simulated\": false, \"reason\": \"\", \"status\": \"ok\", \"time_ms\": {\"median\": 1.5, "
    "\"p25\": 1, \"p75\": 2}, \"ratio\": {\"against\": \"lstm small: <b>\", \"median\": 0.5, \"low\": 0.25, "
    "\"high\": 0.75}, \"gflops\": 80, \"fraction_of_limit\": 0.5, \"lower_bound_ms\": 0.75, \"peak_rss_bytes\": "
    "100000000, \"gain\": {\"kernels\": 1.5, \"interference\": 1.25, \"scheduling\": 1}}, {\"id\": \"lstm small: "
    "<b>\", \"engine\": \"pytorch\", \"simulated\": true, \"reason\": \"none\", \"status\": \"failed\", "
    "\"time_ms\": null, \"ratio\": null, \"accuracy\": 0.5, \"paper_accuracy\": 0.75}], \"goals\": [{\"name\": "
    "\"g\", \"value\": 1.5, \"goal\": 2, \"met\": false}], \"notes\": [\"n\"], \"files\": [\"f\"]}";

/* The file lies in memory. What is refused is told on standard error, once for every input; the descriptor stays that
 * of a sanitizer. */
static void once(void)
{
    snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("result", 0));
    nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        abort();
    stderr = nowhere;
}

static void load(const void *data, size_t size)
{
    json_t *root;
    fuzz_write(path, data, size);
    if (result_read(path, &root) != GRAPHI_OK)
        return;
    result_print(root, nowhere);
    if (size % 4 == 0 && result_svg(root, "/dev/null") != GRAPHI_OK)
        abort();
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!nowhere)
        once();
    fuzz_file(valid, (size_t)(strstr(valid, "\"machine\"") - valid), data, size, load);
    return 0;
}

size_t fuzz_seed(unsigned which, uint8_t *out, size_t size)
{
    static const char *const from[] = {"{", "\"machine\"", "\"rows\"", "\"goals\""};
    if (which > 3)
        return 0;
    const char *start = strstr(valid, from[which]);
    size_t length = strlen(start);
    if (length > size)
        return 0;
    memcpy(out, start, length);
    return length;
}
