/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that wait for the cache.
 *
 * A consistent read must see every write that was acknowledged before the read arrived. It asks the
 * store for its revision (a probe), and waits until the cache has reached that revision. Reads
 * share probes, but a read joins only a probe that was not sent yet. A probe that is under way may
 * already have been answered with an older revision. If the cache does not reach the revision
 * within 100 ms, the read asks the store directly.
 *
 *      start -> to_probe -> probing -> waiting -> ready(0), or ready(HF_E_TIMEOUT): ask the store
 *      after ---------------------------^
 *
 * If other programs write to the same store, outside our prefix, the store's revision runs ahead of
 * the events that our watch delivers. So when reads time out three times in a row, all reads go
 * directly to the store for ten seconds. The cause may also be a watch that hangs. The watch is
 * therefore reopened at its current position, which loses nothing and is rare enough to be cheap.
 */
#include "server/cacher/consistent_read.h"

#include <assert.h>
#include <stddef.h>

#include "server/cacher/cacher_private.h"

#define CONSISTENT_WAIT (100 * HF_NSEC_PER_MSEC) /* for the cache; then the store is asked */
#define LATE_IN_A_ROW   3
#define DIRECT_FOR      (10 * HF_NSEC_PER_SEC)
#define PROBE_DEADLINE  (5 * HF_NSEC_PER_SEC)

static void send_probe(struct hfd_cacher *cacher);

static void push(struct hfd_consistent_read **list, struct hfd_consistent_read *read) {
        read->next = *list;
        *list = read;
}

void hfd_consistent_reads_call_ready(struct hfd_consistent_read *reads) {
        for (struct hfd_consistent_read *next; reads; reads = next) {
                next = reads->next; /* ready may free the read */
                reads->ready(reads);
        }
}

/* ---- removing reads from the waiting lists ---- */

struct hfd_consistent_read *hfd_consistent_reads_remove_reached_locked(struct hfd_cacher *cacher) {
        struct hfd_consistent_read *passed = NULL, **link = &cacher->reads.waiting;

        while (*link) {
                struct hfd_consistent_read *read = *link;
                if (read->revision > cacher->revision) {
                        link = &read->next;
                        continue;
                }
                *link = read->next;
                read->outcome = 0;
                cacher->reads.n_late = 0;
                push(&passed, read);
        }
        return passed;
}

struct hfd_consistent_read *
hfd_consistent_reads_remove_late_locked(struct hfd_cacher *cacher, hf_nsec now, hf_nsec *ret_next) {
        struct hfd_consistent_read *late = NULL, **link = &cacher->reads.waiting;
        bool counted = false;

        while (*link) {
                struct hfd_consistent_read *read = *link;
                if (read->until > now) {
                        if (read->until < *ret_next)
                                *ret_next = read->until;
                        link = &read->next;
                        continue;
                }
                *link = read->next;
                read->outcome = HF_E_TIMEOUT;
                push(&late, read);
                /* Reads that time out together have one cause, so they count once. */
                if (read->by_client || counted)
                        continue;
                counted = true;
                if (++cacher->reads.n_late >= LATE_IN_A_ROW) {
                        cacher->reads.direct_until = now + DIRECT_FOR;
                        cacher->reads.rewatch = true;
                }
        }
        return late;
}

struct hfd_consistent_read *hfd_consistent_reads_remove_all_locked(struct hfd_cacher *cacher,
                                                                   int outcome) {
        struct hfd_consistent_read *all = NULL;
        struct hfd_consistent_read **lists[] = {&cacher->reads.waiting, &cacher->reads.to_probe};

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                while (*lists[i]) {
                        struct hfd_consistent_read *read = *lists[i];
                        *lists[i] = read->next;
                        read->outcome = outcome;
                        push(&all, read);
                }
        return all;
}

/* ---- waiting ---- */

