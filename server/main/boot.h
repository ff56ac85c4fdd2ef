/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The boot: starts the assembled objects, until the server is ready. */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Begins to serve, writes the administrator's kubeconfig, waits for the store and runs the
 * post-start hooks, which begin the election (unless --leader-elect=false). On success the server
 * is ready. Call once. The caller continues with hfd_shutdown_run: at once after an error,
 * otherwise when the stop token fires.
 *
 * Blocks until the server is ready or the boot has failed. 0, HF_E_CANCELED (the stop token fired;
 * there may be no message), HF_E_UNAVAILABLE (for a minute the store did not respond, or sent no
 * more objects, or the definitions of custom resources could not be read), or another error.
 * server->exit_status is 2 if only the user can correct the fault. Thread: one of its own, for
 * which the sequence waits (hf__thread_run).
 */
int hfd_boot_run(struct hfd_server *server, struct hf_status *reterr_status);
