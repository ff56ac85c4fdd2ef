/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No creation in a namespace that is gone or being deleted, and none that slips in late.
 *
 * The transaction that creates an object also compares the mod revision of its namespace with that
 * of the version in which the namespace was seen open. A namespace is deleted by a write that sets
 * its deletionTimestamp, so every creation in it commits before that write: whoever lists the
 * contents at a later revision, as the one does who empties the namespace and then finalizes it,
 * sees all that will ever be in it. It costs no round trip: the version comes from the cache, and a
 * transaction that finds another reads it in the same step.
 *
 * The system's namespaces cannot be deleted and are not compared. So the first Lease can be written
 * beside their creation.
 */
#include "server/registry/write/namespace.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/store_request.h"
#include "server/registry/write/reply.h"

static bool is_compared(const struct hfd_write *w) {
        return w->request->resource->namespaced && !hfd_is_system_namespace(w->request->ns);
}

static void note(struct hfd_write *w, const struct hfd_object *ns, bool fresh) {
        w->ns_revision = ns ? ns->revision : 0;
        w->ns_terminating = ns && hfd_object_deleting(ns);
        w->ns_fresh = fresh;
}

/* False: out of memory. */
static bool note_kv(struct hfd_write *w, const struct hfd_kv *kv) {
        struct hfd_object *ns = kv ? hfd_object_new(hfd_resource_namespaces(), w->request->ns,
                                                    kv->mod_revision, kv->value)
                                   : NULL;

        note(w, ns, true);
        hfd_object_unref(ns);
        return ns || !kv;
}

static void on_namespace(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        if (reply->error)
                hfd_write_reply_store_error(w,
                                            reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE
                                                                         : reply->error,
                                            &reply->status);
        else if (!note_kv(w, reply->n_kvs ? &reply->kvs[0] : NULL))
                hfd_write_reply_no_memory(w);
        else
                hfd_write_attempt(w);
}

static void refuse(struct hfd_write *w) {
        struct hfd_response response = {0};
        char why[400], cause[300];
        const char *name = hf__json_string(w->sent, "metadata.name");

        if (!w->ns_revision) {
                hfd_response_not_found(&response, hfd_resource_namespaces(), w->request->ns);
        } else {
                (void)snprintf(why, sizeof why,
                               "unable to create new content in namespace %s because it is being "
                               "terminated",
                               w->request->ns);
                (void)snprintf(cause, sizeof cause, "namespace %s is being terminated",
                               w->request->ns);
                struct hfd_details details = {.cause_reason = "NamespaceTerminating",
                                              .cause_text = cause,
                                              .cause_field = "metadata.namespace"};
                if (!name || !*name)
                        name = hf__json_string(w->sent, "metadata.generateName");
                hfd_response_forbidden(&response, w->request->resource, name ? name : "", why,
                                       &details);
        }
        hfd_write_reply(w, &response);
}

bool hfd_write_namespace_open(struct hfd_write *w) {
        const struct hfd_resource *namespaces = hfd_resource_namespaces();
        char key[HFD_KEY_MAX];
        bool synced;

        if (!is_compared(w))
                return true;
        if (!w->ns_fresh && !w->ns_revision) {
                struct hfd_object *ns =
                        hfd_cacher_newest(w->registry->cacher, namespaces, w->request->ns, &synced);
                note(w, ns, false);
                hfd_object_unref(ns);
        }
        if (w->ns_revision && !w->ns_terminating)
                return true;
        if (w->ns_fresh) {
                refuse(w);
                return false;
        }
        int r = hfd_object_key(w->registry->prefix, namespaces, w->request->ns, key);
        if (r == 0)
                r = hfd_store_request_get(w->registry->cacher, key, w->request->deadline,
                                          on_namespace, w);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        return false;
}

bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare) {
        if (!w->created || !is_compared(w) ||
            hfd_object_key(w->registry->prefix, hfd_resource_namespaces(), w->request->ns, key))
                return false;
        *ret_compare = (struct hfd_compare){.kind = HFD_MOD_EQUALS,
                                            .key = key,
                                            .revision = w->ns_revision};
        return true;
}

bool hfd_write_namespace_found(struct hfd_write *w, const struct hfd_kv *kvs, size_t n) {
        struct hfd_compare compare;
        char key[HFD_KEY_MAX];

        if (!hfd_write_namespace_compare(w, key, &compare))
                return true;
        for (size_t i = 0; i < n; i++)
                if (strcmp(kvs[i].key, key) == 0)
                        return note_kv(w, &kvs[i]);
        return note_kv(w, NULL);
}
