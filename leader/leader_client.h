/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The client that a term gives to its controllers: a wrapper around the embedder's client that
 * sends a write only while this process may act, with the fence of the term, and no longer than the
 * term is valid. Reads pass until the abort.
 *
 * One is made per term and lives until its last write has been answered, the owner's reference
 * notwithstanding.
 */
#include <holdfast/client_port.h>

#include "leader/gate.h"

struct hf__leader_client_config {
        struct hf_client *inner; /* borrowed; must outlive every answer */
        struct hf__gate *gate;   /* borrowed until hf__leader_client_release */
        struct hf_fence
                fence; /* term 0 = the server's revisions are no numbers: nothing to fence with */
        bool unfenced; /* a missing echo is accepted */
        bool gate_off; /* writes are sent although the gate says no */
        /* A write of the term was refused by the fence, or its echo is missing. Any thread, under a
         * lock: only pokes. */
        void (*stale)(void *ctx, int error);
        void *ctx;
};

int hf__leader_client_new(const struct hf_host *host, const struct hf__leader_client_config *config,
                          struct hf_client **ret_client);
/* From now on everything is refused, and writes under way are cancelled. Thread: any. Never blocks.
 */
void hf__leader_client_abort(struct hf_client *client);
/* The owner's last word: as abort; stale is not called again; answers still under way reach those
 * who asked. Never blocks. */
void hf__leader_client_release(struct hf_client *client);
