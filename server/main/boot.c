/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boot. The server accepts connections before the store is reachable, so that health checks can
 * report that it waits. Hooks run only after the cache has been filled once, so that they see the
 * contents of the store.
 *
 * Invariant: every wait here ends soon after the stop token fires. Main then also calls
 * hf_hooks_shut_down, so that hf_hooks_start returns.
 */
#include "server/main/boot.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "server/cacher/feed/kind_feed.h"
#include "server/certificates/certificates.h"
#include "server/process/flag_files.h"
#include "server/server.h"
#include "server/storage/copy_source.h"

/* How long the store may be unreachable at the start, how long it may take to send further objects,
 * how long refuse_incomplete_copy repeats a read that fails, and how long the feed of kinds may
 * take. */
#define STORE_TIMEOUT (60 * HF_NSEC_PER_SEC)
/* How often wait_and_log checks whether the reason for its wait has changed, and how often
 * refuse_incomplete_copy repeats its read, which may take as long. */
#define STORE_LOG_INTERVAL (2 * HF_NSEC_PER_SEC)
/* How often to ask the feed of kinds whether it has finished. It is polled, because it offers no
 * wait that the stop token ends. Its first run takes a few milliseconds, so a longer interval would
 * delay every start. */
#define KINDS_INTERVAL (2 * HF_NSEC_PER_MSEC)

static int write_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_certificates_write_kubeconfig(server, reterr_status);

        if (r == 0)
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "serving %s; kubeconfig %s",
                       server->identity.endpoint, server->config->admin_kubeconfig);
        else if (hfd_flag_is_mistake(r))
                atomic_store(&server->exit_status, 2);
        return r;
}

/* Waits until the cache is filled, or until `until` (CLOCK_BOOTTIME). HF_E_CANCELED: `until` has
 * passed, or the stop token has fired; *ret_why is then the store's latest failure, or how far the
 * cache is filled. -EBADMSG: the file of the store is damaged; *ret_why says how. -ENOMEM: without
 * a reason in *ret_why. */
static int wait_for_sync(struct hfd_server *server, hf_nsec until, struct hf_status *ret_why) {
        struct hf_cancel *token;
        int r = hf_cancel_new(server->stop, hf_host_clock(&server->host), &token);

        if (r != 0)
                return r;
        hf_cancel_set_deadline(token, until);
        r = hfd_cacher_wait_synced(server->cacher, token, ret_why);
        hf_cancel_unref(token);
        return r;
}

/*
 * When the boot gives up. STORE_TIMEOUT counts from `started`, or from the later time when the
 * cache last had more objects than ever before, because the time to fill it grows with their
 * number.
 */
static hf_nsec patience_ends(struct hfd_server *server, hf_nsec started) {
        hf_nsec progress = hfd_cacher_fill_progress(server->cacher);

        return (progress > started ? progress : started) + STORE_TIMEOUT;
}

/* Waits as wait_for_sync does, but until the boot gives up, in steps of STORE_LOG_INTERVAL. After
 * each step it logs the reason for the wait if that has changed. */
static int wait_and_log(struct hfd_server *server, struct hf_status *ret_why) {
        struct hf_status logged = {0};
        hf_nsec started = hfd_server_now(server);
        char store[HFD_STORE_NAME_MAX];

        hfd_config_store_name(server->config, store);

        for (;;) {
                hf_nsec now = hfd_server_now(server), until = patience_ends(server, started);
                hf_nsec step_end =
                        now + STORE_LOG_INTERVAL < until ? now + STORE_LOG_INTERVAL : until;
                int r = wait_for_sync(server, step_end, ret_why);

                if (r != HF_E_CANCELED || hf_cancel_fired(server->stop))
                        return r;
                if (strcmp(ret_why->message, logged.message) != 0) {
                        hf_log(&server->host.log, HF_LOG_WARNING, "holdfastd", "waiting for %s: %s",
                               store, ret_why->message);
                        logged = *ret_why;
                }
                if (hfd_server_now(server) >= patience_ends(server, started))
                        return r;
        }
}

/* Reports a damaged file. Exit status 2, because neither time nor a restart mends the file. */
static int fail_damaged(struct hfd_server *server, const char *why,
                        struct hf_status *reterr_status) {
        const char *path = server->config->store_file;

        atomic_store(&server->exit_status, 2);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "%.200s is damaged (%.100s): move it away, and make a new file from a "
                       "backup with `holdfastd store restore`; `holdfastd store check` says more",
                       path, why);
}

