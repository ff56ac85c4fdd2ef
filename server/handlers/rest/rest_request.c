/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the response to a request for a resource, with the headers that Kubernetes' clients read.
 *
 * Invariants: the body is sent without a copy, unless the client wants it in protobuf, indented or
 * compressed. If memory for one of these forms runs out, the body is sent without this form: as
 * JSON, not indented, or not compressed. So a request that was carried out never looks as if it had
 * failed.
 */
#include "server/handlers/rest/rest_request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "server/filters/audited.h"
#include "server/filters/media_type.h"
#include "server/handlers/gzip.h"
#include "server/handlers/negotiation.h"
#include "server/handlers/rest/warnings.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/protobuf_response.h"

#define FENCE_HEADER "holdfast-fence" /* HF_FENCE_HEADER, in lower case */

/* Makes an indented copy. NULL (out of memory): the caller sends the body unchanged. */
static struct hf__buf *make_pretty(const struct hf__buf *body) {
        struct hf__json *json = NULL;
        struct hf__strbuf s = {0};
        struct hf__buf *buf = NULL;

        if (hf__json_parse(body->data, body->n, &json, NULL) == 0) {
                hf__json_print_pretty(json, &s);
                hf__strbuf_putc(&s, '\n');
                buf = hf__strbuf_to_buf(&s);
        }
        hf__json_free(json);
        hf__strbuf_done(&s);
        return buf;
}

/* The value of a Warning header for the n bytes of line. A text that is too long is cut after a
 * character: the validation of definitions refuses it, but another program may have written it into
 * the store. */
static void format_warning(const char *line, size_t n, char text[HFD_REST_WARNING_MAX]) {
        size_t at = (size_t)snprintf(text, HFD_REST_WARNING_MAX, "299 - \"");

        for (size_t i = 0, size; i < n; i += size) {
                bool escaped = line[i] == '"' || line[i] == '\\';
                size = hf__utf8_length(&line[i], n - i);
                size += size == 0;                                  /* no character: a byte */
                if (at + escaped + size + 2 > HFD_REST_WARNING_MAX) /* the quote and the NUL */
                        break;
                if (escaped)
                        text[at++] = '\\';
                memcpy(&text[at], &line[i], size);
                at += size;
        }
        text[at++] = '"';
        text[at] = '\0';
}

/*
 * Makes a compressed copy, if the client accepts one and the body is large enough for it. A body
 * beyond HFD_REST_PRETTY_MAX would keep its thread busy for too long; large lists are compressed
 * piece by piece instead (rest_list.c). NULL (also if memory is short): the caller sends the body
 * unchanged.
 */
static struct hf__buf *pack_body(struct hfd_http_request *http_request,
                                 const struct hf__buf *body) {
        if (!body || body->n < HFD_GZIP_MIN || body->n > HFD_REST_PRETTY_MAX ||
            !hfd_gzip_is_accepted(http_request))
                return NULL;
        return hfd_gzip_pack(body);
}

/* A body in the form that the client gets. */
struct form {
        const char *type;
        struct hf__buf *body; /* owned reference; NULL = none */
};

/* Converts the JSON of a response to protobuf. For a failure the header Accept is read again,
 * because the negotiation may be what has failed. False: it stays JSON, because the client does not
 * want protobuf, the body has no such form or is too large, or memory is short. */
static bool convert_to_protobuf(struct hfd_http_request *http_request,
                                const struct hfd_request *request,
                                const struct hfd_response *response, struct form *form) {
        bool failed = response->code >= 400, wanted;

        if (failed)
                wanted = hfd_media_type_status_is_protobuf(
                        hfd_http_request_header(http_request, "accept"));
        else
                wanted = request && request->protobuf;
        if (!wanted || !response->body || response->body->n > HFD_REST_PRETTY_MAX ||
            hfd_protobuf_convert(failed ? NULL : request->resource, response->body, &form->body) !=
                    0)
                return false;
        form->type = HFD_PROTOBUF_TYPE;
        return true;
}

const char *hfd_rest_deprecation(const struct hfd_request *request) {
        const struct hfd_resource *resource = request ? request->resource : NULL;

        if (!resource)
                return NULL;
        return resource->custom ? resource->custom->warning : resource->deprecation;
}

