/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether roles and bindings allow a request. Pure. Thread: any. */
#include "server/rbac/index.h"

struct hf__strbuf;

/*
 * A rule allows what it names. Nothing forbids, so the order of the rules does not matter. reason
 * NULL = not wanted; otherwise the words of Kubernetes for the decision are appended: which binding
 * allows it; for a denial, which roles are bound and do not exist, if there are any.
 */
bool hfd_rbac_allows(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                     const struct hfd_attributes *attributes, struct hf__strbuf *reason);
/* Describes the roles that are bound to the subject and do not exist; the caller frees. NULL = none
 * (or out of memory). */
char *hfd_rbac_missing_roles(const struct hfd_rbac_index *index, const struct hfd_subject *subject,
                             const char *ns);
/* Whether a nonResourceURL of a rule covers a path, or another such URL. */
bool hfd_rbac_url_covers(const char *url, const char *path);
