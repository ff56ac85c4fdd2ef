/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a ConfigMap kube-root-ca.crt in every namespace, with the CA by which programs in the
 * namespace recognise this server. A key of the queue is the name of a namespace. root_ca_core.h
 * decides what to do with a ConfigMap.
 *
 * Invariants. The informer has only these ConfigMaps, with their data. So a key costs only look-ups
 * in caches if nothing has changed, however many namespaces there are. A ConfigMap is written at
 * the resourceVersion that was read, so no change of another client is overwritten unseen.
 */
#include "server/controllers/namespaces/root_ca.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/namespaces/active_namespace.h"
#include "server/controllers/namespaces/root_ca_core.h"

#define N_WORKERS 8 /* a worker mostly waits for responses */
/* How often a ConfigMap is checked without an event: a reload may have replaced the CA, and no
 * event reports that. */
#define RECHECK_DELAY (300 * HF_NSEC_PER_SEC)

static const struct hf_resource configmaps = {"", "v1", "configmaps"};

static int create_configmap(struct hf_term *term, const char *ns, const char *pem) {
        struct hf__json *map;
        int r = hfd_root_ca_new(pem, &map);

        if (r != 0)
                return r;
        r = hfd_object_client_create(term, &configmaps, ns, map);
        hf__json_free(map);
        return hfd_active_namespace_created(term, ns, r);
}

static int restore_configmap(struct hf_term *term, const char *ns, struct hf__json *map,
                             const char *pem) {
        int r = hfd_root_ca_restore(map, pem);

        if (r == 0)
                r = hfd_object_client_update(term, &configmaps, ns, HFD_ROOT_CA_NAME, NULL, map);
        return hfd_object_client_ignore_stale(r);
}

/* The event of the delete enqueues the namespace again. */
static int delete_configmap(struct hf_term *term, const char *ns, const struct hf__json *map) {
        struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(map, "metadata.uid"),
                 .resource_version = hf__json_string(map, "metadata.resourceVersion")};

        if (hf__json_string(map, "metadata.deletionTimestamp"))
                return 0;
        return hfd_object_client_ignore_stale(
                hfd_object_client_delete(term, &configmaps, ns, HFD_ROOT_CA_NAME, &options));
}

static int check_configmap(struct hfd_controller_context *context, struct hf_term *term,
                           const char *ns, const char *pem) {
        struct hf__json *map;
        int r = hfd_object_client_get_cached(context->root_cas, ns, HFD_ROOT_CA_NAME, &map);

        if (r == HF_E_NOT_FOUND)
                return create_configmap(term, ns, pem);
        if (r != 0)
                return r;
        switch (hfd_root_ca_next(map, pem)) {
        case HFD_ROOT_CA_KEEP: break;
        case HFD_ROOT_CA_UPDATE: r = restore_configmap(term, ns, map, pem); break;
        case HFD_ROOT_CA_REPLACE: r = delete_configmap(term, ns, map); break;
        }
        hf__json_free(map);
        return r;
}

static int reconcile_namespace(void *ctx, struct hf_term *term, const char *key,
                               hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        bool active;
        int r = hfd_active_namespace(context, key, &active);

        if (r != 0 || !active)
                return r;
        char *pem = context->ca.root(context->ca.ctx);
        if (!pem)
                return -ENOMEM;
        r = check_configmap(context, term, key, pem);
        free(pem);
        *ret_again = RECHECK_DELAY;
        return r;
}

/* The informer has only ConfigMaps named kube-root-ca.crt, so each event concerns the namespace of
 * its ConfigMap. */
static int map_configmap(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                         const char *ns, const char *name, const char *object, size_t n) {
        return hf_workqueue_add(queue, ns);
}

int hfd_root_ca_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->namespaces); /* controllers.c has created it */
        const struct hfd_reconcile_loop loop = {
                .name = HFD_ROOT_CA_PUBLISHER,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_namespace,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->namespaces)},
                            {context->root_cas, map_configmap}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
