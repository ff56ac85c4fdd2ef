/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and frees the objects of a server.
 *
 * Invariants. An object is created after the objects that it borrows, and freed before them.
 * Exceptions:
 * - The bootstrap gets the elector later, and is freed after it, because the elector's controllers
 *   use the bootstrap.
 * - The observers of the cacher (authorizer, flow control, service accounts, feeds of kinds and of
 *   admission) stop before the cacher is freed, and are freed after it, because the cacher calls
 *   on_observed until it is freed.
 * - auth gets its authenticators later, and is freed before them.
 * - The handler of OpenAPI and the admission plug-ins for policies and webhooks borrow the
 *   registry, its pool of threads or the cacher, but are freed after these, because the pool and
 *   the feed of admission use them.
 * - The router and host.health are created before the handlers and checks that they call, and most
 *   of these are freed first: only requests call handlers and checks, and all have ended then.
 *
 * Manifests are checked before anything is written or locked. An unreadable certificate, a port in
 * use or a second process on one data directory is reported as one line, before the first request
 * to the store. A fault that may pass by itself, such as a port in use or a full disk, ends with
 * status 1, so that the service manager starts the process again.
 */
#include "server/main/assembly.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/health.h>

#include "server/auth/files.h"
#include "server/bootstrap_phases.h"
#include "server/cacher/feed/feed.h"
#include "server/cacher/feed/kind_feed.h"
#include "server/certificates/certificates.h"
#include "server/certificates/cluster_ca.h"
#include "server/configured_admission/configured_admission.h"
#include "server/debug_leader.h"
#include "server/handlers/documents/documents.h"
#include "server/handlers/rest/rest.h"
#include "server/handlers/version_handler.h"
#include "server/health_checks.h"
#include "server/hooks.h"
#include "server/leadership.h"
#include "server/main/election.h"
#include "server/process/advertise.h"
#include "server/process/flag_files.h"
#include "server/registry/loopback.h"
#include "server/reload/object_encryption.h"
#include "server/resources/custom/custom_table.h"
#include "server/server.h"
#include "server/service_accounts/account_watches.h"
#include "server/store/configured_store.h"
#include "server/systemd/sdnotify.h"

/* ---- the process: identity, locks, certificates ---- */

/* Called when the list of other instances may have changed. Thread: an informer's. */
static void on_peers_changed(void *ctx) {
        struct hfd_server *server = ctx;

        atomic_store(&server->peers_changed, true);
        hfd_server_wake(server);
}

/* Makes the objects that come first, because the others use them. */
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
        r = hfd_peers_new(&server->identity, hf_host_clock(&server->host), on_peers_changed, server,
                          &server->peers);
        if (r == 0)
                server->cluster_ca = hfd_cluster_ca_new(server->config);
        if (r == 0 && !server->cluster_ca)
                r = -ENOMEM;
        return r != 0 ? hf_fail(reterr_status, r, "%s", hf_strerror(r)) : 0;
}

/* Returns r, the result of a step that used the files or directories of flags, or the socket that
 * the service manager has passed. If r is a mistake of the user, the process will exit with status
 * 2, because a restart does not correct it. */
static int note_mistake(struct hfd_server *server, int r) {
        if (hfd_flag_is_mistake(r))
                atomic_store(&server->exit_status, 2);
        return r;
}

/* Locks the data directory and the run file, before any other file is written, because another
 * process may be using the files. */
static int lock_directories(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;

        if (hfd_config_is_in_memory(config))
                return 0;
        int r = hfd_flag_result("data-dir",
                                hfd_runfile_lock(config->data_dir, "holdfastd", &server->data_lock,
                                                 reterr_status),
                                reterr_status);
        if (r == 0)
                r = hfd_flag_result("shared-dir", hfd_make_dir(config->shared_dir, reterr_status),
                                    reterr_status);
        if (r == 0)
                r = hfd_flag_result("runtime-dir",
                                    hfd_runfile_lock(config->runtime_dir, config->instance,
                                                     &server->runfile, reterr_status),
                                    reterr_status);
        return note_mistake(server, r);
}

