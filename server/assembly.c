/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and frees the objects of a server.
 *
 * Invariants. An object is created after the objects that it borrows, and freed before them. The
 * bootstrap is the exception: it gets the elector later, and is freed after it, because the
 * elector's controllers use it. Manifests are checked before anything is written or locked. An
 * unreadable certificate, a port in use or a second process on one data directory is reported as
 * one line, before the first request to the store.
 */
#include "server/assembly.h"
#include "leader/elector.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/health.h>

#include "server/auth/files.h"
#include "server/bootstrap_phases.h"
#include "server/certificates.h"
#include "server/configured_store.h"
#include "server/controllers/kinds.h"
#include "server/debug_leader.h"
#include "server/handlers/rest/rest.h"
#include "server/handlers/version_handler.h"
#include "server/health_checks.h"
#include "server/hooks.h"
#include "server/leadership.h"
#include "server/process/advertise.h"
#include "server/registry/loopback.h"
#include "server/resources/resource.h"
#include "server/server.h"
#include "server/systemd/sdnotify.h"

/* The controllers of the bootstrap, of holdfastd, and of struct hfd_extra. */
#define CONTROLLERS_MAX (HF_BOOTSTRAP_PHASES_MAX + HFD_N_CONTROLLERS + HFD_EXTRA_CONTROLLERS_MAX)

/* ---- the process: identity, locks, certificates ---- */

/* These come first, because the other objects use them. */
static int make_basics(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_metrics_new(&server->host.metrics);

        if (r == 0)
                r = hf_health_new(&server->host.health);
        if (r == 0)
                r = hfd_router_new(&server->router);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        hfd_advertise_address(server->config->advertise_address, server->config->bind_address,
                              server->advertised);
        r = hfd_identity_make(server->config->instance, &server->identity);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot make an identity for this process: %s",
                               hf_strerror(r));
        return 0;
}

static int make_bootstrap(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_bootstrap_phases_make(server, reterr_status);

        /* The user can correct a mistake in the manifests, as on the command line. */
        if (r != 0 && r != -ENOMEM)
                atomic_store(&server->exit_status, 2);
        return r;
}

static int make_data_dir(const char *path, struct hf_status *reterr_status) {
        if (mkdir(path, 0700) == 0 || errno == EEXIST)
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID,
                       "flag --data-dir: cannot create the directory %s: %s", path,
                       strerrordesc_np(errno));
}

/* Locks the data directory and the run file, before any other file is written, because another
 * process may be using the files. */
static int lock_directories(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        int r = make_data_dir(config->data_dir, reterr_status);

        if (r == 0)
                r = hfd_runfile_lock(config->data_dir, "holdfastd", &server->data_lock,
                                     reterr_status);
        if (r == 0)
                r = hfd_runfile_lock(config->runtime_dir, config->instance, &server->runfile,
                                     reterr_status);
        return r;
}

static int make_auth(struct hfd_server *server, struct hf_status *reterr_status) {
        const char *token_file = server->config->token_auth_file;

        return hfd_auth_new(&server->host, token_file[0] ? token_file : NULL, &server->auth,
                            reterr_status);
}

/* ---- the API ---- */

/* The cacher, the registry and their helpers, which execute requests. They send nothing to the
 * store before hfd_boot_run. */
static int make_api(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_cacher_config cacher = {.store = server->store,
                                                 .prefix = server->config->etcd_prefix,
                                                 .on_history_replaced = hfd_leadership_end_term,
                                                 .ctx = server};
        int r = hfd_cacher_new(&server->host, &cacher, &server->cacher);

        if (r == 0)
                r = hfd_registry_new(&server->host, server->cacher, &server->registry);
        if (r == 0)
                r = hfd_loopback_new(server->registry, &server->loopback);
        if (r == 0)
                r = hfd_compactor_new(&server->host, server->store, server->config->etcd_prefix,
                                      &server->compactor);
        if (r == 0)
                r = hfd_health_checks_add(server);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the API: %s", hf_strerror(r));
        return 0;
}

/* Called at the first successful /readyz. Thread: an HTTP worker. */
static void on_first_ready(void *ctx) {
        struct hfd_server *server = ctx;

        hfd_lifecycle_signal(&server->lifecycle, HFD_HAS_BEEN_READY);
}

