/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A gRPC channel and its server (grpc_server.h), under a clock that stands still until the test
 * moves it. The loop itself never sleeps for more than a millisecond here, but the test sees how
 * long it wants to. The linker replaces functions of nghttp2 and of the socket (--wrap) by those of
 * paced_channel.c, so that they fail, or read and write as much, as the test wants.
 *
 * One channel for the program. Asserts by cmocka. Only tests that link failing_memory.c can use it.
 * Thread: the test's.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "grpc_server.h"
#include "patience.h"
#include "server/storage/grpc/channel.h"

#define PACED_T0 (1000 * SEC) /* when each test begins */

struct paced_channel {
        struct grpc_server server;
        struct hfd_grpc_endpoint endpoints[2]; /* the one that the test names, and two.test */
        struct hfd_grpc_channel *channel;
        _Atomic hf_nsec now, step; /* step: how far each look at the clock moves it */
        atomic_int sleep;          /* ms: what the loop asked for last */
        atomic_uint n_hurries;     /* how often it asked for no sleep */
        atomic_bool sleeps_for_ever, is_held, looks_up;
        struct paced_call *next;        /* started when the first call is done; NULL = none */
        bool has_unsent, sleeps_unsent; /* of `next`; the channel's thread, until it is joined */
        /* What nghttp2 returns; 0 = it works. The next session fails in its first or in its last
         * step. */
        atomic_int submit_error, ping_error, callbacks_error, settings_error;
        /* errno of the channel's next call of each of these; 0 = it works */
        atomic_int recv_error, send_error, getsockopt_error;
        atomic_bool sends_half;
        /* Bytes that the socket takes: all, so many, or all, but the server gets none of them. */
        atomic_bool has_little_room, swallows;
        atomic_size_t room, n_swallowed;
        atomic_bool is_out_of_memory; /* as soon as the room is used up */
        /* How often the loop still finds its input buffer full; in the socket that it reads next
         * (-1 = none yet). */
        atomic_uint n_floods;
        atomic_int flooded_fd;
        char timeout[16]; /* grpc-timeout of the last request; "" = none */
        char added[16];   /* the header of the request itself */
};
extern struct paced_channel paced;

int paced_channel_set_up(void **state);
int paced_channel_tear_down(void **state);
#define PACED_TEST(name)                                                                           \
        cmocka_unit_test_setup_teardown(name, paced_channel_set_up, paced_channel_tear_down)

/* Opens the channel to the server at 127.0.0.1, or at this name. */
void paced_channel_open(void);
void paced_channel_open_of(const char *name);

/* Waits until an iteration of the loop has passed that began after the call. */
void paced_channel_await_iteration(void);
/* Moves the clock to this time since the begin of the test, and waits for an iteration. */
void paced_channel_move_to(hf_nsec since_begin);
/* Asserts that the loop wants to sleep for so long. */
void paced_channel_expect_sleep(int ms);
/* What the server has got. */
int paced_channel_n_connections(void);
int paced_channel_n_pings(void);
int paced_channel_n_received(void);

/* ---- calls ---- */

struct paced_call {
        struct hfd_grpc_stream stream;
        struct hf__buf *body, *probe;
        atomic_bool done;
        atomic_int n_messages;
        int outcome;
        char error_text[128];
};

/* Start a call. The first letter of text says what the server does (grpc_server.h). deadline: since
 * the begin of the test. */
void paced_call_start(struct paced_call *call, const char *text, hf_nsec deadline);
void paced_call_start_with(struct paced_call *call, const char *text, hf_nsec deadline,
                           struct hfd_grpc_request request);
void paced_call_start_large(struct paced_call *call, const char *text, size_t n_filler,
                            hf_nsec deadline, struct hfd_grpc_request request);
/* A stream, which is probed. */
void paced_call_start_stream(struct paced_call *call, const char *text, hf_nsec probe_after);
/* Also waits until the server has the message. */
void paced_call_start_and_arrive(struct paced_call *call, const char *text, hf_nsec deadline);
/* Waits for the end of the call, asserts how it ends, and frees its messages. */
void paced_call_expect_end(struct paced_call *call, int outcome, const char *error_text);
/* Makes a call that succeeds. All that the server has sent before has come then, too. */
void paced_call_make(const char *text);
/* Stops the channel, which cancels the call. */
void paced_call_stop(struct paced_call *call);
