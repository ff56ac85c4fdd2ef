/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The OpenAPI documents: v2 as protobuf, which kubectl requests, and v3 as JSON. They are not full
 * schemas. They contain only what kubectl needs to validate objects, to compute patches for
 * `kubectl apply`, and to detect that dry runs are supported. Pure. Thread: any.
 */
#include <stdbool.h>

#include "base/buf.h"

struct hf__strbuf;

#define HFD_OPENAPI_V2_TYPE "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* The document at /openapi/v2. NULL = out of memory. */
struct hf__buf *hfd_openapi_v2(void);
/* Appends the index at /openapi/v3. */
void hfd_openapi_v3_put_index(struct hf__strbuf *s);
/*
 * Appends the document of one group ("" = core) and version. False: it is not served, and the
 * contents of s must not be sent.
 */
bool hfd_openapi_v3_put(struct hf__strbuf *s, const char *group, const char *version);
