/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery, built from the registry when asked: /api, /api/v1, /apis, /apis/<group>,
 * /apis/<group>/<version>, /openapi/v3. */
#include "server/handlers/discovery.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/resources/resource.h"

#define VERBS                                                                                      \
        "[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\","       \
        "\"watch\"]"
#define VERBS_SOLO "[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]"

/* Whether row i is the first of its group. */
static bool first_of_group(const struct hfd_resource *rows, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (strcmp(rows[k].group, rows[i].group) == 0)
                        return false;
        return true;
}

/* Whether row i is the first of its group's version. */
static bool first_of_version(const struct hfd_resource *rows, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (strcmp(rows[k].group, rows[i].group) == 0 &&
                    strcmp(rows[k].version, rows[i].version) == 0)
                        return false;
        return true;
}

static void put_version(struct hf__strbuf *s, const struct hfd_resource *row) {
        char version[128];

        hfd_resource_api_version(row, version);
        hf__strbuf_printf(s, "{\"groupVersion\":\"%s\",\"version\":\"%s\"}", version, row->version);
}

/* row: the group's first, whose version is the preferred one. */
static void put_group(struct hf__strbuf *s, const struct hfd_resource *row, bool alone) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);
        const char *comma = "";

        hf__strbuf_printf(s, "{%s\"name\":\"%s\",\"versions\":[",
                          alone ? "\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," : "", row->group);
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, row->group) != 0 || !first_of_version(rows, i))
                        continue;
                hf__strbuf_puts(s, comma);
                put_version(s, &rows[i]);
                comma = ",";
        }
        hf__strbuf_puts(s, "],\"preferredVersion\":");
        put_version(s, row);
        hf__strbuf_putc(s, '}');
}

static void put_groups(struct hf__strbuf *s) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);
        const char *comma = "";

        hf__strbuf_puts(s, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
        for (size_t i = 0; i < n; i++) {
                if (!*rows[i].group || !first_of_group(rows, i))
                        continue;
                hf__strbuf_puts(s, comma);
                put_group(s, &rows[i], false);
                comma = ",";
        }
        hf__strbuf_puts(s, "]}");
}

static void put_subresource(struct hf__strbuf *s, const struct hfd_resource *row, const char *name,
                            const char *verbs) {
        hf__strbuf_printf(s,
                          ",{\"name\":\"%s/"
                          "%s\",\"singularName\":\"\",\"namespaced\":%s,\"kind\":\"%s\",\"verbs\":%"
                          "s}",
                          row->plural, name, row->namespaced ? "true" : "false", row->kind, verbs);
}

static bool put_resources(struct hf__strbuf *s, const char *group, const char *version) {
        size_t n, n_found = 0;
        const struct hfd_resource *rows = hfd_resources(&n);
        char text[128];

        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, group) != 0 || strcmp(rows[i].version, version) != 0)
                        continue;
                hfd_resource_api_version(&rows[i], text);
                if (!n_found++)
                        hf__strbuf_printf(s,
                                          "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                                          "\"groupVersion\":\"%s\",\"resources\":[",
                                          text);
                else
                        hf__strbuf_putc(s, ',');
                hf__strbuf_printf(s,
                                  "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,"
                                  "\"kind\":\"%s\",\"verbs\":%s",
                                  rows[i].plural, rows[i].singular,
                                  rows[i].namespaced ? "true" : "false", rows[i].kind,
                                  rows[i].no_delete_collection ? VERBS_SOLO : VERBS);
                if (rows[i].short_name)
                        hf__strbuf_printf(s, ",\"shortNames\":[\"%s\"]", rows[i].short_name);
                hf__strbuf_putc(s, '}');
                if (rows[i].subresources & HFD_SUB_FINALIZE)
                        put_subresource(s, &rows[i], "finalize", "[\"update\"]");
                if (rows[i].subresources & HFD_SUB_STATUS)
                        put_subresource(s, &rows[i], "status", "[\"get\",\"patch\",\"update\"]");
        }
        hf__strbuf_puts(s, "]}");
        return n_found > 0;
}

static bool put_one_group(struct hf__strbuf *s, const char *group) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        for (size_t i = 0; i < n; i++)
                if (*group && strcmp(rows[i].group, group) == 0) {
                        put_group(s, &rows[i], true);
                        return true;
                }
        return false;
}

