/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of an https URL that calls need. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_HTTPS_HOST_MAX 256

struct hfd_https_url {
        char host[HFD_HTTPS_HOST_MAX]; /* without the brackets of an IPv6 address */
        char port[6];                  /* "443" if the URL has none */
        const char *authority;         /* host and port as written; in the URL */
        size_t n_authority;
        const char *rest; /* from the path on; in the URL; may be "" */
};

/* False: not an https URL, without a host, with a user, or with a malformed port. */
bool hfd_https_url_parse(const char *url, struct hfd_https_url *ret_url);
/* Reads "host:port", "[v6]:port", "host" or "[v6]"; the port is "443" if there is none. */
bool hfd_host_port_parse(const char *text, size_t n, char host[HFD_HTTPS_HOST_MAX], char port[6]);
