/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ValidatingAdmissionPolicies: each policy whose rules match the request is evaluated once for each
 * of its bindings that also match, and for each of the binding's params.
 *
 * Invariants: texts are those of kube-apiserver. Only the first refusal becomes the response, but
 * the evaluation goes on after it, because later bindings may still warn and audit. Match
 * conditions, validations and annotations have budgets of their own for each evaluation of a
 * policy, so expensive conditions do not make a validation fail. If an evaluation exceeds a limit
 * that Kubernetes does not have (HF_E_TOO_MANY), and the binding can deny, the policy fails even
 * with the failurePolicy Ignore: otherwise a write could pass that Kubernetes would refuse. The
 * exception is a messageExpression, which decides nothing.
 */
#include "server/admission/policy/validating_policies.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "server/admission/expressions/explained_eval.h"
#include "server/admission/policy/policy_params.h"
#include "server/resources/response.h"

#define MESSAGE_MAX            (16U << 10) /* bytes of a message; a policy's texts in it are cut */
#define MESSAGE_EXPRESSION_MAX 5120        /* bytes of what a messageExpression makes */
#define ANNOTATION_MAX         10240       /* bytes of the value of an annotation */

static const char spaces[] = " \t\n\v\f\r"; /* the ASCII part of what strings.TrimSpace cuts */

/* The state of a request. */
struct validating {
        struct hfd_policy_case *c;
        struct hfd_admission_notes *notes;
        const struct hfd_policy *policy;          /* the policy that is being evaluated */
        const struct hfd_policy_binding *binding; /* NULL: none yet */
        /* Owned; an array with one strbuf for each annotation of the policy, which has its values,
         * each followed by a NUL. NULL: no annotation has a value yet. */
        struct hf__strbuf *annotations;
        bool denied;
        struct hf__strbuf denial; /* the message of the first refusal */
        const char *reason;       /* its reason; borrowed from the policy, or static */
        int r;                    /* 0, or an error of hfd_policies_validate */
};

/* After the allowance is spent, evaluations fail without having decided anything. Such a failure
 * must not deny the request, which is evaluated again on the pool. */
static bool is_over(const struct validating *v) {
        return v->r != 0 || (v->c->allowance && v->c->allowance->spent);
}

/* ---- actions after a decision ---- */

/* The reason and the message are of the first denial, in the order of policies and bindings. */
static void deny_request(struct validating *v, const char *reason, const char *message) {
        if (v->denied)
                return;
        v->denied = true;
        v->reason = reason;
        hf__strbuf_printf(&v->denial,
                          "ValidatingAdmissionPolicy '%s'%s%s%s denied request: ", v->policy->name,
                          v->binding ? " with binding '" : "", v->binding ? v->binding->name : "",
                          v->binding ? "'" : "");
        hf__strbuf_puts_cut(&v->denial, message);
}

static void add_warning(struct validating *v, const char *message) {
        struct hf__strbuf text = {.max = HFD_ADMISSION_WARNINGS_MAX - 1}; /* 1: the newline */

        assert(v->policy && v->binding);
        hf__strbuf_printf(&text,
                          "Validation failed for ValidatingAdmissionPolicy '%s' with binding "
                          "'%s': ",
                          v->policy->name, v->binding->name);
        hf__strbuf_puts_cut(&text, message);
        if (text.error == 0)
                hfd_admission_warn(v->notes, text.data);
        hf__strbuf_done(&text);
}

/* i: the index of the validation, or of the annotation, that has failed; 0 for match conditions. As
 * in Kubernetes, the value is a list that has only one failure, and of all failures of a request
 * the first one stays, because the first value of a key does (hfd_admission_annotate). */
