/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Callbacks through which curl delivers the response to one request. ctx is the exchange. Thread:
 * the engine's.
 */
#include <stddef.h>

/* CURLOPT_HEADERFUNCTION: one line of headers or trailers. */
size_t hf__http_response_on_header(char *line, size_t size, size_t n, void *ctx);
/* CURLOPT_WRITEFUNCTION: one piece of the body. */
size_t hf__http_response_on_body(char *data, size_t size, size_t n, void *ctx);
