/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records a change of leadership that the elector reports: in the run file, the log fields and the
 * status line of systemd.
 *
 * Invariant: while this process leads a term, the run file names the Lease, the identity and the
 * term, because `holdfastd release` frees exactly that term after a crash. If the file cannot be
 * written, this is logged, and the term goes on. With --storage=memory there is no run file.
 */
#include "server/leadership.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "server/server.h"

/* Returns what the run file must name. In a migration this includes the old Lease. */
static struct hf_fence make_fence(const struct hfd_server *server,
                                  const struct hf_leader_info *info) {
        const struct hfd_config *config = server->config;
        struct hf_fence fence = {.term = info->term};

        memcpy(fence.ns, info->ns, sizeof fence.ns);
        memcpy(fence.name, info->name, sizeof fence.name);
        memcpy(fence.identity, info->identity, sizeof fence.identity);
        if (config->migrate_from[0]) {
                const char *ns = config->migrate_from_ns[0] ? config->migrate_from_ns : info->ns;
                (void)snprintf(fence.also_ns, sizeof fence.also_ns, "%s", ns);
                (void)snprintf(fence.also_name, sizeof fence.also_name, "%s", config->migrate_from);
        }
        return fence;
}

/* The elector's loop waits for this function, so it must be fast: it writes some hundred bytes to
 * the run file, which is normally on a tmpfs, sets flags and wakes main. */
void hfd_leadership_changed(void *ctx, const struct hf_leader_info *info) {
        struct hfd_server *server = ctx;
        bool idle = info->state == HF_FOLLOWING || info->state == HF_STOPPED;

        /* info->term is 0 as soon as the term is over. Log lines keep its number until the
         * controllers of the term have stopped too. */
        if (info->term != 0 || idle)
                hfd_log_sink_set_term(&server->log_sink, info->term);
        struct hf_fence fence = make_fence(server, info);
        const struct hf_fence *leads = info->term != 0 && !idle ? &fence : NULL;
        int r = server->runfile ? hfd_runfile_write(server->runfile, leads) : 0;
        if (r != 0)
                hf_log(&server->host.log, HF_LOG_WARNING, "holdfastd",
                       "cannot write the run file in %s: %s; if this process crashes, its Lease "
                       "is not released but expires",
                       server->config->runtime_dir, hf_strerror(r));
        /* Never reset: main ends the process even if the controller stops later. */
        if (info->state == HF_STUCK)
                atomic_store(&server->stuck, true);
        hfd_server_wake(server);
}

void hfd_leadership_end_term(void *ctx) {
        struct hfd_server *server = ctx;

        pthread_mutex_lock(&server->elector_mu);
        if (server->elector) /* NULL: the server is being freed, and does not lead any more */
                hf_elector_end_term(server->elector);
        pthread_mutex_unlock(&server->elector_mu);
}

void hfd_leadership_forget_elector(struct hfd_server *server) {
        pthread_mutex_lock(&server->elector_mu);
        server->elector = NULL;
        pthread_mutex_unlock(&server->elector_mu);
}
