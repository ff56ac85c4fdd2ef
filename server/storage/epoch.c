/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes values of the epoch key (keys.h). The time in the value is for people who read it; the
 * random number makes the value unique.
 *
 * Invariant: no two epochs are equal. So without a random number none is made: a restored store
 * with the epoch of the old store would be taken for the old store.
 */
#include "server/storage/epoch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include <holdfast/clock.h>

int hfd_epoch_make(char epoch[HFD_EPOCH_MAX], struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_clock_system();
        char time[HF__MICROTIME_MAX];
        uint64_t random;

        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                return hf_fail(reterr_status, -EIO, "cannot get a random number from the kernel");
        hf__microtime_format(clock->real(clock->ctx) / 1000, time);
        (void)snprintf(epoch, HFD_EPOCH_MAX, "%s-%016" PRIx64, time, random);
        return 0;
}
