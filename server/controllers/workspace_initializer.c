/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace initializer: initializes every new workspace until it is Ready, and deletes the
 * namespace of a deleted one. workspace_core.h decides which step is next.
 *
 * Invariants:
 *
 *  - Each step that need not wait ends with one fenced write of the workspace, at the
 *    resourceVersion for which the step was decided. So a new leader continues where the previous
 *    one stopped. After a conflict, the event of the other change enqueues the key again.
 *  - One controller does both initialization and cleanup, and its key is the workspace's name. So
 *    the two never run in parallel for one workspace.
 *
 * The namespace ws-<name> belongs to one incarnation of the workspace: its owner reference has the
 * workspace's uid. If another workspace owns the namespace, usually a previous one of the same
 * name, or if the namespace is being deleted, the workspace waits until the namespace is gone. A
 * namespace without a workspace as owner existed before: the workspace uses it unchanged, and
 * deleting the workspace does not delete the namespace.
 *
 * Other programs register initializers by a ConfigMap in kube-system with the label
 * HFD_INITIALIZER_LABEL. Before the controller writes the list of a workspace, it waits until the
 * informer of those ConfigMaps has reached the workspace's revision. So the list has every
 * initializer that was registered before the workspace was created, up to HFD_WS_MAX_INITIALIZERS.
 */
#include "server/controllers/workspace_initializer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/workspace_core.h"

#define NAMESPACE_PREFIX "ws-"
#define N_WORKERS        8 /* a worker mostly waits for responses */
/* The delay of the next check while the workspace waits for the deletion of a namespace. Usually
 * the event of the deletion triggers it sooner. */
#define RECHECK_DELAY (10 * HF_NSEC_PER_SEC)

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};
static const struct hf_resource namespaces = {"", "v1", "namespaces"};

/* ---- the namespace ---- */

/* Which workspace owns a namespace: none, the one with a given uid ("us"), or another one. */
enum ownership { OWNED_BY_NONE, OWNED_BY_US, OWNED_BY_ANOTHER };

static enum ownership namespace_ownership(const struct hf__json *ns, const char *uid) {
        enum ownership ownership = OWNED_BY_NONE;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(ns, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                const char *kind = hf__json_string(m, "kind"), *owner = hf__json_string(m, "uid");
                if (!kind || !owner || strcmp(kind, "Workspace") != 0)
                        continue;
                if (strcmp(owner, uid) == 0)
                        return OWNED_BY_US;
                ownership = OWNED_BY_ANOTHER;
        }
        return ownership;
}

/* Whether the workspace can use the namespace now. If not, it waits until the namespace is gone. */
static bool is_usable(const struct hf__json *ns, const char *uid) {
        return !hf__json_string(ns, "metadata.deletionTimestamp") &&
               namespace_ownership(ns, uid) != OWNED_BY_ANOTHER;
}

static struct hf__json *new_namespace(const char *ns_name, const char *name, const char *uid) {
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
                r = hf__json_set_string(ns, "metadata.name", ns_name);
        if (r == 0) {
                r = hf__json_set(ns, "metadata.ownerReferences", owners);
                owners = NULL; /* consumed */
        }
        hf__json_free(owner);
        hf__json_free(owners);
        return r == 0 ? ns : hf__json_free(ns);
}

/*
 * Creates the namespace unless it exists. *ret_usable: it exists and is_usable. Tries the create
 * first, because usually the namespace does not exist, and no other request is needed.
 */
static int create_namespace(struct hf_term *term, const char *ns_name, const char *name,
                            const char *uid, bool *ret_usable) {
        struct hf__json *ns = new_namespace(ns_name, name, uid), *existing;

        *ret_usable = false;
        if (!ns)
                return -ENOMEM;
        int r = hfd_object_client_create(term, &namespaces, NULL, ns);
        hf__json_free(ns);
        if (r != HF_E_EXISTS) {
                *ret_usable = r == 0;
                return r;
        }
        r = hfd_object_client_get(term, &namespaces, NULL, ns_name, &existing);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? HF_E_CONFLICT : r; /* deleted in between: try again */
        *ret_usable = is_usable(existing, uid);
        hf__json_free(existing);
        return 0;
}

