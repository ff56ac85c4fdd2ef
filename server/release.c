/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd release`: frees the Lease of an instance that is known to be dead, so that a crash
 * costs milliseconds and not a lease duration. Run by systemd from ExecStopPost, or by hand.
 *
 * Known to be dead means: its run file's lock could be taken. The lock is the kernel's and goes
 * with the last of the process, so a process that hangs, is stopped or will not die still holds it,
 * and the release is refused. What may be cleared is exactly the Lease, identity and term that the
 * run file names, in one transaction that compares the term record; another incarnation's Lease, or
 * a later term, is left untouched. In a migration the old Lease follows, whichever term of that
 * identity it is in: an identity is one incarnation's, and this one is dead. It speaks to the
 * instance's own store, never to another API server.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"
#include "server/auth/files.h"
#include "server/server.h"
#include "server/storage/etcd/store.h"
#include "server/storage/keys.h"
#include "server/storage/term_record.h"

#define DEADLINE (5 * HF_NSEC_PER_SEC)

/* One store operation, waited for. */
struct wait {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;             /* guarded by mu */
        int error;             /* likewise, as all below */
        struct hf__buf *value; /* of the first key found; owned */
        uint64_t mod_revision;
        struct hf_status status;
};

static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct wait *wait = ctx;

        (void)pthread_mutex_lock(&wait->mu);
        wait->error = reply->error;
        wait->status = reply->status;
        if (reply->n_kvs > 0) {
                wait->value = hf__buf_ref(reply->kvs[0].value);
                wait->mod_revision = reply->kvs[0].mod_revision;
        }
        wait->done = true;
        (void)pthread_cond_signal(&wait->cond);
        (void)pthread_mutex_unlock(&wait->mu);
}

static int wait_done(struct wait *wait, const struct hf_host *host) {
        const struct hf_clock *clock = hf_host_clock(host);

        (void)pthread_mutex_lock(&wait->mu);
        /* The store answers by the operation's deadline, always: no limit of its own. */
        while (!wait->done)
                (void)clock->wait(clock->ctx, &wait->cond, &wait->mu, HF_NSEC_NEVER);
        wait->done = false;
        (void)pthread_mutex_unlock(&wait->mu);
        return wait->error;
}

/* The Lease as a release leaves it: no holder, one second, times now; everything else as it was. */
static struct hf__buf *cleared(const struct hf__buf *lease, const char *now, const char *identity) {
        struct hf__json *json;
        struct hf__strbuf text = {0};
        struct hf__buf *buf = NULL;

        if (hf__json_parse(lease->data, lease->n, &json, NULL) != 0)
                return NULL;
        const char *holder = hf__json_string(json, "spec.holderIdentity");
        if (holder && strcmp(holder, identity) == 0 &&
            hf__json_set_string(json, "spec.holderIdentity", "") == 0 &&
            hf__json_set_i64(json, "spec.leaseDurationSeconds", 1) == 0 &&
            hf__json_set_string(json, "spec.acquireTime", now) == 0 &&
            hf__json_set_string(json, "spec.renewTime", now) == 0) {
                hf__json_print(json, &text);
                buf = hf__strbuf_to_buf(&text);
        }
        hf__strbuf_done(&text);
        hf__json_free(json);
        return buf;
}

static int commit(struct hfd_store *store, struct wait *wait, const char *prefix,
                  const struct hf_fence *fence, const char *lease_key, struct hf__buf *lease,
                  const char *now, hf_nsec deadline) {
        struct hfd_fence_compares fenced;
        struct hf__buf *record = hfd_term_record_value("", now);
        int r = record ? hfd_fence_compares(&fenced, prefix, fence) : -ENOMEM;

        if (r == 0) {
                struct hfd_compare compares[3] = {{.kind = HFD_MOD_EQUALS,
                                                   .key = lease_key,
                                                   .revision = wait->mod_revision},
                                                  fenced.compares[0],
                                                  fenced.compares[1]};
                struct hfd_op ops[2] = {{.kind = HFD_PUT, .key = lease_key, .value = lease},
                                        {.kind = HFD_PUT, .key = fenced.key[0], .value = record}};
                struct hfd_txn txn = {.compares = compares,
                                      .n_compares = 3,
                                      .ops = ops,
                                      .n_ops = 2};
                wait->value = hf__buf_unref(wait->value);
                r = store->ops->txn(store, &txn, deadline, on_reply, wait);
        }
        hf__buf_unref(record);
        return r != 0 ? r : wait_done(wait, store->host);
}

static int get(struct hfd_store *store, struct wait *wait, const char *key, hf_nsec deadline) {
        wait->value = hf__buf_unref(wait->value);
        int r = store->ops->get(store, key, deadline, on_reply, wait);
        return r != 0 ? r : wait_done(wait, store->host);
}

/* The term that a Lease is in now, whoever holds it. */
static int find_term(struct hfd_store *store, struct wait *wait, const char *prefix,
                     struct hf_fence *fence, hf_nsec deadline) {
        char key[HFD_KEY_MAX];
        int r = hfd_key_terms(key, prefix, fence->ns, fence->name);

        if (r == 0)
                r = get(store, wait, key, deadline);
        fence->term = wait->mod_revision;
        return r != 0 ? r : wait->value ? 0 : HF_E_STALE_TERM;
}

/* fence->term 0 = the one that it is in. 0 released; HF_E_STALE_TERM: it is not that incarnation's
 * and term's any more; else a failure of the store. */
static int release(struct hfd_store *store, const char *prefix, struct hf_fence *fence,
                   struct hf_status *reterr_status) {
        struct wait wait = {.mu = PTHREAD_MUTEX_INITIALIZER};
        char key[HFD_KEY_MAX], now[HF__MICROTIME_MAX];
        const struct hf_clock *clock = hf_host_clock(store->host);
        hf_nsec deadline = hf_now(clock) + DEADLINE;
        int r = hf_cond_init(&wait.cond);

        if (r != 0)
                return r;
        (void)snprintf(key, sizeof key, "%s/leases/%s/%s", prefix, fence->ns, fence->name);
        hf__microtime_format(clock->real(clock->ctx) / 1000, now);
        if (!fence->term)
                r = find_term(store, &wait, prefix, fence, deadline);
        if (r == 0)
                r = get(store, &wait, key, deadline);
        if (r == 0) {
                struct hf__buf *lease =
                        wait.value ? cleared(wait.value, now, fence->identity) : NULL;
                r = lease ? commit(store, &wait, prefix, fence, key, lease, now, deadline)
                          : HF_E_STALE_TERM;
                hf__buf_unref(lease);
                if (r == HF_E_CONFLICT)
                        r = HF_E_STALE_TERM;
        }
        *reterr_status = wait.status;
        hf__buf_unref(wait.value);
        (void)pthread_cond_destroy(&wait.cond);
        return r;
}

static int open_store(const struct hf_host *host, const struct hfd_config *config,
                      struct hfd_store **ret_store, struct hf_status *reterr_status) {
        char *pem[3] = {NULL, NULL, NULL};
        const char *const files[3] = {config->etcd_ca_file, config->etcd_cert_file,
                                      config->etcd_key_file};
        int r = 0;

        for (int i = 0; i < 3 && r == 0; i++)
                if (files[i] && *files[i])
                        r = hfd_read_file(files[i], &pem[i], reterr_status);
        if (r == 0) {
                struct hfd_etcd_config etcd = {.endpoints =
                                                       (const char *const *)config->etcd_servers,
                                               .ca_pem = pem[0],
                                               .cert_pem = pem[1],
                                               .key_pem = pem[2]};
                r = hfd_etcd_store_new(host, &etcd, ret_store, reterr_status);
        }
        for (int i = 0; i < 3; i++)
                free(pem[i]);
        return r;
}

static int release_lease(struct hfd_store *store, const char *prefix, struct hf_fence *fence) {
        struct hf_status status = {0};
        int r = release(store, prefix, fence, &status);

        if (r == 0)
                (void)printf("released the Lease %s/%s of %s, term %llu\n", fence->ns, fence->name,
                             fence->identity, (unsigned long long)fence->term);
        else if (r == HF_E_STALE_TERM)
                (void)printf("the Lease %s/%s is no longer held by %s in term %llu: left alone\n",
                             fence->ns, fence->name, fence->identity,
                             (unsigned long long)fence->term);
        else
                (void)fprintf(stderr, "holdfastd release: cannot free the Lease %s/%s: %s\n",
                              fence->ns, fence->name,
                              *status.message ? status.message : hf_strerror(r));
        return r == 0 || r == HF_E_STALE_TERM ? 0 : 1;
}

/* Holding the dead instance's lock: frees what its run file names. */
static int release_leases(const struct hf_host *host, const struct hfd_config *config,
                          const struct hf_fence *leads) {
        struct hf_fence fence = {.term = leads->term}, also = {0};
        struct hf_status status = {0};
        struct hfd_store *store;

        int r = open_store(host, config, &store, &status);
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd release: cannot free the Lease %s/%s: %s\n",
                              leads->ns, leads->name,
                              *status.message ? status.message : hf_strerror(r));
                return 1;
        }
        memcpy(fence.ns, leads->ns, sizeof fence.ns);
        memcpy(fence.name, leads->name, sizeof fence.name);
        memcpy(fence.identity, leads->identity, sizeof fence.identity);
        int exit_status = release_lease(store, config->etcd_prefix, &fence);
        if (exit_status == 0 && leads->also_name[0]) {
                memcpy(also.ns, leads->also_ns, sizeof also.ns);
                memcpy(also.name, leads->also_name, sizeof also.name);
                memcpy(also.identity, leads->identity, sizeof also.identity);
                exit_status = release_lease(store, config->etcd_prefix, &also);
        }
        store->ops->free(store);
        return exit_status;
}

int hfd_release_main(const struct hfd_config *config) {
        struct hf_host host = {.size = sizeof host, .clock = hf_clock_system()};
        struct hfd_log_sink sink;
        struct hfd_runfile *runfile;
        struct hf_status status = {0};
        struct hf_fence fence;

        int r = hfd_runfile_read_if_dead(config->runtime_dir, config->instance, &fence, &runfile,
                                         &status);
        if (r == HF_E_NOT_FOUND)
                return 0; /* it led nothing: the usual case after a clean stop */
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd release: %s\n", status.message);
                return 1;
        }
        hfd_log_sink_init(&sink, config, &host.log);
        int exit_status = release_leases(&host, config, &fence);
        if (exit_status == 0)
                (void)hfd_runfile_write(runfile, NULL);
        hfd_runfile_free(runfile);
        return exit_status;
}