static int make_auth(struct hfd_server *server, struct hf_status *reterr_status) {
        const char *token_file = server->config->token_auth_file;

        int r = hfd_auth_new(&server->host, token_file[0] ? token_file : NULL, &server->auth,
                             reterr_status);
        r = note_mistake(server, hfd_flag_result("token-auth-file", r, reterr_status));
        if (r != 0)
                return r;
        const struct hfd_config *config = server->config;
        unsigned modes = hfd_config_authorizes_by(config, "RBAC") ? HFD_MODE_RBAC : 0u;
        if (hfd_config_authorizes_by(config, "AlwaysAllow"))
                modes |= HFD_MODE_ALWAYS_ALLOW;
        r = hfd_authorizer_new(&server->host, modes, &server->authorizer);
        if (r == 0)
                r = hfd_flow_control_new(&server->host,
                                         (unsigned)(config->max_requests_inflight +
                                                    config->max_mutating_requests_inflight),
                                         &server->flow);
        return r != 0 ? hf_fail(reterr_status, r, "cannot set up authorization: %s", hf_strerror(r))
                      : 0;
}

/* Makes the client for calls to webhooks and to the issuer of tokens. Its library is loaded at the
 * first call. */
static int make_outbound(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_outbound_new(&server->host, NULL, &server->outbound);

        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up calls of webhooks: %s",
                               hf_strerror(r));
        /* hfd_config_check has accepted the flag's value, so only memory may be missing. */
        return hfd_service_resolver_new(server->config->service_resolver, &server->services,
                                        reterr_status);
}

/* ---- the API ---- */

/* The observers of changes in the cacher. */
enum {
        OBSERVER_AUTHORIZER = 1,
        OBSERVER_ACCOUNTS = 2,
        OBSERVER_KINDS = 4,
        OBSERVER_ADMISSION = 8,
        OBSERVER_FLOW = 16
};

static unsigned char observers_of(const struct hfd_resource *resource) {
        unsigned char observers = 0;

        if (hfd_authorizer_observes(resource))
                observers |= OBSERVER_AUTHORIZER;
        if (hfd_service_accounts_observes(resource))
                observers |= OBSERVER_ACCOUNTS;
        if (hfd_kind_feed_observes(resource))
                observers |= OBSERVER_KINDS;
        if (hfd_admission_feed_observes(resource))
                observers |= OBSERVER_ADMISSION;
        if (hfd_flow_control_observes(resource))
                observers |= OBSERVER_FLOW;
        return observers;
}

/* Called when an object that requests depend on may have changed. Thread: any, from
 * hfd_cacher_start to hfd_cacher_free; all observers exist in that time. */
static void on_observed(void *ctx, unsigned observers) {
        struct hfd_server *server = ctx;

        if (observers & OBSERVER_AUTHORIZER)
                hfd_authorizer_changed(server->authorizer);
        if (observers & OBSERVER_ACCOUNTS)
                hfd_account_watches_changed(hfd_service_accounts_watches(server->service_accounts));
        if (observers & OBSERVER_KINDS)
                hfd_kind_feed_wake(server->kind_feed);
        if (observers & OBSERVER_ADMISSION)
                hfd_feed_wake(server->admission_feed);
        if (observers & OBSERVER_FLOW)
                hfd_flow_control_changed(server->flow);
}

/* The tokens of service accounts. Their keys come from files that flags name; a reload reads these
 * again. If no flag names a key that signs, a generated key signs (account_keys.h). */
