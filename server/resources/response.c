/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of responses. A failure that Kubernetes has too has the same texts as there: clients
 * compare reasons and match messages ("the object has been modified"), and kubectl shows them.
 *
 * Invariant: hfd_response_status builds every failure that has a body. It fills both the body for
 * HTTP clients and response->status for callers in the process, so the two agree.
 */
#include "server/resources/response.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#define STATUS_MAX  (64u << 10) /* bytes of a Status body */
#define INVALID_MAX (32u << 10) /* bytes of the message of a 422 */

void hfd_response_done(struct hfd_response *response) {
        response->body = hf__buf_unref(response->body);
}

struct hfd_response *hfd_response_copy(const struct hfd_response *response) {
        struct hfd_response *copy = calloc(1, sizeof *copy);

        if (!copy)
                return NULL;
        if (response && response->code != 0) {
                *copy = *response;
                hf__buf_ref(copy->body);
        } else {
                hfd_response_no_memory(copy);
        }
        return copy;
}

struct hfd_response *hfd_response_free(struct hfd_response *response) {
        if (response)
                hfd_response_done(response);
        free(response);
        return NULL;
}

void hfd_response_ok(struct hfd_response *response, int code, struct hf__buf *body) {
        assert(code >= 200 && code < 300);
        assert(!response->body);
        if (!body) {
                hfd_response_no_memory(response);
                return;
        }
        response->code = code;
        response->body = body;
        response->status = (struct hf_status){.http_code = code};
}

/* ---- the Status object ---- */

static void put_member(struct hf__strbuf *s, const char *comma, const char *key,
                       const char *value) {
        hf__strbuf_puts(s, comma);
        hf__strbuf_json(s, key, strlen(key));
        hf__strbuf_putc(s, ':');
        hf__strbuf_json(s, value, strlen(value));
}

/* field: NULL = none. A field "" is left out if there is no reason either. */
static void put_cause(struct hf__strbuf *s, const char *comma, const char *reason, const char *text,
                      const char *field) {
        hf__strbuf_puts(s, comma);
        if (*reason)
                put_member(s, "{", "reason", reason);
        put_member(s, *reason ? "," : "{", "message", text);
        if (field && (*field || *reason))
                put_member(s, ",", "field", field);
        hf__strbuf_putc(s, '}');
}

/* Writes the single cause, then the list. False: there is no cause, so nothing was written. */
static bool put_causes(struct hf__strbuf *s, const char *comma, const struct hfd_details *details) {
        size_t n = details->causes ? details->causes->n : 0;
        const char *next_comma = "";

        if (!details->cause_reason && n == 0)
                return false;
        hf__strbuf_puts(s, comma);
        hf__strbuf_puts(s, "\"causes\":[");
        if (details->cause_reason) {
                put_cause(s, "", details->cause_reason, details->cause_text, details->cause_field);
                next_comma = ",";
        }
        for (size_t i = 0; i < n; i++) {
                const struct hfd_cause *cause = &details->causes->items[i];
                put_cause(s, next_comma, cause->reason, cause->text, cause->field);
                next_comma = ",";
        }
        hf__strbuf_putc(s, ']');
        return true;
}

/* Empty members are left out, as Go's omitempty does. */
static void put_details(struct hf__strbuf *s, const struct hfd_details *details) {
        const char *comma = "";

        hf__strbuf_puts(s, ",\"details\":{");
        if (details->name && *details->name) {
                put_member(s, comma, "name", details->name);
                comma = ",";
        }
        if (details->group && *details->group) {
                put_member(s, comma, "group", details->group);
                comma = ",";
        }
        if (details->kind && *details->kind) {
                put_member(s, comma, "kind", details->kind);
                comma = ",";
        }
        if (put_causes(s, comma, details))
                comma = ",";
        if (details->retry_after_s > 0)
                hf__strbuf_printf(s, "%s\"retryAfterSeconds\":%u", comma, details->retry_after_s);
        hf__strbuf_putc(s, '}');
}

