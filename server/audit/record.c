/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the record of a request (what all its audit events have in common), collects the bodies of
 * the request and its response, and makes the events.
 *
 * Invariant: a body or an event gives back all that it has taken from the budget when it is freed,
 * and a record what its annotations have taken. A body that could not be kept holds nothing.
 */
#include "server/audit/record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/assert_costly.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/thread.h"

#define AGENT_MAX   1024 /* bytes of User-Agent, as in kube-apiserver */
#define TRUNCATED   "...TRUNCATED"
#define PIECES_STEP 8   /* pieces by which the array of a body grows */
#define USER_BYTES  512 /* an estimate of the memory of the users; they may have more */

/* ---- the budget ---- */

/* Relaxed order is enough: the counter is only compared with its limit, and no other memory is
 * handed over by it. */
bool hfd_audit_budget_take(struct hfd_audit_budget *budget, size_t n) {
        size_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);

        do {
                if (n > budget->max || held > budget->max - n)
                        return false;
        } while (!atomic_compare_exchange_weak_explicit(&budget->held, &held, held + n,
                                                        memory_order_relaxed,
                                                        memory_order_relaxed));
        return true;
}

void hfd_audit_budget_give(struct hfd_audit_budget *budget, size_t n) {
        size_t before = atomic_fetch_sub_explicit(&budget->held, n, memory_order_relaxed);

        assert(before >= n);
        (void)before;
}

/* ---- bodies ---- */

/* Frees the pieces, and gives their bytes back. `truncated` stays: a body that was dropped must not
 * begin again with a later piece. */
static void body_done(struct hfd_audit_body *body, struct hfd_audit_budget *budget) {
        assert(body->n <= HFD_AUDIT_PIECES_MAX && body->n_bytes <= HFD_AUDIT_BODY_MAX);
        for (size_t i = 0; i < body->n; i++)
                hf__buf_unref(body->pieces[i]);
        free(body->pieces);
        hfd_audit_budget_give(budget, body->n_bytes);
        *body = (struct hfd_audit_body){.truncated = body->truncated};
}

/* False: out of memory. */
static bool make_room(struct hfd_audit_body *body) {
        if (body->n % PIECES_STEP != 0)
                return true;
        struct hf__buf **grown =
                realloc(body->pieces, (body->n + PIECES_STEP) * sizeof(struct hf__buf *));
        if (grown)
                body->pieces = grown;
        return grown != NULL;
}

/* Takes over the reference. piece NULL = it cannot be kept. Then, or if there is no room for the
 * piece, drops the whole body. */
static void body_add(struct hfd_audit_body *body, struct hfd_audit_budget *budget,
                     struct hf__buf *piece) {
        if (!body->truncated && piece && body->n < HFD_AUDIT_PIECES_MAX &&
            piece->n <= HFD_AUDIT_BODY_MAX - body->n_bytes && make_room(body) &&
            hfd_audit_budget_take(budget, piece->n)) {
                assert(body->n_bytes <= HFD_AUDIT_BODY_MAX);
                body->pieces[body->n++] = piece;
                body->n_bytes += piece->n;
                return;
        }
        hf__buf_unref(piece);
        body->truncated = true;
        body_done(body, budget);
}

/* Copies before it locks, so that the lock is held for a few pointers only. */
void hfd_audit_record_request(struct hfd_audit_record *record, const char *data, size_t n) {
        struct hf__buf *copy = n <= HFD_AUDIT_BODY_MAX ? hf__buf_copy(data, n) : NULL;

        pthread_mutex_lock(&record->mu);
        if (!record->complete && record->request.n == 0)
                body_add(&record->request, record->budget, hf__buf_ref(copy));
        pthread_mutex_unlock(&record->mu);
        hf__buf_unref(copy);
}

void hfd_audit_record_annotate(struct hfd_audit_record *record, const char *texts, size_t n) {
        struct hf__buf *copy = hf__buf_copy(texts, n);

        pthread_mutex_lock(&record->mu);
        if (copy && !record->complete && !record->annotations &&
            hfd_audit_budget_take(record->budget, n)) {
                record->annotations = copy;
                copy = NULL;
        }
        pthread_mutex_unlock(&record->mu);
        hf__buf_unref(copy);
}

void hfd_audit_record_response(struct hfd_audit_record *record, struct hf__buf *piece) {
        pthread_mutex_lock(&record->mu);
        if (!record->complete)
                body_add(&record->response, record->budget, hf__buf_ref(piece));
        pthread_mutex_unlock(&record->mu);
}

/* ---- records ---- */

static const char *store_uri(char **at, const struct hfd_audit_head *head) {
        char *copy = *at, *end = stpcpy(copy, head->path);

        if (head->query[0])
                end = stpcpy(stpcpy(end, "?"), head->query);
        *at = end + 1;
        return copy;
}

/* Cuts a long text, and says so. It is cut without regard to characters, as in kube-apiserver. */
static const char *store_agent(char **at, const char *agent) {
        char *copy = *at;
        size_t n = strlen(agent);

        memcpy(copy, agent, n < AGENT_MAX ? n : AGENT_MAX);
        *at = stpcpy(copy + (n < AGENT_MAX ? n : AGENT_MAX), n > AGENT_MAX ? TRUNCATED : "") + 1;
        return copy;
}

