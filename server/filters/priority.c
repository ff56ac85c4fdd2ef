/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the FlowSchema and the priority level of a request, and enters the request into that level,
 * in which it gets seats, waits for them or is refused.
 *
 * Invariant: the schema, the level and the response headers that name both belong to the index of
 * FlowSchemas (flow_index.h), which is replaced when a FlowSchema changes. So a request keeps a
 * reference to the index in which its schema was found.
 */
#include "server/filters/priority.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_format.h"
#include "server/filters/authorization.h"
#include "server/filters/request/query.h"
#include "server/filters/request/request_memo.h"
#include "server/filters/status_response.h"
#include "server/flow/core/dealer.h"
#include "server/flow/core/work_estimate.h"

/* The timeout of a request that names none. A request may wait for a quarter of its timeout. Both
 * as in Kubernetes. */
#define REQUEST_TIMEOUT (60 * HF_NSEC_PER_SEC)
/* About how much memory a waiting request keeps, apart from its body. */
#define REQUEST_BYTES 4096

struct hfd_request_context *hfd_priority_context(struct hfd_flow_place *place) {
        return (struct hfd_request_context *)(void *)((char *)place -
                                                      offsetof(struct hfd_request_context, seats));
}

/* ---- the head ---- */

static const char *distinguisher_of(const struct hfd_request_context *context) {
        switch (context->flow->distinguisher) {
        case HFD_FLOW_BY_USER: return context->flow_user ? context->flow_user : context->user;
        case HFD_FLOW_BY_NAMESPACE: return context->info.ns;
        case HFD_FLOW_BY_NOTHING: break;
        }
        return "";
}

/* The flow of the request. The impersonated user counts, not the impersonator. */
static void set_flow(struct hfd_request_context *context, const struct hfd_user *user) {
        if (strcmp(user->name, context->user) != 0)
                context->flow_user = strdup(user->name); /* out of memory: the sender's flow */
        context->seats.level = context->flow->at_work;
        context->seats.flow_class = context->flow->flow_class;
        if (!context->flow->is_exempt)
                context->seats.hash =
                        hfd_dealer_hash(context->flow->seed, distinguisher_of(context));
}

/* The schema and the level of the request. *ret_index: a new reference to the index that has them.
 * NULL: there are no priority levels. The search takes time in proportion to all rules, so the
 * connection's memo is asked first: it may have the result of the previous request of the same user
 * to the same collection. */
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
        assert(!context->flow_index && !context->flow);
        context->flow_control = flow;
        context->flow_index = index;
        context->flow = match;
        set_flow(context, user);
        if (context->flow->n_headers > 0)
                hfd_http_request_share_response_headers(context->request, context->flow->headers,
                                                        context->flow->n_headers);
}

/* ---- the complete request ---- */

/* Whether a watch begins with the objects that exist. */
static bool wants_objects(const char *query) {
        char version[24];
        int r = hfd_query_get(query, "resourceVersion", version, sizeof version);

        return r == HF_E_NOT_FOUND || (r == 0 && (!*version || strcmp(version, "0") == 0)) ||
               hfd_query_bool(query, "sendInitialEvents");
}

/* The number of seats that the request takes. Only a list, and a watch that begins with the objects
 * that exist, can be expensive enough for more than one, and only if it does not name one object.
 */
static unsigned width_of(const struct hfd_request_context *context) {
        const struct hfd_request_info *info = &context->info;
        const char *query = hfd_http_request_query(context->request);
        char limit[24] = ""; /* zero throughout: it stays terminated if a limit is too long */
        /* Only "0" and the presence of a token count; a longer value is HF_E_INVALID. */
        char revision[4], token[2];

        if (!info->is_resource || (!info->watch && strcmp(info->verb, "list") != 0))
                return 1;
        if (*info->name || context->selected_name || (info->watch && !wants_objects(query)))
                return 1;
        /* A list with resourceVersion "0" ignores its limit (registry/list/list.c, which has
         * exceptions that do not matter for an estimate). */
        bool is_whole = !info->watch &&
                        hfd_query_get(query, "resourceVersion", revision, sizeof revision) == 0 &&
                        strcmp(revision, "0") == 0 &&
                        hfd_query_get(query, "continue", token, sizeof token) == HF_E_NOT_FOUND;
        if (!is_whole)
                (void)hfd_query_get(query, "limit", limit, sizeof limit);
        return hfd_work_width(hfd_flow_control_objects(context->flow_control, info->group,
                                                       info->version, info->resource),
                              strtoul(limit, NULL, 10),
                              hfd_flow_level_max_width(context->seats.level));
}

/* Until when the request may wait for seats. A `timeout` that is not positive, or longer than
 * REQUEST_TIMEOUT, counts as absent, and so does that of a watch. One that is malformed was refused
 * before. */
static hf_nsec deadline_of(const struct hfd_request_context *context, hf_nsec received) {
        const char *query = hfd_http_request_query(context->request);
        hf_nsec timeout = 0;
        char text[32];

        if (!*query || context->info.watch ||
            hfd_query_get(query, "timeout", text, sizeof text) != 0 ||
            hf__duration_parse(text, &timeout) != 0 || timeout <= 0 || timeout > REQUEST_TIMEOUT)
                timeout = REQUEST_TIMEOUT;
        return received + timeout / 4;
}

enum hfd_verdict hfd_priority_enter(struct hfd_request_context *context,
                                    const struct hfd_flow_owner *owner, unsigned *ret_retry_after) {
        struct hfd_flow_place *place = &context->seats;
        hf_nsec received = hfd_http_request_received_at(context->request);
        size_t n_body = 0;

        if (!place->level)
                return HFD_VERDICT_EXECUTE;
        (void)hfd_http_request_body(context->request, &n_body);
        assert(!place->owner || place->owner == owner);
        place->owner = owner;
        place->is_watch = context->info.watch;
        place->deadline = deadline_of(context, received);
        place->bytes = n_body + REQUEST_BYTES;
        return hfd_flow_level_enter(place, width_of(context), received, ret_retry_after);
}

void hfd_priority_refuse(struct hfd_request_context *context, unsigned retry_after) {
        assert(retry_after > 0);
        hfd_status_response_text(context->request, 429,
                                 "Too many requests, please try again later.\n", retry_after,
                                 false);
}

void hfd_priority_describe(const struct hfd_flow_place *place, struct hfd_flow_description *ret) {
        const struct hfd_request_context *context =
                hfd_priority_context((struct hfd_flow_place *)place);
        const struct hfd_request_info *info = &context->info;

        *ret = (struct hfd_flow_description){.distinguisher = distinguisher_of(context),
                                             .user = context->flow_user ? context->flow_user
                                                                        : context->user,
                                             .verb = info->verb,
                                             .path = hfd_http_request_path(context->request),
                                             .ns = info->ns,
                                             .name = info->name,
                                             .group = info->group,
                                             .version = info->version,
                                             .resource = info->resource,
                                             .subresource = info->subresource};
}
