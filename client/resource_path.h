/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From a call or a watch to the path and query of its URL. Pure; errors stick in out.
 */
#include <holdfast/client.h>

struct hf__strbuf;

/* /api/v1/namespaces/<ns>/<plural>/<name>/<subresource>?<query>, or under /apis/<group>/<version>;
 * what is NULL or "" is left out. */
void hf__resource_path(struct hf__strbuf *out, const struct hf_request *request);
/* The same for a watch, which the server is to end after timeout_s. */
void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s);
