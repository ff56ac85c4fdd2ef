/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table of conversions that a webhook has made or is making. The key of a conversion has two
 * parts. The source is one state of an object, known by its address. The row (struct hfd_resource)
 * is that of the API version to which the source is converted. Watches share conversions
 * (shared_conversions.h), and so do requests that read the params of policies (convert_params.h).
 *
 * Memory: a conversion stays in the table until it is done. One that has succeeded stays longer:
 * the table keeps the newest of those, at most HFD_SHARED_OBJECTS conversions and HFD_SHARED_BYTES
 * bytes. It drops them all when the last watch with conversions ends. Without any watch it keeps
 * what hfd_shared_remember adds, within the same bounds.
 *
 * Invariants: the table has one reference to each conversion in it, and each job, which converts
 * one batch of a watch, has another to each conversion that it uses. The table keeps the sources
 * alive, so their addresses identify them.
 *
 * Lock: the caller holds mu for functions that end in _locked. These do not free conversions: they
 * put those without references on a list, `garbage`, which the caller frees without the lock.
 * Thread: any.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/objects/object.h"
#include "server/resources/response.h"

struct hfd_shared_job;

#define HFD_SHARED_OBJECTS 1024
#define HFD_SHARED_BYTES   ((size_t)8 << 20)
#define HFD_SHARED_BUCKETS 256 /* shared_table.c takes 8 bits of a hash */

struct hfd_shared_conversion {
        unsigned refs;                  /* of the table, and of jobs */
        const struct hfd_resource *row; /* owned reference; the version of the result */
        struct hfd_object *source;      /* owned reference */
        /* When done is set, either result or failure is set too; neither, if there was no attempt
         * or no memory for the failure. */
        bool done;
        struct hfd_object *result;                   /* owned reference */
        struct hfd_response *failure;                /* owned */
        size_t bytes;                                /* of source and result */
        struct hfd_shared_job *waiters;              /* a list that shared_conversions.c keeps */
        struct hfd_shared_conversion *next;          /* in the bucket, or in the garbage */
        struct hfd_shared_conversion *newer, *older; /* in the list of those with a result */
};

struct hfd_shared_table {
        pthread_mutex_t mu;
        /* guarded by mu */
        struct hfd_shared_conversion *buckets[HFD_SHARED_BUCKETS];
        struct hfd_shared_conversion *newest, *oldest; /* the list of those with a result */
        size_t n, bytes;                               /* of that list */
        size_t n_watches;                              /* watches with conversions */
};

int hfd_shared_table_init(struct hfd_shared_table *table); /* 0 or -errno */
/* All watches and requests must be gone. */
void hfd_shared_table_done(struct hfd_shared_table *table);
/* Counts a watch. */
void hfd_shared_table_join(struct hfd_shared_table *table);
/* A watch that was counted has ended. */
void hfd_shared_table_leave(struct hfd_shared_table *table);

/*
 * Two functions for a caller that does not wait for the conversions of others. recall returns a new
 * reference to the result of a conversion; NULL = there is none, or none yet. remember adds a
 * conversion that has this result, with new references to source, row and result; it adds nothing
 * if the table has the conversion already, or memory is short. Both take the lock.
 */
struct hfd_object *hfd_shared_recall(struct hfd_shared_table *table,
                                     const struct hfd_object *source,
                                     const struct hfd_resource *row);
void hfd_shared_remember(struct hfd_shared_table *table, struct hfd_object *source,
                         const struct hfd_resource *row, struct hfd_object *result);

/* The conversion of a source to the version of row, done or not. Borrowed; NULL = there is none. */
struct hfd_shared_conversion *hfd_shared_find_locked(struct hfd_shared_table *table,
                                                     const struct hfd_object *source,
                                                     const struct hfd_resource *row);
/* Adds a conversion that is not done and not in the table yet, with new references to source and
 * row. Borrowed. NULL = out of memory. */
struct hfd_shared_conversion *hfd_shared_add_locked(struct hfd_shared_table *table,
                                                    struct hfd_object *source,
                                                    const struct hfd_resource *row);
/* Sets the result of a conversion; the caller has set done. Consumes the reference to result. Drops
 * older conversions beyond the bounds, and also c if it is too large by itself: a caller that uses
 * c afterwards needs a reference of its own. */
void hfd_shared_keep_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_object *result, struct hfd_shared_conversion **garbage);
/* Removes a conversion from the table. */
void hfd_shared_drop_locked(struct hfd_shared_table *table, struct hfd_shared_conversion *c,
                            struct hfd_shared_conversion **garbage);
/* Drops a reference. */
void hfd_shared_unref_locked(struct hfd_shared_conversion *c,
                             struct hfd_shared_conversion **garbage);
/* Frees a list `garbage`; NULL = an empty one. The caller does not hold mu. */
void hfd_shared_free_garbage(struct hfd_shared_conversion *garbage);
