/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates HTTP responses into errors. The HTTP code decides; the reason and the causes in the
 * body distinguish errors that share a code.
 *
 * Invariant: if the server may have applied a write, the error never implies that it did not.
 */
#include "client/status.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* A Status is small. A larger body is not parsed; an excerpt of it goes into the message. */
#define MAX_STATUS_BODY ((size_t)256 * 1024)

static bool has_cause(const struct hf__json *body, const char *reason) {
        for (struct hf__json *c = hf__json_first(hf__json_path(body, "details.causes")); c;
             c = hf__json_next(c)) {
                const char *text = hf__json_string(c, "reason");
                if (text && strcmp(text, reason) == 0)
                        return true;
        }
        return false;
}

static int conflict_error(const char *reason, const struct hf__json *body) {
        if (strcmp(reason, "AlreadyExists") == 0)
                return HF_E_EXISTS;
        return has_cause(body, "StaleLeaderTerm") ? HF_E_STALE_TERM : HF_E_CONFLICT;
}

/* A proxy sends 503 when it has no server for a request, but also when the server's connection
 * broke after the request was forwarded. So for a write, only the cause NotApplied proves that
 * nothing was applied. For a write in parts that cause proves nothing: it may concern one part. */
static int server_error(int code, const struct hf__json *body,
                        const struct hf__status_context *context) {
        bool is_refusal = code == 503 && !context->in_parts && has_cause(body, "NotApplied");

        if (code == 504 || (context->is_write && !is_refusal))
                return HF_E_TIMEOUT;
        return HF_E_UNAVAILABLE;
}

static int error_of(int code, const char *reason, const struct hf__json *body,
                    const struct hf__status_context *context) {
        switch (code) {
        case 401: return HF_E_UNAUTHORIZED;
        case 403: return HF_E_FORBIDDEN;
        case 404: return HF_E_NOT_FOUND;
        case 408: return HF_E_TIMEOUT;
        case 409: return conflict_error(reason, body);
        case 410: return HF_E_GONE;
        case 413: return HF_E_TOO_LARGE;
        case 429: return HF_E_TOO_MANY;
        default: break;
        }
        /* A reason proves nothing about a write that the server failed to answer properly. */
        if (code >= 500 && context->is_write)
                return server_error(code, body, context);
        if (strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0)
                return HF_E_GONE;
        if (code < 300) /* an ERROR event with a Status that has no code */
                return HF_E_UNAVAILABLE;
        return code >= 500 ? server_error(code, body, context) : HF_E_INVALID;
}

/* Copies a text without control characters, because the message goes to logs and terminals. */
static void copy_line(char *to, size_t max, const char *text, size_t n) {
        size_t i = 0;
        for (; i < n && i + 1 < max && text[i]; i++)
                to[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
        while (i > 0 && to[i - 1] == ' ')
                i--;
        to[i] = '\0';
}

static uint32_t retry_after(const struct hf__json *body, uint32_t from_header) {
        int64_t seconds;
        if (from_header || !hf__json_i64(body, "details.retryAfterSeconds", &seconds) ||
            seconds <= 0)
                return from_header;
        return seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

int hf__status_from_response(int code, const char *body, size_t n_body,
                             const struct hf__status_context *context,
                             struct hf_status *ret_status) {
        struct hf__json *json = NULL;
        int64_t body_code;

        /* If the body is not JSON, json stays NULL, which every function below accepts. */
        if (body && n_body > 0 && n_body <= MAX_STATUS_BODY)
                (void)hf__json_parse(body, n_body, &json, NULL);
        if (code < 300 && hf__json_i64(json, "code", &body_code) && body_code >= 300 &&
            body_code <= 999)
                code = (int)body_code;

        const char *reason = hf__json_string(json, "reason");
        const char *message = hf__json_string(json, "message");
        *ret_status =
                (struct hf_status){.http_code = code,
                                   .retry_after_s = retry_after(json, context->retry_after_s)};
        if (reason)
                copy_line(ret_status->reason, sizeof ret_status->reason, reason, strlen(reason));
        ret_status->error = error_of(code, ret_status->reason, json, context);
        if (message && message[0]) {
                copy_line(ret_status->message, sizeof ret_status->message, message,
                          strlen(message));
        } else {
                char excerpt[160];
                copy_line(excerpt, sizeof excerpt, body ? body : "", body && !json ? n_body : 0);
                (void)snprintf(ret_status->message, sizeof ret_status->message, "%s: HTTP %d%s%s",
                               context->what ? context->what : "request", code,
                               excerpt[0] ? ": " : "", excerpt);
        }
        (void)hf__json_free(json);
        return ret_status->error;
}
