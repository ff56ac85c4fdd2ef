/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The store of an informer: one entry per object, in the order of their keys.
 *
 * Lock: the informer's mu guards the entries. Only the reflector's thread changes them, under the
 * lock; therefore that thread reads them without. All functions here run on that thread and call
 * the handlers of what they change.
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
        uint64_t generation;           /* of the last list or event that had the object */
        struct hf__buf *object;        /* owned; the JSON text */
        struct hf__index_node **nodes; /* owned array, NULL-terminated; NULL = in no index */
        char text[];
};

struct hf__informer_store {
        struct hf__key_index entries; /* owns them; guarded by the informer's mu */
        /* the reflector's thread only */
        uint64_t generation; /* of the list that is being or was last put in */
        /*
         * The server went back to a backup and may issue a resourceVersion a second time. Until a
         * list is complete, equal versions do not prove that two states of an object are equal: the
         * contents are compared.
         */
        bool versions_reused;
};

/* Makes the text that the informer keeps of an object: all of it, or its metadata. The caller gets
 * a reference. Thread: any. 0, -ENOMEM or -EPROTO. */
int hf__informer_store_transform(const struct hf_informer *informer, const char *object, size_t n,
                                 struct hf__buf **ret_object);
/* Applies a watch event that is not a bookmark. `object` is transformed already; the store takes a
 * reference of its own. 0, -ENOMEM or -EPROTO: nothing has changed. */
int hf__informer_store_apply(struct hf_informer *informer, enum hf_event_type type,
                             struct hf__buf *object);
/*
 * Replace the contents by those of a list: begin, each page in turn, end. `end` removes what no
 * page had. If the list breaks off, the objects of its pages stay and nothing is removed.
 */
void hf__informer_store_replace_begin(struct hf_informer *informer);
/* body is a Kubernetes list object. 0, -ENOMEM, or -EPROTO: it is not; the items before the wrong
 * one are in. */
int hf__informer_store_replace_page(struct hf_informer *informer, const char *body, size_t n_body);
void hf__informer_store_replace_end(struct hf_informer *informer);
/* Frees the entries, without events. After the reflector's thread was joined. */
void hf__informer_store_done(struct hf_informer *informer);

/* Passes an entry to a function of the user. */
static inline void hf__informer_entry_visit(const struct hf__informer_entry *entry,
                                            void (*each)(void *ctx, const char *ns,
                                                         const char *name, const char *object,
                                                         size_t n),
                                            void *ctx) {
        each(ctx, entry->ns, entry->name, entry->object->data, entry->object->n);
}
