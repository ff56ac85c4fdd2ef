/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an answer that is not a success means: an HTTP code and (perhaps) a Kubernetes Status body
 * become an hf_error and its words. Pure.
 *
 * A write that the server answered with 500, 502 or 504 may have been made: HF_E_TIMEOUT, the
 * outcome is unknown. 503 is the server's (or a proxy's) word that it did not take the request.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hf__json;

struct hf__status_context {
        bool is_write;
        uint32_t retry_after_s; /* of the header; 0 = none */
        const char *what;       /* "PUT https://...": begins the message when the body has none */
};

/* code >= 300 (else the body's own code counts). body may be NULL, empty or anything. Returns the
 * error, never 0. */
int hf__status_from_reply(int code, const char *body, size_t n_body,
                          const struct hf__status_context *context, struct hf_status *ret_status);
