/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the URLs of gRPC servers. Such a URL needs no path, query or user: one that has them is a
 * mistake, and is refused. Only the path "/" is accepted.
 *
 * Invariants: `authority` points into the struct's own `url`, so nobody copies the struct. A
 * message never shows a password.
 */
#include "server/storage/grpc/endpoint.h"

#include <string.h>

#include "base/redact.h"

static int refuse_url(const char *url, const char *why, struct hf_status *reterr_status) {
        char shown[257];

        return hf_fail(reterr_status, HF_E_INVALID, "etcd endpoint %s: %s",
                       hf__redact(url, shown, sizeof shown), why);
}

/* Whether the n bytes are the digits of a port. */
static bool is_port(const char *text, size_t n) {
        unsigned long value = 0;

        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || value > 65535)
                        return false;
                value = value * 10 + (unsigned long)(text[i] - '0');
        }
        return value >= 1 && value <= 65535 && n <= 5;
}

/* Reads "host" or "[address]", each with or without ":port". Returns false when it is malformed. */
static bool split_authority(struct hfd_grpc_endpoint *endpoint) {
        const char *host = endpoint->authority, *end, *port;

        if (*host == '[') {
                host++;
                end = strchr(host, ']');
                if (!end || (end[1] != 0 && end[1] != ':'))
                        return false;
                port = end[1] == ':' ? end + 2 : NULL;
        } else {
                end = host + strcspn(host, ":");
                port = *end == ':' ? end + 1 : NULL;
        }
        if (end == host || (port && !is_port(port, strlen(port))))
                return false;
        memcpy(endpoint->host, host, (size_t)(end - host));
        endpoint->host[end - host] = 0;
        if (!port)
                port = endpoint->tls ? "443" : "80";
        memcpy(endpoint->port, port, strlen(port) + 1);
        return true;
}

int hfd_grpc_endpoint_parse(const char *url, struct hfd_grpc_endpoint *ret_endpoint,
                            struct hf_status *reterr_status) {
        struct hfd_grpc_endpoint endpoint = {.tls = strncmp(url, "https://", 8) == 0};
        size_t n_scheme = endpoint.tls ? 8 : 7, n = strlen(url);

        if (!endpoint.tls && strncmp(url, "http://", 7) != 0)
                return refuse_url(url, "must begin with http:// or https://", reterr_status);
        if (n >= HFD_GRPC_ENDPOINT_MAX)
                return refuse_url(url, "is too long", reterr_status);
        if (url[n - 1] == '/')
                n--;
        memcpy(endpoint.url, url, n); /* the rest is zero */
        if (n <= n_scheme || strpbrk(endpoint.url + n_scheme, "/?#@ "))
                return refuse_url(url, "must be <scheme>://<host>:<port> and nothing more",
                                  reterr_status);
        *ret_endpoint = endpoint;
        ret_endpoint->authority = ret_endpoint->url + n_scheme;
        return split_authority(ret_endpoint)
                       ? 0
                       : refuse_url(url, "must be <scheme>://<host>:<port> and nothing more",
                                    reterr_status);
}
