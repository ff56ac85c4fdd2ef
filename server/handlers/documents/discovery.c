/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery, in its older form: a document for each group, and for each version. Documents are
 * generated for each request, because clients request them rarely and cache them.
 *
 * Invariant: groups, versions and kinds come from the rows (resources) that are served now; only
 * the core version, v1, is also written here. There is no list of groups and versions: the first
 * row of a group or version represents it here.
 */
#include "server/handlers/documents/discovery.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

#define PATH_BYTES_MAX 512 /* of a path without the slashes at its end, with the NUL */

static const char below_apis[] = "/apis/";

/* Sorted by name, as kube-apiserver sorts them, so that a client that compares documents of two
 * servers sees no difference. */
const char *hfd_discovery_verbs(const struct hfd_resource *row) {
        if (row->is_report)
                return "[\"get\",\"list\"]";
        if (row->is_review)
                return "[\"create\"]";
        return row->no_delete_collection
                       ? "[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]"
                       : "[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\","
                         "\"update\",\"watch\"]";
}

bool hfd_discovery_subresource(const struct hfd_resource *row, size_t i,
                               struct hfd_discovery_subresource *ret_sub) {
        static const struct {
                enum hfd_subresource bit;
                struct hfd_discovery_subresource sub;
        } all[] = {{HFD_SUB_APPROVAL, {"approval", "[\"get\",\"patch\",\"update\"]", NULL}},
                   {HFD_SUB_BINDING, {"binding", "[\"create\"]", NULL}},
                   {HFD_SUB_EPHEMERAL_CONTAINERS,
                    {"ephemeralcontainers", "[\"get\",\"patch\",\"update\"]", NULL}},
                   {HFD_SUB_EVICTION, {"eviction", "[\"create\"]", NULL}},
                   {HFD_SUB_FINALIZE, {"finalize", "[\"update\"]", NULL}},
                   {HFD_SUB_RESIZE, {"resize", "[\"get\",\"patch\",\"update\"]", NULL}},
                   {HFD_SUB_SCALE, {"scale", "[\"get\",\"patch\",\"update\"]", NULL}},
                   {HFD_SUB_STATUS, {"status", "[\"get\",\"patch\",\"update\"]", NULL}},
                   {HFD_SUB_TOKEN, {"token", "[\"create\"]", NULL}}};

        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
                if (row->subresources & (unsigned)all[k].bit && i-- == 0) {
                        *ret_sub = all[k].sub;
                        ret_sub->other = hfd_resource_of_part(all[k].bit);
                        return true;
                }
        return false;
}

/* Writes a metav1.GroupVersionForDiscovery. */
static void put_version(struct hf__strbuf *s, const struct hfd_resource *row) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(row, version);
        hf__strbuf_printf(s, "{\"groupVersion\":\"%s\",\"version\":\"%s\"}", version, row->version);
}

void hfd_discovery_put_versions(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i,
                                void (*put)(struct hf__strbuf *s,
                                            const struct hfd_served_rows *rows, size_t i)) {
        size_t end = hfd_served_group_end(rows, i);

        for (size_t at = i; at < end; at = hfd_served_version_end(rows, at)) {
                if (at > i)
                        hf__strbuf_putc(s, ',');
                put(s, rows, at);
        }
}

static void put_version_of(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i) {
        put_version(s, rows->of[i]);
}

/*
 * metav1.APIGroup. Row i is the first one of its group, so it has the preferred version.
 * is_document: the group is a whole document and not an element of a list, so it needs a kind.
 */
static void put_group(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i,
                      bool is_document) {
        hf__strbuf_printf(s, "{%s\"name\":\"%s\",\"versions\":[",
                          is_document ? "\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," : "",
                          rows->of[i]->group);
        hfd_discovery_put_versions(s, rows, i, put_version_of);
        hf__strbuf_puts(s, "],\"preferredVersion\":");
        put_version(s, rows->of[i]);
        hf__strbuf_putc(s, '}');
}

