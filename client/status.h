/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Translates an HTTP response that is not a success, with a Kubernetes Status as its body if there
 * is one, into an hf_error and a message. Pure.
 *
 * A write with the response 500, 502 or 504 may have been made: the result is HF_E_TIMEOUT, the
 * outcome is unknown. With 503 the server (or a proxy) says that it did not take the request.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hf__json;

struct hf__status_context {
        bool is_write;
        uint32_t retry_after_s; /* of the Retry-After header; 0 = none */
        const char *what;       /* "PUT https://...": begins the message if the body has none */
};

/* `code` is the HTTP status; if it is below 300 (an ERROR event of a watch), the code in the body
 * counts. The body may be NULL, empty or any text. Returns the error, never 0. */
int hf__status_from_response(int code, const char *body, size_t n_body,
                             const struct hf__status_context *context,
                             struct hf_status *ret_status);
