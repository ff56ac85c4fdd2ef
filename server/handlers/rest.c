/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests become calls, answers become replies; nothing else is decided here. */
#include "server/handlers/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "server/filters/filters.h"
#include "server/filters/request_info.h"
#include "server/filters/status_response.h"
#include "server/handlers/protobuf_body.h"

/* A larger answer goes out as it is: laying it out takes many times its memory, on a thread that
 * serves others too. */
#define PRETTY_MAX ((size_t)4 << 20)

#define WARNINGS_MAX 8
#define WARNING_TEXT 320

/* ---- replies ---- */

static bool wants_pretty(struct hfd_request *request) {
        const char *agent = hfd_request_header(request, "user-agent");
        char value[8];

        if (!hfd_query_get(hfd_request_query(request), "pretty", 0, value, sizeof value))
                return hfd_query_bool(hfd_request_query(request), "pretty");
        return agent && (!strncmp(agent, "curl", 4) || !strncmp(agent, "Wget", 4) ||
                         !strncmp(agent, "Mozilla/5.0", 11));
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

static void reply(struct hfd_request *request, const struct hfd_answer *answer,
                  const char *unknown_fields) {
        struct hfd_header headers[4 + WARNINGS_MAX];
        char warnings[WARNINGS_MAX][WARNING_TEXT];
        size_t n = 0;
        char retry[16];
        const char *fence = hfd_request_header(request, "holdfast-fence");
        bool small = answer->body && answer->body->n <= PRETTY_MAX;
        struct hf__buf *body = small && wants_pretty(request) ? pretty(answer->body) : NULL;

        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        if (answer->status.retry_after_s) {
                (void)snprintf(retry, sizeof retry, "%u", answer->status.retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry};
        }
        if (answer->fence_compared && fence)
                headers[n++] = (struct hfd_header){"holdfast-fence", fence};
        n += put_warnings(unknown_fields, warnings, headers + n);
        hfd_request_reply(request, answer->code, "application/json", headers, n,
                          body ? body : answer->body);
        hf__buf_unref(body);
}

void hfd_rest_reply(struct hfd_request *request, const struct hfd_answer *answer) {
        reply(request, answer, NULL);
}

void hfd_rest_free(struct hfd_rest_call *rest) {
        hfd_options_done(&rest->call.options);
        hf__strbuf_done(&rest->translated);
        free(rest->fence);
        hfd_request_unref(rest->request);
        free(rest);
}

static void on_done(struct hfd_call *call, const struct hfd_answer *answer) {
        struct hfd_rest_call *rest = (struct hfd_rest_call *)call;

        reply(rest->request, answer, answer->status.error ? NULL : call->options.unknown_fields);
        hfd_rest_free(rest);
}

/* ---- negotiation ---- */

/* One element of Accept: `application/json;as=Table;v=v1;g=meta.k8s.io`. False: not one we can
 * give. */
static bool accepts(struct hfd_call *call, char *element) {
        char *save = NULL, *type = strtok_r(element, ";", &save), as[40] = "", version[16] = "v1",
             group[64] = "meta.k8s.io";

        while (type && *type == ' ')
                type++;
        if (!type || (strcmp(type, "application/json") && strcmp(type, "*/*") &&
                      strcmp(type, "application/*")))
                return false;
        for (char *p = strtok_r(NULL, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
                while (*p == ' ')
                        p++;
                if (!strncmp(p, "as=", 3))
                        (void)snprintf(as, sizeof as, "%s", p + 3);
                else if (!strncmp(p, "v=", 2))
                        (void)snprintf(version, sizeof version, "%s", p + 2);
                else if (!strncmp(p, "g=", 2))
                        (void)snprintf(group, sizeof group, "%s", p + 2);
        }
        bool reads = call->verb == HFD_GET || call->verb == HFD_LIST || call->verb == HFD_WATCH;
        if (!*as)
                return true;
        if (!reads || strcmp(group, "meta.k8s.io") ||
            (strcmp(version, "v1") && strcmp(version, "v1beta1")))
                return false;
        (void)snprintf(call->table_version, sizeof call->table_version, "%s", version);
        if (!strcmp(as, "Table"))
                call->format = HFD_AS_TABLE;
        else if (!strcmp(as, "PartialObjectMetadata") && call->verb != HFD_LIST)
                call->format = HFD_AS_PARTIAL;
        else if (!strcmp(as, "PartialObjectMetadataList") && call->verb == HFD_LIST)
                call->format = HFD_AS_PARTIAL;
        else
                return false;
        return true;
}

static bool negotiate(struct hfd_call *call, const char *accept) {
        char copy[2048], *save = NULL;

        if (!accept || !*accept || strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save))
                if (accepts(call, e))
                        return true;
        return false;
}

static bool is_json(const char *content_type) {
        return !content_type || !*content_type ||
               !strncasecmp(content_type, "application/json", 16);
}

/* ---- a request for a resource ---- */

static bool set_verb(struct hfd_call *call, const char *verb) {
        static const struct {
                const char *name;
                enum hfd_verb verb;
        } verbs[] = {{"get", HFD_GET},           {"list", HFD_LIST},
                     {"watch", HFD_LIST},        {"create", HFD_CREATE},
                     {"update", HFD_UPDATE},     {"patch", HFD_PATCH},
                     {"delete", HFD_DELETE_ONE}, {"deletecollection", HFD_DELETE_MANY}};

        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (!strcmp(verbs[i].name, verb)) {
                        call->verb = verbs[i].verb;
                        return true;
                }
        return false;
}

/* Which patch the body is. False: answer is filled. */
static bool take_patch(struct hfd_rest_call *rest, struct hfd_answer *answer) {
        static const struct {
                const char *type;
                enum hfd_patch patch;
        } types[] = {{"application/json-patch+json", HFD_PATCH_JSON},
                     {"application/merge-patch+json", HFD_PATCH_MERGE},
                     {"application/strategic-merge-patch+json", HFD_PATCH_STRATEGIC}};
        const char *type = hfd_request_header(rest->request, "content-type");
        bool strategic = !rest->call.resource->no_strategic_patch;

        for (size_t i = 0; type && i < (strategic ? 3 : 2); i++) {
                size_t n = strlen(types[i].type);
                if (strncasecmp(type, types[i].type, n) || (type[n] && !strchr("; ", type[n])))
                        continue;
                rest->call.patch = types[i].patch;
                return true;
        }
        hfd_answer_status(answer, HF_E_INVALID, 415, "UnsupportedMediaType",
                          strategic ? "the body of the request was in an unknown format - accepted "
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
static bool take_body(struct hfd_rest_call *rest, struct hfd_answer *answer) {
        struct hfd_call *call = &rest->call;
        const char *type = hfd_request_header(rest->request, "content-type");
        struct hf__json *json = NULL;

        if (is_json(type))
                return true;
        if (!hfd_is_protobuf(type) || !hfd_protobuf_known(call->resource)) {
                hfd_answer_status(answer, HF_E_INVALID, 415, "UnsupportedMediaType",
                                  "the body of the request was in an unknown format - accepted "
                                  "media types include: application/json, "
                                  "application/vnd.kubernetes.protobuf",
                                  NULL);
                return false;
        }
        int e = hfd_protobuf_to_json(call->resource,
                                     call->verb == HFD_DELETE_ONE || call->verb == HFD_DELETE_MANY,
                                     call->body, call->n_body, &json);
        if (!e) {
                hf__json_print(json, &rest->translated);
                e = rest->translated.error;
        }
        hf__json_free(json);
        if (e == HF_E_INVALID)
                hfd_answer_bad_request(answer,
                                       "the object provided is unrecognized (must be of type %s): "
                                       "malformed protobuf",
                                       call->resource->kind);
        else if (e)
                hfd_answer_no_memory(answer);
        call->body = rest->translated.data;
        call->n_body = rest->translated.n;
        return !e;
}

/* False: answer is filled. */
static bool take_fence(struct hfd_rest_call *rest, const char *text, struct hfd_answer *answer) {
        rest->fence = malloc(sizeof *rest->fence);
        if (!rest->fence) {
                hfd_answer_no_memory(answer);
                return false;
        }
        if (hf_fence_parse(text, strlen(text), rest->fence)) {
                hfd_answer_bad_request(answer,
                                       "the header " HF_FENCE_HEADER
                                       " is malformed: namespace/name;term;identity is expected");
                return false;
        }
        rest->call.fence = rest->fence;
        return true;
}

/* Whether the verb is one of this path's. */
static bool verb_fits(const struct hfd_call *call, const struct hfd_request_path *path) {
        if (call->resource->namespaced && !*path->ns && call->verb != HFD_LIST)
                return false;
        if (call->subresource)
                return call->verb == HFD_GET || call->verb == HFD_UPDATE || call->verb == HFD_PATCH;
        return call->verb == HFD_CREATE
                       ? !*path->name
                       : (call->verb != HFD_UPDATE && call->verb != HFD_PATCH) || *path->name;
}

/* Checks what does not depend on the verb's own work. False: answer is filled. */
static bool fill_call(struct hfd_rest_call *rest, const struct hfd_request_path *path,
                      const char *verb, struct hfd_answer *answer) {
        struct hfd_request *request = rest->request;
        struct hfd_call *call = &rest->call;
        const char *fence = hfd_request_header(request, "holdfast-fence");

        call->resource = hfd_resource_find(path->group, path->version, path->resource);
        if (!call->resource || (*path->ns && !call->resource->namespaced) ||
            !hfd_resource_subresource(call->resource, path->subresource, &call->subresource)) {
                hfd_answer_no_such_resource(answer);
                return false;
        }
        if (!set_verb(call, verb) || !verb_fits(call, path)) {
                hfd_answer_not_allowed(answer);
                return false;
        }
        _Static_assert(sizeof call->ns == sizeof path->ns && sizeof call->name == sizeof path->name,
                       "what fits there fits here");
        (void)stpcpy(call->ns, path->ns);
        (void)stpcpy(call->name, path->name);
        call->body = hfd_request_body(request, &call->n_body);
        call->deadline = hfd_api_now(rest->api) +
                         (call->verb == HFD_DELETE_MANY ? HFD_MANY_DEADLINE : HFD_DEFAULT_DEADLINE);
        if (!negotiate(call, hfd_request_header(request, "accept"))) {
                hfd_answer_status(answer, HF_E_INVALID, 406, "NotAcceptable",
                                  "only the following media types are accepted: application/json",
                                  NULL);
                return false;
        }
        bool deletes = call->verb == HFD_DELETE_ONE || call->verb == HFD_DELETE_MANY;
        bool sends =
                call->verb == HFD_CREATE || call->verb == HFD_UPDATE || (deletes && call->n_body);
        if (sends && !take_body(rest, answer))
                return false;
        if (call->verb == HFD_PATCH && !take_patch(rest, answer))
                return false;
        if (fence && (sends || deletes || call->verb == HFD_PATCH) &&
            !take_fence(rest, fence, answer))
                return false;
        return hfd_options_parse(call, hfd_request_query(request), answer);
}

static void handle_resource(struct hfd_api *api, struct hfd_request *request,
                            const struct hfd_request_path *path) {
        struct hfd_rest_call *rest = malloc(sizeof *rest);
        const char *verb =
                hfd_request_verb(hfd_request_method(request), path, hfd_request_query(request));
        struct hfd_answer answer = {0};

        if (!rest) {
                hfd_answer_no_memory(&answer);
                hfd_rest_reply(request, &answer);
                hfd_answer_done(&answer);
                hfd_request_unref(request);
                return;
        }
        *rest = (struct hfd_rest_call){.call.done = on_done, .api = api, .request = request};
        if (!fill_call(rest, path, verb, &answer)) {
                hfd_rest_reply(request, &answer);
                hfd_answer_done(&answer);
                hfd_rest_free(rest);
                return;
        }
        /* A single object is watched as a collection of one. */
        if (rest->call.verb == HFD_WATCH)
                hfd_rest_watch(rest);
        else
                hfd_api_call(api, &rest->call);
}

/* ---- discovery and OpenAPI ---- */

static void handle_document(struct hfd_request *request) {
        const char *path = hfd_request_path(request),
                   *accept = hfd_request_header(request, "accept");
        const char *type = "application/json";
        struct hfd_answer answer = {.code = 200};

        if (strcmp(hfd_request_method(request), "GET") &&
            strcmp(hfd_request_method(request), "HEAD")) {
                hfd_answer_not_allowed(&answer);
        } else if (!strcmp(path, "/openapi/v2") && accept && strstr(accept, "proto-openapi")) {
                answer.body = hfd_openapi_v2();
                type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        } else {
                answer.body = hfd_discovery(path, &answer.code);
        }
        if (!answer.body && answer.code == 404)
                hfd_answer_no_such_resource(&answer);
        else if (!answer.body)
                hfd_answer_no_memory(&answer);
        hfd_request_reply(request, answer.code, type, NULL, 0, answer.body);
        hfd_answer_done(&answer);
        hfd_request_unref(request);
}

/* The filters authorize every path alike; a host without them has no user to ask about. */
void hfd_api_handle(void *ctx, struct hfd_request *request) {
        struct hfd_request_path path;
        struct hfd_answer answer = {0};

        if (hfd_request_path_parse(hfd_request_path(request), &path)) {
                hfd_answer_bad_request(&answer, "the path is not valid");
                hfd_rest_reply(request, &answer);
                hfd_answer_done(&answer);
                hfd_request_unref(request);
        } else if (path.is_resource) {
                handle_resource(ctx, request, &path);
        } else {
                handle_document(request);
        }
}