static void add_audit_failure(struct validating *v, size_t i, const char *message) {
        struct hf__strbuf text = {.max = HFD_ADMISSION_ANNOTATIONS_MAX};

        hf__strbuf_puts(&text, "[{\"message\":");
        hf__strbuf_json(&text, message, strlen(message));
        hf__strbuf_puts(&text, ",\"policy\":");
        hf__strbuf_json(&text, v->policy->name, strlen(v->policy->name));
        hf__strbuf_puts(&text, ",\"binding\":");
        hf__strbuf_json(&text, v->binding->name, strlen(v->binding->name));
        hf__strbuf_printf(&text, ",\"expressionIndex\":%zu,\"validationActions\":", i);
        hf__json_print(v->binding->actions_json, &text);
        hf__strbuf_puts(&text, "}]");
        if (text.error == 0)
                hfd_admission_annotate(v->notes,
                                       "validation.policy.admission.k8s.io/validation_failure",
                                       text.data);
        hf__strbuf_done(&text);
}

/* Validation number i, or what i stands for in add_audit_failure, has failed: denies, warns and
 * audits as the binding says. */
static void act_on_failure(struct validating *v, size_t i, const char *reason,
                           const char *message) {
        if ((v->binding->actions & HFD_POLICY_DENY) != 0)
                deny_request(v, reason, message);
        if ((v->binding->actions & HFD_POLICY_WARN) != 0)
                add_warning(v, message);
        if ((v->binding->actions & HFD_POLICY_AUDIT) != 0)
                add_audit_failure(v, i, message);
}

/* The evaluation has failed without a decision. The failurePolicy says whether that counts as a
 * failed validation. If the reason r is a limit that Kubernetes does not have, it always does. */
static void act_on_error(struct validating *v, size_t i, int r, const char *message) {
        if (!v->policy->ignores_failure || r == HF_E_TOO_MANY)
                act_on_failure(v, i, "Invalid", message);
}

/* Whether r is a limit that Kubernetes does not have, and the binding can deny requests. */
static bool must_deny(const struct validating *v, int r) {
        return r == HF_E_TOO_MANY && v->binding && (v->binding->actions & HFD_POLICY_DENY) != 0;
}

/* The policy or the binding cannot be used. The failurePolicy says whether that denies, whatever
 * the actions of the binding are; must_deny is the exception to the failurePolicy Ignore. */
static void act_on_configuration(struct validating *v, const char *what, int r,
                                 const struct hf__strbuf *why) {
        struct hf__strbuf text = {.max = MESSAGE_MAX};

        if (v->policy->ignores_failure && !must_deny(v, r))
                return;
        hf__strbuf_printf(&text, "failed to configure %s: ", what);
        hf__strbuf_puts_cut(&text, why->data ? why->data : "");
        deny_request(v, "Invalid", text.error == 0 ? text.data : what);
        hf__strbuf_done(&text);
}

/* ---- one evaluation of a policy ---- */

static bool is_space(char c) { return c && strchr(spaces, c); }

static void trim_space(const char **text, size_t *n) {
        while (*n > 0 && is_space((*text)[*n - 1]))
                (*n)--;
        while (*n > 0 && is_space(**text)) {
                (*text)++;
                (*n)--;
        }
}

/* Appends what the messageExpression says. false: there is none, it has failed, or its result
 * cannot be shown. *ret_failed: its evaluation has exceeded the budget, which is an error of the
 * validation; then message has the text of the error. An evaluation that exceeds a limit that
 * Kubernetes does not have is no such error: the validation is false, and that decides. */
static bool put_message_of_expression(struct hfd_expression_run *run,
                                      const struct hfd_policy_validation *validation,
                                      struct hf__strbuf *message, bool *ret_failed) {
        struct hf__strbuf error = {.max = MESSAGE_MAX};
        struct hf__cel_value value;
        const char *text;
        size_t n;
        int r;

        *ret_failed = false;
        if (!validation->message_expression)
                return false;
        r = hfd_expression_eval(run, validation->message_expression, &value, &error);
        *ret_failed = r == HF_E_TOO_LARGE;
        if (*ret_failed)
                hf__strbuf_printf(message, "failed messageExpression: %s",
                                  error.data ? error.data : "");
        hf__strbuf_done(&error);
        if (r != 0 || value.kind != HF__CEL_STRING)
                return false;
        text = value.as.text;
        n = value.n;
        trim_space(&text, &n);
        if (n == 0 || n > MESSAGE_EXPRESSION_MAX || memchr(text, '\n', n) || memchr(text, 0, n))
                return false;
        hf__strbuf_add(message, text, n);
        return true;
}

