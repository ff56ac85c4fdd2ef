/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes the path and query of a URL from a request or a watch. Pure; appends to `out`, where errors
 * stick.
 */
#include <holdfast/client.h>

struct hf__strbuf;

/* /api/v1/namespaces/<ns>/<plural>/<name>/<subresource>?<query>, or under /apis/<group>/<version>.
 * Parts that are NULL or "" are left out. */
void hf__resource_path(struct hf__strbuf *out, const struct hf_request *request);
/* The same for a watch. timeout_s: after how many seconds the server is to end it; 0 = its own
 * choice. */
void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s);
