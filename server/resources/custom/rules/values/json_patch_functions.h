/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' function of JSON patches: jsonpatch.escapeKey('a/b'). Immutable; ends with a row
 * without a name. Thread: any. */
#include "cel/values/function.h"

extern const struct hf__cel_row hfd_json_patch_functions[];
