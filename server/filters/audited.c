/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds bodies and annotations to audit records, and the event for the start of a watch.
 *
 * Invariant: a request may have no record, because auditing is off, the policy's level for the
 * request is None, the record was lost, or the request was refused before it got a context. Then
 * every function does nothing.
 */
#include "server/filters/audited.h"

#include <string.h>

#include "server/filters/request_context.h"

#define STATUS_BEGIN "{\"kind\":\"Status\"" /* of every Status that this server sends */

/* NULL = the request is not audited. Borrowed from the request's context. */
static struct hfd_audit_record *record_of(struct hfd_http_request *request) {
        const struct hfd_request_context *context = hfd_http_request_context(request);

        return context ? context->audited : NULL;
}

/* At the level Metadata the body is kept for the name, uid and resourceVersion that it contains. As
 * in kube-apiserver, these are not taken from a patch or from the options of a delete. */
void hfd_audited_request(struct hfd_http_request *request, const char *body, size_t n) {
        struct hfd_audit_record *record = record_of(request);

        if (!record)
                return;
        if (record->decision.level >= HFD_AUDIT_REQUEST || strcmp(record->verb, "create") == 0 ||
            strcmp(record->verb, "update") == 0)
                hfd_audit_record_request(record, body, n);
}

void hfd_audited_annotations(struct hfd_http_request *request, const char *texts, size_t n) {
        struct hfd_audit_record *record = record_of(request);

        if (record && n > 0)
                hfd_audit_record_annotate(record, texts, n);
}

/* A Status is kept at every level, because its reason and message are part of the event. */
void hfd_audited_response(struct hfd_http_request *request, struct hf__buf *piece) {
        struct hfd_audit_record *record = record_of(request);

        if (record && (record->decision.level >= HFD_AUDIT_REQUEST_RESPONSE ||
                       (piece && strncmp(piece->data, STATUS_BEGIN, strlen(STATUS_BEGIN)) == 0)))
                hfd_audit_record_response(record, piece);
}

void hfd_audited_watch(struct hfd_http_request *request) {
        const struct hfd_request_context *context = hfd_http_request_context(request);

        if (context && context->audited)
                hfd_audit_add_event(context->audit, context->audited, HFD_AUDIT_RESPONSE_STARTED,
                                    200, false);
}
