/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to server/rbac: the arrays of an index, with numbers in place of texts (texts.h). Roles,
 * rules and bindings are named by their positions in the arrays of struct hfd_rbac_index.
 *
 * Thread: one thread builds an index. From then on it is immutable, apart from its references, and
 * any thread may read it. An iterator (struct hfd_rbac_grants) belongs to one thread, and borrows
 * the index.
 */
#include <stdatomic.h>

#include "server/rbac/attributes.h"
#include "server/rbac/texts.h"

#define HFD_RBAC_NO_ROLE UINT32_MAX

/* n numbers from `at` on, in index->numbers. */
struct hfd_rbac_list {
        uint32_t at, n;
};

struct hfd_rbac_rule {
        /* The bits of all resources that the rule names (hfd_rbac_bit). If the bit of a resource is
         * not set, the rule does not name the resource. This test alone rules out most rules. */
        uint64_t resource_bits;
        struct hfd_rbac_list verbs, groups, resources, names, urls;
};

/* The bit of the text with this number; other texts may have the same bit. "*" has all bits. */
static inline uint64_t hfd_rbac_bit(uint32_t number) {
        return number == HFD_TEXT_STAR ? UINT64_MAX : (uint64_t)1 << number % 64;
}

struct hfd_rbac_role {
        uint32_t ns, name;            /* ns HFD_TEXT_NONE = a ClusterRole */
        uint32_t first_rule, n_rules; /* a range of index->rules */
};

struct hfd_rbac_binding {
        uint32_t ns, name;    /* ns HFD_TEXT_NONE = a ClusterRoleBinding */
        uint32_t role_name;   /* as the roleRef names it */
        bool is_cluster_role; /* the roleRef's kind */
        uint32_t role;        /* in index->roles; HFD_RBAC_NO_ROLE = it does not exist */
};

/* One subject of one binding. */
struct hfd_rbac_grant {
        uint32_t subject; /* the text "u:NAME" or "g:NAME" */
        uint32_t ns;      /* as the binding's */
        uint32_t binding; /* in index->bindings */
        uint32_t role;    /* as the binding's */
        bool is_account;  /* the subject is a ServiceAccount */
};

struct hfd_rbac_index {
        atomic_int refs;
        struct hfd_texts texts;
        uint32_t *numbers;                 /* owned; the lists of all rules */
        struct hfd_rbac_rule *rules;       /* owned */
        struct hfd_rbac_role *roles;       /* owned; sorted by ns and name */
        struct hfd_rbac_binding *bindings; /* owned */
        struct hfd_rbac_grant *grants;     /* owned; sorted by subject, ns, role, binding */
        size_t n_numbers, n_rules, n_roles, n_bindings, n_grants;
};

/* The most subjects of one user: the name, and those groups that bindings name. Further groups
 * grant nothing; but no user of this server has so many, and no SubjectAccessReview may name so
 * many. */
#define HFD_RBAC_SUBJECTS_MAX 256

/* Iterates over the grants of a user that count in a namespace. */
struct hfd_rbac_grants {
        const struct hfd_rbac_index *index; /* borrowed */
        uint32_t subjects[HFD_RBAC_SUBJECTS_MAX];
        size_t n_subjects, subject; /* subject: the next one */
        uint32_t ns;                /* HFD_TEXT_NONE = cluster-wide only */
        bool namespaced;            /* the cluster-wide grants are done */
        size_t at, end;             /* the range of index->grants that is left of one subject */
};
/* ns "" = cluster-wide grants only. */
void hfd_rbac_grants_init(struct hfd_rbac_grants *grants, const struct hfd_rbac_index *index,
                          const struct hfd_subject *subject, const char *ns);
/* NULL: the end. */
const struct hfd_rbac_grant *hfd_rbac_grants_next(struct hfd_rbac_grants *grants);
