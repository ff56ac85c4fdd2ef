/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two health checks of the electors, and the metrics that are computed when they are read.
 *
 * Thread: the one that starts and frees the electors. The checks themselves run on any thread, and
 * take the electors' mutex.
 */
#include <holdfast/leader.h>

/* 0 or -errno. HF_E_EXISTS: another set of electors has registered its checks with the host. After
 * an error too, the caller must call hf__leader_health_remove: the checks may have been added. */
int hf__leader_health_add(struct hf_electors *electors);
/* Removes the checks of this set, and the function that sets its metrics, if they were added. The
 * metrics themselves stay. */
void hf__leader_health_remove(struct hf_electors *electors);
