/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of holdfastd's controllers and their shared informers.
 *
 * Invariants. An informer is created only if a selected controller needs it, because each one holds
 * a copy of a collection and a watch on every instance. An informer has all its indexes before it
 * is started, because later it accepts none.
 */
#include "server/controllers/controllers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/controllers/accounts/token_secrets.h"
#include "server/controllers/api_services/api_services.h"
#include "server/controllers/certificates/request_cleaner.h"
#include "server/controllers/certificates/request_signer.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/definitions/definition_cleanup.h"
#include "server/controllers/definitions/definition_status.h"
#include "server/controllers/event_expiry.h"
#include "server/controllers/flow/flow_controller.h"
#include "server/controllers/garbage/garbage_collector.h"
#include "server/controllers/instances/identity.h"
#include "server/controllers/instances/identity_lease.h"
#include "server/controllers/instances/peers.h"
#include "server/controllers/lease_collector.h"
#include "server/controllers/namespace_lifecycle.h"
#include "server/controllers/namespaces/default_account.h"
#include "server/controllers/namespaces/root_ca.h"
#include "server/controllers/namespaces/root_ca_core.h"
#include "server/controllers/policies/policy_status.h"
#include "server/controllers/quota/quota_controller.h"
#include "server/controllers/roles/role_controller.h"
#include "server/controllers/workspace_initializer.h"

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};
static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static const struct hf_resource secrets = {"", "v1", "secrets"};

/* The context, which all controllers share, and the rows of those that are selected. */
struct hfd_controllers {
        struct hfd_controller_context context;
        struct hf_controller table[HFD_N_CONTROLLERS];
        size_t n_controllers;
};

/* The informers that a controller needs, as bits, because the needs of all selected controllers are
 * joined. NEEDS_ALL: the informers of all kinds. */
enum {
        NEEDS_ALL = 1,
        NEEDS_WORKSPACES = 2,
        NEEDS_EVENTS = 4,
        NEEDS_IDENTITY = 8,
        NEEDS_ROLES = 16,
        NEEDS_NAMESPACES = 32,
        NEEDS_ACCOUNTS = 64,
        NEEDS_ROOT_CAS = 128,
        NEEDS_REQUESTS = 256,
        NEEDS_API_SERVICES = 512,
        NEEDS_TOKEN_SECRETS = 1024,
        NEEDS_DEFINITIONS = 2048,
        NEEDS_FLOW = 4096,
        NEEDS_POLICIES = 8192
};

/*
 * One row for each controller, in the order of hfd_controllers_names. Only the identity Lease runs
 * on every instance: it shows that the instance is alive, so a standby needs one too. All others
 * write objects that the instances share. Two instances would do all work twice, and their writes
 * would conflict.
 */
static const struct {
        struct hf_controller controller;
        unsigned needs;
} rows[HFD_N_CONTROLLERS] = {
        {{.size = sizeof(struct hf_controller),
          .name = HFD_NAMESPACE_LIFECYCLE,
          .runs = HF_LEADER_ONLY,
          .run = hfd_namespace_lifecycle_run},
         NEEDS_ALL},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_GARBAGE_COLLECTOR,
          .runs = HF_LEADER_ONLY,
          .run = hfd_garbage_collector_run},
         NEEDS_ALL},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_RESOURCE_QUOTA,
          .runs = HF_LEADER_ONLY,
          .run = hfd_quota_controller_run},
         NEEDS_ALL},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_WORKSPACE_INITIALIZER,
          .runs = HF_LEADER_ONLY,
          .run = hfd_workspace_initializer_run},
         NEEDS_WORKSPACES},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_CLUSTER_ROLES,
          .runs = HF_LEADER_ONLY,
          .run = hfd_role_controller_run},
         NEEDS_ROLES},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_API_SERVICES,
          .runs = HF_LEADER_ONLY,
          .run = hfd_api_services_run},
         NEEDS_API_SERVICES | NEEDS_DEFINITIONS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_DEFINITION_STATUS,
          .runs = HF_LEADER_ONLY,
          .run = hfd_definition_status_run},
         NEEDS_DEFINITIONS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_DEFINITION_CLEANUP,
          .runs = HF_LEADER_ONLY,
          .run = hfd_definition_cleanup_run},
         NEEDS_DEFINITIONS | NEEDS_ALL},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_POLICY_STATUS,
          .runs = HF_LEADER_ONLY,
          .run = hfd_policy_status_run},
         NEEDS_POLICIES},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_DEFAULT_ACCOUNT,
          .runs = HF_LEADER_ONLY,
          .run = hfd_default_account_run},
         NEEDS_NAMESPACES | NEEDS_ACCOUNTS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_ROOT_CA_PUBLISHER,
          .runs = HF_LEADER_ONLY,
          .run = hfd_root_ca_run},
         NEEDS_NAMESPACES | NEEDS_ROOT_CAS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_TOKEN_SECRETS,
          .runs = HF_LEADER_ONLY,
          .run = hfd_token_secrets_run},
         NEEDS_ACCOUNTS | NEEDS_TOKEN_SECRETS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_REQUEST_SIGNER,
          .runs = HF_LEADER_ONLY,
          .run = hfd_request_signer_run},
         NEEDS_REQUESTS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_REQUEST_CLEANER,
          .runs = HF_LEADER_ONLY,
          .run = hfd_request_cleaner_run},
         NEEDS_REQUESTS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_FLOW_CONTROLLER,
          .runs = HF_LEADER_ONLY,
          .run = hfd_flow_controller_run},
         NEEDS_FLOW},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_EVENT_EXPIRY,
          .runs = HF_LEADER_ONLY,
          .run = hfd_event_expiry_run},
         NEEDS_EVENTS},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_LEASE_COLLECTOR,
          .runs = HF_LEADER_ONLY,
          .run = hfd_lease_collector_run},
         NEEDS_IDENTITY},
        {{.size = sizeof(struct hf_controller),
          .name = HFD_IDENTITY_LEASE,
          .runs = HF_EVERY_INSTANCE,
          .run = hfd_identity_lease_run},
         NEEDS_IDENTITY},
};

