/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An audit event as one line of JSON, in the form of audit.k8s.io/v1 Event. Pure. */

struct hf__strbuf;
struct hfd_audit_event;

/*
 * Appends the line with its newline. An object that is not JSON is left out. Never contains a token
 * of a TokenReview or a TokenRequest. Errors stay in out. Thread: the one that owns the event.
 */
void hfd_audit_event_print(const struct hfd_audit_event *event, struct hf__strbuf *out);
