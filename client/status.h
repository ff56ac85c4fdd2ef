/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Translates an HTTP response that is not a success into an hf_error and a message. Uses the
 * Kubernetes Status in the body if there is one. Pure.
 *
 * A write may have been applied although its response is a 5xx or 408. The result is then
 * HF_E_TIMEOUT: the outcome is unknown. The exception is a 503 with the cause NotApplied, by which
 * holdfastd says that it did not process the request. (In the response to a write of several
 * objects the cause proves nothing, because it may concern only one of them.) A 429 from any server
 * or proxy means that the request was not processed, because a limit refuses requests before they
 * are forwarded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hf__json;

struct hf__status_context {
        bool is_write;
        bool in_parts;          /* the write has several objects, and may end after some of them */
        uint32_t retry_after_s; /* from the Retry-After header; 0 = none */
        const char *what;       /* names the request; for the message if the body has none */
};

/* `code` is the HTTP status. If it is below 300 (an ERROR event of a watch), the code in the body
 * is used instead, if that is from 300 to 999. The body may be NULL, empty or any text. Returns the
 * error, never 0. */
int hf__status_from_response(int code, const char *body, size_t n_body,
                             const struct hf__status_context *context,
                             struct hf_status *ret_status);
