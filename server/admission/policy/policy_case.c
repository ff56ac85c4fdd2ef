/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of a request that policies have.
 *
 * Invariants: objects are converted only if a rule has matched another version (matchPolicy
 * Equivalent); otherwise expressions read the caller's object and the old one themselves, without a
 * copy. namespaceObject is looked up once for all policies, so that their expressions see the same
 * one. The values of converted objects are forgotten before these objects, from which they borrow,
 * are freed.
 */
#include "server/admission/policy/policy_case.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/strbuf_cut.h"
#include "server/admission/turn.h"
#include "server/resources/response.h"

#define MESSAGE_MAX (16U << 10) /* bytes of the message of a refusal */

void hfd_policy_case_init(struct hfd_policy_case *c, struct hfd_admission *a,
                          struct hfd_cacher *cacher, struct hfd_expression_allowance *allowance) {
        assert(a && a->of.resource && cacher);
        *c = (struct hfd_policy_case){.a = a, .cacher = cacher, .allowance = allowance};
        hfd_expression_objects_init(&c->values);
}

static void forget_objects(struct hfd_policy_case *c) {
        hfd_expression_objects_forget(&c->values);
        c->owned_object = hf__json_free(c->owned_object);
        c->owned_old = hf__json_free(c->owned_old);
        c->seen = NULL;
        c->object = NULL;
        c->old = NULL;
        c->as = NULL;
        c->failure = NULL;
}

void hfd_policy_case_done(struct hfd_policy_case *c) {
        assert(!c->ns || c->ns_known);
        hfd_expression_objects_done(&c->values);
        hfd_request_labels_done(&c->labels);
        forget_objects(c);
        c->ns = hf__json_free(c->ns);
}

/* Another thread than the pool's does not look at the clock: the allowance ends its work within
 * milliseconds. */
static int may_go_on(const void *ctx) {
        const struct hfd_policy_case *c = ctx;

        if (!c->task)
                return 0;
        assert(c->pool && c->host);
        return hfd_admission_turn_may_go_on(c->host, c->pool, c->task, c->a);
}

int hfd_policy_case_begin(struct hfd_policy_case *c) {
        c->work = (struct hfd_expression_work){0};
        return may_go_on(c);
}

void hfd_policy_case_run(struct hfd_policy_case *c, struct hfd_expression_run *run,
                         const struct hfd_policy *policy, const struct hfd_expression_input *input,
                         uint64_t budget) {
        hfd_expression_run_init(run, policy->set, input, budget);
        run->allowance = c->allowance;
        run->work = &c->work;
        run->may_go_on = may_go_on;
        run->may_ctx = c;
}

bool hfd_policy_case_ends(int ended) {
        return ended < 0 || ended == HF_E_TIMEOUT || ended == HF_E_UNAVAILABLE;
}

/* The attributes of a request for a Namespace have its own name as their namespace. As in
 * Kubernetes, namespaceObject is null all the same, because the kind is cluster-scoped. */
static bool is_namespace(const struct hfd_admission_attributes *of) {
        return strcmp(of->resource->plural, "namespaces") == 0 && !of->resource->group[0];
}

/* Whether the objects have to be converted to be seen as `as`. Bodies of subresources of another
 * kind, like Scale, are seen as they are. */
static bool is_converted(const struct hfd_policy_case *c, const struct hfd_resource *as) {
        return as != c->a->of.resource && c->a->of.kind == c->a->of.resource;
}

static int convert_object(struct hfd_policy_case *c, const struct hfd_resource *as,
                          const struct hf__json *object, struct hf__json **ret_owned,
                          const struct hf__json **ret_object) {
        int r;

        *ret_object = object;
        if (!object || !is_converted(c, as))
                return 0;
        r = hfd_admission_form(c->a, c->a->of.resource, as, object, ret_owned);
        if (r == 0)
                *ret_object = *ret_owned;
        else if (r > 0)
                c->failure = hfd_forms_failure(c->a->forms);
        return r < 0 ? r : 0;
}

