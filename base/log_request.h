/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The id of the request to which the calling thread's log lines belong. A log sink can add it to
 * each line, so that it need not be part of the text. Each thread has an id of its own. Thread:
 * any.
 */

/* id: an Audit-Id; borrowed until the next call on this thread. NULL = no request. */
void hf__log_set_request(const char *id);
/* NULL = no request. */
const char *hf__log_request(void);
