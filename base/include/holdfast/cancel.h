/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cancellation tokens.
 *
 * A token is live until it is fired (hf_cancel_fire on it or on an ancestor) or until its deadline,
 * or an ancestor's, passes. Then it stays fired for ever. Cancellation goes from a parent to its
 * children, never upwards. The code that waits for work to end owns the token that cancels this
 * work.
 *
 * Firing blocks only on mutexes that are held for a short time. It calls the wakers of the token
 * and of its descendants. A waker does no more than make others notice: it signals a condition
 * variable, fires another token or cancels a request. When a deadline passes, nothing happens by
 * itself: wakers are not called. Code that tests the token, or waits with it, notices the passed
 * deadline.
 *
 * Tokens are reference counted, and a child holds a reference to its parent.
 *
 * Thread: any, for every function here.
 */
#include <stdbool.h>

#include <holdfast/api.h>
#include <holdfast/clock.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_cancel;

enum hf_cancel_reason {
        HF_CANCEL_NONE = 0,     /* still live */
        HF_CANCEL_STOPPING = 1, /* a planned stop: finish what has begun */
        HF_CANCEL_LOST = 2,     /* the Lease was lost: stop at once */
        HF_CANCEL_DEADLINE = 3, /* the deadline passed */
        HF_CANCEL_FAILED = 4,   /* something that this work depends on failed */
};

/*
 * Creates a token, which is live unless parent has fired. parent may be NULL: the token is then a
 * root. clock is borrowed for the token's life; NULL = hf_clock_system(). The deadlines of
 * ancestors are compared with this clock, so it should be the parent's. 0 or -errno; -EINVAL:
 * clock->size is wrong. The caller owns one reference.
 */
HF_MUST_CHECK int hf_cancel_new(struct hf_cancel *parent, const struct hf_clock *clock,
                                struct hf_cancel **ret_token);
/* Adds a reference and returns token. */
struct hf_cancel *hf_cancel_ref(struct hf_cancel *token);
/* Drops a reference. All wakers must have been removed before the last reference is dropped.
 * Accepts NULL, returns NULL. */
struct hf_cancel *hf_cancel_unref(struct hf_cancel *token);

/* A token that never fires, for a wait that only a deadline ends. Its clock is hf_clock_system().
 * Static storage: hf_cancel_ref and hf_cancel_unref do nothing, and neither do hf_cancel_fire and
 * hf_cancel_set_deadline. As a parent it is the same as NULL. */
struct hf_cancel *hf_cancel_never(void);

/* Fires token and its descendants, and calls their wakers. A token that has a reason keeps it. Does
 * nothing for HF_CANCEL_NONE. Idempotent; blocks only on mutexes that are held for a short time;
 * never allocates. The caller holds no lock that a waker takes. */
void hf_cancel_fire(struct hf_cancel *token, enum hf_cancel_reason reason);
/*
 * Sets a deadline (boot time) from which token and its descendants count as fired. If the token or
 * an ancestor has an earlier deadline, that one stays in force. Threads inside hf_cancel_wait use
 * the new deadline at once. Other waits with the token (in a queue, an informer, a request) may
 * notice it only when something else wakes them.
 */
void hf_cancel_set_deadline(struct hf_cancel *token, hf_nsec deadline);

/* Whether token was fired, or its deadline or that of an ancestor has passed. Never blocks. */
bool hf_cancel_fired(struct hf_cancel *token);
/* Why token has fired; HF_CANCEL_NONE = it is live. Never blocks. */
enum hf_cancel_reason hf_cancel_reason(struct hf_cancel *token);
/* The earliest deadline of token and its ancestors; HF_NSEC_NEVER = none. */
hf_nsec hf_cancel_deadline(struct hf_cancel *token);

/*
 * Blocks until token fires or its clock reaches boot time `until` (HF_NSEC_NEVER = no limit).
 * Returns HF_E_CANCELED (token fired), HF_E_TIMEOUT (`until` was reached, token is live), or
 * -errno.
 */
int hf_cancel_wait(struct hf_cancel *token, hf_nsec until);

/* A function that is called when a token fires. The caller provides the memory, and must remove the
 * waker before it frees this memory. All members belong to the token while the waker is added.
 * Frozen: it is a place in a list, and whatever else a token needs is in the token. */
struct hf_cancel_waker {
        void (*fn)(void *ctx);
        void *ctx;
        struct hf_cancel_waker *next, *prev;
        struct hf_cancel *token;
        int state;
};
/*
 * Adds a waker. fn(ctx) is called at most once, on the thread that fires the token, or in this
 * function if the token has fired already. A deadline that passes later does not cause the call. fn
 * must not block. The caller keeps token alive until the waker is removed, and holds no lock that
 * fn takes.
 */
void hf_cancel_add_waker(struct hf_cancel *token, struct hf_cancel_waker *waker,
                         void (*fn)(void *ctx), void *ctx);
/* Removes a waker. Blocks only while fn runs, so the caller holds no lock that fn takes. Once it
 * has returned, fn is not called again. Must not be called by fn. Does nothing for a zeroed or
 * removed waker. */
void hf_cancel_remove_waker(struct hf_cancel_waker *waker);

#ifdef __cplusplus
}
#endif
