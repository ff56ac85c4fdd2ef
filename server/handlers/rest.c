/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests become calls, answers become replies; nothing else is decided here. */
#include "server/handlers/rest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/filters/query.h"
#include "server/filters/request_context.h"
#include "server/filters/status_response.h"
#include "server/handlers/discovery.h"
#include "server/handlers/openapi.h"
#include "server/handlers/protobuf_body.h"
#include "server/handlers/rest_watch.h"

/* A larger answer goes out as it is: laying it out takes many times its memory, on a thread that
 * serves others too. */
#define PRETTY_MAX ((size_t)4 << 20)

#define WARNINGS_MAX 8
#define WARNING_TEXT 320

/* ---- replies ---- */

static bool wants_pretty(struct hfd_http_request *http_request) {
        const char *agent = hfd_http_request_header(http_request, "user-agent");
        char value[8];

        if (!hfd_query_get(hfd_http_request_query(http_request), "pretty", 0, value, sizeof value))
                return hfd_query_bool(hfd_http_request_query(http_request), "pretty");
        return agent && (strncmp(agent, "curl", 4) == 0 || strncmp(agent, "Wget", 4) == 0 ||
                         strncmp(agent, "Mozilla/5.0", 11) == 0);
}

static struct hf__buf *pretty(const struct hf__buf *body) {
        struct hf__json *json = NULL;
        struct hf__strbuf s = {0};
        struct hf__buf *buf = NULL;

        if (!hf__json_parse(body->data, body->n, &json, NULL)) {
                hf__json_print_pretty(json, &s);
                hf__strbuf_putc(&s, '\n');
                buf = hf__strbuf_to_buf(&s);
        }
        hf__json_free(json);
        hf__strbuf_done(&s);
        return buf;
}

/* Warning headers, one per line of unknown, in text. How many. */
static size_t put_warnings(const char *unknown, char text[WARNINGS_MAX][WARNING_TEXT],
                           struct hfd_header *headers) {
        size_t n = 0;

        for (const char *line = unknown; line && *line && n < WARNINGS_MAX;
             line += strcspn(line, "\n"), line += *line == '\n') {
                size_t at = (size_t)snprintf(text[n], WARNING_TEXT, "299 - \"");
                for (const char *c = line; *c && *c != '\n' && at < WARNING_TEXT - 3; c++) {
                        if (*c == '"')
                                text[n][at++] = '\\';
                        text[n][at++] = *c;
                }
                text[n][at++] = '"';
                text[n][at] = '\0';
                headers[n] = (struct hfd_header){"warning", text[n]};
                n++;
        }
        return n;
}

static void reply(struct hfd_http_request *http_request, const struct hfd_response *response,
                  const char *unknown_fields) {
        struct hfd_header headers[4 + WARNINGS_MAX];
        char warnings[WARNINGS_MAX][WARNING_TEXT];
        size_t n = 0;
        char retry[16];
        const char *fence = hfd_http_request_header(http_request, "holdfast-fence");
        bool small = response->body && response->body->n <= PRETTY_MAX;
        struct hf__buf *body = small && wants_pretty(http_request) ? pretty(response->body) : NULL;

        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        if (response->status.retry_after_s) {
                (void)snprintf(retry, sizeof retry, "%u", response->status.retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry};
        }
        if (response->fence_compared && fence)
                headers[n++] = (struct hfd_header){"holdfast-fence", fence};
        n += put_warnings(unknown_fields, warnings, headers + n);
        hfd_http_request_reply(http_request, response->code, "application/json", headers, n,
                               body ? body : response->body);
        hf__buf_unref(body);
}

void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response) {
        reply(http_request, response, NULL);
}

void hfd_rest_free(struct hfd_rest_request *rest) {
        hfd_options_done(&rest->request.options);
        hf__strbuf_done(&rest->translated);
        free(rest->fence);
        hfd_http_request_unref(rest->http_request);
        free(rest);
}

static void on_done(struct hfd_request *request, const struct hfd_response *response) {
        struct hfd_rest_request *rest = (struct hfd_rest_request *)request;

        reply(rest->http_request, response,
              response->status.error ? NULL : request->options.unknown_fields);
        hfd_rest_free(rest);
}

static bool is_of_many(const struct hfd_request *request) {
        return request->verb == HFD_LIST || request->verb == HFD_WATCH;
}

/* ---- negotiation ---- */

