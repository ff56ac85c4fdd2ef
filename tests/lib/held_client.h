/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An hf_client that keeps requests and watches until the test responds. They have numbers in the
 * order in which they were made, from 0, and ids that begin at HELD_ID. A cancel is only noted: the
 * test decides how the request or the watch ends.
 *
 * One client per program. Asserts that nothing is ended twice. Thread: the test's.
 */
#include <stdbool.h>

#include <holdfast/client_port.h>

#define HELD_ID  70
#define HELD_MAX 64

struct held_request {
        struct hf_request request; /* its texts are borrowed from the caller, but not `body` */
        struct hf_fence fence;
        char body[4096]; /* with a NUL */
        hf_response_fn done;
        void *ctx;
        bool is_open;
        unsigned n_cancels;
};

struct held_watch {
        struct hf_watch_spec spec;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
        bool is_open;
        unsigned n_cancels;
};

struct held_client {
        struct hf_client base; /* first */
        struct held_request requests[HELD_MAX];
        struct held_watch watches[HELD_MAX];
        unsigned n_requests, n_watches;
        int fail;             /* the error of each start of a request or watch; 0 = none */
        void (*during)(void); /* called while a request or a watch is being started */
        bool echoes;          /* responses echo the fence */
};

extern struct held_client held;

void held_client_init(const struct hf_host *host);
/* Responds to a request. status: NULL = only its error is set. body: NULL = none. */
void held_respond(unsigned number, int error, const struct hf_status *status, const char *body);
void held_event(unsigned watch, enum hf_event_type type, const char *object);
void held_end_watch(unsigned watch, int error);
