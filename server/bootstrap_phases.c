/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holdfastd bootstraps: its built-in manifests in two phases, and the directories of
 * --bootstrap-manifests as the rest of phase 1. What manifests may be of is what the API serves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/manifests/manifests.h"
#include "server/resources/resource.h"
#include "server/server.h"

/* Serving is not kept waiting for long by what users meet first: it is the leader's to go on with
 * it. */
#define PHASE_1_PATIENCE (5 * HF_NSEC_PER_SEC)

static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        struct hfd_server *server = ctx;

        hfd_server_wake(server);
        if (server->extra->on_bootstrap)
                server->extra->on_bootstrap(point, info);
}

static size_t fill_kinds(struct hf_bootstrap_kind *kinds, char (*versions)[128]) {
        size_t n;
        const struct hfd_resource *rows = hfd_resources(&n);

        for (size_t i = 0; i < n; i++) {
                hfd_resource_api_version(&rows[i], versions[i]);
                kinds[i] = (struct hf_bootstrap_kind){versions[i], rows[i].kind, rows[i].plural,
                                                      rows[i].namespaced};
        }
        return n;
}

int hfd_bootstrap_phases_make(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hf_bootstrap_kind kinds[HFD_RESOURCES_MAX];
        char versions[HFD_RESOURCES_MAX][128];
        struct hf_bootstrap_phase phases[2] = {
                {
                        .name = "phase-0",
                        .manifests = hfd_manifests_phase_0,
                        .n_manifests = hfd_manifests_phase_0_n,
                        .directories = server->extra->phase_0_directories,
                },
                {
                        .name = "phase-1",
                        .manifests = hfd_manifests_phase_1,
                        .n_manifests = hfd_manifests_phase_1_n,
                        .directories = (const char *const *)server->config->bootstrap_manifests,
                        .hook_patience = PHASE_1_PATIENCE,
                },
        };
        struct hf_bootstrap_config config = {.size = sizeof config,
                                             .version = server->extra->version
                                                                ? server->extra->version
                                                                : HFD_VERSION,
                                             .kinds = kinds,
                                             .n_kinds = fill_kinds(kinds, versions),
                                             .phases = phases,
                                             .n_phases = 2,
                                             .one_revision = true,
                                             .give_way_after =
                                                     server->config->timing.lease_duration,
                                             .on_progress = on_progress,
                                             .ctx = server};
        struct hf_status why = {0};

        int r = hf_bootstrap_new(&server->host, &config, &server->bootstrap, &why);
        /* The directories are the only thing of these that a user has a hand in. */
        return r != 0 ? hf_fail(reterr_status, r, "flag --bootstrap-manifests: %s", why.message)
                      : 0;
}

const char *hfd_bootstrap_phases_last_controller(struct hfd_server *server) {
        size_t n;
        const struct hf_controller *controllers = hf_bootstrap_controllers(server->bootstrap, &n);
        return controllers[n - 1].name;
}

bool hfd_bootstrap_phases_status(struct hfd_server *server, char *text, size_t max_text) {
        struct hf_bootstrap_info info;
        size_t n = hf_bootstrap_n_phases(server->bootstrap);

        for (size_t i = 0; i < n; i++) {
                hf_bootstrap_info(server->bootstrap, i, &info);
                if (info.failing)
                        (void)snprintf(text, max_text, "bootstrap %s fails, try %u: %s", info.phase,
                                       info.n_failures, info.message);
                else if (info.running && !info.complete)
                        (void)snprintf(text, max_text, "bootstrap %s, %zu of %zu steps", info.phase,
                                       info.n_settled, info.n_steps);
                else
                        continue;
                return true;
        }
        hf_bootstrap_info(server->bootstrap, 0, &info);
        if (!atomic_load(&server->ready) && !info.complete)
                (void)snprintf(text, max_text, "waiting for the leader to complete bootstrap %s",
                               info.phase);
        return !atomic_load(&server->ready) && !info.complete;
}
