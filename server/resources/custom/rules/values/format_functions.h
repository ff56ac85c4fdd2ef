/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions of CEL for Kubernetes' named formats:
 * format.dns1123Label().validate('a_b').value(). */
#include "cel/values/function.h"

/* Static and immutable; ends with a row without a name. Thread: any. */
extern const struct hf__cel_row hfd_format_functions[];
