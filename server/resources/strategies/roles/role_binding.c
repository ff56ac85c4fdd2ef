/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas, the defaults and the rules of RoleBindings and ClusterRoleBindings.
 *
 * Invariants: the roleRef of a binding never changes. So an update can change its subjects, but
 * cannot make it grant another role. (authorization/escalation.h says who may write a binding.)
 * Names, types and numbers in protobuf are those of k8s.io/api/rbac/v1, and the rows of a table are
 * sorted by name, because look-ups bisect it.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define RBAC       "io.k8s.api.rbac.v1."

static const struct hfd_schema_field subject_fields[] = {
        {"apiGroup", &hfd_schema_text, "The API group of the subject.", .protobuf_tag = 2},
        {"kind", &hfd_schema_text, "User, Group or ServiceAccount.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the subject.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, "The namespace of a ServiceAccount.", .protobuf_tag = 4},
};
static const struct hfd_schema subject_schema = {HFD_STRUCT(RBAC "Subject", subject_fields),
                                                 .atomic = true,
                                                 .description = "Who gets the rights of a role."};

static const struct hfd_schema_field ref_fields[] = {
        {"apiGroup", &hfd_schema_text, "The API group of the role.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"kind", &hfd_schema_text, "Role or ClusterRole.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the role.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema role_ref_schema = {HFD_STRUCT(RBAC "RoleRef", ref_fields),
                                                  .atomic = true,
                                                  .description = "The role that is granted."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object's metadata."),
        {"roleRef", &role_ref_schema, "The role that is granted. It cannot be changed.",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"subjects", HFD_LIST_OF(&subject_schema), "Who gets the rights of the role.",
         .protobuf_tag = 2},
};
const struct hfd_schema hfd_role_binding_schema =
        {HFD_STRUCT(RBAC "RoleBinding", fields),
         .description = "RoleBinding grants a role in one namespace."};
const struct hfd_schema hfd_cluster_role_binding_schema =
        {HFD_STRUCT(RBAC "ClusterRoleBinding", fields),
         .description = "ClusterRoleBinding grants a ClusterRole in all namespaces."};

/* Returns the string of a member; "" if it is absent or not a string. */
static const char *get_text(const struct hf__json *object, const char *key) {
        const char *value = hf__json_text(hf__json_get(object, key));

        return value ? value : "";
}

/* Sets the default group of a roleRef, a User or a Group. A ServiceAccount belongs to group "", so
 * it needs none. 0, -ENOMEM, or -EINVAL: the roleRef in the store is no object. */
static int set_default_group(struct hf__json *object) {
        if (*get_text(object, "apiGroup"))
                return 0;
        return hf__json_set_string(object, "apiGroup", RBAC_GROUP);
}

int hfd_role_binding_prepare(struct hf__json *object, const struct hf__json *old) {
        struct hf__json *ref = hf__json_get(object, "roleRef");
        int r = ref ? set_default_group(ref) : 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m && r == 0;
             m = hf__json_next(m)) {
                const char *kind = get_text(m, "kind");
                if (strcmp(kind, "User") == 0 || strcmp(kind, "Group") == 0)
                        r = set_default_group(m);
        }
        return r;
}

/* A ServiceAccount belongs to the core group. One without a namespace is in that of the
 * RoleBinding; in a ClusterRoleBinding it needs one. Users and Groups belong to the RBAC group. i:
 * the index of the subject; cluster: as in validate_binding. */
static void validate_subject(const struct hf__json *subject, size_t i, bool cluster,
                             struct hfd_causes *causes) {
        const char *kind = get_text(subject, "kind"), *name = get_text(subject, "name"),
                   *group = get_text(subject, "apiGroup"), *ns = get_text(subject, "namespace");
        bool account = strcmp(kind, "ServiceAccount") == 0,
             known = account || strcmp(kind, "User") == 0 || strcmp(kind, "Group") == 0;
        char field[64];

        (void)snprintf(field, sizeof field, "subjects[%zu].name", i);
        if (!*name)
                hfd_cause_required(causes, field, "");
        else if (account && strlen(name) > HFD_DNS_SUBDOMAIN_MAX)
                hfd_cause_invalid_text(causes, field, name, "must be no more than 253 characters");
        else if (account && !hfd_is_dns_subdomain(name))
                hfd_cause_invalid_text(causes, field, name, hfd_dns_subdomain_rule);
        /* The group depends on the kind, so with an unknown kind the group is not checked. */
        (void)snprintf(field, sizeof field, "subjects[%zu].apiGroup", i);
        if (known && strcmp(group, account ? "" : RBAC_GROUP) != 0)
                hfd_cause_unsupported_text(causes, field, group,
                                           account ? "\"\"" : "\"" RBAC_GROUP "\"");
        (void)snprintf(field, sizeof field, "subjects[%zu].namespace", i);
        if (account && cluster && !*ns)
                hfd_cause_required(causes, field, "");
        (void)snprintf(field, sizeof field, "subjects[%zu].kind", i);
        if (!known)
                hfd_cause_unsupported_text(causes, field, kind,
                                           "\"ServiceAccount\", \"User\", \"Group\"");
}

static void put_member(struct hf__strbuf *out, const char *name, const char *text) {
        hf__strbuf_printf(out, "%c\"%s\":", out->n == 0 ? '{' : ',', name);
        hf__strbuf_json(out, text, strlen(text));
}

/* The message shows the roleRef with the names of Kubernetes' internal type. */
static void validate_unchanged_ref(const struct hf__json *ref, const struct hf__json *old_ref,
                                   struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        /* A create has no stored roleRef. */
        if (!old_ref || hfd_causes_equal(causes, ref, old_ref))
                return;
        put_member(&shown, "APIGroup", get_text(ref, "apiGroup"));
        put_member(&shown, "Kind", get_text(ref, "kind"));
        put_member(&shown, "Name", get_text(ref, "name"));
        hf__strbuf_putc(&shown, '}');
        hfd_cause_invalid(causes, "roleRef",
                          hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          "cannot change roleRef");
        hf__strbuf_done(&shown);
}

/* cluster: object is a ClusterRoleBinding, which must refer to a ClusterRole. */
static void validate_binding(const struct hf__json *object, const struct hf__json *old,
                             bool cluster, struct hfd_causes *causes) {
        const struct hf__json *ref = hf__json_get(object, "roleRef");
        const char *group = get_text(ref, "apiGroup"), *kind = get_text(ref, "kind"),
                   *name = get_text(ref, "name");
        size_t i = 0;

        if (strcmp(group, RBAC_GROUP) != 0)
                hfd_cause_unsupported_text(causes, "roleRef.apiGroup", group, "\"" RBAC_GROUP "\"");
        if (strcmp(kind, "ClusterRole") != 0 && (cluster || strcmp(kind, "Role") != 0))
                hfd_cause_unsupported_text(causes, "roleRef.kind", kind,
                                           cluster ? "\"ClusterRole\""
                                                   : "\"Role\", \"ClusterRole\"");
        if (!*name)
                hfd_cause_required(causes, "roleRef.name", "");
        /* The name is a segment of a path, as that of the role is. One that is stored may be older
         * than this rule. */
        if (strcmp(name, get_text(hf__json_get(old, "roleRef"), "name")) != 0)
                hfd_match_name_validate(name, "roleRef.name", causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m))
                validate_subject(m, i++, cluster, causes);
        validate_unchanged_ref(ref, hf__json_get(old, "roleRef"), causes);
}

void hfd_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        validate_binding(object, old, false, causes);
}

void hfd_cluster_role_binding_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        validate_binding(object, old, true, causes);
}
