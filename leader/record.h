/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a Lease says about its holder: the part of the object that election decides on. Plain data, no pointers.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/fence.h>

struct hf__record {
        bool exists;
        char holder[HF_IDENTITY_MAX + 1]; /* "" = nobody. A longer foreign one is cut: it is then still not us */
        int64_t duration_s;               /* recorded leaseDurationSeconds; 0 = absent */
        int64_t acquire_us, renew_us;     /* microseconds since 1970; 0 = absent */
        int64_t transitions;
        char successor[HF_IDENTITY_MAX + 1]; /* annotation holdfast.dev/successor; "" = none */
        char rv[40];                         /* resourceVersion, opaque; "" = unknown */
        uint64_t rv_number;                  /* the same as a number; 0 = it is not one */
};
