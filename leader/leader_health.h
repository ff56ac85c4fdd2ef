/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Two health checks of the electors, and the metrics that are computed when they are read. */
#include <holdfast/leader.h>

/* 0, -errno, HF_E_EXISTS: the host's health has the checks of another set of electors. */
int hf__leader_health_add(struct hf_electors *electors);
/* Removes what was added. Does nothing if nothing was. */
void hf__leader_health_remove(struct hf_electors *electors);
