/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The HTTP engine, and an HTTP/1.1 server in this process that it talks to. */
#include <stddef.h>

#include "base/http/engine.h"
#include "http1_server.h"
#include "http_engine_response.h"

struct http_engine_fixture {
        struct http1_server server;
        struct hf_host host;
        struct hf__http_engine *engine;
        char url[64]; /* of the server, without a path */
};

void http_engine_fixture_start(struct http_engine_fixture *f);
void http_engine_fixture_stop(
        struct http_engine_fixture *f); /* the test may have freed the engine and set it to NULL */

/* A GET with a deadline of 30 s, which the test may change. Writes its URL to url. */
struct hf__http_request http_engine_fixture_request(struct http_engine_fixture *f,
                                                    struct http_engine_response *response,
                                                    const char *path, char *url, size_t space);
/* Sends the request and waits for the response. */
void http_engine_fixture_do(struct http_engine_fixture *f, const struct hf__http_request *request,
                            struct http_engine_response *response);
/* Gets the path and waits. The test may read the response without init and deinit. */
void http_engine_fixture_get(struct http_engine_fixture *f, struct http_engine_response *response,
                             const char *path);