/* One element of Accept: `application/json;as=Table;v=v1;g=meta.k8s.io`. False: not one we can
 * give. */
static bool accepts(struct hfd_request *request, char *element) {
        char *save = NULL, *type = strtok_r(element, ";", &save), as[40] = "", version[16] = "v1",
             group[64] = "meta.k8s.io";

        while (type && *type == ' ')
                type++;
        if (!type || (strcmp(type, "application/json") != 0 && strcmp(type, "*/*") != 0 &&
                      strcmp(type, "application/*") != 0))
                return false;
        for (char *p = strtok_r(NULL, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
                while (*p == ' ')
                        p++;
                if (strncmp(p, "as=", 3) == 0)
                        (void)snprintf(as, sizeof as, "%s", p + 3);
                else if (strncmp(p, "v=", 2) == 0)
                        (void)snprintf(version, sizeof version, "%s", p + 2);
                else if (strncmp(p, "g=", 2) == 0)
                        (void)snprintf(group, sizeof group, "%s", p + 2);
        }
        bool reads =
                request->verb == HFD_GET || request->verb == HFD_LIST || request->verb == HFD_WATCH;
        if (!*as)
                return true;
        if (!reads || strcmp(group, "meta.k8s.io") != 0 ||
            (strcmp(version, "v1") != 0 && strcmp(version, "v1beta1") != 0))
                return false;
        (void)snprintf(request->table_version, sizeof request->table_version, "%s", version);
        if (strcmp(as, "Table") == 0)
                request->format = HFD_AS_TABLE;
        else if (strcmp(as, "PartialObjectMetadata") == 0 && !is_of_many(request))
                request->format = HFD_AS_PARTIAL;
        else if (strcmp(as, "PartialObjectMetadataList") == 0 && is_of_many(request))
                request->format = HFD_AS_PARTIAL;
        else
                return false;
        return true;
}

static bool negotiate(struct hfd_request *request, const char *accept) {
        char copy[2048], *save = NULL;

        if (!accept || !*accept || strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save))
                if (accepts(request, e))
                        return true;
        return false;
}

static bool is_json(const char *content_type) {
        return !content_type || !*content_type ||
               strncasecmp(content_type, "application/json", 16) == 0;
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

/* Which patch the body is. False: answer is filled. */
static bool take_patch(struct hfd_rest_request *rest, struct hfd_response *response) {
        static const struct {
                const char *type;
                enum hfd_patch patch;
        } types[] = {{"application/json-patch+json", HFD_PATCH_JSON},
                     {"application/merge-patch+json", HFD_PATCH_MERGE},
                     {"application/strategic-merge-patch+json", HFD_PATCH_STRATEGIC}};
        const char *type = hfd_http_request_header(rest->http_request, "content-type");
        bool strategic = !rest->request.resource->no_strategic_patch;

        for (size_t i = 0; type && i < (strategic ? 3 : 2); i++) {
                size_t n = strlen(types[i].type);
                if (strncasecmp(type, types[i].type, n) != 0 || (type[n] && !strchr("; ", type[n])))
                        continue;
                rest->request.patch = types[i].patch;
                return true;
        }
        hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType",
                            strategic
                                    ? "the body of the request was in an unknown format - accepted "
                                      "media types include: "
                                      "application/json-patch+json, application/merge-patch+json, "
                                      "application/strategic-merge-patch+json"
                                    : "the body of the request was in an unknown format - accepted "
                                      "media types include: "
                                      "application/json-patch+json, application/merge-patch+json",
                            NULL);
        return false;
}

/* The body as JSON, whatever it came as. False: answer is filled. */
static bool take_body(struct hfd_rest_request *rest, struct hfd_response *response) {
        struct hfd_request *request = &rest->request;
        const char *type = hfd_http_request_header(rest->http_request, "content-type");
        struct hf__json *json = NULL;

        if (is_json(type))
                return true;
        if (!hfd_is_protobuf(type) || !hfd_protobuf_known(request->resource)) {
                hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType",
                                    "the body of the request was in an unknown format - accepted "
                                    "media types include: application/json, "
                                    "application/vnd.kubernetes.protobuf",
                                    NULL);
                return false;
        }
        int r = hfd_protobuf_to_json(request->resource,
                                     request->verb == HFD_DELETE_ONE ||
                                             request->verb == HFD_DELETE_MANY,
                                     request->body, request->n_body, &json);
        if (r == 0) {
                hf__json_print(json, &rest->translated);
                r = rest->translated.error;
        }
        hf__json_free(json);
        if (r == HF_E_INVALID)
                hfd_response_bad_request(response,
                                         "the object provided is unrecognized (must be of type "
                                         "%s): "
                                         "malformed protobuf",
                                         request->resource->kind);
        else if (r != 0)
                hfd_response_no_memory(response);
        request->body = rest->translated.data;
        request->n_body = rest->translated.n;
        return r == 0;
}

