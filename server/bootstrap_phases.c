/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configures the library's bootstrap (holdfast/bootstrap.h) with the phases of holdfastd.
 *
 * Invariant: readyz waits for phase-0 without limit, because clients cannot use the API without its
 * objects. It waits for phase-1 only a few seconds, because phase-1 contains users' manifests: an
 * object that cannot be applied must not keep an instance from being ready. A manifest that cannot
 * be parsed already prevents the start.
 *
 * The built-in manifests of a phase need none of the others of that phase, so their order does not
 * matter (any_order). Those of directories are applied one after another, sorted by the names of
 * their files (hf_bootstrap_phase.directories).
 */
#include "server/bootstrap_phases.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/auth/trusted_path.h"
#include "server/handlers/version_handler.h"
#include "server/manifests/manifests.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/server.h"

/* How long the start of an instance waits for phase-1. After that the leader continues with the
 * phase, and the start is complete without it. */
#define PHASE_1_PATIENCE (5 * HF_NSEC_PER_SEC)

#define API_VERSION_MAX 128

/* Wakes main, because the status line may have changed, and calls the observer. Thread: as for
 * hf_bootstrap_config.on_progress. */
static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        struct hfd_server *server = ctx;

        hfd_server_wake(server);
        if (server->extra->on_bootstrap)
                server->extra->on_bootstrap(point, info);
}

/* Every built-in kind that the API stores. versions holds the strings that kinds points to. */
static size_t fill_kinds(struct hf_bootstrap_kind *kinds, char (*versions)[API_VERSION_MAX]) {
        size_t n_kinds = 0;

        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);

                if (row->is_review)
                        continue;
                hfd_resource_api_version(row, versions[i]);
                kinds[n_kinds++] = (struct hf_bootstrap_kind){.api_version = versions[i],
                                                              .kind = row->kind,
                                                              .plural = row->plural,
                                                              .namespaced = row->namespaced};
        }
        return n_kinds;
}

static bool is_manifest(const char *name) {
        const char *ending = strrchr(name, '.');

        return ending && (strcmp(ending, ".yaml") == 0 || strcmp(ending, ".yml") == 0 ||
                          strcmp(ending, ".json") == 0);
}

/* Checks the entries of an open directory. Only HF_E_INVALID matters here: the library reports what
 * cannot be read. */
static int check_entries(DIR *entries, const char *directory, struct hf_status *reterr_status) {
        char path[PATH_MAX];
        int r = 0;

        for (struct dirent *entry; r != HF_E_INVALID && (entry = readdir(entries)) != NULL;) {
                int fd = -1, n = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
                if (!is_manifest(entry->d_name) || n < 0 || (size_t)n >= sizeof path)
                        continue;
                r = hfd_trusted_open(path, HFD_TRUSTED_FILE, &fd, reterr_status);
                if (r == 0)
                        (void)close(fd);
        }
        return r == HF_E_INVALID ? r : 0;
}

/* The leader applies manifests with all rights, so only root and the user of this process may be
 * able to replace one. */
static int check_directory(const char *directory, struct hf_status *reterr_status) {
        int fd = -1;
        int r = hfd_trusted_open(directory, HFD_TRUSTED_DIRECTORY, &fd, reterr_status);

        if (r != 0)
                return r == HF_E_INVALID ? r : 0;
        DIR *entries = opendir(directory);
        if (entries) {
                r = check_entries(entries, directory, reterr_status);
                (void)closedir(entries);
        }
        (void)close(fd);
        return r;
}

int hfd_bootstrap_phases_make(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_extra *extra = server->extra;
        bool workloads = server->config->serves_workloads;
        struct hf_bootstrap_kind kinds[HFD_RESOURCES_MAX];
        char versions[HFD_RESOURCES_MAX][API_VERSION_MAX];
        struct hf_bootstrap_phase phases[] = {
                {
                        .size = sizeof(struct hf_bootstrap_phase),
                        .name = "phase-0",
                        .manifests = hfd_manifests_phase_0,
                        .n_manifests = hfd_manifests_phase_0_n,
                        .directories = extra->phase_0_directories,
                        .n_directories = extra->n_phase_0_directories,
                        .any_order = true,
                },
                {
                        .size = sizeof(struct hf_bootstrap_phase),
                        .name = "phase-1",
                        .manifests =
                                workloads ? hfd_manifests_phase_1_workloads : hfd_manifests_phase_1,
                        .n_manifests = workloads ? hfd_manifests_phase_1_workloads_n
                                                 : hfd_manifests_phase_1_n,
                        .directories = (const char *const *)server->config->bootstrap_manifests,
                        .n_directories = server->config->n_bootstrap_manifests,
                        .hook_patience = PHASE_1_PATIENCE,
                        .any_order = true,
                },
        };
        struct hf_bootstrap_config config = {.size = sizeof config,
                                             .version =
                                                     extra->version ? extra->version : HFD_VERSION,
                                             .kinds = kinds,
                                             .n_kinds = fill_kinds(kinds, versions),
                                             .phases = phases,
                                             .n_phases = sizeof phases / sizeof phases[0],
                                             .one_revision = true,
                                             .give_way_after =
                                                     server->config->timing.lease_duration,
                                             .on_progress = on_progress,
                                             .ctx = server};
        struct hf_status why = {0};
        int r = 0;

        assert(!server->bootstrap);
        for (size_t i = 0; i < server->config->n_bootstrap_manifests && r == 0; i++)
                r = check_directory(server->config->bootstrap_manifests[i], &why);
        if (r == 0)
                r = hf_bootstrap_new(&server->host, &config, &server->bootstrap, &why);
        if (r == -ENOMEM)
                return hf_fail(reterr_status, r, "cannot read the manifests: %s", hf_strerror(r));
        /* Tests parse the built-in manifests, so the mistake must be in the user's directories (or
         * in those of a test program, extra.h). */
        if (r != 0)
                return hf_fail(reterr_status, r, "flag --bootstrap-manifests: %s", why.message);
        return 0;
}

const char *hfd_bootstrap_phases_last_controller(struct hfd_server *server) {
        size_t n = hf_bootstrap_n_phases(server->bootstrap);
        struct hf_controller last = {.size = sizeof last};

        assert(n > 0);
        int r = hf_bootstrap_controller(server->bootstrap, n - 1, &last);
        assert(r == 0); /* the size is ours */
        (void)r;
        return last.name; /* the bootstrap's */
}
