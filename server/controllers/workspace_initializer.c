/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace initializer: brings every workspace from nothing to Ready, and a deleted one to its
 * end. What the next step is stands in workspace_core.h; each step is recorded in the object by one
 * fenced write at the resourceVersion it was read at, so that a new leader goes on where the last
 * one stopped. A conflict means that somebody else changed it, and the change brings the key back.
 *
 * One controller does both, keyed by the workspace's name, so that its beginning and its end never
 * run side by side.
 *
 * The namespace ws-<name> belongs to one incarnation of the workspace: its owner reference names
 * the uid. One that belongs to an incarnation of before, or that is being deleted, is waited out.
 * One that nobody owns was there before the workspace: it is used as it is, and outlives it.
 *
 * Others register initializers by a ConfigMap in kube-system with the label HFD_INITIALIZER_LABEL:
 * its value is the name that a workspace gets on its list. The cache of those is brought up to the
 * workspace's own revision before the list is written: who registered before a workspace was
 * created is on it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/controllers.h"
#include "server/controllers/gc_core.h"
#include "server/controllers/object_client.h"
#include "server/controllers/workspace_core.h"

#define NAMESPACE_PREFIX "ws-"
#define N_WORKERS        8
#define LOOK_AGAIN                                                                                 \
        (10 * HF_NSEC_PER_SEC) /* while another incarnation's namespace is in the way; its events  \
                                  come sooner */

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};
static const struct hf_resource namespaces = {"", "v1", "namespaces"};

/* ---- the namespace ---- */

enum whose { NOBODYS, OURS, ANOTHERS }; /* of a namespace */

static enum whose whose_namespace(const struct hf__json *ns, const char *uid) {
        enum whose whose = NOBODYS;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(ns, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                const char *kind = hf__json_string(m, "kind"), *owner = hf__json_string(m, "uid");
                if (!kind || !owner || strcmp(kind, "Workspace") != 0)
                        continue;
                if (strcmp(owner, uid) == 0)
                        return OURS;
                whose = ANOTHERS;
        }
        return whose;
}

/* Whether it can be the workspace's: else it is to be waited for. */
static bool is_usable(const struct hf__json *ns, const char *uid) {
        return !hf__json_string(ns, "metadata.deletionTimestamp") &&
               whose_namespace(ns, uid) != ANOTHERS;
}

static struct hf__json *new_namespace(const char *full, const char *name, const char *uid) {
        struct hf__json *ns = hf__json_object(), *owners = hf__json_array(),
                        *owner = hf__json_object();
        int r = ns && owners && owner ? 0 : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(owner, "apiVersion", "tenancy.holdfast.dev/v1alpha1");
        if (r == 0)
                r = hf__json_set_string(owner, "kind", "Workspace");
        if (r == 0)
                r = hf__json_set_string(owner, "name", name);
        if (r == 0)
                r = hf__json_set_string(owner, "uid", uid);
        if (r == 0)
                r = hf__json_set_bool(owner, "controller", true);
        if (r == 0)
                r = hf__json_set_bool(owner, "blockOwnerDeletion", true);
        if (r == 0) {
                r = hf__json_append(owners, owner);
                owner = NULL; /* consumed */
        }
        if (r == 0)
                r = hf__json_set_string(ns, "apiVersion", "v1");
        if (r == 0)
                r = hf__json_set_string(ns, "kind", "Namespace");
        if (r == 0)
                r = hf__json_set_string(ns, "metadata.name", full);
        if (r == 0) {
                r = hf__json_set(ns, "metadata.ownerReferences", owners);
                owners = NULL; /* consumed */
        }
        hf__json_free(owner);
        hf__json_free(owners);
        return r == 0 ? ns : hf__json_free(ns);
}

/* *ret_made: it is there and can be the workspace's. Looks before it creates only when a namespace
 * is in the way. */
static int make_namespace(struct hf_term *term, const char *full, const char *name, const char *uid,
                          bool *ret_made) {
        struct hf__json *ns = new_namespace(full, name, uid), *there;

        *ret_made = false;
        if (!ns)
                return -ENOMEM;
        int r = hfd_object_create(term, &namespaces, NULL, ns);
        hf__json_free(ns);
        if (r != HF_E_EXISTS) {
                *ret_made = r == 0;
                return r;
        }
        r = hfd_object_read(term, &namespaces, NULL, full, &there);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? HF_E_CONFLICT : r; /* gone in between: once more */
        *ret_made = is_usable(there, uid);
        hf__json_free(there);
        return 0;
}

/*
 * Deletes it if it is ours. *ret_gone: nothing of ours is there any more. What the cache says of it
 * is enough to delete it, if it is still that version (in a later one it may be nobody's: a
 * workspace that is deleted as "orphan" has left it), and to wait; that there is none of ours is
 * asked of the server, for it may have been made a moment ago.
 */
static int end_namespace(struct hfd_controllers *controllers, struct hf_term *term,
                         const char *full, const char *uid, bool *ret_gone) {
        struct hf__json *ns;
        int r = hfd_object_cached(controllers->namespaces->informer, NULL, full, &ns);

        if (r == 0 && whose_namespace(ns, uid) != OURS) {
                hf__json_free(ns);
                r = HF_E_NOT_FOUND;
        }
        if (r == HF_E_NOT_FOUND)
                r = hfd_object_read(term, &namespaces, NULL, full, &ns);
        *ret_gone = r == HF_E_NOT_FOUND;
        if (r != 0)
                return *ret_gone ? 0 : r;
        *ret_gone = whose_namespace(ns, uid) != OURS;
        if (!*ret_gone && !hf__json_string(ns, "metadata.deletionTimestamp")) {
                struct hfd_delete what = {.uid = hf__json_string(ns, "metadata.uid"),
                                          .resource_version =
                                                  hf__json_string(ns, "metadata.resourceVersion")};
                r = hfd_object_delete(term, &namespaces, NULL, full, &what);
                r = r == HF_E_NOT_FOUND
                            ? 0
                            : r; /* its event tells; after a conflict it is looked at again */
        }
        hf__json_free(ns);
        return r;
}

