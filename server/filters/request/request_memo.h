/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Remembers what the previous request on a connection is likely to have in common with the next
 * one: a client often sends requests for the objects of a collection, one after another. The memo
 * remembers how the path of the collection was parsed, and which FlowSchema and priority level the
 * user's requests have.
 *
 * Thread: the connection's worker, in on_head.
 */
#include "server/auth/user.h"
#include "server/filters/request/request_info.h"
#include "server/filters/request/request_metrics.h"
#include "server/flow/flow_index.h"
#include "server/http/http.h"

struct hfd_flow_control;

/* Looks up the path of the request. Returns the size of the text that hfd_request_memo_recall fills
 * in, and in *ret_name the object's name, borrowed from the request. 0: the memo does not know the
 * path, and *ret_name is unchanged. */
size_t hfd_request_memo_find(struct hfd_http_request *request, const char **ret_name);
/* Only for a path that the memo knows. Fills in info, labels and text. The strings of info point
 * into text, which has the size that hfd_request_memo_find returned. */
void hfd_request_memo_recall(struct hfd_http_request *request, const char *name,
                             struct hfd_request_info *info, struct hfd_request_labels *labels,
                             char *text);
/* Remembers the request, if its path is that of one object but not of a Namespace, has a plain name
 * and is not too long, and if there is memory. The strings of info are in text, the name last, as
 * hfd_request_info_init puts them there. */
void hfd_request_memo_keep(struct hfd_http_request *request, const struct hfd_request_info *info,
                           struct hfd_request_labels labels, const char *text);

/* The FlowSchema and the level of a request whose path the memo knows, if the memo has them for
 * this subject and for the current index of flow. *ret_index: a new reference to that index. NULL:
 * the memo does not have them. */
const struct hfd_flow_match *hfd_request_memo_flow(struct hfd_http_request *request,
                                                   const struct hfd_flow_control *flow,
                                                   const struct hfd_subject *subject,
                                                   struct hfd_flow_index **ret_index);
/* Remembers the FlowSchema and the level of a request, if the memo knows its path. */
void hfd_request_memo_keep_flow(struct hfd_http_request *request, const struct hfd_user *user,
                                struct hfd_flow_index *index, const struct hfd_flow_match *match);
