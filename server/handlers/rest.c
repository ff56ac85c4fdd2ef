/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From HTTP to the registry and back:
 *
 *      hfd_rest_handle -> handle_resource -> fill_request -> hfd_registry_serve
 *                                                            ... on_done -> send_response
 *
 * handle_resource makes the struct hfd_rest_request, which owns everything that the registry
 * borrows: the body, the fence, the options. on_done sends the response and frees it. A watch goes
 * to rest_watch.c instead.
 *
 * Exactly one response is sent on every path. A request that fill_request refuses never reaches the
 * registry.
 */
#include "server/handlers/rest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/filters/request_context.h"
#include "server/handlers/discovery.h"
#include "server/handlers/negotiation.h"
#include "server/handlers/protobuf_body.h"
#include "server/handlers/rest_watch.h"

/*
 * A larger body is never indented: it takes many times its memory, on a thread that serves other
 * requests too.
 */
#define PRETTY_MAX ((size_t)4 << 20)

#define FENCE_HEADER "holdfast-fence" /* HF_FENCE_HEADER, in lower case */
#define WARNINGS_MAX 8
#define WARNING_MAX  320 /* bytes of one, with the NUL */

/* ---- responses ---- */

/* An indented copy. NULL = out of memory: the body is sent as it is. */
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

/* The value of a Warning header (RFC 7234) for the n bytes of line; cut if it is too long. */
static void format_warning(const char *line, size_t n, char text[WARNING_MAX]) {
        size_t at = (size_t)snprintf(text, WARNING_MAX, "299 - \"");

        for (size_t i = 0; i < n && at < WARNING_MAX - 3; i++) {
                if (line[i] == '"')
                        text[at++] = '\\';
                text[at++] = line[i];
        }
        text[at++] = '"';
        text[at] = '\0';
}

/* Adds a Warning header for each line, up to WARNINGS_MAX. lines may be NULL. Returns how many. */
static size_t add_warnings(const char *lines, char text[WARNINGS_MAX][WARNING_MAX],
                           struct hfd_header *headers) {
        size_t n = 0;

        for (const char *line = lines; line && *line && n < WARNINGS_MAX; n++) {
                size_t n_line = strcspn(line, "\n");
                format_warning(line, n_line, text[n]);
                headers[n] = (struct hfd_header){"warning", text[n]};
                line += n_line;
                if (*line == '\n')
                        line++;
        }
        return n;
}

/* unknown_fields: lines for Warning headers; NULL = none. */
static void send_response(struct hfd_http_request *http_request,
                          const struct hfd_response *response, const char *unknown_fields) {
        struct hfd_header headers[3 + WARNINGS_MAX];
        char warnings[WARNINGS_MAX][WARNING_MAX], retry_after[16];
        const char *fence = hfd_http_request_header(http_request, FENCE_HEADER),
                   *agent = hfd_http_request_header(http_request, "user-agent");
        struct hf__buf *pretty = NULL;
        size_t n = 0;

        assert(response->code != 0);
        if (response->body && response->body->n <= PRETTY_MAX &&
            hfd_negotiate_pretty(hfd_http_request_query(http_request), agent))
                pretty = make_pretty(response->body);
        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        if (response->status.retry_after_s > 0) {
                (void)snprintf(retry_after, sizeof retry_after, "%u",
                               response->status.retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry_after};
        }
        if (response->fence_compared && fence)
                headers[n++] = (struct hfd_header){FENCE_HEADER, fence};
        n += add_warnings(unknown_fields, warnings, headers + n);
        hfd_http_request_reply(http_request, response->code, "application/json", headers, n,
                               pretty ? pretty : response->body);
        hf__buf_unref(pretty);
}

void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response) {
        send_response(http_request, response, NULL);
}

void hfd_rest_free(struct hfd_rest_request *rest) {
        hfd_options_done(&rest->request.options);
        hf__strbuf_done(&rest->translated);
        free(rest->fence);
        hfd_http_request_unref(rest->http_request);
        free(rest);
}

/* The registry's last call for the request. Thread: any. */
static void on_done(struct hfd_request *request, const struct hfd_response *response) {
        struct hfd_rest_request *rest = (struct hfd_rest_request *)request;
        bool failed = response->status.error != 0;

        send_response(rest->http_request, response,
                      failed ? NULL : request->options.unknown_fields);
        hfd_rest_free(rest);
}

/* ---- a request for a resource ---- */

static bool set_verb(struct hfd_request *request, const char *verb) {
        static const struct {
                const char *name;
                enum hfd_verb verb;
        } verbs[] = {{"get", HFD_GET},           {"list", HFD_LIST},
                     {"watch", HFD_WATCH},       {"create", HFD_CREATE},
                     {"update", HFD_UPDATE},     {"patch", HFD_PATCH},
                     {"delete", HFD_DELETE_ONE}, {"deletecollection", HFD_DELETE_MANY}};

        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(verbs[i].name, verb) == 0) {
                        request->verb = verbs[i].verb;
                        return true;
                }
        return false;
}

/* Whether the path is one for this verb. */
static bool verb_fits(const struct hfd_request *request, const struct hfd_request_info *info) {
        bool many = request->verb == HFD_LIST || request->verb == HFD_WATCH;

        if (request->resource->namespaced && !*info->ns && !many)
                return false;
        if (request->subresource != HFD_SUB_NONE)
                return request->verb == HFD_GET || request->verb == HFD_UPDATE ||
                       request->verb == HFD_PATCH;
        if (request->verb == HFD_CREATE)
                return !*info->name;
        if (request->verb == HFD_UPDATE || request->verb == HFD_PATCH)
                return *info->name;
        return true;
}

