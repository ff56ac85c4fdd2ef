/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The status line: what `systemctl status` shows about this process (STATUS=). */
#include <stddef.h>

struct hfd_server;

#define HFD_STATUS_LINE_MAX 560 /* bytes: the message of a struct hf_status, and some words */

/* Formats the current state of the server as one line. Reads snapshots only; never blocks. Thread:
 * any, while the objects exist. */
void hfd_status_line_format(struct hfd_server *server, char text[HFD_STATUS_LINE_MAX]);
