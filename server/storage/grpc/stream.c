/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one call: assembles messages from the pieces of the response, computes when its
 * timer must run, and reports its end. channel.c and session.c drive it. This file knows neither
 * sockets nor HTTP/2.
 *
 * A gRPC body is a sequence of messages, each with a prefix, in pieces of any size. If a call has
 * on_message and a message is complete in one piece, it is passed on in place. Every other one is
 * copied once, into memory of its size: a unary message must be kept until the trailers say that it
 * is good.
 *
 * Invariant: once on_done is called, nothing here refers to the stream, so that on_done may free it
 * or start it again. Only a stream with on_release stays valid longer, because its cancel command
 * may still be in the mailbox.
 */
#include "server/storage/grpc/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/blocks.h"
#include "base/text.h"
#include "server/storage/grpc/prefix.h"

_Static_assert(sizeof((struct hfd_grpc_stream *)0)->prefix == HFD_GRPC_PREFIX, "the prefix fits");

void hfd_grpc_stream_init(struct hfd_grpc_stream *stream, const struct hfd_grpc_request *request,
                          hf_nsec now) {
        *stream = (struct hfd_grpc_stream){
                .request = *request,
                .out = request->body,
                .status = -1,
                .received_at = now,
                .head_deadline = HF_NSEC_NEVER,
        };
        if (request->head_timeout > 0 && request->head_timeout < HF_NSEC_NEVER - now)
                stream->head_deadline = now + request->head_timeout;
}

/* ---- input ---- */

static void drop_message(struct hfd_grpc_stream *stream) {
        hf__blocks_put(stream->message);
        stream->message = NULL;
        stream->n_message = 0;
        stream->n_received = 0;
        stream->n_prefix = 0;
}

/* The prefix is complete. 0, or the outcome with which the stream must end. */
static int begin_message(struct hfd_grpc_stream *stream) {
        uint32_t n;

        if (hfd_grpc_prefix_read(stream->prefix, &n) != 0)
                return -EPROTO;
        if (n > stream->request.max_message)
                return HF_E_TOO_LARGE;
        stream->n_message = n;
        stream->n_received = 0;
        return 0;
}

/* A stream's message is complete. 0, or the outcome with which the stream must end. */
static int deliver_message(struct hfd_grpc_stream *stream, const char *message) {
        return stream->request.on_message(stream->request.ctx, message, stream->n_message) == 0
                       ? 0
                       : HF_E_CANCELED;
}

/* Copies the bytes that belong to the current message. Returns their number, or -ENOMEM. */
static ssize_t copy_to_message(struct hfd_grpc_stream *stream, const char *data, size_t n) {
        size_t wanted = stream->n_message - stream->n_received;

        if (!stream->message) {
                /* + 1: an empty message has memory too, because NULL means that there is none. */
                stream->message = hf__blocks_get(stream->n_message + (size_t)1);
                if (!stream->message)
                        return -ENOMEM;
        }
        if (n > wanted)
                n = wanted;
        memcpy(stream->message + stream->n_received, data, n);
        stream->n_received += n;
        return (ssize_t)n;
}

/* Reads bytes of a message whose prefix is complete. Returns their number, or -ENOMEM.
 * *ret_end: the outcome with which the stream must end, or 0. */
static ssize_t read_message(struct hfd_grpc_stream *stream, const char *data, size_t n,
                            int *ret_end) {
        bool is_unary = !stream->request.on_message;
        ssize_t used;

        if (!is_unary && !stream->message && n >= stream->n_message) {
                used = (ssize_t)stream->n_message;
                *ret_end = deliver_message(stream, data);
                stream->n_prefix = 0;
                return used;
        }
        used = copy_to_message(stream, data, n);
        if (used < 0 || stream->n_received < stream->n_message)
                return used;
        if (is_unary) {
                stream->has_message = true;
        } else {
                *ret_end = deliver_message(stream, stream->message);
                drop_message(stream);
        }
        return used;
}

