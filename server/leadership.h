/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Updates log fields, run file and systemd's status line when the leadership of this process
 * changes, and ends a term when the store's history was replaced (by a restored backup). */
#include <holdfast/leader.h>

struct hfd_server;

/* hf_elector_config.on_change; ctx is the struct hfd_server. Thread: the elector's loop. */
void hfd_leadership_changed(void *ctx, const struct hf_leader_info *info);
/* Ends the term, if there is one, because the store's history was replaced. ctx is the struct
 * hfd_server. Thread: any, from the creation of the elector to hfd_server_done. Never blocks. */
void hfd_leadership_end_term(void *ctx);
/* Call it before the electors are freed: hfd_leadership_end_term does nothing afterwards. Thread:
 * main. */
void hfd_leadership_forget_elector(struct hfd_server *server);
