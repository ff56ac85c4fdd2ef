/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the groups that say who somebody is and what they may do: reviews, certificates and
 * RBAC. Columns and flags are those of kube-apiserver. The invariants are those in rows.h.
 */
#include "server/resources/resource.h"
#include "server/resources/rows/rows.h"
#include "server/resources/strategies/strategies.h"

static const struct hfd_resource rows[] = {
        {
                .group = "authentication.k8s.io",
                .version = "v1",
                /* The kinds of this group and the next one are questions. A create answers in the
                 * status, and nothing is stored: an answer would be stale as soon as a role
                 * changes. */
                .plural = "selfsubjectreviews",
                .singular = "selfsubjectreview",
                .kind = "SelfSubjectReview",
                .is_review = true,
                .schema = &hfd_self_review_schema,
        },
        {
                .group = "authentication.k8s.io",
                .version = "v1",
                .plural = "tokenreviews",
                .singular = "tokenreview",
                .kind = "TokenReview",
                .is_review = true,
                .schema = &hfd_token_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "localsubjectaccessreviews",
                .singular = "localsubjectaccessreview",
                .kind = "LocalSubjectAccessReview",
                /* The same question as a SubjectAccessReview, but within a namespace, so that a
                 * Role can grant the right to ask it there. */
                .namespaced = true,
                .is_review = true,
                .schema = &hfd_local_access_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "selfsubjectaccessreviews",
                .singular = "selfsubjectaccessreview",
                .kind = "SelfSubjectAccessReview",
                .is_review = true,
                .schema = &hfd_self_access_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "selfsubjectrulesreviews",
                .singular = "selfsubjectrulesreview",
                .kind = "SelfSubjectRulesReview",
                .is_review = true,
                .schema = &hfd_rules_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                /* SubjectAccessReviews and LocalSubjectAccessReviews ask about any user, so a
                 * client needs a right to create them. The other kinds of this group ask only about
                 * the client's own user, and by default every authenticated user may create
                 * those. */
                .plural = "subjectaccessreviews",
                .singular = "subjectaccessreview",
                .kind = "SubjectAccessReview",
                .is_review = true,
                .schema = &hfd_access_review_schema,
        },
        {
                .group = "certificates.k8s.io",
                .version = "v1",
                .plural = "certificatesigningrequests",
                .singular = "certificatesigningrequest",
                .kind = "CertificateSigningRequest",
                .short_name = "csr",
                .storage = "certificatesigningrequests",
                .name_is_segment = true,
                .unconditional_update = true,
                /* Approval has a path of its own, so that a signer, who writes the status, need not
                 * have the right to approve. */
                .subresources = HFD_SUB_STATUS | HFD_SUB_APPROVAL,
                .subresources_write_meta = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Age", "string", "", "@age"},
                                       {"SignerName", "string", "", "spec.signerName"},
                                       {"Requestor", "string", "", "spec.username"},
                                       {"RequestedDuration", "string", "",
                                        "@duration:spec.expirationSeconds"},
                                       {"Condition", "string", "", "@certificate"}),
                .schema = &hfd_certificate_request_schema,
                .validate = hfd_certificate_request_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "clusterrolebindings",
                .singular = "clusterrolebinding",
                .kind = "ClusterRoleBinding",
                .storage = "clusterrolebindings",
                .create_on_update = true,
                .unconditional_update = true,
                .name_is_segment = true, /* names of system roles contain colons */
                .columns =
                        HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                    {"Role", "string", "", "@role"}, {"Age", "string", "", "@age"},
                                    {"Users", "string", "", "@subjects:User", true},
                                    {"Groups", "string", "", "@subjects:Group", true},
                                    {"ServiceAccounts", "string", "", "@subjects:ServiceAccount",
                                     true}),
                .schema = &hfd_cluster_role_binding_schema,
                .prepare = hfd_role_binding_prepare,
                .validate = hfd_cluster_role_binding_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "clusterroles",
                .singular = "clusterrole",
                .kind = "ClusterRole",
                .storage = "clusterroles",
                .create_on_update = true,
                .unconditional_update = true,
                .name_is_segment = true,
                /* kube-apiserver has no columns of its own for roles, so they have its default
                 * columns: the name, and when the object was created. */
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Created At", "date", "", "metadata.creationTimestamp"}),
                .schema = &hfd_cluster_role_schema,
                .validate = hfd_cluster_role_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                /* The four kinds of RBAC allow a PUT to create, and an unconditional update.
                 * Neither weakens RBAC: the writer must hold all rights that the new object grants,
                 * or may "escalate" or "bind". */
                .plural = "rolebindings",
                .singular = "rolebinding",
                .kind = "RoleBinding",
                .storage = "rolebindings",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .name_is_segment = true,
                .columns =
                        HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                    {"Role", "string", "", "@role"}, {"Age", "string", "", "@age"},
                                    {"Users", "string", "", "@subjects:User", true},
                                    {"Groups", "string", "", "@subjects:Group", true},
                                    {"ServiceAccounts", "string", "", "@subjects:ServiceAccount",
                                     true}),
                .schema = &hfd_role_binding_schema,
                .prepare = hfd_role_binding_prepare,
                .validate = hfd_role_binding_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "roles",
                .singular = "role",
                .kind = "Role",
                .storage = "roles",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .name_is_segment = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Created At", "date", "", "metadata.creationTimestamp"}),
                .schema = &hfd_role_schema,
                .validate = hfd_role_validate,
        },
};
const struct hfd_resource_part hfd_access_part = {rows, sizeof rows / sizeof rows[0]};
