/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What holdfastd itself runs: the table of its controllers, and the caches they share.
 *
 * The caches run on every instance, so that a new leader begins with what it has already seen; handlers are added per
 * term, by the controllers. The table is handed to the elector as one set (leader.h), registered with one hook.
 *
 *      workspace-initializer     leader only       workspace_initializer.c
 *      identity-lease-collector  leader only       lease_collector.c
 *      identity-lease            every instance    identity_lease.c
 */
#include <stdatomic.h>
#include <stddef.h>

#include <holdfast/cache.h>
#include <holdfast/leader.h>

#define HFD_N_CONTROLLERS 3

struct hfd_identity {
        char identity[HF_IDENTITY_MAX + 1]; /* of this incarnation: host_instance_boot_random */
        char lease_name[64];                /* of its identity Lease, unique likewise */
        char host[128], instance[64];
        char endpoint[160]; /* where this instance serves: https://127.0.0.1:6443 */
};

/* Fills identity, lease_name, host and instance from the machine's host name, boot id and random bytes. 0 or -errno. */
int hfd_identity_make(const char *instance, struct hfd_identity *ret_identity);

struct hfd_controllers;

/* client: the loopback; stopping: fires when the process begins to stop; all borrowed. Makes the caches, starts nothing. */
int hfd_controllers_new(const struct hf_host *host, struct hf_client *client, const struct hfd_identity *identity,
                        struct hf_cancel *stopping, struct hfd_controllers **ret_controllers);
int hfd_controllers_start(struct hfd_controllers *controllers); /* the caches begin to fill */
/*
 * Waits, for half a second at most, until the identity Lease is deleted, which `stopping` has asked for. Called before the leader's
 * work drains: a write on its way between the release and the next leader's first ones would make the hand-over longer.
 */
void hfd_controllers_leave(struct hfd_controllers *controllers);
struct hfd_controllers *hfd_controllers_free(struct hfd_controllers *controllers); /* accepts NULL */

/* The table, its ctx filled in; borrowed until free. */
const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers, size_t *ret_n);
/* The names in it, NULL-terminated; static. */
const char *const *hfd_controllers_names(void);

/* What the controllers share; each one's file uses what it needs. */
struct hfd_controllers {
        const struct hf_host *host;          /* borrowed */
        struct hf_client *client;            /* borrowed */
        const struct hfd_identity *identity; /* borrowed */
        struct hf_cancel *stopping;          /* borrowed */
        struct hf_cancel *left;              /* owned; fires when the identity Lease is no longer kept */
        atomic_bool keeps_identity;
        struct hf_cache *workspaces;      /* owned */
        struct hf_cache *identity_leases; /* owned; kube-system, label HFD_IDENTITY_LABEL */
        struct hf_controller table[HFD_N_CONTROLLERS];
};

#define HFD_SYSTEM_NAMESPACE       "kube-system"
#define HFD_IDENTITY_LABEL         "apiserver.kubernetes.io/identity"
#define HFD_IDENTITY_VALUE         "holdfastd"
#define HFD_IDENTITY_SECONDS       40 /* leaseDurationSeconds of an identity Lease */
#define HFD_IDENTITY_RENEW_SECONDS 10

int hfd_run_workspace_initializer(struct hf_term *term, void *controllers);
int hfd_run_lease_collector(struct hf_term *term, void *controllers);
int hfd_run_identity_lease(struct hf_term *term, void *controllers);
