/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries out the actions that the pure core (core.h) decides on. */
#include "leader/electors.h"

/* Carries out the actions of one step of the elector's core. Thread: the loop's only. */
void hf__elector_actions_carry_out(struct hf_elector *elector,
                                   const struct hf__core_actions *actions,
                                   struct hf__core_time now);
