/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See http_engine_fixture.h. The engine is freed before the server stops, because it may still have
 * requests.
 */
#include "http_engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "time_units.h"

void http_engine_fixture_start(struct http_engine_fixture *f) {
        http1_server_start(&f->server);
        (void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d", f->server.base.port);
        f->host = (struct hf_host){.size = sizeof f->host};
        assert_int_equal(hf__http_engine_new(&f->host, "test-http", &f->engine), 0);
}

void http_engine_fixture_stop(struct http_engine_fixture *f) {
        f->engine = hf__http_engine_free(f->engine);
        http1_server_stop(&f->server);
}

struct hf__http_request http_engine_fixture_request(struct http_engine_fixture *f,
                                                    struct http_engine_response *response,
                                                    const char *path, char *url, size_t space) {
        (void)snprintf(url, space, "%s%s", f->url, path);
        return (struct hf__http_request){.method = "GET",
                                         .url = url,
                                         .deadline = in_msec(30000),
                                         .on_done = http_engine_response_on_done,
                                         .ctx = response};
}

void http_engine_fixture_do(struct http_engine_fixture *f, const struct hf__http_request *request,
                            struct http_engine_response *response) {
        assert_int_equal(hf__http_submit(f->engine, request, NULL), 0);
        http_engine_response_wait(response);
}

void http_engine_fixture_get(struct http_engine_fixture *f, struct http_engine_response *response,
                             const char *path) {
        char url[128];

        http_engine_response_init(response);
        struct hf__http_request request =
                http_engine_fixture_request(f, response, path, url, sizeof url);
        http_engine_fixture_do(f, &request, response);
        http_engine_response_deinit(response);
}
