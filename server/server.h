/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One holdfastd: all its objects, who makes them and in which order they go.
 *
 * Threads: *main* owns signals, the watchdog and the status line (host.c); *sequence* boots, waits
 * for the stop, and shuts down (boot.c, shutdown.c); *reload*, which exists only while a reload
 * runs, reads files (reload.h). So neither of them keeps a signal waiting. Everything else belongs
 * to its module.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include <holdfast/bootstrap.h>
#include <holdfast/hooks.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "server/auth/auth.h"
#include "server/auth/pki.h"
#include "server/cacher/cacher.h"
#include "server/config/config.h"
#include "server/controllers/controllers.h"
#include "server/controllers/identity.h"
#include "server/filters/filters.h"
#include "server/handlers/healthz.h"
#include "server/handlers/metrics_handler.h"
#include "server/http/http.h"
#include "server/http/router.h"
#include "server/lifecycle.h"
#include "server/log_sink.h"
#include "server/registry/registry.h"
#include "server/runfile.h"
#include "server/storage/compactor.h"
#include "server/storage/store.h"

/* What a host built around the same server adds to it (the test programs do): further controllers,
 * and their terms. */
struct hfd_extra {
        const struct hf_controller *controllers; /* n_controllers */
        size_t n_controllers;
        bool unsafe_gate_off; /* leader.h */
        /* Bootstrap as another version, with more in phase 0, and observed: on_bootstrap may keep
         * it waiting. NULL = nothing. */
        const char *version;
        const char *const *phase_0_directories; /* NULL-terminated */
        void (*on_bootstrap)(enum hf_bootstrap_point point, const struct hf_bootstrap_info *info);
};

struct hfd_server {
        /* immutable after boot */
        struct hf_host host;
        const struct hfd_config *config; /* borrowed */
        const struct hfd_extra *extra;   /* borrowed; never NULL */
        struct hfd_identity identity;
        struct hfd_runfile *data_lock; /* owned, as all below: one process per data directory */
        struct hfd_runfile *runfile;   /* and per instance, with what it leads */
        struct hfd_pki pki;
        struct hfd_store *store;
        struct hfd_auth *auth;
        struct hfd_cacher *cacher;
        struct hfd_registry *registry;
        struct hf_client *loopback;
        struct hfd_router *router;
        struct hfd_filters *filters;
        struct hfd_healthz *healthz;
        struct hfd_metrics_handler *metrics_handler;
        struct hfd_http *http;
        struct hfd_compactor *compactor;
        struct hfd_controllers *controllers;
        struct hf_bootstrap *bootstrap;
        struct hf_electors *electors;
        struct hf_elector *elector; /* borrowed from electors */
        struct hf_hooks *hooks;
        char *server_cert_pem, *server_key_pem,
                *client_ca_pem; /* what is served with; replaced by the reload thread */

        /* shared */
        struct hfd_lifecycle lifecycle;
        struct hfd_log_sink log_sink;
        struct hf_cancel *stop; /* fired by main: begin the shutdown */
        int event_fd;           /* written to wake main: something changed, or the sequence ended */
        _Atomic bool sequence_ended; /* set by the sequence thread, last */
        _Atomic bool stuck;          /* a controller ignores its tokens */
        _Atomic int exit_status;     /* valid once sequence_ended, or when making failed */
        _Atomic bool ready;          /* hooks done */
        _Atomic bool waiting_for_store;
};

/* Runs one server until it is told to stop. Returns the process's exit status. Signals must not
 * have been unblocked yet. */
int hfd_server_run(const struct hfd_config *config, const struct hfd_extra *extra);

/* The steps of the sequence thread. */
int hfd_server_make(
        struct hfd_server *server,
        struct hf_status *reterr_status); /* boot.c: objects, listening socket; no waiting */
int hfd_server_boot(
        struct hfd_server *server,
        struct hf_status *reterr_status); /* boot.c: store, hooks, ready; HF_E_CANCELED on stop */
int hfd_server_shut_down(
        struct hfd_server *server,
        struct hf_status *reterr_status); /* shutdown.c; HF_E_STUCK: the process must _exit */
void hfd_server_free(struct hfd_server *server); /* shutdown.c; not after HF_E_STUCK */
int hfd_server_hooks_add(struct hfd_server *server,
                         struct hf_status *reterr_status); /* server_hooks.c */
/* bootstrap.c: reads and checks the manifests; HF_E_INVALID and the like are a user's mistake. */
int hfd_bootstrap_phases_make(struct hfd_server *server, struct hf_status *reterr_status);
const char *hfd_bootstrap_phases_last_controller(
        struct hfd_server *server); /* the one that other leader-only controllers come after */
bool hfd_bootstrap_phases_status(struct hfd_server *server, char *text,
                                 size_t max_text); /* has it something for the status line? */
void hfd_server_wake(struct hfd_server *server);   /* host.c; any thread */
/* elector's on_change: keeps the run file, the status line and the stuck flag. server_hooks.c */
void hfd_server_leader_changed(void *host, const struct hf_leader_info *info);
void hfd_debug_leader(void *host, struct hfd_http_request *request); /* debug_leader.c */
int hfd_read_certificates(struct hfd_server *server, struct hf_status *reterr_status); /* boot.c */

int hfd_release_main(const struct hfd_config *config); /* release.c: the sub-command; exit status */
