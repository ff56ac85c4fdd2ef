/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Remembers which objects wait for their dependents, because they are being deleted in the
 * foreground. So the dependents of one are enqueued when its deletion begins, and not again with
 * each of its later events. Thread: any; `mu` guards the index.
 */
#include <pthread.h>
#include <stdbool.h>

#include "client/key_index.h"

struct hfd_gc_waiting {
        pthread_mutex_t mu;
        struct hf__key_index objects; /* guarded by mu; owned, with its items */
};

/* 0 or -errno. */
int hfd_gc_waiting_init(struct hfd_gc_waiting *waiting);
void hfd_gc_waiting_done(struct hfd_gc_waiting *waiting);

/* Notes that the object with that key (hfd_gc_graph_key) waits. Returns whether this is new, as far
 * as is known: the object of the key had another uid, or did not wait. Then the caller enqueues the
 * dependents, and calls hfd_gc_waiting_remove if that fails. If memory runs out, a new object is
 * not noted, and is new again the next time. */
bool hfd_gc_waiting_add(struct hfd_gc_waiting *waiting, const char *key, const char *uid);
/* Forgets the object with that key. Does nothing if it is not in the index. */
void hfd_gc_waiting_remove(struct hfd_gc_waiting *waiting, const char *key);
