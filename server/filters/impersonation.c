/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Impersonation runs between authentication and authorization. So an impersonating request is
 * authorized with the rights of the impersonated user. The sender's own rights only decide whether
 * the sender may impersonate that user. As in Kubernetes, the sender needs a right to the user,
 * service account or node, to each group that the headers name, to the uid and to each extra value.
 * In all modes but one, the sender also needs a right to make this request as another user
 * (impersonation_rights.h).
 *
 * Invariant: the user is replaced once every right has been checked, and not before. So later
 * filters see either the sender or a user for whom the sender may act.
 */
#include "server/filters/impersonation.h"

#include <assert.h>
#include <stdlib.h>

#include "server/auth/impersonation.h"
#include "server/auth/impersonation_rights.h"
#include "server/filters/audit.h"
#include "server/filters/authorization.h"
#include "server/filters/status_response.h"

/* The user who sent the request. */
struct sender {
        struct hfd_authorizer *authorizer;
        struct hfd_subject subject;
};

static bool has_right(void *ctx, const struct hfd_attributes *right) {
        const struct sender *sender = ctx;

        return hfd_authorizer_allows(sender->authorizer, &sender->subject, right, NULL);
}

/* Keeps the sender of a watch, which must end when the sender may impersonate no more. An
 * administrator cannot lose the right. False: out of memory. */
static bool keep_sender(struct hfd_request_context *context, const struct hfd_user *user,
                        size_t n_groups) {
        if (!context->info.watch || hfd_user_in_group(user, HFD_GROUP_MASTERS))
                return true;
        context->sender = hfd_requester_new(user);
        context->n_named_groups = n_groups;
        return context->sender != NULL;
}

/* Whether the sender (`user`) may impersonate `requested`; if so, *ret_mode is the mode. n_groups:
 * from hfd_impersonation_parse. False: a response was sent (403, or 503 if memory ran out). */
static bool check_rights(struct hfd_request_context *context, const struct hfd_user *user,
                         const struct hfd_user *requested, size_t n_groups,
                         enum hfd_impersonation_mode *ret_mode) {
        const char *groups[HFD_MAX_GROUPS];
        struct hfd_missing_right missing;
        struct sender sender = {context->authorizer, hfd_user_subject(user, groups)};
        struct hfd_requester *requester = hfd_requester_new(requested);

        if (!requester || !keep_sender(context, user, n_groups) ||
            !hfd_authorization_select_name(context)) {
                free(requester);
                hfd_status_response_code(context->request, 503, 1, "out of memory");
                return false;
        }
        const struct hfd_attributes attributes = hfd_request_attributes(context);
        const struct hfd_impersonation asked = {requester, n_groups, &attributes};
        bool allowed = hfd_impersonation_find(&asked, has_right, &sender, ret_mode, &missing);
        if (!allowed)
                hfd_status_response_forbidden(context->request, user->name, &missing.right,
                                              missing.why);
        free(requester);
        return allowed;
}

/* As in Kubernetes, the mode for nodes makes the user a node. */
static void join_nodes(struct hfd_user *user) {
        user->n_groups = 0;
        bool fits = hfd_user_add_group(user, "system:nodes") &&
                    hfd_user_add_group(user, HFD_GROUP_AUTHENTICATED);

        assert(fits);
        (void)fits;
}

bool hfd_impersonation_filter(struct hfd_request_context *context, struct hfd_user *user) {
        const char *fault = "";
        enum hfd_impersonation_mode mode;
        struct hfd_user requested;
        size_t n_groups = 0;
        bool asked = false;

        if (hfd_impersonation_parse(context->request, &requested, &asked, &n_groups, &fault) != 0) {
                hfd_status_response_code(context->request, 400, 0, fault);
                return false;
        }
        if (!asked)
                return true;
        if (!check_rights(context, user, &requested, n_groups, &mode))
                return false;
        context->impersonation_mode = mode;
        if (mode == HFD_IMPERSONATE_NODE)
                join_nodes(&requested);
        *user = requested;
        hfd_audit_filter_impersonated(context, user, hfd_impersonation_constraint(mode));
        return true;
}
