/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All ValidatingAdmissionPolicies, or all MutatingAdmissionPolicies, with their bindings, compiled
 * for the evaluation of requests. A policy without bindings never applies, so requests do not visit
 * it.
 *
 * Immutable, with a reference count; a change of a policy or of a binding makes another index.
 * Thread: any. Nothing blocks.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/admission/policy/compiled_policy.h"

struct hfd_cacher;

/* A policy with its bindings; it has at least one. */
struct hfd_policy_hook {
        struct hfd_policy *policy;            /* owned reference */
        struct hfd_policy_binding **bindings; /* borrowed from the index; sorted by name */
        size_t n_bindings;
};

struct hfd_policy_index {
        atomic_int refs;
        struct hfd_policy_hook *hooks; /* owned; sorted by the name of the policy */
        size_t n_hooks;
        struct hfd_policy_binding **bindings; /* owned references, sorted by policy and name */
        size_t n_bindings;
        /* Policies without bindings. The next index takes them over, so that they are not compiled
         * again. */
        struct hfd_policy **idle; /* owned references, sorted by name */
        size_t n_idle;
};

/*
 * Makes an index of the policies and bindings in the cacher. mutating: of the
 * MutatingAdmissionPolicies. old: the index that it replaces, whose unchanged parts are used again;
 * NULL = none. 0; -ENOMEM; or -EAGAIN: the cacher is not filled yet.
 */
int hfd_policy_index_new(struct hfd_cacher *cacher, bool mutating,
                         const struct hfd_policy_index *old, struct hfd_policy_index **ret_index);
/* The caller has a reference already, or holds the lock that guards another one. */
struct hfd_policy_index *hfd_policy_index_ref(struct hfd_policy_index *index);
struct hfd_policy_index *hfd_policy_index_unref(struct hfd_policy_index *index); /* accepts NULL */
/* For `wants` of a plug-in (admission.h): whether some policy may apply, judged as by
 * hfd_matcher_may_match. */
bool hfd_policy_index_wants(const struct hfd_policy_index *index,
                            const struct hfd_admission_attributes *of);
