/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* URLs as Go's net/url reads and writes them, because Kubernetes shows its results. Pure. Thread:
 * any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_URL_REASON_MAX 200 /* bytes of a reason, with the NUL */

/* A part of a text; borrowed. It has no NUL at its end. n 0: `at` may be NULL. */
struct hfd_url_part {
        const char *at;
        size_t n;
};

/* The parts of a URL, which point into the text that was parsed and still have their escapes. */
struct hfd_url_text {
        struct hfd_url_part scheme; /* as written */
        struct hfd_url_part opaque; /* of a URL such as mailto:x, in place of host and path */
        struct hfd_url_part user;
        struct hfd_url_part password;
        struct hfd_url_part host; /* with the port */
        struct hfd_url_part path;
        struct hfd_url_part query;
        struct hfd_url_part fragment;
        bool has_user;
        bool has_password;
        bool has_query;  /* also an empty one */
        bool omits_host; /* a scheme and a path, but no "//" between them: file:/a */
};

/* The parts of the text that hfd_url_text_write has written. */
struct hfd_url_form {
        struct hfd_url_part whole;
        struct hfd_url_part scheme; /* in lower case */
        struct hfd_url_part path;
};

/* As Go's url.ParseRequestURI: the text is an absolute URL, an absolute path or "*", and # has no
 * meaning in it. False: it is no such text, and `reason` says why. */
bool hfd_url_text_parse_request(const char *text, size_t n, struct hfd_url_text *ret,
                                char reason[static HFD_URL_REASON_MAX]);
/* As Go's url.Parse, for a text that hfd_url_text_parse_request accepts: # begins the fragment, and
 * a text may begin with "//" and a host. False: it is no URL, and `reason` says why. Go's message
 * then shows the first *ret_n bytes: without the fragment, unless that is the mistake. True: *ret_n
 * is n. */
bool hfd_url_text_parse(const char *text, size_t n, struct hfd_url_text *ret, size_t *ret_n,
                        char reason[static HFD_URL_REASON_MAX]);
/* Writes the URL as Go's String does, without a NUL. `out` has room for three times the text that
 * was parsed. */
void hfd_url_text_write(const struct hfd_url_text *url, char *out, struct hfd_url_form *ret);
/* Copies a part without its escapes. `out` has room for part.n bytes. plus: a plus stands for a
 * space. Returns the number of bytes; SIZE_MAX: an escape is malformed. */
size_t hfd_url_part_unescape(struct hfd_url_part part, bool plus, char *out);
/* The index of the first c; part.n: it contains none. */
size_t hfd_url_part_find(struct hfd_url_part part, char c);
/* Splits a host without escapes into the name, which has no brackets, and the port. */
void hfd_url_host_split(struct hfd_url_part host, struct hfd_url_part *ret_name,
                        struct hfd_url_part *ret_port);