/* Resource, subresource, verb and names. False: response says why not (404, 405). */
static bool take_info(struct hfd_request *request, const struct hfd_request_info *info,
                      struct hfd_response *response) {
        request->resource = hfd_resource_find(info->group, info->version, info->resource);
        if (!request->resource || (*info->ns && !request->resource->namespaced) ||
            !hfd_resource_subresource(request->resource, info->subresource,
                                      &request->subresource)) {
                hfd_response_no_such_resource(response);
                return false;
        }
        if (!set_verb(request, info->verb) || !verb_fits(request, info)) {
                hfd_response_not_allowed(response);
                return false;
        }
        assert(strlen(info->ns) < sizeof request->ns && strlen(info->name) < sizeof request->name);
        (void)stpcpy(request->ns, info->ns);
        (void)stpcpy(request->name, info->name);
        return true;
}

/* Makes the body JSON if it was sent as protobuf. False: response says why not (400, 415, 500). */
static bool take_body(struct hfd_rest_request *rest, bool is_delete,
                      struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        const char *type = hfd_http_request_header(rest->http_request, "content-type");
        struct hf__json *json = NULL;
        bool protobuf;

        if (!hfd_negotiate_body(request->resource, type, &protobuf, response))
                return false;
        if (!protobuf)
                return true;
        int r = hfd_protobuf_to_json(request->resource, is_delete, request->body, request->n_body,
                                     &json);
        if (r == 0) {
                hf__json_print(json, &rest->translated);
                r = rest->translated.error;
        }
        hf__json_free(json);
        if (r == HF_E_INVALID)
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): malformed protobuf",
                                         request->resource->kind);
        else if (r != 0)
                hfd_response_no_memory(response);
        request->body = rest->translated.data;
        request->n_body = rest->translated.n;
        return r == 0;
}

/* text: the header. False: response says why not (400, 500). */
static bool take_fence(struct hfd_rest_request *rest, const char *text,
                       struct hfd_response *response) {
        rest->fence = malloc(sizeof *rest->fence);
        if (!rest->fence) {
                hfd_response_no_memory(response);
                return false;
        }
        if (hf_fence_parse(text, strlen(text), rest->fence) != 0) {
                hfd_response_bad_request(response,
                                         "the header " HF_FENCE_HEADER
                                         " is malformed: namespace/name;term;identity is expected");
                return false;
        }
        rest->request.fence = rest->fence;
        return true;
}

/*
 * Everything about the request that does not depend on the stored object. The order of the checks
 * is the order in which clients see failures. False: response says why not.
 */
static bool fill_request(struct hfd_rest_request *rest, const struct hfd_request_info *info,
                         struct hfd_response *response) {
        struct hfd_http_request *http_request = rest->http_request;
        struct hfd_request *request = &rest->request;
        const char *fence = hfd_http_request_header(http_request, FENCE_HEADER);

        if (!take_info(request, info, response))
                return false;
        bool is_delete = request->verb == HFD_DELETE_ONE || request->verb == HFD_DELETE_MANY,
             is_patch = request->verb == HFD_PATCH;
        request->body = hfd_http_request_body(http_request, &request->n_body);
        request->deadline = hfd_registry_now(rest->registry) + (request->verb == HFD_DELETE_MANY
                                                                        ? HFD_REGISTRY_MANY_DEADLINE
                                                                        : HFD_REGISTRY_DEADLINE);
        if (!hfd_negotiate_format(request, hfd_http_request_header(http_request, "accept"),
                                  response))
                return false;
        /* The body of a delete is optional. */
        bool has_body = request->verb == HFD_CREATE || request->verb == HFD_UPDATE ||
                        (is_delete && request->n_body > 0);
        if (has_body && !take_body(rest, is_delete, response))
                return false;
        if (is_patch &&
            !hfd_negotiate_patch(request, hfd_http_request_header(http_request, "content-type"),
                                 response))
                return false;
        /* A read ignores the fence. */
        if (fence && (has_body || is_delete || is_patch) && !take_fence(rest, fence, response))
                return false;
        return hfd_options_parse(request, hfd_http_request_query(http_request), response);
}

/* Takes the caller's reference of the HTTP request. */
static void handle_resource(struct hfd_registry *registry, struct hfd_http_request *http_request,
                            const struct hfd_request_info *info) {
        struct hfd_rest_request *rest = malloc(sizeof *rest);
        struct hfd_response response = {0};

        if (!rest) {
                hfd_response_no_memory(&response);
                hfd_rest_respond(http_request, &response);
                hfd_response_done(&response);
                hfd_http_request_unref(http_request);
                return;
        }
        *rest = (struct hfd_rest_request){.request.done = on_done,
                                          .registry = registry,
                                          .http_request = http_request};
        if (!fill_request(rest, info, &response)) {
                hfd_rest_respond(http_request, &response);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        if (rest->request.verb == HFD_WATCH)
                hfd_rest_watch(rest);
        else
                hfd_registry_serve(registry, &rest->request);
}

void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request) {
        const struct hfd_request_info *info = hfd_request_info(http_request);

        assert(ctx && info);
        if (info->is_resource)
                handle_resource(ctx, http_request, info);
        else
                hfd_discovery_handle(http_request);
}