size_t hfd_rest_deprecation_header(const struct hfd_request *request,
                                   char text[HFD_REST_WARNING_MAX], struct hfd_header *ret_header) {
        const char *warning = hfd_rest_deprecation(request);

        if (!warning)
                return 0;
        format_warning(warning, strcspn(warning, "\n"), text);
        *ret_header = (struct hfd_header){"warning", text};
        return 1;
}

static struct form make_form(struct hfd_http_request *http_request,
                             const struct hfd_request *request,
                             const struct hfd_response *response) {
        const char *agent = hfd_http_request_header(http_request, "user-agent");
        struct form form = {.type = "application/json"};

        if (convert_to_protobuf(http_request, request, response, &form))
                return form;
        if (response->body && response->body->n <= HFD_REST_PRETTY_MAX &&
            hfd_negotiate_pretty(hfd_http_request_query(http_request), agent))
                form.body = make_pretty(response->body);
        if (!form.body)
                form.body = hf__buf_ref(response->body);
        return form;
}

/* Consumes the form's reference. */
static void send_form(struct hfd_http_request *http_request, const struct hfd_response *response,
                      struct form *form, const struct hfd_request *request, const char *mistakes) {
        static const struct hfd_header gzip_headers[] = {HFD_GZIP_HEADERS};
        struct hfd_header headers[6 + HFD_REST_WARNINGS_MAX]; /* six besides those of warnings.h */
        struct hf__strbuf warnings = {0};
        char deprecation[HFD_REST_WARNING_MAX], retry_after[16];
        const char *fence = hfd_http_request_header(http_request, FENCE_HEADER);
        size_t n = 0;

        assert(response->code != 0);
        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        if (response->status.retry_after_s > 0) {
                (void)snprintf(retry_after, sizeof retry_after, "%u",
                               response->status.retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry_after};
        }
        /* The client takes the repeated header as proof that the write was fenced. */
        if (response->fence_compared && fence)
                headers[n++] = (struct hfd_header){FENCE_HEADER, fence};
        n += hfd_rest_deprecation_header(request, deprecation, headers + n);
        n += hfd_rest_warnings(mistakes, request ? request->notes.warnings.data : NULL, &warnings,
                               headers + n);
        struct hf__buf *packed = pack_body(http_request, form->body);
        if (packed) {
                memcpy(headers + n, gzip_headers, sizeof gzip_headers);
                n += sizeof gzip_headers / sizeof gzip_headers[0];
        }
        assert(n <= sizeof headers / sizeof headers[0]);
        hfd_http_request_reply(http_request, response->code, form->type, headers, n,
                               packed ? packed : form->body);
        hf__buf_unref(packed);
        hf__buf_unref(form->body);
        hf__strbuf_done(&warnings);
}

void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_request *request,
                      const struct hfd_response *response, const char *mistakes) {
        struct form form = make_form(http_request, request, response);

        if (response->body)
                hfd_audited_response(http_request, response->body);
        send_form(http_request, response, &form, request, mistakes);
}

void hfd_rest_respond_as_is(struct hfd_http_request *http_request,
                            const struct hfd_request *request,
                            const struct hfd_response *response) {
        struct form form = {.type = hfd_rest_content_type(request),
                            .body = hf__buf_ref(response->body)};

        hfd_audited_response(http_request, request->protobuf ? NULL : response->body);
        send_form(http_request, response, &form, request, NULL);
}

const char *hfd_rest_content_type(const struct hfd_request *request) {
        if (!request->protobuf)
                return "application/json";
        return request->verb == HFD_WATCH ? HFD_PROTOBUF_WATCH_TYPE : HFD_PROTOBUF_TYPE;
}

void hfd_rest_free(struct hfd_rest_request *rest) {
        hfd_options_done(&rest->request.options);
        hfd_admission_notes_done(&rest->request.notes);
        hf__strbuf_done(&rest->translated);
        hfd_resource_unref(rest->request.part_of);
        free(rest->fence);
        hfd_http_request_unref(rest->http_request);
}
