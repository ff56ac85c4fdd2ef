/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes a file of a time zone. What is accepted has an offset of less than 100 hours at every
 * moment.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include <holdfast/error.h>

#include "server/resources/zones/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const int64_t moments[] = {
                INT64_C(-62135596800), -1, 0, 4096, 1719792000, 2350944000, INT64_C(253402300799),
        };
        struct hfd_zone *zone;
        int r = hfd_zone_new(data, n, &zone);

        assert(r == 0 || r == HF_E_INVALID || r == -ENOMEM);
        for (size_t i = 0; r == 0 && i < sizeof moments / sizeof moments[0]; i++) {
                int offset = hfd_zone_offset(zone, moments[i]);

                assert(offset > -360000 && offset < 360000);
        }
        if (r == 0)
                hfd_zone_free(zone);
        return 0;
}
