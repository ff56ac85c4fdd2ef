/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A gRPC client channel: calls to one or more endpoints over HTTP/2 (nghttp2), in clear text with
 * prior knowledge or over TLS (OpenSSL). One thread with one epoll loop serves all connections.
 *
 * Connections. Each call names an endpoint and a lane: calls of different lanes never share a
 * connection. For each endpoint and lane, one connection at most gets new calls. It is made for the
 * first call and gets them until it fails or is retired (grpc_connection.h). Calls are sent once
 * the peer has sent its first frame, so that the calls that wait for a connection to a silent peer
 * are certainly not executed. The frames that a connection writes in one iteration of the loop are
 * collected, about 64 KiB at most for each send.
 *
 * Dead peers. The look-up of the host, the TCP connection to its last address (connect.c), and the
 * start of TLS and HTTP/2 may each take HFD_GRPC_CONNECT_TIME; then the connection fails. While
 * calls are under way and nothing is received for HFD_GRPC_PING_AFTER, a PING is sent; if nothing
 * is received within HFD_GRPC_PING_TIME after it, the connection fails. PINGs are at least
 * HFD_GRPC_PING_EVERY apart. If a call reaches its deadline and its connection has received nothing
 * since the call was sent, later calls get a new connection.
 *
 * Threads: any, except that only the owner may join and free a channel, on another thread than the
 * channel's.
 */
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "server/storage/grpc/endpoint.h"
#include "server/storage/grpc/stream.h"

#define HFD_GRPC_LANES        2
#define HFD_GRPC_CONNECT_TIME (3 * HF_NSEC_PER_SEC)
#define HFD_GRPC_PING_AFTER   (2 * HF_NSEC_PER_SEC)
#define HFD_GRPC_PING_TIME    (3 * HF_NSEC_PER_SEC)
/* etcd closes connections that send PINGs more often than every 5 s. */
#define HFD_GRPC_PING_EVERY (6 * HF_NSEC_PER_SEC)

struct hfd_grpc_channel;
struct hfd_grpc_tls;

struct hfd_grpc_channel_config {
        const char *thread_name;
        /* All borrowed until the channel is freed. */
        const struct hf_host *host;
        const struct hfd_grpc_endpoint *endpoints;
        size_t n_endpoints;
        const struct hfd_grpc_tls *tls; /* NULL if no endpoint uses TLS */
};

/* Starts the thread; connects to nothing yet. 0 or -errno. */
int hfd_grpc_channel_new(const struct hfd_grpc_channel_config *config,
                         struct hfd_grpc_channel **ret_channel);
/* From now on hfd_grpc_channel_start fails with HF_E_CLOSED. Calls under way end soon, with
 * HF_E_CANCELED unless they end otherwise before. Idempotent, never blocks. Accepts NULL. */
void hfd_grpc_channel_stop(struct hfd_grpc_channel *channel);
/* Waits for the end of a channel that was stopped. When it returns, every callback has returned.
 * If a host is just being looked up, it waits for getaddrinfo, which cannot be interrupted. Accepts
 * NULL. */
void hfd_grpc_channel_join(struct hfd_grpc_channel *channel);
/* Frees a channel that was joined. A call that is started after the stop and before this fails but
 * does no harm. Accepts NULL, returns NULL. */
struct hfd_grpc_channel *hfd_grpc_channel_free(struct hfd_grpc_channel *channel);

/* Starts a call; request is copied, but not what it points to (stream.h). 0, or HF_E_CLOSED: no
 * callback is called, and the memory stays the caller's. After 0 all callbacks may have run
 * already, and may have freed the stream. */
int hfd_grpc_channel_start(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                           const struct hfd_grpc_request *request);
/* Causes a call that has on_release to end soon with HF_E_CANCELED, unless it ends otherwise
 * before. Idempotent. The caller makes sure that the call is not released before this function
 * returns. */
void hfd_grpc_channel_cancel(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream);

/* A counter that grows with each iteration of the loop: about once a second when idle, else more
 * often, unless a callback hangs. */
uint64_t hfd_grpc_channel_iterations(const struct hfd_grpc_channel *channel);
/* The boot time of the latest iteration. */
hf_nsec hfd_grpc_channel_alive_at(const struct hfd_grpc_channel *channel);
