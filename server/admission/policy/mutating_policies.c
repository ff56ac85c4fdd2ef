/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MutatingAdmissionPolicies: each policy whose rules match the request is evaluated once for each
 * of its bindings that also match, and for each of the binding's params. Its mutations are applied
 * one after the other, and the next policy sees them.
 *
 * Invariants: the object of the admission is replaced at the end, once, and only if something has
 * changed. In the second round an evaluation runs again only if its policy wants it
 * (reinvocationPolicy) and something else has changed the object since its first run.
 */
#include "server/admission/policy/mutating_policies.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "server/admission/expressions/explained_eval.h"
#include "server/admission/expressions/expression_work.h"
#include "server/admission/policy/mutation.h"
#include "server/admission/policy/policy_params.h"
#include "server/admission/webhooks/refusal.h"
#include "server/resources/response.h"

#define MESSAGE_MAX (16U << 10) /* bytes of a message; a policy's texts in it are cut */

/* The state that is kept for the second round. */
struct rounds {
        struct hf__json
                *invoked;        /* owned; an object: its keys are evaluations that may run again */
        struct hf__json *again;  /* owned; its keys are evaluations that must run again */
        struct hf__json *output; /* owned; the object as this plug-in left it */
};

struct mutating {
        struct hfd_policy_case *c;
        struct hf__json *object; /* owned; NULL until something changes */
        bool changed;            /* the object has changed (evaluate_mutations) */
        const struct hfd_policy *policy;
        const struct hfd_policy_binding *binding; /* NULL: none yet */
        struct hfd_mutation_room room;            /* what the mutations may still make */
        struct rounds rounds;
        struct hfd_causes *causes;
        struct hf__strbuf first; /* the message of the first failure */
        const char *reason;      /* the reason of the first failure */
        int r;                   /* 0, or an error of hfd_policies_mutate */
};

/* After the allowance is spent, evaluations fail without having decided anything. Such a failure
 * must not deny the request, which is evaluated again on the pool. */
static bool is_over(const struct mutating *m) {
        return m->r != 0 || (m->c->allowance && m->c->allowance->spent);
}

/* The object as it is now. */
static const struct hf__json *current_object(const struct mutating *m) {
        return m->object ? m->object : m->c->a->object;
}

/* ---- failures ---- */

/* A policy has failed, which denies the request, unless its failurePolicy is Ignore. HF_E_TOO_MANY
 * denies the request in any case: Kubernetes, which does not have this limit, would change the
 * object, so it must not be stored without the change. `before` and `why` are the end of the
 * message. The failures are causes of the response, up to HFD_CAUSES_MAX; the first one is its
 * message. */
static void fail_policy(struct mutating *m, int r, const char *reason, const char *before,
                        const struct hf__strbuf *why) {
        struct hf__strbuf text = {.max = MESSAGE_MAX};

        if (m->policy->ignores_failure && r != HF_E_TOO_MANY)
                return;
        if (m->binding)
                hf__strbuf_printf(&text, "policy '%s' with binding '%s' denied request: %s",
                                  m->policy->name, m->binding->name, before);
        else
                hf__strbuf_printf(&text, "policy \"%s\" denied request: %s", m->policy->name,
                                  before);
        hf__strbuf_puts_cut(&text, why->data ? why->data : "");
        if (text.error != 0) {
                m->r = -ENOMEM;
        } else {
                if (m->causes->n == 0) {
                        hf__strbuf_add(&m->first, text.data, text.n);
                        m->reason = reason;
                }
                hfd_cause_add(m->causes, "", "", text.data);
        }
        hf__strbuf_done(&text);
}

/* ---- rounds ---- */

/* The object has changed: records that the evaluations that may run again must do so. */
static void require_others(struct mutating *m) {
        struct rounds *rounds = &m->rounds;

        for (const struct hf__json *item = hf__json_first(rounds->invoked); item;
             item = hf__json_next(item)) {
                if (!rounds->again)
                        rounds->again = hf__json_object();
                if (!rounds->again ||
                    hf__json_put_string(rounds->again, hf__json_key(item), "") != 0)
                        m->r = -ENOMEM;
        }
        rounds->invoked = hf__json_free(rounds->invoked);
}

