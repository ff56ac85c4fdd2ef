/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles admission policies and their bindings into what evaluations use.
 *
 * Invariants: a policy that an older or a newer server has stored may have mistakes that today's
 * validation refuses. In an expression, such a mistake becomes an error of the evaluation, for
 * which the policy has a failurePolicy. No such mistake makes the policy disappear, because then
 * everything that the policy forbids would be allowed. A text that is not copied points into the
 * JSON of the policy or the binding, which therefore lives as long.
 */
#include "server/admission/policy/compiled_policy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/objects/object.h"
#include "server/resources/packed.h"

static const char spaces[] = " \t\n\v\f\r"; /* the ASCII part of what Go's strings.TrimSpace cuts */

/* A member that is missing, or no text, counts as empty, as the zero value of a Go string. */
static const char *text_of(const struct hf__json *object, const char *name) {
        const char *text = hf__json_string(object, name);

        return text ? text : "";
}

static const char *without_spaces(const char *text) { return text + strspn(text, spaces); }

/* The features of a policy's expressions. Mutations and their variables have HFD_EXPRESSION_PATCH
 * besides; match conditions cannot use variables (compile_policy), and messages cannot ask the
 * authorizer. */
static unsigned features_of(const struct hfd_policy *policy) {
        return HFD_EXPRESSION_VARIABLES | HFD_EXPRESSION_AUTHORIZER |
               (policy->param_kind ? HFD_EXPRESSION_PARAMS : 0);
}

/* Variables beyond HFD_EXPRESSION_VARIABLES_MAX are left out; an expression that names one of them
 * has a mistake. */
static int compile_variables(struct hfd_policy *policy, const struct hf__json *spec) {
        const struct hfd_expression *expression;

        for (const struct hf__json *m = hf__json_first(hf__json_get(spec, "variables")); m;
             m = hf__json_next(m)) {
                int r = hfd_expressions_add_variable(policy->set, text_of(m, "name"),
                                                     text_of(m, "expression"), &expression);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The next three functions allocate one element more, as calloc of none may return NULL. */
static int compile_validations(struct hfd_policy *policy, const struct hf__json *list) {
        unsigned features = features_of(policy);
        int r = 0;

        policy->validations = calloc(hf__json_count(list) + 1, sizeof *policy->validations);
        if (!policy->validations)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                struct hfd_policy_validation *v = &policy->validations[policy->n_validations++];
                const char *message = text_of(m, "messageExpression");

                v->text = text_of(m, "expression");
                v->message = text_of(m, "message");
                v->reason = text_of(m, "reason");
                if (!v->reason[0])
                        v->reason = "Invalid";
                r = hfd_expressions_compile(policy->set, v->text, features, HFD_RESULT_BOOL,
                                            &v->expression);
                if (r == 0 && message[0])
                        r = hfd_expressions_compile(policy->set, message,
                                                    features & ~HFD_EXPRESSION_AUTHORIZER,
                                                    HFD_RESULT_STRING, &v->message_expression);
        }
        return r;
}

/* If the result of a valueExpression is null, its annotation is left out, so null is valid. */
static int compile_annotations(struct hfd_policy *policy, const struct hf__json *list) {
        int r = 0;

        policy->annotations = calloc(hf__json_count(list) + 1, sizeof *policy->annotations);
        if (!policy->annotations)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                struct hfd_policy_annotation *a = &policy->annotations[policy->n_annotations++];

                a->key = text_of(m, "key");
                a->text = text_of(m, "valueExpression");
                r = hfd_expressions_compile(policy->set, a->text, features_of(policy),
                                            HFD_RESULT_STRING_OR_NULL, &a->expression);
        }
        return r;
}

/* An ApplyConfiguration makes an Object, a JSONPatch a list of operations. The type of the result
 * is checked here, so that a mutation with the wrong one fails before it changes anything; those
 * before it may have changed the object. */
static int compile_mutations(struct hfd_policy *policy, const struct hf__json *list) {
        int r = 0;

        policy->mutations = calloc(hf__json_count(list) + 1, sizeof *policy->mutations);
        if (!policy->mutations)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                struct hfd_policy_mutation *mutation = &policy->mutations[policy->n_mutations++];
                const struct hf__json *change;

                mutation->apply = hf__json_has_text(m, "patchType", "ApplyConfiguration");
                change = hf__json_get(m, mutation->apply ? "applyConfiguration" : "jsonPatch");
                r = hfd_expressions_compile(policy->set,
                                            without_spaces(text_of(change, "expression")),
                                            features_of(policy) | HFD_EXPRESSION_PATCH,
                                            mutation->apply ? HFD_RESULT_OBJECT
                                                            : HFD_RESULT_JSON_PATCH,
                                            &mutation->expression);
        }
        return r;
}

/* A variable is compiled before the expressions that may name it. Match conditions have fewer
 * features, because Kubernetes evaluates them without the variables. */
