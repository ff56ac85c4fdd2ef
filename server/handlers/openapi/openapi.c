/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the OpenAPI documents by their paths, and makes them as JSON or protobuf.
 *
 * Invariant: a struct hfd_openapi_document only describes a document: its kind, its form, and its
 * range of the rows (the resources that are served, see served_rows.h). document_cache.c keeps the
 * finished documents; this file keeps none.
 */
#include "server/handlers/openapi/openapi.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/handlers/openapi/message/message.h"
#include "server/handlers/openapi/paths.h"
#include "server/resources/custom/served_rows.h"

/* The type of a document as protobuf, and its older name, which clients still send. The older one
 * has an @, which a media type must not contain (RFC 2045), so the server does not send it. */
static const char *const types_v2[] =
        {"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
         "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"};
static const char *const types_v3[] =
        {"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
         "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"};

const char *hfd_openapi_type_of(const struct hfd_openapi_document *document) {
        if (!document->protobuf)
                return "application/json";
        return document->kind == HFD_OPENAPI_V2 ? types_v2[0] : types_v3[0];
}

bool hfd_openapi_is_protobuf(const struct hfd_openapi_document *document, const char *type) {
        const char *const *types = document->kind == HFD_OPENAPI_V2 ? types_v2 : types_v3;

        return document->kind != HFD_OPENAPI_INDEX &&
               (strcmp(type, types[0]) == 0 || strcmp(type, types[1]) == 0);
}

struct hf__buf *hfd_openapi_to_protobuf(const struct hfd_openapi_document *document,
                                        const struct hf__buf *json) {
        assert(document->kind != HFD_OPENAPI_INDEX);
        return hfd_message_document(document->kind == HFD_OPENAPI_V2 ? &hfd_message_v2
                                                                     : &hfd_message_v3,
                                    json);
}

/* Finds the document of a group and version, "GROUP/VERSION". */
static bool find_version(const struct hfd_served_rows *rows, const char *text,
                         struct hfd_openapi_document *ret_document) {
        const char *slash = strchr(text, '/');
        char group[256];

        if (!slash || (size_t)(slash - text) >= sizeof group)
                return false;
        memcpy(group, text, (size_t)(slash - text));
        group[slash - text] = '\0';
        size_t first = hfd_served_find_version(rows, group, slash + 1);
        if (first == rows->n)
                return false;
        *ret_document = (struct hfd_openapi_document){.kind = HFD_OPENAPI_V3,
                                                      .first = first,
                                                      .end = hfd_served_version_end(rows, first)};
        return true;
}

bool hfd_openapi_find(const struct hfd_served_rows *rows, const char *path,
                      struct hfd_openapi_document *ret_document) {
        static const char apis[] = "/openapi/v3/apis/";
        char trimmed[512]; /* no document has a longer path */
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        if (n >= sizeof trimmed)
                return false;
        memcpy(trimmed, path, n);
        trimmed[n] = '\0';
        /* v2 and the index describe all rows. */
        *ret_document = (struct hfd_openapi_document){.kind = HFD_OPENAPI_V2, .end = rows->n};
        if (strcmp(trimmed, "/openapi/v2") == 0)
                return true;
        ret_document->kind = HFD_OPENAPI_INDEX;
        if (strcmp(trimmed, "/openapi/v3") == 0)
                return true;
        if (strcmp(trimmed, "/openapi/v3/api/v1") == 0)
                return find_version(rows, "/v1", ret_document);
        /* An empty group is the core group, which is not below /apis. */
        return strncmp(trimmed, apis, sizeof apis - 1) == 0 && trimmed[sizeof apis - 1] != '/' &&
               find_version(rows, trimmed + sizeof apis - 1, ret_document);
}

void hfd_openapi_put_document_path(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document) {
        hf__strbuf_puts(s, "/openapi/v3/");
        hfd_openapi_put_prefix(s, rows->of[document->first]);
}

/* Appends the index. Clients fetch a document again only when its URL, which contains the hash, has
 * changed. 0 or -ENOMEM. */
static int put_index(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                     hfd_openapi_hash_fn hash_of, void *ctx) {
        char hash[HFD_OPENAPI_HASH_MAX] = "";
        size_t end;

        hf__strbuf_puts(s, "{\"paths\":{");
        for (size_t i = 0; i < rows->n; i = end) {
                end = hfd_served_version_end(rows, i);
                const struct hfd_openapi_document document = {.kind = HFD_OPENAPI_V3,
                                                              .first = i,
                                                              .end = end};
                if (hash_of && hash_of(ctx, rows, &document, hash) != 0)
                        return -ENOMEM;
                hf__strbuf_puts(s, i > 0 ? ",\"" : "\"");
                hfd_openapi_put_prefix(s, rows->of[i]);
                hf__strbuf_puts(s, "\":{\"serverRelativeURL\":\"");
                hfd_openapi_put_document_path(s, rows, &document);
                hf__strbuf_printf(s, "%s%s\"}", hash_of ? "?hash=" : "", hash);
        }
        hf__strbuf_puts(s, "}}");
        return 0;
}

struct hf__buf *hfd_openapi_render(const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document,
                                   hfd_openapi_hash_fn hash_of, void *ctx) {
        struct hf__strbuf s = {0};
        struct hf__buf *buf = NULL;
        int r = 0;

        if (document->kind == HFD_OPENAPI_INDEX)
                r = put_index(&s, rows, hash_of, ctx);
        else
                hfd_openapi_put(&s, rows, document);
        if (r == 0)
                buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}