/* The evaluation may run again, if something else changes the object later. */
static void add_invoked(struct mutating *m, const char *key) {
        if (!m->rounds.invoked)
                m->rounds.invoked = hf__json_object();
        if (!m->rounds.invoked || hf__json_put_string(m->rounds.invoked, key, "") != 0)
                m->r = -ENOMEM;
}

/* A key for one evaluation of a policy: policy, binding and params. The caller frees it. NULL: out
 * of memory. */
static char *key_of(const struct mutating *m, const struct hf__json *params) {
        const char *ns = hf__json_string(params, "metadata.namespace");
        const char *name = hf__json_string(params, "metadata.name");
        struct hf__strbuf key = {0};

        hf__strbuf_printf(&key, "%s/%s/%s/%s", m->policy->name, m->binding->name, ns ? ns : "",
                          name ? name : "");
        if (key.error != 0)
                hf__strbuf_done(&key);
        return key.data;
}

/* ---- one evaluation of a policy ---- */

/* The conditions see the changes of the policies before this one, as in Kubernetes. */
static enum hfd_match check_conditions(struct mutating *m, const struct hf__json *params) {
        struct hfd_expression_input input = hfd_policy_case_input(m->c, params, false);
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hfd_expression_run run;
        enum hfd_match match;

        if (m->policy->conditions->n == 0)
                return HFD_MATCH_YES;
        hfd_policy_case_run(m->c, &run, m->policy, &input, HFD_MATCH_BUDGET);
        match = hfd_match_conditions_check(m->policy->conditions, &run, NULL, &message);
        if (hfd_policy_case_ends(run.ended))
                m->r = run.ended;
        if ((match == HFD_MATCH_ERROR || match == HFD_MATCH_ENDED) && !is_over(m))
                fail_policy(m, run.ended, "Invalid", "", &message);
        hf__strbuf_done(&message);
        hfd_expression_run_done(&run);
        return match;
}

/* Replaces the object by the changed one, which is consumed. The changed object has the version
 * that the rules have matched, and is converted back to that of the request. 0; -ENOMEM, also if it
 * cannot be converted, and then c->failure says why; or -EAGAIN: a webhook must convert it first.
 */
static int replace_object(struct mutating *m, struct hf__json *changed) {
        struct hf__json *back = changed;
        int r = 0;

        if (m->c->as != m->c->a->of.resource && m->c->a->of.kind == m->c->a->of.resource) {
                r = hfd_admission_form(m->c->a, m->c->as, m->c->a->of.resource, changed, &back);
                hf__json_free(changed);
        }
        if (r > 0)
                m->c->failure = hfd_forms_failure(m->c->a->forms);
        if (r != 0)
                return r < 0 ? r : -ENOMEM;
        hf__json_free(m->object);
        m->object = back;
        return 0;
}

/* Charges to the allowance of the case what copying and comparing the object costs. False: the
 * allowance is spent, so the evaluation of policies is over (is_over). */
static bool pay_copies(struct mutating *m) {
        struct hfd_expression_allowance *allowance = m->c->allowance;

        return !allowance ||
               hfd_expression_allow(allowance, hfd_expression_value_work(m->c->object, allowance));
}

