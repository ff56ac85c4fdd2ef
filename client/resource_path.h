/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Builds the path and query of a URL from a request or a watch. Pure; appends to `out`, whose
 * `error` the caller checks. */
#include <holdfast/client.h>

struct hf__strbuf;

/* /api/v1/namespaces/<ns>/<plural>/<name>/<subresource>?<query>, or under /apis/<group>/<version>.
 * Omits parts that are NULL or "". */
void hf__resource_path(struct hf__strbuf *out, const struct hf_request *request);
/* The same for a watch. timeout_s: the server should end the watch after this many seconds; 0 = the
 * server decides. */
void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s);
