/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery. Documents are generated for each request, because clients request them rarely and
 * cache them.
 *
 * Invariant: groups, versions and kinds come from the resource table; only the core version, v1, is
 * also written here. The table has no list of groups and versions: the first row of a group or
 * version represents it here.
 */
#include "server/handlers/discovery.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/handlers/openapi.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

#define VERBS                                                                                      \
        "[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\","       \
        "\"watch\"]"
/* For a resource without deletecollection. */
#define VERBS_WITHOUT_DELETE_COLLECTION                                                            \
        "[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]"

/* metav1.GroupVersionForDiscovery. */
static void put_version(struct hf__strbuf *s, const struct hfd_resource *row) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(row, version);
        hf__strbuf_printf(s, "{\"groupVersion\":\"%s\",\"version\":\"%s\"}", version, row->version);
}

/*
 * metav1.APIGroup. row is the first row of its group, so it has the preferred version. is_document:
 * the group is a whole document and not an element of a list, so it needs a kind.
 */
static void put_group(struct hf__strbuf *s, const struct hfd_resource *row, bool is_document) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);
        const char *comma = "";

        hf__strbuf_printf(s, "{%s\"name\":\"%s\",\"versions\":[",
                          is_document ? "\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," : "",
                          row->group);
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, row->group) != 0 ||
                    !hfd_resource_starts_version(&rows[i]))
                        continue;
                hf__strbuf_puts(s, comma);
                put_version(s, &rows[i]);
                comma = ",";
        }
        hf__strbuf_puts(s, "],\"preferredVersion\":");
        put_version(s, row);
        hf__strbuf_putc(s, '}');
}

/* metav1.APIGroupList. It does not contain the core group, which clients find at /api. */
static void put_groups(struct hf__strbuf *s) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);
        const char *comma = "";

        hf__strbuf_puts(s, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
        for (size_t i = 0; i < n; i++) {
                if (!*rows[i].group || !hfd_resource_starts_group(&rows[i]))
                        continue;
                hf__strbuf_puts(s, comma);
                put_group(s, &rows[i], false);
                comma = ",";
        }
        hf__strbuf_puts(s, "]}");
}

/* Adds the metav1.APIResource of a subresource after that of its resource. */
static void put_subresource(struct hf__strbuf *s, const struct hfd_resource *row, const char *name,
                            const char *verbs) {
        hf__strbuf_printf(s,
                          ",{\"name\":\"%s/"
                          "%s\",\"singularName\":\"\",\"namespaced\":%s,\"kind\":\"%s\",\"verbs\":%"
                          "s}",
                          row->plural, name, row->namespaced ? "true" : "false", row->kind, verbs);
}

/* Adds the metav1.APIResource of a row, and those of its subresources. */
static void put_resource(struct hf__strbuf *s, const struct hfd_resource *row) {
        hf__strbuf_printf(s,
                          "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,"
                          "\"kind\":\"%s\",\"verbs\":%s",
                          row->plural, row->singular, row->namespaced ? "true" : "false", row->kind,
                          row->no_delete_collection ? VERBS_WITHOUT_DELETE_COLLECTION : VERBS);
        if (row->short_name)
                hf__strbuf_printf(s, ",\"shortNames\":[\"%s\"]", row->short_name);
        hf__strbuf_putc(s, '}');
        if (row->subresources & HFD_SUB_FINALIZE)
                put_subresource(s, row, "finalize", "[\"update\"]");
        if (row->subresources & HFD_SUB_STATUS)
                put_subresource(s, row, "status", "[\"get\",\"patch\",\"update\"]");
}

/* metav1.APIResourceList. False: the group has no such version. */
static bool put_resources(struct hf__strbuf *s, const char *group, const char *version) {
        size_t n, n_found = 0;
        const struct hfd_resource *rows = hfd_resources(&n);
        char text[HFD_API_VERSION_MAX];

        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, group) != 0 || strcmp(rows[i].version, version) != 0)
                        continue;
                hfd_resource_api_version(&rows[i], text);
                if (n_found == 0)
                        hf__strbuf_printf(s,
                                          "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                                          "\"groupVersion\":\"%s\",\"resources\":[",
                                          text);
                else
                        hf__strbuf_putc(s, ',');
                put_resource(s, &rows[i]);
                n_found++;
        }
        hf__strbuf_puts(s, "]}");
        return n_found > 0;
}

