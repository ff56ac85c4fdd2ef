/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts bodies to JSON.
 *
 * Invariant: the JSON of a body is at most as large as a body may be, because aliases could make a
 * small text in YAML very large, and so could control characters and empty items in protobuf.
 */
#include "server/handlers/rest/rest_body.h"

#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_body.h"
#include "server/handlers/negotiation.h"
#include "server/handlers/protobuf_body.h"
#include "server/registry/base/body_summary.h"

#define JSON_MAX ((size_t)3 << 20) /* bytes: the default of http.h's max_body */

static const char *type_of(const struct hfd_rest_request *rest, bool is_delete) {
        return is_delete ? "DeleteOptions" : rest->request.resource->kind;
}

static void refuse_size(struct hfd_response *response) {
        char message[96];

        (void)snprintf(message, sizeof message, "Request entity too large: limit is %zu", JSON_MAX);
        hfd_response_status(response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge", message, NULL);
}

/* The JSON is printed, because all code behind this file takes a text: the audit log, the
 * checks for duplicate and unknown fields, the registry. */
static bool decode_protobuf(struct hfd_rest_request *rest, bool is_delete,
                            struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        struct hf__json *json = NULL;

        int r = hfd_protobuf_to_json(request->resource, is_delete, request->body, request->n_body,
                                     &json);
        rest->translated.max = JSON_MAX;
        if (r == 0) {
                hf__json_print(json, &rest->translated);
                r = rest->translated.error;
        }
        hf__json_free(json);
        if (r == HF_E_INVALID)
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): malformed protobuf",
                                         type_of(rest, is_delete));
        else if (r == HF_E_TOO_LARGE)
                refuse_size(response);
        else if (r != 0)
                hfd_response_no_memory(response);
        return r == 0;
}

/* r: the result of hf__yaml_body_to_json; HF_E_UNAVAILABLE: libyaml cannot be loaded. The other
 * messages are those of Kubernetes. For DeleteOptions it adds nothing to the decoder's message. */
static void refuse_yaml(const struct hfd_rest_request *rest, bool is_delete, int r,
                        const struct hf_status *status, struct hfd_response *response) {
        const struct hfd_request *request = &rest->request;
        char summary[HFD_BODY_SUMMARY_MAX];

        if (r == HF_E_TOO_LARGE) {
                refuse_size(response);
        } else if (r == HF_E_UNAVAILABLE) {
                hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType",
                                    status->message, NULL);
        } else if (r != HF_E_INVALID) {
                hfd_response_no_memory(response);
        } else if (is_delete) {
                hfd_response_bad_request(response, "yaml: %s", status->message);
        } else {
                hfd_body_summary(request->body, request->n_body, summary);
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): yaml: %s (%s)",
                                         type_of(rest, false), status->message, summary);
        }
}

/* The YAML is kept beside its translation, because messages about duplicate fields name its lines.
 */
static bool decode_yaml(struct hfd_rest_request *rest, bool is_delete,
                        struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        struct hf_status status = {0};

        rest->translated.max = JSON_MAX;
        request->yaml = request->body;
        request->n_yaml = request->n_body;
        int r = hf__yaml_body_to_json(request->body, request->n_body, &rest->translated, &status);
        if (r != 0)
                refuse_yaml(rest, is_delete, r, &status, response);
        return r == 0;
}

bool hfd_rest_body_decode(struct hfd_rest_request *rest, bool is_delete,
                          struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        const char *type = hfd_http_request_header(rest->http_request, "content-type");
        enum hfd_body_format format;

        if (!hfd_negotiate_body(request->resource, type, &format, response))
                return false;
        if (format == HFD_BODY_JSON)
                return true;
        bool decoded = format == HFD_BODY_YAML ? decode_yaml(rest, is_delete, response)
                                               : decode_protobuf(rest, is_delete, response);
        request->body = rest->translated.data;
        request->n_body = rest->translated.n;
        return decoded;
}

/* Whether the text is JSON. A text that the parser refuses for another reason than its syntax
 * counts as JSON, too, so that the client gets a message with that reason. */
static bool is_json(const char *text, size_t n) {
        struct hf__json *json = NULL;
        int r = hf__json_parse(text, n, &json, NULL);

        hf__json_free(json);
        return r == 0 || r == -ENOMEM || r == HF_E_TOO_LARGE;
}

bool hfd_rest_body_decode_apply(struct hfd_rest_request *rest, struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        const char *body = request->body;
        size_t at = 0;

        while (at < request->n_body && (body[at] == ' ' || body[at] == '\n'))
                at++;
        /* Almost all such bodies are JSON, which need not be read as YAML. */
        if (at < request->n_body && body[at] == '{' && is_json(body, request->n_body)) {
                request->yaml = body;
                request->n_yaml = request->n_body;
                return true;
        }
        bool decoded = decode_yaml(rest, false, response);
        request->body = rest->translated.data;
        request->n_body = rest->translated.n;
        return decoded;
}
