/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The hooks of holdfastd, registered with server->hooks. */
#include <holdfast/error.h>

struct hfd_server;

/* Registers all hooks: the system namespaces, the election (unless --leader-elect=false), the
 * phases of the bootstrap. Call once, after hooks, electors and bootstrap have been created. 0, or
 * an error of hf_hooks_add, hf_controllers_install or hf_bootstrap_install. Thread: that of
 * hfd_assembly_make. */
int hfd_server_hooks_add(struct hfd_server *server, struct hf_status *reterr_status);
