/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of a request. The HTTP request owns it and frees it with its last reference.
 *
 * Invariant: the request is counted nowhere and has no seats any more when the context is freed.
 * The HTTP server calls on_finished before it drops its own reference, and on_finished ends the
 * counting and gives the seats back.
 */
#include "server/filters/request_context.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "server/filters/request/request_memo.h"

static void context_free(void *ctx) {
        struct hfd_request_context *context = ctx;

        assert(!context->place.counted && !context->runs);
        assert(context->seats.seats.state == HFD_SEATS_OUTSIDE);
        hf__departure_done(&context->departure);
        free(context->flow_user);
        free(context->requester);
        free(context->sender);
        free(context->credential);
        free(context->selected_name);
        hfd_flow_index_unref(context->flow_index);
        hfd_audit_record_unref(context->audited);
        free(context->audit_id);
        hf__blocks_put(context);
}

int hfd_request_context_new(struct hfd_filters *filters, struct hfd_http_request *request,
                            const char *user, struct hfd_request_context **ret_context) {
        assert(request && user);
        struct hfd_request_path path;
        /* Not NULL: the memo knows the path up to this name, and the path is not parsed. */
        const char *name = NULL;
        size_t n_text = hfd_request_memo_find(request, &name), n_user = strlen(user) + 1;
        bool valid = false;

        if (!name) {
                valid = hfd_request_path_parse(hfd_http_request_path(request), &path) == 0;
                n_text = hfd_request_info_text_size(&path);
        }
        struct hfd_request_context *context = hf__blocks_get(sizeof *context + n_text + n_user);
        if (!context)
                return -ENOMEM;
        *context = (struct hfd_request_context){.filters = filters, .request = request};
        if (name) {
                hfd_request_memo_recall(request, name, &context->info, &context->labels,
                                        context->text);
        } else {
                hfd_request_info_init(&context->info, hfd_http_request_method(request), &path,
                                      valid, hfd_http_request_query(request), context->text);
                context->labels = hfd_request_labels(context->info.verb, context->info.resource);
                hfd_request_memo_keep(request, &context->info, context->labels, context->text);
        }
        context->user = memcpy(context->text + n_text, user, n_user);
        hfd_http_request_set_context(request, context, context_free);
        *ret_context = context;
        return 0;
}

struct hfd_request_context *hfd_request_context(struct hfd_http_request *request) {
        return hfd_http_request_context(request);
}

const struct hfd_request_info *hfd_request_info(struct hfd_http_request *request) {
        const struct hfd_request_context *context = hfd_http_request_context(request);

        assert(context);
        return &context->info;
}
