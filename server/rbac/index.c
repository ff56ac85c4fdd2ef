/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading an index: the grants of a user. All arrays are immutable, so nothing here needs a lock.
 *
 * Invariant: grants are sorted by subject and namespace. So the grants of one subject are adjacent,
 * those of cluster-wide bindings first (HFD_TEXT_NONE is 0), and a user's rights are a few ranges
 * of the array.
 */
#include "server/rbac/index.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/rbac/index_private.h"

struct hfd_rbac_index *hfd_rbac_index_ref(struct hfd_rbac_index *index) {
        assert(!index || atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        if (index)
                atomic_fetch_add(&index->refs, 1);
        return index;
}

struct hfd_rbac_index *hfd_rbac_index_unref(struct hfd_rbac_index *index) {
        assert(!index || atomic_load_explicit(&index->refs, memory_order_relaxed) > 0);
        if (!index || atomic_fetch_sub(&index->refs, 1) != 1)
                return NULL;
        hfd_texts_done(&index->texts);
        free(index->numbers);
        free(index->rules);
        free(index->roles);
        free(index->bindings);
        free(index->grants);
        free(index);
        return NULL;
}

size_t hfd_rbac_index_bindings(const struct hfd_rbac_index *index) { return index->n_bindings; }

bool hfd_subject_in_group(const struct hfd_subject *subject, const char *group) {
        for (size_t i = 0; i < subject->n_groups; i++)
                if (strcmp(subject->groups[i], group) == 0)
                        return true;
        return false;
}

/* ---- the grants of a user ---- */

/* The number of a user (prefix 'u') or a group ('g'). HFD_TEXT_NONE: no binding has this subject,
 * or its name is longer than that of any user or group of this server (server/auth/user.h). */
static uint32_t find_subject(const struct hfd_rbac_index *index, char prefix, const char *name) {
        char text[512];
        int n = snprintf(text, sizeof text, "%c:%s", prefix, name);

        if (n < 0 || (size_t)n >= sizeof text)
                return HFD_TEXT_NONE;
        return hfd_texts_find(&index->texts, text, (size_t)n);
}

void hfd_rbac_grants_init(struct hfd_rbac_grants *grants, const struct hfd_rbac_index *index,
                          const struct hfd_subject *subject, const char *ns) {
        assert(index && subject && subject->name);
        uint32_t number = find_subject(index, 'u', subject->name);

        grants->index = index;
        grants->n_subjects = grants->subject = grants->at = grants->end = 0;
        grants->namespaced = false;
        grants->ns = ns[0] ? hfd_texts_find(&index->texts, ns, strlen(ns)) : HFD_TEXT_NONE;
        if (number)
                grants->subjects[grants->n_subjects++] = number;
        for (size_t i = 0; i < subject->n_groups; i++) {
                number = find_subject(index, 'g', subject->groups[i]);
                if (number && grants->n_subjects < HFD_RBAC_SUBJECTS_MAX)
                        grants->subjects[grants->n_subjects++] = number;
        }
}

/* The number of the first grant that does not sort before (subject, ns). */
static size_t lower_bound(const struct hfd_rbac_index *index, uint32_t subject, uint32_t ns) {
        size_t low = 0, high = index->n_grants;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const struct hfd_rbac_grant *grant = &index->grants[middle];
                if (grant->subject < subject || (grant->subject == subject && grant->ns < ns))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Cluster-wide grants of all subjects come first, then those of the namespace. */
const struct hfd_rbac_grant *hfd_rbac_grants_next(struct hfd_rbac_grants *grants) {
        assert(grants->at <= grants->end && grants->end <= grants->index->n_grants);
        while (grants->at == grants->end) {
                if (grants->subject == grants->n_subjects) {
                        if (grants->namespaced || grants->ns == HFD_TEXT_NONE)
                                return NULL;
                        grants->namespaced = true;
                        grants->subject = 0;
                        if (grants->n_subjects == 0)
                                return NULL;
                }
                uint32_t subject = grants->subjects[grants->subject++],
                         ns = grants->namespaced ? grants->ns : HFD_TEXT_NONE;
                grants->at = lower_bound(grants->index, subject, ns);
                /* The range ends where the grants of the next namespace would begin. */
                grants->end = lower_bound(grants->index, subject, ns + 1);
        }
        return &grants->index->grants[grants->at++];
}
