/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The assembly creates all objects of a server in order, and frees them so that no object is used
 * after it was freed.
 */
#include <holdfast/error.h>

struct hfd_server;

/*
 * Creates every object of server, which hfd_server_init has filled, and listens on the port. It
 * does not accept connections, send requests to the store or begin an election yet; hfd_boot_run
 * does. Blocks on files, and up to 30 s on the lock of --cert-dir. Thread: one of its own, for
 * which main waits (hf__thread_run).
 *
 * 0 or an error; the message is one line, and names the flag or file if one is at fault.
 * server->exit_status is then 2 if only the user can correct the fault, otherwise 0. Call
 * hfd_assembly_free in any case.
 */
int hfd_assembly_make(struct hfd_server *server, struct hf_status *reterr_status);
/*
 * Frees what hfd_assembly_make has created, also after its failure. Waits for the threads of the
 * objects, which end soon. Must not be called if hfd_shutdown_run has returned HF_E_STUCK, nor
 * while the thread of a reload runs. Thread: main.
 */
void hfd_assembly_free(struct hfd_server *server);
