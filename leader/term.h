/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of a term: one thread per controller, begun and drained in the order of `after`, one
 * client. The same struct, with the embedder's own client and no gate, runs the controllers of
 * every instance.
 */
#include <holdfast/leader.h>

#include "leader/gate.h"
#include "leader/leader_client.h"

struct hf__term;

struct hf__term_config {
        const struct hf_controller *controllers; /* borrowed; checked by hf__controller_set_check */
        size_t n_controllers;
        enum hf_controller_class class; /* only these are run */
        const char *label;              /* "namespace/name" of the Lease, for the log; borrowed */
        /* leader only */
        struct hf__leader_client_config
                client;          /* its gate NULL = every instance: the client is used as it is */
        const char *acquired_at; /* copied */
        /* All work has returned after a drain or an abort. Any thread, once; only pokes. */
        void (*joined)(void *ctx);
        void *ctx;
};

/*
 * Starts the threads; does not wait for anything. On failure nothing runs. When a thread could not
 * be made the work exists but is not complete: the caller aborts it, and it joins like any other.
 */
int hf__term_new(const struct hf_host *host, const struct hf__term_config *config,
                 struct hf__term **ret_work);
bool hf__term_is_complete(struct hf__term *work);
void hf__term_fire_drain(struct hf__term *work); /* idempotent; never blocks */
void hf__term_fire_abort(
        struct hf__term *work,
        enum hf_cancel_reason reason);          /* likewise; the client refuses from now on */
bool hf__term_is_joined(struct hf__term *work); /* `joined` was called, or is about to be */
/* The name of a controller that has not returned ("" = none), into name. */
void hf__term_stuck_name(struct hf__term *work, char *name, size_t max_name);
/* Only when joined: frees. Accepts NULL, returns NULL. */
struct hf__term *hf__term_free(struct hf__term *work);
