/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program that embeds the library: a host with an elector, a controller and a REST client, over
 * the fake API server. The REST client has a server that does not exist. Asserts instead of
 * handling errors. Thread: that of the test; the members guarded by mu are also set by threads of
 * the library.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/leader.h>

#include "fake_api_client.h"

#define EMBEDDER_STACK ((size_t)320 << 10) /* the stack that the host wants for each thread */

struct embedder {
        struct fake_api *api;
        struct hf_host host;
        struct fake_api_client *client;
        struct hf_client *rest;
        struct hf_electors *electors;
        struct hf_elector *elector;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        bool leads;
        size_t least_stack, most_stack; /* of the threads that called the embedder, in bytes */
        int n_ended;                    /* runs of controllers */
};

struct embedder *embedder_new(void);
void embedder_free(struct embedder *e);
/* The configuration of an elector whose controller is borrowed. */
struct hf_elector_config embedder_config(struct embedder *e, const struct hf_controller *it);
/* The controller's run function: sets `leads` until the term ends. ctx: the embedder. */
int embedder_controller(struct hf_term *term, void *ctx);
/* Waits until a controller runs. */
void embedder_await_leading(struct embedder *e);
