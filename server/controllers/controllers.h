/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controllers of holdfastd: their table, and the informers that they share.
 *
 *      name                      runs on           files
 *      namespace-lifecycle       the leader        namespace_lifecycle, namespace_report
 *      garbage-collector         the leader        garbage/
 *      resourcequota             the leader        quota/
 *      workspace-initializer     the leader        workspace_initializer, workspace_core
 *      cluster-roles             the leader        roles/
 *      api-services              the leader        api_services/
 *      custom-resource-definitions  the leader     definitions/definition_status,
 *                                                  kinds/definition_core
 *      custom-resource-cleanup   the leader        definitions/definition_cleanup
 *      admission-policy-status   the leader        policies/policy_status
 *      default-service-account   the leader        namespaces/default_account
 *      root-ca-publisher         the leader        namespaces/root_ca, root_ca_core
 *      service-account-tokens    the leader        accounts/token_secrets, token_secret_core
 *      certificate-signer        the leader        certificates/request_signer, request_core
 *      certificate-cleaner       the leader        certificates/request_cleaner, request_core
 *      flow-control              the leader        flow/
 *      event-expiry              the leader        event_expiry, event_time
 *      identity-lease-collector  the leader        lease_collector
 *      identity-lease            every instance    instances/identity_lease
 *
 * Each leader-only controller is a reconciler (holdfast/reconciler.h): informers add keys to a
 * queue, and workers process them. A new controller is a file with a function of the type of
 * hf_controller.run, a row of the table and a name in controllers.c, and one more in
 * HFD_N_CONTROLLERS.
 *
 * Controllers that work with all kinds run with a set of kinds, and begin again when custom kinds
 * are added or removed (kinds/kinds.h).
 *
 * The informers run on every instance, leading or not, so that a new leader begins with caches that
 * are already filled. The informer of the identity Leases also tells each instance which others
 * exist (instances/peers.h). The elector gets the whole table as one set (holdfast/leader.h).
 *
 * Thread: any, but only one thread at a time may call these functions.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/cancel.h>
#include <holdfast/client.h>
#include <holdfast/leader.h>

#include "server/controllers/base/account_tokens.h"
#include "server/controllers/base/api_version.h"
#include "server/controllers/base/cluster_ca.h"
#include "server/controllers/base/default_role.h"
#include "server/controllers/base/flow_defaults.h"
#include "server/controllers/base/policy_checks.h"
#include "server/controllers/kinds/kind_informer.h"

#define HFD_N_CONTROLLERS 18

struct hfd_controllers;
struct hfd_identity;
struct hfd_peers;

struct hfd_controllers_config {
        struct hf_client *client;            /* the loopback client; borrowed */
        struct hf_client *metadata_client;   /* the one for metadata only; borrowed */
        const struct hfd_identity *identity; /* borrowed; may change until hfd_controllers_start */
        struct hfd_peers *peers;             /* borrowed; gets the identity Leases */
        struct hf_cancel *stopping;          /* borrowed; fires when the process begins to stop */
        const struct hfd_kind_row *rows;     /* the server's resources; copied */
        size_t n_rows;
        /* The roles and bindings that the server needs, and those that only other programs use,
         * such as the kubelet or the scheduler; NULL = none. */
        hfd_default_role_fn default_role, other_role;
        const struct hfd_api_version *api_versions; /* built-in ones with an APIService; copied */
        size_t n_api_versions;                      /* HFD_KINDS_MAX at most */
        struct hfd_flow_defaults flow_defaults;
        struct hfd_cluster_ca_functions ca;
        struct hfd_account_token_functions tokens;
        struct hfd_policy_check_functions policy_checks;
        struct hfd_kind_serving_functions serving;
        hf_nsec event_ttl; /* how long an Event is kept after it was last reported */
        /* Whether the controller of that name is selected; NULL = all are. Not used after
         * hfd_controllers_new has returned. */
        bool (*runs)(void *ctx, const char *name);
        void *ctx;
};

/* Creates the informers that the selected controllers need, and the thread that they share, but
 * starts no informer. host is borrowed. 0, -errno, HF_E_TOO_LARGE: more than HFD_KINDS_MAX kinds.
 */
int hfd_controllers_new(const struct hf_host *host, const struct hfd_controllers_config *config,
                        struct hfd_controllers **ret_controllers);

/* Starts the informers; the elector starts the controllers themselves. 0 or -errno. */
int hfd_controllers_start(struct hfd_controllers *controllers);

/*
 * Waits until the controller identity-lease has ended, which deletes this instance's Lease. Call it
 * in a shutdown, after `stopping` has fired and before the leader's controllers drain. Otherwise
 * the delete could reach the store between the release of the leader's Lease and the first writes
 * of the next leader, and would delay the hand-over. Blocks for half a second at most.
 */
void hfd_controllers_leave(struct hfd_controllers *controllers);

/* Accepts NULL, returns NULL. The electors that got the table must have been stopped or freed
 * before, so that no controller runs any more. */
struct hfd_controllers *hfd_controllers_free(struct hfd_controllers *controllers);

/* The selected controllers, at most HFD_N_CONTROLLERS; borrowed until hfd_controllers_free. */
const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers,
                                                  size_t *ret_n);

/* The names of all controllers, NULL-terminated; static. */
const char *const *hfd_controllers_names(void);
