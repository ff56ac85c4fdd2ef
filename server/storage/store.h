/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The storage port: a revisioned key-value store, narrow and asynchronous. etcd/, memory/ (and
 * sqlite/) implement it; one conformance suite (tests/unit/test-store-conformance.c) runs over all.
 *
 * Every write of the store gets the next revision; a key's mod revision is that of its last write.
 * Keys are paths
 * ("/registry/leases/ns/name"), values bytes. A transaction compares, then does all of its puts and
 * deletes or none.
 *
 * Thread: any may start an operation. Callbacks come on the store's own thread(s), exactly once,
 * may start further operations, and must not block. A started operation ends by its deadline at the
 * latest.
 *
 * Outcomes: 0; HF_E_CONFLICT (a compare failed); HF_E_UNAVAILABLE (certainly not done);
 * HF_E_TIMEOUT (unknown whether done: read and decide); HF_E_GONE (the revision is compacted);
 * HF_E_INVALID (a revision not yet reached); HF_E_TOO_LARGE; HF_E_CANCELED (the store is closing);
 * -errno (unexpected: of a write, unknown whether done).
 *
 * Starting returns 0, or an error and the callback is never called: -EINVAL (misuse, among it two
 * ops on one key of which one is a put), HF_E_TOO_LARGE (a key, a count, the whole), -ENOMEM,
 * HF_E_CLOSED (the store is being freed).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "base/buf.h"

struct hfd_store;

struct hfd_kv {
        const char *key;       /* NUL-terminated; borrowed until the callback returns */
        struct hf__buf *value; /* borrowed until the callback returns, ref to keep; NULL in a
                                  deletion event */
        uint64_t mod_revision;
        uint64_t create_revision;
};

struct hfd_store_reply {
        int error;
        uint64_t revision; /* the store's revision when it answered; of a transaction that wrote:
                              its revision */
        const struct hfd_kv
                *kvs; /* get: 0 or 1; list: in key order; failed txn: what get_on_failure found */
        size_t n_kvs;
        bool more;           /* list: limit cut it short */
        uint64_t cluster_id; /* whose history this is; 0 = not said (an error, or a store with one
                                history only) */
        struct hf_status status;
};
typedef void (*hfd_store_fn)(void *ctx, const struct hfd_store_reply *reply);

enum hfd_compare_kind {
        HFD_MOD_EQUALS,   /* the key's mod revision is `revision` (0 = the key does not exist) */
        HFD_VALUE_EQUALS, /* the key exists and its value is exactly value */
        HFD_VALUE_BEGINS, /* the key exists and its value begins with value and goes on behind it
                             (how a fence names its holder) */
};
struct hfd_compare {
        enum hfd_compare_kind kind;
        const char *key;
        uint64_t revision;
        const void *value;
        size_t n_value;
};
enum hfd_op_kind { HFD_PUT, HFD_DELETE };
struct hfd_op {
        enum hfd_op_kind kind;
        const char *key;
        struct hf__buf *value; /* put: referenced by the store as long as it needs it */
};

#define HFD_TXN_MAX 16 /* compares, and ops, of one transaction */

struct hfd_txn {
        const struct hfd_compare
                *compares; /* all must hold; copied before txn returns, as everything here */
        size_t n_compares;
        const struct hfd_op *ops;
        size_t n_ops;
        const char *const *get_on_failure; /* keys read, in the same atomic step, when a compare
                                              fails; a missing one is left out of kvs */
        size_t n_get_on_failure;
        bool urgent; /* of a Lease: it does not queue behind other traffic (etcd: a connection of
                        its own) */
};

enum hfd_watch_event_type { HFD_WATCH_PUT, HFD_WATCH_DELETE, HFD_WATCH_PROGRESS };
struct hfd_watch_event {
        enum hfd_watch_event_type
                type;      /* progress: kv unused; everything up to revision has been delivered */
        struct hfd_kv kv;  /* delete: key and mod_revision (the deletion's) */
        uint64_t revision; /* all events up to and including revision - 1 have been delivered before
                              this one */
};
struct hfd_watch_handler {
        void (*event)(void *ctx, const struct hfd_watch_event *events,
                      size_t n); /* one revision is never split */
        /* Once, last: HF_E_GONE (compacted: list again), HF_E_UNAVAILABLE (watch again from the
         * last revision + 1), HF_E_CANCELED. */
        void (*end)(void *ctx, int error, const struct hf_status *status);
};

struct hfd_store_ops {
        int (*get)(struct hfd_store *store, const char *key, hf_nsec deadline, hfd_store_fn done,
                   void *ctx);
        /* Keys with the prefix, from start_key (NULL = the prefix itself) on; revision 0 = now;
         * limit 0 = all; keys_only: values are NULL.
         */
        int (*list)(struct hfd_store *store, const char *prefix, const char *start_key,
                    uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                    hfd_store_fn done, void *ctx);
        int (*txn)(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                   hfd_store_fn done, void *ctx);
        /* Events of keys in [begin, end) from revision on (inclusive; 0 = from the next write on).
         * id for cancel. */
        int (*watch)(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                     const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id);
        void (*watch_cancel)(struct hfd_store *store,
                             uint64_t id); /* end comes soon, with HF_E_CANCELED */
        int (*compact)(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                       hfd_store_fn done, void *ctx);
        /* The store's current revision, linearizable. */
        int (*revision)(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx);
        /* Nothing starts any more (HF_E_CLOSED); what is under way ends soon, with HF_E_CANCELED
         * where it has no answer yet. */
        void (*stop)(struct hfd_store *store);
        void (*free)(struct hfd_store *store); /* ends everything with HF_E_CANCELED; callbacks have
                                                  returned. Not from a callback */
        uint64_t (*iterations)(struct hfd_store *store); /* rises as the store's loop turns: the
                                                       watchdog's witness */
};

struct hfd_store {
        const struct hfd_store_ops *ops;
        const struct hf_host *host; /* borrowed */
};

/* What starting a transaction refuses, for all stores. 0, -EINVAL or HF_E_TOO_LARGE. */
int hfd_txn_check(const struct hfd_txn *txn);

int hfd_memory_store_new(const struct hf_host *host, struct hfd_store **ret_store);

struct hfd_etcd_config {
        const char *const *endpoints;            /* "http://127.0.0.1:2379", NULL-terminated */
        const char *ca_pem, *cert_pem, *key_pem; /* NULL = none */
};
/* Does not connect yet: with etcd away, operations answer HF_E_UNAVAILABLE or HF_E_TIMEOUT.
 * HF_E_INVALID for a bad endpoint. */
int hfd_etcd_store_new(const struct hf_host *host, const struct hfd_etcd_config *config,
                       struct hfd_store **ret_store, struct hf_status *reterr_status);