int hfd_grpc_stream_add_data(struct hfd_grpc_stream *stream, const char *data, size_t n) {
        int end = 0;

        assert(!stream->ended);
        if (stream->code != 200)
                return 0; /* not a message, but the page of a proxy */
        while (end == 0) {
                if (stream->n_prefix < HFD_GRPC_PREFIX) {
                        while (n > 0 && stream->n_prefix < HFD_GRPC_PREFIX) {
                                stream->prefix[stream->n_prefix++] = (unsigned char)*data++;
                                n--;
                        }
                        if (stream->n_prefix < HFD_GRPC_PREFIX)
                                return 0;
                        end = begin_message(stream);
                        if (end != 0)
                                break;
                } else if (n == 0) {
                        return 0;
                }
                if (stream->has_message)
                        return -EPROTO; /* a unary response has one message */
                ssize_t used = read_message(stream, data, n, &end);
                if (used < 0)
                        return (int)used;
                data += used;
                n -= (size_t)used;
        }
        return end;
}

/* A copy of a grpc-message, which is percent-encoded. NULL = out of memory; the status is valid
 * even then. */
static char *decode_text(const char *value, size_t n) {
        char *text = malloc(n + 1), *to = text;

        if (!text)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                if (value[i] == '%' && i + 2 < n && hf__hex_digit(value[i + 1]) >= 0 &&
                    hf__hex_digit(value[i + 2]) >= 0) {
                        *to++ = (char)(hf__hex_digit(value[i + 1]) << 4 |
                                       hf__hex_digit(value[i + 2]));
                        i += 2;
                } else {
                        *to++ = value[i];
                }
        }
        *to = 0;
        return text;
}

/* Returns the value of one to four digits; -1 = it is anything else. */
static int parse_number(const char *value, size_t n) {
        int result = 0;

        if (n == 0 || n > 4)
                return -1;
        for (size_t i = 0; i < n; i++) {
                if (value[i] < '0' || value[i] > '9')
                        return -1;
                result = result * 10 + (value[i] - '0');
        }
        return result;
}

void hfd_grpc_stream_add_header(struct hfd_grpc_stream *stream, const char *name, size_t n_name,
                                const char *value, size_t n_value) {
        if (n_name == 7 && memcmp(name, ":status", 7) == 0) {
                stream->code = parse_number(value, n_value);
        } else if (n_name == 11 && memcmp(name, "grpc-status", 11) == 0) {
                stream->status = parse_number(value, n_value);
        } else if (n_name == 12 && memcmp(name, "grpc-message", 12) == 0) {
                free(stream->status_text);
                /* NULL means "", which good responses send. */
                stream->status_text = n_value > 0 ? decode_text(value, n_value) : NULL;
        }
}

/* ---- time ---- */

hf_nsec hfd_grpc_stream_due(const struct hfd_grpc_stream *stream) {
        hf_nsec due = stream->request.deadline, probe;

        if (!stream->head_done && stream->head_deadline < due)
                due = stream->head_deadline;
        if (stream->request.probe && stream->head_done) {
                probe = stream->probed_at != 0 ? stream->probed_at + stream->request.probe_time
                                               : stream->received_at + stream->request.probe_after;
                if (probe < due)
                        due = probe;
        }
        return due;
}

/* ---- end ---- */

void hfd_grpc_stream_finish(struct hfd_grpc_stream *stream, int outcome, const char *error_text) {
        char *message = stream->message, *status_text = stream->status_text;
        const struct hfd_grpc_result result = {
                .outcome = outcome,
                .code = stream->code,
                .status = stream->status,
                .status_text = status_text ? status_text : "",
                .error_text = error_text,
                .message = stream->has_message ? message : NULL,
                .n_message = stream->n_message,
        };

        assert(!stream->ended && !stream->connection && !stream->timer.queued);
        stream->message = NULL;
        stream->status_text = NULL;
        stream->ended = true;
        stream->request.on_done(stream->request.ctx, &result);
        hf__blocks_put(message);
        free(status_text);
}
