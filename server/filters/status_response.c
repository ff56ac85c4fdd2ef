/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends Status responses for requests that do not reach the registry.
 *
 * Invariant: reasons, the members of details and the message of a 403 are those of kube-apiserver,
 * because clients parse them. Only a cause in the details of a 503 is Holdfast's own.
 * server/resources/response.c prints a Status with the same members for the registry's failures, so
 * a change of the members must be made in both files.
 */
#include "server/filters/status_response.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/filters/audited.h"
#include "server/filters/media_type.h"
#include "server/resources/objects/protobuf_response.h"

#define MESSAGE_MAX 8192 /* bytes of the message of a 403, which contains text from the client */

/* The details of a Status: which object the request was for; "" = unknown. */
struct status_details {
        const char *group, *resource, *name;
};

/* metav1.StatusReason; "" = Kubernetes has none for the code. */
static const char *reason_for_code(int code) {
        switch (code) {
        case 400: return "BadRequest";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "NotFound";
        case 405: return "MethodNotAllowed";
        case 406: return "NotAcceptable";
        case 409: return "Conflict";
        case 410: return "Expired";
        case 413: return "RequestEntityTooLarge";
        case 415: return "UnsupportedMediaType";
        case 422: return "Invalid";
        case 429: return "TooManyRequests";
        case 500: return "InternalError";
        case 503: return "ServiceUnavailable";
        case 504: return "Timeout";
        default: return "";
        }
}

/* Empties body. NULL = out of memory: the response has no body. */
static struct hf__buf *take_body(struct hf__strbuf *body) {
        struct hf__buf *buf = hf__strbuf_to_buf(body);

        hf__strbuf_done(body);
        return buf;
}

/* Consumes buf, the body of the response. */
static void send_response(struct hfd_http_request *request, int code, const char *content_type,
                          struct hf__buf *buf, unsigned retry_after_s, bool close) {
        struct hfd_header headers[4];
        char retry_after[16];
        size_t n = 0;

        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        headers[n++] = (struct hfd_header){"x-content-type-options", "nosniff"};
        if (retry_after_s > 0) {
                (void)snprintf(retry_after, sizeof retry_after, "%u", retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry_after};
        }
        /* HTTP/2 forbids the header Connection. */
        assert(n < sizeof headers / sizeof headers[0]);
        if (close && strncmp(hfd_http_request_protocol(request), "HTTP/1", 6) == 0)
                headers[n++] = (struct hfd_header){"connection", "close"};
        hfd_http_request_reply(request, code, content_type, headers, n, buf);
        hf__buf_unref(buf);
}

/* Sends the Status, in protobuf if the client prefers that. Consumes json; NULL = out of memory. */
static void send_json_status(struct hfd_http_request *request, const struct hf_status *status,
                             struct hf__buf *json) {
        struct hf__buf *protobuf = NULL;
        bool prefers =
                hfd_media_type_status_is_protobuf(hfd_http_request_header(request, "accept"));

        if (json)
                hfd_audited_response(request, json);
        if (prefers && json && hfd_protobuf_convert(NULL, json, &protobuf) == 0)
                hf__buf_unref(json);
        send_response(request, status->http_code, protobuf ? HFD_PROTOBUF_TYPE : "application/json",
                      protobuf ? protobuf : json, status->retry_after_s, false);
}

/* Adds a member of an object, unless value is NULL or "". */
static void add_member(struct hf__strbuf *out, const char *key, const char *value, bool *first) {
        if (!value || !value[0])
                return;
        if (!*first)
                hf__strbuf_putc(out, ',');
        *first = false;
        hf__strbuf_json(out, key, strlen(key));
        hf__strbuf_putc(out, ':');
        hf__strbuf_json(out, value, strlen(value));
}

