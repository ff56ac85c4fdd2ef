/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The HTTP server: a TLS listener, and HTTP/2 and HTTP/1.1 connections on a few epoll workers.
 * http_request.h, which this header includes, is the request as handlers see it. For the server's
 * side of HTTP, only this folder uses nghttp2, llhttp and OpenSSL's TLS; server/tls/ loads the
 * certificates and keys. docs/http.md describes the server's structure, its limits and the attacks
 * that it withstands.
 *
 * A connection belongs to one worker for its whole life. A request that exceeds a limit (header
 * bytes, body bytes, streams, connections, handshakes, unsent bytes, time) gets a 413, 431, 408 or
 * 503, or its stream is reset, or its connection is closed.
 *
 * Threads: each function says which; "Thread: any" means that every thread may call it at any time.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "server/http/request/http_request.h"

struct hfd_http;

struct hfd_http_config {
        /* An IP address: "127.0.0.1", "::1", "0.0.0.0". */
        const char *bind_address;
        /* 0 = any free port; hfd_http_port returns it. */
        uint16_t port;
        /* > 0: a listening socket inherited from systemd. hfd_http_new takes ownership of it on
         * success only, and ignores bind_address and port. */
        int listen_fd;
        /* The server's certificate chain and key, as PEM text. Required. */
        const char *cert_pem, *key_pem;
        /* Client certificates are requested and verified against this CA (PEM text). NULL: they are
         * not requested. */
        const char *client_ca_pem;
        unsigned n_workers;      /* 0 = 2, at most 64 */
        size_t max_body;         /* bytes; 0 = 3 MiB */
        size_t max_header_bytes; /* 0 = 64 KiB */
        /* 0 = 8000; lowered if the limit of open files does not allow so many. Half of them may be
         * strangers', and a quarter, but at most 512 per worker, may be handshakes. */
        size_t max_connections;
        hfd_http_handler handler; /* required */
        /* NULL: the first request makes every sender known, and every body is read. Called before
         * handler on the same thread. */
        hfd_http_on_head on_head;
        void *ctx; /* passed to handler and on_head */
};

/*
 * Binds and listens, but does not accept yet. The strings of config are used during this call only;
 * host is borrowed until hfd_http_free. 0 or -errno (-EINVAL: no handler, or too many workers).
 * HF_E_BUSY: another process has the port. HF_E_INVALID: a certificate, the key, the address or
 * listen_fd is not usable; the message names it. Thread: any.
 */
int hfd_http_new(const struct hf_host *host, const struct hfd_http_config *config,
                 struct hfd_http **ret_http, struct hf_status *reterr_status);
/* The port that the server listens on; 0 for a unix socket. Thread: any. */
uint16_t hfd_http_port(struct hfd_http *http);
/* Starts the workers and begins to accept. 0 or -errno; after an error only hfd_http_free may
 * follow. Call once. Thread: any but a worker. */
int hfd_http_start(struct hfd_http *http);
/*
 * Refuses new connections from now on; those to an inherited socket wait in its backlog instead.
 * The peers of existing connections are requested to end them (GOAWAY, Connection: close), and the
 * connections end once they are idle. Idempotent. Thread: any.
 */
void hfd_http_stop_accepting(struct hfd_http *http);
/*
 * Call after hfd_http_stop_accepting. Blocks until every connection has ended, so that the last
 * bytes of all responses are sent, or until deadline (boot time): then HF_E_TIMEOUT. Thread: any
 * but a worker.
 */
int hfd_http_wait_closed(struct hfd_http *http, hf_nsec deadline);
/*
 * Closes the remaining connections and joins the workers. Requests that are still referenced
 * elsewhere stay valid, and their responses are dropped. Accepts NULL, returns NULL. Thread: any
 * but a worker; nothing else may use http at the same time.
 */
struct hfd_http *hfd_http_free(struct hfd_http *http);
/* Replaces certificate, key and client CA. Open connections keep the certificate, but their next
 * requests verify the client's certificate by the new CA. 0, -ENOMEM or HF_E_INVALID, as for
 * hfd_http_new. After an error nothing has changed. Thread: any. */
int hfd_http_reload(struct hfd_http *http, const char *cert_pem, const char *key_pem,
                    const char *client_ca_pem, struct hf_status *reterr_status);
/* Connections that are open now. Thread: any. */
size_t hfd_http_n_connections(struct hfd_http *http);
/* A counter for the watchdog: a call increases it if every worker has begun an iteration since the
 * last increase. If a worker hangs, the counter increases once more at most. Thread: any, but
 * always the same one. */
uint64_t hfd_http_iterations(struct hfd_http *http);