/* Applies one mutation. */
static void apply_mutation(struct mutating *m, const struct hfd_policy_mutation *mutation,
                           const struct hf__json *params) {
        struct hfd_expression_input input = hfd_policy_case_input(m->c, params, true);
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hf__json *changed = NULL;
        struct hfd_expression_run run;
        struct hf__cel_value value;
        int r;

        hfd_policy_case_run(m->c, &run, m->policy, &input, HFD_EXPRESSIONS_BUDGET);
        r = hfd_explained_eval(&run, mutation->expression, &value, &message);
        if (r == 0 && !pay_copies(m))
                r = HF_E_TOO_LARGE;
        if (r == 0) {
                changed = hf__json_dup(m->c->object);
                r = changed ? hfd_mutation_apply(input.kind, mutation->apply, value, &m->room,
                                                 &changed, &message)
                            : -ENOMEM;
                /* The value may contain variables, which were evaluated just now. */
                if (run.ended != 0)
                        r = run.ended;
        }
        if (r == 0 && !hf__json_equal(changed, m->c->object)) {
                m->changed = true;
                r = replace_object(m, changed);
                changed = NULL;
                if (r == 0)
                        r = hfd_policy_case_see(m->c, m->c->as, current_object(m));
                if (m->c->failure)
                        m->r = HF_E_INVALID;
        }
        hf__json_free(changed);
        hfd_expression_run_done(&run);
        if (hfd_policy_case_ends(r))
                m->r = r;
        else if (r > 0 && !is_over(m))
                fail_policy(m, r, "Invalid", "", &message);
        hf__strbuf_done(&message);
}

/* Runs the mutations for one of the params. m->changed says meanwhile whether this evaluation has
 * changed the object: its own change must not make it run again, but those of others may. */
static void evaluate_mutations(struct mutating *m, const struct hf__json *params) {
        bool reinvoked = m->c->a->reinvoked;
        bool changed = m->changed;
        char *key;

        m->r = hfd_policy_case_begin(m->c);
        if (m->r != 0 || check_conditions(m, params) != HFD_MATCH_YES || is_over(m))
                return;
        key = key_of(m, params);
        if (!key) {
                m->r = -ENOMEM;
                return;
        }
        if (!reinvoked || hf__json_get(m->rounds.again, key)) {
                m->changed = false;
                for (size_t i = 0; i < m->policy->n_mutations && !is_over(m); i++)
                        apply_mutation(m, &m->policy->mutations[i], params);
                if (m->changed)
                        require_others(m);
                if (m->policy->reinvoked)
                        add_invoked(m, key);
                m->changed = m->changed || changed;
        }
        free(key);
}

/* ---- policies and bindings ---- */

static void run_binding(struct mutating *m, const struct hfd_policy_binding *binding) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hfd_policy_params params = {0};
        const struct hfd_resource *as;
        enum hfd_matcher_result match;
        int r;

        m->binding = binding;
        m->r = hfd_policy_case_match(m->c, &binding->matcher, current_object(m), &match, &as,
                                     &message);
        if (m->r == 0 && match == HFD_MATCHER_ERROR)
                fail_policy(m, HF_E_INVALID, "Forbidden",
                            "failed to configure binding: ", &message);
        if (match == HFD_MATCHER_YES) {
                r = hfd_policy_params_find(m->c, m->policy, binding, &params, &message);
                if (r < 0)
                        m->r = r;
                else if (r > 0)
                        fail_policy(m, r, "Forbidden", "failed to configure binding: ", &message);
                for (size_t i = 0; r == 0 && i < params.n && !is_over(m); i++)
                        evaluate_mutations(m, params.items[i]);
                hfd_policy_params_done(&params);
        }
        m->binding = NULL;
        hf__strbuf_done(&message);
}

static void run_policy(struct mutating *m, const struct hfd_policy_hook *hook) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        const struct hfd_resource *as;
        enum hfd_matcher_result match;

        m->policy = hook->policy;
        m->r = hfd_policy_case_match(m->c, &m->policy->matcher, current_object(m), &match, &as,
                                     &message);
        if (match == HFD_MATCHER_YES &&
            hfd_policy_params_check(m->policy, m->c->cacher, &message) != 0)
                match = HFD_MATCHER_ERROR;
        if (m->r == 0 && match == HFD_MATCHER_ERROR)
                fail_policy(m, HF_E_INVALID, "Forbidden", "failed to configure policy: ", &message);
        if (match == HFD_MATCHER_YES) {
                m->r = hfd_policy_case_see(m->c, as, current_object(m));
                if (m->c->failure)
                        m->r = HF_E_INVALID;
                for (size_t i = 0; i < hook->n_bindings && !is_over(m); i++)
                        run_binding(m, hook->bindings[i]);
        }
        hf__strbuf_done(&message);
}

