/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The store of an informer: one entry per object, in the order of their keys.
 *
 * Lock: the informer's mu guards the entries. Only the reflector's thread changes them, and it
 * holds the lock while it does; therefore that thread may read them without the lock. Except where
 * a function states otherwise, the functions here run on that thread, and those that change objects
 * call the handlers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/informer.h>

#include "base/buf.h"
#include "client/key_index.h"
#include "client/resource_version.h"

struct hf__index_node;

struct hf__informer_entry {
        struct hf__keyed keyed; /* "namespace/name", or "name" */
        const char *ns, *name;  /* borrowed from text */
        char resource_version[HF__RESOURCE_VERSION_MAX];
        /* The store's generation when a list or event last had the object. Only the reflector's
         * thread uses it, also without the lock. */
        uint64_t generation;
        struct hf__buf *object;        /* owned; the JSON text */
        struct hf__index_node **nodes; /* owned array, NULL-terminated; NULL = in no index */
        char text[];
};

struct hf__informer_store {
        struct hf__key_index entries; /* owns them; guarded by the informer's mu */
        /* the reflector's thread only */
        uint64_t generation; /* counts the calls of hf__informer_store_replace_begin */
        /* The server may have been restored from a backup and issue a resourceVersion a second
         * time. Until a list is complete, equal versions do not prove that two states of an object
         * are equal, so the contents are compared instead. */
        bool versions_reused;
};

/* Creates the text that the informer keeps of an object: all of it, or what its transform leaves
 * of it. The caller gets a reference. Thread: any. 0, -ENOMEM or -EPROTO. */
int hf__informer_store_transform(const struct hf_informer *informer, const char *object, size_t n,
                                 struct hf__buf **ret_object);
/* Applies a watch event that is not a bookmark. `object` is already transformed; the store takes
 * its own reference. 0; or, if the new state is not stored and the caller must list again, -ENOMEM
 * or -EPROTO. */
int hf__informer_store_apply(struct hf_informer *informer, enum hf_event_type type,
                             struct hf__buf *object);
/* Replaces the contents with those of a list: call begin, then page for each page, then end. `end`
 * removes the objects that were in no page. If the list fails before that, the objects of its pages
 * stay and nothing is removed. */
void hf__informer_store_replace_begin(struct hf_informer *informer);
/* body is a Kubernetes list object. 0, -ENOMEM, or -EPROTO: it is not valid. After a failure the
 * items before the one that failed have been stored. */
int hf__informer_store_replace_page(struct hf_informer *informer, const char *body, size_t n_body);
void hf__informer_store_replace_end(struct hf_informer *informer);
/* Frees the entries without calling handlers. Only when the informer was never started, or its own
 * thread was joined, or the thread that it shares with other informers has detached it. */
void hf__informer_store_done(struct hf_informer *informer);

/* Calls a function of the user with an entry. Thread: any, under the informer's lock. */
static inline void hf__informer_entry_visit(const struct hf__informer_entry *entry,
                                            void (*each)(void *ctx, const char *ns,
                                                         const char *name, const char *object,
                                                         size_t n),
                                            void *ctx) {
        each(ctx, entry->ns, entry->name, entry->object->data, entry->object->n);
}
