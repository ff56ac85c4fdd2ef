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
 * but at least WEBHOOK_CALLS_MIN. So, unless the limits of requests are as low as that, a webhook
 * that hangs does not hold all requests that the server runs at a time, and requests that do not
 * need the webhook continue. */
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

/* Loads the i-th file of --admission-plugin and adds it to the chain. server NULL: only checks the
 * file. */
static int use_plugin(struct hfd_server *server, const char *path, size_t i,
                      struct hf_status *reterr_status) {
        if (i == HFD_C_PLUGINS_MAX)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "flag --admission-plugin: more than %d files", HFD_C_PLUGINS_MAX);
        int r = server ? hfd_c_plugin_load(path, &server->c_plugins[i], reterr_status)
                       : hfd_c_plugin_check(path, reterr_status);
        if (r != 0 || !server)
                return hfd_flag_result("admission-plugin", r, reterr_status);
        const struct hfd_admission_plugin plugin = hfd_c_plugin_of_chain(server->c_plugins[i]);
        hfd_admission_chain_add(&server->admission, &plugin);
        return 0;
}

/* server: as for use_plugin. */
static int use_plugins(struct hfd_server *server, const char *text,
                       struct hf_status *reterr_status) {
        char *paths = strdup(text ? text : ""), *save = NULL;
        size_t n = 0;

        if (!paths)
                return hf_fail(reterr_status, -ENOMEM, "%s", hf_strerror(-ENOMEM));
        int r = 0;
        for (char *path = strtok_r(paths, ",", &save); path && r == 0;
             path = strtok_r(NULL, ",", &save))
                r = use_plugin(server, path, n++, reterr_status);
        free(paths);
        return r;
}

int hfd_configured_admission_load(struct hfd_server *server, struct hf_status *reterr_status) {
        assert(!server->c_plugins[0]); /* it is called once */
        return use_plugins(server, server->config->admission_plugins, reterr_status);
}

int hfd_configured_admission_check(const struct hfd_config *config,
                                   struct hf_status *reterr_status) {
        return use_plugins(NULL, config->admission_plugins, reterr_status);
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