/* ---- OpenAPI v3: the index, and a document per group version that lets kubectl leave validation
 * to the server ---- */

static void put_path_prefix(struct hf__strbuf *s, const struct hfd_resource *row) {
        hf__strbuf_printf(s, *row->group ? "apis/%s/%s" : "api%s/%s", row->group, row->version);
}

static void put_openapi_index(struct hf__strbuf *s) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        hf__strbuf_puts(s, "{\"paths\":{");
        for (size_t i = 0; i < n; i++) {
                if (!first_of_version(rows, i))
                        continue;
                hf__strbuf_puts(s, i ? ",\"" : "\"");
                put_path_prefix(s, &rows[i]);
                hf__strbuf_puts(s, "\":{\"serverRelativeURL\":\"/openapi/v3/");
                put_path_prefix(s, &rows[i]);
                hf__strbuf_puts(s, "\"}");
        }
        hf__strbuf_puts(s, "}}");
}

static bool put_openapi(struct hf__strbuf *s, const char *group, const char *version) {
        size_t n, n_found = 0;
        const struct hfd_resource *rows = hfd_resources(&n);

        hf__strbuf_puts(s, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Holdfast\",\"version\":"
                           "\"v1\"},\"paths\":{");
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, group) != 0 || strcmp(rows[i].version, version) != 0)
                        continue;
                hf__strbuf_puts(s, n_found++ ? ",\"/" : "\"/");
                put_path_prefix(s, &rows[i]);
                hf__strbuf_printf(s,
                                  "%s/%s/"
                                  "{name}\":{\"patch\":{\"parameters\":[{\"name\":"
                                  "\"fieldValidation\",\"in\":\"query\",\"schema\":"
                                  "{\"type\":\"string\"}},{\"name\":\"dryRun\",\"in\":\"query\","
                                  "\"schema\":{\"type\":\"string\"}}],"
                                  "\"responses\":{\"200\":{\"description\":\"OK\"}},\"x-kubernetes-"
                                  "group-version-kind\":{\"group\":\"%s\","
                                  "\"version\":\"%s\",\"kind\":\"%s\"}}}",
                                  rows[i].namespaced ? "/namespaces/{namespace}" : "",
                                  rows[i].plural, group, version, rows[i].kind);
        }
        hf__strbuf_puts(s, "},\"components\":{\"schemas\":{");
        n_found = 0;
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].group, group) != 0 || strcmp(rows[i].version, version) != 0)
                        continue;
                hf__strbuf_printf(s,
                                  "%s\"%s\":{\"type\":\"object\",\"x-kubernetes-group-version-"
                                  "kind\":[{\"group\":\"%s\",\"version\":\"%s\","
                                  "\"kind\":\"%s\"}]}",
                                  n_found++ ? "," : "", rows[i].kind, group, version, rows[i].kind);
        }
        hf__strbuf_puts(s, "}}}");
        return n_found > 0;
}

/* Cuts "group/version" of a path's rest; false when it has another form. */
static bool group_version(const char *rest, char group[256], char version[64]) {
        const char *slash = strchr(rest, '/');

        if (!slash || strchr(slash + 1, '/') || slash - rest > 255 || strlen(slash + 1) > 63)
                return false;
        (void)snprintf(group, 256, "%.*s", (int)(slash - rest), rest);
        (void)snprintf(version, 64, "%s", slash + 1);
        return true;
}

static bool put_document(struct hf__strbuf *s, const char *path) {
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
                put_openapi_index(s);
                return true;
        }
        if (strcmp(path, "/openapi/v3/api/v1") == 0)
                return put_openapi(s, "", "v1");
        if (strncmp(path, "/openapi/v3/apis/", 17) == 0)
                return group_version(path + 17, group, version) && put_openapi(s, group, version);
        if (strncmp(path, "/apis/", 6) != 0)
                return false;
        return strchr(path + 6, '/')
                       ? group_version(path + 6, group, version) && put_resources(s, group, version)
                       : put_one_group(s, path + 6);
}

struct hf__buf *hfd_discovery(const char *path, int *ret_code) {
        struct hf__strbuf s = {0};
        char trimmed[512];
        struct hf__buf *buf = NULL;
        size_t n = strlen(path);

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
