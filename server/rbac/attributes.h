/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The user and the attributes of a request: the input of an authorizer, as in Kubernetes.
 * Everything is borrowed. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_GROUP_MASTERS         "system:masters"
#define HFD_GROUP_UNAUTHENTICATED "system:unauthenticated"    /* of requests without credentials */
#define HFD_RBAC_API              "rbac.authorization.k8s.io" /* API group of roles and bindings */

/* The parts of a user that decide about rights. */
struct hfd_subject {
        const char *name;
        const char *const *groups;
        size_t n_groups;
};

/* The action of a request that needs a right. Strings are never NULL, and "" where they do not
 * apply. */
struct hfd_attributes {
        const char *verb; /* "get", "list", "watch", "create", "update", "patch", "delete",
                             "deletecollection", or a right such as "impersonate" or "bind"; if the
                             request is not for a resource, the HTTP method in lower case */
        const char *group, *resource, *subresource, *ns, *name;
        const char *path; /* the URL path; used only if the request is not for a resource */
        bool is_resource;
};

bool hfd_subject_in_group(const struct hfd_subject *subject, const char *group);