/* Appends the document of one group. False: there is no such group. */
static bool put_group_document(struct hf__strbuf *s, const char *group) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        for (size_t i = 0; i < n; i++)
                if (*group && strcmp(rows[i].group, group) == 0) {
                        put_group(s, &rows[i], true);
                        return true;
                }
        return false;
}

/* ---- paths ---- */

/* Splits "GROUP/VERSION". False: rest has another form. */
static bool split_group_version(const char *rest, char group[256], char version[64]) {
        const char *slash = strchr(rest, '/');

        if (!slash || strchr(slash + 1, '/') || slash - rest > 255 || strlen(slash + 1) > 63)
                return false;
        (void)snprintf(group, 256, "%.*s", (int)(slash - rest), rest);
        (void)snprintf(version, 64, "%s", slash + 1);
        return true;
}

/* rest: the path after "/apis/". */
static bool put_below_apis(struct hf__strbuf *s, const char *rest) {
        char group[256], version[64];

        if (!strchr(rest, '/'))
                return put_group_document(s, rest);
        return split_group_version(rest, group, version) && put_resources(s, group, version);
}

/* False: there is no document at path. */
static bool put_document(struct hf__strbuf *s, const char *path) {
        static const char openapi_apis[] = "/openapi/v3/apis/", apis[] = "/apis/";
        char group[256], version[64];

        if (strcmp(path, "/api") == 0) {
                hf__strbuf_puts(s, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                                   "\"serverAddressByClientCIDRs\":[]}");
                return true;
        }
        if (strcmp(path, "/api/v1") == 0)
                return put_resources(s, "", "v1");
        if (strcmp(path, "/apis") == 0) {
                put_groups(s);
                return true;
        }
        if (strcmp(path, "/openapi/v3") == 0) {
                hfd_openapi_v3_put_index(s);
                return true;
        }
        if (strcmp(path, "/openapi/v3/api/v1") == 0)
                return hfd_openapi_v3_put(s, "", "v1");
        if (strncmp(path, openapi_apis, sizeof openapi_apis - 1) == 0)
                return split_group_version(path + sizeof openapi_apis - 1, group, version) &&
                       hfd_openapi_v3_put(s, group, version);
        if (strncmp(path, apis, sizeof apis - 1) == 0)
                return put_below_apis(s, path + sizeof apis - 1);
        return false;
}

struct hf__buf *hfd_discovery(const char *path, int *ret_code) {
        struct hf__strbuf s = {0};
        char trimmed[512]; /* a longer path is cut; no document has such a path */
        struct hf__buf *buf = NULL;
        size_t n = strlen(path);

        assert(*path == '/');
        while (n > 1 && path[n - 1] == '/')
                n--;
        (void)snprintf(trimmed, sizeof trimmed, "%.*s", (int)(n < 511 ? n : 511), path);
        if (put_document(&s, trimmed)) {
                buf = hf__strbuf_to_buf(&s);
                *ret_code = buf ? 200 : 500;
        } else {
                *ret_code = 404;
        }
        hf__strbuf_done(&s);
        return buf;
}

/* ---- HTTP ---- */

/* The v2 document exists only as protobuf. A client that accepts only JSON gets a 404. */
static bool wants_openapi_v2(struct hfd_http_request *http_request) {
        const char *accept = hfd_http_request_header(http_request, "accept");

        return strcmp(hfd_http_request_path(http_request), "/openapi/v2") == 0 && accept &&
               strstr(accept, "proto-openapi");
}

void hfd_discovery_handle(struct hfd_http_request *http_request) {
        const char *method = hfd_http_request_method(http_request), *type = "application/json";
        struct hfd_response response = {.code = 200};

        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
                hfd_response_not_allowed(&response);
        } else if (wants_openapi_v2(http_request)) {
                response.body = hfd_openapi_v2();
                type = HFD_OPENAPI_V2_TYPE;
        } else {
                response.body = hfd_discovery(hfd_http_request_path(http_request), &response.code);
        }
        if (!response.body && response.code == 404)
                hfd_response_no_such_resource(&response);
        else if (!response.body)
                hfd_response_no_memory(&response);
        hfd_http_request_reply(http_request, response.code, type, NULL, 0, response.body);
        hfd_response_done(&response);
        hfd_http_request_unref(http_request);
}
