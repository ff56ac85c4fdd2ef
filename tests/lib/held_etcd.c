/* SPDX-License-Identifier: Apache-2.0 */
/* See held_etcd.h. All state is global, because the replaced functions have no context. */
#undef NDEBUG
#include "held_etcd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/etcd/etcd.h"
#include "server/storage/rpc.pb-c.h"
#include "time_units.h"

struct held_etcd held_etcd;
hf_nsec held_etcd_now;

static hf_nsec read_now(void *ctx) { return held_etcd_now; }
static const struct hf_clock fake_clock = {.size = sizeof fake_clock,
                                           .boot = read_now,
                                           .monotonic = read_now,
                                           .real = read_now};
static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        strncat(held_etcd.log, message, sizeof held_etcd.log - strlen(held_etcd.log) - 1);
}
const struct hf_host held_etcd_host = {.size = sizeof held_etcd_host,
                                       .clock = &fake_clock,
                                       .log = {.write = on_log}};

/* ---- the channels ---- */

int __wrap_hfd_grpc_channel_new(const struct hfd_grpc_channel_config *config,
                                struct hfd_grpc_channel **ret_channel);
int __wrap_hfd_grpc_channel_new(const struct hfd_grpc_channel_config *config,
                                struct hfd_grpc_channel **ret_channel) {
        if (held_etcd.n_channels == held_etcd.n_at_most)
                return -EMFILE;
        struct hfd_grpc_channel *channel = &held_etcd.channels[held_etcd.n_channels++];
        assert_true(strlen(config->thread_name) < sizeof channel->name);
        strcpy(channel->name, config->thread_name);
        *ret_channel = channel;
        return 0;
}

void __wrap_hfd_grpc_channel_stop(struct hfd_grpc_channel *channel);
void __wrap_hfd_grpc_channel_stop(struct hfd_grpc_channel *channel) {
        if (channel)
                channel->is_stopped = true;
}

void __wrap_hfd_grpc_channel_join(struct hfd_grpc_channel *channel);
void __wrap_hfd_grpc_channel_join(struct hfd_grpc_channel *channel) {
        for (size_t i = 0; i < held_etcd.n_channels; i++)
                assert_true(held_etcd.channels[i].is_stopped);
        if (channel)
                channel->is_joined = true;
}

struct hfd_grpc_channel *__wrap_hfd_grpc_channel_free(struct hfd_grpc_channel *channel);
struct hfd_grpc_channel *__wrap_hfd_grpc_channel_free(struct hfd_grpc_channel *channel) {
        for (size_t i = 0; i < held_etcd.n_channels; i++)
                assert_true(held_etcd.channels[i].is_joined);
        return NULL;
}

int __wrap_hfd_grpc_channel_start(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                                  const struct hfd_grpc_request *request);
int __wrap_hfd_grpc_channel_start(struct hfd_grpc_channel *channel, struct hfd_grpc_stream *stream,
                                  const struct hfd_grpc_request *request) {
        if (channel->is_stopped)
                return HF_E_CLOSED;
        assert_true(held_etcd.n_attempts < HELD_ETCD_ATTEMPTS);
        held_etcd.attempts[held_etcd.n_attempts++] =
                (struct held_attempt){.channel = channel, .request = *request, .stream = stream};
        if (held_etcd.on_start)
                held_etcd.on_start();
        return 0;
}

void __wrap_hfd_grpc_channel_cancel(struct hfd_grpc_channel *channel,
                                    struct hfd_grpc_stream *stream);
void __wrap_hfd_grpc_channel_cancel(struct hfd_grpc_channel *channel,
                                    struct hfd_grpc_stream *stream) {
        for (unsigned i = 0; i < held_etcd.n_attempts; i++)
                if (held_etcd.attempts[i].stream == stream) {
                        assert_ptr_equal(held_etcd.attempts[i].channel, channel);
                        held_etcd.attempts[i].is_canceled = true;
                        held_etcd.attempts[i].next_watch_at =
                                hfd_etcd_watch_endpoint(hfd_etcd_of(held_etcd.store));
                }
}

uint64_t __wrap_hfd_grpc_channel_iterations(const struct hfd_grpc_channel *channel);
uint64_t __wrap_hfd_grpc_channel_iterations(const struct hfd_grpc_channel *channel) {
        return channel->iterations;
}

hf_nsec __wrap_hfd_grpc_channel_alive_at(const struct hfd_grpc_channel *channel);
hf_nsec __wrap_hfd_grpc_channel_alive_at(const struct hfd_grpc_channel *channel) {
        return channel->alive_at;
}

/* ---- the store ---- */

void held_etcd_on_reply(void *ctx, const struct hfd_store_reply *reply) {
        held_etcd.n_replies++;
        held_etcd.error = reply->error;
        held_etcd.revision = reply->revision;
        held_etcd.status = reply->status;
}

void held_etcd_reset(void) {
        memset(&held_etcd, 0, sizeof held_etcd);
        held_etcd.n_at_most = HELD_ETCD_CHANNELS;
        held_etcd_now = 1000 * SEC;
}

void held_etcd_open(unsigned n_endpoints) {
        const char *urls[] = {"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3",
                              NULL};
        struct hf_status status = {0};

        urls[n_endpoints] = NULL;
        held_etcd_reset();
        assert_int_equal(hfd_etcd_store_new(&held_etcd_host,
                                            &(struct hfd_etcd_config){.endpoints = urls},
                                            &held_etcd.store, &status),
                         0);
        assert_int_equal(held_etcd.n_channels, HELD_ETCD_CHANNELS);
}

void held_etcd_close(void) {
        held_etcd.store->ops->free(held_etcd.store);
        for (size_t i = 0; i < held_etcd.n_channels; i++)
                assert_true(held_etcd.channels[i].is_joined);
}

int held_etcd_get(bool urgent) {
        return held_etcd.store->ops->get(held_etcd.store, "/k", urgent, held_etcd_now + 100 * SEC,
                                         held_etcd_on_reply, NULL);
}

const struct held_attempt *held_etcd_latest(void) {
        assert_true(held_etcd.n_attempts > 0);
        return &held_etcd.attempts[held_etcd.n_attempts - 1];
}

struct hfd_grpc_channel *held_etcd_channel(const char *name) {
        for (size_t i = 0; i < held_etcd.n_channels; i++)
                if (strcmp(held_etcd.channels[i].name, name) == 0)
                        return &held_etcd.channels[i];
        fail_msg("there is no channel %s", name);
        return NULL;
}

void held_etcd_end(const struct hfd_grpc_result *result) {
        const struct hfd_grpc_request request = held_etcd_latest()->request;

        request.on_done(request.ctx, result);
}

void held_etcd_fail(int outcome) {
        held_etcd_end(&(struct hfd_grpc_result){.outcome = outcome,
                                                .status = -1,
                                                .status_text = "",
                                                .error_text = "a reason"});
}

void held_etcd_respond(uint64_t revision) {
        Hfd__ResponseHeader header = HFD__RESPONSE_HEADER__INIT;
        Hfd__RangeResponse range = HFD__RANGE_RESPONSE__INIT;
        uint8_t data[200];

        header.revision = (int64_t)revision;
        range.header = &header;
        assert_true(protobuf_c_message_get_packed_size(&range.base) <= sizeof data);
        size_t n = protobuf_c_message_pack(&range.base, data);
        held_etcd_end(&(struct hfd_grpc_result){.code = 200,
                                                .status_text = "",
                                                .error_text = "",
                                                .message = (const char *)data,
                                                .n_message = n});
}
