/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scopes of quotas. spec.scopes is a list of names, of which each must hold; the expressions of
 * spec.scopeSelector must hold as well. Only PriorityClass and VolumeAttributesClass have values,
 * so the operator matters for these only, as in Kubernetes.
 *
 * Invariant: a scope that this file does not know selects no object. A quota must not limit objects
 * for which it was not meant.
 */
#include "server/quota/scopes.h"

#include <string.h>

#include "base/json.h"

static bool is_text(const char *text, const char *wanted) {
        return text && strcmp(text, wanted) == 0;
}

/* ---- the properties of a pod ---- */

bool hfd_pod_is_terminating(const struct hf__json *pod) {
        int64_t seconds;

        return hf__json_i64(pod, "spec.activeDeadlineSeconds", &seconds) && seconds >= 0;
}

/* Whether the map has more than zero processor time or memory. */
static bool asks_for_some(const struct hf__json *map) {
        static const char *const names[] = {"cpu", "memory"};
        struct hfd_quantity value;

        for (size_t i = 0; i < 2; i++) {
                const char *text = hf__json_text(hf__json_get(map, names[i]));
                if (text && hfd_quantity_parse(text, &value) == NULL && !value.negative &&
                    !hfd_quantity_is_zero(&value))
                        return true;
        }
        return false;
}

static bool has_resources(const struct hf__json *holder) {
        return asks_for_some(hf__json_path(holder, "resources.requests")) ||
               asks_for_some(hf__json_path(holder, "resources.limits"));
}

static bool is_best_effort(const struct hf__json *pod) {
        static const char *const lists[] = {"containers", "initContainers"};
        const struct hf__json *spec = hf__json_get(pod, "spec");

        if (hfd_pod_has_own_resources(spec))
                return !has_resources(spec);
        for (size_t i = 0; i < 2; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, lists[i])); m;
                     m = hf__json_next(m))
                        if (has_resources(m))
                                return false;
        return true;
}

/* Whether a term of the list names or selects namespaces, and so may look at pods of other ones.
 * at: the key of the term in an element; NULL = the element is the term. */
static bool crosses_namespaces(const struct hf__json *affinity, const char *list, const char *at) {
        for (const struct hf__json *m = hf__json_first(hf__json_get(affinity, list)); m;
             m = hf__json_next(m)) {
                const struct hf__json *term = at ? hf__json_get(m, at) : m,
                                      *selector = hf__json_get(term, "namespaceSelector");
                if (hf__json_first(hf__json_get(term, "namespaces")) ||
                    (selector && !hf__json_is_null(selector)))
                        return true;
        }
        return false;
}

static bool uses_other_namespaces(const struct hf__json *pod) {
        static const char *const paths[] = {"spec.affinity.podAffinity",
                                            "spec.affinity.podAntiAffinity"};

        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *affinity = hf__json_path(pod, paths[i]);
                if (crosses_namespaces(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
                                       NULL) ||
                    crosses_namespaces(affinity, "preferredDuringSchedulingIgnoredDuringExecution",
                                       "podAffinityTerm"))
                        return true;
        }
        return false;
}

/* ---- scopes with values ---- */

/* Whether an expression with this operator and these values holds for an object that has `value`.
 * value NULL: the object has none. Without a value NotIn holds, too. */
static bool operator_holds(const char *value, const char *op, const struct hf__json *values) {
        if (is_text(op, "Exists"))
                return value != NULL;
        if (is_text(op, "DoesNotExist"))
                return value == NULL;
        bool found = value && hf__json_has_element(values, value);
        return is_text(op, "In") ? found : is_text(op, "NotIn") && !found;
}

static const char *text_at(const struct hf__json *object, const char *path) {
        const char *text = hf__json_string(object, path);

        return text && *text ? text : NULL;
}

#define CLASS_TO_COME "status.modifyVolumeStatus.targetVolumeAttributesClassName"

/* A claim may name several classes while it moves from one to another. The expression must hold for
 * one of them, or, if there is none, for a claim without a class. */
static bool claim_holds(const struct hf__json *claim, const char *op,
                        const struct hf__json *values) {
        static const char *const paths[] = {"spec.volumeAttributesClassName",
                                            "status.currentVolumeAttributesClassName",
                                            CLASS_TO_COME};
        bool any = false;

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
                const char *name = text_at(claim, paths[i]);
                any = any || name;
                if (name && operator_holds(name, op, values))
                        return true;
        }
        return !any && operator_holds(NULL, op, values);
}

/* ---- all scopes ---- */

/* An object, and if it is a pod, the facts by which scopes select it. A quota may name a scope very
 * often, so a pod is examined only once. */
struct subject {
        enum hfd_quota_kind kind;
        const struct hf__json *object;
        bool terminating, best_effort, crossing;
};

static struct subject make_subject(enum hfd_quota_kind kind, const struct hf__json *object) {
        struct subject subject = {.kind = kind, .object = object};

        if (kind == HFD_QUOTA_PODS) {
                subject.terminating = hfd_pod_is_terminating(object);
                subject.best_effort = is_best_effort(object);
                subject.crossing = uses_other_namespaces(object);
        }
        return subject;
}

static bool has_scope(const struct subject *subject, const char *scope, const char *op,
                      const struct hf__json *values) {
        if (subject->kind == HFD_QUOTA_CLAIMS)
                return is_text(scope, "VolumeAttributesClass") &&
                       claim_holds(subject->object, op, values);
        if (subject->kind != HFD_QUOTA_PODS)
                return false;
        if (is_text(scope, "Terminating"))
                return subject->terminating;
        if (is_text(scope, "NotTerminating"))
                return !subject->terminating;
        if (is_text(scope, "BestEffort"))
                return subject->best_effort;
        if (is_text(scope, "NotBestEffort"))
                return !subject->best_effort;
        if (is_text(scope, "PriorityClass"))
                return operator_holds(text_at(subject->object, "spec.priorityClassName"), op,
                                      values);
        return is_text(scope, "CrossNamespacePodAffinity") && subject->crossing;
}

static const struct hf__json *first_scope(const struct hf__json *quota) {
        return hf__json_first(hf__json_path(quota, "spec.scopes"));
}

static const struct hf__json *first_expression(const struct hf__json *quota) {
        return hf__json_first(hf__json_path(quota, "spec.scopeSelector.matchExpressions"));
}

bool hfd_quota_has_scopes(const struct hf__json *quota) {
        return first_scope(quota) || first_expression(quota);
}

bool hfd_quota_selects(const struct hf__json *quota, enum hfd_quota_kind kind,
                       const struct hf__json *object) {
        if (!hfd_quota_has_scopes(quota))
                return true;
        const struct subject subject = make_subject(kind, object);
        for (const struct hf__json *m = first_scope(quota); m; m = hf__json_next(m))
                if (!has_scope(&subject, hf__json_text(m), "Exists", NULL))
                        return false;
        for (const struct hf__json *m = first_expression(quota); m; m = hf__json_next(m))
                if (!has_scope(&subject, hf__json_string(m, "scopeName"),
                               hf__json_string(m, "operator"), hf__json_get(m, "values")))
                        return false;
        return true;
}
