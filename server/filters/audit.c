/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit filter. As in kube-apiserver, the policy is asked about the sender of a request, not
 * about the user that the sender impersonates.
 *
 * Invariant: impersonation and decision are set on the worker before the handler is called, and so
 * before any event after RequestReceived (audit/record.h).
 */
#include "server/filters/audit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/strbuf.h"
#include "server/audit/source_ips.h"
#include "server/filters/request/query.h"

/* ---- the head ---- */

void hfd_audit_filter_init(struct hfd_request_context *context, struct hfd_audit *audit) {
        char id[HFD_AUDIT_ID_MAX];

        if (!audit)
                return;
        assert(!context->audit && context->request);
        context->audit = audit;
        const char *given = hfd_http_request_header(context->request, "audit-id");
        bool keep = given && hfd_audit_is_id(given);
        if (!keep)
                hfd_audit_make_id(audit, id);
        context->audit_id = strdup(keep ? given : id);
        if (context->audit_id)
                hfd_http_request_set_response_header(context->request, "audit-id",
                                                     context->audit_id);
}

/* The value of a header; "" = absent. */
static const char *header_or_empty(struct hfd_request_context *context, const char *name) {
        const char *value = hfd_http_request_header(context->request, name);

        return value ? value : "";
}

/* Whether the header has a name and a password. */
static bool is_basic(const char *header) {
        char *text = NULL;
        size_t n = 0;

        if (strncasecmp(header, "Basic ", 6) != 0 ||
            hf__base64_decode(header + 6, strlen(header + 6), &text, &n) != 0)
                return false;
        bool found = memchr(text, ':', n) != NULL;
        explicit_bzero(text, n);
        free(text);
        return found;
}

/* Whether the header has a token, or at least a text in its place. White space around the header
 * does not count. */
static bool is_bearer(const char *header) {
        const char *begin = header + strspn(header, " \t");

        return strncasecmp(begin, "Bearer ", 7) == 0 && begin[7 + strspn(begin + 7, " \t")] != '\0';
}

/* Appends how the sender has tried to authenticate, in the words of kube-apiserver. */
static void put_attempts(struct hfd_request_context *context, struct hf__strbuf *out) {
        struct hfd_http_request *request = context->request;
        const char *header = hfd_http_request_header(request, "authorization");
        char token[2]; /* HF_E_INVALID: it was sent, but is longer, or badly encoded */
        int r = hfd_query_get(hfd_http_request_query(request), "access_token", token, sizeof token);
        const struct {
                const char *name;
                bool tried;
        } methods[] = {
                {"basic", header && is_basic(header)},
                {"bearer", header && is_bearer(header)},
                {"access_token", r == HF_E_INVALID || (r == 0 && token[0])},
                {"x509", hfd_http_request_peer(request).kind != HFD_PEER_NONE},
        };
        size_t n = 0;

        hf__strbuf_puts(out, "Authentication failed, ");
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
                if (methods[i].tried)
                        hf__strbuf_printf(out, "%s%s", n++ == 0 ? "attempted: " : ", ",
                                          methods[i].name);
        hf__strbuf_puts(out, n == 0 ? "no credentials provided" : "");
}

/* Makes the record of a request. 0, or an error: there is no record. */
static int make_record(struct hfd_request_context *context, const struct hfd_user *user,
                       const struct hfd_attributes *attributes,
                       struct hfd_audit_decision decision) {
        struct hfd_http_request *request = context->request;
        struct hf__strbuf ips = {0}, attempts = {0};

        if (!user)
                put_attempts(context, &attempts);
        hfd_audit_source_ips(hfd_http_request_header(request, "x-forwarded-for"),
                             hfd_http_request_header(request, "x-real-ip"),
                             hfd_http_request_remote(request), &ips);
        const struct hfd_audit_head head = {.decision = decision,
                                            .received_at = hfd_audit_now(context->audit),
                                            .user = user,
                                            .id = context->audit_id ? context->audit_id : "",
                                            .path = hfd_http_request_path(request),
                                            .query = hfd_http_request_query(request),
                                            .agent = header_or_empty(context, "user-agent"),
                                            .source_ips = ips.data ? ips.data : "",
                                            .attempts = attempts.data ? attempts.data : "",
                                            .version = context->info.version,
                                            .attributes = attributes};
        int r = ips.error != 0 ? ips.error : attempts.error;
        if (r == 0)
                r = hfd_audit_record_new(hfd_audit_writer_budget(
                                                 hfd_audit_get_writer(context->audit)),
                                         &head, &context->audited);
        hf__strbuf_done(&ips);
        hf__strbuf_done(&attempts);
        return r;
}

void hfd_audit_filter_begin(struct hfd_request_context *context, const struct hfd_user *user,
                            const struct hfd_attributes *attributes) {
        const char *groups[HFD_MAX_GROUPS];
        struct hfd_subject subject;

        if (!context->audit)
                return;
        if (user)
                subject = hfd_user_subject(user, groups);
        struct hfd_audit_policy *policy = hfd_audit_get_policy(context->audit);
        struct hfd_audit_decision decision =
                hfd_audit_policy_decide(policy, user ? &subject : NULL, attributes);
        hfd_audit_policy_unref(policy);
        if (decision.level == HFD_AUDIT_NONE)
                return;
        if (make_record(context, user, attributes, decision) != 0)
                hfd_audit_writer_lose(hfd_audit_get_writer(context->audit));
        else if (user)
                hfd_audit_add_event(context->audit, context->audited, HFD_AUDIT_REQUEST_RECEIVED, 0,
                                    false);
}

void hfd_audit_filter_impersonated(struct hfd_request_context *context, const struct hfd_user *user,
                                   const char *constraint) {
        if (!context->audited)
                return;
        assert(!context->audited->impersonated);
        context->audited->constraint = constraint;
        context->audited->impersonated = hfd_requester_new(user);
        if (context->audited->impersonated)
                return;
        /* Memory has run out. An event without the impersonated user would say that the sender
         * acted for itself. */
        context->audited = hfd_audit_record_unref(context->audited);
        hfd_audit_writer_lose(hfd_audit_get_writer(context->audit));
}

void hfd_audit_filter_decided(struct hfd_request_context *context, bool allowed,
                              const char *reason) {
        struct hfd_audit_record *record = context->audited;

        if (!record)
                return;
        assert(!record->decided);
        record->decided = true;
        record->allowed = allowed;
        record->reason = reason ? strdup(reason) : NULL;
}

/* ---- the end ---- */

void hfd_audit_filter_end(struct hfd_request_context *context, int code) {
        if (!context->audited)
                return;
        /* As in kube-apiserver, a request that is not authenticated has this one event only. */
        hfd_audit_add_event(context->audit, context->audited,
                            context->audited->user ? HFD_AUDIT_RESPONSE_COMPLETE
                                                   : HFD_AUDIT_RESPONSE_STARTED,
                            code, true);
}
