/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses https URLs (https_url.h). It checks only the host and the port; libcurl checks the rest.
 *
 * Invariant: a host that passes has no space, line end, '@' or slash, whatever the user has
 * written. So it may be copied as it is: into the URL to connect to, into the header Host, into
 * messages. A URL that names a user does not pass.
 */
#include "server/outbound/https_url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SCHEME "https://"

/* Port 0 is refused: nothing can listen there. */
static bool read_port(const char *text, size_t n, char port[6]) {
        if (n == 0 || n > 5 || strspn(text, "0123456789") < n)
                return false;
        memcpy(port, text, n);
        port[n] = '\0';
        long number = strtol(port, NULL, 10);
        return number > 0 && number <= 65535;
}

/* '_' is in no host name of RFC 952, but resolvers and users have such names. */
static bool is_host_character(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '.' || c == '-' || c == '_';
}

/* Of zones ("%2") only those pass whose names are hexadecimal digits. */
static bool is_address_character(char c) {
        return strchr("0123456789abcdefABCDEF:.%", c) && c != '\0';
}

bool hfd_host_port_parse(const char *text, size_t n, char host[HFD_HTTPS_HOST_MAX], char port[6]) {
        bool is_v6 = n > 0 && text[0] == '[';
        size_t start = is_v6 ? 1 : 0, end = start;

        while (end < n && (is_v6 ? is_address_character(text[end]) : is_host_character(text[end])))
                end++;
        if (end == start || end - start >= HFD_HTTPS_HOST_MAX)
                return false;
        memcpy(host, text + start, end - start);
        host[end - start] = '\0';
        if (is_v6) {
                if (end == n || text[end] != ']')
                        return false;
                end++;
        }
        if (end == n) {
                (void)strcpy(port, "443");
                return true;
        }
        return text[end] == ':' && read_port(text + end + 1, n - end - 1, port);
}

bool hfd_https_url_parse(const char *url, struct hfd_https_url *ret_url) {
        *ret_url = (struct hfd_https_url){0};
        if (strncasecmp(url, SCHEME, strlen(SCHEME)) != 0)
                return false;
        ret_url->authority = url + strlen(SCHEME);
        ret_url->n_authority = strcspn(ret_url->authority, "/?#");
        ret_url->rest = ret_url->authority + ret_url->n_authority;
        return hfd_host_port_parse(ret_url->authority, ret_url->n_authority, ret_url->host,
                                   ret_url->port);
}

/* Segments that are empty or "." are left out, ".." removes the one before, and a slash at the end
 * is dropped, except that of the path "/". A URL without a path stays as it is. */
static void clean_path(char *url) {
        char *authority = strstr(url, "://"), *path = authority ? strchr(authority + 3, '/') : NULL;

        if (!path)
                return;
        char *out = path;
        for (const char *at = path; *at;) {
                size_t n = strcspn(at + 1, "/");
                if (n == 2 && strncmp(at + 1, "..", 2) == 0) {
                        while (out > path && *--out != '/')
                                continue;
                } else if (n > 0 && !(n == 1 && at[1] == '.')) {
                        memmove(out, at, n + 1);
                        out += n + 1;
                }
                at += n + 1;
        }
        if (out == path)
                *out++ = '/';
        *out = '\0';
}

/* The slash that is appended gives the URL a path. If it has one already, clean_path removes the
 * slash again. */
int hfd_https_url_clean(const char *url, char **ret_url) {
        if (asprintf(ret_url, "%s/", url) < 0) {
                *ret_url = NULL;
                return -ENOMEM;
        }
        clean_path(*ret_url);
        return 0;
}