/* The bytes that set_texts needs at most, with a NUL for each text. The "?" between path and query
 * takes the place of the path's NUL. */
static size_t text_size(const struct hfd_audit_head *head) {
        const struct hfd_attributes *a = head->attributes;
        const char *const texts[] = {head->id,       head->path, head->query, head->source_ips,
                                     head->attempts, a->verb,    a->group,    a->resource,
                                     a->subresource, a->ns,      a->name,     head->version};
        size_t n = AGENT_MAX + sizeof TRUNCATED, n_agent = strlen(head->agent) + 1;

        if (n_agent <= AGENT_MAX)
                n = n_agent;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                n += strlen(texts[i]) + 1;
        return n;
}

static void set_texts(struct hfd_audit_record *record, const struct hfd_audit_head *head) {
        const struct hfd_attributes *a = head->attributes;
        char *at = record->text;

        record->id = hf__text_copy(&at, head->id);
        record->uri = store_uri(&at, head);
        record->agent = store_agent(&at, head->agent);
        record->source_ips = hf__text_copy(&at, head->source_ips);
        record->attempts = hf__text_copy(&at, head->attempts);
        record->verb = hf__text_copy(&at, a->verb);
        record->group = hf__text_copy(&at, a->group);
        record->version = hf__text_copy(&at, head->version);
        record->resource = hf__text_copy(&at, a->resource);
        record->subresource = hf__text_copy(&at, a->subresource);
        record->ns = hf__text_copy(&at, a->ns);
        record->name = hf__text_copy(&at, a->name);
        hf__assert_costly((size_t)(at - record->text) <= text_size(head));
}

HF__CLEANUP_DEFINE(record_cleanup, struct hfd_audit_record *, hfd_audit_record_unref)

int hfd_audit_record_new(struct hfd_audit_budget *budget, const struct hfd_audit_head *head,
                         struct hfd_audit_record **ret_record) {
        assert(budget && head->attributes);
        size_t n_text = text_size(head);
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_audit_record *memory = calloc(1, sizeof *memory + n_text);

        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        atomic_init(&memory->refs, 1);
        HF__CLEANUP(record_cleanup) struct hfd_audit_record *record = HF__TAKE(memory);
        record->budget = budget;
        record->n_bytes = sizeof *record + n_text + sizeof(struct hfd_audit_event) + USER_BYTES;
        record->decision = head->decision;
        record->received_at = head->received_at;
        record->is_resource = head->attributes->is_resource;
        set_texts(record, head);
        record->user = head->user ? hfd_requester_new(head->user) : NULL;
        if (head->user && !record->user)
                return -ENOMEM;
        *ret_record = HF__TAKE(record);
        return 0;
}

struct hfd_audit_record *hfd_audit_record_ref(struct hfd_audit_record *record) {
        assert(atomic_load_explicit(&record->refs, memory_order_relaxed) > 0);
        atomic_fetch_add_explicit(&record->refs, 1, memory_order_relaxed);
        return record;
}

struct hfd_audit_record *hfd_audit_record_unref(struct hfd_audit_record *record) {
        assert(!record || atomic_load_explicit(&record->refs, memory_order_relaxed) > 0);
        if (!record || atomic_fetch_sub_explicit(&record->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        body_done(&record->request, record->budget);
        body_done(&record->response, record->budget);
        if (record->annotations)
                hfd_audit_budget_give(record->budget, record->annotations->n);
        hf__buf_unref(record->annotations);
        pthread_mutex_destroy(&record->mu);
        free(record->user);
        free(record->impersonated);
        free(record->reason);
        free(record);
        return NULL;
}

/* ---- events ---- */

/* An event takes the whole size of its record from the budget, although all events of a request
 * share the record: the last one may be in the queue for long after the others are written. */
struct hfd_audit_event *hfd_audit_event_new(struct hfd_audit_record *record,
                                            enum hfd_audit_stage stage, int64_t at, int code,
                                            bool complete) {
        if (!hfd_audit_budget_take(record->budget, record->n_bytes))
                return NULL;
        struct hfd_audit_event *event = calloc(1, sizeof *event);
        if (!event) {
                hfd_audit_budget_give(record->budget, record->n_bytes);
                return NULL;
        }
        event->record = hfd_audit_record_ref(record);
        event->stage = stage;
        event->at = at;
        event->code = code;
        /* The last event takes the bodies; what arrives afterwards is not recorded. */
        if (!complete)
                return event;
        pthread_mutex_lock(&record->mu);
        record->complete = true;
        event->request = record->request;
        event->response = record->response;
        record->request = record->response = (struct hfd_audit_body){0};
        pthread_mutex_unlock(&record->mu);
        return event;
}

struct hfd_audit_event *hfd_audit_event_free(struct hfd_audit_event *event) {
        if (!event)
                return NULL;
        body_done(&event->request, event->record->budget);
        body_done(&event->response, event->record->budget);
        hfd_audit_budget_give(event->record->budget, event->record->n_bytes);
        hfd_audit_record_unref(event->record);
        free(event);
        return NULL;
}
