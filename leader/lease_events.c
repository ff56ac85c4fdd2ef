/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Events about the beginning and the end of terms, without delaying the election.
 *
 *      FREE --added--> WAITING --due--> UNDER_WAY --written or given up--> FREE
 *                         ^                 |
 *                         +-----failed------+
 *
 * An entry holds one Event that must be written. The number of entries is fixed. The owner (the
 * elector loop) fills and sends them. The response, on any thread, frees an entry or sets it back
 * to WAITING: due at once if a POST must follow a PUT, or a PUT a POST, else after RETRY_AFTER. If
 * no entry is free, a new Event replaces the oldest waiting one. If all entries are UNDER_WAY, it
 * is dropped.
 *
 * Invariants:
 *  - While an entry is UNDER_WAY, only the response to its request changes it, or the owner if the
 *    request could not be sent. The entry holds a reference to the struct hf__lease_events, so the
 *    owner may free the struct at any time.
 *  - After the owner has freed the struct, a response does not use the host, which may be freed
 *    already. So a response reads the clock under the lock, and leaves logging to the owner.
 *  - The number of Event objects per Lease is bounded, even on a server that never deletes Events:
 *    an Event's name consists of the Lease's name, its transitions modulo KEPT_TERMS, and whether
 *    the term began or ended, so the newest Event overwrites the oldest. Therefore an Event is
 *    written with PUT. If the server does not create objects on PUT, it is written with POST.
 *  - The Events of two Leases have different names, also if these Leases' names are long and differ
 *    only at the end.
 */
#include "leader/lease_events.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"
#include "leader/shards_core.h"

#define MAX_ENTRIES     8
#define MAX_ATTEMPTS    12 /* a minute with RETRY_AFTER; three if each request times out */
#define RETRY_AFTER     (5 * HF_NSEC_PER_SEC)
#define REQUEST_TIMEOUT (10 * HF_NSEC_PER_SEC)
#define LEASE_NAME_MAX  200 /* bytes of the Lease's name in an Event's name */
#define KEPT_TERMS      16  /* terms of a Lease whose Events are kept; a power of two */

enum entry_state { FREE, WAITING, UNDER_WAY };

struct entry {
        struct hf__lease_events *events; /* borrowed; while UNDER_WAY a reference is held */
        /* guarded by events->mu */
        enum entry_state state;
        hf_nsec due; /* boot time */
        unsigned n_attempts;
        bool create; /* send a POST, because the object does not exist and PUT does not create it */
        /* immutable while UNDER_WAY, else guarded by events->mu */
        bool began;
        int64_t real_us, transitions;
        char uid[40], rv[40]; /* HF__UID_MAX and HF__REVISION_MAX, as in struct hf__record */
};

struct hf__lease_events {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_client *client;   /* borrowed */
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], identity[HF_IDENTITY_MAX + 1];

        pthread_mutex_t mu;
        /* guarded by mu */
        int refs;   /* one for the owner, one for each entry under way */
        bool freed; /* by the owner */
        /* Why the last Event to leave its entry was given up, until the owner logs the reason. 0 =
         * that Event was written, or none has left its entry since the last log line. */
        int abandoned;
        struct entry entries[MAX_ENTRIES];
};

int hf__lease_events_new(const struct hf_host *host, struct hf_client *client, const char *ns,
                         const char *name, const char *identity,
                         struct hf__lease_events **ret_events) {
        struct hf__lease_events *events = calloc(1, sizeof *events);
        if (!events)
                return -ENOMEM;
        int r = hf__mutex_init(&events->mu);
        if (r != 0) {
                free(events);
                return r;
        }
        events->host = host;
        events->client = client;
        events->refs = 1;
        (void)snprintf(events->ns, sizeof events->ns, "%s", ns);
        (void)snprintf(events->name, sizeof events->name, "%s", name);
        (void)snprintf(events->identity, sizeof events->identity, "%s", identity);
        for (size_t i = 0; i < MAX_ENTRIES; i++)
                events->entries[i].events = events;
        *ret_events = events;
        return 0;
}

