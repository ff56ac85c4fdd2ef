/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The endpoint /debug/leader: what this instance knows about the leadership. */
#include "server/http/http.h"

/* A handler for the router; ctx is the struct hfd_server. Takes over the request's reference.
 * Thread: the request's worker. */
void hfd_debug_leader_handle(void *ctx, struct hfd_http_request *request);
