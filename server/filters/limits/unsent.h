/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Accounts of the responses that clients have not read yet, one account for each user. A request
 * gives its seats back (priority.h) when its client does not read the response at once, so a slow
 * reader does not delay other requests. The response is charged to its user's account instead.
 *
 * Lists are refused when an account is full, because a list may be large. Watches are always
 * admitted, and everything else up to twice the limits, so that a user with large lists can still
 * get an object and renew a Lease. To make room, a request whose reader has stalled is ended
 * ("cut").
 *
 * A list that runs may become an unread response at any moment. So it reserves what it may hold,
 * until it is charged or finished. Reservations count against the limits of lists once half of the
 * limit is charged: many lists at a time are no reason to refuse one while their clients read them.
 * Lists take an account beyond its limit in two ways only: the lists that run at one moment may
 * hold more than half of it, and two workers may admit a list before one of them reserves. The
 * second way exceeds it by one list for each worker at most.
 *
 * Watches. The bytes that wait for the client of a watch are charged too, if there are at least
 * HFD_UNSENT_WATCH: the pieces in its response, and the changes in its watcher with the objects
 * that they keep in memory. Watches share frames and objects, and each is charged for all that
 * waits for it, so the charged bytes bound the memory. Initial events are charged only while
 * changes wait too: watches share them, and watch_initial.c limits them. No request is refused
 * because of watches. When the responses and watches of a user together exceed the limit, one of
 * the user's watches is ended: of those that have been behind (charged) for HFD_UNSENT_STALL, the
 * one with the most bytes. If a limit is still exceeded after another HFD_UNSENT_STALL, that watch
 * may be chosen again, and is cut if its client has read nothing since. When all accounts together
 * exceed the total, the account with the most bytes of watches loses one, if that account has more
 * than an equal share. The bytes may exceed the limits for HFD_UNSENT_STALL.
 *
 * Lock: one mutex guards all accounts. Requests are cut, and watches ended, after it was released.
 * hfd_unsent_watch.measure runs under it. Thread: the request's worker for hfd_unsent_reserve,
 * hfd_unsent_add and hfd_unsent_remove, so an entry has one user; any for the other functions.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

#include "base/timer_heap.h"

struct hfd_http_request;
struct hfd_unsent;
struct hfd_unsent_account;

/* One unread response, or the reservation of a list. Part of the request's context; zero = neither.
 */
struct hfd_unsent_entry {
        struct hfd_unsent_account *account; /* borrowed; NULL = nothing charged or reserved */
        bool reserved;                      /* HFD_UNSENT_STREAM is reserved, nothing is charged */
        struct hfd_http_request *request;   /* borrowed: it contains this; NULL if reserved */
        struct hfd_unsent_entry *older, *newer; /* in the account's list, if charged */
        size_t bytes;                           /* charged */
};

/* A watch with fewer waiting bytes is not charged. So a watch whose client reads as fast as the
 * events come seldom needs the lock. */
#define HFD_UNSENT_WATCH ((size_t)16 << 10)

/*
 * The unread bytes of a watch. Begins with the immutable members set and all others zero.
 *
 * Lifetime: a watch that is in an account must have a live request, because another thread may take
 * a reference to the request. So `measure` must return 0 from the end of the request on, and the
 * owner calls hfd_unsent_watch_update then, before the last reference is dropped. watch_events.c
 * does so in on_gone, and in on_drained when the last bytes of a response are read.
 */
struct hfd_unsent_watch {
        /* Changed under the lock. update and remove read it without the lock, and do nothing if it
         * is false; unsent_watch.c says why no change is missed. */
        atomic_bool charged;
        /* immutable */
        struct hfd_unsent *unsent;        /* borrowed; NULL = never charged */
        const char *user;                 /* borrowed */
        struct hfd_http_request *request; /* borrowed: it owns this */
        /* The bytes that wait now. Called under the lock of the accounts, so it takes no lock. */
        size_t (*measure)(void *ctx);
        /* Ends the watch, so that only what is in its response still waits. Called without a lock,
         * once at most. */
        void (*end)(void *ctx);
        void *ctx;