static int make_service_accounts(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const struct hfd_service_accounts_config accounts =
                {.cacher = server->cacher,
                 .issuers = (const char *const *)config->issuers,
                 .audiences = (const char *const *)config->audiences};
        int r = hfd_service_accounts_new(&server->host, &accounts, &server->service_accounts);

        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up service accounts: %s",
                               hf_strerror(r));
        hfd_auth_use(server->auth, hfd_service_accounts_authenticator(server->service_accounts));
        server->openid = (struct hfd_openid){.accounts = server->service_accounts,
                                             .endpoint = server->identity.endpoint};
        return note_mistake(server, hfd_certificates_read_account_keys(server, reterr_status));
}

/* Makes the authenticator of --oidc-issuer-url. It is asked after the one for tokens of service
 * accounts. */
static int make_oidc(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const struct hfd_flag_pem file = {.flag = "oidc-ca-file",
                                          .path = config->oidc_ca_file,
                                          .kind = HFD_PEM_CA};
        char *ca_pem = NULL;

        if (!config->oidc_issuer[0])
                return 0;
        int r = note_mistake(server, hfd_flag_read_pem(&file, &ca_pem, reterr_status));
        if (r != 0)
                return r;
        const struct hfd_oidc_config oidc =
                {.rules = {.issuer = config->oidc_issuer,
                           .client_id = config->oidc_client_id,
                           .username_claim = config->oidc_username_claim,
                           .username_prefix = config->oidc_username_prefix,
                           .groups_claim = config->oidc_groups_claim,
                           .groups_prefix = config->oidc_groups_prefix,
                           .required = (const char *const *)config->oidc_required},
                 .algorithms = config->oidc_algorithms,
                 .ca_pem = ca_pem};
        r = hfd_oidc_new(&server->host, server->outbound, &oidc, &server->oidc);
        free(ca_pem);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the tokens of an issuer: %s",
                               hf_strerror(r));
        hfd_auth_use(server->auth, hfd_oidc_authenticator(server->oidc));
        hfd_oidc_start(server->oidc);
        return 0;
}

/* Called when `holdfastd store copy` begins to write to the store. Thread: any. */
static void on_copy_begun(void *ctx) {
        struct hfd_server *server = ctx;

        atomic_store(&server->copy_begun, true);
        hfd_server_wake(server);
}

/* The cacher, the registry and their helpers, which execute requests. They send nothing to the
 * store before hfd_boot_run. */
