/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The conversions that watches share (shared_conversions.h), and with them the params of policies
 * (convert_params.h), as a table by source and version.
 *
 * Memory: a conversion is kept while somebody waits for it; after that at most HFD_SHARED_OBJECTS
 * and HFD_SHARED_BYTES are, the newest ones. When the last watch of a kind with a webhook ends, all
 * are dropped; params come back with the next request.
 *
 * Invariants: a conversion belongs to the table until it has failed or is forgotten; jobs that use
 * it have references. An object of the table is alive, so its address is its identity.
 *
 * Lock: the caller holds mu for functions that end in _locked. They unlink what nobody uses any
 * more and put it on a list, `garbage`, which the caller frees without the lock. Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/objects/object.h"
#include "server/resources/response.h"

struct hfd_shared_job;

#define HFD_SHARED_OBJECTS 1024
#define HFD_SHARED_BYTES   ((size_t)8 << 20)
#define HFD_SHARED_BUCKETS 256

struct hfd_shared_conversion {
        unsigned refs;                  /* of the table, and of jobs */
        const struct hfd_resource *row; /* a reference */
        struct hfd_object *source;      /* owned */
        /* Set when it is done: either result or failure, or neither, if there was no attempt. */
        bool done;
        struct hfd_object *result;    /* owned */
        struct hfd_response *failure; /* owned */
        size_t bytes;
        struct hfd_shared_job *waiters;              /* for the jobs */
        struct hfd_shared_conversion *next;          /* in the bucket */
        struct hfd_shared_conversion *newer, *older; /* if it has succeeded */
};

struct hfd_shared_table {
        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_shared_conversion *buckets[HFD_SHARED_BUCKETS];
        struct hfd_shared_conversion *newest, *oldest; /* those that have succeeded */
        size_t n, bytes;                               /* of these */
        size_t n_watches;
};

int hfd_shared_table_init(struct hfd_shared_table *table); /* 0 or -errno */
/* No watch and no request is left. */
void hfd_shared_table_done(struct hfd_shared_table *table);
/* A watch begins, and ends. */
void hfd_shared_table_join(struct hfd_shared_table *table);
void hfd_shared_table_leave(struct hfd_shared_table *table);

/* For those who do not wait for each other: a new reference to what the source became in the
 * version of row, NULL = it is not known; and a result that others may use. */
struct hfd_object *hfd_shared_recall(struct hfd_shared_table *table,
                                     const struct hfd_object *source,
                                     const struct hfd_resource *row);
void hfd_shared_remember(struct hfd_shared_table *table, struct hfd_object *source,
                         const struct hfd_resource *row, struct hfd_object *result);

/* The conversion of a source to the version of row, borrowed; NULL = there is none. */
struct hfd_shared_conversion *hfd_shared_find_locked(struct hfd_shared_table *table,
                                                     const struct hfd_object *source,
                                                     const struct hfd_resource *row);
/* Adds one that is not done. NULL = out of memory. */
struct hfd_shared_conversion *hfd_shared_add_locked(struct hfd_shared_table *table,
                                                    struct hfd_object *source,
                                                    const struct hfd_resource *row);
/* It is done, and stays in the table for a while. Consumes the reference to result. */
void hfd_shared_keep_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_object *result, struct hfd_shared_conversion **garbage);
/* It is done without a result, and leaves the table. */
void hfd_shared_drop_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_shared_conversion **garbage);
/* Drops a reference. */
void hfd_shared_unref_locked(struct hfd_shared_conversion *c,
                             struct hfd_shared_conversion **garbage);
void hfd_shared_free_garbage(struct hfd_shared_conversion *garbage);
