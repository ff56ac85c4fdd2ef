/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lanes that requests under way are counted in. inflight.h says why there are three. */
enum hfd_lane {
        HFD_LANE_READ,
        HFD_LANE_MUTATE,
        HFD_LANE_LEASE,
        HFD_N_LANES,
        HFD_LANE_NONE = HFD_N_LANES
};
