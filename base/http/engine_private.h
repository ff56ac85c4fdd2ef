/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The engine's struct, for the files of base/http only.
 *
 * Lock: mu guards what other threads share with the engine's thread. It is taken before the
 * mailbox's mutex and never held during a callback or a call of curl. The members under "the
 * engine's thread only" belong to that thread. Most functions that other files call check this with
 * hf__engine_assert_thread. Those that also run after the thread has ended cannot.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/http/avoided.h"
#include "base/http/command.h"
#include "base/http/curl_options.h"
#include "base/http/engine.h"
#include "base/http/lane.h"
#include "base/mailbox.h"
#include "base/timer_heap.h"

#define HF__HTTP_N_BUCKETS 1024

struct hf__http_engine {
        /* immutable after the start */
        const struct hf_host *host;   /* borrowed */
        const struct hf_clock *clock; /* borrowed */
        pthread_t thread;
        int epoll_fd, timer_fd;

        struct hf__mailbox mailbox;

        pthread_mutex_t mu;
        /* guarded by mu */
        bool closed;
        uint64_t last_id;
        /* By id. A request is in its bucket from submission until it ends. */
        struct hf__exchange *buckets[HF__HTTP_N_BUCKETS];

        /* owned by the mailbox once posted */
        struct hf__http_command stop_command;

        /* the engine's thread only */
        pthread_t self; /* set by the thread itself, because `thread` may not be set yet */
        hf_nsec now;    /* boot time when the loop last ended the requests that are overdue */
        hf_nsec timer_expires_at; /* boot time when timer_fd expires; HF_NSEC_NEVER = not armed */
        bool stopping;
        struct hf__timer_heap exchange_timers; /* deadlines and delays of requests */
        struct hf__timer_heap scheduled_calls; /* of hf__http_schedule */
        struct hf__exchange *exchanges;        /* taken from the mailbox and not yet ended */
        struct hf__lanes lanes;
        struct hf__silent_addresses silent;
        struct hf__curl_options options;
};

#define hf__engine_assert_thread(engine) assert(pthread_equal((engine)->self, pthread_self()))

/* Removes an exchange from all lists after its on_done has returned. Frees it, unless its cancel
 * command is in the mailbox: then the engine frees it when it takes that command. Thread: the
 * engine's. */
void hf__engine_remove_exchange(struct hf__http_engine *engine, struct hf__exchange *x);
