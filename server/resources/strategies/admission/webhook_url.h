/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Splits a URL as Go's net/url does, into the parts that the rules for webhooks and for the
 * approval of definitions use. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

/* A part of the text; n 0 = it is empty or absent. Borrowed from the text. */
struct hfd_url_part {
        const char *at;
        size_t n;
};

struct hfd_url {
        struct hfd_url_part scheme, host, user, query, fragment;
        bool has_user; /* there is an '@' before the host */
};

#define HFD_URL_ERROR_MAX 480 /* bytes, with the NUL */

/* False: text is no URL; error is Go's message. Only the mistakes that occur in practice are found.
 */
bool hfd_url_parse(const char *text, struct hfd_url *ret_url, char error[HFD_URL_ERROR_MAX]);
