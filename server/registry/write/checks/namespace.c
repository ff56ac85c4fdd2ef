/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses to create objects in a namespace that does not exist or is being deleted.
 *
 * Invariant: after a namespace is marked as deleted, no object is created in it any more. The
 * transaction that creates an object also compares the namespace's mod revision with that of a
 * version without a deletionTimestamp. The deletion of a namespace begins with a write that sets
 * the deletionTimestamp, so every create in the namespace commits before that write. The controller
 * that deletes the objects of the namespace lists them at a later revision, so it misses none.
 *
 * This normally costs no additional request: the version comes from the cacher, and a transaction
 * that fails returns the current version. Only a namespace that the cacher does not have, or has as
 * being deleted, is read from the store.
 *
 * The system's namespaces cannot be deleted, and are neither looked up nor compared. So the first
 * Lease can be written before its namespace exists.
 */
#include "server/registry/write/checks/namespace.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/requests/store_request.h"
#include "server/registry/write/reply.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"

static bool is_compared(const struct hfd_write *w) {
        return w->request->resource->namespaced && !hfd_is_system_namespace(w->request->ns);
}

/* ns NULL: the namespace was not found. fresh: the store was asked, and not only the cacher. */
static void set_namespace(struct hfd_write *w, const struct hfd_object *ns, bool fresh) {
        w->ns_revision = ns ? ns->revision : 0;
        w->ns_terminating = ns && hfd_object_deleting(ns);
        w->ns_fresh = fresh;
}

/*
 * Sets the namespace from the kv that the store returned; NULL = it is not stored. False: no object
 * can be made from it, because memory ran out, or its value is invalid or cannot be decrypted.
 */
static bool set_namespace_from_store(struct hfd_write *w, const struct hfd_kv *kv) {
        struct hfd_object *ns = NULL;

        if (kv) {
                ns = hfd_stored_object_new(hfd_resource_namespaces(), w->request->ns, kv);
                if (!ns)
                        return false;
        }
        set_namespace(w, ns, true);
        hfd_object_unref(ns);
        return true;
}

/* ---- before the attempt ---- */

static void on_namespace(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        assert(w->awaiting);
        w->awaiting = false;
        if (reply->error) {
                /* A read that timed out has written nothing, so the client may repeat the write. */
                int error = reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
                hfd_write_reply_store_error(w, error, &reply->status);
        } else if (!set_namespace_from_store(w, reply->n_kvs ? &reply->kvs[0] : NULL)) {
                hfd_write_reply_unreadable_kv(w, &reply->kvs[0]);
        } else {
                hfd_write_attempt(w);
        }
}

static void request_namespace(struct hfd_write *w) {
        char key[HFD_KEY_MAX];
        int r = hfd_object_key(w->registry->prefix, hfd_resource_namespaces(), w->request->ns, key);

        assert(!w->awaiting);
        hfd_write_await(w);
        if (r == 0)
                r = hfd_store_request_get(w->registry->cacher, key,
                                          w->request->resource->term_record, w->request->deadline,
                                          on_namespace, w);
        if (r != 0) { /* on_namespace is not called */
                w->awaiting = false;
                hfd_write_reply_store_error(w, r, NULL);
        }
}

/* Responds 404 if there is no such namespace, or 403 if it is being deleted. */
static void refuse_create(struct hfd_write *w) {
        struct hfd_response response = {0};
        char why[400], cause[300];
        const char *name = hf__json_string(w->body, "metadata.name");
        struct hfd_details details = {.cause_reason = "NamespaceTerminating",
                                      .cause_text = cause,
                                      .cause_field = "metadata.namespace"};

        assert(w->ns_fresh);
        if (!w->ns_revision) {
                hfd_response_not_found(&response, hfd_resource_namespaces(), w->request->ns);
                hfd_write_reply(w, &response);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "unable to create new content in namespace %s because it is being "
                       "terminated",
                       w->request->ns);
        (void)snprintf(cause, sizeof cause, "namespace %s is being terminated", w->request->ns);
        if (!name || !*name)
                name = hf__json_string(w->body, "metadata.generateName");
        hfd_response_forbidden(&response, w->request->resource, name ? name : "", why, &details);
        hfd_write_reply(w, &response);
}

bool hfd_write_namespace_accepts_create(struct hfd_write *w) {
        bool synced; /* unused: if the namespace is not cached, it is read from the store */

        if (!is_compared(w))
                return true;
        if (!w->ns_fresh && !w->ns_revision) {
                struct hfd_object *ns =
                        hfd_cacher_newest(w->registry->cacher, hfd_resource_namespaces(),
                                          w->request->ns, &synced);
                set_namespace(w, ns, false);
                hfd_object_unref(ns);
        }
        if (w->ns_revision && !w->ns_terminating)
                return true;
        if (w->ns_fresh)
                refuse_create(w);
        else
                request_namespace(w);
        return false;
}

/* ---- in the transaction ---- */

bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare) {
        if (!w->created || !is_compared(w) ||
            hfd_object_key(w->registry->prefix, hfd_resource_namespaces(), w->request->ns, key) !=
                    0)
                return false;
        assert(w->ns_revision && !w->ns_terminating);
        *ret_compare = (struct hfd_compare){.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = w->ns_revision};
        return true;
}

const struct hfd_kv *hfd_write_namespace_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                                size_t n) {
        struct hfd_compare compare;
        char key[HFD_KEY_MAX];

        if (!hfd_write_namespace_compare(w, key, &compare))
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (strcmp(kvs[i].key, key) == 0)
                        return set_namespace_from_store(w, &kvs[i]) ? NULL : &kvs[i];
        (void)set_namespace_from_store(w, NULL); /* it cannot fail */
        return NULL;
}
