/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What others may see of the electors: two health checks, and the metrics that are computed when
 * they are read. */
#include <holdfast/leader.h>

int hf__leader_health_add(struct hf_electors *electors); /* 0, -errno, HF_E_EXISTS: other electors
                                                            go by these names */
void hf__leader_health_remove(struct hf_electors *electors);
