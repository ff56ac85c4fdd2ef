/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of an https URL that calls need. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_HTTPS_HOST_MAX 256

struct hfd_https_url {
        char host[HFD_HTTPS_HOST_MAX]; /* without the brackets of an IPv6 address */
        char port[6];                  /* "443" if the URL has none */
        const char *authority;         /* host and port as written; points into the caller's url */
        size_t n_authority;
        /* What follows the authority: path, query and fragment. May be "", or begin without a '/'.
         * Points into the caller's url, too. */
        const char *rest;
};

/* False: it is no https URL, it names a user, or its host or port is malformed. A host has letters,
 * digits, ".", "-" and "_", or is an address in brackets, and is shorter than HFD_HTTPS_HOST_MAX.
 */
bool hfd_https_url_parse(const char *url, struct hfd_https_url *ret_url);
/* Reads "host:port", "[v6]:port", "host" or "[v6]"; the port is "443" if there is none. False: the
 * text is malformed. The n bytes are the beginning of a string that ends with a NUL. */
bool hfd_host_port_parse(const char *text, size_t n, char host[HFD_HTTPS_HOST_MAX], char port[6]);
/* Makes the URL that Kubernetes' client uses for webhooks: its path is cleaned, so that "https://a"
 * becomes "https://a/", and "https://a/b//c/" becomes "https://a/b/c". The caller frees it. 0 or
 * -ENOMEM. */
int hfd_https_url_clean(const char *url, char **ret_url);
