/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From a call or a watch to the path and query of its URL. Pure; errors stick in out.
 */
#include <holdfast/client.h>

struct hf__strbuf;

/* /api/v1/namespaces/<ns>/<plural>/<name>?<query>, or under /apis/<group>/<version>. ns, name, query may be NULL or "". */
void hf__resource_path(struct hf__strbuf *out, const struct hf_resource *resource, const char *ns, const char *name, const char *query);
/* The same for a watch, which the server is to end after timeout_s. */
void hf__watch_path(struct hf__strbuf *out, const struct hf_watch_spec *spec, unsigned timeout_s);
