/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The OpenAPI documents, made from the schemas of the kinds: v2 as JSON and as protobuf, v3 as
 * JSON. kubectl validates and explains objects by them, and computes patches. Pure. Thread: any.
 */
#include <stdbool.h>

#include "base/buf.h"

struct hf__strbuf;
struct hfd_served_rows;

#define HFD_OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* The document at /openapi/v2 as protobuf. NULL = out of memory. */
struct hf__buf *hfd_openapi_v2(const struct hfd_served_rows *rows);
/* Appends the same document as JSON. */
void hfd_openapi_v2_put(struct hf__strbuf *s, const struct hfd_served_rows *rows);
/* Appends the index at /openapi/v3. */
void hfd_openapi_v3_put_index(struct hf__strbuf *s, const struct hfd_served_rows *rows);
/*
 * Appends the document of one group ("" = core) and version. False: it is not served, and the
 * contents of s must not be sent.
 */
bool hfd_openapi_v3_put(struct hf__strbuf *s, const struct hfd_served_rows *rows, const char *group,
                        const char *version);
