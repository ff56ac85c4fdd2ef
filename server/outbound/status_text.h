/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The texts of Kubernetes' client for a response whose status code is not a success. Pure. Thread:
 * any. */
#include "base/strbuf.h"

/* Appends "the server could not find the requested resource" for 404, and so on. code: one that
 * the caller does not take for a success. body: the response's, of which at most 2 KiB are shown.
 */
void hfd_outbound_status_text(int code, const void *body, size_t n_body, struct hf__strbuf *text);
