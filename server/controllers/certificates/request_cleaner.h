/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The controller that deletes old certificate requests. */
#include <holdfast/leader.h>

#define HFD_REQUEST_CLEANER "certificate-cleaner"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_request_cleaner_run(struct hf_term *term, void *ctx);
