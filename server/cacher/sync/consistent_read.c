/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that wait for the cache.
 *
 * A consistent read must see every write that was acknowledged before the read arrived. It requests
 * the store's revision (a probe), and waits until the cache has reached that revision. If the cache
 * does not reach it within 100 ms, the caller reads from the store.
 *
 * Invariant: reads share probes, but a read joins only a probe that was not sent yet. The store may
 * already have determined the revision for a probe that was sent, and that revision may be older
 * than a write which this read must see.
 *
 * An HTTP worker thread that has received many requests sends the probe after it has handled all of
 * them, so that their reads share one.
 *
 *      start -> to_probe -> probing -> waiting -> ready: 0, or HF_E_TIMEOUT (read from the store)
 *      after ---------------------------^
 *
 * If other programs write to the same store, outside our prefix, the store's revision increases
 * without events for our watch, and the cache does not reach it soon. So when consistent reads have
 * been late three times, and no waiting read was served in between, consistent reads go directly to
 * the store for ten seconds. Until a waiting read is served, each further late read has the same
 * effect. The cause may also be a watch that hangs, which server/storage/watch_lag.c notices.
 */
#include "server/cacher/sync/consistent_read.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mailbox.h"
#include "base/thread.h"
#include "server/cacher/requests/store_identity.h"
#include "server/cacher/requests/store_request.h"
#include "server/cacher/state/cacher_state.h"

#define CACHE_WAIT      (100 * HF_NSEC_PER_MSEC) /* then the read goes to the store */
#define LATE_MAX        3                        /* times late in a row; then reads are direct */
#define DIRECT_DURATION (10 * HF_NSEC_PER_SEC)   /* of reading from the store only */
#define PROBE_DEADLINE  (5 * HF_NSEC_PER_SEC)

static void send_probe(struct hfd_cacher *cacher);

struct hfd_consistent_reads *hfd_consistent_reads_new(void) {
        return calloc(1, sizeof(struct hfd_consistent_reads));
}

struct hfd_consistent_reads *hfd_consistent_reads_free(struct hfd_consistent_reads *reads) {
        assert(!reads || (!reads->waiting && !reads->to_probe && !reads->probing));
        free(reads);
        return NULL;
}

static void push_read(struct hfd_consistent_read **list, struct hfd_consistent_read *read) {
        assert(read->ready);
        read->next = *list;
        *list = read;
}

void hfd_consistent_reads_call_ready_here(struct hfd_consistent_read *reads) {
        for (struct hfd_consistent_read *next; reads; reads = next) {
                next = reads->next; /* ready may free the read */
                assert(reads->ready);
                reads->ready(reads);
        }
}

/* Removes the first read and those that can be passed together with it. */
static struct hfd_consistent_read *remove_group(struct hfd_consistent_read **list) {
        const struct hfd_consistent_read *first = *list;
        struct hfd_consistent_read *group = NULL, **end = &group;

        assert(first);
        while (*list) {
                struct hfd_consistent_read *read = *list;
                if (read->pass != first->pass || read->thread != first->thread) {
                        list = &read->next;
                        continue;
                }
                *list = read->next;
                read->next = NULL;
                *end = read;
                end = &read->next;
        }
        return group;
}

/* Many reads that are ready together come from few threads. A read with `pass` goes back to the
 * thread that it came from: the data of the read are in the cache of that thread's processor, and
 * the thread sends the responses together. */
void hfd_consistent_reads_call_ready(struct hfd_consistent_read *reads) {
        while (reads) {
                struct hfd_consistent_read *group = remove_group(&reads);
                while (group && (!group->pass || !group->pass(group))) {
                        struct hfd_consistent_read *next = group->next;
                        group->ready(group);
                        group = next;
                }
        }
}

/* ---- removing reads from their lists ---- */

struct hfd_consistent_read *hfd_consistent_reads_remove_reached_locked(struct hfd_cacher *cacher) {
        struct hfd_consistent_read *reached = NULL, **link = &cacher->reads->waiting;

        hf__mutex_assert_held(&cacher->mu);
        while (*link) {
                struct hfd_consistent_read *read = *link;
                if (read->revision > cacher->revision) {
                        link = &read->next;
                        continue;
                }
                *link = read->next;
                cacher->reads->n_late = 0;
                push_read(&reached, read);
        }
        return reached;
}

struct hfd_consistent_read *
hfd_consistent_reads_remove_late_locked(struct hfd_cacher *cacher, hf_nsec now, hf_nsec *ret_next) {
        struct hfd_consistent_read *late = NULL, **link = &cacher->reads->waiting;
        bool counted = false;

        hf__mutex_assert_held(&cacher->mu);
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
                push_read(&late, read);
                /* Reads that time out at the same time have one cause, so they count once. */
                if (read->by_client || counted)
                        continue;
                counted = true;
                if (++cacher->reads->n_late >= LATE_MAX)
                        cacher->reads->direct_until = now + DIRECT_DURATION;
        }
        return late;
}

struct hfd_consistent_read *hfd_consistent_reads_remove_all_locked(struct hfd_cacher *cacher,
                                                                   int outcome) {
        struct hfd_consistent_read *all = NULL;
        struct hfd_consistent_read **lists[] = {&cacher->reads->waiting, &cacher->reads->to_probe};

        hf__mutex_assert_held(&cacher->mu);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                while (*lists[i]) {
                        struct hfd_consistent_read *read = *lists[i];
                        *lists[i] = read->next;
                        read->outcome = outcome;
                        push_read(&all, read);
                }
        return all;
}

/* ---- waiting ---- */

/*
 * Makes the read wait for the cache, for at most timeout. If the read need not or cannot wait,
 * links it into *ready.
 */
