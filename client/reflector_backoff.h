/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides how long the reflector waits after a failure, and logs the failure. Thread: the
 * reflector's.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

struct hf_informer;
struct hf_status;

/* Returns the boot time of the next try after a failure. failures: the number of consecutive
 * failures before this one. Also sets urgent_at, the earlier time that applies while a thread waits
 * at the barrier (informer_barrier.h). */
hf_nsec hf__reflector_retry_at(struct hf_informer *informer, unsigned failures,
                               uint32_t retry_after_s);
/* Returns the delay before the next probe (reflector_list.c), after a probe that is not repeated at
 * once. Counts that probe in probe_failures, up to 3. Under the informer's lock. */
hf_nsec hf__reflector_probe_delay_locked(struct hf_informer *informer, uint32_t retry_after_s);
/* Logs a failure of `verb` ("list", "watch"): the first of a series as a warning, the others at
 * debug level, so that an outage does not flood the log. status may be NULL. */
void hf__reflector_log_failure(const struct hf_informer *informer, const char *verb, bool is_first,
                               int error, const struct hf_status *status);
