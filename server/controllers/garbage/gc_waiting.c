/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that are being deleted in the foreground.
 *
 * Invariant: an object stays in the index only if the caller has enqueued its dependents after it
 * began to wait. If an object is forgotten, its dependents are only enqueued once more. But if one
 * were remembered wrongly, its dependents would not be enqueued, and might stay for ever.
 */
#include "server/controllers/garbage/gc_waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

struct entry {
        struct hf__keyed keyed; /* first member, so a cast gives the entry; its key is in `text` */
        const char *uid;        /* in `text` */
        char text[];
};

int hfd_gc_waiting_init(struct hfd_gc_waiting *waiting) {
        *waiting = (struct hfd_gc_waiting){0};
        return hf__mutex_init(&waiting->mu);
}

void hfd_gc_waiting_done(struct hfd_gc_waiting *waiting) {
        hf__key_index_free_items(&waiting->objects);
        (void)pthread_mutex_destroy(&waiting->mu);
}

/* NULL: out of memory. */
static struct entry *entry_new(const char *key, const char *uid) {
        size_t n_key = strlen(key) + 1, n_uid = strlen(uid) + 1;
        struct entry *entry = malloc(sizeof *entry + n_key + n_uid);

        if (!entry)
                return NULL;
        memcpy(entry->text, key, n_key);
        memcpy(entry->text + n_key, uid, n_uid);
        entry->keyed.key = entry->text;
        entry->uid = entry->text + n_key;
        return entry;
}

static void remove_locked(struct hfd_gc_waiting *waiting, struct entry *entry) {
        hf__mutex_assert_held(&waiting->mu);
        hf__key_index_remove(&waiting->objects, entry->keyed.key);
        free(entry);
}

bool hfd_gc_waiting_add(struct hfd_gc_waiting *waiting, const char *key, const char *uid) {
        struct entry *entry = entry_new(key, uid);

        (void)pthread_mutex_lock(&waiting->mu);
        struct entry *old = (struct entry *)hf__key_index_find(&waiting->objects, key);
        bool is_new = !old || strcmp(old->uid, uid) != 0;
        if (old && is_new)
                remove_locked(waiting, old);
        if (is_new && entry && hf__key_index_insert(&waiting->objects, &entry->keyed) == 0)
                entry = NULL; /* the index owns it */
        (void)pthread_mutex_unlock(&waiting->mu);
        free(entry);
        return is_new;
}

void hfd_gc_waiting_remove(struct hfd_gc_waiting *waiting, const char *key) {
        (void)pthread_mutex_lock(&waiting->mu);
        struct entry *entry = (struct entry *)hf__key_index_find(&waiting->objects, key);
        if (entry)
                remove_locked(waiting, entry);
        (void)pthread_mutex_unlock(&waiting->mu);
}
