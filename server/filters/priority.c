/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the priority level of a request. The headers belong to the index, so the request keeps a
 * reference to it.
 */
#include "server/filters/priority.h"

#include "server/filters/authorization.h"

void hfd_priority_filter(struct hfd_request_context *context, struct hfd_flow_control *flow,
                         const struct hfd_user *user) {
        const char *groups[HFD_MAX_GROUPS];
        struct hfd_flow_index *index = hfd_flow_control_index(flow);

        if (!index)
                return;
        const struct hfd_subject subject = hfd_user_subject(user, groups);
        const struct hfd_attributes attributes = hfd_request_attributes(context);
        const struct hfd_flow_match *match = hfd_flow_index_match(index, &subject, &attributes);
        if (match->n_headers == 0) {
                hfd_flow_index_unref(index);
                return;
        }
        context->flow_index = index;
        hfd_http_request_share_response_headers(context->request, match->headers, match->n_headers);
}
