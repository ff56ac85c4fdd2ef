/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks of holdfastd. The post-start hooks run in this order:
 *
 *      system-namespaces -> start-controllers -> bootstrap-phase-0 -> bootstrap-phase-1 -> ready
 *
 * system-namespaces creates the namespaces that every cluster has. It comes before the election,
 * so that the Lease's default namespace, kube-system, exists before the Lease does. Every instance
 * runs the hook; usually the namespaces exist already.
 *
 * start-controllers begins the election and returns at once. Its stop function drains the
 * controllers and releases the Lease.
 *
 * The two bootstrap hooks apply nothing. Each waits until the ledger (a ConfigMap that records what
 * was applied, see holdfast/bootstrap.h) shows that a leader, in this or another process, has
 * completed the phase; the hook of phase-1 waits a few seconds at most (PHASE_1_PATIENCE in
 * bootstrap_phases.c). The two hooks run after start-controllers, because the leader that they wait
 * for may be this instance. With --leader-elect=false there is no start-controllers, and they run
 * after system-namespaces.
 *
 * Invariant: system-namespaces only adds what is missing, because every instance runs it at every
 * start, several of them at the same time.
 */
#include "server/hooks.h"

#include <assert.h>
#include <stdio.h>

#include "client/pending_request.h"
#include "server/server.h"

/* How long to wait after a failed request. */
#define RETRY_INTERVAL (500 * HF_NSEC_PER_MSEC)

static const char *const system_namespaces[] = {"kube-system", "kube-public", "kube-node-lease",
                                                "default"};
enum { N_SYSTEM_NAMESPACES = sizeof system_namespaces / sizeof system_namespaces[0] };

/* Starts a read of the namespace, or its creation. */
static int start_request(struct hf_hook_context *context, enum hf_verb verb, const char *name,
                         struct hf__pending_request **ret_pending,
                         struct hf_status *reterr_status) {
        static const char format[] = "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                     "\"metadata\":{\"name\":\"%s\"}}";
        char body[256];
        int n = snprintf(body, sizeof body, format, name);
        bool creates = verb == HF_VERB_CREATE;
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = {"", "v1", "namespaces"},
                                           .name = creates ? NULL : name,
                                           .body = creates ? body : NULL,
                                           .n_body = creates ? (size_t)n : 0};

        assert(n > 0 && (size_t)n < sizeof body);
        return hf__pending_request_start(hf_hook_client(context), &request,
                                         hf_hook_shutting_down(context), ret_pending,
                                         reterr_status);
}

/*
 * Sends a request for each namespace whose result is HF_E_NOT_FOUND, all at the same time, so that
 * a store on a disk makes one commit of them. Replaces these results by those of the requests. If a
 * request cannot be started, the reason is its result.
 */
static void request_namespaces(struct hf_hook_context *context, enum hf_verb verb,
                               int results[N_SYSTEM_NAMESPACES], struct hf_status *reterr_status) {
        struct hf_cancel *token = hf_hook_shutting_down(context);
        struct hf__pending_request *pending[N_SYSTEM_NAMESPACES] = {NULL};

        for (size_t i = 0; i < N_SYSTEM_NAMESPACES; i++)
                if (results[i] == HF_E_NOT_FOUND)
                        results[i] = start_request(context, verb, system_namespaces[i], &pending[i],
                                                   reterr_status);
        for (size_t i = 0; i < N_SYSTEM_NAMESPACES; i++)
                if (pending[i])
                        results[i] = hf__pending_request_wait(pending[i], token, NULL, NULL,
                                                              reterr_status);
}

/* Creates the namespaces that do not exist. Several instances may do this at once. */
static int ensure_namespaces(struct hf_hook_context *context, struct hf_status *reterr_status) {
        int results[N_SYSTEM_NAMESPACES];

        for (size_t i = 0; i < N_SYSTEM_NAMESPACES; i++)
                results[i] = HF_E_NOT_FOUND;
        request_namespaces(context, HF_VERB_GET, results, reterr_status);
        request_namespaces(context, HF_VERB_CREATE, results, reterr_status);
        for (size_t i = 0; i < N_SYSTEM_NAMESPACES; i++)
                if (results[i] != 0 && results[i] != HF_E_EXISTS)
                        return results[i];
        return 0;
}

static int start_system_namespaces(struct hf_hook_context *context, void *ctx,
                                   struct hf_status *reterr_status) {
        struct hfd_server *server = ctx;

        /* The store may fail at any time, also during the start. So retry until the token fires; a
         * start that exceeds the hook's deadline shuts the server down. */
        while (ensure_namespaces(context, reterr_status) != 0)
                if (hf_cancel_wait(hf_hook_shutting_down(context),
                                   hfd_server_now(server) + RETRY_INTERVAL) == HF_E_CANCELED)
                        return HF_E_CANCELED;
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