/*
 * The informer's copy is enough to delete the namespace, because its resourceVersion is a
 * precondition of the delete. (A later version may have no owner, if the workspace is deleted with
 * the policy Orphan.) It is also enough to wait until the namespace is gone. But only a consistent
 * read can show that the workspace owns no namespace, because the informer may not have received
 * the namespace yet.
 */
int hfd_workspace_initializer_delete_namespace(struct hfd_controller_context *context,
                                               struct hf_term *term, const char *ns_name,
                                               const char *uid, bool *ret_gone) {
        struct hf__json *ns;
        int r = hfd_object_client_get_cached(context->namespaces->informer, NULL, ns_name, &ns);

        if (r == 0 && namespace_ownership(ns, uid) != OWNED_BY_US) {
                hf__json_free(ns);
                r = HF_E_NOT_FOUND;
        }
        if (r == HF_E_NOT_FOUND)
                r = hfd_object_client_get(term, &namespaces, NULL, ns_name, &ns);
        *ret_gone = r == HF_E_NOT_FOUND;
        if (r != 0)
                return *ret_gone ? 0 : r;
        *ret_gone = namespace_ownership(ns, uid) != OWNED_BY_US;
        if (!*ret_gone && !hf__json_string(ns, "metadata.deletionTimestamp")) {
                struct hfd_object_client_delete_options options =
                        {.uid = hf__json_string(ns, "metadata.uid"),
                         .resource_version = hf__json_string(ns, "metadata.resourceVersion")};
                r = hfd_object_client_delete(term, &namespaces, NULL, ns_name, &options);
                /* The event of the deletion enqueues the key again. A conflict is returned, so that
                 * the queue tries the key again. */
                if (r == HF_E_NOT_FOUND)
                        r = 0;
        }
        hf__json_free(ns);
        return r;
}

/* ---- the registered initializers ---- */

/* The names of the initializers that are registered by ConfigMaps. */
struct registered {
        char *names[HFD_WS_MAX_INITIALIZERS];
        size_t n;
        int error; /* 0, or -errno: a name may be missing */
};

static void collect_initializer(void *ctx, const char *ns, const char *name, const char *object,
                                size_t n) {
        struct registered *registered = ctx;
        struct hf__json *json;

        if (registered->n == HFD_WS_MAX_INITIALIZERS)
                return;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0) {
                registered->error = r < 0 ? r : registered->error;
                return;
        }
        const char *value = hf__json_text(
                hf__json_get(hf__json_path(json, "metadata.labels"), HFD_INITIALIZER_LABEL));
        if (value && !hf__json_string(json, "metadata.deletionTimestamp")) {
                char *copy = strdup(value);
                if (copy)
                        registered->names[registered->n++] = copy;
                else
                        registered->error = -ENOMEM;
        }
        hf__json_free(json);
}

static int set_initializers(struct hfd_controller_context *context, struct hf_term *term,
                            struct hf__json *workspace) {
        struct registered registered = {0};
        int r = hf_informer_wait(context->initializers,
                                 hf__json_string(workspace, "metadata.resourceVersion"),
                                 hf_term_abort(term));

        if (r != 0)
                return r;
        hf_informer_each(context->initializers, collect_initializer, &registered);
        /* A workspace that skipped an initializer would never run it, so try again instead. */
        r = registered.error;
        if (r == 0)
                r = hfd_workspace_initialize(workspace, (const char *const *)registered.names,
                                             registered.n);
        while (registered.n > 0)
                free(registered.names[--registered.n]);
        return r;
}

/* ---- steps ---- */

/* subresource: "status", or NULL for the metadata. */
static int write_workspace(struct hf_term *term, const char *name, const char *subresource,
                           const struct hf__json *workspace) {
        return hfd_object_client_ignore_stale(
                hfd_object_client_update(term, &workspaces, NULL, name, subresource, workspace));
}

