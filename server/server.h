/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One server: the struct that holds all objects of a holdfastd process.
 *
 * This header has the struct, and the functions that every part of the process may use. Each part
 * has its own header and uses only the parts above it in this list:
 *
 *      server            the struct; init, done, wake
 *      health_checks, leadership, bootstrap_phases, hooks, debug_leader, status_line
 *                        one task each
 *      certificates/, configured_admission/, reload/
 *                        the files of certificates and keys; the chain of admission plug-ins;
 *                        reading files again
 *      check/            `holdfastd --check`, which starts nothing
 *      main/
 *        election        the controllers and the elector
 *        assembly        creates all objects, frees all objects
 *        boot, shutdown  start serving; stop gracefully
 *        sequence        boot, wait for the stop, shut down: one thread
 *        main_loop       signals, watchdog, status line, reloads: the main thread
 *        program         the command line and its sub-commands
 *
 * Order. Main calls hfd_server_init, hfd_assembly_make, starts the sequence thread, and loops. The
 * sequence thread calls hfd_boot_run and hfd_shutdown_run and ends. Main joins it, and calls
 * hfd_assembly_free and hfd_server_done. If a controller or another hook is stuck, or a reload
 * hangs, nothing is freed: the process ends with _exit, because threads that cannot be joined still
 * use the objects.
 *
 * Threads. hfd_assembly_make and hfd_boot_run run on a thread of their own each, while main or the
 * sequence waits (hf__thread_run). So the pointers to the objects are set before the sequence
 * thread starts, and main frees the objects after it has joined it. In between the pointers do not
 * change, except `controllers` (see there), so any thread may read them without a lock. The header
 * of an object describes which thread may call which function. The members that change while
 * threads run are atomic, or their comment says which thread writes them.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/bootstrap.h>
#include <holdfast/hooks.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "server/admission/admission.h"
#include "server/admission/admission_feed.h"
#include "server/admission/plugins/c_plugin.h"
#include "server/admission/policy/policy_plugin.h"
#include "server/admission/webhooks/webhooks.h"
#include "server/audit/audit.h"
#include "server/auth/auth.h"
#include "server/auth/pki/pki.h"
#include "server/authorization/authorizer.h"
#include "server/cacher/cacher.h"
#include "server/config/config.h"
#include "server/controllers/controllers.h"
#include "server/controllers/instances/identity.h"
#include "server/controllers/instances/peers.h"
#include "server/extra.h"
#include "server/filters/filters.h"
#include "server/flow/flow_control.h"
#include "server/handlers/flow_dump_handler.h"
#include "server/handlers/healthz.h"
#include "server/handlers/metrics_handler.h"
#include "server/handlers/openapi/openapi_handler.h"
#include "server/handlers/openid.h"
#include "server/http/http.h"
#include "server/http/router.h"
#include "server/lifecycle.h"
#include "server/oidc/oidc.h"
#include "server/outbound/outbound.h"
#include "server/outbound/service_resolver.h"
#include "server/process/runfile.h"
#include "server/registry/registry.h"
#include "server/service_accounts/service_accounts.h"
#include "server/storage/compactor.h"
#include "server/storage/store.h"
#include "server/systemd/log_sink.h"

struct hfd_cluster_ca;

struct hfd_server {
        /* ---- immutable from hfd_server_init to hfd_server_done ---- */
        struct hf_host host;             /* its metrics and health: see below */
        const struct hfd_config *config; /* borrowed */
        const struct hfd_extra *extra;   /* borrowed; never NULL */
        struct hf_cancel *stop;          /* owned; main fires it to begin the shutdown */
        int event_fd;                    /* owned; an eventfd on which main waits */

