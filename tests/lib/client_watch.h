/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch through an hf_client that records its events. Waiting aborts after PATIENCE_MSEC. Thread:
 * the test holds mu to read the members, unless it has waited and no more events can come.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client.h>

struct client_watch_event {
        enum hf_event_type type;
        char name[64], revision[32];
};

struct client_watch {
        uint64_t id; /* to cancel it */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        /* guarded by mu */
        struct client_watch_event *events;
        size_t n;
        bool ended;
        int error;
};

struct client_watch *client_watch_new(struct hf_client *client, const struct hf_watch_spec *spec);
void client_watch_free(struct client_watch *watch); /* when it has ended */

/* Waits for at least n events, and asserts that they come before the end. */
void client_watch_await(struct client_watch *watch, size_t n);
int client_watch_await_end(struct client_watch *watch); /* returns the error it ended with */
/* Waits for event i, counted from 0, and asserts its type and content. */
void client_watch_expect(struct client_watch *watch, size_t i, enum hf_event_type type,
                         const char *name);
