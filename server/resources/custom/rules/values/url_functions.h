/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' functions of CEL for URLs: url('https://a/b').getHost(). */
#include <stddef.h>

#include "cel/values/function.h"

/* Static and immutable; ends with a row without a name. Thread: any. */
extern const struct hf__cel_row hfd_url_functions[];

/* Checks n bytes. Returns NULL, or why the text is no URL, in static storage. Pure. Thread: any. */
const char *hfd_url_check(const char *text, size_t n);
