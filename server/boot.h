/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The boot: starts the assembled objects, until the server is ready. */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Begins to serve, writes <data-dir>/admin.kubeconfig, waits for the store and runs the post-start
 * hooks, which begin the election. On success the server is ready. Call once. On any result the
 * caller continues with hfd_shutdown_run.
 *
 * Blocks until then. 0, HF_E_CANCELED (the stop token fired), HF_E_UNAVAILABLE (etcd did not
 * respond for a minute), or another error; the message is one line. Thread: sequence.
 */
int hfd_boot_run(struct hfd_server *server, struct hf_status *reterr_status);