        /* guarded by the lock of the accounts */
        struct hfd_unsent_account *account;     /* borrowed; NULL = not charged */
        struct hfd_unsent_watch *older, *newer; /* while it has been behind for a short time */
        struct hf__timer by_bytes;              /* afterwards */
        size_t bytes;
        hf_nsec since; /* boot time; it has been behind from then on, or it was chosen then */
        bool ended;    /* it was chosen, so `end` is not called again; never false again */
};

struct hfd_unsent_limits {
        size_t user_bytes, user_responses, total_bytes;
};
/*
 * rest_list.c makes no further piece of a list while this many bytes of it wait to be sent. These
 * are about eight pieces of the usual size (rendering.h), so that the peer reads some while the
 * next ones are made.
 */
#define HFD_UNSENT_STREAM ((size_t)256 << 10)
/*
 * One user: 256 lists of HFD_UNSENT_STREAM, or 42 objects of the largest size, which is more than a
 * client usually reads at a time. The total: a quarter of the memory of a small server (1 GiB), and
 * room for four users at their limits. Responses: the memory of 4096 requests is about 8 MB.
 */
#define HFD_UNSENT_USER_BYTES     ((size_t)64 << 20)
#define HFD_UNSENT_TOTAL_BYTES    ((size_t)256 << 20)
#define HFD_UNSENT_USER_RESPONSES ((size_t)4096)
/* A reader that has read nothing for this time may be cut for another request. A healthy network
 * delivers within it, also after a lost packet. */
#define HFD_UNSENT_STALL (5 * HF_NSEC_PER_SEC)

/* limits NULL = the constants above. host is borrowed. 0 or -errno. */
int hfd_unsent_new(const struct hf_host *host, const struct hfd_unsent_limits *limits,
                   struct hfd_unsent **ret_unsent);
/* Requires that nothing is charged or reserved, also for watches. Accepts NULL; returns NULL. */
struct hfd_unsent *hfd_unsent_free(struct hfd_unsent *unsent);

/*
 * Whether user may begin another request. list: the request is a list, whose response may hold
 * HFD_UNSENT_STREAM. If the user's account is full, requests in it whose readers have stalled are
 * cut: for a list, until they give back that much; otherwise, one. If all accounts together are
 * full, requests in the largest account are cut. Only a few are examined. When all accounts
 * together are full, a user who uses no more than an equal share of the limit is admitted anyway;
 * there is a share for each user with responses, and one more. False: the requests that were cut,
 * if any, give back too little, so refuse the new one; the client tries again later.
 */
bool hfd_unsent_admit(struct hfd_unsent *unsent, const char *user, bool list);
/*
 * Reserves HFD_UNSENT_STREAM for a list that was admitted and begins to run. entry is neither
 * charged nor reserved, and lives until remove. If memory runs out, nothing is reserved.
 */
void hfd_unsent_reserve(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry,
                        const char *user);
/*
 * Charges a response to the user's account, in place of what was reserved for it. entry and request
 * live until remove. If memory runs out, nothing is charged.
 */
void hfd_unsent_add(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry, const char *user,
                    struct hfd_http_request *request, size_t bytes);
/* Ends the charge or the reservation, and frees the account if it was the last. Harmless if there
 * is neither. */
void hfd_unsent_remove(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry);

/*
 * Measures the watch, and charges it or no longer charges it. Then, if a limit is exceeded, ends
 * or cuts one watch, perhaps this one, but none that has been behind for less than
 * HFD_UNSENT_STALL. Call it when more bytes wait. If memory runs out, nothing is charged. The
 * caller holds no lock.
 */
void hfd_unsent_watch_charge(struct hfd_unsent_watch *watch);
/* Measures a charged watch again; for a watch that is not charged it does nothing and takes no
 * lock. Call it when fewer bytes wait. Ends no watch. */
void hfd_unsent_watch_update(struct hfd_unsent_watch *watch);
/* Charges the watch no longer. Call it when no thread measures the watch any more. Harmless if it
 * is not charged. */
void hfd_unsent_watch_remove(struct hfd_unsent_watch *watch);

/* The bytes that are charged to all accounts; for tests. */
size_t hfd_unsent_bytes(struct hfd_unsent *unsent);
