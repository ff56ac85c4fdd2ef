/* SPDX-License-Identifier: Apache-2.0 */
/* Which OpenAPI documents there are, and in which forms. */
#include "server/handlers/openapi/openapi.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/resources/custom/served_rows.h"

bool hfd_openapi_v2_is_protobuf(const char *type) {
        return strcmp(type, HFD_OPENAPI_V2_TYPE) == 0 ||
               strcmp(type, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf") == 0;
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
        *ret_document = (struct hfd_openapi_document){.kind = HFD_OPENAPI_V2, .end = rows->n};
        if (strcmp(trimmed, "/openapi/v2") == 0)
                return true;
        ret_document->kind = HFD_OPENAPI_INDEX;
        if (strcmp(trimmed, "/openapi/v3") == 0)
                return true;
        if (strcmp(trimmed, "/openapi/v3/api/v1") == 0)
                return find_version(rows, "/v1", ret_document);
        return strncmp(trimmed, apis, sizeof apis - 1) == 0 && trimmed[sizeof apis - 1] != '/' &&
               find_version(rows, trimmed + sizeof apis - 1, ret_document);
}

struct hf__buf *hfd_openapi_render(const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document) {
        struct hf__strbuf s = {0};

        if (document->protobuf)
                return hfd_openapi_v2(rows);
        hfd_openapi_put(&s, rows, document);
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}
