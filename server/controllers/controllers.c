/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/controllers.h"

#include <errno.h>
#include <stdlib.h>

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};
static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

#define LEAVE_PATIENCE (500 * HF_NSEC_PER_MSEC)

#define WORKSPACE_INITIALIZER "workspace-initializer"
#define LEASE_COLLECTOR       "identity-lease-collector"
#define IDENTITY_LEASE        "identity-lease"

static const struct hf_controller rows[HFD_N_CONTROLLERS] = {
        {.name = WORKSPACE_INITIALIZER, .class = HF_LEADER_ONLY, .run = hfd_run_workspace_initializer},
        {.name = LEASE_COLLECTOR, .class = HF_LEADER_ONLY, .run = hfd_run_lease_collector},
        {.name = IDENTITY_LEASE, .class = HF_EVERY_INSTANCE, .run = hfd_run_identity_lease},
};

int hfd_controllers_new(const struct hf_host *host, struct hf_client *client, const struct hfd_identity *identity,
                        struct hf_cancel *stopping, struct hfd_controllers **ret_controllers) {
        struct hfd_controllers *controllers = calloc(1, sizeof *controllers);

        if (!controllers)
                return -ENOMEM;
        controllers->host = host;
        controllers->client = client;
        controllers->identity = identity;
        controllers->stopping = stopping;
        for (size_t i = 0; i < HFD_N_CONTROLLERS; i++) {
                controllers->table[i] = rows[i];
                controllers->table[i].ctx = controllers;
        }
        struct hf_cache_config workspace_config = {.size = sizeof workspace_config,
                                                   .client = client,
                                                   .resource = workspaces,
                                                   .one_revision = true};
        struct hf_cache_config lease_config = {.size = sizeof lease_config,
                                               .client = client,
                                               .resource = leases,
                                               .ns = HFD_SYSTEM_NAMESPACE,
                                               .one_revision = true,
                                               .query = "labelSelector=apiserver.kubernetes.io%2Fidentity%3D" HFD_IDENTITY_VALUE};
        int r = hf_cancel_new(NULL, hf_host_clock(host), &controllers->left);
        if (r == 0)
                r = hf_cache_new(host, &workspace_config, &controllers->workspaces);
        if (r == 0)
                r = hf_cache_new(host, &lease_config, &controllers->identity_leases);
        if (r) {
                hfd_controllers_free(controllers);
                return r;
        }
        *ret_controllers = controllers;
        return 0;
}

int hfd_controllers_start(struct hfd_controllers *controllers) {
        int r = hf_cache_start(controllers->workspaces);
        return r ? r : hf_cache_start(controllers->identity_leases);
}

void hfd_controllers_leave(struct hfd_controllers *controllers) {
        if (atomic_load(&controllers->keeps_identity) && hf_cancel_fired(controllers->stopping))
                (void)hf_cancel_wait(controllers->left, hf_now(hf_host_clock(controllers->host)) + LEAVE_PATIENCE);
}

struct hfd_controllers *hfd_controllers_free(struct hfd_controllers *controllers) {
        if (!controllers)
                return NULL;
        hf_cache_free(controllers->workspaces);
        hf_cache_free(controllers->identity_leases);
        hf_cancel_unref(controllers->left);
        free(controllers);
        return NULL;
}

const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers, size_t *ret_n) {
        *ret_n = HFD_N_CONTROLLERS;
        return controllers->table;
}

const char *const *hfd_controllers_names(void) {
        static const char *const names[HFD_N_CONTROLLERS + 1] = {WORKSPACE_INITIALIZER, LEASE_COLLECTOR, IDENTITY_LEASE, NULL};
        return names;
}
