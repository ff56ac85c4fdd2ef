/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consistent reads from the cache. A reader needs a revision that the store answered after the
 * reader came: it joins the probe that is not yet sent (one already under way may have been
 * answered before), and when that probe says R it waits until the cache has passed R. A cache that
 * has not within 100 ms is asked no further: the reader goes to the store.
 *
 *      come -> to_probe -> probing -> waiting -> ready(0), or ready(HF_E_TIMEOUT) = ask the store
 *
 * On a store that others write to as well, the revision runs ahead of what our watch delivers.
 * Three late readers in a row are taken for that: for ten seconds readers then go to the store at
 * once. It may also be that our watch hangs: it is opened again from where it is, which costs one
 * request in ten seconds and loses nothing.
 */
#include "server/cacher/consistent_read.h"

#include <stddef.h>

#include "server/cacher/cacher_private.h"

#define CONSISTENT_WAIT (100 * HF_NSEC_PER_MSEC) /* for the cache; then the store is asked */
#define LATE_IN_A_ROW   3
#define DIRECT_FOR      (10 * HF_NSEC_PER_SEC)
#define PROBE_DEADLINE  (5 * HF_NSEC_PER_SEC)

static void send_probe(struct hfd_cacher *cacher);

static void push(struct hfd_consistent_read **list, struct hfd_consistent_read *reader) {
        reader->next = *list;
        *list = reader;
}

void hfd_consistent_reads_go(struct hfd_consistent_read *readers) {
        for (struct hfd_consistent_read *next; readers; readers = next) {
                next = readers->next;
                readers->ready(readers);
        }
}

struct hfd_consistent_read *hfd_consistent_reads_passed_locked(struct hfd_cacher *cacher) {
        struct hfd_consistent_read *passed = NULL, **link = &cacher->reads.waiting;

        while (*link) {
                struct hfd_consistent_read *reader = *link;
                if (reader->revision > cacher->revision) {
                        link = &reader->next;
                        continue;
                }
                *link = reader->next;
                reader->outcome = 0;
                cacher->reads.n_late = 0;
                push(&passed, reader);
        }
        return passed;
}

struct hfd_consistent_read *hfd_consistent_reads_late_locked(struct hfd_cacher *cacher, hf_nsec now,
                                                             hf_nsec *ret_next) {
        struct hfd_consistent_read *late = NULL, **link = &cacher->reads.waiting;
        bool counted = false;

        while (*link) {
                struct hfd_consistent_read *reader = *link;
                if (reader->until > now) {
                        if (reader->until < *ret_next)
                                *ret_next = reader->until;
                        link = &reader->next;
                        continue;
                }
                *link = reader->next;
                reader->outcome = HF_E_TIMEOUT;
                if (!reader->by_client && !counted && ++cacher->reads.n_late >= LATE_IN_A_ROW) {
                        cacher->reads.direct_until = now + DIRECT_FOR;
                        cacher->reads.rewatch = true;
                }
                counted |= !reader->by_client;
                push(&late, reader);
        }
        return late;
}

struct hfd_consistent_read *hfd_consistent_reads_all_locked(struct hfd_cacher *cacher,
                                                            int outcome) {
        struct hfd_consistent_read *all = NULL,
                                   **lists[] = {&cacher->reads.waiting, &cacher->reads.to_probe};

        for (size_t i = 0; i < 2; i++)
                while (*lists[i]) {
                        struct hfd_consistent_read *reader = *lists[i];
                        *lists[i] = reader->next;
                        reader->outcome = outcome;
                        push(&all, reader);
                }
        return all;
}

/* Waits for the cache to pass its revision; those that need not are linked into *passed. */
static void wait_locked(struct hfd_cacher *cacher, struct hfd_consistent_read *reader,
                        hf_nsec timeout, struct hfd_consistent_read **passed) {
        hf_nsec now = hfd_cacher_now(cacher);

        /* A cache of another history passes nothing, whatever its revision; and nobody wakes a
         * reader after the end. */
        reader->outcome = cacher->stopping            ? HF_E_CANCELED
                          : cacher->identity.replaced ? HF_E_TIMEOUT
                                                      : 0;
        if (reader->outcome || reader->revision <= cacher->revision) {
                push(passed, reader);
                return;
        }
        reader->until = now + timeout < reader->deadline ? now + timeout : reader->deadline;
        push(&cacher->reads.waiting, reader);
        pthread_cond_broadcast(&cacher->cond);
}

static void on_probe(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_cacher *cacher = ctx;
        struct hfd_consistent_read *go = NULL;
        hf_nsec now = hfd_cacher_now(cacher);

        pthread_mutex_lock(&cacher->mu);
        while (cacher->reads.probing) {
                struct hfd_consistent_read *reader = cacher->reads.probing;
                cacher->reads.probing = reader->next;
                if (!reply->error) {
                        reader->revision = reply->revision;
                        wait_locked(cacher, reader, CONSISTENT_WAIT, &go);
                } else if (reply->error == HF_E_TIMEOUT && reader->deadline > now &&
                           !cacher->stopping) {
                        push(&cacher->reads.to_probe,
                             reader); /* the probe ended by the deadline of a more hurried one */
                } else {
                        reader->outcome =
                                reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
                        reader->status = reply->status;
                        push(&go, reader);
                }
        }
        cacher->reads.probe_running = false;
        pthread_mutex_unlock(&cacher->mu);
        send_probe(cacher);
        hfd_consistent_reads_go(go);
}

static void send_probe(struct hfd_cacher *cacher) {
        hf_nsec deadline = hfd_cacher_now(cacher) + PROBE_DEADLINE;

        pthread_mutex_lock(&cacher->mu);
        if (cacher->reads.probe_running || !cacher->reads.to_probe) {
                pthread_mutex_unlock(&cacher->mu);
                return;
        }
        cacher->reads.probe_running = true;
        cacher->reads.probing = cacher->reads.to_probe;
        cacher->reads.to_probe = NULL;
        for (struct hfd_consistent_read *reader = cacher->reads.probing; reader;
             reader = reader->next)
                if (reader->deadline < deadline)
                        deadline = reader->deadline;
        pthread_mutex_unlock(&cacher->mu);
        int r = hfd_store_request_revision(cacher, deadline, on_probe, cacher);
        if (r == 0)
                return;
        struct hfd_store_reply failed = {.error = r};
        on_probe(cacher, &failed);
}

void hfd_consistent_read_start(struct hfd_cacher *cacher, struct hfd_consistent_read *reader) {
        pthread_mutex_lock(&cacher->mu);
        if (!cacher->synced || cacher->stopping || cacher->identity.replaced ||
            cacher->reads.direct_until > hfd_cacher_now(cacher)) {
                pthread_mutex_unlock(&cacher->mu);
                reader->outcome = HF_E_TIMEOUT;
                reader->ready(reader);
                return;
        }
        push(&cacher->reads.to_probe, reader);
        pthread_mutex_unlock(&cacher->mu);
        send_probe(cacher);
}

void hfd_consistent_read_after(struct hfd_cacher *cacher, struct hfd_consistent_read *reader,
                               uint64_t revision, hf_nsec timeout) {
        struct hfd_consistent_read *passed = NULL;

        pthread_mutex_lock(&cacher->mu);
        reader->revision = revision;
        reader->by_client = true;
        if (!cacher->synced || cacher->stopping) {
                reader->outcome = HF_E_TIMEOUT;
                push(&passed, reader);
        } else {
                wait_locked(cacher, reader, timeout, &passed);
        }
        pthread_mutex_unlock(&cacher->mu);
        hfd_consistent_reads_go(passed);
}
