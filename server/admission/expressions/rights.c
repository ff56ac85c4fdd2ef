/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what expressions ask of `authorizer`.
 *
 * Invariants: the authorizer has its index in memory, so a decision never waits. The decision is
 * about the user of the request, after impersonation, unless the expression names a service
 * account.
 */
#include "server/admission/expressions/rights.h"

#include <assert.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "cel/values/run.h"
#include "server/admission/admission.h"
#include "server/admission/expressions/expression_input.h"
#include "server/auth/user.h"
#include "server/authorization/authorizer.h"

#define REASON_MAX 4096 /* bytes of the text that reason() of a decision returns */

/* A service account as a user, with the groups that its tokens have. The lengths are those of
 * struct hfd_user. */
struct account {
        char name[352];
        char group[128];
        const char *groups[3];
};

static struct hfd_subject account_subject(struct account *account,
                                          const struct hf__cel_right *right) {
        snprintf(account->name, sizeof account->name, "system:serviceaccount:%s:%s",
                 right->account_ns, right->account_name);
        snprintf(account->group, sizeof account->group, "system:serviceaccounts:%s",
                 right->account_ns);
        account->groups[0] = "system:serviceaccounts";
        account->groups[1] = account->group;
        account->groups[2] = HFD_GROUP_AUTHENTICATED;
        return (struct hfd_subject){account->name, account->groups, 3};
}

/* Without a user the request is one of the server's own, which may do everything. */
static struct hf__cel_decision decide_right(struct hf__cel_run *run, const void *data,
                                            const struct hf__cel_right *right) {
        static const char *const masters[] = {HFD_GROUP_MASTERS};
        const struct hfd_expression_input *input = data;
        struct hfd_attributes attributes = {.verb = right->verb,
                                            .group = right->group,
                                            .resource = right->resource,
                                            .subresource = right->subresource,
                                            .ns = right->ns,
                                            .name = right->name,
                                            .path = right->path ? right->path : "",
                                            .is_resource = !right->path};
        struct hfd_subject subject = {"system:apiserver", masters, 1};
        struct hf__strbuf reason = {.max = REASON_MAX};
        struct hf__cel_decision decision = {.reason = ""};
        struct account account;
        struct hf__cel_value text;

        if (right->account_name)
                subject = account_subject(&account, right);
        else if (input->of->user)
                subject = input->of->user->subject;
        decision.allowed =
                hfd_authorizer_allows(input->of->authorizer, &subject, &attributes, &reason);
        if (reason.error == 0 && reason.n > 0) {
                text = hf__cel_copy_string(run, reason.data, reason.n);
                if (!hf__cel_is_error(text))
                        decision.reason = text.as.text;
        }
        hf__strbuf_done(&reason);
        return decision;
}

struct hf__cel_value hfd_rights_value(struct hf__arena *arena,
                                      struct hf__cel_authorizer *authorizer,
                                      const struct hfd_expression_input *input) {
        *authorizer = (struct hf__cel_authorizer){.decide = decide_right, .data = input};
        return hf__cel_authorizer_value(arena, authorizer);
}

struct hf__cel_value hfd_rights_resource_value(struct hf__arena *arena,
                                               struct hf__cel_authorizer *authorizer,
                                               const struct hfd_expression_input *input) {
        const struct hfd_admission_attributes *of = input->of;
        assert(of->resource);
        struct hf__cel_right right = {.verb = "",
                                      .group = of->resource->group,
                                      .resource = of->resource->plural,
                                      .subresource = of->subresource,
                                      .ns = of->ns,
                                      .name = of->name};

        *authorizer = (struct hf__cel_authorizer){.decide = decide_right, .data = input};
        return hf__cel_resource_check_value(arena, authorizer, &right);
}