/* details NULL = none. */
static void send_status(struct hfd_http_request *request, const struct hf_status *status,
                        const char *message, const struct status_details *details) {
        const char *reason =
                status->reason[0] ? status->reason : reason_for_code(status->http_code);
        struct hf__strbuf out = {0};
        bool first = true;

        assert(status->http_code >= 400 && status->http_code < 600);
        hf__strbuf_puts(&out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                              "\"status\":\"Failure\",\"message\":");
        hf__strbuf_json(&out, message, strlen(message));
        hf__strbuf_puts(&out, ",\"reason\":");
        hf__strbuf_json(&out, reason, strlen(reason));
        if (details || status->retry_after_s > 0) {
                hf__strbuf_puts(&out, ",\"details\":{");
                /* The cause tells a client that the write was not applied, and may be repeated. A
                 * 503 without it may come from a proxy, and says nothing about the write. */
                if (status->http_code == 503) {
                        hf__strbuf_puts(&out, "\"causes\":[{\"reason\":\"NotApplied\",\"message\":"
                                              "\"the request was not processed\"}]");
                        first = false;
                }
                add_member(&out, "name", details ? details->name : NULL, &first);
                add_member(&out, "group", details ? details->group : NULL, &first);
                add_member(&out, "kind", details ? details->resource : NULL, &first);
                if (status->retry_after_s > 0)
                        hf__strbuf_printf(&out, "%s\"retryAfterSeconds\":%u", first ? "" : ",",
                                          (unsigned)status->retry_after_s);
                hf__strbuf_putc(&out, '}');
        }
        hf__strbuf_printf(&out, ",\"code\":%d}\n", status->http_code);
        send_json_status(request, status, take_body(&out));
}

void hfd_status_response(struct hfd_http_request *request, const struct hf_status *status) {
        send_status(request, status, status->message, NULL);
}

void hfd_status_response_code(struct hfd_http_request *request, int code, uint32_t retry_after_s,
                              const char *message) {
        struct hf_status status = {.http_code = code, .retry_after_s = retry_after_s};

        (void)snprintf(status.message, sizeof status.message, "%s", message);
        hfd_status_response(request, &status);
}

void hfd_status_response_text(struct hfd_http_request *request, int code, const char *text,
                              unsigned retry_after_s, bool close) {
        struct hf__strbuf out = {0};

        hf__strbuf_puts(&out, text);
        send_response(request, code, "text/plain; charset=utf-8", take_body(&out), retry_after_s,
                      close);
}

/*
 * For example: leases.coordination.k8s.io "x" is forbidden: User "u" cannot get resource "leases"
 * in API group "coordination.k8s.io" in the namespace "ns"
 */
static void put_forbidden(struct hf__strbuf *out, const char *user,
                          const struct hfd_attributes *attributes) {
        const char *ns = attributes->ns, *subresource = attributes->subresource;

        hf__strbuf_printf(out, "%s%s%s", attributes->resource, attributes->group[0] ? "." : "",
                          attributes->group);
        if (attributes->name[0])
                hf__strbuf_printf(out, " \"%s\"", attributes->name);
        hf__strbuf_printf(out,
                          " is forbidden: User \"%s\" cannot %s resource \"%s%s%s\" in API "
                          "group \"%s\"",
                          user, attributes->verb, attributes->resource, subresource[0] ? "/" : "",
                          subresource, attributes->group);
        if (ns[0])
                hf__strbuf_printf(out, " in the namespace \"%s\"", ns);
        else
                hf__strbuf_puts(out, " at the cluster scope");
}

void hfd_status_response_forbidden(struct hfd_http_request *request, const char *user,
                                   const struct hfd_attributes *attributes, const char *reason) {
        const struct hf_status status = {.error = HF_E_FORBIDDEN, .http_code = 403};
        const struct status_details details = {.group = attributes->group,
                                               .resource = attributes->resource,
                                               .name = attributes->name};
        struct hf__strbuf message = {.max = MESSAGE_MAX};

        if (attributes->is_resource)
                put_forbidden(&message, user, attributes);
        else
                hf__strbuf_printf(&message, "forbidden: User \"%s\" cannot %s path \"%s\"", user,
                                  attributes->verb, attributes->path);
        if (reason && reason[0])
                hf__strbuf_printf(&message, ": %s", reason);
        bool complete = message.error == 0 && message.data;
        send_status(request, &status, complete ? message.data : "forbidden", &details);
        hf__strbuf_done(&message);
}
