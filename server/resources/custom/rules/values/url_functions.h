/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes' functions of CEL for URLs: url('https://a/b').getHost(). */
#include <stdbool.h>
#include <stddef.h>

#include "cel/values/function.h"

/* Static and immutable; ends with a row without a name. Thread: any. */
extern const struct hf__cel_row hfd_url_functions[];

#define HFD_URL_MESSAGE_MAX 410 /* bytes with the NUL; fits into a message of hf__cel_errorf */

/* Whether n bytes are a URL. If not, the message is Go's, in which a long text is cut. Pure.
 * Thread: any. */
bool hfd_url_check(const char *text, size_t n, char message[static HFD_URL_MESSAGE_MAX]);
