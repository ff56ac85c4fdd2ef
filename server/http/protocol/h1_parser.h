/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP/1.1 request parser: bytes in, a filled-in request out. Pure: no socket, no clock, no
 * thread. It is stricter than llhttp; the head of h1_parser.c explains how.
 *
 * Threads: the owner's only. No lock.
 */
#include "server/http/request/http_request_private.h"

struct hfd_h1_parser;

enum hfd_h1_event {
        HFD_H1_MORE, /* all bytes were used, more are needed */
        HFD_H1_HEAD, /* the head is complete and a body follows: handle Expect, feed the rest */
        HFD_H1_DONE, /* the request is complete; unused bytes belong to the next one */
        HFD_H1_BAD,  /* respond with *ret_code and close; every later feed returns BAD as well */
};

/* The limits are in bytes. 0 or -ENOMEM. */
int hfd_h1_parser_new(size_t max_header_bytes, size_t max_body, struct hfd_h1_parser **ret_parser);
struct hfd_h1_parser *hfd_h1_parser_free(struct hfd_h1_parser *parser); /* accepts NULL */
/*
 * Feeds n bytes; *ret_used is the number of bytes that were used. request is borrowed for the call.
 * Pass the same request until DONE, and then a new one. *ret_code, set with BAD: 400, 413, 431, 500
 * (out of memory), 501 or 505.
 */
enum hfd_h1_event hfd_h1_parser_feed(struct hfd_h1_parser *parser, struct hfd_http_request *request,
                                     const char *data, size_t n, size_t *ret_used, int *ret_code);
/* The bytes of an incomplete head that the parser keeps. */
size_t hfd_h1_parser_memory(const struct hfd_h1_parser *parser);
/* Whether the head is still incomplete. */
bool hfd_h1_parser_in_head(const struct hfd_h1_parser *parser);
/* After HFD_H1_DONE: whether the connection may accept another request. */
bool hfd_h1_parser_keep_alive(const struct hfd_h1_parser *parser);
/* Once the head is complete: whether the request is HTTP/1.0. */
bool hfd_h1_parser_http10(const struct hfd_h1_parser *parser);