static int wait_for_store(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hf_status why = {0};
        char store[HFD_STORE_NAME_MAX];

        hfd_config_store_name(server->config, store);
        atomic_store(&server->waiting_for_store, true);
        hfd_server_wake(server);
        int r = wait_and_log(server, &why);
        atomic_store(&server->waiting_for_store, false);
        if (r == HF_E_CANCELED && !hf_cancel_fired(server->stop))
                r = hf_fail(reterr_status, HF_E_UNAVAILABLE,
                            "flag --%s: %s did not respond within %d s: %s",
                            server->config->n_etcd_servers > 0 ? "etcd-servers" : "store", store,
                            (int)(STORE_TIMEOUT / HF_NSEC_PER_SEC), why.message);
        else if (r == -EBADMSG && hf_cancel_fired(server->stop))
                r = HF_E_CANCELED;
        else if (r == -EBADMSG)
                r = fail_damaged(server, why.message, reterr_status);
        else if (r != 0 && r != HF_E_CANCELED)
                r = hf_fail(reterr_status, r, "cannot wait for %s: %s", store, hf_strerror(r));
        return r;
}

/* Fails if the store is a copy that `holdfastd store copy` has not completed. Objects may be
 * missing in it, and a controller would, for example, delete what belongs to them. */
static int refuse_incomplete_copy(struct hfd_server *server, struct hf_status *reterr_status) {
        hf_nsec until = hfd_server_now(server) + STORE_TIMEOUT;
        char store[HFD_STORE_NAME_MAX];
        struct hf_status why = {0};
        bool incomplete = false;
        int r;

        hfd_config_store_name(server->config, store);
        for (;;) {
                hf_nsec step_end = hfd_server_now(server) + STORE_LOG_INTERVAL;

                r = hfd_copy_is_incomplete(server->store, server->config->etcd_prefix, step_end,
                                           &incomplete, &why);
                if ((r != HF_E_UNAVAILABLE && r != HF_E_TIMEOUT) || step_end >= until)
                        break;
                if (hf_cancel_wait(server->stop, step_end) == HF_E_CANCELED)
                        return HF_E_CANCELED;
        }
        if (r != 0 && r != HF_E_CANCELED)
                return hf_fail(reterr_status, r, "cannot read %s: %s", store, why.message);
        if (incomplete)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is a copy that was not completed: if holdfastd store copy is "
                               "no longer running, empty the store and copy again",
                               store);
        return r;
}

/* Waits until the kinds of all stored definitions are served, so that clients and the informers of
 * the controllers find them from the start. */
static int wait_for_kinds(struct hfd_server *server, struct hf_status *reterr_status) {
        hf_nsec until = hfd_server_now(server) + STORE_TIMEOUT;

        while (!hfd_kind_feed_synced(server->kind_feed)) {
                hf_nsec now = hfd_server_now(server);

                if (now >= until)
                        return hf_fail(reterr_status, HF_E_UNAVAILABLE,
                                       "cannot read the CustomResourceDefinitions within %d s",
                                       (int)(STORE_TIMEOUT / HF_NSEC_PER_SEC));
                if (hf_cancel_wait(server->stop, now + KINDS_INTERVAL) == HF_E_CANCELED)
                        return HF_E_CANCELED;
        }
        return 0;
}

static int start_controllers(struct hfd_server *server, struct hf_status *reterr_status) {
        int r = hfd_controllers_start(server->controllers);

        return r != 0 ? hf_fail(reterr_status, r, "cannot start the controllers: %s",
                                hf_strerror(r))
                      : 0;
}

int hfd_boot_run(struct hfd_server *server, struct hf_status *reterr_status) {
        assert(server->cacher && server->http && server->controllers && server->hooks);
        int r = hfd_authorizer_start(server->authorizer, server->cacher);
        if (r == 0)
                r = hfd_flow_control_start(server->flow, server->cacher);
        if (r == 0)
                r = hfd_service_accounts_start(server->service_accounts);
        if (r == 0)
                r = hfd_cacher_start(server->cacher);
        if (r == 0)
                r = hfd_http_start(server->http);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot start serving: %s", hf_strerror(r));
        hfd_lifecycle_signal(&server->lifecycle, HFD_MUX_AND_DISCOVERY_COMPLETE);
        r = write_kubeconfig(server, reterr_status);
        if (r == 0)
                r = wait_for_store(server, reterr_status);
        if (r == 0)
                r = refuse_incomplete_copy(server, reterr_status);
        if (r == 0)
                r = wait_for_kinds(server, reterr_status);
        if (r == 0)
                r = start_controllers(server, reterr_status);
        if (r == 0)
                r = hf_hooks_start(server->hooks, reterr_status);
        if (r == 0) {
                atomic_store(&server->ready, true);
                hfd_server_wake(server);
        }
        return r;
}