/* ---- the request ---- */

static void free_rounds(void *data) {
        struct rounds *rounds = data;

        hf__json_free(rounds->invoked);
        hf__json_free(rounds->again);
        hf__json_free(rounds->output);
        free(rounds);
}

/* Copies the state that the first round has kept. If another plug-in has changed the object since
 * then, the evaluations that may run again must do so. 0 or -ENOMEM. */
static int load_rounds(struct mutating *m) {
        const struct rounds *kept = hfd_admission_state(m->c->a)->data;

        if (!kept)
                return 0;
        if (kept->invoked)
                m->rounds.invoked = hf__json_dup(kept->invoked);
        if (kept->again)
                m->rounds.again = hf__json_dup(kept->again);
        if ((kept->invoked && !m->rounds.invoked) || (kept->again && !m->rounds.again))
                return -ENOMEM;
        if (m->c->a->reinvoked && kept->output && !hf__json_equal(kept->output, current_object(m)))
                require_others(m);
        return m->r;
}

/* Keeps what the second round needs, after the first one. 0 or -ENOMEM. */
static int save_rounds(struct mutating *m) {
        struct hfd_admission_state *state = hfd_admission_state(m->c->a);
        struct rounds *kept;

        if (state->data)
                state->free(state->data);
        state->data = NULL;
        if (m->c->a->reinvoked || (!m->rounds.invoked && !m->rounds.again))
                return 0;
        kept = malloc(sizeof *kept);
        if (!kept)
                return -ENOMEM;
        *kept = m->rounds;
        m->rounds = (struct rounds){0};
        kept->output = hf__json_dup(m->c->a->object);
        state->data = kept;
        state->free = free_rounds;
        return kept->output ? 0 : -ENOMEM;
}

/* The webhook of the kind has not converted the object. */
static void refuse_conversion(const struct mutating *m, struct hfd_response *response) {
        char text[2048];

        (void)snprintf(text, sizeof text, "failed to convert object: %s",
                       m->c->failure->status.message);
        hfd_refusal_internal(response, text);
}

/* Refuses the request if a policy has failed; otherwise passes the changed object to the admission.
 * 0; -ENOMEM; or HF_E_FORBIDDEN: response is the refusal. */
static int finish_policy(struct mutating *m, struct hfd_response *response) {
        struct hfd_admission *a = m->c->a;

        assert(m->causes && !a->validating);
        if (m->causes->n > 0) {
                hfd_policy_case_refuse(m->c, 403, m->reason,
                                       m->first.error == 0 ? m->first.data : "", true, m->causes,
                                       response);
                return HF_E_FORBIDDEN;
        }
        if (m->changed) {
                hf__json_free(a->object);
                a->object = m->object;
                m->object = NULL;
                if (!hfd_admission_settle(a, response))
                        return HF_E_FORBIDDEN;
                hfd_admission_reinvoke(a);
        }
        return save_rounds(m);
}

int hfd_policies_mutate(struct hfd_policy_case *c, const struct hfd_policy_index *index,
                        struct hfd_response *response) {
        struct mutating m = {.c = c, .room = HFD_MUTATION_ROOM, .first = {.max = MESSAGE_MAX}};

        assert(index && response->code == 0);
        if (!c->a->object)
                return 0;
        m.causes = malloc(sizeof *m.causes);
        if (!m.causes)
                return -ENOMEM;
        hfd_causes_init(m.causes);
        m.r = load_rounds(&m);
        for (size_t i = 0; i < index->n_hooks && !is_over(&m); i++)
                run_policy(&m, &index->hooks[i]);
        if (!is_over(&m))
                m.r = finish_policy(&m, response);
        if (m.c->failure && m.r != -EAGAIN && response->code == 0)
                refuse_conversion(&m, response);
        hf__json_free(m.object);
        hf__json_free(m.rounds.invoked);
        hf__json_free(m.rounds.again);
        hf__strbuf_done(&m.first);
        free(m.causes);
        return m.r;
}
