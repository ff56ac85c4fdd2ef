/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the controllers of a server and the elector that runs them.
 *
 * Invariant: the elector gets all controllers as one set: those of the bootstrap, of holdfastd and
 * of struct hfd_extra. A leader-only controller of the last two starts after the bootstrap's,
 * unless it names another one to start after. So it finds what the manifests create.
 */
#include "server/main/election.h"
#include "leader/elector.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "server/admission/policy/types/type_check.h"
#include "server/auth/files.h"
#include "server/bootstrap_phases.h"
#include "server/certificates/cluster_ca.h"
#include "server/certificates/secret_tokens.h"
#include "server/controllers/kinds/kinds.h"
#include "server/leadership.h"
#include "server/manifests/manifests.h"
#include "server/process/flag_files.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/group_priority.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/flow/flow_objects.h"
#include "server/server.h"

/* The largest number of controllers: of the bootstrap, of holdfastd and of struct hfd_extra. */
#define CONTROLLERS_MAX (HF_BOOTSTRAP_PHASES_MAX + HFD_N_CONTROLLERS + HFD_EXTRA_CONTROLLERS_MAX)

static bool is_selected(void *ctx, const char *name) {
        const struct hfd_server *server = ctx;

        return hfd_config_runs_controller(server->config, name);
}

/* The manifests of phase-0. Most are roles and bindings; the role controller skips the others. */
static const char *get_default_role(size_t i, size_t *ret_n) {
        *ret_n = i < hfd_manifests_phase_0_n ? hfd_manifests_phase_0[i].n : 0;
        return i < hfd_manifests_phase_0_n ? hfd_manifests_phase_0[i].text : NULL;
}

/* The roles and bindings that only other programs (kubelet, scheduler ...) use. */
static const char *get_other_role(size_t i, size_t *ret_n) {
        *ret_n = i < hfd_manifests_roles_n ? hfd_manifests_roles[i].n : 0;
        return i < hfd_manifests_roles_n ? hfd_manifests_roles[i].text : NULL;
}

static struct hfd_flow_default get_flow_default(size_t i) {
        size_t n;
        const struct hfd_flow_object *objects = hfd_flow_objects(&n);

        assert(i < n);
        const struct hfd_flow_object *object = &objects[i];
        bool is_level = strcmp(object->kind, HFD_FLOW_LEVEL_KIND) == 0;
        return (struct hfd_flow_default){.plural = is_level ? HFD_FLOW_LEVELS_PLURAL
                                                            : HFD_FLOW_SCHEMAS_PLURAL,
                                         .name = object->name,
                                         .mandatory = object->mandatory};
}

static struct hf__json *make_flow_default(size_t i) {
        size_t n;

        return hfd_flow_object_make(&hfd_flow_objects(&n)[i]);
}

static struct hfd_flow_defaults list_flow_defaults(void) {
        struct hfd_flow_defaults defaults = {.get = get_flow_default, .make = make_flow_default};

        (void)hfd_flow_objects(&defaults.n);
        return defaults;
}

/* The built-in group versions that have an APIService: all but that of the APIServices, as in
 * Kubernetes. */
static size_t list_api_versions(struct hfd_api_version versions[HFD_KINDS_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                const struct hfd_group_priority priority = hfd_group_priority(row);

                if (!hfd_resource_starts_version(row) ||
                    strcmp(row->group, "apiregistration.k8s.io") == 0)
                        continue;
                assert(n < HFD_KINDS_MAX);
                versions[n++] = (struct hfd_api_version){.group = row->group,
                                                         .version = row->version,
                                                         .group_priority = priority.group,
                                                         .version_priority = priority.version};
        }
        return n;
}

/* The type check for the controller of policies. ctx is the table of custom resources. */
static int check_policy(void *ctx, const struct hf__json *policy, struct hf__json **ret_checking) {
        return hfd_policy_type_check(policy, ctx, ret_checking);
}

/* Whether the API has this kind. This includes versions in which objects are only stored, because
 * requests of the server itself reach them. */
static bool serves_kind(void *ctx, const struct hf_resource *resource) {
        const struct hfd_resource *row =
                hfd_custom_table_find_stored(ctx, resource->group, resource->version,
                                             resource->plural);

        bool serves = row != NULL;
        hfd_resource_unref(row);
        return serves;
}

/* The controllers get a copy of the resource table in a type of their own, because they are clients
 * of the API and must not depend on the server's types. */
