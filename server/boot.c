/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start: make all objects (nothing waits), then serve, wait for the store, run the hooks.
 *
 * A user's mistake (a certificate that cannot be read, a taken port, a second start on one data
 * directory) shows while making, before anything is written anywhere but under the data directory;
 * each is one line that names the thing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/auth/admin_kubeconfig.h"
#include "server/auth/files.h"
#include "server/controllers/kinds.h"
#include "server/handlers/rest.h"
#include "server/handlers/version_handler.h"
#include "server/registry/loopback.h"
#include "server/resources/resource.h"
#include "server/systemd/sdnotify.h"
#include "server/server.h"
#include "server/storage/etcd/store.h"

#define STORE_PATIENCE (60 * HF_NSEC_PER_SEC) /* how long etcd may be away at start */
#define STORE_LOOK     (2 * HF_NSEC_PER_SEC)  /* how often the log may say why it is waited for */

static int make_directory(const char *path, const char *flag, struct hf_status *reterr_status) {
        if (mkdir(path, 0700) == 0 || errno == EEXIST)
                return 0;
        return hf_fail(reterr_status, HF_E_INVALID, "flag %s: cannot make directory %s: %s", flag,
                       path, strerrordesc_np(errno));
}

static int read_optional(const char *path, char **ret_text, struct hf_status *reterr_status) {
        *ret_text = NULL;
        return path && *path ? hfd_read_file(path, ret_text, reterr_status) : 0;
}

static int make_store(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        char *ca = NULL, *cert = NULL, *key = NULL;
        int r = read_optional(config->etcd_ca_file, &ca, reterr_status);

        if (r == 0)
                r = read_optional(config->etcd_cert_file, &cert, reterr_status);
        if (r == 0)
                r = read_optional(config->etcd_key_file, &key, reterr_status);
        if (r == 0) {
                struct hfd_etcd_config etcd = {.endpoints =
                                                       (const char *const *)config->etcd_servers,
                                               .ca_pem = ca,
                                               .cert_pem = cert,
                                               .key_pem = key};
                r = hfd_etcd_store_new(&server->host, &etcd, &server->store, reterr_status);
        }
        free(ca);
        free(cert);
        free(key);
        return r;
}

/*
 * Certificates: the given ones, else self-made ones under --cert-dir. Replaces all or nothing.
 * Waits for the lock of that directory, up to 30 s or until the stop. Called by main before it
 * serves, later by the reload thread.
 */
int hfd_read_certificates(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const char *const names[] = {config->bind_address, server->identity.host, NULL};
        char *cert = NULL, *key = NULL, *client_ca = NULL;
        struct hfd_pki pki = {0};

        int r = hfd_pki_load_or_make(config->cert_dir, names, server->stop, &pki, reterr_status);
        if (r == 0 && *config->tls_cert_file)
                r = hfd_read_file(config->tls_cert_file, &cert, reterr_status);
        if (r == 0 && *config->tls_key_file)
                r = hfd_read_file(config->tls_key_file, &key, reterr_status);
        if (r == 0 && *config->client_ca_file)
                r = hfd_read_file(config->client_ca_file, &client_ca, reterr_status);
        if (r == 0 && ((!cert && !(cert = strdup(pki.server_cert_pem))) ||
                       (!key && !(key = strdup(pki.server_key_pem))) ||
                       (!client_ca && !(client_ca = strdup(pki.ca_pem)))))
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (r != 0) {
                free(cert);
                free(key);
                free(client_ca);
                hfd_pki_done(&pki);
                return r;
        }
        free(server->server_cert_pem);
        free(server->server_key_pem);
        free(server->client_ca_pem);
        server->server_cert_pem = cert;
        server->server_key_pem = key;
        server->client_ca_pem = client_ca;
        hfd_pki_done(&server->pki);
        server->pki = pki;
        return 0;
}

static void on_ready(void *ctx) {
        struct hfd_server *server = ctx;
        hfd_lifecycle_signal(&server->lifecycle, HFD_HAS_BEEN_READY);
}

static bool shutdown_check(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        bool stopping = hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED);

        if (stopping)
                (void)snprintf(reason, max_reason, "process is shutting down");
        return !stopping;
}