static void unref_events(struct hf__lease_events *events) {
        pthread_mutex_lock(&events->mu);
        assert(events->refs > 0);
        bool is_last_ref = --events->refs == 0;
        pthread_mutex_unlock(&events->mu);
        if (is_last_ref) {
                pthread_mutex_destroy(&events->mu);
                free(events);
        }
}

struct hf__lease_events *hf__lease_events_free(struct hf__lease_events *events) {
        if (!events)
                return NULL;
        pthread_mutex_lock(&events->mu);
        events->freed = true;
        pthread_mutex_unlock(&events->mu);
        unref_events(events);
        return NULL;
}

/* Returns a free entry, else the waiting entry with the oldest Event, else NULL. */
static struct entry *find_slot_locked(struct hf__lease_events *events) {
        hf__mutex_assert_held(&events->mu);
        struct entry *oldest = NULL;
        for (size_t i = 0; i < MAX_ENTRIES; i++) {
                struct entry *entry = &events->entries[i];
                if (entry->state == FREE)
                        return entry;
                if (entry->state == WAITING && (!oldest || entry->real_us < oldest->real_us))
                        oldest = entry;
        }
        return oldest;
}

void hf__lease_events_add(struct hf__lease_events *events, bool began,
                          const struct hf__record *lease, int64_t real_us, hf_nsec due) {
        pthread_mutex_lock(&events->mu);
        struct entry *entry = find_slot_locked(events);
        if (entry) {
                *entry = (struct entry){.events = events,
                                        .state = WAITING,
                                        .due = due,
                                        .began = began,
                                        .real_us = real_us,
                                        .transitions = lease->transitions};
                memcpy(entry->uid, lease->uid, sizeof entry->uid);
                memcpy(entry->rv, lease->rv, sizeof entry->rv);
        }
        pthread_mutex_unlock(&events->mu);
}

bool hf__lease_events_waiting(struct hf__lease_events *events) {
        bool waiting = false;
        pthread_mutex_lock(&events->mu);
        for (size_t i = 0; i < MAX_ENTRIES; i++)
                waiting |= events->entries[i].state == WAITING;
        pthread_mutex_unlock(&events->mu);
        return waiting;
}

static void put_member(struct hf__strbuf *out, const char *key, const char *value) {
        hf__strbuf_printf(out, ",\"%s\":", key);
        hf__strbuf_json(out, value, strlen(value));
}

static void print_event(const struct entry *entry, const char *event_name, struct hf__strbuf *out) {
        const struct hf__lease_events *events = entry->events;
        char at[HF__MICROTIME_MAX], message[HF_IDENTITY_MAX + 32];
        hf__time_format(entry->real_us / 1000000, at);
        (void)snprintf(message, sizeof message, "%s %s", events->identity,
                       entry->began ? "became leader" : "stopped leading");
        hf__strbuf_puts(out, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":");
        hf__strbuf_json(out, event_name, strlen(event_name));
        put_member(out, "namespace", events->ns);
        hf__strbuf_puts(out, "},\"involvedObject\":{\"kind\":\"Lease\",\"apiVersion\":"
                             "\"coordination.k8s.io/v1\"");
        put_member(out, "namespace", events->ns);
        put_member(out, "name", events->name);
        if (entry->uid[0])
                put_member(out, "uid", entry->uid);
        if (entry->rv[0])
                put_member(out, "resourceVersion", entry->rv);
        hf__strbuf_puts(out, "},\"type\":\"Normal\",\"reason\":\"LeaderElection\",\"count\":1");
        put_member(out, "message", message);
        put_member(out, "firstTimestamp", at);
        put_member(out, "lastTimestamp", at);
        put_member(out, "reportingComponent", events->name);
        put_member(out, "reportingInstance", events->identity);
        hf__strbuf_puts(out, ",\"source\":{\"component\":");
        hf__strbuf_json(out, events->name, strlen(events->name));
        hf__strbuf_puts(out, "}}");
}

/* Handles the result of an attempt. After "not found" the next attempt is a POST, after "already
 * exists" a PUT. */
