/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the priority level of a request. The headers belong to the index, so the request keeps a
 * reference to it.
 */
#include "server/filters/priority.h"

#include "server/filters/authorization.h"
#include "server/filters/memo/request_memo.h"

/* The match of the request, and a reference to its index. NULL: there is no index yet. */
static const struct hfd_flow_match *find_match(struct hfd_request_context *context,
                                               struct hfd_flow_control *flow,
                                               const struct hfd_user *user,
                                               struct hfd_flow_index **ret_index) {
        const char *groups[HFD_MAX_GROUPS];
        const struct hfd_subject subject = hfd_user_subject(user, groups);
        const struct hfd_flow_match *match =
                hfd_request_memo_flow(context->request, flow, &subject, ret_index);

        if (match)
                return match;
        *ret_index = hfd_flow_control_index(flow);
        if (!*ret_index)
                return NULL;
        const struct hfd_attributes attributes = hfd_request_attributes(context);
        match = hfd_flow_index_match(*ret_index, &subject, &attributes);
        hfd_request_memo_keep_flow(context->request, user, *ret_index, match);
        return match;
}

void hfd_priority_filter(struct hfd_request_context *context, struct hfd_flow_control *flow,
                         const struct hfd_user *user) {
        struct hfd_flow_index *index = NULL;
        const struct hfd_flow_match *match = find_match(context, flow, user, &index);

        if (!match)
                return;
        if (match->n_headers == 0) {
                hfd_flow_index_unref(index);
                return;
        }
        context->flow_index = index;
        hfd_http_request_share_response_headers(context->request, match->headers, match->n_headers);
}