#define STORE_STALE                                                                                \
        (10 * HF_NSEC_PER_SEC) /* without an answer for so long, etcd counts as away               \
                                */

static bool store_check(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        hf_nsec heard = hfd_cacher_store_heard_at(server->cacher),
                age = hf_now(hf_host_clock(&server->host)) - heard;
        bool fresh = heard != 0 && age < STORE_STALE;

        if (!fresh)
                (void)snprintf(reason, max_reason, "etcd has not answered for %lld s",
                               (long long)(age / HF_NSEC_PER_SEC));
        return fresh;
}

static bool always_healthy(void *ctx, char *reason, size_t max_reason) {
        (void)ctx;
        (void)reason;
        (void)max_reason;
        return true;
}

static int add_health_checks(struct hfd_server *server) {
        struct hf_health *health = server->host.health;
        int r = hf_health_add(health, "ping", HF_HEALTHZ | HF_LIVEZ | HF_READYZ, always_healthy,
                              server);

        /* Not under livez: a server must not be killed because etcd is away. */
        if (r == 0)
                r = hf_health_add(health, "etcd", HF_HEALTHZ | HF_READYZ, store_check, server);
        if (r == 0)
                r = hf_health_add(health, "shutdown", HF_READYZ, shutdown_check, server);
        return r;
}

static int make_http(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        struct hfd_filters_config filters = {.router = server->router,
                                             .auth = server->auth,
                                             .max_inflight = (size_t)config->max_requests_inflight,
                                             .max_mutating_inflight =
                                                     (size_t)config->max_mutating_requests_inflight,
                                             .send_retry_after = config->shutdown_send_retry_after};
        int r = hfd_filters_new(&server->host, &filters, &server->filters);

        if (r == 0)
                r = hfd_healthz_new(&server->host, on_ready, server, &server->healthz);
        if (r == 0)
                r = hfd_healthz_install(server->healthz, server->router);
        if (r == 0)
                r = hfd_metrics_handler_new(&server->host, &server->metrics_handler);
        if (r == 0)
                r = hfd_router_add(server->router, "/metrics", hfd_metrics_handle,
                                   server->metrics_handler);
        if (r == 0)
                r = hfd_router_add(server->router, "/version", hfd_version_handle, NULL);
        static const char *const api_paths[] = {"/api", "/api/", "/apis", "/apis/", "/openapi/"};
        for (size_t i = 0; r == 0 && i < sizeof api_paths / sizeof *api_paths; i++)
                r = hfd_router_add(server->router, api_paths[i], hfd_rest_handle, server->registry);
        if (r == 0)
                r = hfd_router_add(server->router, "/debug/leader", hfd_debug_leader, server);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the endpoints: %s", hf_strerror(r));
        int listen_fd;
        r = hfd_notify_listen_fd(&listen_fd, reterr_status);
        if (r != 0)
                return r;
        struct hfd_http_config http = {.bind_address = config->bind_address,
                                       .port = (uint16_t)config->secure_port,
                                       .listen_fd = listen_fd,
                                       .cert_pem = server->server_cert_pem,
                                       .key_pem = server->server_key_pem,
                                       .client_ca_pem = server->client_ca_pem,
                                       .handler = hfd_filters_handle,
                                       .on_head = hfd_filters_head,
                                       .ctx = server->filters};
        r = hfd_http_new(&server->host, &http, &server->http, reterr_status);
        if (r != 0)
                return r;
        bool v6 = strchr(config->bind_address, ':') != NULL;
        (void)snprintf(server->identity.endpoint, sizeof server->identity.endpoint,
                       "https://%s%s%s:%u", v6 ? "[" : "", config->bind_address, v6 ? "]" : "",
                       hfd_http_port(server->http));
        return 0;
}

static bool runs_controller(void *config, const char *name) {
        return hfd_config_runs_controller(config, name);
}

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
                                                .runs = runs_controller,
                                                .ctx = (void *)server->config};
        int r = n <= HFD_KINDS_MAX ? 0 : HF_E_TOO_LARGE;

        for (size_t i = 0; r == 0 && i < n; i++)
                rows[i] =
                        (struct hfd_kind_row){.resource = {resources[i].group, resources[i].version,
                                                           resources[i].plural},
                                              .kind = resources[i].kind,
                                              .namespaced = resources[i].namespaced};
        if (r == 0)
                r = hfd_controllers_new(&server->host, &config, &server->controllers);
        return r != 0 ? hf_fail(reterr_status, r, "cannot set up the controllers: %s",
                                hf_strerror(r))
                      : 0;
}