/* The handlers of all paths. Every request passes the filters first. */
static int make_routes(struct hfd_server *server, struct hf_status *reterr_status) {
        static const char *const api_paths[] = {"/api", "/api/", "/apis", "/apis/", "/openapi/"};
        const struct hfd_config *config = server->config;
        struct hfd_filters_config filters = {.router = server->router,
                                             .auth = server->auth,
                                             .max_inflight = (size_t)config->max_requests_inflight,
                                             .max_mutating_inflight =
                                                     (size_t)config->max_mutating_requests_inflight,
                                             .send_retry_after = config->shutdown_send_retry_after};
        int r = hfd_filters_new(&server->host, &filters, &server->filters);

        if (r == 0)
                r = hfd_healthz_new(&server->host, on_first_ready, server, &server->healthz);
        if (r == 0)
                r = hfd_healthz_install(server->healthz, server->router);
        if (r == 0)
                r = hfd_metrics_handler_new(&server->host, &server->metrics_handler);
        if (r == 0)
                r = hfd_router_add(server->router, "/metrics", hfd_metrics_handle,
                                   server->metrics_handler);
        if (r == 0)
                r = hfd_router_add(server->router, "/version", hfd_version_handle, NULL);
        for (size_t i = 0; r == 0 && i < sizeof api_paths / sizeof api_paths[0]; i++)
                r = hfd_router_add(server->router, api_paths[i], hfd_rest_handle, server->registry);
        if (r == 0)
                r = hfd_router_add(server->router, "/debug/leader", hfd_debug_leader_handle,
                                   server);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the endpoints: %s", hf_strerror(r));
        return 0;
}

/* Sets the URL that clients and other instances connect to. It needs the HTTP server, because with
 * --secure-port=0 the kernel chooses the port. */
static void set_endpoint(struct hfd_server *server) {
        const char *address = server->advertised;
        bool v6 = strchr(address, ':') != NULL;

        (void)snprintf(server->identity.endpoint, sizeof server->identity.endpoint,
                       v6 ? "https://[%s]:%u" : "https://%s:%u", address,
                       hfd_http_port(server->http));
}

/* listen_fd: a socket from the service manager, which the HTTP server owns on success. -1 = there
 * is none, and the HTTP server binds --bind-address. */
static int make_http(struct hfd_server *server, int listen_fd, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        struct hfd_http_config http = {.bind_address = config->bind_address,
                                       .port = (uint16_t)config->secure_port,
                                       .listen_fd = listen_fd,
                                       .cert_pem = server->server_cert_pem,
                                       .key_pem = server->server_key_pem,
                                       .client_ca_pem = server->client_ca_pem,
                                       .handler = hfd_filters_handle,
                                       .on_head = hfd_filters_head,
                                       .ctx = server->filters};
        int r = hfd_http_new(&server->host, &http, &server->http, reterr_status);

        if (r == 0)
                set_endpoint(server);
        return r;
}

/* ---- the controllers and the election ---- */

static bool is_selected(void *ctx, const char *name) {
        const struct hfd_server *server = ctx;

        return hfd_config_runs_controller(server->config, name);
}

/* The controllers get a copy of the resource table in a type of their own, because they are clients
 * of the API and must not depend on the server's types. */