/* Writes a metav1.APIGroupList. It does not contain the core group, which clients find at /api. */
static void put_groups(struct hf__strbuf *s, const struct hfd_served_rows *rows) {
        const char *comma = "";

        hf__strbuf_puts(s, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
        for (size_t i = 0; i < rows->n; i = hfd_served_group_end(rows, i)) {
                if (!*rows->of[i]->group)
                        continue;
                hf__strbuf_puts(s, comma);
                put_group(s, rows, i, false);
                comma = ",";
        }
        hf__strbuf_puts(s, "]}");
}

bool hfd_discovery_is_foreign(const struct hfd_resource *row,
                              const struct hfd_discovery_subresource *sub) {
        return sub->other && (strcmp(sub->other->group, row->group) != 0 ||
                              strcmp(sub->other->version, row->version) != 0);
}

/* Adds the metav1.APIResource of a subresource after that of its resource. */
static void put_subresource(struct hf__strbuf *s, const struct hfd_resource *row,
                            const struct hfd_discovery_subresource *sub) {
        hf__strbuf_printf(s, ",{\"name\":\"%s/%s\",\"singularName\":\"\",\"namespaced\":%s",
                          row->plural, sub->name, row->namespaced ? "true" : "false");
        if (hfd_discovery_is_foreign(row, sub))
                hf__strbuf_printf(s, ",\"group\":\"%s\",\"version\":\"%s\"", sub->other->group,
                                  sub->other->version);
        hf__strbuf_printf(s, ",\"kind\":\"%s\",\"verbs\":%s}",
                          sub->other ? sub->other->kind : row->kind, sub->verbs);
}

/* Appends the hash of the storage version, computed as in Kubernetes: the first 8 bytes of a
 * SHA-256. Clients compare hashes to find out whether objects are stored in another version than
 * before. */
static void put_storage_hash(struct hf__strbuf *s, const struct hfd_resource *served) {
        const struct hfd_resource *row = hfd_resource_stored(served);
        char text[HFD_API_VERSION_MAX + 80];
        uint8_t digest[32];
        int n = snprintf(text, sizeof text, "%s/%s/%s", row->group, row->version, row->kind);

        hf__sha256(text, (size_t)n, digest);
        hf__base64_encode(s, digest, 8);
}

/* Appends a member with a list of names, unless it is empty. */
static void put_list(struct hf__strbuf *s, const char *key, const struct hf__json *list) {
        if (!hf__json_first(list))
                return;
        hf__strbuf_printf(s, ",\"%s\":", key);
        hf__json_print(list, s);
}

void hfd_discovery_put_names(struct hf__strbuf *s, const struct hfd_resource *row) {
        if (row->custom) {
                put_list(s, "shortNames", hf__json_get(row->custom->kind->names, "shortNames"));
                put_list(s, "categories", hf__json_get(row->custom->kind->names, "categories"));
                return;
        }
        if (row->short_name)
                hf__strbuf_printf(s, ",\"shortNames\":[\"%s\"", row->short_name);
        if (row->other_short_name)
                hf__strbuf_printf(s, ",\"%s\"", row->other_short_name);
        if (row->short_name)
                hf__strbuf_putc(s, ']');
        if (row->category)
                hf__strbuf_printf(s, ",\"categories\":[\"%s\"]", row->category);
}

/* Adds the metav1.APIResource of a row, and those of its subresources. */
static void put_resource(struct hf__strbuf *s, const struct hfd_resource *row) {
        struct hfd_discovery_subresource sub;

        hf__strbuf_printf(s,
                          "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,"
                          "\"kind\":\"%s\",\"verbs\":%s",
                          row->plural, row->singular, row->namespaced ? "true" : "false", row->kind,
                          hfd_discovery_verbs(row));
        hfd_discovery_put_names(s, row);
        if (!row->is_review) { /* of a review nothing is stored */
                hf__strbuf_puts(s, ",\"storageVersionHash\":\"");
                put_storage_hash(s, row);
                hf__strbuf_putc(s, '"');
        }
        hf__strbuf_putc(s, '}');
        for (size_t i = 0; hfd_discovery_subresource(row, i, &sub); i++)
                put_subresource(s, row, &sub);
}

/* Writes a metav1.APIResourceList. False: the group has no such version. */
static bool put_resources(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                          const char *group, const char *version) {
        size_t first = hfd_served_find_version(rows, group, version);
        char text[HFD_API_VERSION_MAX];

        if (first == rows->n)
                return false;
        hfd_resource_api_version(rows->of[first], text);
        hf__strbuf_printf(s,
                          "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                          "\"groupVersion\":\"%s\",\"resources\":[",
                          text);
        for (size_t i = first, end = hfd_served_version_end(rows, first); i < end; i++) {
                if (i > first)
                        hf__strbuf_putc(s, ',');
                put_resource(s, rows->of[i]);
        }
        hf__strbuf_puts(s, "]}");
        return true;
}

/* Appends the document of one group. False: there is no such group. */
static bool put_group_document(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                               const char *group) {
        size_t i = *group ? hfd_served_find_group(rows, group) : rows->n;

        if (i < rows->n)
                put_group(s, rows, i, true);
        return i < rows->n;
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
static bool put_below_apis(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                           const char *rest) {
        char group[256], version[64];

        if (!strchr(rest, '/'))
                return put_group_document(s, rows, rest);
        return split_group_version(rest, group, version) && put_resources(s, rows, group, version);
}

/* False: there is no document at path. */
static bool put_document(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                         const char *path) {
        /* The addresses for clients in certain networks are left out: each client has found an
         * address that it can reach. */
        if (strcmp(path, "/api") == 0) {
                hf__strbuf_puts(s, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                                   "\"serverAddressByClientCIDRs\":[]}");
                return true;
        }
        if (strcmp(path, "/api/v1") == 0)
                return put_resources(s, rows, "", "v1");
        if (strcmp(path, "/apis") == 0) {
                put_groups(s, rows);
                return true;
        }
        if (strncmp(path, below_apis, sizeof below_apis - 1) == 0)
                return put_below_apis(s, rows, path + sizeof below_apis - 1);
        return false;
}

/* Copies the path without the slashes at its end. If it does not fit, it is cut; no document has
 * such a long path. */
static void trim_path(const char *path, char trimmed[PATH_BYTES_MAX]) {
        size_t n = strlen(path);

        assert(*path == '/');
        while (n > 1 && path[n - 1] == '/')
                n--;
        (void)snprintf(trimmed, PATH_BYTES_MAX, "%.*s",
                       (int)(n < PATH_BYTES_MAX ? n : PATH_BYTES_MAX - 1), path);
}

/* rest: the path after "/apis/". Without memory the answer is false; the 500 then comes from
 * hfd_discovery. */
static bool is_built_in_version(struct hfd_custom_table *table, const char *rest) {
        char group[256], version[64];
        struct hfd_served_rows *rows = NULL;

        if (split_group_version(rest, group, version))
                rows = hfd_served_rows_new(table);
        size_t first = rows ? hfd_served_find_version(rows, group, version) : 0;
        bool built_in = rows && first < rows->n && !rows->of[first]->custom;
        hfd_served_rows_free(rows);
        return built_in;
}

bool hfd_discovery_takes_head(struct hfd_custom_table *table, const char *path) {
        char trimmed[PATH_BYTES_MAX];

        trim_path(path, trimmed);
        if (strncmp(trimmed, below_apis, sizeof below_apis - 1) == 0)
                return !is_built_in_version(table, trimmed + sizeof below_apis - 1);
        return strcmp(trimmed, "/apis") == 0;
}

struct hf__buf *hfd_discovery(struct hfd_custom_table *table, const char *path, int *ret_code) {
        struct hfd_served_rows *rows = hfd_served_rows_new(table);
        struct hf__strbuf s = {0};
        char trimmed[PATH_BYTES_MAX];
        struct hf__buf *buf = NULL;

        trim_path(path, trimmed);
        if (!rows) {
                *ret_code = 500;
        } else if (put_document(&s, rows, trimmed)) {
                buf = hf__strbuf_to_buf(&s);
                *ret_code = buf ? 200 : 500;
        } else {
                *ret_code = 404;
        }
        hf__strbuf_done(&s);
        hfd_served_rows_free(rows);
        return buf;
}
