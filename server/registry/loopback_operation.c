/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of the client inside the process, which are its requests and watches: their list,
 * their references, and the target of the request that each of them sends to the registry.
 *
 * Invariant: an operation leaves the list once. The thread that has removed it runs its last
 * callback, so the callback runs once, whether the operation ends or is canceled.
 */
#include "server/registry/loopback_operation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/watch/watcher.h"
#include "server/resources/custom/custom_table.h"

/* ---- the requests of operations ---- */

bool hfd_operation_is_valid_target(const struct hf_resource *resource, const char *ns,
                                   const char *name) {
        return resource->version && resource->plural && (!ns || strlen(ns) <= HF_NAME_MAX) &&
               (!name || strlen(name) <= HF_NAME_MAX);
}

void hfd_operation_request_init(struct hfd_request *request, const struct hfd_operation *op,
                                const char *ns, const char *name) {
        request->resource = op->resource;
        request->in_process = true;
        (void)snprintf(request->ns, sizeof request->ns, "%s", ns ? ns : "");
        (void)snprintf(request->name, sizeof request->name, "%s", name ? name : "");
}

void hfd_operation_request_deinit(struct hfd_request *request) {
        hfd_options_done(&request->options);
        hfd_admission_notes_done(&request->notes);
}

/* ---- the list ---- */

void hfd_operation_init(struct hfd_operation *op, struct hfd_loopback *client,
                        const struct hf_resource *resource, void *ctx) {
        op->client = client;
        op->ctx = ctx;
        atomic_init(&op->refs, 2); /* the registry's and the list's */
        op->resource = hfd_custom_table_find_stored(hfd_cacher_table(client->registry->cacher),
                                                    resource->group ? resource->group : "",
                                                    resource->version, resource->plural);
}

void hfd_operation_free(struct hfd_operation *op) {
        struct hfd_loopback_request *whole = op->whole;

        assert(!op->link);
        hfd_watcher_unref(op->watcher);
        hfd_resource_unref(op->resource);
        if (whole) {
                hfd_operation_request_deinit(&whole->request);
                free(whole->body);
        }
        free(op);
}

/* Frees the operation before it decrements n_operations: when loopback_free sees 0, all operations
 * must be freed. */
void hfd_operation_unref(struct hfd_operation *op) {
        struct hfd_loopback *client = op->client;
        int refs = atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel);

        assert(refs > 0);
        if (refs != 1)
                return;
        hfd_operation_free(op);
        pthread_mutex_lock(&client->mu);
        assert(client->n_operations > 0);
        if (--client->n_operations == 0)
                pthread_cond_broadcast(&client->idle);
        pthread_mutex_unlock(&client->mu); /* hf_client_free may free the client from here on */
}

int hfd_operation_list(struct hfd_operation *op, uint64_t *ret_id) {
        struct hfd_loopback *client = op->client;

        assert(!op->link);
        pthread_mutex_lock(&client->mu);
        if (client->closing) {
                pthread_mutex_unlock(&client->mu);
                return HF_E_CLOSED;
        }
        op->id = ++client->last_id;
        if (ret_id)
                *ret_id = op->id;
        op->next = client->operations;
        op->link = &client->operations;
        if (op->next)
                op->next->link = &op->next;
        client->operations = op;
        client->n_operations++;
        pthread_mutex_unlock(&client->mu);
        return 0;
}

bool hfd_operation_unlist(struct hfd_operation *op) {
        struct hfd_loopback *client = op->client;

        pthread_mutex_lock(&client->mu);
        bool listed = op->link != NULL;
        if (listed) {
                assert(*op->link == op);
                *op->link = op->next;
                if (op->next)
                        op->next->link = op->link;
                op->link = NULL;
        }
        pthread_mutex_unlock(&client->mu);
        return listed;
}

struct hfd_operation *hfd_operation_find_locked(struct hfd_loopback *client, uint64_t id) {
        struct hfd_operation *op = client->operations;

        hf__mutex_assert_held(&client->mu);
        while (op && op->id != id)
                op = op->next;
        /* While op is listed, the list's reference exists. */
        assert(!op || atomic_load_explicit(&op->refs, memory_order_relaxed) > 0);
        if (op)
                atomic_fetch_add(&op->refs, 1);
        return op;
}
