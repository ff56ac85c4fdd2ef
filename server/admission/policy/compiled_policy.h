/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ValidatingAdmissionPolicy or a MutatingAdmissionPolicy, compiled once from the stored object,
 * and a binding of one. Both are immutable and have a reference count, so that a new index of
 * policies can share with the old index what has not changed. Thread: any. Nothing blocks.
 *
 * Stack of the functions that make one: as for expressions (expressions.h).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/admission/expressions/match_conditions.h"
#include "server/admission/matching/matcher.h"

struct hf__json;
struct hfd_object;

struct hfd_policy_validation {
        const char *text;
        /* message_expression may be NULL. */
        const struct hfd_expression *expression, *message_expression;
        const char *message; /* "" = none */
        const char *reason;  /* "Invalid" if the policy has none */
};
struct hfd_policy_annotation {
        const char *key, *text;
        const struct hfd_expression *expression;
};
struct hfd_policy_mutation {
        bool apply; /* ApplyConfiguration; else JSONPatch */
        const struct hfd_expression *expression;
};

struct hfd_policy {
        atomic_int refs;
        uint64_t revision; /* of the stored object */
        bool mutating;
        struct hf__json *json; /* owned; the texts below point into it */
        const char *name;
        bool ignores_failure; /* failurePolicy Ignore */
        bool reinvoked;       /* reinvocationPolicy IfNeeded */
        /* The kind of the params; NULL: the policy has none. */
        const char *param_api_version, *param_kind;
        struct hfd_matcher matcher;
        struct hfd_expressions *set; /* owned, as all that follow */
        struct hfd_match_conditions *conditions;
        struct hfd_policy_validation *validations;
        size_t n_validations;
        struct hfd_policy_annotation *annotations;
        size_t n_annotations;
        struct hfd_policy_mutation *mutations;
        size_t n_mutations;
};

/* object: a stored policy. An expression that does not compile is not an error here: it fails when
 * it is evaluated. 0; -ENOMEM; HF_E_INVALID: the object is malformed. */
int hfd_policy_new(const struct hfd_object *object, bool mutating, struct hfd_policy **ret_policy);
/* The caller has a reference already, or has one to an index that refers to the policy. */
struct hfd_policy *hfd_policy_ref(struct hfd_policy *policy);
struct hfd_policy *hfd_policy_unref(struct hfd_policy *policy); /* accepts NULL */

/* The actions when a validation fails; a set of bits. */
enum { HFD_POLICY_DENY = 1, HFD_POLICY_WARN = 2, HFD_POLICY_AUDIT = 4 };

struct hfd_policy_binding {
        atomic_int refs;
        uint64_t revision;
        struct hf__json *json; /* owned */
        const char *name, *policy_name;
        struct hfd_matcher matcher; /* from matchResources; without them it matches everything */
        unsigned actions;
        const struct hf__json *actions_json; /* validationActions; NULL: there are none */
        const struct hf__json *param_ref;    /* NULL: there is none */
};

/* These are as hfd_policy_new, _ref and _unref, for a stored binding. */
int hfd_policy_binding_new(const struct hfd_object *object,
                           struct hfd_policy_binding **ret_binding);
struct hfd_policy_binding *hfd_policy_binding_ref(struct hfd_policy_binding *binding);
struct hfd_policy_binding *hfd_policy_binding_unref(struct hfd_policy_binding *binding);
