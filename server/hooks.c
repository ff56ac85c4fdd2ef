/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfastd's own hooks, and how it hears of leadership.
 *
 *      system-namespaces -> start-controllers / stop-controllers -> bootstrap-phase-0 ->
 * bootstrap-phase-1 -> ready |                               ^ watches           ^ watches v | |
 *                            the leader's term:   controllers bootstrap-phase-0 ->
 * bootstrap-phase-1 -> all others
 *
 * The namespaces come first because the Lease lives in one of them. Every instance makes them if
 * they are absent, before it contends; that they exist already is the usual case. start-controllers
 * begins the election, and returns at once: without a leader nothing is bootstrapped. The two hooks
 * after it wait for what the ledger says, whoever leads; an instance that does not contend
 * (--leader-elect=false) has them too.
 */
#include <stdio.h>
#include <string.h>

#include "server/server.h"

#define RETRY (500 * HF_NSEC_PER_MSEC)

static int ensure_namespace(struct hf_hook_context *context, const char *name,
                            struct hf_status *reterr_status) {
        static const struct hf_resource namespaces = {"", "v1", "namespaces"};
        char body[256];
        int n = snprintf(body, sizeof body,
                         "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%"
                         "s\"}}",
                         name);
        struct hf_request get = {.verb = HF_VERB_GET, .resource = namespaces, .name = name};
        struct hf_request create = {.verb = HF_VERB_CREATE,
                                    .resource = namespaces,
                                    .body = body,
                                    .n_body = (size_t)n};
        struct hf_cancel *token = hf_hook_shutting_down(context);

        int r = hf_client_do(hf_hook_client(context), &get, token, NULL, NULL, reterr_status);
        if (r == HF_E_NOT_FOUND)
                r = hf_client_do(hf_hook_client(context), &create, token, NULL, NULL,
                                 reterr_status);
        return r == HF_E_EXISTS ? 0 : r;
}

static int start_system_namespaces(struct hf_hook_context *context, void *ctx,
                                   struct hf_status *reterr_status) {
        static const char *const names[] = {"kube-system", "kube-public", "kube-node-lease",
                                            "default"};
        struct hfd_server *server = ctx;

        for (size_t i = 0; i < sizeof names / sizeof *names;) {
                int r = ensure_namespace(context, names[i], reterr_status);
                if (r == 0) {
                        i++;
                        continue;
                }
                /* The store may stumble at start as at any time: it is asked until the hook's
                 * deadline. */
                if (hf_cancel_wait(hf_hook_shutting_down(context),
                                   hf_now(hf_host_clock(&server->host)) + RETRY) == HF_E_CANCELED)
                        return HF_E_CANCELED;
        }
        return 0;
}

int hfd_server_hooks_add(struct hfd_server *server, struct hf_status *reterr_status) {
        static const char *const before_controllers[] = {"system-namespaces", NULL},
                                 *const before_bootstrap[] = {"start-controllers", NULL};
        struct hf_hook namespaces = {.name = "system-namespaces",
                                     .start = start_system_namespaces,
                                     .ctx = server};
        int r = hf_hooks_add(server->hooks, &namespaces, HF_HOOKS_HERE, reterr_status);

        /* --leader-elect=false: this instance serves only, it neither contends nor runs
         * controllers. */
        if (r == 0 && server->config->leader_elect)
                r = hf_controllers_install(server->hooks, server->electors, before_controllers,
                                           reterr_status);
        if (r != 0)
                return r;
        return hf_bootstrap_install(server->bootstrap, server->hooks,
                                    server->config->leader_elect ? before_bootstrap
                                                                 : before_controllers,
                                    reterr_status);
}

/* On the elector's loop: the run file is a few hundred bytes on a tmpfs, all else is a flag and a
 * wake-up. */
void hfd_server_leader_changed(void *host, const struct hf_leader_info *info) {
        struct hfd_server *server = host;
        bool may_hold = info->term != 0 && info->state != HF_FOLLOWING && info->state != HF_STOPPED;
        struct hf_fence leads = {.term = info->term};

        /* Log lines bear the term until its work has ended: info->term is 0 from the moment at
         * which the term is over. */
        if (info->term != 0 || info->state == HF_FOLLOWING || info->state == HF_STOPPED)
                hfd_log_sink_set_term(&server->log_sink, info->term);
        /* While the Lease may name us, the file tells `holdfastd release` what to free should we
         * die. */
        memcpy(leads.ns, info->ns, sizeof leads.ns);
        memcpy(leads.name, info->name, sizeof leads.name);
        memcpy(leads.identity, info->identity, sizeof leads.identity);
        if (server->config->migrate_from[0]) {
                const char *ns = server->config->migrate_from_ns;
                (void)snprintf(leads.also_ns, sizeof leads.also_ns, "%s", ns[0] ? ns : info->ns);
                (void)snprintf(leads.also_name, sizeof leads.also_name, "%s",
                               server->config->migrate_from);
        }
        int r = hfd_runfile_write(server->runfile, may_hold ? &leads : NULL);
        if (r != 0)
                hf_log(&server->host.log, HF_LOG_WARNING, "holdfastd",
                       "run file in %s: %s; a crash now costs a lease duration",
                       server->config->runtime_dir, hf_strerror(r));
        if (info->state == HF_STUCK)
                atomic_store(&server->stuck, true);
        hfd_server_wake(server);
}
