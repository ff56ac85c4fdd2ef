/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The client that a term gives to its controllers. It wraps the embedder's client and sends a write
 * only while this process may act (the gate), with the term's fence, and with a deadline no later
 * than the end of the term's validity. Reads and watches pass until hf__leader_client_abort or
 * hf__leader_client_end.
 *
 * Each term of leader-only controllers has one client. The client stays in memory until the
 * response to its last write, even after the owner has released it. It knows which of its writes
 * may still take effect after the controllers have returned: those without a response, and those
 * whose outcome is unknown. At a server that compares fences there are none, because such a server
 * refuses a write of an old term.
 */
#include <holdfast/client_port.h>

#include "leader/gate.h"

struct hf__leader_client_config {
        struct hf_client *inner; /* borrowed; must outlive every response */
        struct hf__gate *gate;   /* borrowed until hf__leader_client_release */
        struct hf_fence fence;   /* sent with each write; fence.term 0 = send none */
        bool unfenced;           /* accept a response that does not confirm the fence */
        bool is_fenced;          /* the server has confirmed a fence before */
        /* A write of the term was refused by the fence, or the server did not confirm the fence.
         * Not called after hf__leader_client_end. Called on any thread, with a lock held: must only
         * count, set a flag, and wake the loop. */
        void (*stale)(void *ctx, int error);
        /* After hf__leader_client_end: the last write has got its response, or could not be sent.
         * Also called when a dry run ends and no write is under way. So it may be called several
         * times, or without any write to wait for. Likewise on any thread and with a lock held. */
        void (*settled)(void *ctx);
        void *ctx; /* passed to both */
};

/* 0 or -errno. config is copied. */
int hf__leader_client_new(const struct hf_host *host, const struct hf__leader_client_config *config,
                          struct hf_client **ret_client);
/* Refuses everything from now on and cancels the writes under way. Idempotent. Never blocks.
 * Thread: any. */
void hf__leader_client_abort(struct hf_client *client);
/* The controllers have returned: refuses everything from now on. Writes under way go on. Never
 * blocks. Thread: any. */
void hf__leader_client_end(struct hf_client *client);
/* When the last write that may still take effect ended, as hf__core_event.doubt_at (core.h), which
 * explains the special results 0 and HF_NSEC_NEVER. Thread: any. */
hf_nsec hf__leader_client_doubt_at(struct hf_client *client);
/* The fence that is sent with each write; borrowed until hf__leader_client_release. */
const struct hf_fence *hf__leader_client_fence(struct hf_client *self);
/* Whether the server has confirmed a fence, to this client or before. Thread: any. */
bool hf__leader_client_is_fenced(struct hf_client *client);
/* Aborts and drops the owner's reference. After it has returned, stale and settled are not called
 * again. Responses still under way reach their callers. Accepts NULL. Never blocks. */
void hf__leader_client_release(struct hf_client *client);
