/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The running controllers of one term.
 *
 * Two structs have nearly the same name:
 *  - struct hf__term (here) is the whole term: all its controllers with a thread each, one gated
 *    and fenced client, one abort token. The elector owns it.
 *  - struct hf_term (public, leader.h) is the part of one controller in it: that
 *    controller's run() receives it. It lives inside the struct hf__term and points back to it.
 *
 * The controllers of class HF_EVERY_INSTANCE run in a struct hf__term too: without a gate and a
 * fence, with the embedder's own client, from the start of the electors to their stop.
 */
#include <holdfast/leader.h>

#include "leader/gate.h"
#include "leader/leader_client.h"

struct hf__term;

struct hf__term_config {
        /* Borrowed for the term's life; checked by hf__controller_set_copy. */
        const struct hf_controller *controllers;
        size_t n_controllers;
        enum hf_controller_class runs; /* only these are run */
        const char *label;             /* "namespace/name" of the Lease, for the log; borrowed */
        /* All controllers have returned after a drain or an abort. Called once, on any thread, and
         * not for a term that never began; must not block. */
        void (*joined)(void *ctx);
        void *ctx;

        /* For hf__term_begin. */
        /* client.gate NULL = HF_EVERY_INSTANCE: the controllers use client.inner itself. */
        struct hf__leader_client_config client;
        const char *acquired_at; /* the acquire's resourceVersion; copied; NULL = "" */
};

/*
 * Makes a term whose threads exist and wait for hf__term_begin, so that a standby can begin a term
 * as soon as it has acquired the Lease. 0 or -errno: then nothing exists. The caller owns the term,
 * and may free it without having begun it. Takes some 50 us for each controller.
 */
int hf__term_prepare(const struct hf_host *host, const struct hf__term_config *config,
                     struct hf__term **ret_term);
/*
 * Begins a prepared term, once: all of its controllers may run from now on. config is what it was
 * prepared with, and has the client. Never blocks. 0 or -errno: then the term has not begun.
 * Thread: owner only, as for all functions here that do not say `any`.
 */
int hf__term_begin(struct hf__term *term, const struct hf__term_config *config);
/* Prepares a term and begins it. On failure nothing has run, and nothing exists. */
int hf__term_new(const struct hf_host *host, const struct hf__term_config *config,
                 struct hf__term **ret_term);
/* The number of threads that a term of these controllers has. */
size_t hf__term_n_threads(const struct hf__term_config *config);
/* Planned end of a term that has begun: drains each controller when the controllers after it have
 * returned. Idempotent. Thread: any. Never blocks. */
void hf__term_fire_drain(struct hf__term *term);
/* Makes the gated client, if there is one, refuse all requests, then fires the abort token.
 * Idempotent. Thread: any. Never blocks. */
void hf__term_fire_abort(struct hf__term *term, enum hf_cancel_reason reason);
/* Whether all controllers have returned after a drain or an abort: `joined` was called, or is about
 * to be. False before both, even if all have returned. Thread: any. */
bool hf__term_is_joined(struct hf__term *term);
/* The name of a controller that has not returned; "" = none. Borrowed from config.controllers.
 * Thread: any. */
const char *hf__term_stuck_name(struct hf__term *term);
/* Takes the gated client out of a joined term, so that hf__term_free leaves it alone. The caller
 * owns it (hf__leader_client_release). NULL: the term has none. */
struct hf_client *hf__term_take_client(struct hf__term *term);
/* Joins the threads and frees the term. Requires hf__term_is_joined, or that the term never began:
 * then its threads only return, so this is short too. Accepts NULL, returns NULL. */
struct hf__term *hf__term_free(struct hf__term *term);