static int make_electors(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const struct hf_controller *own;
        struct hf_controller all[HFD_N_CONTROLLERS + 16];
        size_t n = 0, n_own, n_bootstrap;
        const char *const after_bootstrap[] = {hfd_bootstrap_phases_last_controller(server), NULL};
        bool elects = config->leader_elect;

        int r = hf_electors_new(&server->host, &server->electors);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the electors: %s", hf_strerror(r));
        r = make_controllers(server, reterr_status);
        if (r != 0)
                return r;
        own = hf_bootstrap_controllers(server->bootstrap, &n_bootstrap);
        for (; n < n_bootstrap; n++)
                all[n] = own[n];
        own = hfd_controllers_table(server->controllers, &n_own);
        for (size_t i = 0; i < n_own; i++)
                all[n++] = own[i];
        for (size_t i = 0; i < server->extra->n_controllers && n < sizeof all / sizeof *all; i++)
                all[n++] = server->extra->controllers[i];
        /* Who comes after another one of these comes after the bootstrap by that. */
        for (size_t i = n_bootstrap; i < n; i++)
                if (all[i].class == HF_LEADER_ONLY && !all[i].after)
                        all[i].after = after_bootstrap;
        struct hf_elector_config elector =
                {.size = sizeof elector,
                 /* One that does not contend has checked none of these. */
                 .ns = elects ? config->lease_ns : HFD_SYSTEM_NAMESPACE,
                 .name = elects ? config->lease_name : "none",
                 .lock_type = elects ? config->lock_type : NULL,
                 .migrate_from = elects && config->migrate_from[0] ? config->migrate_from : NULL,
                 .migrate_from_ns =
                         elects && config->migrate_from_ns[0] ? config->migrate_from_ns : NULL,
                 .identity = server->identity.identity,
                 .client = server->loopback,
                 .timing = elects ? config->timing : (struct hf_leader_timing){0},
                 .controllers = all,
                 .n_controllers = n,
                 .events = true,
                 .unsafe_gate_off = server->extra->unsafe_gate_off,
                 .on_change = hfd_server_leader_changed,
                 .ctx = server};
        r = hf_electors_add(server->electors, &elector, &server->elector, reterr_status);
        if (r == 0)
                hf_bootstrap_set_elector(server->bootstrap, server->elector);
        return r;
}

static int make_core(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_metrics_new(&server->host.metrics);

        if (r == 0)
                r = hf_health_new(&server->host.health);
        if (r == 0)
                r = hfd_router_new(&server->router);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        r = hfd_identity_make(server->config->instance, &server->identity);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot make an identity: %s", hf_strerror(r));
        return 0;
}

static void end_term(void *ctx) {
        struct hfd_server *server = ctx;
        if (server->elector) /* made after the API, which is quiet until boot */
                hf_elector_end_term(server->elector);
}