static void wait_for_cache_locked(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                                  hf_nsec timeout, struct hfd_consistent_read **ready) {
        hf__mutex_assert_held(&cacher->mu);
        read->outcome = 0;
        if (cacher->stopping)
                read->outcome = HF_E_CANCELED; /* the timer stops, so the wait would never end */
        else if (hfd_store_identity_is_replaced_locked(cacher))
                read->outcome = HF_E_TIMEOUT; /* the cache still contains the replaced history */
        if (read->outcome != 0 || read->revision <= cacher->revision) {
                push_read(ready, read);
                return;
        }
        hf_nsec until = hfd_cacher_now(cacher) + timeout;
        read->until = until < read->deadline ? until : read->deadline;
        push_read(&cacher->reads->waiting, read);
        hfd_cacher_wake_timer_locked(cacher, read->until);
}

/*
 * Handles a failed probe for one of its reads. True: the read is ready. False: it joins the next
 * probe.
 */
static bool fail_probe_locked(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                              const struct hfd_store_reply *reply) {
        hf__mutex_assert_held(&cacher->mu);
        /* The probe's deadline may have been earlier than this read's. So there is time for
         * another. */
        if (reply->error == HF_E_TIMEOUT && read->deadline > hfd_cacher_now(cacher) &&
            !cacher->stopping) {
                push_read(&cacher->reads->to_probe, read);
                return false;
        }
        read->outcome = reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
        read->status = reply->status;
        return true;
}

static void on_probe(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        struct hfd_consistent_read *ready = NULL;

        pthread_mutex_lock(&cacher->mu);
        assert(cacher->reads->probe_running);
        while (cacher->reads->probing) {
                struct hfd_consistent_read *read = cacher->reads->probing;
                cacher->reads->probing = read->next;
                if (!reply->error) {
                        read->revision = reply->revision;
                        wait_for_cache_locked(cacher, read, CACHE_WAIT, &ready);
                } else if (fail_probe_locked(cacher, read, reply)) {
                        push_read(&ready, read);
                }
        }
        cacher->reads->probe_running = false;
        pthread_mutex_unlock(&cacher->mu);
        /* Send the next probe before the callbacks, because they may need some time. */
        send_probe(cacher);
        hfd_consistent_reads_call_ready(ready);
}

/* Sends a probe for the reads that need one, unless another probe is running. */
static void send_probe(struct hfd_cacher *cacher) {
        hf_nsec deadline;

        pthread_mutex_lock(&cacher->mu);
        if (cacher->reads->probe_running || !cacher->reads->to_probe) {
                pthread_mutex_unlock(&cacher->mu);
                return;
        }
        assert(!cacher->reads->probing);
        cacher->reads->probe_running = true;
        cacher->reads->probing = cacher->reads->to_probe;
        cacher->reads->to_probe = NULL;
        deadline = hfd_cacher_now(cacher) + PROBE_DEADLINE;
        for (struct hfd_consistent_read *read = cacher->reads->probing; read; read = read->next)
                if (read->deadline < deadline)
                        deadline = read->deadline;
        pthread_mutex_unlock(&cacher->mu);
        int r = hfd_store_request_revision(cacher, deadline, on_probe, cacher);
        if (r == 0)
                return;
        const struct hfd_store_reply failed = {.error = r};
        on_probe(cacher, &failed);
}

static void send_delayed_probe(void *ctx) {
        struct hfd_cacher *cacher = ctx;

        send_probe(cacher);
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->reads->n_delaying > 0);
        if (--cacher->reads->n_delaying == 0 && cacher->stopping)
                pthread_cond_broadcast(&cacher->cond); /* hfd_cacher_free waits */
        pthread_mutex_unlock(&cacher->mu);
}

void hfd_consistent_reads_await_end(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        assert(cacher->stopping);
        while (cacher->reads->n_delaying > 0)
                pthread_cond_wait(&cacher->cond, &cacher->mu);
        pthread_mutex_unlock(&cacher->mu);
}

/* Whether the caller must send the probe now. False: a probe is running, whose callback sends the
 * next one; or this thread sends a probe when it has handled all that it has read. */
static bool must_probe_locked(struct hfd_cacher *cacher) {
        hf__mutex_assert_held(&cacher->mu);
        if (cacher->reads->probe_running)
                return false;
        enum hf__delay delay = hf__mailbox_delay_call(send_delayed_probe, cacher);
        if (delay == HF__DELAYED)
                cacher->reads->n_delaying++;
        return delay == HF__NOT_DELAYED;
}

void hfd_consistent_read_start(struct hfd_cacher *cacher, struct hfd_consistent_read *read) {
        assert(read->ready);
        pthread_mutex_lock(&cacher->mu);
        if (!cacher->synced || cacher->stopping || hfd_store_identity_is_replaced_locked(cacher) ||
            (cacher->reads->direct_until != 0 &&
             cacher->reads->direct_until > hfd_cacher_now(cacher))) {
                pthread_mutex_unlock(&cacher->mu);
                read->outcome = HF_E_TIMEOUT;
                read->ready(read);
                return;
        }
        push_read(&cacher->reads->to_probe, read);
        bool must_probe = must_probe_locked(cacher);
        pthread_mutex_unlock(&cacher->mu);
        if (must_probe)
                send_probe(cacher);
}

void hfd_consistent_read_after(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                               uint64_t revision, hf_nsec timeout) {
        struct hfd_consistent_read *reached = NULL;

        assert(read->ready);
        pthread_mutex_lock(&cacher->mu);
        read->revision = revision;
        read->by_client = true;
        if (!cacher->synced || cacher->stopping) {
                read->outcome = HF_E_TIMEOUT;
                push_read(&reached, read);
        } else {
                wait_for_cache_locked(cacher, read, timeout, &reached);
        }
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_call_ready(reached);
}