/* Makes the message of a validation that is not true, and acts on it. */
static void fail_validation(struct validating *v, struct hfd_expression_run *run, size_t i) {
        const struct hfd_policy_validation *validation = &v->policy->validations[i];
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        const char *text = validation->message;
        size_t n = strlen(text);
        bool failed;

        if (put_message_of_expression(run, validation, &message, &failed) || failed) {
                if (failed)
                        act_on_error(v, i, HF_E_TOO_LARGE, message.data ? message.data : "");
                else
                        act_on_failure(v, i, validation->reason, message.data ? message.data : "");
                hf__strbuf_done(&message);
                return;
        }
        trim_space(&text, &n);
        if (n == 0) {
                hf__strbuf_puts(&message, "failed expression: ");
                text = validation->text;
                n = strlen(text);
                trim_space(&text, &n);
        }
        hf__strbuf_add_cut(&message, text, n, MESSAGE_MAX);
        if (message.error == 0)
                act_on_failure(v, i, validation->reason, message.data);
        else
                act_on_failure(v, i, validation->reason, "failed expression");
        hf__strbuf_done(&message);
}

/* Whether the run can evaluate more. If its end must end the request, v->r says so. */
static bool may_go_on(struct validating *v, const struct hfd_expression_run *run) {
        if (v->r == 0 && hfd_policy_case_ends(run->ended))
                v->r = run->ended;
        return run->ended == 0 && !is_over(v);
}

/* Evaluates validation number i. false: the budget is spent, the run has ended or the request is
 * over. */
static bool run_validation(struct validating *v, struct hfd_expression_run *run, size_t i) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hf__cel_value value;
        int r = hfd_explained_eval(run, v->policy->validations[i].expression, &value, &message);

        (void)may_go_on(v, run);
        if (!is_over(v) && r > 0)
                act_on_error(v, i, r, message.error == 0 ? message.data : "");
        else if (!is_over(v) && (value.kind != HF__CEL_BOOL || !value.as.boolean))
                fail_validation(v, run, i);
        hf__strbuf_done(&message);
        return r != HF_E_TOO_LARGE && may_go_on(v, run);
}

static bool has_value(const struct hf__strbuf *values, const char *text, size_t n) {
        for (size_t at = 0; at < values->n; at += strlen(values->data + at) + 1)
                if (strncmp(values->data + at, text, n) == 0 && values->data[at + n] == 0)
                        return true;
        return false;
}

/* Remembers a value of the annotation number i, unless the same one is there already, from another
 * binding or from other params. A value beyond ANNOTATION_MAX is cut, as in Kubernetes. An
 * annotation that does not fit is dropped as a whole (notes.h), so no more of its values are kept
 * than fit. */
static void add_annotation(struct validating *v, size_t i, const char *text, size_t n) {
        if (!v->annotations)
                v->annotations = calloc(v->policy->n_annotations, sizeof *v->annotations);
        if (!v->annotations) {
                v->r = -ENOMEM;
                return;
        }
        struct hf__strbuf *values = &v->annotations[i];
        n = strnlen(text, n < ANNOTATION_MAX ? n : ANNOTATION_MAX);
        values->max = HFD_ADMISSION_ANNOTATIONS_MAX;
        if (values->error != 0 || has_value(values, text, n))
                return;
        hf__strbuf_add(values, text, n);
        hf__strbuf_putc(values, '\0');
        if (values->error == -ENOMEM)
                v->r = -ENOMEM;
}

