/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model. A fixed number of notes: free, waiting for their time, or under way. The owner (the
 * elector loop) makes and sends them; the answer, on any thread, frees one, or sets it back to
 * waiting with a later time. When all are taken the one that waits longest is given up for a new
 * one. Each call under way holds a reference, so that the owner can leave at any time.
 *
 * An Event's name is made of the Lease's and of the count of its transitions modulo a small number,
 * so that the Events of a Lease are bounded also on a server that never removes any: the newest
 * take the place of the oldest. Hence they are put, not created; a server that does not create what
 * is put is asked to create.
 */
#include "leader/lease_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "base/time_format.h"

#define MAX_NOTES    8
#define MAX_ATTEMPTS 12
#define AGAIN        (5 * HF_NSEC_PER_SEC)
#define PATIENCE     (10 * HF_NSEC_PER_SEC) /* of one call */
#define KEPT         16                     /* terms of a Lease whose Events are kept */

enum note_state { FREE, WAITING, UNDER_WAY };

struct note {
        struct hf__lease_events *events;
        /* guarded by events->mu */
        enum note_state state;
        hf_nsec due;
        unsigned n_attempts;
        bool create; /* the server has none by that name and does not make one of a put */
        /* the owner's, while not FREE */
        bool began;
        int64_t real_us, transitions;
        char uid[40], rv[40];
};

struct hf__lease_events {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hf_client *client;   /* borrowed */
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], identity[HF_IDENTITY_MAX + 1];

        pthread_mutex_t mu;
        /* guarded by mu */
        int refs; /* the owner's, and one for each note under way */
        struct note notes[MAX_NOTES];
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
        for (size_t i = 0; i < MAX_NOTES; i++)
                events->notes[i].events = events;
        *ret_events = events;
        return 0;
}

static void unref(struct hf__lease_events *events) {
        pthread_mutex_lock(&events->mu);
        bool gone = --events->refs == 0;
        pthread_mutex_unlock(&events->mu);
        if (gone) {
                pthread_mutex_destroy(&events->mu);
                free(events);
        }
}

struct hf__lease_events *hf__lease_events_free(struct hf__lease_events *events) {
        if (events)
                unref(events);
        return NULL;
}

/* A free one, else the one that waits with the earliest time, else NULL. */
static struct note *place_locked(struct hf__lease_events *events) {
        struct note *place = NULL;
        for (size_t i = 0; i < MAX_NOTES; i++) {
                struct note *note = &events->notes[i];
                if (note->state == FREE)
                        return note;
                if (note->state == WAITING && (!place || note->real_us < place->real_us))
                        place = note;
        }
        return place;
}

void hf__lease_events_note(struct hf__lease_events *events, bool began,
                           const struct hf__record *lease, int64_t real_us, hf_nsec due) {
        pthread_mutex_lock(&events->mu);
        struct note *note = place_locked(events);
        if (note) {
                *note = (struct note){.events = events,
                                      .state = WAITING,
                                      .due = due,
                                      .began = began,
                                      .real_us = real_us,
                                      .transitions = lease->transitions};
                memcpy(note->uid, lease->uid, sizeof note->uid);
                memcpy(note->rv, lease->rv, sizeof note->rv);
        }
        pthread_mutex_unlock(&events->mu);
}

bool hf__lease_events_waiting(struct hf__lease_events *events) {
        bool waiting = false;
        pthread_mutex_lock(&events->mu);
        for (size_t i = 0; i < MAX_NOTES; i++)
                waiting |= events->notes[i].state == WAITING;
        pthread_mutex_unlock(&events->mu);
        return waiting;
}

static void member(struct hf__strbuf *out, const char *key, const char *value) {
        hf__strbuf_printf(out, ",\"%s\":", key);
        hf__strbuf_json(out, value, strlen(value));
}

