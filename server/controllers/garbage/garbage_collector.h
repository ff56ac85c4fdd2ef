/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller garbage-collector: deletes objects whose owners are gone, and carries
 * out deletions with the propagation policies Foreground and Orphan.
 */
#include <holdfast/leader.h>

#define HFD_GARBAGE_COLLECTOR "garbage-collector"

/* The controller's run function. context: its struct hfd_controller_context. Blocks until the term
 * drains, and then returns 0; or until it fails, and then returns the error. Thread: the
 * controller's. */
int hfd_garbage_collector_run(struct hf_term *term, void *context);
