/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoleBindings and ClusterRoleBindings. Like roles, they are validated but grant no rights. The
 * roleRef of a binding must not change: to bind another role, a client creates another binding.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/names.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

/* Whether each of the members is absent, null or a string. Unlike hfd_part_get, it keeps nulls. */
static bool members_are_texts(const struct hf__json *object, const char *const *keys, size_t n,
                              const char *kind, char *reason, size_t max_reason) {
        for (size_t i = 0; i < n; i++) {
                const struct hf__json *value = hf__json_get(object, keys[i]);
                if (value && !hf__json_is_null(value) && !hf__json_is_string(value))
                        return hfd_part_wrong_type(kind, keys[i], "string", reason, max_reason);
        }
        return true;
}

bool hfd_role_binding_decode(struct hf__json *object, char *reason, size_t max_reason) {
        static const char *const keys[] = {"apiGroup", "kind", "name", "namespace"};

        if (!hfd_part_is_object(object, "roleRef", "RoleBinding", reason, max_reason) ||
            !hfd_part_is_array(object, "subjects", true, "RoleBinding", reason, max_reason) ||
            !members_are_texts(hf__json_get(object, "roleRef"), keys, 3, "RoleRef", reason,
                               max_reason))
                return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m))
                if (!members_are_texts(m, keys, 4, "Subject", reason, max_reason))
                        return false;
        return true;
}

/* Returns the string of a member; "" if it is absent or not a string. */
static const char *get_text(const struct hf__json *object, const char *key) {
        const char *value = hf__json_text(hf__json_get(object, key));

        return value ? value : "";
}

/* Sets the default group of a roleRef, a User or a Group. A ServiceAccount belongs to group "". */
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

/* A ServiceAccount belongs to the core group and needs a namespace. Users and Groups belong to the
 * RBAC group and need none. */
static void validate_subject(const struct hf__json *subject, size_t i, struct hfd_causes *causes) {
        const char *kind = get_text(subject, "kind"), *name = get_text(subject, "name"),
                   *group = get_text(subject, "apiGroup"), *ns = get_text(subject, "namespace");
        bool account = strcmp(kind, "ServiceAccount") == 0,
             known = account || strcmp(kind, "User") == 0 || strcmp(kind, "Group") == 0;
        char field[64];

        (void)snprintf(field, sizeof field, "subjects[%zu].name", i);
        if (!*name)
                hfd_cause_required(causes, field, "");
        else if (account && !hfd_is_dns_subdomain(name))
                hfd_cause_invalid_text(causes, field, name,
                                       "a service account is named by a lowercase RFC 1123 "
                                       "subdomain");
        /* The group depends on the kind, so with an unknown kind only the kind is reported. */
        (void)snprintf(field, sizeof field, "subjects[%zu].apiGroup", i);
        if (known && strcmp(group, account ? "" : RBAC_GROUP) != 0)
                hfd_cause_unsupported_text(causes, field, group,
                                           account ? "\"\"" : "\"" RBAC_GROUP "\"");
        (void)snprintf(field, sizeof field, "subjects[%zu].namespace", i);
        if (account && !*ns)
                hfd_cause_required(causes, field, "");
        (void)snprintf(field, sizeof field, "subjects[%zu].kind", i);
        if (!known)
                hfd_cause_unsupported_text(causes, field, kind,
                                           "\"ServiceAccount\", \"User\", \"Group\"");
}

/* The message prints the roleRef as Go prints the struct, because Kubernetes' message does. */
static void validate_unchanged_ref(const struct hf__json *ref, const struct hf__json *old_ref,
                                   struct hfd_causes *causes) {
        char value[700];

        /* A create has no stored roleRef. */
        if (!old_ref || hf__json_equal(ref, old_ref))
                return;
        (void)snprintf(value, sizeof value,
                       "rbac.RoleRef{APIGroup:\"%.100s\", Kind:\"%.60s\", Name:\"%.253s\"}",
                       get_text(ref, "apiGroup"), get_text(ref, "kind"), get_text(ref, "name"));
        hfd_cause_invalid(causes, "roleRef", value, "cannot change roleRef");
}

/* cluster: object is a ClusterRoleBinding, which must refer to a ClusterRole. */
static void validate_binding(const struct hf__json *object, const struct hf__json *old,
                             bool cluster, struct hfd_causes *causes) {
        const struct hf__json *ref = hf__json_get(object, "roleRef");
        const char *group = get_text(ref, "apiGroup"), *kind = get_text(ref, "kind");
        size_t i = 0;

        if (strcmp(group, RBAC_GROUP) != 0)
                hfd_cause_unsupported_text(causes, "roleRef.apiGroup", group, "\"" RBAC_GROUP "\"");
        if (strcmp(kind, "ClusterRole") != 0 && (cluster || strcmp(kind, "Role") != 0))
                hfd_cause_unsupported_text(causes, "roleRef.kind", kind,
                                           cluster ? "\"ClusterRole\""
                                                   : "\"Role\", \"ClusterRole\"");
        if (!*get_text(ref, "name"))
                hfd_cause_required(causes, "roleRef.name", "");
        for (const struct hf__json *m = hf__json_first(hf__json_get(object, "subjects")); m;
             m = hf__json_next(m))
                validate_subject(m, i++, causes);
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
