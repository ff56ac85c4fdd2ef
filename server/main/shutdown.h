/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The graceful shutdown. lifecycle.h has its timeline. */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Shuts the server down: stops the hooks (and with them the election), drains requests, closes the
 * listener. Frees the controllers and keeps all other objects. Call once, after hfd_boot_run has
 * failed, or after it has returned and the stop token has fired.
 *
 * Blocks: up to the deadlines of the hooks and the shutdown delay, a minute for requests, two
 * seconds for connections, and a few short pauses. 0, or the first error of a pre-shutdown hook.
 * HF_E_STUCK: a controller or another hook does not stop. Its threads use the objects, so nothing
 * may be freed, and the process must _exit. Thread: sequence.
 */
int hfd_shutdown_run(struct hfd_server *server, struct hf_status *reterr_status);
