/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that the controllers share. Each controller's run function gets it as its ctx.
 * controllers.c creates and frees it.
 */
#include <stdatomic.h>

#include <holdfast/cancel.h>
#include <holdfast/informer.h>

#include "server/controllers/base/account_tokens.h"
#include "server/controllers/base/api_version.h"
#include "server/controllers/base/cluster_ca.h"
#include "server/controllers/base/default_role.h"
#include "server/controllers/base/flow_defaults.h"
#include "server/controllers/base/policy_checks.h"
#include "server/controllers/kinds/kinds.h"

struct hfd_identity;
struct hfd_peers;

struct hfd_controller_context {
        /* Immutable after construction. The informers themselves may be used from any thread. */
        const struct hf_host *host;          /* borrowed */
        const struct hfd_identity *identity; /* borrowed; complete when a controller runs */
        struct hfd_peers *peers;             /* borrowed */
        struct hf_cancel *stopping;          /* borrowed; fires when the process begins to stop */
        struct hf_informer_thread *informer_thread; /* owned; runs all informers */
        hf_nsec event_ttl;      /* how long an Event is kept after it was last reported */
        struct hfd_kinds kinds; /* the kinds that a selected controller needs */
        /* Point to some of those kinds; NULL = no selected controller needs the kind. */
        const struct hfd_kind *workspaces, *namespaces, *events, *cluster_roles, *api_services,
                *quotas, *service_accounts, *certificate_requests, *definitions, *flow_schemas,
                *priority_levels, *policies;
        /* The roles that the server needs, and those that only other programs use; NULL = none. */
        hfd_default_role_fn default_role, other_role;
        struct hfd_api_version api_versions[HFD_KINDS_MAX]; /* built-in ones with an APIService */
        size_t n_api_versions;
        struct hfd_flow_defaults flow_defaults;
        struct hfd_cluster_ca_functions ca;
        struct hfd_account_token_functions tokens;
        struct hfd_policy_check_functions policy_checks;
        /* The ConfigMaps of kube-system that register an initializer; owned; NULL = not needed. */
        struct hf_informer *initializers;
        /* The ConfigMaps kube-root-ca.crt of all namespaces; owned; NULL = not needed. */
        struct hf_informer *root_cas;
        /* The Secrets of all namespaces whose type is that of the tokens of service accounts, with
         * or without a token yet; owned; NULL = not needed. */
        struct hf_informer *token_secrets;
        /* The identity Leases of all instances; owned; NULL = not needed. */
        struct hf_informer *identity_leases;
        struct hf_informer_handler *peers_handler; /* owned; passes those Leases to peers */

        atomic_bool has_logged_no_key; /* the log says that certificate requests are not signed */

        /* For hfd_identity_lease_wait_deleted: the controller identity-lease changes them, and the
         * shutdown reads them on another thread. */
        atomic_bool has_identity_lease;     /* the controller has started */
        struct hf_cancel *identity_deleted; /* owned; fired when the controller has ended */
};
