/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP/1.1 request parser: bytes in, a filled-in request out. Pure: no socket, no clock.
 * Stricter than llhttp, see h1_parser.c. Thread: owner only.
 */
#include "server/http/http_request.h"

struct hfd_h1_parser;

enum hfd_h1_event {
        HFD_H1_MORE, /* all bytes were used, more are needed */
        HFD_H1_HEAD, /* the head is complete, a body follows: answer an Expect, feed the rest */
        HFD_H1_DONE, /* the request is complete; what was not used belongs to the next one */
        HFD_H1_BAD,  /* answer *ret_code and close */
};

int hfd_h1_parser_new(size_t max_header_bytes, size_t max_body,
                      struct hfd_h1_parser **ret_parser);               /* 0 or -ENOMEM */
struct hfd_h1_parser *hfd_h1_parser_free(struct hfd_h1_parser *parser); /* accepts NULL */
/* request (borrowed for the call) is the same one until DONE or BAD. *ret_code: 400, 413, 431, 500
 * (out of memory), 501, 505. */
enum hfd_h1_event hfd_h1_parser_feed(struct hfd_h1_parser *parser, struct hfd_http_request *request,
                                     const char *data, size_t n, size_t *ret_used, int *ret_code);
bool hfd_h1_parser_idle(
        const struct hfd_h1_parser *parser); /* between requests, not one byte of the next seen */
bool hfd_h1_parser_in_head(const struct hfd_h1_parser *parser);    /* the head is not complete */
bool hfd_h1_parser_keep_alive(const struct hfd_h1_parser *parser); /* of the request that is done */
bool hfd_h1_parser_http10(const struct hfd_h1_parser *parser);
