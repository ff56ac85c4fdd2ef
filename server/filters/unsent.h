/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Accounts of the responses that clients have not read yet, one account for each user. A request
 * leaves its lane (inflight.h) when its client does not read the response at once, so a slow
 * reader does not delay other requests. The response is charged to its user's account instead.
 * Watches are neither charged nor limited here.
 *
 * Lists are refused when an account is full, because a list may be large. Everything else is
 * admitted up to twice the limits, so that a user with large lists can still get an object and
 * renew a Lease. To make room, a request whose reader has stalled is ended ("cut").
 *
 * Lock: one mutex guards all accounts. Requests are cut after it was released. Thread: the
 * request's worker for add and remove; any for the other functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/host.h>

struct hfd_http_request;
struct hfd_unsent;
struct hfd_unsent_account;

/* One unread response. Part of the request's context; zero = not charged. */
struct hfd_unsent_entry {
        struct hfd_unsent_account *account; /* borrowed; NULL = not charged */
        struct hfd_http_request *request;   /* borrowed: it contains this */
        struct hfd_unsent_entry *older, *newer;
        size_t bytes;
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
 * One user: 256 such lists, or 42 objects of the largest size, which is more than a client usually
 * reads at a time. The total: a quarter of the memory of a small server (1 GiB), and room for four
 * users at their limits. Responses: the memory of 4096 requests is about 8 MB.
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
/* No entry may be charged. Accepts NULL; returns NULL. */
struct hfd_unsent *hfd_unsent_free(struct hfd_unsent *unsent);

/*
 * Whether user may begin another request. list: it is a list, which may hold HFD_UNSENT_STREAM. If
 * the user's account is full, one of its readers that has stalled is cut; if all accounts together
 * are full, one of the largest account. Only a few readers are examined. When all accounts together
 * are full, a user who uses less than an equal share of the limit is admitted anyway. False: no
 * reader was cut, so refuse the request; the client tries again later.
 */
bool hfd_unsent_admit(struct hfd_unsent *unsent, const char *user, bool list);
/*
 * Charges a response to the user's account. entry and request live until remove. If memory runs
 * out, nothing is charged.
 */
void hfd_unsent_add(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry, const char *user,
                    struct hfd_http_request *request, size_t bytes);
/* Harmless if entry is not charged. */
void hfd_unsent_remove(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry);

/* The bytes that are charged to all accounts; for metrics and tests. */
size_t hfd_unsent_bytes(struct hfd_unsent *unsent);
