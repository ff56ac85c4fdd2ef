/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the plug-ins of admission, and puts them into the chain through which every write goes.
 *
 * Invariants: the chain does not change once the feed runs, because requests read it without a
 * lock. Its order is that of kube-apiserver: what mutates comes before what validates, and policies
 * before webhooks. Plug-ins of the command line come first.
 */
#include "server/configured_admission/configured_admission.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/cacher/feed/feed.h"
#include "server/process/flag_files.h"
#include "server/server.h"

#define WEBHOOK_CALLS_MIN 16 /* calls of one webhook at a time that are always allowed */

/* The calls of one webhook that may run at a time: a quarter of --max-mutating-requests-inflight,
 * but at least WEBHOOK_CALLS_MIN. So a webhook that hangs does not hold all requests that the
 * server runs at a time, and requests that do not need the webhook continue. */
static size_t max_webhook_calls(const struct hfd_config *config) {
        size_t n = (size_t)config->max_mutating_requests_inflight / 4;

        return n > WEBHOOK_CALLS_MIN ? n : WEBHOOK_CALLS_MIN;
}

static int make_policies(struct hfd_server *server) {
        struct hfd_work_pool *work = server->registry->work;
        int r = hfd_policy_plugin_new(&server->host, server->cacher, work, true,
                                      &server->mutating_policies);

        if (r != 0)
                return r;
        return hfd_policy_plugin_new(&server->host, server->cacher, work, false,
                                     &server->validating_policies);
}

static int make_webhooks(struct hfd_server *server) {
        const struct hfd_webhooks_config config = {.cacher = server->cacher,
                                                   .outbound = server->outbound,
                                                   .pool = server->registry->work,
                                                   .services = server->services,
                                                   .max_calls = max_webhook_calls(server->config)};
        int r = hfd_webhooks_new(&server->host, &config, true, &server->mutating_webhooks);

        if (r != 0)
                return r;
        return hfd_webhooks_new(&server->host, &config, false, &server->validating_webhooks);
}

int hfd_configured_admission_load(struct hfd_server *server, struct hf_status *reterr_status) {
        const char *text = server->config->admission_plugins;
        char *paths = strdup(text ? text : ""), *save = NULL;
        assert(!server->c_plugins[0]); /* this function is called once */
        size_t n = 0;
        int r = paths ? 0 : -ENOMEM;

        for (char *path = r == 0 ? strtok_r(paths, ",", &save) : NULL; path && r == 0;
             path = strtok_r(NULL, ",", &save)) {
                if (n == HFD_C_PLUGINS_MAX) {
                        r = hf_fail(reterr_status, HF_E_INVALID,
                                    "flag --admission-plugin: more than %d files",
                                    HFD_C_PLUGINS_MAX);
                        break;
                }
                r = hfd_flag_result("admission-plugin",
                                    hfd_c_plugin_load(path, &server->c_plugins[n], reterr_status),
                                    reterr_status);
                if (r != 0)
                        break;
                const struct hfd_admission_plugin plugin =
                        hfd_c_plugin_of_chain(server->c_plugins[n++]);
                hfd_admission_chain_add(&server->admission, &plugin);
        }
        free(paths);
        return r;
}

int hfd_configured_admission_make(struct hfd_server *server) {
        assert(!server->mutating_policies && !server->mutating_webhooks && !server->admission_feed);
        int r = make_policies(server);

        if (r == 0)
                r = make_webhooks(server);
        if (r != 0)
                return r;
        const struct hfd_admission_plugin plugins[] =
                {hfd_policy_plugin_of_chain(server->mutating_policies),
                 hfd_webhooks_plugin(server->mutating_webhooks),
                 hfd_policy_plugin_of_chain(server->validating_policies),
                 hfd_webhooks_plugin(server->validating_webhooks)};
        for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++)
                hfd_admission_chain_add(&server->admission, &plugins[i]);
        server->admission.cacher = server->cacher;
        server->registry->admission = &server->admission;
        return hfd_admission_feed_new(&server->host, &server->admission, server->cacher,
                                      &server->admission_feed);
}

/* The feed comes first: its thread gives new configurations to the plug-ins. */
void hfd_configured_admission_free(struct hfd_server *server) {
        server->admission_feed = hfd_feed_free(server->admission_feed);
        for (size_t i = 0; i < HFD_C_PLUGINS_MAX; i++)
                server->c_plugins[i] = hfd_c_plugin_free(server->c_plugins[i]);
        server->mutating_webhooks = hfd_webhooks_free(server->mutating_webhooks);
        server->validating_webhooks = hfd_webhooks_free(server->validating_webhooks);
        server->mutating_policies = hfd_policy_plugin_free(server->mutating_policies);
        server->validating_policies = hfd_policy_plugin_free(server->validating_policies);
}
