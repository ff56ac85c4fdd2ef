/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether roles and bindings allow a request. Pure. Thread: any. */
#include "server/rbac/index.h"

struct hf__strbuf;

/*
 * Whether a role that is bound to the subject allows the request. Rules only allow and never
 * forbid, so their order does not matter. reason gets the text that Kubernetes has for the
 * decision: the binding that allows the request, or after a denial the roles that are bound but do
 * not exist, if there are any. reason NULL = not wanted. If memory runs out, the text is incomplete
 * or missing.
 */
bool hfd_rbac_allows(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                     const struct hfd_attributes *attributes, struct hf__strbuf *reason);
/* Describes the roles that are bound to the subject and do not exist, the first 16 of them; the
 * caller frees. NULL = none (or out of memory). */
char *hfd_rbac_missing_roles(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                             const char *ns);
/* Whether a nonResourceURL of a rule covers a path, or another such URL. */
bool hfd_rbac_url_covers(const char *url, const char *path);
