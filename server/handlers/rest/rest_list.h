/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sends a large list while its client reads it. */
#include "server/handlers/rest/rest_request.h"

struct hfd_list_body;

/*
 * Prepares rest for a list: the registry may respond with a body that is made piece by piece, and
 * the list notices when the client leaves. False: out of memory. Thread: worker, within the
 * handler.
 */
bool hfd_rest_list_prepare(struct hfd_rest_request *rest);
/*
 * Responds 200 with body; with an error if the pool stops or memory runs out before anything was
 * sent. If that happens later, the response is cut. Takes ownership of rest, which was prepared,
 * and of body. Thread: any; does not block.
 */
void hfd_rest_list_send(struct hfd_rest_request *rest, struct hfd_list_body *body);
