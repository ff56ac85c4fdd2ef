/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the documents of discovery, /api, /apis and what is below them, and the list of paths at
 * /. A document has its plain form; the two roots, /api and /apis, have the aggregated one as well,
 * which contains the resources of all groups below the root. The header Accept chooses the form.
 *
 * Invariant: an element of Accept that does not fit the document is skipped. The response is a 406
 * only if no element fits.
 */
#include "server/handlers/documents/documents.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/filters/media_type.h"
#include "server/handlers/documents/aggregated_discovery.h"
#include "server/handlers/documents/discovery.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/response.h"

#define ETAG_DIGITS 64 /* hexadecimal digits of a SHA-256 */
#define TYPE_MAX    96 /* bytes of a content type, with the NUL */

enum form { FORM_NONE, FORM_JSON, FORM_AGGREGATED };

struct document {
        enum form form;
        char version[16]; /* of aggregated discovery */
};

/* ---- the form ---- */

static bool is_api_root(const char *path) {
        return strcmp(path, "/api") == 0 || strcmp(path, "/api/") == 0 ||
               strcmp(path, "/apis") == 0 || strcmp(path, "/apis/") == 0;
}

static bool is_aggregated(const struct hfd_media_type *media) {
        return strcmp(media->as, "APIGroupDiscoveryList") == 0 &&
               strcmp(media->group, "apidiscovery.k8s.io") == 0 &&
               (strcmp(media->version, "v2") == 0 || strcmp(media->version, "v2beta1") == 0);
}

/* The form that one element of Accept asks for. */
static struct document accept_element(const char *path, char *element) {
        struct document document = {.form = FORM_NONE};
        struct hfd_media_type media;

        if (!hfd_media_type_parse(element, &media))
                return document;
        if (hfd_media_type_is_json(&media) && is_api_root(path) && is_aggregated(&media)) {
                document.form = FORM_AGGREGATED;
                memcpy(document.version, media.version, sizeof document.version);
        } else if (hfd_media_type_is_json(&media) && !*media.as) {
                document.form = FORM_JSON;
        }
        return document;
}

/* The form that the client gets. The first element of Accept that fits wins; FORM_NONE: none fits.
 * A header that is absent, empty or too long to be read means JSON. */
static struct document negotiate_document(const char *path, const char *accept) {
        struct document document = {.form = FORM_JSON};
        char copy[HFD_ACCEPT_MAX], *save = NULL;

        if (!accept || !*accept || strlen(accept) >= sizeof copy)
                return document;
        document.form = FORM_NONE;
        memcpy(copy, accept, strlen(accept) + 1);
        for (char *e = strtok_r(copy, ",", &save); e && document.form == FORM_NONE;
             e = strtok_r(NULL, ",", &save))
                document = accept_element(path, e);
        return document;
}

/* ---- the response ---- */

/* Sends the body, or the failure if there is none, and drops the reference to the request. */
static void respond_with_document(struct hfd_http_request *http_request,
                                  struct hfd_response *response, const char *type) {
        static const struct hfd_header headers[] = {{"cache-control", "no-cache, private"}};

        if (!response->body && response->code == 404)
                hfd_response_no_such_resource(response);
        else if (!response->body)
                hfd_response_no_memory(response);
        hfd_http_request_reply(http_request, response->code, type, headers, 1, response->body);
        hfd_response_done(response);
        hfd_http_request_unref(http_request);
}

/* Clients keep this document, and ask with its ETag whether it has changed. As in kube-apiserver
 * If-None-Match must be exactly that ETag: a list of ETags, or a weak one, gets the document again.
 */
static void respond_aggregated(struct hfd_custom_table *table,
                               struct hfd_http_request *http_request, const char *path,
                               const char *version) {
        struct hfd_response response = {.code = 200};
        const char *seen = hfd_http_request_header(http_request, "if-none-match");
        char etag[ETAG_DIGITS + 3], type[TYPE_MAX]; /* 3: two quotes and the NUL */

        response.body = hfd_aggregated_discovery(table, strncmp(path, "/apis", 5) != 0, version);
        if (!response.body) {
                respond_with_document(http_request, &response, "application/json");
                return;
        }
        etag[0] = '"';
        hf__sha256_text(response.body->data, response.body->n, ETAG_DIGITS, etag + 1);
        memcpy(etag + 1 + ETAG_DIGITS, "\"", 2);
        const struct hfd_header headers[] = {{"etag", etag},
                                             {"vary", "Accept"},
                                             {"cache-control", "public"}};
        (void)snprintf(type, sizeof type,
                       "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
                       version);
        bool is_known = seen && strcmp(seen, etag) == 0;
        hfd_http_request_reply(http_request, is_known ? 304 : 200, is_known ? NULL : type, headers,
                               3, is_known ? NULL : response.body);
        hfd_response_done(&response);
        hfd_http_request_unref(http_request);
}

