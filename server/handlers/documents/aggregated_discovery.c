/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregated discovery: for each of /api and /apis one document with all groups, versions and
 * resources below it.
 *
 * Invariant: the document is like kube-apiserver's, because clients cache it and compare it. So a
 * responseKind in the resource's own group and version leaves both empty, and clients take those of
 * the resource; only custom resources have them written out.
 */
#include "server/handlers/documents/aggregated_discovery.h"

#include "base/strbuf.h"
#include "server/handlers/documents/discovery.h"
#include "server/resources/custom/served_rows.h"

/* row: whose kind is in the response. named: its group and version are written out. */
static void put_response_kind(struct hf__strbuf *s, const struct hfd_resource *row, bool named) {
        hf__strbuf_printf(s,
                          "\"responseKind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}",
                          named ? row->group : "", named ? row->version : "", row->kind);
}

static void put_subresources(struct hf__strbuf *s, const struct hfd_resource *row) {
        struct hfd_discovery_subresource sub;

        for (size_t i = 0; hfd_discovery_subresource(row, i, &sub); i++) {
                hf__strbuf_printf(s, "%s{\"subresource\":\"%s\",",
                                  i == 0 ? ",\"subresources\":[" : ",", sub.name);
                put_response_kind(s, sub.other ? sub.other : row,
                                  row->custom || hfd_discovery_is_foreign(row, &sub));
                hf__strbuf_printf(s, ",\"verbs\":%s}", sub.verbs);
        }
        if (hfd_discovery_subresource(row, 0, &sub))
                hf__strbuf_putc(s, ']');
}

static void put_resource(struct hf__strbuf *s, const struct hfd_resource *row) {
        hf__strbuf_printf(s, "{\"resource\":\"%s\",", row->plural);
        put_response_kind(s, row, row->custom != NULL);
        hf__strbuf_printf(s, ",\"scope\":\"%s\",\"singularResource\":\"%s\",\"verbs\":%s",
                          row->namespaced ? "Namespaced" : "Cluster", row->singular,
                          hfd_discovery_verbs(row));
        hfd_discovery_put_names(s, row);
        put_subresources(s, row);
        hf__strbuf_putc(s, '}');
}

/* Writes the version whose first row is row i. */
static void put_version(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i) {
        size_t end = hfd_served_version_end(rows, i);

        hf__strbuf_printf(s, "{\"version\":\"%s\",\"resources\":[", rows->of[i]->version);
        for (size_t at = i; at < end; at++) {
                if (at > i)
                        hf__strbuf_putc(s, ',');
                put_resource(s, rows->of[at]);
        }
        hf__strbuf_puts(s, "],\"freshness\":\"Current\"}");
}

/* Writes the group whose first row is row i. The core group has no name. */
static void put_group(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i) {
        hf__strbuf_puts(s, "{\"metadata\":{");
        if (*rows->of[i]->group)
                hf__strbuf_printf(s, "\"name\":\"%s\",", rows->of[i]->group);
        hf__strbuf_puts(s, "\"creationTimestamp\":null},\"versions\":[");
        hfd_discovery_put_versions(s, rows, i, put_version);
        hf__strbuf_puts(s, "]}");
}

struct hf__buf *hfd_aggregated_discovery(struct hfd_custom_table *table, bool core,
                                         const char *version) {
        struct hfd_served_rows *rows = hfd_served_rows_new(table);
        struct hf__strbuf s = {0};
        const char *comma = "";

        if (!rows)
                return NULL;
        hf__strbuf_printf(&s,
                          "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":"
                          "\"apidiscovery.k8s.io/%s\",\"metadata\":{},\"items\":[",
                          version);
        for (size_t i = 0; i < rows->n; i = hfd_served_group_end(rows, i)) {
                if (core != !*rows->of[i]->group)
                        continue;
                hf__strbuf_puts(&s, comma);
                put_group(&s, rows, i);
                comma = ",";
        }
        hf__strbuf_puts(&s, "]}\n");
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        hfd_served_rows_free(rows);
        return buf;
}
