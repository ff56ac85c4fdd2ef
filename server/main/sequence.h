/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sequence: boots the server, waits for the stop, shuts the server down. */

/*
 * The thread function; ctx is the assembled struct hfd_server. Ends when the shutdown is complete:
 * then server->exit_status is set, server->sequence_ended is true and main has been woken. If a
 * controller or another hook does not stop, it ends the process with status 70 instead.
 */
void *hfd_sequence_thread(void *ctx);