static int make_controllers(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_kind_row rows[HFD_KINDS_MAX];
        struct hfd_api_version versions[HFD_KINDS_MAX];
        struct hfd_controllers_config config = {.client = server->loopback,
                                                .metadata_client = server->metadata_loopback,
                                                .identity = &server->identity,
                                                .peers = server->peers,
                                                .stopping = server->stop,
                                                .rows = rows,
                                                .default_role = get_default_role,
                                                .other_role = get_other_role,
                                                .api_versions = versions,
                                                .n_api_versions = list_api_versions(versions),
                                                .flow_defaults = list_flow_defaults(),
                                                .ca = hfd_cluster_ca_functions(server->cluster_ca),
                                                .tokens = hfd_secret_token_functions(
                                                        server->service_accounts),
                                                .policy_checks = {check_policy,
                                                                  server->custom_table},
                                                .serving = {serves_kind, server->custom_table},
                                                .event_ttl = server->config->event_ttl,
                                                .runs = is_selected,
                                                .ctx = server};

        assert(hfd_resources_count() <= HFD_KINDS_MAX);
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *resource = hfd_resource_at(i);

                /* A row with a conversion shows the objects of another row. */
                if (resource->is_review || resource->conversion)
                        continue;
                rows[config.n_rows++] =
                        (struct hfd_kind_row){.resource = {.group = resource->group,
                                                           .version = resource->version,
                                                           .plural = resource->plural},
                                              .kind = resource->kind,
                                              .namespaced = resource->namespaced};
        }
        int r = hfd_controllers_new(&server->host, &config, &server->controllers);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the controllers: %s",
                               hf_strerror(r));
        return 0;
}

/* Appends n_more controllers to the n that are in `all`. Returns the new number. */
static size_t append_controllers(struct hf_controller *all, size_t n,
                                 const struct hf_controller *more, size_t n_more) {
        assert(n + n_more <= CONTROLLERS_MAX);
        if (n_more > 0)
                memcpy(all + n, more, n_more * sizeof *more);
        return n + n_more;
}

/* A leader-only controller starts after the bootstrap, unless it names another one to start after.
 */
static void start_after_bootstrap(struct hf_controller *controllers, size_t n,
                                  const char *const *after_bootstrap) {
        for (size_t i = 0; i < n; i++)
                if (controllers[i].runs == HF_LEADER_ONLY && controllers[i].n_after == 0) {
                        controllers[i].after = after_bootstrap;
                        controllers[i].n_after = 1;
                }
}

/*
 * Collects all controllers in the order in which a term wakes their threads. Those of struct
 * hfd_extra come first: the bootstrap and the built-in ones mostly find nothing to do in a new
 * term. after_bootstrap must live until the elector has copied it.
 */
static size_t collect_controllers(struct hfd_server *server, struct hf_controller *all,
                                  const char *const *after_bootstrap) {
        const struct hfd_extra *extra = server->extra;
        size_t n_built_in, n = append_controllers(all, 0, extra->controllers, extra->n_controllers);
        const struct hf_controller *built_in =
                hfd_controllers_table(server->controllers, &n_built_in);

        start_after_bootstrap(all, n, after_bootstrap);
        for (size_t i = 0; i < hf_bootstrap_n_phases(server->bootstrap); i++, n++) {
                assert(n < CONTROLLERS_MAX);
                all[n].size = sizeof all[n];
                int r = hf_bootstrap_controller(server->bootstrap, i, &all[n]);
                assert(r == 0); /* only a wrong size would be an error */
                (void)r;
        }
        append_controllers(all, n, built_in, n_built_in);
        start_after_bootstrap(all + n, n_built_in, after_bootstrap);
        return n + n_built_in;
}

/* With --leader-elect=false the elector exists too, because the status line and the health checks
 * read it, but no hook starts it. hfd_config_check does not check the flags of the election then,
 * so they must not be used. */
static int make_elector(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const char *const after_bootstrap[] = {hfd_bootstrap_phases_last_controller(server)};
        struct hf_controller controllers[CONTROLLERS_MAX];
        struct hf_elector_config elector = {.size = sizeof elector,
                                            .ns = HFD_SYSTEM_NAMESPACE,
                                            .name = "none",
                                            .identity = server->identity.identity,
                                            .client = server->loopback,
                                            .controllers = controllers,
                                            .n_controllers =
                                                    collect_controllers(server, controllers,
                                                                        after_bootstrap),
                                            .events = true,
                                            .on_change = hfd_leadership_changed,
                                            .ctx = server};

        if (config->leader_elect) {
                elector.ns = config->lease_ns;
                elector.name = config->lease_name;
                elector.lock_type = config->lock_type;
                elector.timing = config->timing;
                if (config->migrate_from[0])
                        elector.migrate_from = config->migrate_from;
                if (config->migrate_from_ns[0])
                        elector.migrate_from_ns = config->migrate_from_ns;
        }
        return hf_electors_add(server->electors, &elector, &server->elector, reterr_status);
}

int hfd_election_lock(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        char path[PATH_MAX];

        if (!config->leader_elect || !config->leader_lock_dir[0])
                return 0;
        int n = snprintf(path, sizeof path, "%s/%s.holder", config->leader_lock_dir,
                         config->instance);
        if (n < 0 || (size_t)n >= sizeof path)
                return hf_fail(reterr_status, -ENAMETOOLONG,
                               "flag --leader-elect-lock-dir: the path is too long");
        int r = hfd_make_dir(config->leader_lock_dir, reterr_status);
        if (r == 0)
                r = hf_electors_use_lock_file(server->electors, path, reterr_status);
        return hfd_flag_result("leader-elect-lock-dir", r, reterr_status);
}

int hfd_election_make(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = make_controllers(server, reterr_status);

        return r == 0 ? make_elector(server, reterr_status) : r;
}