int hfd_policy_case_see(struct hfd_policy_case *c, const struct hfd_resource *as,
                        const struct hf__json *object) {
        const struct hfd_admission_attributes *of = &c->a->of;
        int r = 0;

        if (!c->ns_known && !is_namespace(of))
                r = hfd_matcher_namespace(of, c->cacher, &c->ns);
        c->ns_known = r == 0;
        /* The options are kept, so hfd_policy_case_input has them. */
        if (r == 0 && c->a->make_options && !hfd_admission_options(c->a))
                r = -ENOMEM;
        assert(as);
        if (r == 0 && c->as == as && c->seen == object && !c->failure)
                return 0;
        forget_objects(c);
        if (c->labels.of[HFD_LABELS_OBJECT] != object)
                hfd_request_labels_forget(&c->labels);
        c->as = as;
        if (r == 0)
                r = convert_object(c, as, object, &c->owned_object, &c->object);
        if (r == 0)
                r = convert_object(c, as, of->old, &c->owned_old, &c->old);
        if (r == 0)
                c->seen = object;
        else
                c->as = NULL;
        return r;
}

struct hfd_expression_input hfd_policy_case_input(struct hfd_policy_case *c,
                                                  const struct hf__json *params,
                                                  bool with_namespace) {
        return (struct hfd_expression_input){.of = &c->a->of,
                                             .resource = c->as,
                                             .kind = c->a->of.kind == c->a->of.resource
                                                             ? c->as
                                                             : c->a->of.kind,
                                             .object = c->object,
                                             .old = c->old,
                                             .options = hfd_admission_options(c->a),
                                             .namespace_object = with_namespace ? c->ns : NULL,
                                             .params = params,
                                             .objects = &c->values};
}

int hfd_policy_case_match(struct hfd_policy_case *c, const struct hfd_matcher *matcher,
                          const struct hf__json *object, enum hfd_matcher_result *ret_result,
                          const struct hfd_resource **ret_as, struct hf__strbuf *reterr_message) {
        struct hfd_response response = {0};
        int r = 0;

        assert(c->a && ret_as);
        *ret_result = HFD_MATCHER_NO;
        *ret_as = c->a->of.resource;
        /* Most policies are for other resources. This check compares no labels or object names. */
        if (!hfd_matcher_may_match(matcher, &c->a->of))
                return 0;
        *ret_result = hfd_matcher_match(matcher, &c->a->of, object, c->cacher, &c->labels, ret_as,
                                        &response);
        if (*ret_result == HFD_MATCHER_ERROR) {
                /* Lack of memory is no mistake of the policy, so no failurePolicy decides. */
                r = response.status.error == -ENOMEM ? -ENOMEM : 0;
                hf__strbuf_puts(reterr_message, response.status.message);
                hfd_response_done(&response);
        }
        return r;
}

/* The name for messages. A create may have the name only in the object, or no name yet but a
 * generateName. */
static const char *name_of(const struct hfd_admission *a) {
        const char *name = a->of.name;

        if (!name[0])
                name = hf__json_string(a->object, "metadata.name");
        if (!name || !name[0])
                name = hf__json_string(a->object, "metadata.generateName");
        return name && name[0] ? name : "Unknown";
}

/* Without `bare`, the message without its prefix is also the cause, which has no reason; with
 * `bare`, `causes` has the causes. If memory runs out, the refusal has no message. */
void hfd_policy_case_refuse(const struct hfd_policy_case *c, int code, const char *reason,
                            const char *message, bool bare, const struct hfd_causes *causes,
                            struct hfd_response *response) {
        assert(code >= 400 && code < 600 && reason && response->code == 0);
        const struct hfd_resource *resource = c->a->of.resource;
        struct hfd_details details = {.name = name_of(c->a),
                                      .group = resource->group,
                                      .kind = resource->plural,
                                      .causes = causes};
        struct hf__strbuf text = {.max = MESSAGE_MAX};
        char qualified[HFD_QUALIFIED_MAX];

        if (!bare) {
                hfd_resource_qualified(resource, qualified);
                hf__strbuf_printf(&text, "%s \"%s\" is forbidden: ", qualified, details.name);
                details.cause_reason = "";
                details.cause_text = message;
        }
        hf__strbuf_puts_cut(&text, message);
        hfd_response_status(response, HF_E_FORBIDDEN, code, reason,
                            text.error == 0 ? text.data : "", &details);
        hf__strbuf_done(&text);
}
