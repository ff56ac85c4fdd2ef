/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The store of the fake API server (fake_api.h): objects by key, one revision counter for all of
 * them, and the history of their changes. Plain data without thread, lock or clients.
 *
 * A key is "plural/namespace/name", with an empty namespace for cluster-scoped objects. Every
 * change raises the revision by one, sets metadata.resourceVersion of the object to it, and appends
 * one commit to the history. Watches read the history from fake_store.first_event on. Compaction
 * and roll-back move that index and remove no commit, so that tests can read them all.
 *
 * Each Lease has a term record, as in the real server: `term` is the revision of the last change of
 * its holder or its acquireTime. A fenced write is applied only while the fence names that term
 * and the holder.
 *
 * Asserts instead of handling errors. Thread: the one that holds fake_api.mu.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client.h>

#include "base/buf.h"
#include "base/strbuf.h"

struct fake_object {
        char *key;            /* owned */
        struct hf__buf *text; /* JSON; never NULL */
        uint64_t revision;    /* of its last change */
        uint64_t term;        /* for a Lease: its term record */
        char *holder;         /* for a Lease: spec.holderIdentity; "" if there is none */
        char *acquired;       /* for a Lease: spec.acquireTime; "" if there is none */
};

struct fake_commit {
        uint64_t revision;
        enum hf_event_type type; /* added, modified or deleted */
        char *key;
        struct hf__buf *text; /* the object after the change, or before its deletion */
        char *holder;         /* for a Lease: its holder after the change; "-" = deleted */
        uint64_t fence_term;  /* of the fence of the write; 0 = none */
        char *fence_identity; /* "" = none */
};

struct fake_store {
        uint64_t revision, compacted, last_uid;
        struct fake_object **objects; /* in the order of their creation */
        size_t n_objects;
        struct fake_commit *commits;
        size_t n_commits;
        size_t first_event; /* index of the first commit that watches can still read */
        /* A copy of the collection as of the first page, for the later pages. */
        struct hf__buf **snapshot;
        size_t n_snapshot;
        uint64_t snapshot_revision;
        char *snapshot_prefix;
};

/* One page of a list. continue_revision 0 = the first page. limit 0 = all. */
struct fake_page {
        size_t limit;
        uint64_t continue_revision;
        size_t continue_from;
};

void fake_store_init(struct fake_store *store, uint64_t revision);
void fake_store_deinit(struct fake_store *store);

/* Returns "plural/namespace/name", which the caller frees. NULL makes a part empty. */
char *fake_store_key(const char *plural, const char *ns, const char *name);
struct fake_object *fake_store_find(const struct fake_store *store, const char *key);
/*
 * Creates or replaces an object; text is a JSON object. Sets its resourceVersion, and its uid
 * unless text has one: a new object gets the next number, a replaced one keeps its uid. The fence
 * is not checked, only recorded in the commit. Returns the revision.
 */
uint64_t fake_store_put(struct fake_store *store, const char *key, const char *text,
                        const struct hf_fence *fence);
/*
 * Returns the revision. If there is no such object, the revision rises all the same, but there is
 * no commit.
 */
uint64_t fake_store_delete(struct fake_store *store, const char *key, const struct hf_fence *fence);
/* Whether all terms of the fence match the term records. */
bool fake_store_fence_holds(const struct fake_store *store, const struct hf_fence *fence);

/*
 * Writes a page of the objects with this prefix to out, as a List. Returns HF_E_GONE if the
 * continue token does not belong to the latest first page, or its revision is compacted.
 */
int fake_store_list(struct fake_store *store, const char *prefix, const struct fake_page *page,
                    struct hf__strbuf *out);

/* Compacts the history: watches and pages that begin before the current revision are gone. */
void fake_store_compact(struct fake_store *store);
/*
 * Does what a restored backup of that revision does, except that the objects stay: the history is
 * forgotten, and the revision goes back.
 */
void fake_store_roll_back(struct fake_store *store, uint64_t revision);
