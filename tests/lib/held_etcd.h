/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An etcd store without an etcd: the linker replaces the functions of its gRPC channels (--wrap) by
 * those of held_etcd.c, and the test decides how each attempt of a call and each watch goes on.
 * Attempts are numbered in the order in which they were started, from 0. The clock stands still
 * until the test sets `held_etcd_now`.
 *
 * Asserts by cmocka. Thread: the test's.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/storage/etcd/store.h"
#include "server/storage/grpc/channel.h"

#define HELD_ETCD_CHANNELS 3
#define HELD_ETCD_ATTEMPTS 32

struct hfd_grpc_channel {
        char name[16];
        hf_nsec alive_at;
        uint64_t iterations;
        bool is_stopped, is_joined;
};

struct held_attempt {
        struct hfd_grpc_channel *channel;
        struct hfd_grpc_request request;
        struct hfd_grpc_stream *stream;
        bool is_canceled;
        size_t next_watch_at; /* endpoint of a watch that had begun at the cancel */
};

struct held_etcd {
        struct hfd_store *store; /* after held_etcd_open */
        struct hfd_grpc_channel channels[HELD_ETCD_CHANNELS];
        size_t n_channels, n_at_most; /* n_at_most: how many channels can be made */
        struct held_attempt attempts[HELD_ETCD_ATTEMPTS];
        unsigned n_attempts;
        void (*on_start)(void); /* called when an attempt starts; NULL = not */
        char log[1000];         /* all messages */
        /* the replies to operations whose callback is held_etcd_on_reply */
        unsigned n_replies;
        int error; /* of the last reply, like the next two */
        uint64_t revision;
        struct hf_status status;
};

extern struct held_etcd held_etcd;
extern hf_nsec held_etcd_now;
extern const struct hf_host held_etcd_host;

void held_etcd_reset(void); /* as before the first store */
/* Opens a store with 1 to 3 endpoints, http://127.0.0.1:1 and so on. */
void held_etcd_open(unsigned n_endpoints);
void held_etcd_close(void);

void held_etcd_on_reply(void *ctx, const struct hfd_store_reply *reply);
int held_etcd_get(bool urgent); /* gets a key, within 100 s */

const struct held_attempt *held_etcd_latest(void);
struct hfd_grpc_channel *held_etcd_channel(const char *name); /* name: of the channel's thread */

/* End the latest attempt: with this result, with a failure without a response, or with the response
 * to a get. */
void held_etcd_end(const struct hfd_grpc_result *result);
void held_etcd_fail(int outcome);
void held_etcd_respond(uint64_t revision);
