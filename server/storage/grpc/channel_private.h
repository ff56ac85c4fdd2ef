/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The channel's struct, for server/storage/grpc only.
 *
 * Lock: mu guards `closed` and the streams' cancel_posted. It is taken before the mailbox's mutex
 * and never held during a callback. The mailbox and the atomic members are for any thread; the
 * latter are relaxed, because no other memory depends on them. Everything else that is not
 * immutable belongs to the channel's thread; hfd_grpc_assert_thread checks that.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mailbox.h"
#include "base/timer_heap.h"
#include "server/storage/grpc/channel.h"

#define HFD_GRPC_OUT_SPACE (64 * 1024)
/* Room behind HFD_GRPC_OUT_SPACE for the last frame, if it is not a DATA frame: other frames are
 * written whole, and have 16 KiB at most. */
#define HFD_GRPC_OUT_SLACK (32 * 1024)
#define HFD_GRPC_IN_SPACE  (256 * 1024)

struct hfd_grpc_connection;
struct hfd_grpc_resolver;

struct hfd_grpc_channel {
        /* immutable after the start */
        struct hfd_grpc_channel_config config;
        const struct hf_clock *clock; /* borrowed */
        pthread_t thread;
        int epoll_fd;

        struct hf__mailbox mailbox;
        _Atomic uint64_t iterations;
        _Atomic hf_nsec alive_at;

        pthread_mutex_t mu;
        bool closed; /* guarded by mu */

        /* owned by the mailbox once posted */
        struct hfd_grpc_command stop_command;

        /* the channel's thread only */
        pthread_t self; /* set by the thread itself, because `thread` may not be set yet */
        hf_nsec now;    /* boot time of the loop's latest wake-up */
        bool stopping;
        bool has_more; /* a connection has not read or written everything: do not sleep */
        struct hf__timer_heap stream_timers, connection_timers;
        /* Owned. All connections, also those that get no more calls. */
        struct hfd_grpc_connection *connections;
        /* [endpoint * HFD_GRPC_LANES + lane]: the connection that gets new calls; NULL = none */
        struct hfd_grpc_connection **current; /* owned */
        struct hfd_grpc_resolver *resolvers;  /* owned; look-ups under way */
        /* Shared by all connections. */
        char out[HFD_GRPC_OUT_SPACE + HFD_GRPC_OUT_SLACK];
        char in[HFD_GRPC_IN_SPACE];
};

#define hfd_grpc_assert_thread(channel) assert(pthread_equal((channel)->self, pthread_self()))

/* Ends a stream that belongs to no connection any more: calls on_done, and then on_release unless a
 * cancel command is in the mailbox, which will call it. */
void hfd_grpc_channel_end_stream(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                                 int outcome, const char *error_text);
/* Sets the stream's timer to hfd_grpc_stream_due. Call it when that time may have become earlier;
 * a timer that runs too early sets itself again. */
void hfd_grpc_channel_set_timer(struct hfd_grpc_stream *stream);
/* Posts a command; a stopped channel accepts it too. Thread: any. The channel must not be freed
 * before the command has been handled. */
void hfd_grpc_channel_post(struct hfd_grpc_channel *channel, struct hfd_grpc_command *command,
                           enum hfd_grpc_command_kind kind);
