/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfastd release` frees the Lease of a dead instance, so that another instance can lead within
 * milliseconds instead of a lease duration. systemd runs it from ExecStopPost; an operator may run
 * it by hand.
 *
 * Invariants:
 * - The instance is dead. Proof: this process has got the lock of the instance's run file, which
 *   the instance frees at the end of its shutdown, or the kernel when the instance dies. While the
 *   instance hangs or is paused, the release fails. The lock is held until the end, so that the
 *   instance cannot start during the release.
 * - Only what the run file names is released: this Lease, this identity, this term. One transaction
 *   compares the term record and the Lease. The Lease of another process or of a later term does
 *   not change.
 *
 * During a migration from one Lease to another, the run file also names the old one, but without
 * its term. The old Lease is released in any term of the same identity: an identity belongs to one
 * process, which is dead.
 *
 * The command uses the instance's store directly, because the instance's API server is dead too.
 */
#include "server/release/release.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/process/flag_files.h"
#include "server/process/runfile.h"
#include "server/storage/keys.h"
#include "server/storage/store.h"
#include "server/storage/term_record.h"
#include "server/storage/waiter.h"
#include "server/store/configured_store.h"
#include "server/systemd/log_sink.h"

/* The time limit for all operations of the release of one Lease. */
#define DEADLINE (5 * HF_NSEC_PER_SEC)

/* The release of one Lease. It sends one request at a time to the store and waits for the reply. */
struct release {
        struct hfd_store *store;     /* borrowed */
        const char *prefix;          /* prefix of all keys; borrowed */
        hf_nsec deadline;            /* boot time */
        char now[HF__MICROTIME_MAX]; /* the time of the release, in the format of a Lease */
        struct hfd_waiter waiter;
        struct hfd_result result; /* of the latest operation */
};

/* Reads a key. *ret_kv: the key with its value, valid until the next operation; NULL if there is no
 * such key. */
static int read_key(struct release *release, const char *key, const struct hfd_kv **ret_kv) {
        hfd_waiter_begin(&release->waiter, &release->result);
        int r = release->store->ops->get(release->store, key, false, release->deadline,
                                         hfd_result_fill, &release->result);

        r = hfd_waiter_end(&release->waiter, &release->result, r);
        *ret_kv = r == 0 && release->result.n_kvs > 0 ? release->result.kvs : NULL;
        return r;
}

/* Sets *ret_released to a copy of the Lease without a holder, with a duration of one second and the
 * current time, as client-go writes it when it releases. Everything else is unchanged. 0, -ENOMEM,
 * or HF_E_STALE_TERM: identity does not hold the Lease, or the value is not a Lease. */
static int make_released_lease(const struct hf__buf *lease, const char *identity, const char *now,
                               struct hf__buf **ret_released) {
        struct hf__json *json;
        struct hf__strbuf text = {0};
        int r = hf__json_parse(lease->data, lease->n, &json, NULL);

        if (r != 0)
                return r == -ENOMEM ? r : HF_E_STALE_TERM;
        const char *holder = hf__json_string(json, "spec.holderIdentity");
        r = holder && strcmp(holder, identity) == 0 ? 0 : HF_E_STALE_TERM;
        if (r == 0)
                r = hf__json_set_string(json, "spec.holderIdentity", "");
        if (r == 0)
                r = hf__json_set_i64(json, "spec.leaseDurationSeconds", 1);
        if (r == 0)
                r = hf__json_set_string(json, "spec.acquireTime", now);
        if (r == 0)
                r = hf__json_set_string(json, "spec.renewTime", now);
        if (r == 0) {
                hf__json_print(json, &text);
                *ret_released = hf__strbuf_to_buf(&text);
                r = *ret_released ? 0 : -ENOMEM;
        }
        hf__strbuf_done(&text);
        hf__json_free(json);
        return r;
}

/* Writes the Lease without its holder and ends the term, in one transaction. revision: that of the
 * Lease that was read. HF_E_CONFLICT: the Lease or the term has changed since then. */
static int commit_release(struct release *release, const struct hf_fence *fence,
                          const char *lease_key, uint64_t revision, struct hf__buf *lease) {
        assert(revision > 0 && lease);
        struct hfd_fence_compares fenced;
        struct hf__buf *record = hfd_term_record_value("", release->now);
        int r = record ? hfd_fence_compares(&fenced, release->prefix, fence) : -ENOMEM;

        if (r == 0) {
                struct hfd_compare compares[] = {{.kind = HFD_MOD_EQUALS,
                                                  .key = lease_key,
                                                  .revision = revision},
                                                 fenced.compares[0],
                                                 fenced.compares[1]};
                struct hfd_op ops[] = {{.kind = HFD_PUT, .key = lease_key, .value = lease},
                                       {.kind = HFD_PUT, .key = fenced.key[0], .value = record}};
                struct hfd_txn txn = {.compares = compares,
                                      .n_compares = sizeof compares / sizeof compares[0],
                                      .ops = ops,
                                      .n_ops = sizeof ops / sizeof ops[0]};
                hfd_waiter_begin(&release->waiter, &release->result);
                r = release->store->ops->txn(release->store, &txn, release->deadline,
                                             hfd_result_fill, &release->result);
                r = hfd_waiter_end(&release->waiter, &release->result, r);
        }
        hf__buf_unref(record);
        return r;
}

/* Sets fence->term to the Lease's current term. HF_E_STALE_TERM: the Lease has no term record. */
static int read_term(struct release *release, struct hf_fence *fence) {
        const struct hfd_kv *record = NULL;
        char key[HFD_KEY_MAX];
        int r = hfd_key_term_record(key, release->prefix, fence->ns, fence->name);

        if (r == 0)
                r = read_key(release, key, &record);
        if (r != 0)
                return r;
        if (!record)
                return HF_E_STALE_TERM;
        fence->term = record->mod_revision;
        return 0;
}

/* Reads and releases the Lease. Returns what run_release returns. */
static int release_in_store(struct release *release, struct hf_fence *fence) {
        char key[HFD_KEY_MAX];
        int n = snprintf(key, sizeof key, "%s/leases/%s/%s", release->prefix, fence->ns,
                         fence->name);
        const struct hfd_kv *held = NULL;
        struct hf__buf *lease = NULL;
        int r = 0;

        if (n < 0 || (size_t)n >= sizeof key)
                return HF_E_TOO_LARGE;
        if (fence->term == 0)
                r = read_term(release, fence);
        if (r == 0)
                r = read_key(release, key, &held);
        if (r != 0)
                return r;
        r = held ? make_released_lease(held->value, fence->identity, release->now, &lease)
                 : HF_E_STALE_TERM;
        if (r == 0)
                r = commit_release(release, fence, key, held->mod_revision, lease);
        hf__buf_unref(lease);
        return r == HF_E_CONFLICT ? HF_E_STALE_TERM : r;
}

/* Releases one Lease. fence->term 0 = the current term, which is then stored there. Returns 0 or
 * HF_E_STALE_TERM: the Lease no longer has this identity and term. Otherwise memory ran out, a name
 * is too long or the store failed, and *reterr_status has the reason if the store gave one. */
static int run_release(struct hfd_store *store, const char *prefix, struct hf_fence *fence,
                       struct hf_status *reterr_status) {
        const struct hf_clock *clock = hf_host_clock(store->host);
        struct release release = {.store = store,
                                  .prefix = prefix,
                                  .deadline = hf_now(clock) + DEADLINE};
        int r = hfd_waiter_init(&release.waiter, store->host);

        if (r != 0)
                return r;
        hf__microtime_format(clock->real(clock->ctx) / 1000, release.now);
        r = release_in_store(&release, fence);
        *reterr_status = release.result.status;
        hfd_result_deinit(&release.result);
        hfd_waiter_deinit(&release.waiter);
        return r;
}

static void print_failure(const struct hf_fence *fence, int r, const struct hf_status *status) {
        (void)fprintf(stderr, "holdfastd release: cannot free the Lease %s/%s: %s\n", fence->ns,
                      fence->name, status->message[0] ? status->message : hf_strerror(r));
}

/* Releases one Lease and prints the result. Returns the exit status. */
static int release_lease(struct hfd_store *store, const char *prefix, struct hf_fence *fence) {
        struct hf_status status = {0};
        int r = run_release(store, prefix, fence, &status);

        if (r == 0)
                (void)printf("released the Lease %s/%s of %s, term %llu\n", fence->ns, fence->name,
                             fence->identity, (unsigned long long)fence->term);
        else if (r == HF_E_STALE_TERM)
                (void)printf("the Lease %s/%s is no longer held by %s in term %llu: left alone\n",
                             fence->ns, fence->name, fence->identity,
                             (unsigned long long)fence->term);
        else
                print_failure(fence, r, &status);
        return r == 0 || r == HF_E_STALE_TERM ? 0 : 1;
}

static void set_text(char *to, size_t max, const char *from) {
        (void)snprintf(to, max, "%s", from);
}

/* Releases what the run file names; the caller holds its lock. Returns the exit status. */
static int release_leases(const struct hf_host *host, const struct hfd_config *config,
                          const struct hf_fence *leadership) {
        struct hf_fence fence = {.term = leadership->term};
        struct hf_fence old_lease = {.term = 0};
        struct hf_status status = {0};
        struct hfd_store *store;

        int r = hfd_configured_store_new(host, config, &store, &status);
        if (r != 0) {
                print_failure(leadership, r, &status);
                return hfd_flag_is_mistake(r) ? 2 : 1;
        }
        /* One fence for each Lease: a fence that names both would compare the terms of both. */
        set_text(fence.ns, sizeof fence.ns, leadership->ns);
        set_text(fence.name, sizeof fence.name, leadership->name);
        set_text(fence.identity, sizeof fence.identity, leadership->identity);
        int exit_status = release_lease(store, config->etcd_prefix, &fence);
        if (exit_status == 0 && leadership->also_name[0]) {
                set_text(old_lease.ns, sizeof old_lease.ns, leadership->also_ns);
                set_text(old_lease.name, sizeof old_lease.name, leadership->also_name);
                set_text(old_lease.identity, sizeof old_lease.identity, leadership->identity);
                exit_status = release_lease(store, config->etcd_prefix, &old_lease);
        }
        store->ops->free(store);
        return exit_status;
}

bool hfd_release_after_mistake(void) {
        const char *code = getenv("EXIT_CODE"), *exit_status = getenv("EXIT_STATUS");

        return code && exit_status && strcmp(code, "exited") == 0 && strcmp(exit_status, "2") == 0;
}

int hfd_release_main(const struct hfd_config *config) {
        struct hf_host host = {.size = sizeof host, .clock = hf_clock_system()};
        struct hfd_log_sink sink;
        struct hfd_runfile *runfile;
        struct hf_status status = {0};
        struct hf_fence fence;

        if (hfd_config_is_in_memory(config)) {
                (void)fprintf(stderr,
                              "holdfastd release: with --storage=memory there is no Lease to "
                              "release: it has ended with the server\n");
                return 2;
        }
        int r = hfd_runfile_read_if_dead(config->runtime_dir, config->instance, &fence, &runfile,
                                         &status);
        if (r == HF_E_NOT_FOUND)
                return 0; /* the process did not lead, as after every clean stop */
        if (r == -ENOENT && hfd_release_after_mistake())
                return 0; /* the server has ended before it had a run file */
        if (r != 0) {
                (void)fprintf(stderr, "holdfastd release: %s%s\n", status.message,
                              r == -ENOENT ? ": give the --data-dir, --runtime-dir and --instance "
                                             "of the server that has died"
                                           : "");
                return 1;
        }
        hfd_log_sink_init(&sink, config, &host.log);
        int exit_status = release_leases(&host, config, &fence);
        if (exit_status == 0)
                (void)hfd_runfile_write(runfile, NULL);
        hfd_runfile_free(runfile);
        return exit_status;
}
