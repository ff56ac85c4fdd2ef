/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of holdfastd. The post-start hooks run in this order:
 *
 *      system-namespaces -> start-controllers -> bootstrap-phase-0 -> bootstrap-phase-1 -> ready
 *
 * system-namespaces creates the namespaces that every cluster has. It comes before the election,
 * so that the Lease's default namespace, kube-system, exists before the Lease does. Every instance
 * does it; usually they exist already.
 *
 * start-controllers begins the election and returns at once. Its stop function drains the
 * controllers and releases the Lease.
 *
 * The two bootstrap hooks apply nothing. They wait until the ledger shows that a leader, in this or
 * another process, has completed the phase; for phase-1 they wait a few seconds at most. They run
 * after start-controllers, because the leader that they wait for may be this instance. With
 * --leader-elect=false there is no start-controllers, and they run after system-namespaces.
 *
 * Invariant: system-namespaces only adds what is missing, because every instance runs it at every
 * start, several of them at the same time.
 */
#include "server/hooks.h"

#include <assert.h>
#include <stdio.h>

#include "server/server.h"

/* How long to wait after a failed request. */
#define RETRY_INTERVAL (500 * HF_NSEC_PER_MSEC)

/* Creates the namespace unless it exists. Several instances may do this at once. */
static int ensure_namespace(struct hf_hook_context *context, const char *name,
                            struct hf_status *reterr_status) {
        static const struct hf_resource namespaces = {"", "v1", "namespaces"};
        static const char format[] = "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                     "\"metadata\":{\"name\":\"%s\"}}";
        char body[256];
        int n = snprintf(body, sizeof body, format, name);
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = namespaces,
                                 .name = name};
        struct hf_request create = {.size = sizeof create,
                                    .verb = HF_VERB_CREATE,
                                    .resource = namespaces,
                                    .body = body,
                                    .n_body = (size_t)n};
        struct hf_client *client = hf_hook_client(context);
        struct hf_cancel *token = hf_hook_shutting_down(context);

        assert(n > 0 && (size_t)n < sizeof body);
        int r = hf_client_do(client, &get, token, NULL, NULL, reterr_status);
        if (r == HF_E_NOT_FOUND)
                r = hf_client_do(client, &create, token, NULL, NULL, reterr_status);
        return r == HF_E_EXISTS ? 0 : r;
}

static int start_system_namespaces(struct hf_hook_context *context, void *ctx,
                                   struct hf_status *reterr_status) {
        static const char *const names[] = {"kube-system", "kube-public", "kube-node-lease",
                                            "default"};
        struct hfd_server *server = ctx;

        for (size_t i = 0; i < sizeof names / sizeof names[0];) {
                int r = ensure_namespace(context, names[i], reterr_status);
                if (r == 0) {
                        i++;
                        continue;
                }
                /* The store may fail at any time, also during the start. So retry until the token
                 * fires; a start that exceeds the hook's deadline shuts the server down. */
                if (hf_cancel_wait(hf_hook_shutting_down(context),
                                   hfd_server_now(server) + RETRY_INTERVAL) == HF_E_CANCELED)
                        return HF_E_CANCELED;
        }
        return 0;
}

int hfd_server_hooks_add(struct hfd_server *server, struct hf_status *reterr_status) {
        static const char *const after_namespaces[] = {"system-namespaces"};
        static const char *const after_election[] = {"start-controllers"};
        bool elects = server->config->leader_elect;
        struct hf_hook namespaces = {.size = sizeof namespaces,
                                     .name = "system-namespaces",
                                     .start = start_system_namespaces,
                                     .ctx = server};

        assert(server->hooks && server->electors && server->bootstrap);
        int r = hf_hooks_add(server->hooks, &namespaces, HF_HOOKS_HERE, reterr_status);
        if (r == 0 && elects)
                r = hf_controllers_install(server->hooks, server->electors, after_namespaces, 1,
                                           reterr_status);
        if (r == 0)
                r = hf_bootstrap_install(server->bootstrap, server->hooks,
                                         elects ? after_election : after_namespaces, 1,
                                         reterr_status);
        return r;
}
