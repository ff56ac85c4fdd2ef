/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status line shows the one fact that an operator needs most, which is the first one of this
 * list that applies: the server stops; it waits for the store; a controller is stuck; the bootstrap
 * runs or fails; the server waits for the bootstrap; the current leader.
 *
 * Invariant: docs/operating.md lists the texts and what to do about them, so both must change
 * together.
 */
#include "server/status_line.h"

#include <stdio.h>

#include "server/server.h"

/* Formats the bootstrap phase that this instance applies as the leader. False: there is none. */
static bool format_running_phase(struct hf_bootstrap *bootstrap, char *text) {
        struct hf_bootstrap_info info = {.size = sizeof info};
        size_t n = hf_bootstrap_n_phases(bootstrap);

        for (size_t i = 0; i < n; i++) {
                hf_bootstrap_info(bootstrap, i, &info);
                if (info.failing)
                        (void)snprintf(text, HFD_STATUS_LINE_MAX, "bootstrap %s fails, try %u: %s",
                                       info.phase, info.n_failures, info.message);
                else if (info.running && !info.complete)
                        (void)snprintf(text, HFD_STATUS_LINE_MAX, "bootstrap %s, %zu of %zu steps",
                                       info.phase, info.n_settled, info.n_steps);
                else
                        continue;
                return true;
        }
        return false;
}

/* Writes that this server waits for the first bootstrap phase, which the leader must complete, in
 * this process or another. False: it does not wait. */
static bool format_awaited_phase(struct hfd_server *server, char *text) {
        struct hf_bootstrap_info info = {.size = sizeof info};

        if (atomic_load(&server->ready))
                return false;
        hf_bootstrap_info(server->bootstrap, 0, &info);
        if (info.complete)
                return false;
        (void)snprintf(text, HFD_STATUS_LINE_MAX, "waiting for the leader to complete bootstrap %s",
                       info.phase);
        return true;
}

static void format_leadership(const struct hf_leader_info *info, char *text) {
        if (info->state == HF_LEADING)
                (void)snprintf(text, HFD_STATUS_LINE_MAX, "leading %.60s/%.60s, term %llu",
                               info->ns, info->name, (unsigned long long)info->term);
        else
                (void)snprintf(text, HFD_STATUS_LINE_MAX, "following %.100s",
                               info->holder[0] ? info->holder : "nobody");
}

void hfd_status_line_format(struct hfd_server *server, char text[HFD_STATUS_LINE_MAX]) {
        struct hf_leader_info info = {.size = sizeof info};
        char store[HFD_STORE_NAME_MAX];

        hf_elector_info(server->elector, &info);
        hfd_config_store_name(server->config, store);
        if (hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED))
                (void)snprintf(text, HFD_STATUS_LINE_MAX, "stopping");
        else if (atomic_load(&server->waiting_for_store))
                (void)snprintf(text, HFD_STATUS_LINE_MAX, "waiting for %.170s", store);
        else if (info.state == HF_STUCK)
                (void)snprintf(text, HFD_STATUS_LINE_MAX, "stuck: controller %s does not stop",
                               info.stuck_controller);
        else if (!format_running_phase(server->bootstrap, text) &&
                 !format_awaited_phase(server, text))
                format_leadership(&info, text);
}
