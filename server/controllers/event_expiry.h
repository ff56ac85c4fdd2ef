/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller event-expiry: deletes Events that have not been reported again for
 * --event-ttl.
 */
#include <holdfast/leader.h>

#define HFD_EVENT_EXPIRY "event-expiry"

/* The controller's run function. context: its struct hfd_controller_context. Blocks until the term
 * ends. Thread: the controller's. */
int hfd_event_expiry_run(struct hf_term *term, void *context);