/* Evaluates the annotation number i. With the failurePolicy Ignore a failure has no effect,
 * unless must_deny is true. Otherwise a failure denies at once, as in Kubernetes, whatever the
 * actions of the binding are; only a spent budget follows the actions. false: as for
 * run_validation. */
static bool run_annotation(struct validating *v, struct hfd_expression_run *run, size_t i) {
        const struct hfd_policy_annotation *annotation = &v->policy->annotations[i];
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hf__cel_value value;
        int r = hfd_explained_eval(run, annotation->expression, &value, &message);

        (void)may_go_on(v, run);
        if (!is_over(v) && r > 0 && (!v->policy->ignores_failure || must_deny(v, r))) {
                if (r == HF_E_TOO_LARGE)
                        act_on_failure(v, i, "Invalid", message.error == 0 ? message.data : "");
                else
                        deny_request(v, "Invalid", message.error == 0 ? message.data : "");
        } else if (!is_over(v) && r == 0 && value.kind == HF__CEL_STRING) {
                const char *text = value.as.text;
                size_t n = value.n;

                trim_space(&text, &n);
                if (n > 0 && *text) /* it is cut at a NUL, so that nothing may be left */
                        add_annotation(v, i, text, n);
        }
        hf__strbuf_done(&message);
        return r != HF_E_TOO_LARGE && may_go_on(v, run);
}

/* Each of the params has a budget of its own, so many params do not make the last ones fail. */
static enum hfd_match check_conditions(struct validating *v, const struct hf__json *params) {
        struct hfd_expression_input input = hfd_policy_case_input(v->c, params, false);
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hfd_expression_run run;
        enum hfd_match match;

        if (v->policy->conditions->n == 0)
                return HFD_MATCH_YES;
        hfd_policy_case_run(v->c, &run, v->policy, &input, HFD_MATCH_BUDGET);
        match = hfd_match_conditions_check(v->policy->conditions, &run, NULL, &message);
        (void)may_go_on(v, &run);
        if ((match == HFD_MATCH_ERROR || match == HFD_MATCH_ENDED) && !is_over(v))
                act_on_error(v, 0, run.ended, message.error == 0 ? message.data : "");
        hf__strbuf_done(&message);
        hfd_expression_run_done(&run);
        return match;
}

static void evaluate_validations(struct validating *v, const struct hf__json *params) {
        struct hfd_expression_input input = hfd_policy_case_input(v->c, params, true);
        struct hfd_expression_run run;
        bool goes_on = true;

        v->r = hfd_policy_case_begin(v->c);
        if (v->r != 0 || check_conditions(v, params) != HFD_MATCH_YES || is_over(v))
                return;
        hfd_policy_case_run(v->c, &run, v->policy, &input, HFD_EXPRESSIONS_BUDGET);
        for (size_t i = 0; i < v->policy->n_validations && goes_on; i++)
                goes_on = run_validation(v, &run, i);
        run.budget = HFD_EXPRESSIONS_BUDGET;
        for (size_t i = 0; i < v->policy->n_annotations && goes_on; i++)
                goes_on = run_annotation(v, &run, i);
        hfd_expression_run_done(&run);
}

/* ---- policies and bindings ---- */

static void run_binding(struct validating *v, const struct hfd_policy_binding *binding) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        const struct hfd_resource *as;
        struct hfd_policy_params params = {0};
        enum hfd_matcher_result match;
        int r;

        v->binding = binding;
        v->r = hfd_policy_case_match(v->c, &binding->matcher, v->c->a->object, &match, &as,
                                     &message);
        if (v->r == 0 && match == HFD_MATCHER_ERROR)
                act_on_configuration(v, "binding", HF_E_INVALID, &message);
        if (match == HFD_MATCHER_YES) {
                r = hfd_policy_params_find(v->c, v->policy, binding, &params, &message);
                if (r < 0)
                        v->r = r;
                else if (r > 0)
                        act_on_configuration(v, "binding", r, &message);
                if (r == 0 && params.n > 0 && v->c->failure) {
                        hf__strbuf_printf(&message, "failed to convert object version: %s",
                                          v->c->failure->status.message);
                        r = hfd_forms_error(v->c->failure);
                        act_on_configuration(v, "binding", r, &message);
                }
                for (size_t i = 0; r == 0 && i < params.n && !is_over(v); i++)
                        evaluate_validations(v, params.items[i]);
                hfd_policy_params_done(&params);
        }
        v->binding = NULL;
        hf__strbuf_done(&message);
}

