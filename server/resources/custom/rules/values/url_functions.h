/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' functions of URLs: url('https://a/b').getHost(). Immutable; ends with a row without a
 * name. Thread: any. */
#include <stddef.h>

#include "cel/values/function.h"

extern const struct hf__cel_row hfd_url_functions[];

/* NULL, or why the text is no URL. */
const char *hfd_url_check(const char *text, size_t n);