/* Lets the read wait for the cache. If it need not or cannot wait, links it into *passed. */
static void wait_locked(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                        hf_nsec timeout, struct hfd_consistent_read **passed) {
        hf_nsec until = hfd_cacher_now(cacher) + timeout;

        read->outcome = 0;
        if (cacher->stopping)
                read->outcome = HF_E_CANCELED; /* nothing would wake it */
        else if (cacher->identity.replaced)
                read->outcome = HF_E_TIMEOUT; /* the cache still has the replaced history */
        if (read->outcome != 0 || read->revision <= cacher->revision) {
                push(passed, read);
                return;
        }
        read->until = until < read->deadline ? until : read->deadline;
        push(&cacher->reads.waiting, read);
        pthread_cond_broadcast(&cacher->cond);
}

/* Handles a failed probe for one of its reads. False: the read joins the next probe. */
static bool fail_probe_locked(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                              const struct hfd_store_reply *reply) {
        /* The probe had the earliest deadline of all its reads, but this read has time left. */
        if (reply->error == HF_E_TIMEOUT && read->deadline > hfd_cacher_now(cacher) &&
            !cacher->stopping) {
                push(&cacher->reads.to_probe, read);
                return false;
        }
        read->outcome = reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
        read->status = reply->status;
        return true;
}

static void on_probe(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        struct hfd_consistent_read *go = NULL;

        pthread_mutex_lock(&cacher->mu);
        assert(cacher->reads.probe_running);
        while (cacher->reads.probing) {
                struct hfd_consistent_read *read = cacher->reads.probing;
                cacher->reads.probing = read->next;
                if (!reply->error) {
                        read->revision = reply->revision;
                        wait_locked(cacher, read, CONSISTENT_WAIT, &go);
                } else if (fail_probe_locked(cacher, read, reply)) {
                        push(&go, read);
                }
        }
        cacher->reads.probe_running = false;
        pthread_mutex_unlock(&cacher->mu);
        /* Send the next probe first: the callbacks below may take time. */
        send_probe(cacher);
        hfd_consistent_reads_call_ready(go);
}

/* Sends a probe for the reads that need one, unless one is under way. */
static void send_probe(struct hfd_cacher *cacher) {
        hf_nsec deadline = hfd_cacher_now(cacher) + PROBE_DEADLINE;

        pthread_mutex_lock(&cacher->mu);
        if (cacher->reads.probe_running || !cacher->reads.to_probe) {
                pthread_mutex_unlock(&cacher->mu);
                return;
        }
        assert(!cacher->reads.probing);
        cacher->reads.probe_running = true;
        cacher->reads.probing = cacher->reads.to_probe;
        cacher->reads.to_probe = NULL;
        for (struct hfd_consistent_read *read = cacher->reads.probing; read; read = read->next)
                if (read->deadline < deadline)
                        deadline = read->deadline;
        pthread_mutex_unlock(&cacher->mu);
        int r = hfd_store_request_revision(cacher, deadline, on_probe, cacher);
        if (r == 0)
                return;
        const struct hfd_store_reply failed = {.error = r};
        on_probe(cacher, &failed);
}

void hfd_consistent_read_start(struct hfd_cacher *cacher, struct hfd_consistent_read *read) {
        assert(read->ready);
        pthread_mutex_lock(&cacher->mu);
        if (!cacher->synced || cacher->stopping || cacher->identity.replaced ||
            cacher->reads.direct_until > hfd_cacher_now(cacher)) {
                pthread_mutex_unlock(&cacher->mu);
                read->outcome = HF_E_TIMEOUT;
                read->ready(read);
                return;
        }
        push(&cacher->reads.to_probe, read);
        pthread_mutex_unlock(&cacher->mu);
        send_probe(cacher);
}

void hfd_consistent_read_after(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                               uint64_t revision, hf_nsec timeout) {
        struct hfd_consistent_read *passed = NULL;

        assert(read->ready);
        pthread_mutex_lock(&cacher->mu);
        read->revision = revision;
        read->by_client = true;
        if (!cacher->synced || cacher->stopping) {
                read->outcome = HF_E_TIMEOUT;
                push(&passed, read);
        } else {
                wait_locked(cacher, read, timeout, &passed);
        }
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_call_ready(passed);
}
