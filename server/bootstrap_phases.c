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
        struct hfd_host *h = ctx;

        hfd_host_wake(h);
        if (h->extra->on_bootstrap)
                h->extra->on_bootstrap(point, info);
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

int hfd_bootstrap_make(struct hfd_host *h, struct hf_status *reterr_status) {
        struct hf_bootstrap_kind kinds[HFD_RESOURCES_MAX];
        char versions[HFD_RESOURCES_MAX][128];
        struct hf_bootstrap_phase phases[2] = {
                {
                        .name = "phase-0",
                        .manifests = hfd_manifests_phase_0,
                        .n_manifests = hfd_manifests_phase_0_n,
                        .directories = h->extra->phase_0_directories,
                },
                {
                        .name = "phase-1",
                        .manifests = hfd_manifests_phase_1,
                        .n_manifests = hfd_manifests_phase_1_n,
                        .directories = (const char *const *)h->config->bootstrap_manifests,
                        .hook_patience = PHASE_1_PATIENCE,
                },
        };
        struct hf_bootstrap_config config = {.size = sizeof config,
                                             .version = h->extra->version ? h->extra->version
                                                                          : HFD_VERSION,
                                             .kinds = kinds,
                                             .n_kinds = fill_kinds(kinds, versions),
                                             .phases = phases,
                                             .n_phases = 2,
                                             .one_revision = true,
                                             .give_way_after = h->config->timing.lease_duration,
                                             .on_progress = on_progress,
                                             .ctx = h};
        struct hf_status why = {0};

        int r = hf_bootstrap_new(&h->host, &config, &h->bootstrap, &why);
        /* The directories are the only thing of these that a user has a hand in. */
        return r ? hf_fail(reterr_status, r, "flag --bootstrap-manifests: %s", why.message) : 0;
}

const char *hfd_bootstrap_last_controller(struct hfd_host *h) {
        size_t n;
        const struct hf_controller *controllers = hf_bootstrap_controllers(h->bootstrap, &n);
        return controllers[n - 1].name;
}

bool hfd_bootstrap_says(struct hfd_host *h, char *text, size_t max_text) {
        struct hf_bootstrap_info info;
        size_t n = hf_bootstrap_n_phases(h->bootstrap);

        for (size_t i = 0; i < n; i++) {
                hf_bootstrap_info(h->bootstrap, i, &info);
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
        hf_bootstrap_info(h->bootstrap, 0, &info);
        if (!atomic_load(&h->ready) && !info.complete)
                (void)snprintf(text, max_text, "waiting for the leader to complete bootstrap %s",
                               info.phase);
        return !atomic_load(&h->ready) && !info.complete;
}
