/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An immutable index of all roles and bindings, by subject. A builder reads the stored objects and
 * makes an index; from then on any number of threads may use the index (decision.h, coverage.h).
 * After a change of a role or binding, the caller builds a new index. No I/O, no clock.
 *
 * A malformed part of an object is no error: it grants nothing.
 *
 * Thread: a builder belongs to one thread. An index: any.
 */
#include <stddef.h>

#include "server/rbac/attributes.h"

struct hf__json;
struct hfd_rbac_builder;
struct hfd_rbac_index;

enum hfd_rbac_kind {
        HFD_RBAC_CLUSTER_ROLE,
        HFD_RBAC_ROLE,
        HFD_RBAC_CLUSTER_ROLE_BINDING,
        HFD_RBAC_ROLE_BINDING,
};

/* NULL: out of memory. */
struct hfd_rbac_builder *hfd_rbac_builder_new(void);
/* Accepts NULL, returns NULL. */
struct hfd_rbac_builder *hfd_rbac_builder_free(struct hfd_rbac_builder *builder);
/*
 * Adds an object, which is read during the call only. ns: of a Role or RoleBinding; "" for the
 * others. 0, or -ENOMEM: then the builder can only be freed.
 */
int hfd_rbac_builder_add(struct hfd_rbac_builder *builder, enum hfd_rbac_kind kind, const char *ns,
                         const char *name, const struct hf__json *object);
/* Makes the index, which the caller owns, and frees the builder. Cannot fail. */
struct hfd_rbac_index *hfd_rbac_builder_finish(struct hfd_rbac_builder *builder);

/* Accepts NULL. Returns index. The caller has a reference, or the lock of an object with one. */
struct hfd_rbac_index *hfd_rbac_index_ref(struct hfd_rbac_index *index);
/* Accepts NULL, returns NULL. */
struct hfd_rbac_index *hfd_rbac_index_unref(struct hfd_rbac_index *index);
/* The number of bindings. */
size_t hfd_rbac_index_bindings(const struct hfd_rbac_index *index);
