/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/controllers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};
static const struct hf_resource configmaps = {"", "v1", "configmaps"};

#define LEAVE_PATIENCE (500 * HF_NSEC_PER_MSEC)

/* What of the caches a controller needs. */
enum { NEEDS_ALL = 1, NEEDS_WORKSPACES = 2, NEEDS_EVENTS = 4, NEEDS_IDENTITY = 8 };

static const struct {
        struct hf_controller controller;
        unsigned needs;
} rows[HFD_N_CONTROLLERS] = {
        {{.name = HFD_NAMESPACE_LIFECYCLE,
          .class = HF_LEADER_ONLY,
          .run = hfd_run_namespace_lifecycle},
         NEEDS_ALL},
        {{.name = HFD_GARBAGE_COLLECTOR, .class = HF_LEADER_ONLY, .run = hfd_run_garbage_collector},
         NEEDS_ALL},
        {{.name = HFD_WORKSPACE_INITIALIZER,
          .class = HF_LEADER_ONLY,
          .run = hfd_run_workspace_initializer},
         NEEDS_WORKSPACES},
        {{.name = HFD_EVENT_EXPIRY, .class = HF_LEADER_ONLY, .run = hfd_run_event_expiry},
         NEEDS_EVENTS},
        {{.name = HFD_LEASE_COLLECTOR, .class = HF_LEADER_ONLY, .run = hfd_run_lease_collector},
         NEEDS_IDENTITY},
        {{.name = HFD_IDENTITY_LEASE, .class = HF_EVERY_INSTANCE, .run = hfd_run_identity_lease},
         0},
};

/* ---- caches ---- */

static bool is_needed(const struct hf_resource *resource, unsigned needs) {
        bool core = *resource->group == '\0';

        if (needs & NEEDS_ALL)
                return true;
        if (needs & NEEDS_WORKSPACES && ((core && strcmp(resource->plural, "namespaces") == 0) ||
                                         strcmp(resource->plural, "workspaces") == 0))
                return true;
        return needs & NEEDS_EVENTS && core && strcmp(resource->plural, "events") == 0;
}

static int make_kinds(struct hfd_controllers *controllers,
                      const struct hfd_controllers_config *config, unsigned needs) {
        struct hfd_kind_row needed[HFD_KINDS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < config->n_rows; i++)
                if (is_needed(&config->rows[i].resource, needs)) {
                        if (n == HFD_KINDS_MAX)
                                return HF_E_TOO_LARGE;
                        needed[n++] = config->rows[i];
                }
        int r = hfd_kinds_init(&controllers->kinds, controllers->host, config->client, needed, n);
        controllers->workspaces =
                hfd_kinds_find(&controllers->kinds, "tenancy.holdfast.dev", "workspaces");
        controllers->namespaces = hfd_kinds_find(&controllers->kinds, "", "namespaces");
        controllers->events = hfd_kinds_find(&controllers->kinds, "", "events");
        return r;
}

static int make_caches(struct hfd_controllers *controllers,
                       const struct hfd_controllers_config *config, unsigned needs) {
        struct hf_informer_config initializer_config =
                {.size = sizeof initializer_config,
                 .client = config->client,
                 .resource = configmaps,
                 .ns = HFD_SYSTEM_NAMESPACE,
                 .one_revision = true,
                 .metadata_only = true,
                 .query = "labelSelector=tenancy.holdfast.dev%2Finitializer"};
        struct hf_informer_config lease_config =
                {.size = sizeof lease_config,
                 .client = config->client,
                 .resource = leases,
                 .ns = HFD_SYSTEM_NAMESPACE,
                 .one_revision = true,
                 .query = "labelSelector=apiserver.kubernetes.io%2Fidentity%3D" HFD_IDENTITY_VALUE};
        int r = make_kinds(controllers, config, needs);

        if (r == 0 && needs & NEEDS_WORKSPACES)
                r = hf_informer_new(controllers->host, &initializer_config,
                                    &controllers->initializers);
        if (r == 0 && needs & NEEDS_IDENTITY)
                r = hf_informer_new(controllers->host, &lease_config,
                                    &controllers->identity_leases);
        return r;
}

/* ---- life ---- */

int hfd_controllers_new(const struct hf_host *host, const struct hfd_controllers_config *config,
                        struct hfd_controllers **ret_controllers) {
        struct hfd_controllers *controllers = calloc(1, sizeof *controllers);
        unsigned needs = 0;

        if (!controllers)
                return -ENOMEM;
        controllers->host = host;
        controllers->identity = config->identity;
        controllers->stopping = config->stopping;
        controllers->event_ttl = config->event_ttl;
        for (size_t i = 0; i < HFD_N_CONTROLLERS; i++) {
                if (config->runs && !config->runs(config->ctx, rows[i].controller.name))
                        continue;
                struct hf_controller *controller =
                        &controllers->table[controllers->n_controllers++];
                *controller = rows[i].controller;
                controller->ctx = controllers;
                needs |= rows[i].needs;
        }
        int r = hf_cancel_new(NULL, hf_host_clock(host), &controllers->left);
        if (r == 0)
                r = make_caches(controllers, config, needs);
        if (r != 0) {
                hfd_controllers_free(controllers);
                return r;
        }
        *ret_controllers = controllers;
        return 0;
}

int hfd_controllers_start(struct hfd_controllers *controllers) {
        int r = hfd_kinds_start(&controllers->kinds);

        if (r == 0 && controllers->initializers)
                r = hf_informer_start(controllers->initializers);
        if (r == 0 && controllers->identity_leases)
                r = hf_informer_start(controllers->identity_leases);
        return r;
}

void hfd_controllers_leave(struct hfd_controllers *controllers) {
        if (atomic_load(&controllers->keeps_identity) && hf_cancel_fired(controllers->stopping))
                (void)hf_cancel_wait(controllers->left,
                                     hf_now(hf_host_clock(controllers->host)) + LEAVE_PATIENCE);
}

struct hfd_controllers *hfd_controllers_free(struct hfd_controllers *controllers) {
        if (!controllers)
                return NULL;
        hfd_kinds_done(&controllers->kinds);
        hf_informer_free(controllers->initializers);
        hf_informer_free(controllers->identity_leases);
        hf_cancel_unref(controllers->left);
        free(controllers);
        return NULL;
}

const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers,
                                                  size_t *ret_n) {
        *ret_n = controllers->n_controllers;
        return controllers->table;
}

const char *const *hfd_controllers_names(void) {
        static const char *const names[HFD_N_CONTROLLERS + 1] = {
                HFD_NAMESPACE_LIFECYCLE, HFD_GARBAGE_COLLECTOR, HFD_WORKSPACE_INITIALIZER,
                HFD_EVENT_EXPIRY,        HFD_LEASE_COLLECTOR,   HFD_IDENTITY_LEASE,
        };
        return names;
}