int hfd_server_make(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = make_core(server, reterr_status);

        /* Before anything is written or locked: a mistake in a manifest is one in the command line.
         */
        if (r == 0 && (r = hfd_bootstrap_phases_make(server, reterr_status)) != 0)
                atomic_store(&server->exit_status, r == -ENOMEM ? 1 : 2);
        if (r == 0)
                r = make_directory(server->config->data_dir, "--data-dir", reterr_status);
        if (r == 0)
                r = hfd_runfile_take(server->config->data_dir, "holdfastd", &server->data_lock,
                                     reterr_status);
        if (r == 0)
                r = hfd_runfile_take(server->config->runtime_dir, server->config->instance,
                                     &server->runfile, reterr_status);
        if (r == 0)
                r = hfd_read_certificates(server, reterr_status);
        if (r == 0)
                r = make_store(server, reterr_status);
        if (r == 0)
                r = hfd_auth_new(&server->host,
                                 *server->config->token_auth_file ? server->config->token_auth_file
                                                                  : NULL,
                                 &server->auth, reterr_status);
        if (r != 0)
                return r;
        const struct hfd_cacher_config cacher = {.store = server->store,
                                                 .prefix = server->config->etcd_prefix,
                                                 .on_history_replaced = end_term,
                                                 .ctx = server};
        r = hfd_cacher_new(&server->host, &cacher, &server->cacher);
        if (r == 0)
                r = hfd_registry_new(&server->host, server->cacher, &server->registry);
        if (r == 0)
                r = hfd_loopback_new(server->registry, &server->loopback);
        if (r == 0)
                r = hfd_compactor_new(&server->host, server->store, server->config->etcd_prefix,
                                      &server->compactor);
        if (r == 0)
                r = add_health_checks(server);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the API: %s", hf_strerror(r));
        r = make_http(server, reterr_status);
        if (r == 0)
                r = make_electors(server, reterr_status);
        if (r == 0)
                r = hf_hooks_new(&server->host, server->loopback, &server->hooks);
        return r == 0 ? hfd_server_hooks_add(server, reterr_status) : r;
}

/* Writes <data-dir>/admin.kubeconfig and says where it is. */
static int write_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status) {
        char path[4096];

        (void)snprintf(path, sizeof path, "%s/admin.kubeconfig", server->config->data_dir);
        int r = hfd_admin_kubeconfig_write(&server->pki, path, server->identity.endpoint,
                                           reterr_status);
        if (r == 0)
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "serving %s; kubeconfig %s",
                       server->identity.endpoint, path);
        return r;
}

/* One bounded look at the store: HF_E_CANCELED with *ret_why when it has not answered until then,
 * or the stop was asked for. */
static int look_for_store(struct hfd_server *server, hf_nsec until, struct hf_status *ret_why) {
        struct hf_cancel *token;
        int r = hf_cancel_new(server->stop, hf_host_clock(&server->host), &token);

        if (r != 0)
                return r;
        hf_cancel_set_deadline(token, until);
        r = hfd_cacher_wait_synced(server->cacher, token, ret_why);
        hf_cancel_unref(token);
        return r;
}

static int wait_for_store(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(&server->host);
        hf_nsec until = hf_now(clock) + STORE_PATIENCE;
        struct hf_status why = {0}, said = {0};
        int r;

        atomic_store(&server->waiting_for_store, true);
        hfd_server_wake(server);
        do {
                hf_nsec look = hf_now(clock) + STORE_LOOK;
                r = look_for_store(server, look < until ? look : until, &why);
                if (r == HF_E_CANCELED && !hf_cancel_fired(server->stop) &&
                    strcmp(why.message, said.message) != 0) {
                        hf_log(&server->host.log, HF_LOG_WARNING, "holdfastd",
                               "waiting for etcd at %s: %s", server->config->etcd_servers[0],
                               why.message);
                        said = why;
                }
        } while (r == HF_E_CANCELED && !hf_cancel_fired(server->stop) && hf_now(clock) < until);
        atomic_store(&server->waiting_for_store, false);
        if (r == HF_E_CANCELED && !hf_cancel_fired(server->stop))
                r = hf_fail(reterr_status, HF_E_UNAVAILABLE,
                            "flag --etcd-servers: etcd at %s did not answer within %d s: %s",
                            server->config->etcd_servers[0],
                            (int)(STORE_PATIENCE / HF_NSEC_PER_SEC), why.message);
        return r;
}

int hfd_server_boot(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_cacher_start(server->cacher);

        if (r == 0)
                r = hfd_http_start(server->http);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot start serving: %s", hf_strerror(r));
        hfd_lifecycle_signal(&server->lifecycle, HFD_MUX_AND_DISCOVERY_COMPLETE);
        r = write_kubeconfig(server, reterr_status);
        if (r == 0)
                r = wait_for_store(server, reterr_status);
        if (r == 0)
                r = hfd_controllers_start(server->controllers);
        if (r == 0)
                r = hf_hooks_start(server->hooks, reterr_status);
        if (r == 0) {
                atomic_store(&server->ready, true);
                hfd_server_wake(server);
        }
        return r;
}
