/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A gRPC call: a unary one, or a stream, in which both sides send messages until one of them ends
 * it. A call with on_message is a stream; struct hfd_grpc_stream is the struct of both kinds.
 *
 * The user embeds struct hfd_grpc_stream in another struct and starts it on a channel (channel.h).
 * The channel owns it from then on. It calls on_message for each message of a stream, and on_done
 * once, last. All of these run on the channel's thread and must not block. Without on_release, the
 * user owns the memory again in on_done, where it may be freed or started again. With on_release,
 * the user owns it again in on_release, which is called after on_done.
 *
 * Outcomes:
 * - 0: the peer has ended the call, with a gRPC status or without (status -1).
 * - HF_E_UNAVAILABLE: the peer has certainly not executed the call: there was no connection, the
 *   request was not written to its end, or the peer says that it has refused the stream. A call
 *   with on_message never ends its request, so it gets this instead of HF_E_TIMEOUT, even if the
 *   peer has sent messages, unless a probe had no response.
 * - HF_E_UNAUTHORIZED: one side's TLS certificate was refused, before any request was read.
 * - HF_E_TIMEOUT: after the request was written, the deadline or head_timeout has passed, the
 *   connection broke, or the peer has reset the stream without refusing it; or a probe had no
 *   response. The peer may have executed the call or not.
 * - HF_E_CANCELED: the call was canceled, on_message ended it, or the channel was stopped.
 * - HF_E_TOO_LARGE: a message is longer than max_message.
 * - -errno: a local failure, or -EPROTO: what the peer sent is no uncompressed gRPC message, or is
 *   the second message of a unary call. The peer may have executed the call or not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/clock.h>

#include "base/buf.h"
#include "base/timer_heap.h"
#include "server/storage/grpc/command.h"

struct hfd_grpc_channel;
struct hfd_grpc_connection;

/* How a call ended. All pointers are valid until on_done returns. */
struct hfd_grpc_result {
        int outcome;             /* see above */
        int code;                /* HTTP status; 0 = none was received */
        int status;              /* grpc-status; -1 = none, or it is malformed */
        const char *status_text; /* grpc-message; "" = none */
        const char *error_text;  /* why it failed; "" = unknown */
        /* Unary: the message, without its prefix; NULL = it is missing or incomplete. */
        const char *message;
        size_t n_message;
};

struct hfd_grpc_request {
        const char *path; /* "/etcdserverpb.KV/Range"; static text */
        /* A header in addition to gRPC's own; static text, NULL = none. */
        const char *header_name, *header_value;
        struct hf__buf *body; /* the first message, prefix included; borrowed until on_done */
        size_t endpoint;      /* index */
        unsigned lane;        /* calls of different lanes share no connection */
        hf_nsec deadline;     /* boot time, for the whole call; HF_NSEC_NEVER only for a stream */
        hf_nsec head_timeout; /* from the start to the response's header block; 0 = none */
        size_t max_message;
        /*
         * A stream only: if, after the response's header block, nothing has been received for
         * probe_after, the message `probe` is sent, to which the peer is known to respond. If
         * nothing is received for probe_time after that, the stream ends with HF_E_TIMEOUT.
         * Borrowed until on_done; NULL = none.
         */
        struct hf__buf *probe;
        hf_nsec probe_after, probe_time;
        /* NULL = a unary call. data is borrowed until it returns. A result other than 0 ends the
         * call with HF_E_CANCELED. */
        int (*on_message)(void *ctx, const char *data, size_t n);
        void (*on_done)(void *ctx, const struct hfd_grpc_result *result);
        void (*on_release)(void *ctx); /* required for hfd_grpc_channel_cancel; NULL = none */
        void *ctx;
};

/* Everything is private to server/storage/grpc. */
struct hfd_grpc_stream {
        struct hfd_grpc_request request; /* immutable after the start */
        struct hfd_grpc_command start_command, cancel_command;
        bool cancel_posted; /* guarded by the channel's mu */

        /* the channel's thread only */
        struct hfd_grpc_channel *channel;
        struct hfd_grpc_connection *connection; /* NULL = it has not begun, or it has ended */
        struct hfd_grpc_stream *next, **link;   /* the connection's streams, oldest first */
        int32_t id;                             /* nghttp2's; 0 = not submitted */
        bool ended;
        /* output: `out` is the message that is being sent */
        struct hf__buf *out;
        size_t n_sent;
        uint64_t written_at; /* position in the connection's output after our END_STREAM; 0 = it is
                                not in the output yet */
        /* time */
        struct hf__timer timer;
        hf_nsec submitted_at, head_deadline, received_at;
        hf_nsec probed_at; /* 0 = no response to a probe is due */
        /* input */
        bool head_done;
        int code, status;
        char *status_text; /* owned; NULL = none */
        unsigned char prefix[5];
        size_t n_prefix;
        bool has_message; /* unary: the message is complete */
        char *message;    /* owned; NULL or space for n_message bytes */
        size_t n_message, n_received;
};

/* ---- for server/storage/grpc only; the channel's thread ---- */

/* Initializes a stream that is about to be started. Thread: that which starts it. */
void hfd_grpc_stream_init(struct hfd_grpc_stream *stream, const struct hfd_grpc_request *request,
                          hf_nsec now);
/* Handles a piece of the response's body. 0, or the outcome with which the stream must end. */
int hfd_grpc_stream_add_data(struct hfd_grpc_stream *stream, const char *data, size_t n);
/* Handles a header or a trailer. */
void hfd_grpc_stream_add_header(struct hfd_grpc_stream *stream, const char *name, size_t n_name,
                                const char *value, size_t n_value);
/* When the stream's timer must run next; HF_NSEC_NEVER = not at all. */
hf_nsec hfd_grpc_stream_due(const struct hfd_grpc_stream *stream);
/* Calls on_done. The stream belongs to no connection any more, and its timer is not queued. Without
 * on_release it must not be used afterwards. */
void hfd_grpc_stream_finish(struct hfd_grpc_stream *stream, int outcome, const char *error_text);
