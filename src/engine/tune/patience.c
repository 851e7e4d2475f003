/* SPDX-License-Identifier: Apache-2.0 */
/* Asked between executions whether to go on. The thread that measures. */
#include "engine/tune/patience.h"

#include "base/clock.h"
#include "base/status.h"

bool patience_over(const struct patience *patience)
{
    return clock_ns() > patience->deadline;
}

graphi_status patience_stopped(const struct patience *patience)
{
    if (!patience->stop || !patience->stop(patience->context))
        return GRAPHI_OK;
    return fail(GRAPHI_INTERRUPTED, "tuning",
                "found a request to stop, expected to measure until the end; parameters and "
                "stored plans are as before");
}