static void finish_attempt_locked(struct entry *entry, int error) {
        struct hf__lease_events *events = entry->events;

        hf__mutex_assert_held(&events->mu);
        assert(entry->state == UNDER_WAY);
        if (events->freed) {
                entry->state = FREE;
                return;
        }
        hf_nsec now = hf_now(hf_host_clock(events->host));
        bool other_verb = error == (entry->create ? HF_E_EXISTS : HF_E_NOT_FOUND);
        bool is_permanent =
                error == HF_E_INVALID || error == HF_E_CLOSED || error == HF_E_TOO_LARGE;
        entry->n_attempts++;
        entry->create ^= other_verb;
        entry->state =
                error == 0 || is_permanent || entry->n_attempts == MAX_ATTEMPTS ? FREE : WAITING;
        entry->due = other_verb ? now : now + RETRY_AFTER;
        if (entry->state == FREE)
                events->abandoned = error;
}

static void finish_attempt(struct entry *entry, int error) {
        struct hf__lease_events *events = entry->events;
        pthread_mutex_lock(&events->mu);
        finish_attempt_locked(entry, error);
        pthread_mutex_unlock(&events->mu);
        unref_events(events);
}

static void on_response(void *ctx, const struct hf_response *reply) {
        finish_attempt(ctx, reply->error);
}

/* Names the Event. A Lease's name of more than LEASE_NAME_MAX bytes may leave no room for the
 * suffix, so its end is replaced by a hash of all of it. The digits follow without a dash, so the
 * result is a valid name wherever the cut is. */
static void print_event_name(const struct entry *entry, char name[HF_NAME_MAX + 1]) {
        const char *lease = entry->events->name;
        char hash[17] = "";
        bool cut = strlen(lease) > LEASE_NAME_MAX;

        if (cut)
                (void)snprintf(hash, sizeof hash, "%016" PRIx64, hf__shards_key(lease));
        (void)snprintf(name, HF_NAME_MAX + 1, "%.*s%s.leader-%u-%s",
                       LEASE_NAME_MAX - (cut ? (int)sizeof hash - 1 : 0), lease, hash,
                       (unsigned)(entry->transitions & (KEPT_TERMS - 1)),
                       entry->began ? "became" : "stopped");
}

/* Requires UNDER_WAY. The entry belongs to this thread until the request is sent, then to the
 * response. */
static void send_entry(struct entry *entry) {
        struct hf__lease_events *events = entry->events;
        struct hf__strbuf body = {0};
        char name[HF_NAME_MAX + 1];
        print_event_name(entry, name);
        print_event(entry, name, &body);
        int r = body.error;
        if (r == 0) {
                const struct hf_request request = {.size = sizeof request,
                                                   .verb = entry->create ? HF_VERB_CREATE
                                                                         : HF_VERB_UPDATE,
                                                   .resource = {"", "v1", "events"},
                                                   .ns = events->ns,
                                                   .name = entry->create ? NULL : name,
                                                   .body = body.data,
                                                   .n_body = body.n,
                                                   .deadline = hf_now(hf_host_clock(events->host)) +
                                                               REQUEST_TIMEOUT};
                r = hf_client_request(events->client, &request, on_response, entry, NULL);
        }
        hf__strbuf_done(&body);
        if (r != 0)
                finish_attempt(entry, r);
}

void hf__lease_events_iterate(struct hf__lease_events *events, hf_nsec now) {
        unsigned due_set = 0;
        pthread_mutex_lock(&events->mu);
        int abandoned = events->abandoned;
        events->abandoned = 0;
        for (unsigned i = 0; i < MAX_ENTRIES; i++)
                if (events->entries[i].state == WAITING && events->entries[i].due <= now) {
                        events->entries[i].state = UNDER_WAY;
                        assert(events->refs > 0);
                        events->refs++;
                        due_set |= 1u << i;
                }
        pthread_mutex_unlock(&events->mu);
        if (abandoned)
                hf_log(&events->host->log, HF_LOG_DEBUG, "elector",
                       "%s/%s: giving up an Event about a change of leader: %s", events->ns,
                       events->name, hf_strerror(abandoned));
        for (unsigned i = 0; due_set; i++, due_set >>= 1)
                if (due_set & 1)
                        send_entry(&events->entries[i]);
}