static void compose(const struct note *note, const char *event_name, struct hf__strbuf *out) {
        const struct hf__lease_events *events = note->events;
        char at[HF__MICROTIME_MAX], message[HF_IDENTITY_MAX + 32];
        hf__time_format(note->real_us / 1000000, at);
        (void)snprintf(message, sizeof message, "%s %s", events->identity,
                       note->began ? "became leader" : "stopped leading");
        hf__strbuf_puts(out, "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":");
        hf__strbuf_json(out, event_name, strlen(event_name));
        member(out, "namespace", events->ns);
        hf__strbuf_puts(out, "},\"involvedObject\":{\"kind\":\"Lease\",\"apiVersion\":"
                             "\"coordination.k8s.io/v1\"");
        member(out, "namespace", events->ns);
        member(out, "name", events->name);
        if (note->uid[0])
                member(out, "uid", note->uid);
        if (note->rv[0])
                member(out, "resourceVersion", note->rv);
        hf__strbuf_puts(out, "},\"type\":\"Normal\",\"reason\":\"LeaderElection\",\"count\":1");
        member(out, "message", message);
        member(out, "firstTimestamp", at);
        member(out, "lastTimestamp", at);
        member(out, "reportingComponent", events->name);
        member(out, "reportingInstance", events->identity);
        hf__strbuf_puts(out, ",\"source\":{\"component\":");
        hf__strbuf_json(out, events->name, strlen(events->name));
        hf__strbuf_puts(out, "}}");
}

/* False: it is given up. */
static bool settle_locked(struct note *note, int error) {
        hf_nsec now = hf_now(hf_host_clock(note->events->host));
        bool other_verb = error == (note->create ? HF_E_EXISTS : HF_E_NOT_FOUND);
        bool in_vain = error == HF_E_INVALID || error == HF_E_CLOSED || error == HF_E_TOO_LARGE;
        note->n_attempts++;
        note->create ^= other_verb;
        note->state = error == 0 || in_vain || note->n_attempts == MAX_ATTEMPTS ? FREE : WAITING;
        note->due = other_verb ? now : now + AGAIN;
        return error == 0 || note->state == WAITING;
}

static void settle(struct note *note, int error) {
        struct hf__lease_events *events = note->events;
        pthread_mutex_lock(&events->mu);
        bool ok = settle_locked(note, error);
        pthread_mutex_unlock(&events->mu);
        if (!ok)
                hf_log(&events->host->log, HF_LOG_DEBUG, "elector",
                       "%s/%s: an Event about who leads is given up: %s", events->ns, events->name,
                       hf_strerror(error));
        unref(events);
}

static void on_reply(void *ctx, const struct hf_response *reply) { settle(ctx, reply->error); }

/* The note is UNDER_WAY: it is this thread's until the call is made, then the answer's. */
static void send(struct note *note) {
        struct hf__lease_events *events = note->events;
        struct hf__strbuf body = {0};
        char name[HF_NAME_MAX + 1];
        (void)snprintf(name, sizeof name, "%.200s.leader-%u-%s", events->name,
                       (unsigned)(note->transitions & (KEPT - 1)),
                       note->began ? "became" : "stopped");
        compose(note, name, &body);
        int r = body.error;
        if (r == 0) {
                const struct hf_request request = {.verb = note->create ? HF_VERB_CREATE
                                                                        : HF_VERB_UPDATE,
                                                   .resource = {"", "v1", "events"},
                                                   .ns = events->ns,
                                                   .name = note->create ? NULL : name,
                                                   .body = body.data,
                                                   .n_body = body.n,
                                                   .deadline = hf_now(hf_host_clock(events->host)) +
                                                               PATIENCE};
                r = hf_client_request(events->client, &request, on_reply, note, NULL);
        }
        hf__strbuf_done(&body);
        if (r != 0)
                settle(note, r);
}

void hf__lease_events_iterate(struct hf__lease_events *events, hf_nsec now) {
        unsigned is_due = 0;
        pthread_mutex_lock(&events->mu);
        for (unsigned i = 0; i < MAX_NOTES; i++)
                if (events->notes[i].state == WAITING && events->notes[i].due <= now) {
                        events->notes[i].state = UNDER_WAY;
                        events->refs++;
                        is_due |= 1u << i;
                }
        pthread_mutex_unlock(&events->mu);
        for (unsigned i = 0; is_due; i++, is_due >>= 1)
                if (is_due & 1)
                        send(&events->notes[i]);
}