void hfd_documents_handle(struct hfd_custom_table *table, struct hfd_http_request *http_request) {
        const char *method = hfd_http_request_method(http_request),
                   *path = hfd_http_request_path(http_request);
        struct hfd_response response = {.code = 200};
        struct document document =
                negotiate_document(path, hfd_http_request_header(http_request, "accept"));

        if (strcmp(method, "GET") != 0 &&
            (strcmp(method, "HEAD") != 0 || !hfd_discovery_takes_head(table, path))) {
                hfd_response_not_allowed(&response);
        } else if (document.form == FORM_AGGREGATED) {
                respond_aggregated(table, http_request, path, document.version);
                return;
        } else {
                response.body = hfd_discovery(table, path, &response.code);
        }
        /* A path without a document is a 404, whatever the client accepts. */
        if (document.form == FORM_NONE && response.body && response.code == 200) {
                hfd_response_done(&response);
                response = (struct hfd_response){0};
                hfd_response_status(&response, HF_E_INVALID, 406, "NotAcceptable",
                                    "only the following media types are accepted: application/json",
                                    NULL);
        }
        respond_with_document(http_request, &response, "application/json");
}

/* ---- the list of paths ---- */

/* Adds the path of the group or, if with_version, of the version that begins with row. prefix: ""
 * for discovery, "/openapi/v3" for OpenAPI. */
static bool add_path(char **paths, size_t *n, const struct hfd_resource *row, bool with_version,
                     const char *prefix) {
        struct hf__strbuf s = {0};

        hf__strbuf_printf(&s, "%s/%s", prefix, *row->group ? "apis/" : "api");
        hf__strbuf_puts(&s, row->group);
        if (with_version)
                hf__strbuf_printf(&s, "/%s", row->version);
        if (s.error != 0) {
                hf__strbuf_done(&s);
                return false;
        }
        assert(s.data[0] == '/');
        paths[(*n)++] = s.data; /* paths owns it now */
        return true;
}

/* Adds the paths of the groups and versions, which are at most three for each row. */
static bool add_api_paths(char **paths, size_t *n, const struct hfd_served_rows *rows) {
        bool ok = true;

        for (size_t i = 0; ok && i < rows->n; i = hfd_served_group_end(rows, i))
                ok = add_path(paths, n, rows->of[i], false, "");
        for (size_t i = 0; ok && i < rows->n; i = hfd_served_version_end(rows, i))
                ok = add_path(paths, n, rows->of[i], true, "") &&
                     add_path(paths, n, rows->of[i], true, "/openapi/v3");
        return ok;
}

/* The list at /, sorted as in Kubernetes. The paths of groups and versions change with the
 * definitions of custom resources. The others are fixed; kube-apiserver's list has more, such as
 * those of single health checks. NULL = out of memory. */
static struct hf__buf *make_root(const struct hfd_served_rows *rows) {
        static const char *const others[] = {"/.well-known/openid-configuration",
                                             "/apis",
                                             "/healthz",
                                             "/livez",
                                             "/metrics",
                                             "/metrics/slis",
                                             "/openapi/v2",
                                             "/openapi/v3",
                                             "/openid/v1/jwks",
                                             "/readyz",
                                             "/version"};
        size_t n_others = sizeof others / sizeof others[0], n = 0;
        char **paths = malloc((3 * rows->n + n_others) * sizeof *paths);
        struct hf__strbuf s = {0};

        if (!paths)
                return NULL;
        bool ok = add_api_paths(paths, &n, rows);

        for (size_t i = 0; ok && i < n_others; i++) {
                paths[n] = strdup(others[i]);
                ok = paths[n] != NULL;
                n += ok;
        }
        qsort(paths, n, sizeof paths[0], hf__text_compare);
        hf__strbuf_puts(&s, "{\n  \"paths\": [\n");
        for (size_t i = 0; i < n; i++) {
                hf__strbuf_printf(&s, "    \"%s\"%s\n", paths[i], i + 1 < n ? "," : "");
                free(paths[i]);
        }
        free(paths);
        hf__strbuf_puts(&s, "  ]\n}\n");
        struct hf__buf *buf = ok ? hf__strbuf_to_buf(&s) : NULL;
        hf__strbuf_done(&s);
        return buf;
}

void hfd_documents_handle_root(void *ctx, struct hfd_http_request *http_request) {
        const char *method = hfd_http_request_method(http_request);
        struct hfd_response response = {.code = 200};
        struct hfd_served_rows *rows = NULL;

        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
                hfd_response_not_allowed(&response);
        else
                rows = hfd_served_rows_new(ctx);
        if (rows)
                response.body = make_root(rows);
        hfd_served_rows_free(rows);
        respond_with_document(http_request, &response, "application/json");
}