static int make_controllers(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_kind_row rows[HFD_KINDS_MAX];
        size_t n;
        const struct hfd_resource *resources = hfd_resources(&n);
        struct hfd_controllers_config config = {.client = server->loopback,
                                                .identity = &server->identity,
                                                .stopping = server->stop,
                                                .rows = rows,
                                                .n_rows = n,
                                                .event_ttl = server->config->event_ttl,
                                                .runs = is_selected,
                                                .ctx = server};

        assert(n <= HFD_KINDS_MAX);
        for (size_t i = 0; i < n; i++)
                rows[i] = (struct hfd_kind_row){.resource = {.group = resources[i].group,
                                                             .version = resources[i].version,
                                                             .plural = resources[i].plural},
                                                .kind = resources[i].kind,
                                                .namespaced = resources[i].namespaced};
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

/*
 * Collects all controllers. A leader-only controller that names no other one to start after starts
 * after the bootstrap. after_bootstrap must live until the elector has copied it.
 */
static size_t collect_controllers(struct hfd_server *server, struct hf_controller *all,
                                  const char *const *after_bootstrap) {
        const struct hfd_extra *extra = server->extra;
        size_t n_bootstrap, n_built_in;
        const struct hf_controller *bootstrap =
                hf_bootstrap_controllers(server->bootstrap, &n_bootstrap);
        const struct hf_controller *built_in =
                hfd_controllers_table(server->controllers, &n_built_in);
        size_t n = append_controllers(all, 0, bootstrap, n_bootstrap);

        n = append_controllers(all, n, built_in, n_built_in);
        n = append_controllers(all, n, extra->controllers, extra->n_controllers);
        for (size_t i = n_bootstrap; i < n; i++)
                if (all[i].runs == HF_LEADER_ONLY && all[i].n_after == 0) {
                        all[i].after = after_bootstrap;
                        all[i].n_after = 1;
                }
        return n;
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
        int r = hf_electors_add(server->electors, &elector, &server->elector, reterr_status);
        if (r == 0 && server->extra->unsafe_gate_off)
                hf__elector_gate_off(server->elector);
        return r;
}

/* Locks a file of this instance in the directory of --leader-elect-lock-dir. */
static int lock_as_contender(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        char path[PATH_MAX];

        if (!config->leader_elect || !config->leader_lock_dir[0])
                return 0;
        int r = hfd_make_dir(config->leader_lock_dir, reterr_status);
        if (r != 0)
                return r;
        int n = snprintf(path, sizeof path, "%s/%s.holder", config->leader_lock_dir,
                         config->instance);
        if (n < 0 || (size_t)n >= sizeof path)
                return hf_fail(reterr_status, -ENAMETOOLONG,
                               "flag --leader-elect-lock-dir: the path is too long");
        return hf_electors_use_lock_file(server->electors, path, reterr_status);
}

static int make_election(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_electors_new(&server->host, &server->electors);

        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the election: %s", hf_strerror(r));
        r = lock_as_contender(server, reterr_status);
        if (r != 0)
                return r;
        r = make_controllers(server, reterr_status);
        if (r == 0)
                r = make_elector(server, reterr_status);
        if (r == 0)
                hf_bootstrap_set_elector(server->bootstrap, server->elector);
        return r;
}

/* The hooks are created last, because they start and stop the other objects. */
static int make_hooks(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_hooks_new(&server->host, server->loopback, &server->hooks);

        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the hooks: %s", hf_strerror(r));
        return hfd_server_hooks_add(server, reterr_status);
}

/* ---- all objects ---- */

static int make_objects(struct hfd_server *server, int *listen_fd,
                        struct hf_status *reterr_status) {
        int r = make_basics(server, reterr_status);

        if (r == 0)
                r = make_bootstrap(server, reterr_status);
        if (r == 0)
                r = lock_directories(server, reterr_status);
        if (r == 0)
                r = hfd_certificates_read(server, reterr_status);
        /* This changes the environment, so it must happen before the store, which starts the first
         * thread. */
        if (r == 0)
                r = hfd_notify_listen_fd(listen_fd, reterr_status);
        if (r == 0)
                r = hfd_configured_store_new(&server->host, server->config, &server->store,
                                             reterr_status);
        if (r == 0)
                r = make_auth(server, reterr_status);
        if (r == 0)
                r = make_api(server, reterr_status);
        if (r == 0)
                r = make_routes(server, reterr_status);
        if (r == 0)
                r = make_http(server, *listen_fd, reterr_status);
        if (r == 0)
                *listen_fd = -1; /* the HTTP server owns it now */
        if (r == 0)
                r = make_election(server, reterr_status);
        if (r == 0)
                r = make_hooks(server, reterr_status);
        return r;
}

int hfd_assembly_make(struct hfd_server *server, struct hf_status *reterr_status) {
        int listen_fd = -1;

        assert(server->stop && !server->host.metrics);
        int r = make_objects(server, &listen_fd, reterr_status);
        if (listen_fd >= 0)
                (void)close(listen_fd);
        return r;
}

void hfd_assembly_free(struct hfd_server *server) {
        /* Ends requests that wait for a store which does not respond. Otherwise the objects that
         * wait for these requests could not be freed. */
        if (server->store)
                server->store->ops->stop(server->store);
        server->hooks = hf_hooks_free(server->hooks);
        server->electors = hf_electors_free(server->electors);
        server->elector = NULL;
        server->bootstrap = hf_bootstrap_free(server->bootstrap);
        server->controllers = hfd_controllers_free(server->controllers);
        server->http = hfd_http_free(server->http);
        server->loopback = hf_client_free(server->loopback);
        server->compactor = hfd_compactor_free(server->compactor);
        server->registry = hfd_registry_free(server->registry);
        server->cacher = hfd_cacher_free(server->cacher);
        if (server->store)
                server->store->ops->free(server->store);
        server->store = NULL;
        server->filters = hfd_filters_free(server->filters);
        server->healthz = hfd_healthz_free(server->healthz);
        server->metrics_handler = hfd_metrics_handler_free(server->metrics_handler);
        server->router = hfd_router_free(server->router);
        server->auth = hfd_auth_free(server->auth);
        hfd_certificates_done(server);
        /* Only after everything that uses files: another process of this instance may start as soon
         * as the locks are free. */
        server->runfile = hfd_runfile_free(server->runfile);
        server->data_lock = hfd_runfile_free(server->data_lock);
        server->host.health = hf_health_free(server->host.health);
        server->host.metrics = hf_metrics_free(server->host.metrics);
}