static int make_api(struct hfd_server *server, struct hf_status *reterr_status) {
        server->custom_table = hfd_custom_table_new();
        const struct hfd_cacher_config cacher = {.store = server->store,
                                                 .prefix = server->config->etcd_prefix,
                                                 .table = server->custom_table,
                                                 .holder = server->identity.identity,
                                                 .on_history_replaced = hfd_leadership_end_term,
                                                 .observers = observers_of,
                                                 .on_observed = on_observed,
                                                 .on_copy_begun = on_copy_begun,
                                                 .ctx = server};
        int r = server->custom_table ? 0 : -ENOMEM;

        if (r == 0)
                r = hfd_cacher_new(&server->host, &cacher, &server->cacher);
        if (r == 0)
                r = hfd_kind_feed_new(&server->host, server->cacher, server->custom_table,
                                      &server->kind_feed);
        if (r == 0)
                r = hfd_registry_new(&server->host, server->cacher, &server->registry);
        if (r == 0)
                r = hfd_configured_admission_make(server);
        if (r == 0)
                hfd_registry_use_webhooks(server->registry, server->outbound, server->services);
        if (r == 0)
                server->registry->assigns_accounts = !server->config->pods_lack_accounts;
        if (r == 0)
                r = hfd_loopback_new(server->registry, &server->loopback);
        if (r == 0)
                r = hfd_loopback_new_for_metadata(server->registry, &server->metadata_loopback);
        if (r == 0)
                r = hfd_compactor_new(&server->host, server->store, server->config->etcd_prefix,
                                      server->config->compaction_interval, &server->compactor);
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

static int make_audit(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const struct hfd_audit_config audit = {.policy_file = config->audit_policy_file,
                                               .log = {.path = config->audit_log_path,
                                                       .max_size = config->audit_log_max_size << 20,
                                                       .max_backups = config->audit_log_max_backups,
                                                       .max_age = config->audit_log_max_age}};

        if (!config->audit_policy_file[0])
                return 0;
        return note_mistake(server,
                            hfd_audit_new(&server->host, &audit, &server->audit, reterr_status));
}

/* The handlers of all paths. Every request passes the filters first. */
static int make_routes(struct hfd_server *server, struct hf_status *reterr_status) {
        static const char *const api_paths[] = {"/api", "/api/", "/apis", "/apis/"};
        static const char *const version_paths[] = {"/version", "/version/"};
        static const char *const openid_paths[] = {"/.well-known/openid-configuration",
                                                   "/.well-known/openid-configuration/",
                                                   "/openid/v1/jwks", "/openid/v1/jwks/"};
        const struct hfd_config *config = server->config;
        struct hfd_router *router = server->router;
        struct hfd_filters_config filters = {.router = router,
                                             .auth = server->auth,
                                             .authorizer = server->authorizer,
                                             .flow = server->flow,
                                             .audit = server->audit,
                                             .service_accounts = server->service_accounts,
                                             .send_retry_after = config->shutdown_send_retry_after};
        int r = hfd_filters_new(&server->host, &filters, &server->filters);

        if (r == 0)
                r = hfd_healthz_new(&server->host, on_first_ready, server, &server->healthz);
        if (r == 0)
                r = hfd_healthz_install(server->healthz, router);
        if (r == 0)
                r = hfd_metrics_handler_new(&server->host, hfd_flow_control_levels(server->flow),
                                            &server->metrics_handler);
        if (r == 0)
                r = hfd_router_add(router, "/metrics", hfd_metrics_handle, server->metrics_handler);
        for (size_t i = 0; r == 0 && i < sizeof version_paths / sizeof version_paths[0]; i++)
                r = hfd_router_add(router, version_paths[i], hfd_version_handle, NULL);
        for (size_t i = 0; r == 0 && i < sizeof api_paths / sizeof api_paths[0]; i++)
                r = hfd_router_add(router, api_paths[i], hfd_rest_handle, server->registry);
        if (r == 0)
                r = hfd_openapi_handler_new(server->registry, &server->openapi);
        if (r == 0)
                r = hfd_router_add(router, "/openapi/", hfd_openapi_handle, server->openapi);
        for (size_t i = 0; r == 0 && i < sizeof openid_paths / sizeof openid_paths[0]; i++)
                r = hfd_router_add(router, openid_paths[i], hfd_openid_handle, &server->openid);
        if (r == 0)
                r = hfd_router_add(router, "/", hfd_documents_handle_root, server->custom_table);
        if (r == 0)
                r = hfd_router_add(router, "/debug/leader", hfd_debug_leader_handle, server);
        if (r == 0)
                r = hfd_flow_dump_handler_new(&server->host, server->flow, router,
                                              &server->flow_dump);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the endpoints: %s", hf_strerror(r));
        return 0;
}

/* Sets the URL that others connect to. With --secure-port=0 the kernel has chosen the port. */
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

/* ---- the election and the hooks ---- */

static int make_election(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hf_electors_new(&server->host, &server->electors);

        if (r != 0)
                return hf_fail(reterr_status, r, "cannot set up the election: %s", hf_strerror(r));
        r = note_mistake(server, hfd_election_lock(server, reterr_status));
        if (r == 0)
                r = hfd_election_make(server, reterr_status);
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
                r = note_mistake(server, hfd_bootstrap_phases_make(server, reterr_status));
        if (r == 0)
                r = lock_directories(server, reterr_status);
        if (r == 0)
                r = note_mistake(server, hfd_certificates_read(server, reterr_status));
        /* This changes the environment, so it must happen before the store starts threads. Main
         * only waits meanwhile. */
        if (r == 0)
                r = note_mistake(server, hfd_sdnotify_listen_fd(listen_fd, reterr_status));
        if (r == 0)
                r = note_mistake(server, hfd_configured_store_new(&server->host, server->config,
                                                                  &server->store, reterr_status));
        if (r == 0)
                r = note_mistake(server, hfd_object_encryption_start(server, reterr_status));
        if (r == 0)
                r = make_outbound(server, reterr_status);
        if (r == 0)
                r = make_auth(server, reterr_status);
        if (r == 0)
                r = note_mistake(server, hfd_configured_admission_load(server, reterr_status));
        if (r == 0)
                r = make_api(server, reterr_status);
        if (r == 0)
                r = make_audit(server, reterr_status);
        if (r == 0)
                r = make_service_accounts(server, reterr_status);
        if (r == 0)
                r = make_oidc(server, reterr_status);
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
        /* Ends the requests that wait for an unresponsive store or webhook. Otherwise the objects
         * that wait for these requests could not be freed. The store first, so that it accepts no
         * write any more: a failurePolicy may ignore that the call of a webhook was ended. */
        if (server->store)
                server->store->ops->stop(server->store);
        hfd_outbound_stop(server->outbound);
        server->hooks = hf_hooks_free(server->hooks);
        /* The store is stopped, but the cacher may still process a reply. If the reply shows that
         * the store's history was replaced, the cacher calls hfd_leadership_end_term, which must
         * not use the elector any more. */
        hfd_leadership_forget_elector(server);
        server->electors = hf_electors_free(server->electors);
        server->bootstrap = hf_bootstrap_free(server->bootstrap);
        server->controllers = hfd_controllers_free(server->controllers);
        server->cluster_ca = hfd_cluster_ca_free(server->cluster_ca);
        server->peers = hfd_peers_free(server->peers);
        server->http = hfd_http_free(server->http);
        server->loopback = hf_client_free(server->loopback);
        server->metadata_loopback = hf_client_free(server->metadata_loopback);
        server->compactor = hfd_compactor_free(server->compactor);
        hfd_outbound_join(server->outbound); /* its callbacks continue requests */
        server->registry = hfd_registry_free(server->registry);
        server->openapi = hfd_openapi_handler_free(server->openapi);
        hfd_authorizer_stop(server->authorizer);
        hfd_flow_control_stop(server->flow);
        hfd_service_accounts_stop(server->service_accounts);
        hfd_kind_feed_stop(server->kind_feed);
        hfd_feed_stop(server->admission_feed);
        server->cacher = hfd_cacher_free(server->cacher);
        server->kind_feed = hfd_kind_feed_free(server->kind_feed);
        hfd_configured_admission_free(server);
        if (server->store)
                server->store->ops->free(server->store);
        server->store = NULL;
        server->filters = hfd_filters_free(server->filters);
        server->audit = hfd_audit_free(server->audit); /* all requests have ended */
        server->healthz = hfd_healthz_free(server->healthz);
        server->metrics_handler = hfd_metrics_handler_free(server->metrics_handler);
        server->flow_dump = hfd_flow_dump_handler_free(server->flow_dump);
        server->router = hfd_router_free(server->router);
        server->authorizer = hfd_authorizer_free(server->authorizer);
        server->flow = hfd_flow_control_free(server->flow);
        server->auth = hfd_auth_free(server->auth);
        server->oidc = hfd_oidc_free(server->oidc);
        server->custom_table =
                hfd_custom_table_free(server->custom_table); /* nothing uses its kinds any more */
        server->outbound = hfd_outbound_free(server->outbound);
        server->services = hfd_service_resolver_free(server->services);
        server->service_accounts = hfd_service_accounts_free(server->service_accounts);
        hfd_certificates_done(server);
        /* Only after everything that uses files: another process of this instance may start as soon
         * as the locks are free. */
        server->runfile = hfd_runfile_free(server->runfile);
        server->data_lock = hfd_runfile_free(server->data_lock);
        server->host.health = hf_health_free(server->host.health);
        server->host.metrics = hf_metrics_free(server->host.metrics);
}
