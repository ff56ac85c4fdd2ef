/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the previous request on a connection is likely to have in common with the next one: a client
 * often sends requests for one object of a collection after another. The memo remembers how the
 * path of the collection was parsed, and which FlowSchema and priority level the user's requests
 * have.
 *
 * Thread: the connection's worker, in on_head.
 */
#include "server/auth/user.h"
#include "server/filters/request/request_info.h"
#include "server/filters/request/request_metrics.h"
#include "server/flow/flow_index.h"
#include "server/http/http.h"

struct hfd_flow_control;

/* The size of the text of a context (request_context.h) for a request whose path the memo knows,
 * and its name. 0: the memo does not know the path. */
size_t hfd_request_memo_find(struct hfd_http_request *request, const char **ret_name);
/* Fills in the info of such a request, whose text is in text, and its labels. */
void hfd_request_memo_recall(struct hfd_http_request *request, const char *name,
                             struct hfd_request_info *info, struct hfd_request_labels *labels,
                             char *text);
/* Remembers the request, if its path is that of one object; its strings are in text. */
void hfd_request_memo_keep(struct hfd_http_request *request, const struct hfd_request_info *info,
                           struct hfd_request_labels labels, const char *text);

/* The match of a request whose path is the memo's, if the memo has it for this subject and for the
 * current index of flow. *ret_index: a new reference to that index. NULL: the memo has no such
 * match. */
const struct hfd_flow_match *hfd_request_memo_flow(struct hfd_http_request *request,
                                                   const struct hfd_flow_control *flow,
                                                   const struct hfd_subject *subject,
                                                   struct hfd_flow_index **ret_index);
/* Remembers the match of a request, if its path is the memo's. */
void hfd_request_memo_keep_flow(struct hfd_http_request *request, const struct hfd_user *user,
                                struct hfd_flow_index *index, const struct hfd_flow_match *match);
