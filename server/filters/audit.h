/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes the audit log's record of a request, and queues its events (server/audit/):
 *
 *      RequestReceived    when the head has arrived
 *      ResponseStarted    when a watch begins
 *      ResponseComplete   when the response has been sent, or the client has left
 *
 * A request that is not authenticated has one event only, ResponseStarted, when it has ended.
 *
 * Handlers add what they know (audited.h). Without an audit log every function returns at once. A
 * request to which the policy gives the level None has an ID, but no record, and the functions
 * after hfd_audit_filter_begin return at once. No function here blocks or fails: an event that
 * cannot be made is counted as lost, and the request goes on.
 */
#include "server/filters/request_context.h"

/* Sets the ID of the request, and the header Audit-ID of its response: the ID that the client sent
 * if it is a valid one, else a new one. audit NULL = there is no audit log. Thread: worker, in
 * on_head. */
void hfd_audit_filter_init(struct hfd_request_context *context, struct hfd_audit *audit);
/* Asks the policy, and begins the record. user: the sender; NULL = not authenticated. Thread:
 * worker, as for the next two functions. */
void hfd_audit_filter_begin(struct hfd_request_context *context, const struct hfd_user *user,
                            const struct hfd_attributes *attributes);
/* user: the user whom the sender impersonates; its values are copied. constraint: the verb that
 * allows it, "" = impersonate; static. */
void hfd_audit_filter_impersonated(struct hfd_request_context *context, const struct hfd_user *user,
                                   const char *constraint);
/* The decision of authorization. reason is copied; NULL = there is none. */
void hfd_audit_filter_decided(struct hfd_request_context *context, bool allowed,
                              const char *reason);
/* The request is finished. code: the HTTP status of the response; 0 = there was no response.
 * Thread: worker. */
void hfd_audit_filter_end(struct hfd_request_context *context, int code);