/* False: answer is filled. */
static bool take_fence(struct hfd_rest_request *rest, const char *text,
                       struct hfd_response *response) {
        rest->fence = malloc(sizeof *rest->fence);
        if (!rest->fence) {
                hfd_response_no_memory(response);
                return false;
        }
        if (hf_fence_parse(text, strlen(text), rest->fence)) {
                hfd_response_bad_request(response,
                                         "the header " HF_FENCE_HEADER
                                         " is malformed: namespace/name;term;identity is expected");
                return false;
        }
        rest->request.fence = rest->fence;
        return true;
}

/* Whether the verb is one of this path's. */
static bool verb_fits(const struct hfd_request *request, const struct hfd_request_info *info) {
        if (request->resource->namespaced && !*info->ns && !is_of_many(request))
                return false;
        if (request->subresource)
                return request->verb == HFD_GET || request->verb == HFD_UPDATE ||
                       request->verb == HFD_PATCH;
        return request->verb == HFD_CREATE
                       ? !*info->name
                       : (request->verb != HFD_UPDATE && request->verb != HFD_PATCH) || *info->name;
}

/* Checks what does not depend on the verb's own work. False: answer is filled. */
static bool fill_request(struct hfd_rest_request *rest, const struct hfd_request_info *info,
                         struct hfd_response *response) {
        struct hfd_http_request *http_request = rest->http_request;
        struct hfd_request *request = &rest->request;
        const char *fence = hfd_http_request_header(http_request, "holdfast-fence");

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
        request->body = hfd_http_request_body(http_request, &request->n_body);
        request->deadline = hfd_registry_now(rest->registry) + (request->verb == HFD_DELETE_MANY
                                                                        ? HFD_REGISTRY_MANY_DEADLINE
                                                                        : HFD_REGISTRY_DEADLINE);
        if (!negotiate(request, hfd_http_request_header(http_request, "accept"))) {
                hfd_response_status(response, HF_E_INVALID, 406, "NotAcceptable",
                                    "only the following media types are accepted: application/json",
                                    NULL);
                return false;
        }
        bool deletes = request->verb == HFD_DELETE_ONE || request->verb == HFD_DELETE_MANY;
        bool sends = request->verb == HFD_CREATE || request->verb == HFD_UPDATE ||
                     (deletes && request->n_body);
        if (sends && !take_body(rest, response))
                return false;
        if (request->verb == HFD_PATCH && !take_patch(rest, response))
                return false;
        if (fence && (sends || deletes || request->verb == HFD_PATCH) &&
            !take_fence(rest, fence, response))
                return false;
        return hfd_options_parse(request, hfd_http_request_query(http_request), response);
}

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

/* ---- discovery and OpenAPI ---- */

static void handle_document(struct hfd_http_request *http_request) {
        const char *path = hfd_http_request_path(http_request),
                   *accept = hfd_http_request_header(http_request, "accept");
        const char *type = "application/json";
        struct hfd_response response = {.code = 200};

        if (strcmp(hfd_http_request_method(http_request), "GET") != 0 &&
            strcmp(hfd_http_request_method(http_request), "HEAD") != 0) {
                hfd_response_not_allowed(&response);
        } else if (strcmp(path, "/openapi/v2") == 0 && accept && strstr(accept, "proto-openapi")) {
                response.body = hfd_openapi_v2();
                type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        } else {
                response.body = hfd_discovery(path, &response.code);
        }
        if (!response.body && response.code == 404)
                hfd_response_no_such_resource(&response);
        else if (!response.body)
                hfd_response_no_memory(&response);
        hfd_http_request_reply(http_request, response.code, type, NULL, 0, response.body);
        hfd_response_done(&response);
        hfd_http_request_unref(http_request);
}

void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request) {
        const struct hfd_request_info *info = hfd_request_info(http_request);

        if (info->is_resource)
                handle_resource(ctx, http_request, info);
        else
                handle_document(http_request);
}
