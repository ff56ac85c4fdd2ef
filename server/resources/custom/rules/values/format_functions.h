/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' named formats: format.dns1123Label().validate('a_b').value(). Immutable; ends with a
 * row without a name. Thread: any. */
#include "cel/values/function.h"

extern const struct hf__cel_row hfd_format_functions[];
