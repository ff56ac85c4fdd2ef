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
#include <stddef.h>

#include "server/cacher/cacher.h"

#define LATE_IN_A_ROW  3
#define DIRECT_FOR     (10 * HF_NSEC_PER_SEC)
#define PROBE_DEADLINE (5 * HF_NSEC_PER_SEC)

static void send_probe(struct hfd_api *api);

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

struct hfd_consistent_read *hfd_consistent_reads_passed_locked(struct hfd_api *api) {
        struct hfd_consistent_read *passed = NULL, **link = &api->waiting;

        while (*link) {
                struct hfd_consistent_read *reader = *link;
                if (reader->revision > api->revision) {
                        link = &reader->next;
                        continue;
                }
                *link = reader->next;
                reader->outcome = 0;
                api->n_late = 0;
                push(&passed, reader);
        }
        return passed;
}

struct hfd_consistent_read *hfd_consistent_reads_late_locked(struct hfd_api *api, hf_nsec now,
                                                             hf_nsec *ret_next) {
        struct hfd_consistent_read *late = NULL, **link = &api->waiting;
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
                if (!reader->by_client && !counted && ++api->n_late >= LATE_IN_A_ROW) {
                        api->direct_until = now + DIRECT_FOR;
                        api->rewatch = true;
                }
                counted |= !reader->by_client;
                push(&late, reader);
        }
        return late;
}

struct hfd_consistent_read *hfd_consistent_reads_all_locked(struct hfd_api *api, int outcome) {
        struct hfd_consistent_read *all = NULL, **lists[] = {&api->waiting, &api->to_probe};

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
static void wait_locked(struct hfd_api *api, struct hfd_consistent_read *reader, hf_nsec timeout,
                        struct hfd_consistent_read **passed) {
        hf_nsec now = hfd_api_now(api);

        /* A cache of another history passes nothing, whatever its revision; and nobody wakes a
         * reader after the end. */
        reader->outcome = api->stopping ? HF_E_CANCELED : api->replaced ? HF_E_TIMEOUT : 0;
        if (reader->outcome || reader->revision <= api->revision) {
                push(passed, reader);
                return;
        }
        reader->until = now + timeout < reader->deadline ? now + timeout : reader->deadline;
        push(&api->waiting, reader);
        pthread_cond_broadcast(&api->cond);
}

static void on_probe(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_api *api = ctx;
        struct hfd_consistent_read *go = NULL;
        hf_nsec now = hfd_api_now(api);

        pthread_mutex_lock(&api->mu);
        while (api->probing) {
                struct hfd_consistent_read *reader = api->probing;
                api->probing = reader->next;
                if (!reply->error) {
                        reader->revision = reply->revision;
                        wait_locked(api, reader, HFD_CONSISTENT_WAIT, &go);
                } else if (reply->error == HF_E_TIMEOUT && reader->deadline > now &&
                           !api->stopping) {
                        push(&api->to_probe,
                             reader); /* the probe ended by the deadline of a more hurried one */
                } else {
                        reader->outcome =
                                reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error;
                        reader->status = reply->status;
                        push(&go, reader);
                }
        }
        api->probe_running = false;
        pthread_mutex_unlock(&api->mu);
        send_probe(api);
        hfd_consistent_reads_go(go);
}

static void send_probe(struct hfd_api *api) {
        hf_nsec deadline = hfd_api_now(api) + PROBE_DEADLINE;

        pthread_mutex_lock(&api->mu);
        if (api->probe_running || !api->to_probe) {
                pthread_mutex_unlock(&api->mu);
                return;
        }
        api->probe_running = true;
        api->probing = api->to_probe;
        api->to_probe = NULL;
        for (struct hfd_consistent_read *r = api->probing; r; r = r->next)
                if (r->deadline < deadline)
                        deadline = r->deadline;
        pthread_mutex_unlock(&api->mu);
        int e = hfd_store_revision(api, deadline, on_probe, api);
        if (!e)
                return;
        struct hfd_store_reply failed = {.error = e};
        on_probe(api, &failed);
}

void hfd_consistent_read_start(struct hfd_api *api, struct hfd_consistent_read *reader) {
        pthread_mutex_lock(&api->mu);
        if (!api->synced || api->stopping || api->replaced ||
            api->direct_until > hfd_api_now(api)) {
                pthread_mutex_unlock(&api->mu);
                reader->outcome = HF_E_TIMEOUT;
                reader->ready(reader);
                return;
        }
        push(&api->to_probe, reader);
        pthread_mutex_unlock(&api->mu);
        send_probe(api);
}

void hfd_consistent_read_after(struct hfd_api *api, struct hfd_consistent_read *reader,
                               uint64_t revision, hf_nsec timeout) {
        struct hfd_consistent_read *passed = NULL;

        pthread_mutex_lock(&api->mu);
        reader->revision = revision;
        reader->by_client = true;
        if (!api->synced || api->stopping) {
                reader->outcome = HF_E_TIMEOUT;
                push(&passed, reader);
        } else {
                wait_locked(api, reader, timeout, &passed);
        }
        pthread_mutex_unlock(&api->mu);
        hfd_consistent_reads_go(passed);
}
