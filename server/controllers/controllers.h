/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What holdfastd itself runs: the table of its controllers, and the caches they share.
 *
 * The caches run on every instance, so that a new leader begins with what it has already seen;
 * handlers are added per term, by the controllers. The table is handed to the elector as one set
 * (leader.h), registered with one hook.
 *
 *      namespace-lifecycle       leader only       namespace_lifecycle.c, namespace_core.c
 *      garbage-collector         leader only       garbage_collector.c, gc_core.c, gc_notice.c
 *      workspace-initializer     leader only       workspace_initializer.c, workspace_core.c
 *      event-expiry              leader only       event_expiry.c, event_core.c
 *      identity-lease-collector  leader only       lease_collector.c
 *      identity-lease            every instance    identity_lease.c
 *
 * Each leader-only one is a reconciler (holdfast/reconciler.h): caches that say which keys to look
 * at, one queue, workers. What a key's object needs is decided by pure functions (*_core.h) from
 * what the caches say.
 */
#include <stdatomic.h>
#include <stddef.h>

#include <holdfast/informer.h>
#include <holdfast/leader.h>

#include "server/controllers/kinds.h"

#define HFD_NAMESPACE_LIFECYCLE   "namespace-lifecycle"
#define HFD_GARBAGE_COLLECTOR     "garbage-collector"
#define HFD_WORKSPACE_INITIALIZER "workspace-initializer"
#define HFD_EVENT_EXPIRY          "event-expiry"
#define HFD_LEASE_COLLECTOR       "identity-lease-collector"
#define HFD_IDENTITY_LEASE        "identity-lease"
#define HFD_N_CONTROLLERS         6

struct hfd_identity {
        char identity[HF_IDENTITY_MAX + 1]; /* of this incarnation: host_instance_boot_random */
        char lease_name[64];                /* of its identity Lease, unique likewise */
        char host[128], instance[64];
        char endpoint[160]; /* where this instance serves: https://127.0.0.1:6443 */
};

/* Fills identity, lease_name, host and instance from the machine's host name, boot id and random
 * bytes. 0 or -errno. */
int hfd_identity_make(const char *instance, struct hfd_identity *ret_identity);

struct hfd_controllers;

struct hfd_controllers_config {
        struct hf_client *client;            /* the loopback; borrowed, as all here */
        const struct hfd_identity *identity; /* what is in it may still change until start */
        struct hf_cancel *stopping;          /* fires when the process begins to stop */
        const struct hfd_kind_row
                *rows; /* the server's resources, n_rows; only until new returns */
        size_t n_rows;
        hf_nsec event_ttl;
        bool (*runs)(void *ctx,
                     const char *name); /* whether a controller is selected; NULL = all are */
        void *ctx;
};

/* Makes the selected controllers' caches, starts nothing. */
int hfd_controllers_new(const struct hf_host *host, const struct hfd_controllers_config *config,
                        struct hfd_controllers **ret_controllers);
int hfd_controllers_start(struct hfd_controllers *controllers); /* the caches begin to fill */
/*
 * Waits, for half a second at most, until the identity Lease is deleted, which `stopping` has asked
 * for. Called before the leader's work drains: a write on its way between the release and the next
 * leader's first ones would make the hand-over longer.
 */
void hfd_controllers_leave(struct hfd_controllers *controllers);
struct hfd_controllers *
hfd_controllers_free(struct hfd_controllers *controllers); /* accepts NULL */

/* The selected ones, ctx filled in; borrowed until free. */
const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers,
                                                  size_t *ret_n);
/* The names of all, NULL-terminated; static. */
const char *const *hfd_controllers_names(void);

/* What the controllers share; each one's file uses what it needs. Immutable after new but for what
 * the caches hold. */
struct hfd_controllers {
        const struct hf_host *host;          /* borrowed */
        const struct hfd_identity *identity; /* borrowed */
        struct hf_cancel *stopping;          /* borrowed */
        struct hf_cancel *left; /* owned; fires when the identity Lease is no longer kept */
        atomic_bool keeps_identity;
        hf_nsec event_ttl;
        struct hfd_kinds kinds; /* those that a selected controller needs */
        const struct hfd_kind *workspaces, *namespaces, *events; /* of them; NULL = not needed */
        struct hf_informer
                *initializers; /* owned; kube-system, label HFD_INITIALIZER_LABEL; may be NULL */
        struct hf_informer
                *identity_leases; /* owned; kube-system, label HFD_IDENTITY_LABEL; may be NULL */
        struct hf_controller table[HFD_N_CONTROLLERS];
        size_t n_controllers;
};

#define HFD_SYSTEM_NAMESPACE       "kube-system"
#define HFD_IDENTITY_LABEL         "apiserver.kubernetes.io/identity"
#define HFD_IDENTITY_VALUE         "holdfastd"
#define HFD_IDENTITY_SECONDS       40 /* leaseDurationSeconds of an identity Lease */
#define HFD_IDENTITY_RENEW_SECONDS 10
#define HFD_INITIALIZER_LABEL                                                                      \
        "tenancy.holdfast.dev/initializer" /* of a ConfigMap in kube-system: registers one for     \
                                              workspaces */

int hfd_run_namespace_lifecycle(struct hf_term *term, void *controllers);
int hfd_run_garbage_collector(struct hf_term *term, void *controllers);
int hfd_run_workspace_initializer(struct hf_term *term, void *controllers);
int hfd_run_event_expiry(struct hf_term *term, void *controllers);
int hfd_run_lease_collector(struct hf_term *term, void *controllers);
int hfd_run_identity_lease(struct hf_term *term, void *controllers);
