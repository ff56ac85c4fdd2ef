/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The OpenAPI v2 document, in the protobuf form that kubectl asks for. Pure. */
#include "base/buf.h"

/* NULL: out of memory. */
struct hf__buf *hfd_openapi_v2(void);
