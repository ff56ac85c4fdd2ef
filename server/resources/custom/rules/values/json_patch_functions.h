/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' function of CEL for JSON patches: jsonpatch.escapeKey('a/b'). */
#include "cel/values/function.h"

/* Static and immutable; ends with a row without a name. Thread: any. */
extern const struct hf__cel_row hfd_json_patch_functions[];