/* Adds an annotation of the policy to the notes. Several values become a list. */
static void publish_annotation(const struct validating *v, size_t i) {
        const struct hf__strbuf *values = &v->annotations[i];
        struct hf__strbuf key = {.max = 600}, list = {.max = HFD_ADMISSION_ANNOTATIONS_MAX};

        hf__strbuf_printf(&key, "%s/%s", v->policy->name, v->policy->annotations[i].key);
        for (size_t at = 0; at < values->n; at += strlen(values->data + at) + 1) {
                hf__strbuf_puts(&list, at > 0 ? ", " : "");
                hf__strbuf_puts(&list, values->data + at);
        }
        if (values->n > 0 && values->error == 0 && key.error == 0 && list.error == 0)
                hfd_admission_annotate(v->notes, key.data, list.data);
        hf__strbuf_done(&key);
        hf__strbuf_done(&list);
}

/* Frees the annotations of the policy, and before that adds them to the notes if `publishes`. */
static void end_annotations(struct validating *v, bool publishes) {
        for (size_t i = 0; v->annotations && i < v->policy->n_annotations; i++) {
                if (publishes)
                        publish_annotation(v, i);
                hf__strbuf_done(&v->annotations[i]);
        }
        free(v->annotations);
        v->annotations = NULL;
}

static void run_policy(struct validating *v, const struct hfd_policy_hook *hook) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        const struct hfd_resource *as;
        enum hfd_matcher_result match;

        v->policy = hook->policy;
        v->r = hfd_policy_case_match(v->c, &v->policy->matcher, v->c->a->object, &match, &as,
                                     &message);
        if (match == HFD_MATCHER_YES &&
            hfd_policy_params_check(v->policy, v->c->cacher, &message) != 0)
                match = HFD_MATCHER_ERROR;
        if (v->r == 0 && match == HFD_MATCHER_ERROR)
                act_on_configuration(v, "policy", HF_E_INVALID, &message);
        if (match == HFD_MATCHER_YES) {
                v->r = hfd_policy_case_see(v->c, as, v->c->a->object);
                for (size_t i = 0; i < hook->n_bindings && !is_over(v); i++)
                        run_binding(v, hook->bindings[i]);
                end_annotations(v, !is_over(v));
        }
        hf__strbuf_done(&message);
}

/* The code of the Status with this reason. Invalid becomes 422, and so does a reason that only
 * another version of the server accepts. */
static int code_of(const char *reason) {
        if (strcmp(reason, "Forbidden") == 0)
                return 403;
        return strcmp(reason, "RequestEntityTooLarge") == 0 ? 413 : 422;
}

int hfd_policies_validate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                          struct hfd_admission_notes *notes, struct hfd_response *response) {
        struct validating v = {.c = c, .notes = notes, .denial = {.max = MESSAGE_MAX}};

        assert(index && notes && response->code == 0);
        for (size_t i = 0; i < index->n_hooks && !is_over(&v); i++)
                run_policy(&v, &index->hooks[i]);
        assert(!v.denied || v.reason);
        if (v.r == 0 && v.denied && !is_over(&v)) {
                hfd_policy_case_refuse(c, code_of(v.reason), v.reason,
                                       v.denial.error == 0 ? v.denial.data : "", false, NULL,
                                       response);
                v.r = HF_E_FORBIDDEN;
        }
        assert(!v.annotations);
        hf__strbuf_done(&v.denial);
        return v.r;
}
