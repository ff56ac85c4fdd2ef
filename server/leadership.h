/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the process follows its own leadership: log fields, run file, status line. */
#include <holdfast/leader.h>

/* hf_elector_config.on_change; ctx is the struct hfd_server. Thread: the elector's loop. */
void hfd_leadership_changed(void *ctx, const struct hf_leader_info *info);
/* The store's history was replaced: ends the term, if there is one. ctx is the struct hfd_server.
 * Thread: any, once the elector is made. Never blocks. */
void hfd_leadership_end_term(void *ctx);
