/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The controller that gives every namespace the ServiceAccount `default`. */
#include <holdfast/leader.h>

#define HFD_DEFAULT_ACCOUNT "default-service-account"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_default_account_run(struct hf_term *term, void *ctx);
