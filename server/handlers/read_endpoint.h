/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The common parts of the endpoints that can only be read: health, /metrics, /metrics/slis,
 * /version, OpenID and /debug/api_priority_and_fairness. The caller keeps its reference to the
 * request. Thread: any. Never blocks.
 */
#include <stdbool.h>

#include "server/http/http.h"

struct hf__strbuf;

/* Whether the method is GET or, if may_be_head, HEAD. As in Kubernetes, /version and OpenID have no
 * HEAD, but the others have. False: the 405 has been sent. */
bool hfd_read_endpoint_accepts(struct hfd_http_request *request, bool may_be_head);
/* Sends 200 with a copy of the body; if the body has an error or memory runs out, 500. */
void hfd_read_endpoint_reply(struct hfd_http_request *request, const char *content_type,
                             struct hf__strbuf *body);
/* Sends a 500, for a response that could not be created because memory ran out. */
void hfd_read_endpoint_no_memory(struct hfd_http_request *request);
