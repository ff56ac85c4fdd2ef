/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves endpoints that can only be read.
 *
 * Invariant: health and metrics change from one request to the next, so each response that is sent
 * here forbids shared caches to keep it, and every cache to use it without asking the server again.
 * openid.c sends its documents itself.
 */
#include "server/handlers/read_endpoint.h"

#include <string.h>

#include "base/buf.h"
#include "base/strbuf.h"
#include "server/filters/status_response.h"

bool hfd_read_endpoint_accepts(struct hfd_http_request *request, bool may_be_head) {
        const char *method = hfd_http_request_method(request);

        if (strcmp(method, "GET") == 0 || (may_be_head && strcmp(method, "HEAD") == 0))
                return true;
        hfd_status_response_code(request, 405, 0,
                                 "the server does not allow this method on the requested resource");
        return false;
}

void hfd_read_endpoint_no_memory(struct hfd_http_request *request) {
        hfd_status_response_text(request, 500,
                                 "internal server error: the response could not be created\n", 0,
                                 false);
}

void hfd_read_endpoint_reply(struct hfd_http_request *request, const char *content_type,
                             struct hf__strbuf *body) {
        const struct hfd_header header = {"cache-control", "no-cache, private"};
        struct hf__buf *buf = hf__strbuf_to_buf(body);

        if (buf)
                hfd_http_request_reply(request, 200, content_type, &header, 1, buf);
        else
                hfd_read_endpoint_no_memory(request);
        hf__buf_unref(buf);
}