/* ---- informers ---- */

/* Whether a selected controller needs the shared informer of a resource. NEEDS_ALL makes it true
 * for each resource: the garbage collector, for example, must see every object that may have an
 * owner. The group counts too, because "events" is also a plural of events.k8s.io. */
static bool is_needed(const struct hf_resource *resource, unsigned needs) {
        static const struct {
                const char *group, *plural;
                unsigned needs;
        } kinds[] = {
                {"", "events", NEEDS_EVENTS},
                {"", "namespaces", NEEDS_NAMESPACES | NEEDS_WORKSPACES},
                {"", "serviceaccounts", NEEDS_ACCOUNTS},
                {"admissionregistration.k8s.io", "validatingadmissionpolicies", NEEDS_POLICIES},
                {"apiextensions.k8s.io", "customresourcedefinitions", NEEDS_DEFINITIONS},
                {"apiregistration.k8s.io", "apiservices", NEEDS_API_SERVICES},
                {"certificates.k8s.io", "certificatesigningrequests", NEEDS_REQUESTS},
                {"flowcontrol.apiserver.k8s.io", "flowschemas", NEEDS_FLOW},
                {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", NEEDS_FLOW},
                {"rbac.authorization.k8s.io", "clusterroles", NEEDS_ROLES},
                {"tenancy.holdfast.dev", "workspaces", NEEDS_WORKSPACES},
        };

        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
                if (needs & kinds[i].needs && strcmp(resource->plural, kinds[i].plural) == 0 &&
                    strcmp(resource->group, kinds[i].group) == 0)
                        return true;
        return needs & NEEDS_ALL;
}

/* Creates the shared informers of the needed kinds, and sets the pointers to some of them. A
 * pointer stays NULL if no selected controller needs the kind; a controller asserts those that it
 * cannot do without. Custom kinds are followed only if a controller works with all kinds. */
static int make_kinds(struct hfd_controller_context *context,
                      const struct hfd_controllers_config *config, unsigned needs) {
        struct hfd_kind_row needed[HFD_KINDS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < config->n_rows; i++)
                if (is_needed(&config->rows[i].resource, needs)) {
                        if (n == HFD_KINDS_MAX)
                                return HF_E_TOO_LARGE;
                        needed[n++] = config->rows[i];
                }
        const struct hfd_kinds_config kinds = {.sources = {.host = context->host,
                                                           .client = config->client,
                                                           .metadata_client =
                                                                   config->metadata_client,
                                                           .thread = context->informer_thread,
                                                           .serving = config->serving},
                                               .rows = needed,
                                               .n_rows = n,
                                               .custom = needs & NEEDS_ALL};
        /* After a failure the struct is empty, and the look-ups below find nothing. */
        int r = hfd_kinds_init(&context->kinds, &kinds);
        context->workspaces = hfd_kinds_find(&context->kinds, "tenancy.holdfast.dev", "workspaces");
        context->namespaces = hfd_kinds_find(&context->kinds, "", "namespaces");
        context->quotas = hfd_kinds_find(&context->kinds, "", "resourcequotas");
        context->events = hfd_kinds_find(&context->kinds, "", "events");
        context->service_accounts = hfd_kinds_find(&context->kinds, "", "serviceaccounts");
        context->certificate_requests = hfd_kinds_find(&context->kinds, "certificates.k8s.io",
                                                       "certificatesigningrequests");
        context->cluster_roles =
                hfd_kinds_find(&context->kinds, "rbac.authorization.k8s.io", "clusterroles");
        context->api_services =
                hfd_kinds_find(&context->kinds, "apiregistration.k8s.io", "apiservices");
        context->flow_schemas =
                hfd_kinds_find(&context->kinds, "flowcontrol.apiserver.k8s.io", "flowschemas");
        context->priority_levels = hfd_kinds_find(&context->kinds, "flowcontrol.apiserver.k8s.io",
                                                  "prioritylevelconfigurations");
        context->definitions = hfd_kinds_find(&context->kinds, "apiextensions.k8s.io",
                                              "customresourcedefinitions");
        context->policies = hfd_kinds_find(&context->kinds, "admissionregistration.k8s.io",
                                           "validatingadmissionpolicies");
        return r;
}

/* Creates the informer of the Secrets that hold a token, with an index by their account. The field
 * selector matters: without it, every instance would keep every Secret of the cluster in memory. */
static int make_token_secrets(struct hfd_controller_context *context,
                              const struct hfd_controllers_config *config) {
        struct hf_informer_config token_secrets = {
                .size = sizeof token_secrets,
                .client = config->client,
                .thread = context->informer_thread,
                .resource = secrets,
                .one_revision = true,
                .query = "fieldSelector=type%3Dkubernetes.io%2Fservice-account-token",
        };
        int r = hf_informer_new(context->host, &token_secrets, &context->token_secrets);

        return r == 0 ? hf_informer_add_index(context->token_secrets, HFD_ACCOUNT_INDEX,
                                              hfd_token_secrets_index, NULL)
                      : r;
}

/*
 * Creates all informers but those of custom kinds, and the thread that all share: most collections
 * change seldom, and a thread for each would cost as much memory as the objects of a small cluster.
 * Four of them select their objects: they would otherwise cache all ConfigMaps, Secrets, or Leases
 * of kube-system, of which they need only a few.
 */
static int make_informers(struct hfd_controller_context *context,
                          const struct hfd_controllers_config *config, unsigned needs) {
        int r = hf_informer_thread_new(context->host, &context->informer_thread);
        struct hf_informer_config initializers = {
                .size = sizeof initializers,
                .client = config->client,
                .thread = context->informer_thread,
                .resource = configmaps,
                .ns = HFD_SYSTEM_NAMESPACE,
                .one_revision = true,
                .metadata_only = true,
                .query = "labelSelector=tenancy.holdfast.dev%2Finitializer",
        };
        struct hf_informer_config identity_leases = {
                .size = sizeof identity_leases,
                .client = config->client,
                .thread = context->informer_thread,
                .resource = leases,
                .ns = HFD_SYSTEM_NAMESPACE,
                .one_revision = true,
                .query = "labelSelector=apiserver.kubernetes.io%2Fidentity%3D" HFD_IDENTITY_VALUE,
        };
        struct hf_informer_config root_cas = {
                .size = sizeof root_cas,
                .client = config->client,
                .thread = context->informer_thread,
                .resource = configmaps,
                .one_revision = true,
                .query = "fieldSelector=metadata.name%3D" HFD_ROOT_CA_NAME,
        };

        if (r == 0)
                r = make_kinds(context, config, needs);
        /* Each of these has its own query, so the informers of whole kinds cannot replace them. */
        if (r == 0 && needs & NEEDS_TOKEN_SECRETS)
                r = make_token_secrets(context, config);
        if (r == 0 && needs & NEEDS_ROOT_CAS)
                r = hf_informer_new(context->host, &root_cas, &context->root_cas);
        if (r == 0 && needs & NEEDS_WORKSPACES)
                r = hf_informer_new(context->host, &initializers, &context->initializers);
        if (r == 0 && needs & NEEDS_IDENTITY)
                r = hf_informer_new(context->host, &identity_leases, &context->identity_leases);
        if (r == 0 && context->identity_leases)
                r = hf_informer_add_handler(context->identity_leases, hfd_peers_on_lease,
                                            context->peers, &context->peers_handler);
        return r;
}

/* ---- life cycle ---- */

HF__CLEANUP_DEFINE(controllers_cleanup, struct hfd_controllers *, hfd_controllers_free)

int hfd_controllers_new(const struct hf_host *host, const struct hfd_controllers_config *config,
                        struct hfd_controllers **ret_controllers) {
        HF__CLEANUP(controllers_cleanup)
        struct hfd_controllers *controllers = calloc(1, sizeof *controllers);
        unsigned needs = 0;

        if (!controllers)
                return -ENOMEM;
        struct hfd_controller_context *context = &controllers->context;
        context->host = host;
        context->identity = config->identity;
        context->peers = config->peers;
        context->stopping = config->stopping;
        context->event_ttl = config->event_ttl;
        context->default_role = config->default_role;
        context->other_role = config->other_role;
        /* The versions come from the server's own table, which no client can make longer. */
        assert(config->n_api_versions <= HFD_KINDS_MAX);
        context->n_api_versions = config->n_api_versions;
        for (size_t i = 0; i < config->n_api_versions; i++)
                context->api_versions[i] = config->api_versions[i];
        context->flow_defaults = config->flow_defaults;
        context->ca = config->ca;
        context->tokens = config->tokens;
        context->policy_checks = config->policy_checks;
        for (size_t i = 0; i < HFD_N_CONTROLLERS; i++) {
                /* A controller without its name in the list could not be named by --controllers. */
                assert(strcmp(rows[i].controller.name, hfd_controllers_names()[i]) == 0);
                if (config->runs && !config->runs(config->ctx, rows[i].controller.name))
                        continue;
                assert(controllers->n_controllers < HFD_N_CONTROLLERS);
                struct hf_controller *controller =
                        &controllers->table[controllers->n_controllers++];
                *controller = rows[i].controller;
                controller->ctx = context;
                needs |= rows[i].needs;
        }
        int r = hf_cancel_new(NULL, hf_host_clock(host), &context->identity_deleted);
        if (r != 0)
                return r;
        r = make_informers(context, config, needs);
        if (r != 0)
                return r;
        *ret_controllers = HF__TAKE(controllers);
        return 0;
}

/* Every informer has its indexes by now, because an index must be added before the start. The loops
 * of the controllers add their handlers later, when a term begins. */
int hfd_controllers_start(struct hfd_controllers *controllers) {
        struct hfd_controller_context *context = &controllers->context;
        int r = hfd_kinds_start(&context->kinds);

        if (r == 0 && context->initializers)
                r = hf_informer_start(context->initializers);
        if (r == 0 && context->root_cas)
                r = hf_informer_start(context->root_cas);
        if (r == 0 && context->token_secrets)
                r = hf_informer_start(context->token_secrets);
        if (r == 0 && context->identity_leases)
                r = hf_informer_start(context->identity_leases);
        return r;
}

void hfd_controllers_leave(struct hfd_controllers *controllers) {
        hfd_identity_lease_wait_deleted(&controllers->context);
}

struct hfd_controllers *hfd_controllers_free(struct hfd_controllers *controllers) {
        if (!controllers)
                return NULL;
        struct hfd_controller_context *context = &controllers->context;
        /* No controller runs any more, so only informer_thread uses the informers. The thread must
         * outlive the informers, so it is freed after them. */
        hfd_kinds_done(&context->kinds);
        hf_informer_free(context->initializers);
        hf_informer_free(context->root_cas);
        hf_informer_free(context->token_secrets);
        if (context->identity_leases)
                hf_informer_remove_handler(context->identity_leases, context->peers_handler);
        hf_informer_free(context->identity_leases);
        hf_informer_thread_free(context->informer_thread);
        hf_cancel_unref(context->identity_deleted);
        free(controllers);
        return NULL;
}

const struct hf_controller *hfd_controllers_table(struct hfd_controllers *controllers,
                                                  size_t *ret_n) {
        assert(controllers->n_controllers <= HFD_N_CONTROLLERS);
        *ret_n = controllers->n_controllers;
        return controllers->table;
}

/* The check of --controllers needs the names before any controller exists, and as an array that
 * ends with NULL. hfd_controllers_new asserts that they are those of the rows. */
const char *const *hfd_controllers_names(void) {
        static const char *const names[HFD_N_CONTROLLERS + 1] = {
                HFD_NAMESPACE_LIFECYCLE,   HFD_GARBAGE_COLLECTOR,  HFD_RESOURCE_QUOTA,
                HFD_WORKSPACE_INITIALIZER, HFD_CLUSTER_ROLES,      HFD_API_SERVICES,
                HFD_DEFINITION_STATUS,     HFD_DEFINITION_CLEANUP, HFD_POLICY_STATUS,
                HFD_DEFAULT_ACCOUNT,       HFD_ROOT_CA_PUBLISHER,  HFD_TOKEN_SECRETS,
                HFD_REQUEST_SIGNER,        HFD_REQUEST_CLEANER,    HFD_FLOW_CONTROLLER,
                HFD_EVENT_EXPIRY,          HFD_LEASE_COLLECTOR,    HFD_IDENTITY_LEASE,
        };
        return names;
}
