/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The OpenAPI documents, made from the schemas of the kinds: v2 and v3, as JSON and as protobuf.
 * kubectl validates and explains objects by them, and computes patches. Pure. Thread: any.
 */
#include <stdbool.h>

#include "base/buf.h"

struct hf__strbuf;
struct hfd_served_rows;

enum hfd_openapi_kind {
        HFD_OPENAPI_INDEX, /* /openapi/v3 */
        HFD_OPENAPI_V2,    /* /openapi/v2 */
        HFD_OPENAPI_V3     /* /openapi/v3/api/v1, /openapi/v3/apis/GROUP/VERSION */
};

struct hfd_openapi_document {
        enum hfd_openapi_kind kind;
        bool protobuf;     /* the client gets it as protobuf; false for the index */
        size_t first, end; /* it describes the rows from `first` to before `end` */
};

/* Finds the document at a path, in its JSON form. Slashes at the end are ignored. False: there is
 * no such document. */
bool hfd_openapi_find(const struct hfd_served_rows *rows, const char *path,
                      struct hfd_openapi_document *ret_document);
/*
 * The hash of a document of kind V3, for the index: clients keep a document under a URL with its
 * hash. Returns 0 or -ENOMEM.
 */
#define HFD_OPENAPI_HASH_MAX 65 /* bytes of a hash, with the NUL */
typedef int (*hfd_openapi_hash_fn)(void *ctx, const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document,
                                   char ret_hash[HFD_OPENAPI_HASH_MAX]);
/*
 * The document as JSON, whatever document->protobuf says. hash_of: for the index only; NULL =
 * without hashes. Returns NULL if out of memory.
 */
struct hf__buf *hfd_openapi_render(const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document,
                                   hfd_openapi_hash_fn hash_of, void *ctx);
/* Appends the path of a document of kind V3, "/openapi/v3/apis/GROUP/VERSION". */
void hfd_openapi_put_document_path(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                                   const struct hfd_openapi_document *document);

/* The document, which is not the index, as protobuf, made from its JSON form. NULL = out of memory.
 */
struct hf__buf *hfd_openapi_to_protobuf(const struct hfd_openapi_document *document,
                                        const struct hf__buf *json);
/* The content type of the document in the form that document->protobuf says. */
const char *hfd_openapi_type_of(const struct hfd_openapi_document *document);
/* Whether type is the content type of the protobuf form, or its older name. Always false for the
 * index. */
bool hfd_openapi_is_protobuf(const struct hfd_openapi_document *document, const char *type);
/* Appends a document of kind V2 or V3 as JSON. */
void hfd_openapi_put(struct hf__strbuf *s, const struct hfd_served_rows *rows,
                     const struct hfd_openapi_document *document);
