/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One request as policies see it. The parts that they share are made when the first policy needs
 * them. Thread: owner only. Nothing blocks. */
#include <stdbool.h>

#include "server/admission/expressions/expression_input.h"
#include "server/admission/expressions/expression_objects.h"
#include "server/admission/expressions/expression_run.h"
#include "server/admission/policy/compiled_policy.h"

struct hf__strbuf;
struct hf_host;
struct hfd_cacher;
struct hfd_response;
struct hfd_work_pool;
struct hfd_work_task;

struct hfd_policy_case {
        struct hfd_admission *a; /* borrowed */
        struct hfd_cacher *cacher;
        struct hfd_expression_allowance *allowance; /* borrowed; NULL: there is no limit */
        /* The turn on the pool of threads, for hfd_admission_turn_may_go_on. task NULL: the case
         * is not on the pool. Borrowed. */
        const struct hf_host *host;
        const struct hfd_work_pool *pool;
        const struct hfd_work_task *task;
        /* Owned; the Namespace of the request; NULL: it has none, it is a request for a Namespace,
         * or the Namespace does not exist. */
        struct hf__json *ns;
        bool ns_known;                   /* ns was looked up, if need be */
        struct hfd_expression_work work; /* of the evaluation of a policy that is under way */
        /* The row (a version of a kind) that the rules of the last policy have matched. */
        const struct hfd_resource *as;
        const struct hf__json *seen;               /* the new object as the caller gave it */
        const struct hf__json *object, *old;       /* in the version of `as`, for expressions */
        struct hfd_expression_objects values;      /* of object, old and ns */
        struct hfd_request_labels labels;          /* of the objects as the caller gives them */
        struct hf__json *owned_object, *owned_old; /* owned; NULL: they were not converted */
        /* Why the webhook of the kind has not converted an object; NULL = nothing has failed.
         * Borrowed. */
        const struct hfd_response *failure;
};

void hfd_policy_case_init(struct hfd_policy_case *c, struct hfd_admission *a,
                          struct hfd_cacher *cacher, struct hfd_expression_allowance *allowance);
void hfd_policy_case_done(struct hfd_policy_case *c);
/* Begins an evaluation of a policy, for a binding and one of its params. 0, or as
 * hfd_admission_turn_may_go_on. */
int hfd_policy_case_begin(struct hfd_policy_case *c);
/* Makes a run for some of the expressions of the policy, within the evaluation. */
void hfd_policy_case_run(struct hfd_policy_case *c, struct hfd_expression_run *run,
                         const struct hfd_policy *policy, const struct hfd_expression_input *input,
                         uint64_t budget);
/* Whether the end of a run (run->ended) must end the request. False if the run has not ended, or
 * has ended at a limit: then the policy has failed (HF_E_TOO_MANY), or the allowance is spent
 * (HF_E_TOO_LARGE). */
bool hfd_policy_case_ends(int ended);

/* Makes the objects, and the Namespace, for a policy whose rules have matched the row `as`. object:
 * the new one as it is now; NULL = a delete. If `as` and `object` are as in the last call, and that
 * has not failed, what it has made stays. A caller that replaces the object calls this at once with
 * the new one, which has another address. Afterwards no earlier input and run may be used. 0;
 * -ENOMEM; or -EAGAIN: a conversion is wanted (hfd_admission_form). 0 also if an object cannot be
 * converted: then c->failure says why.
 */
int hfd_policy_case_see(struct hfd_policy_case *c, const struct hfd_resource *as,
                        const struct hf__json *object);
/* The input of expressions, after hfd_policy_case_see. with_namespace false: namespaceObject is
 * null, as Kubernetes has it for match conditions. */
struct hfd_expression_input hfd_policy_case_input(struct hfd_policy_case *c,
                                                  const struct hf__json *params,
                                                  bool with_namespace);
/* Whether a policy or binding is for the request, by its rules and selectors. *ret_result ERROR:
 * reterr_message says why. 0, or -ENOMEM: nobody knows. */
int hfd_policy_case_match(struct hfd_policy_case *c, const struct hfd_matcher *matcher,
                          const struct hf__json *object, enum hfd_matcher_result *ret_result,
                          const struct hfd_resource **ret_as, struct hf__strbuf *reterr_message);
/* Makes the response of a refusal, with this code and reason. The message of its Status is
 * `<resource> "<name>" is forbidden: <message>`, or with `bare` the message alone; at its end what
 * exceeds 16 KiB is cut. causes may be NULL. */
void hfd_policy_case_refuse(const struct hfd_policy_case *c, int code, const char *reason,
                            const char *message, bool bare, const struct hfd_causes *causes,
                            struct hfd_response *response);