/* ---- the registered initializers ---- */

struct registered {
        char *names[HFD_WS_MAX_INITIALIZERS];
        size_t n;
};

static void collect(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct registered *registered = ctx;
        struct hf__json *json;

        if (registered->n == HFD_WS_MAX_INITIALIZERS || hf__json_parse(object, n, &json, NULL))
                return;
        const char *value = hf__json_text(
                hf__json_get(hf__json_path(json, "metadata.labels"), HFD_INITIALIZER_LABEL));
        char *copy = value && !hf__json_string(json, "metadata.deletionTimestamp") ? strdup(value)
                                                                                   : NULL;
        if (copy)
                registered->names[registered->n++] = copy;
        hf__json_free(json);
}

static int initialize(struct hfd_controllers *controllers, struct hf_term *term,
                      struct hf__json *workspace) {
        struct registered registered = {0};
        int r = hf_informer_wait(controllers->initializers,
                                 hf__json_string(workspace, "metadata.resourceVersion"),
                                 hf_term_abort(term));

        if (r != 0)
                return r;
        hf_informer_each(controllers->initializers, collect, &registered);
        r = hfd_ws_initialize(workspace, (const char *const *)registered.names, registered.n);
        while (registered.n > 0)
                free(registered.names[--registered.n]);
        return r;
}

/* ---- steps ---- */

/* Changed or deleted meanwhile: the event that says so brings the key again. */
static int settle(int r) { return r == HF_E_CONFLICT || r == HF_E_NOT_FOUND ? 0 : r; }

static int write_status(struct hf_term *term, const char *name, const struct hf__json *workspace) {
        return settle(hfd_object_update(term, &workspaces, NULL, name, "status", workspace));
}

static int step_namespace(struct hf_term *term, struct hf__json *workspace, const char *name,
                          const char *full, hf_nsec *ret_again) {
        bool made;
        int r = make_namespace(term, full, name, hf__json_string(workspace, "metadata.uid"), &made);

        if (r != 0)
                return r;
        if (!made) {
                *ret_again = LOOK_AGAIN;
                return 0;
        }
        r = hfd_ws_namespace_made(workspace);
        return r != 0 ? r : write_status(term, name, workspace);
}

static int step_end(struct hfd_controllers *controllers, struct hf_term *term,
                    struct hf__json *workspace, const char *name, const char *full,
                    hf_nsec *ret_again) {
        bool gone;
        int r = end_namespace(controllers, term, full, hf__json_string(workspace, "metadata.uid"),
                              &gone);

        if (r != 0)
                return r;
        if (!gone) {
                *ret_again = LOOK_AGAIN;
                return 0;
        }
        r = hfd_list_drop(workspace, "metadata.finalizers", HFD_WS_FINALIZER);
        return r != 0 ? r
                      : settle(hfd_object_update(term, &workspaces, NULL, name, NULL, workspace));
}

static int step(struct hfd_controllers *controllers, struct hf_term *term,
                struct hf__json *workspace, const char *name, hf_nsec *ret_again) {
        char full[HF_NAME_MAX + sizeof NAMESPACE_PREFIX];
        int r = 0;

        (void)snprintf(full, sizeof full, NAMESPACE_PREFIX "%s", name);
        if (!hf__json_string(workspace, "metadata.uid"))
                return HF_E_INVALID;
        switch (hfd_ws_next(workspace)) {
        case HFD_WS_NOTHING: return 0;
        case HFD_WS_ADD_FINALIZER:
                r = hfd_list_add(workspace, "metadata.finalizers", HFD_WS_FINALIZER);
                return r != 0 ? r
                              : settle(hfd_object_update(term, &workspaces, NULL, name, NULL,
                                                         workspace));
        case HFD_WS_SCHEDULE: r = hfd_ws_set_phase(workspace, "Scheduling"); break;
        case HFD_WS_INITIALIZE: r = initialize(controllers, term, workspace); break;
        case HFD_WS_MAKE_NAMESPACE: return step_namespace(term, workspace, name, full, ret_again);
        case HFD_WS_READY: r = hfd_ws_set_phase(workspace, "Ready"); break;
        case HFD_WS_END_NAMESPACE:
                return step_end(controllers, term, workspace, name, full, ret_again);
        }
        return r != 0 ? r : write_status(term, name, workspace);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controllers *controllers = ctx;
        struct hf__json *workspace;
        int r = hfd_object_cached(controllers->workspaces->informer, NULL, key, &workspace);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = step(controllers, term, workspace, key, ret_again);
        hf__json_free(workspace);
        return r;
}

/* A namespace that went, or begins to go, may be what its workspace waits for. */
static void map_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                          const char *ns, const char *name, const char *object, size_t n) {
        if (type == HF_EVENT_DELETED &&
            strncmp(name, NAMESPACE_PREFIX, sizeof NAMESPACE_PREFIX - 1) == 0)
                (void)hf_workqueue_add(queue, name + sizeof NAMESPACE_PREFIX - 1);
}

int hfd_run_workspace_initializer(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        const struct hf_reconciler_source sources[] = {
                {.informer = controllers->workspaces->informer},
                {.informer = controllers->namespaces->informer, .map = map_namespace},
        };
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_WORKSPACE_INITIALIZER,
                .sources = sources,
                .n_sources = sizeof sources / sizeof *sources,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = controllers,
        };

        return hf_reconciler_run(&reconciler, term);
}
