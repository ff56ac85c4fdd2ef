/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cancellation tokens: one-way, from parent to children, by hand or by deadline.
 *
 * A token is live until it is fired (by hf_cancel_fire on it or on an ancestor) or its deadline
 * passes; then it stays fired. Whoever joins a piece of work owns the token that ends it. Firing
 * never blocks and calls wakers, which only poke (signal a condition, write an eventfd). A deadline
 * is noticed by whoever tests or waits; wakers are not called for it. Tokens are reference counted;
 * a child holds its parent.
 *
 * Thread: any, for every function here.
 */
#include <stdbool.h>

#include <holdfast/clock.h>

struct hf_cancel;

enum hf_cancel_reason {
        HF_CANCEL_NONE = 0,     /* still live */
        HF_CANCEL_STOPPING = 1, /* a planned stop: finish what is in hand */
        HF_CANCEL_LOST = 2,     /* the lease was lost: stop at once */
        HF_CANCEL_DEADLINE = 3, /* the deadline passed */
        HF_CANCEL_FAILED = 4,   /* something this depends on failed */
};

/* parent may be NULL (a root); clock is borrowed for the token's life. 0 or -ENOMEM. The caller
 * owns one reference. */
int hf_cancel_new(struct hf_cancel *parent, const struct hf_clock *clock,
                  struct hf_cancel **ret_token);
struct hf_cancel *hf_cancel_ref(struct hf_cancel *token);
struct hf_cancel *hf_cancel_unref(struct hf_cancel *token); /* accepts NULL, returns NULL */

/* A token that never fires; static, ref and unref do nothing. For a wait that really has no end but
 * its deadline. */
struct hf_cancel *hf_cancel_never(void);

/* Fires token and its descendants; the first reason stays. Idempotent, never blocks, never
 * allocates. */
void hf_cancel_fire(struct hf_cancel *token, enum hf_cancel_reason reason);
/*
 * Makes the token fire by itself at deadline (boot time); an earlier deadline of it or an ancestor
 * stays. Who waits in hf_cancel_wait notices at once; who waits elsewhere with the token (a queue,
 * a cache, a call) went by the deadline of then.
 */
void hf_cancel_set_deadline(struct hf_cancel *token, hf_nsec deadline);

bool hf_cancel_fired(struct hf_cancel *token);
enum hf_cancel_reason hf_cancel_reason(struct hf_cancel *token);
hf_nsec hf_cancel_deadline(
        struct hf_cancel *token); /* the nearest of it and its ancestors; HF_NSEC_NEVER = none */

/*
 * Blocks until token fires or boot time reaches until (HF_NSEC_NEVER = no limit).
 * Returns HF_E_CANCELED (fired) or HF_E_TIMEOUT (reached until, token live).
 */
int hf_cancel_wait(struct hf_cancel *token, hf_nsec until);

/* A waker is called once, on the firing thread, at once if the token has fired already. It must not
 * block. */
struct hf_cancel_waker {
        void (*fn)(void *ctx);
        void *ctx;
        struct hf_cancel_waker *next, *prev; /* owned by the token while added */
        struct hf_cancel *token;             /* likewise */
        int state;                           /* likewise */
};
void hf_cancel_add_waker(struct hf_cancel *token, struct hf_cancel_waker *waker,
                         void (*fn)(void *ctx), void *ctx);
/* After it returns fn is neither running nor will run. Blocks only while fn runs. Not from within
 * fn. */
void hf_cancel_remove_waker(struct hf_cancel_waker *waker);
