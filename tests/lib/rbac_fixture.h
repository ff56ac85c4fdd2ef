/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Indexes of roles and bindings for tests, from short descriptions. */
#include "server/rbac/index.h"

struct rbac_object {
        enum hfd_rbac_kind kind;
        const char *ns, *name; /* ns "" for a cluster-wide object */
        const char *json;      /* with ' in place of " */
};

/* Ends the program if an object is not JSON. The caller unrefs the index. */
struct hfd_rbac_index *rbac_fixture_index(const struct rbac_object *objects, size_t n);
/* "alice,group1,group2". Borrowed until the next call. */
const struct hfd_subject *rbac_fixture_subject(const char *text);
/* The JSON of a text with ' in place of ". The caller frees. */
struct hf__json *rbac_fixture_json(const char *text);