static int compile_policy(struct hfd_policy *policy, const struct hf__json *spec) {
        const struct hf__json *params = hf__json_get(spec, "paramKind");
        unsigned conditions = HFD_EXPRESSION_AUTHORIZER;
        int r;

        if (params) {
                policy->param_api_version = text_of(params, "apiVersion");
                policy->param_kind = text_of(params, "kind");
                conditions |= HFD_EXPRESSION_PARAMS;
        }
        policy->ignores_failure = hf__json_has_text(spec, "failurePolicy", "Ignore");
        policy->reinvoked = hf__json_has_text(spec, "reinvocationPolicy", "IfNeeded");
        r = hfd_matcher_init(&policy->matcher, hf__json_get(spec, "matchConstraints"));
        if (r == 0)
                r = hfd_expressions_new(features_of(policy) |
                                                (policy->mutating ? HFD_EXPRESSION_PATCH : 0),
                                        NULL, NULL, &policy->set);
        if (r == 0)
                r = hfd_match_conditions_new(policy->set, hf__json_get(spec, "matchConditions"),
                                             conditions, &policy->conditions);
        if (r == 0)
                r = compile_variables(policy, spec);
        if (r == 0)
                r = compile_validations(policy, hf__json_get(spec, "validations"));
        if (r == 0)
                r = compile_annotations(policy, hf__json_get(spec, "auditAnnotations"));
        if (r == 0)
                r = compile_mutations(policy, hf__json_get(spec, "mutations"));
        return r;
}

/* Parses the object. 0; -ENOMEM: the caller must try again, because the policy must not be missing;
 * HF_E_INVALID: the bytes are malformed, which is rare, because the decoder has checked them. */
static int parse_stored(const struct hfd_object *object, struct hf__json **ret_json) {
        struct hf__buf *bytes = hfd_unpack(object->bytes);
        int r = bytes ? hf__json_parse(bytes->data, bytes->n, ret_json, NULL) : -ENOMEM;

        hf__buf_unref(bytes);
        return r > 0 ? HF_E_INVALID : r;
}

HF__CLEANUP_DEFINE(policy_cleanup, struct hfd_policy *, hfd_policy_unref)

int hfd_policy_new(const struct hfd_object *object, bool mutating, struct hfd_policy **ret_policy) {
        HF__CLEANUP(policy_cleanup) struct hfd_policy *policy = calloc(1, sizeof *policy);

        if (!policy)
                return -ENOMEM;
        atomic_init(&policy->refs, 1);
        policy->revision = object->revision;
        policy->mutating = mutating;
        int r = parse_stored(object, &policy->json);
        if (r != 0)
                return r;
        policy->name = text_of(hf__json_get(policy->json, "metadata"), "name");
        r = compile_policy(policy, hf__json_get(policy->json, "spec"));
        if (r != 0)
                return r;
        *ret_policy = HF__TAKE(policy);
        return 0;
}

struct hfd_policy *hfd_policy_ref(struct hfd_policy *policy) {
        assert(atomic_load_explicit(&policy->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&policy->refs, 1);
        return policy;
}

/* Any thread may drop the last reference. The sequentially consistent subtraction makes the other
 * threads' last uses happen before the policy is freed. */
struct hfd_policy *hfd_policy_unref(struct hfd_policy *policy) {
        assert(!policy || atomic_load_explicit(&policy->refs, memory_order_relaxed) > 0);
        if (!policy || atomic_fetch_sub(&policy->refs, 1) > 1)
                return NULL;
        hfd_matcher_done(&policy->matcher);
        free(policy->conditions);
        hfd_expressions_free(policy->set);
        free(policy->validations);
        free(policy->annotations);
        free(policy->mutations);
        hf__json_free(policy->json);
        free(policy);
        return NULL;
}

/* ---- bindings ---- */

/* Actions that this server does not know are left out. The list itself is kept as JSON, because the
 * audit annotation shows it as the binding has it. */
static unsigned actions_of(const struct hf__json *list) {
        return (hf__json_has_element(list, "Deny") ? HFD_POLICY_DENY : 0U) |
               (hf__json_has_element(list, "Warn") ? HFD_POLICY_WARN : 0U) |
               (hf__json_has_element(list, "Audit") ? HFD_POLICY_AUDIT : 0U);
}

HF__CLEANUP_DEFINE(binding_cleanup, struct hfd_policy_binding *, hfd_policy_binding_unref)

int hfd_policy_binding_new(const struct hfd_object *object,
                           struct hfd_policy_binding **ret_binding) {
        HF__CLEANUP(binding_cleanup)
        struct hfd_policy_binding *binding = calloc(1, sizeof *binding);

        if (!binding)
                return -ENOMEM;
        atomic_init(&binding->refs, 1);
        binding->revision = object->revision;
        int r = parse_stored(object, &binding->json);
        if (r != 0)
                return r;
        const struct hf__json *spec = hf__json_get(binding->json, "spec");
        r = hfd_matcher_init(&binding->matcher, hf__json_get(spec, "matchResources"));
        if (r != 0)
                return r;
        binding->name = text_of(hf__json_get(binding->json, "metadata"), "name");
        binding->policy_name = text_of(spec, "policyName");
        binding->actions_json = hf__json_get(spec, "validationActions");
        binding->actions = actions_of(binding->actions_json);
        binding->param_ref = hf__json_get(spec, "paramRef");
        *ret_binding = HF__TAKE(binding);
        return 0;
}

struct hfd_policy_binding *hfd_policy_binding_ref(struct hfd_policy_binding *binding) {
        assert(atomic_load_explicit(&binding->refs, memory_order_relaxed) > 0);
        atomic_fetch_add(&binding->refs, 1);
        return binding;
}

struct hfd_policy_binding *hfd_policy_binding_unref(struct hfd_policy_binding *binding) {
        assert(!binding || atomic_load_explicit(&binding->refs, memory_order_relaxed) > 0);
        if (!binding || atomic_fetch_sub(&binding->refs, 1) > 1)
                return NULL;
        hfd_matcher_done(&binding->matcher);
        hf__json_free(binding->json);
        free(binding);
        return NULL;
}
