/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lanes in which requests in progress are counted. inflight.h explains why there are three. */
enum hfd_lane {
        HFD_LANE_READ,
        HFD_LANE_MUTATE,
        HFD_LANE_LEASE,
        HFD_N_LANES,
        HFD_LANE_NONE = HFD_N_LANES
};