        /* ---- immutable between hfd_assembly_make and hfd_assembly_free; owned, in about the
         * order of their creation. host.metrics, host.health and router come first. ---- */
        struct hfd_router *router;
        char advertised[INET6_ADDRSTRLEN]; /* the address to publish (advertise.h) */
        struct hfd_identity identity;      /* its endpoint is set once the port is known */
        struct hfd_peers *peers;           /* the other instances of the same CA */
        struct hfd_cluster_ca *cluster_ca; /* the CA for the controllers */
        struct hf_bootstrap *bootstrap;
        /* Both are NULL with --storage=memory. */
        struct hfd_runfile *data_lock; /* one process per data directory */
        struct hfd_runfile *runfile; /* one process per instance; records what this process leads */
        struct hfd_store *store;
        struct hfd_outbound *outbound; /* calls to webhooks and to the issuer of tokens */
        /* The addresses of webhooks that are given as services. */
        struct hfd_service_resolver *services;
        struct hfd_auth *auth;
        struct hfd_oidc *oidc; /* authenticates tokens of an issuer; NULL = there is no issuer */
        struct hfd_authorizer *authorizer;
        struct hfd_flow_control *flow;
        struct hfd_custom_table *custom_table; /* the custom resources */
        struct hfd_cacher *cacher;
        struct hfd_kind_feed *kind_feed; /* keeps custom_table as the definitions say */
        struct hfd_service_accounts *service_accounts;
        struct hfd_openid openid; /* the handler of the documents about tokens */
        struct hfd_registry *registry;
        struct hfd_admission_chain admission; /* the admission plug-ins */
        struct hfd_feed *admission_feed;
        struct hfd_c_plugin *c_plugins[HFD_C_PLUGINS_MAX]; /* of --admission-plugin */
        struct hfd_webhooks *mutating_webhooks, *validating_webhooks;
        struct hfd_policy_plugin *mutating_policies, *validating_policies;
        struct hf_client *loopback, *metadata_loopback; /* the second one for metadata only */
        struct hfd_compactor *compactor;                /* main calls hfd_compactor_tick */
        struct hfd_audit *audit;                        /* NULL = there is no audit policy */
        struct hfd_filters *filters;
        struct hfd_healthz *healthz;
        struct hfd_openapi_handler *openapi;
        struct hfd_metrics_handler *metrics_handler;
        struct hfd_flow_dump_handler *flow_dump;
        struct hfd_http *http;
        struct hf_electors *electors;
        struct hfd_controllers *controllers; /* the shutdown frees it and sets NULL */
        struct hf_elector *elector;          /* borrowed from electors; see elector_mu */
        struct hf_hooks *hooks;

        /* ---- the certificates as last read (certificates.h). hfd_assembly_make sets them. The
         * boot reads them, and sets kubeconfig_peers. After the boot only the reload's thread reads
         * and replaces these members. hfd_assembly_free frees them, when no reload runs any more.
         * ---- */
        struct hfd_pki pki;
        char *server_cert_pem, *server_key_pem, *client_ca_pem; /* owned */
        /* The peers in the kubeconfig that was written last. */
        struct hfd_peer_list kubeconfig_peers;

        /* ---- used only by the reload's thread ---- */
        bool must_refill; /* the cache may have values that the old encryption keys protected */

        /* ---- shared: any thread ---- */
        /* Guards `elector` in hfd_leadership_end_term. That function may still run on a thread of
         * the store when hfd_assembly_free sets `elector` to NULL, under this lock, and frees the
         * electors. All other readers are done by then, and read the pointer without the lock. */
        pthread_mutex_t elector_mu;
        struct hfd_lifecycle lifecycle;
        struct hfd_log_sink log_sink;
        _Atomic int64_t renew_certificates_at; /* seconds since 1970; see certificate_expiry.c */
        _Atomic bool waiting_for_store;        /* set by the boot, for the status line */
        _Atomic bool ready;                    /* set by the boot: all post-start hooks are done */
        _Atomic bool peers_changed;            /* main looks whether the kubeconfig must change */
        _Atomic bool kubeconfig_failed;        /* the last write of it failed; main tries again */
        _Atomic bool copy_begun;     /* `holdfastd store copy` writes to the store; main stops */
        _Atomic bool stuck;          /* set by the elector's loop: a controller does not stop */
        _Atomic bool sequence_ended; /* set by the sequence thread, last */
        /* The exit status of the process: 0, 1, or 2 after a mistake that only the user can correct
         * (flag, file, manifest). Valid once sequence_ended is true, and after a failed
         * hfd_assembly_make, where 0 means 1. */
        _Atomic int exit_status;
};

/*
 * Fills a zeroed or uninitialised server with what needs no other object: host, log sink,
 * lifecycle, stop token, event_fd. config and extra are borrowed; extra may be NULL. The server
 * must not move afterwards. Call before any thread starts. 0 or -errno; on failure nothing is left
 * to free.
 */
int hfd_server_init(struct hfd_server *server, const struct hfd_config *config,
                    const struct hfd_extra *extra);
/* After hfd_assembly_free, or when hfd_assembly_make was never called. */
void hfd_server_done(struct hfd_server *server);

/* Reports why the start failed: as an entry of the journal, else as one line on stderr that begins
 * with the name of the program. Thread: any. */
void hfd_server_report_failure(struct hfd_server *server, const struct hf_status *status);

/* Makes the main loop run once more. Call when a state that it reports or depends on has changed.
 * Never blocks. Thread: any. */
void hfd_server_wake(struct hfd_server *server);
/* Boot time by the server's clock. Thread: any. */
hf_nsec hfd_server_now(const struct hfd_server *server);
