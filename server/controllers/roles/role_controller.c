/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the controller cluster-roles; role_defaults.h and role_aggregation.h decide what it writes.
 *
 * An aggregated role depends on all roles that its selectors match, and a change of labels may add
 * or remove some. So there is one key for all aggregated roles: a reconcile reads all
 * ClusterRoles from the informer, and writes those whose rules differ.
 *
 * Invariant: a role is written with the resourceVersion that it was computed from. If another
 * client has changed it, the event of that change leads to another reconcile.
 */
#include "server/controllers/roles/role_controller.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/controllers/base/defaults_pause.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/roles/role_aggregation.h"
#include "server/controllers/roles/role_defaults.h"

#define ALL_KEY        "all"
#define OTHERS_AT_ONCE 4

static const struct hf_resource cluster_roles = {"rbac.authorization.k8s.io", "v1", "clusterroles"};

/* A copy of the informer's roles, because they must be parsed without its lock. */
struct roles {
        char **texts;            /* owned, with each text */
        size_t *sizes, n, space; /* sizes: owned; space: the length of both arrays */
        int error;
};

static void copy_role(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct roles *roles = ctx;

        if (roles->error != 0)
                return;
        char *copy = roles->n < roles->space ? malloc(n) : NULL;
        if (!copy) {
                roles->error = -ENOMEM;
                return;
        }
        memcpy(copy, object, n);
        roles->texts[roles->n] = copy;
        roles->sizes[roles->n++] = n;
}

/* All roles as a list, in the order of their names. 0, or an error, usually -ENOMEM: try again. */
static int read_roles(struct hf_informer *informer, struct hf__json **ret_list) {
        /* Some more, because roles may be added before hf_informer_each has the lock. */
        struct roles roles = {.space = hf_informer_count(informer) + 16};
        struct hf__json *list = hf__json_array();

        roles.texts = calloc(roles.space, sizeof *roles.texts);
        roles.sizes = calloc(roles.space, sizeof *roles.sizes);
        if (!list || !roles.texts || !roles.sizes)
                roles.error = -ENOMEM;
        else
                hf_informer_each(informer, copy_role, &roles);
        for (size_t i = 0; i < roles.n; i++) {
                struct hf__json *role = NULL;
                /* If a role were left out because it was not parsed, the aggregated roles that
                 * select it would lose its rules. So fail instead. */
                if (roles.error == 0)
                        roles.error = hf__json_parse(roles.texts[i], roles.sizes[i], &role, NULL);
                if (roles.error == 0)
                        roles.error = hf__json_append(list, role);
                free(roles.texts[i]);
        }
        free(roles.texts);
        free(roles.sizes);
        if (roles.error != 0)
                hf__json_free(list);
        else
                *ret_list = list;
        return roles.error;
}

/* Writes an aggregated role, if its rules differ from the rules of the roles that it selects. */
static int update_role(struct hf_term *term, const struct hf__json *role,
                       const struct hf__json *all) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *rules = NULL, *updated = NULL;
        int r = hfd_role_aggregation_rules(role, all, &rules);

        if (r != 0 || hf__json_equal(rules, hf__json_get(role, "rules")) ||
            (hf__json_count(rules) == 0 && hf__json_count(hf__json_get(role, "rules")) == 0))
                return r;
        updated = hf__json_dup(role);
        if (!updated)
                return -ENOMEM;
        r = hf__json_set(updated, "rules", HF__TAKE(rules));
        if (r == 0)
                r = hfd_object_client_update(term, &cluster_roles, NULL,
                                             hf__json_string(role, "metadata.name"), NULL, updated);
        return hfd_object_client_ignore_stale(r);
}

/* The progress of the controller in one term. */
struct run {
        const struct hfd_controller_context *context;
        size_t next_other; /* the index of the next object of context->other_role to apply */
        bool has_others;   /* not all of these objects have been applied yet */
};

static int aggregate_roles(const struct run *run, struct hf_term *term) {
        struct hf__json *all = NULL;
        int r = read_roles(run->context->cluster_roles->informer, &all);

        for (const struct hf__json *role = hf__json_first(all); role && r == 0;
             role = hf__json_next(role))
                if (hf__json_is_object(hf__json_get(role, "aggregationRule")))
                        r = update_role(term, role, all);
        hf__json_free(all);
        return r;
}

/* Applies only a few objects of context->other_role at a time: there is one worker, and clients
 * wait for aggregated roles, but not for those objects. */
static int reconcile_role(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct run *run = ctx;
        int r = aggregate_roles(run, term);

        if (r == 0 && run->has_others)
                r = hfd_role_defaults_apply_some(term, run->context->other_role, &run->next_other,
                                                 OTHERS_AT_ONCE, &run->has_others);
        if (r == 0 && run->has_others)
                *ret_again = 1; /* at once */
        return r;
}

static int map_role(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                    const char *name, const char *object, size_t n) {
        return hf_workqueue_add(queue, ALL_KEY);
}

int hfd_role_controller_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        struct run run = {.context = context, .has_others = context->other_role != NULL};
        assert(context->cluster_roles);
        const struct hfd_reconcile_loop loop = {
                .name = HFD_CLUSTER_ROLES,
                .n_workers = 1,
                .reconcile = reconcile_role,
                .ctx = &run,
                .sources = {{hfd_needed_informer(context->cluster_roles), map_role}},
        };
        hfd_defaults_pause(term, context->cluster_roles->informer);
        int r = hfd_role_defaults_apply(term, context->default_role);

        return r != 0 ? r : hfd_reconcile_loop_run(&loop, term);
}
