/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Discovery: which groups, versions and resources are served. Pure. */
#include "base/buf.h"

/* The document at path. NULL: *ret_code is 404 (no such path) or 500 (out of memory). */
struct hf__buf *hfd_discovery(const char *path, int *ret_code);
