/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The phases that holdfastd bootstraps: phase-0 and phase-1 with the built-in manifests
 * (server/manifests/), and in phase-1 also the directories of --bootstrap-manifests. A test program
 * may add directories to phase-0 (extra.h). Manifests may be of every built-in kind that the API
 * stores.
 */
#include <holdfast/error.h>

struct hfd_server;

/* Reads and checks all manifests and sets server->bootstrap; writes nothing. Blocks on files.
 * Thread: that of hfd_assembly_make, or main (`holdfastd --check`). 0, -ENOMEM, or a user's
 * mistake: HF_E_INVALID and others; the message begins with the flag and names the file or
 * directory, unless there are too many manifests in all. */
int hfd_bootstrap_phases_make(struct hfd_server *server, struct hf_status *reterr_status);
/* The name of the last phase's controller; main/election.c starts other leader-only controllers
 * after it. Borrowed from server->bootstrap. */
const char *hfd_bootstrap_phases_last_controller(struct hfd_server *server);