void hfd_response_status(struct hfd_response *response, int error, int code, const char *reason,
                         const char *message, const struct hfd_details *details) {
        struct hf__strbuf s = {.max = STATUS_MAX};

        assert(error != 0 && code >= 400 && code < 600);
        assert(!response->body);
        hf__strbuf_puts(&s, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
        if (details && details->continue_token)
                put_member(&s, "", "continue", details->continue_token);
        hf__strbuf_puts(&s, "},\"status\":\"Failure\"");
        put_member(&s, ",", "message", message);
        if (*reason)
                put_member(&s, ",", "reason", reason);
        if (details)
                put_details(&s, details);
        hf__strbuf_printf(&s, ",\"code\":%d}\n", code);

        /* Callers in the process need the error too: a stale term and a conflict have the same HTTP
         * code. */
        response->code = code;
        response->body = hf__strbuf_to_buf(&s);
        response->status =
                (struct hf_status){.error = error,
                                   .http_code = code,
                                   .retry_after_s = details ? details->retry_after_s : 0};
        (void)snprintf(response->status.reason, sizeof response->status.reason, "%s", reason);
        (void)snprintf(response->status.message, sizeof response->status.message, "%s", message);
        hf__strbuf_done(&s);
}

/* The details of a failure that concerns one object. */
static struct hfd_details make_object_details(const struct hfd_resource *resource,
                                              const char *name) {
        return (struct hfd_details){.name = name,
                                    .group = resource->group,
                                    .kind = resource->plural};
}

/* ---- failures, by code ---- */

void hfd_response_bad_request(struct hfd_response *response, const char *format, ...) {
        char message[1024];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(message, sizeof message, format, args);
        va_end(args);
        hfd_response_status(response, HF_E_INVALID, 400, "BadRequest", message, NULL);
}

void hfd_response_forbidden(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name, const char *why, const struct hfd_details *cause) {
        char message[1024], qualified[HFD_QUALIFIED_MAX];
        struct hfd_details details = make_object_details(resource, name);

        hfd_resource_qualified(resource, qualified);
        (void)snprintf(message, sizeof message, "%s \"%s\" is forbidden: %s", qualified, name, why);
        if (cause) {
                details.cause_reason = cause->cause_reason;
                details.cause_text = cause->cause_text;
                details.cause_field = cause->cause_field;
        }
        hfd_response_status(response, HF_E_FORBIDDEN, 403, "Forbidden", message, &details);
}

void hfd_response_no_such_resource(struct hfd_response *response) {
        hfd_response_status(response, HF_E_NOT_FOUND, 404, "NotFound",
                            "the server could not find the requested resource", NULL);
}

void hfd_response_not_found(struct hfd_response *response, const struct hfd_resource *resource,
                            const char *name) {
        char message[512], qualified[HFD_QUALIFIED_MAX];
        struct hfd_details details = make_object_details(resource, name);

        hfd_resource_qualified(resource, qualified);
        (void)snprintf(message, sizeof message, "%s \"%s\" not found", qualified, name);
        hfd_response_status(response, HF_E_NOT_FOUND, 404, "NotFound", message, &details);
}

void hfd_response_not_allowed(struct hfd_response *response) {
        hfd_response_status(response, HF_E_INVALID, 405, "MethodNotAllowed",
                            "the server does not allow this method on the requested resource",
                            NULL);
}

void hfd_response_exists(struct hfd_response *response, const struct hfd_resource *resource,
                         const char *name, bool generated) {
        char message[640], qualified[HFD_QUALIFIED_MAX];
        struct hfd_details details = make_object_details(resource, name);

        hfd_resource_qualified(resource, qualified);
        (void)snprintf(message, sizeof message, "%s \"%s\" already exists%s", qualified, name,
                       generated ? ", the server was not able to generate a unique name for the "
                                   "object"
                                 : "");
        details.retry_after_s = generated ? 1 : 0; /* another attempt gets another name */
        hfd_response_status(response, HF_E_EXISTS, 409, "AlreadyExists", message, &details);
}

void hfd_response_conflict(struct hfd_response *response, const struct hfd_resource *resource,
                           const char *name, const char *why) {
        char message[1600], qualified[HFD_QUALIFIED_MAX];
        struct hfd_details details = make_object_details(resource, name);

        if (!why)
                why = "the object has been modified; please apply your changes to the latest "
                      "version and try again";
        hfd_resource_qualified(resource, qualified);
        (void)snprintf(message, sizeof message, "Operation cannot be fulfilled on %s \"%s\": %s",
                       qualified, name, why);
        hfd_response_status(response, HF_E_CONFLICT, 409, "Conflict", message, &details);
}

/*
 * Kubernetes has no such failure. Its clients treat this response as a conflict. Holdfast's client
 * recognizes it by the cause.
 */
void hfd_response_stale_term(struct hfd_response *response, const struct hfd_resource *resource,
                             const char *name) {
        char message[640], qualified[HFD_QUALIFIED_MAX];
        const char *why = "the leader term of this write has ended; nothing was written";
        struct hfd_details details = make_object_details(resource, name);

        hfd_resource_qualified(resource, qualified);
        (void)snprintf(message, sizeof message, "Operation cannot be fulfilled on %s \"%s\": %s",
                       qualified, name, why);
        details.cause_reason = "StaleLeaderTerm";
        details.cause_text = why;
        hfd_response_status(response, HF_E_STALE_TERM, 409, "Conflict", message, &details);
}

/*
 * Formats the causes like Go's errors.Aggregate: brackets enclose them if there are several. A
 * message that is too long is replaced, and the causes still name the mistakes. Here details.kind
 * is the Kind. In other failures it is the plural. Kubernetes does the same.
 */
void hfd_response_invalid(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const struct hfd_causes *causes) {
        struct hf__strbuf s = {.max = INVALID_MAX};

        assert(causes->n > 0);
        hf__strbuf_printf(&s, "%s%s%s \"%s\" is invalid: %s", resource->kind,
                          *resource->group ? "." : "", resource->group, name,
                          causes->n > 1 ? "[" : "");
        for (size_t i = 0; i < causes->n; i++)
                hf__strbuf_printf(&s, "%s%s: %s", i > 0 ? ", " : "", causes->items[i].field,
                                  causes->items[i].text);
        if (causes->n > 1)
                hf__strbuf_putc(&s, ']');
        struct hfd_details details = {.name = name,
                                      .group = resource->group,
                                      .kind = resource->kind,
                                      .causes = causes};
        hfd_response_status(response, HF_E_INVALID, 422, "Invalid",
                            s.error != 0 ? "the object is invalid" : s.data, &details);
        hf__strbuf_done(&s);
}

void hfd_response_no_memory(struct hfd_response *response) {
        hfd_response_status(response, -ENOMEM, 500, "InternalError",
                            "Internal error occurred: out of memory", NULL);
}

void hfd_response_unreadable(struct hfd_response *response, const char *key) {
        char message[640];

        (void)snprintf(message, sizeof message,
                       "Internal error occurred: the value stored at %.512s is not a valid object",
                       key);
        hfd_response_status(response, HF_E_INVALID, 500, "InternalError", message, NULL);
}

void hfd_response_sealed(struct hfd_response *response, const char *key, const char *why) {
        char message[1200];

        (void)snprintf(message, sizeof message,
                       "Internal error occurred: unable to transform key \"%.1024s\": %.80s", key,
                       why);
        hfd_response_status(response, HF_E_INVALID, 500, "InternalError", message, NULL);
}

/*
 * HF_E_CANCELED is a 503 like HF_E_UNAVAILABLE, because it means here that the store is being
 * stopped. (A client that has canceled its request reads no response.) Nobody knows whether a
 * canceled write was done, so only HF_E_UNAVAILABLE has the cause NotApplied. The message of the
 * 413 is etcd's, because kube-apiserver passes that on.
 */
void hfd_response_store_error(struct hfd_response *response, int error,
                              const struct hf_status *status) {
        char message[640];
        const char *detail = status && *status->message ? status->message : hf_strerror(error);
        struct hfd_details details = {0};

        switch (error) {
        case HF_E_TIMEOUT:
                (void)snprintf(message, sizeof message,
                               "Timeout: request did not complete within the allotted time: %s",
                               detail);
                hfd_response_status(response, HF_E_TIMEOUT, 504, "Timeout", message, &details);
                break;
        case HF_E_GONE:
                hfd_response_status(response, HF_E_GONE, 410, "Expired",
                                    "The resourceVersion for the provided list is too old.", NULL);
                break;
        case HF_E_TOO_LARGE:
                hfd_response_status(response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge",
                                    "etcdserver: request is too large", NULL);
                break;
        case HF_E_UNAVAILABLE:
        case HF_E_CANCELED:
                details.retry_after_s = 1;
                if (error == HF_E_UNAVAILABLE) {
                        details.cause_reason = "NotApplied";
                        details.cause_text = "nothing was written";
                }
                (void)snprintf(message, sizeof message, "the store is unavailable: %s", detail);
                hfd_response_status(response, error, 503, "ServiceUnavailable", message, &details);
                break;
        case -ENOSPC: /* without Retry-After, because the write may have been done */
                (void)snprintf(message, sizeof message, "the store is full: %s", detail);
                hfd_response_status(response, error, 503, "ServiceUnavailable", message, &details);
                break;
        default:
                (void)snprintf(message, sizeof message, "Internal error occurred: %s", detail);
                hfd_response_status(response, error, 500, "InternalError", message, NULL);
                break;
        }
}

/* ---- deletions ---- */

/* The response has the uid because `kubectl delete` waits until no object with it exists. */
void hfd_response_deleted(struct hfd_response *response, const struct hfd_resource *resource,
                          const char *name, const char *uid) {
        struct hf__strbuf s = {0};
        const char *comma = "";

        hf__strbuf_puts(&s, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                            "\"Success\",\"details\":{");
        if (name) {
                put_member(&s, comma, "name", name);
                comma = ",";
        }
        if (*resource->group) {
                put_member(&s, comma, "group", resource->group);
                comma = ",";
        }
        put_member(&s, comma, "kind", resource->plural);
        if (uid && *uid)
                put_member(&s, ",", "uid", uid);
        hf__strbuf_puts(&s, "}}\n");
        hfd_response_ok(response, 200, hf__strbuf_to_buf(&s));
        hf__strbuf_done(&s);
}
