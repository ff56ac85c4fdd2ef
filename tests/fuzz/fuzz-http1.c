/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the HTTP/1.1 request parser. The input is parsed whole and in pieces (their size is its
 * first byte): both must give the same requests, and an accepted one must keep what the parser
 * promises.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "server/http/protocol/h1_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct outcome {
        unsigned n_requests, code;
        size_t n_body;
        uint64_t hash;
};

static uint64_t mix(uint64_t hash, const char *text) {
        for (; *text; text++)
                hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
        return hash * 31;
}

static void check(struct hfd_http_request *request, struct outcome *outcome) {
        size_t n;

        assert(hfd_http_request_path(request)[0] == '/');
        assert(hfd_http_request_method(request)[0] != '\0');
        if (strcmp(hfd_http_request_protocol(request), "HTTP/1.1") == 0)
                assert(hfd_http_request_header(request, "host"));
        assert(!hfd_http_request_header(request, "content-length") ||
               !hfd_http_request_header(request, "transfer-encoding"));
        (void)hfd_http_request_body(request, &n);
        assert(n <= 4096);
        outcome->n_requests++;
        outcome->n_body += n;
        outcome->hash = mix(outcome->hash, hfd_http_request_path(request));
        outcome->hash = mix(outcome->hash, hfd_http_request_query(request));
}

static struct outcome parse(const char *data, size_t n, size_t step) {
        struct outcome outcome = {0};
        struct hfd_h1_parser *parser;
        struct hfd_http_request *request = NULL;
        enum hfd_h1_event event = HFD_H1_MORE;

        if (hfd_h1_parser_new(2048, 4096, &parser))
                return outcome;
        while (n > 0 && event != HFD_H1_BAD) {
                size_t used, part = n < step ? n : step;
                int code = 0;

                if (!request && hfd_http_request_new(NULL, NULL, &request))
                        break;
                event = hfd_h1_parser_feed(parser, request, data, part, &used, &code);
                assert(used <= part);
                assert(event == HFD_H1_BAD || used > 0);
                assert(event != HFD_H1_MORE || used == part);
                assert(event != HFD_H1_BAD || code >= 400);
                data += used;
                n -= used;
                if (event == HFD_H1_DONE) {
                        check(request, &outcome);
                        request = hfd_http_request_unref(request);
                }
                if (event == HFD_H1_BAD)
                        outcome.code = (unsigned)code;
        }
        hfd_http_request_unref(request);
        hfd_h1_parser_free(parser);
        return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        struct outcome whole, pieces;

        if (n < 2)
                return 0;
        whole = parse((const char *)data + 1, n - 1, n);
        pieces = parse((const char *)data + 1, n - 1, data[0] ? data[0] : 1);
        assert(whole.n_requests == pieces.n_requests);
        assert(whole.hash == pieces.hash && whole.n_body == pieces.n_body);
        assert((whole.code == 0) == (pieces.code == 0));
        return 0;
}