static int initialize_namespace(struct hf_term *term, struct hf__json *workspace, const char *name,
                                const char *ns_name, hf_nsec *ret_again) {
        bool usable;
        int r = create_namespace(term, ns_name, name, hf__json_string(workspace, "metadata.uid"),
                                 &usable);

        if (r != 0)
                return r;
        if (!usable) {
                *ret_again = RECHECK_DELAY;
                return 0;
        }
        r = hfd_workspace_namespace_created(workspace);
        return r != 0 ? r : write_workspace(term, name, "status", workspace);
}

static int clean_up_workspace(struct hfd_controller_context *context, struct hf_term *term,
                              struct hf__json *workspace, const char *name, const char *ns_name,
                              hf_nsec *ret_again) {
        bool gone;
        int r = hfd_workspace_initializer_delete_namespace(context, term, ns_name,
                                                           hf__json_string(workspace,
                                                                           "metadata.uid"),
                                                           &gone);

        if (r != 0)
                return r;
        if (!gone) {
                *ret_again = RECHECK_DELAY;
                return 0;
        }
        r = hfd_string_list_remove(workspace, "metadata.finalizers", HFD_WS_FINALIZER);
        return r != 0 ? r : write_workspace(term, name, NULL, workspace);
}

/* Does the next step of a workspace, which workspace_core.c chooses. */
static int do_next_step(struct hfd_controller_context *context, struct hf_term *term,
                        struct hf__json *workspace, const char *name, hf_nsec *ret_again) {
        char ns_name[HF_NAME_MAX + sizeof NAMESPACE_PREFIX];
        int r = 0;

        (void)snprintf(ns_name, sizeof ns_name, NAMESPACE_PREFIX "%s", name);
        if (!hf__json_string(workspace, "metadata.uid"))
                return HF_E_INVALID;
        switch (hfd_workspace_next(workspace)) {
        case HFD_WS_NOTHING: return 0;
        case HFD_WS_ADD_FINALIZER:
                r = hf__json_add_element(workspace, "metadata.finalizers", HFD_WS_FINALIZER);
                return r != 0 ? r : write_workspace(term, name, NULL, workspace);
        case HFD_WS_SCHEDULE: r = hfd_workspace_set_phase(workspace, "Scheduling"); break;
        case HFD_WS_INITIALIZE: r = set_initializers(context, term, workspace); break;
        case HFD_WS_CREATE_NAMESPACE:
                return initialize_namespace(term, workspace, name, ns_name, ret_again);
        case HFD_WS_READY: r = hfd_workspace_set_phase(workspace, "Ready"); break;
        case HFD_WS_DELETE_NAMESPACE:
                return clean_up_workspace(context, term, workspace, name, ns_name, ret_again);
        }
        return r != 0 ? r : write_workspace(term, name, "status", workspace);
}

static int reconcile_workspace(void *ctx, struct hf_term *term, const char *key,
                               hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        struct hf__json *workspace;
        int r = hfd_object_client_get_cached(context->workspaces->informer, NULL, key, &workspace);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = do_next_step(context, term, workspace, key, ret_again);
        hf__json_free(workspace);
        return r;
}

/* A workspace may be waiting for the deletion of a namespace. */
static int map_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                         const char *ns, const char *name, const char *object, size_t n) {
        if (type != HF_EVENT_DELETED ||
            strncmp(name, NAMESPACE_PREFIX, sizeof NAMESPACE_PREFIX - 1) != 0)
                return 0;
        return hf_workqueue_add(queue, name + sizeof NAMESPACE_PREFIX - 1);
}

int hfd_workspace_initializer_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        const struct hfd_reconcile_loop loop = {
                .name = HFD_WORKSPACE_INITIALIZER,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_workspace,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->workspaces)},
                            {hfd_needed_informer(context->namespaces), map_namespace}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
