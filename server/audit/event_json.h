/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prints an audit event as one line of JSON, in the form of audit.k8s.io/v1 Event. Pure. */

struct hf__strbuf;
struct hfd_audit_event;

/*
 * Appends the line with its newline. A body that is not JSON is left out, and so is one that cannot
 * be parsed because memory has run out. Each token in the body of a TokenReview or a TokenRequest
 * is left out, too. Errors of appending are kept in out (strbuf.h). Thread: owner of the event.
 */
void hfd_audit_event_print(const struct hfd_audit_event *event, struct hf__strbuf *out);
