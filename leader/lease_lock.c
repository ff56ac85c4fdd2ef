/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the elector's lock (lock_port.h: read, write and watch a record) with one
 * coordination.k8s.io/v1 Lease, through an API client.
 *
 * Threads. The owner starts operations: the elector loop, or two_lease_lock.c, which may do so on a
 * thread of the client. The client calls back on threads of its own, sometimes before the starting
 * call has returned. Each operation under way holds a reference on the lock, so a late response
 * still finds the lock's memory and sees `closed`. lock_free closes the lock, cancels the
 * operations under way, and waits for callbacks that are inside the owner's functions at this
 * moment (those do not block). After that the owner is not called any more. The client may still
 * call back, but finds the lock closed.
 *
 * `last` is the newest Lease object seen, as text: a tree would take several times the memory. Its
 * managedFields are left out. They are as large as the rest, and a server keeps its own if an
 * update has none. An update sends that object with our fields changed, so that the fields of other
 * writers survive. An update whose revision differs from that of `last` fails with HF_E_CONFLICT
 * without a request. Then the elector reads the Lease, so that its record and `last` agree again.
 * After a deletion `last` keeps the deleted object, so that a new Lease continues its list of past
 * terms (lease_history.h). No update is based on it, because `exists` is false.
 *
 * Invariants:
 *  - no lock is held while the client or the elector is called;
 *  - a write is reported as failed only if it was not sent, or if its error proves that the server
 *    did not apply it (error.h). Every other failure (canceled, a local failure after sending, an
 *    unreadable response) is reported as HF_E_TIMEOUT: outcome unknown.
 */
#include "leader/lease_lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "client/json_span.h"
#include "leader/lease_edit.h"
#include "leader/lease_record.h"
#include "leader/lease_watches.h"

#define HTTP_TOO_LARGE 413

enum op_kind { OP_READ, OP_WRITE, OP_WATCH, OP_SHARED_WATCH };

struct op {
        /* immutable */
        struct lease_lock *lock; /* holds a reference */
        enum op_kind kind;
        uint32_t id; /* the op_id that the owner gave; 0 for a watch */

        /* guarded by lock->mu */
        struct op *next;
        /* The client's id of the request; for OP_SHARED_WATCH the id of the subscription in
         * lock->watches. 0 = not known yet. */
        uint64_t client_id;
        bool over; /* no callback will follow, and it is not on the list any more */
        bool cancel_wanted;
        bool reported;   /* a watch that has passed an event to the elector */
        bool superseded; /* a watch that was closed or replaced, so its events are dropped */
        int refs;        /* one for the starting function, one for the callback */
};

struct lease_lock {
        struct hf__lock base; /* first */
        /* immutable */
        struct hf_client *client;          /* borrowed */
        struct hf__lease_watches *watches; /* borrowed; NULL = no watch is shared */
        const char *process;               /* describes this process; borrowed; NULL = nothing */
        const char *ns, *name;             /* in `texts` */
        char **labels;                     /* owned; NULL-terminated; NULL = none */

        pthread_mutex_t mu;
        pthread_cond_t quiet;
        /* guarded by mu */
        int refs; /* one for the owner, one for each op */
        bool closed;
        unsigned n_in_callback; /* callbacks of the client inside base.on_reply or base.on_record */
        struct op *ops;         /* under way; owned */
        char *last;       /* JSON without managedFields; owned; NULL = no Lease was ever seen */
        size_t n_last;    /* bytes */
        bool last_is_own; /* `last` was first seen in the response to a write of this lock */
        /* These describe `last`. Its whole record is not kept: it is large and rarely needed. */
        /* false: no Lease was seen, or it was deleted: then `last` still has its past terms */
        bool exists;
        char rv[HF__REVISION_MAX]; /* resourceVersion; of a deleted Lease: of the deletion, or "" */
        uint64_t rv_number;

        char texts[]; /* immutable */
};

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

static void lock_destroy(struct lease_lock *lock) {
        assert(!lock->ops && lock->n_in_callback == 0);
        for (size_t i = 0; lock->labels && lock->labels[i]; i++)
                free(lock->labels[i]);
        free(lock->labels);
        free(lock->last);
        pthread_cond_destroy(&lock->quiet);
        pthread_mutex_destroy(&lock->mu);
        free(lock);
}

static void lock_unref(struct lease_lock *lock) {
        pthread_mutex_lock(&lock->mu);
        assert(lock->refs > 0);
        bool is_last_ref = --lock->refs == 0;
        pthread_mutex_unlock(&lock->mu);
        if (is_last_ref)
                lock_destroy(lock);
}

static struct op *op_new(struct lease_lock *lock, enum op_kind kind, uint32_t id) {
        struct op *op = calloc(1, sizeof *op);
        if (!op)
                return NULL;
        *op = (struct op){.lock = lock, .kind = kind, .id = id, .refs = 2};
        pthread_mutex_lock(&lock->mu);
        assert(lock->refs > 0);
        lock->refs++;
        op->next = lock->ops;
        lock->ops = op;
        pthread_mutex_unlock(&lock->mu);
        return op;
}

static void op_unref(struct op *op) {
        struct lease_lock *lock = op->lock;
        pthread_mutex_lock(&lock->mu);
        assert(op->refs > 0);
        bool is_last_ref = --op->refs == 0;
        assert(!is_last_ref || op->over);
        pthread_mutex_unlock(&lock->mu);
        if (is_last_ref) {
                free(op);
                lock_unref(lock);
        }
}

static void op_end_locked(struct op *op) {
        hf__mutex_assert_held(&op->lock->mu);
        op->over = true;
        for (struct op **at = &op->lock->ops; *at; at = &(*at)->next)
                if (*at == op) {
                        *at = op->next;
                        break;
                }
}

static bool is_watch(const struct op *op) {
        return op->kind == OP_WATCH || op->kind == OP_SHARED_WATCH;
}

static void cancel_at_client(struct lease_lock *lock, enum op_kind kind, uint64_t client_id) {
        if (kind == OP_SHARED_WATCH)
                hf__lease_watches_close(lock->watches, lock->client, lock->ns, lock->name,
                                        client_id);
        else if (kind == OP_WATCH)
                hf_client_watch_cancel(lock->client, client_id);
        else
                hf_client_cancel(lock->client, client_id);
}

/* Handles a request that the client has accepted: stores its id, and cancels it if cancel_ops found
 * the op before the id was known. Drops the starting function's reference. */
static void op_started(struct op *op, uint64_t client_id) {
        struct lease_lock *lock = op->lock;
        pthread_mutex_lock(&lock->mu);
        op->client_id = client_id;
        bool cancel = op->cancel_wanted && !op->over;
        pthread_mutex_unlock(&lock->mu);
        if (cancel)
                cancel_at_client(lock, op->kind, client_id);
        op_unref(op);
}

/* Handles a request that the client did not accept, so that no callback follows. Drops both
 * references. */
static void op_not_started(struct op *op) {
        pthread_mutex_lock(&op->lock->mu);
        op_end_locked(op);
        pthread_mutex_unlock(&op->lock->mu);
        op_unref(op);
        op_unref(op);
}

/* Notes that the Lease does not exist. Keeps `last`, because it has the past terms. */
static void forget_last_locked(struct lease_lock *lock) {
        hf__mutex_assert_held(&lock->mu);
        lock->exists = false;
        lock->rv[0] = '\0';
        lock->rv_number = 0;
}

/* Whether the object is, byte for byte, the one in `last`, apart from what is cut. The watch
 * repeats each write of our own, which the response has shown already. */
static bool is_last_locked(struct lease_lock *lock, const char *text, size_t n,
                           struct hf__lease_cut cut) {
        hf__mutex_assert_held(&lock->mu);
        return lock->exists && lock->n_last == n - (cut.to - cut.from) &&
               memcmp(lock->last, text, cut.from) == 0 &&
               memcmp(lock->last + cut.from, text + cut.to, n - cut.to) == 0;
}

/*
 * Stores a Lease in `last` and takes ownership of its text. A watch may lag behind a response, so a
 * watch event does not replace an object with a greater revision. A response always replaces it,
 * because the current revision may be smaller after a backup was restored.
 */
static void store_last_locked(struct lease_lock *lock, char *text, size_t n,
                              const struct hf__record *record, enum op_kind origin) {
        bool watched = origin != OP_READ && origin != OP_WRITE;
        hf__mutex_assert_held(&lock->mu);
        bool older = record->rv_number && lock->rv_number && record->rv_number < lock->rv_number;
        const struct hf__lease_cut none = {0};
        if ((watched && older) || (record->exists && is_last_locked(lock, text, n, none))) {
                free(text);
                return;
        }
        free(lock->last);
        lock->last = text;
        lock->n_last = n;
        lock->last_is_own = origin == OP_WRITE;
        lock->exists = record->exists;
        memcpy(lock->rv, record->rv, sizeof lock->rv);
        lock->rv_number = record->rv_number;
}

/* Parses an object into *ret_record, and stores its text in `last`. origin: the operation that
 * delivered the object. deleted: the object is the last state of a deleted Lease, so the record
 * gets exists = false. */
static int store_object(struct lease_lock *lock, const char *text, size_t n, enum op_kind origin,
                        bool deleted, struct hf__record *ret_record) {
        struct hf__lease_cut cut = hf__lease_find_cut(text ? text : "", text ? n : 0);
        size_t n_kept = text ? n - (cut.to - cut.from) : 0;
        /* One byte more, because malloc(0) may return NULL. */
        HF__CLEANUP(hf__free_cleanup) char *kept = malloc(n_kept + 1);
        struct hf__json *lease = NULL;
        if (!kept)
                return -ENOMEM;
        if (n_kept > 0)
                memcpy(mempcpy(kept, text, cut.from), text + cut.to, n - cut.to);
        int r = hf__json_parse(kept, n_kept, &lease, NULL);
        if (r == 0)
                r = hf__lease_read(lease, ret_record);
        hf__json_free(lease);
        if (r != 0)
                return r;
        if (deleted) {
                struct hf__record absent = {.rv_number = ret_record->rv_number};
                memcpy(absent.rv, ret_record->rv, sizeof absent.rv);
                *ret_record = absent;
        }
        pthread_mutex_lock(&lock->mu);
        store_last_locked(lock, HF__TAKE(kept), n_kept, ret_record, origin);
        pthread_mutex_unlock(&lock->mu);
        return 0;
}

/* True: the caller may call the elector for op, and must then call leave_callback. False: the lock
 * is closed, or the watch was closed or replaced. */
static bool enter_callback(struct op *op) {
        struct lease_lock *lock = op->lock;
        pthread_mutex_lock(&lock->mu);
        bool wanted = !lock->closed && !op->superseded;
        lock->n_in_callback += wanted;
        pthread_mutex_unlock(&lock->mu);
        return wanted;
}

static void leave_callback(struct op *op) {
        struct lease_lock *lock = op->lock;
        pthread_mutex_lock(&lock->mu);
        assert(lock->n_in_callback > 0);
        if (--lock->n_in_callback == 0)
                pthread_cond_broadcast(&lock->quiet);
        pthread_mutex_unlock(&lock->mu);
}

/* Whether the failed response proves that the server wrote nothing. */
static bool is_nothing_written(const struct hf_response *response) {
        switch (response->error) {
        case HF_E_CONFLICT:
        case HF_E_EXISTS:
        case HF_E_NOT_FOUND:
        case HF_E_INVALID:
        case HF_E_UNAUTHORIZED:
        case HF_E_FORBIDDEN:
        case HF_E_GONE:
        case HF_E_TOO_MANY:
        case HF_E_UNAVAILABLE:
        case HF_E_STALE_TERM:
        case HF_E_NOT_LEADER:
        case HF_E_BUSY:
        case HF_E_CLOSED: return true;
        /* With the status 413 the server has refused the request. Otherwise the server's response
         * was too long to be read, and what it says is unknown. */
        case HF_E_TOO_LARGE: return response->status.http_code == HTTP_TOO_LARGE;
        default: return false;
        }
}

/* Replies from within the function that starts the operation. The caller of that function keeps the
 * lock until the function returns, so enter_callback is not needed. */
static void fail_op(struct lease_lock *lock, uint32_t id, int error, const char *what) {
        struct hf__lock_reply reply = {.result = error};
        (void)hf_fail(&reply.status, error, "lease %s/%s: %s: %s", lock->ns, lock->name, what,
                      hf_strerror(error));
        lock->base.on_reply(lock->base.ctx, id, &reply);
}

static void on_response(void *ctx, const struct hf_response *from) {
        struct op *op = ctx;
        struct lease_lock *lock = op->lock;
        struct hf__lock_reply reply = {.result = from->error};
        if (from->error == 0) {
                reply.result = store_object(lock, from->body, from->n_body, op->kind, false,
                                            &reply.record);
                if (reply.result != 0)
                        (void)hf_fail(&reply.status, reply.result, "lease %s/%s: %s", lock->ns,
                                      lock->name,
                                      reply.result < 0 ? "out of memory for the server's response"
                                                       : "the server's response is not a Lease");
        } else {
                reply.status = from->status;
                reply.retry_after = (hf_nsec)from->status.retry_after_s * HF_NSEC_PER_SEC;
        }
        /* HF_E_TIMEOUT means that the outcome is unknown, so that the elector reads the Lease. */
        if (op->kind == OP_WRITE && reply.result != 0 &&
            (from->error == 0 || !is_nothing_written(from)))
                reply.result = HF_E_TIMEOUT;
        pthread_mutex_lock(&lock->mu);
        if (from->error == HF_E_NOT_FOUND)
                forget_last_locked(lock);
        op_end_locked(op);
        pthread_mutex_unlock(&lock->mu);
        if (enter_callback(op)) {
                lock->base.on_reply(lock->base.ctx, op->id, &reply);
                leave_callback(op);
        }
        op_unref(op);
}

static void start_request(struct lease_lock *lock, struct op *op, struct hf_request *request) {
        uint64_t client_id = 0;
        uint32_t id = op->id;
        request->resource = leases;
        request->ns = lock->ns;
        request->name = lock->name;
        request->lane = HF_LANE_LEASE;
        int r = hf_client_request(lock->client, request, on_response, op, &client_id);
        if (r == 0) {
                op_started(op, client_id);
                return;
        }
        op_not_started(op);
        fail_op(lock, id, r, "cannot send a request");
}

static void lock_read(struct hf__lock *base, uint32_t op_id, hf_nsec deadline) {
        struct lease_lock *lock = (struct lease_lock *)base;
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_GET,
                                     .deadline = deadline};
        struct op *op = op_new(lock, OP_READ, op_id);
        if (op)
                start_request(lock, op, &request);
        else
                fail_op(lock, op_id, -ENOMEM, "cannot send a request");
}

/* Prints the Lease to write, based on `last`. HF_E_CONFLICT, only for an update: `last` is not an
 * existing Lease of the record's revision, or the record has no revision. (An update without one
 * would overwrite any newer state of the Lease.) */
static int print_lease(struct lease_lock *lock, const struct hf__record *record,
                       struct hf__strbuf *out) {
        const char *const *labels = (const char *const *)lock->labels;
        const struct hf__lease_edit edit = {lock->ns, lock->name, record};
        struct hf__json *last = NULL;
        bool is_printed = false;
        int r = 0;
        pthread_mutex_lock(&lock->mu);
        if (record->exists &&
            (!lock->exists || record->rv[0] == '\0' || strcmp(lock->rv, record->rv) != 0))
                r = HF_E_CONFLICT;
        else if (lock->last && !labels)
                is_printed = hf__lease_edit(&edit, lock->last, lock->n_last, out);
        if (r == 0 && lock->last && !is_printed)
                r = hf__json_parse(lock->last, lock->n_last, &last, NULL);
        pthread_mutex_unlock(&lock->mu);
        if (is_printed)
                return out->error;
        if (r == 0) {
                hf__lease_write(last, lock->ns, lock->name, record, labels, lock->process, out);
                r = out->error;
        }
        hf__json_free(last);
        return r;
}

static void lock_write(struct hf__lock *base, uint32_t op_id, const struct hf__record *record,
                       hf_nsec deadline) {
        struct lease_lock *lock = (struct lease_lock *)base;
        struct hf__strbuf text = {0};
        int r = print_lease(lock, record, &text);
        struct op *op = r == 0 ? op_new(lock, OP_WRITE, op_id) : NULL;
        if (op) {
                struct hf_request request = {.size = sizeof request,
                                             .verb = record->exists ? HF_VERB_UPDATE
                                                                    : HF_VERB_CREATE,
                                             .body = text.data,
                                             .n_body = text.n,
                                             .deadline = deadline};
                start_request(lock, op, &request);
        } else {
                fail_op(lock, op_id, r ? r : -ENOMEM, "cannot write");
        }
        hf__strbuf_done(&text);
}

/*
 * Whether the event only repeats a write of our own whose response has been passed on, or is just
 * being passed on. If the elector did not accept that response, because the response came after the
 * deadline, the elector reads the Lease. The first event of a watch is passed on in any case,
 * because it shows that the watch works.
 */
static bool is_echo(struct op *op, const struct hf_event *event) {
        struct lease_lock *lock = op->lock;
        struct hf__lease_cut cut = hf__lease_find_cut(event->object, event->n_object);
        pthread_mutex_lock(&lock->mu);
        bool echo = op->reported && event->type != HF_EVENT_DELETED && lock->last_is_own &&
                    is_last_locked(lock, event->object, event->n_object, cut);
        op->reported = true;
        pthread_mutex_unlock(&lock->mu);
        return echo;
}

/* Whether the event is about another object, which a server sends if it ignores the selector of the
 * watch. The record of such an object would look like a new holder of this Lease. */
static bool is_of_another(const struct lease_lock *lock, const struct hf_event *event) {
        struct hf__span object = {event->object, event->n_object}, metadata, name;
        size_t n = strlen(lock->name);
        return hf__span_member(object, "metadata", &metadata) &&
               hf__span_member(metadata, "name", &name) && hf__span_is_plain(name) &&
               (name.n != n + 2 || memcmp(name.data + 1, lock->name, n) != 0);
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct op *op = ctx;
        struct hf__record record;
        if (event->type == HF_EVENT_BOOKMARK || is_of_another(op->lock, event) ||
            is_echo(op, event))
                return;
        /* An event may fail to parse, for example when memory runs out. Then the watch counts as
         * lost, and the elector opens another one. Until that one has reported something, a standby
         * reads the Lease. A leader notices a change, because its next renewal conflicts. */
        bool seen = store_object(op->lock, event->object, event->n_object, op->kind,
                                 event->type == HF_EVENT_DELETED, &record) == 0;
        if (enter_callback(op)) {
                op->lock->base.on_record(op->lock->base.ctx, seen ? &record : NULL);
                leave_callback(op);
        }
}

static void on_watch_end(void *ctx, int error, const struct hf_status *status) {
        struct op *op = ctx;
        pthread_mutex_lock(&op->lock->mu);
        op_end_locked(op);
        pthread_mutex_unlock(&op->lock->mu);
        if (enter_callback(op)) {
                op->lock->base.on_record(op->lock->base.ctx, NULL);
                leave_callback(op);
        }
        op_unref(op);
}

/*
 * Cancels the operations under way, or only the watches. Each pass cancels one operation, and
 * unlocks before it calls the client, because the client may call back.
 */
static void cancel_ops(struct lease_lock *lock, bool watches_only) {
        for (;;) {
                uint64_t client_id = 0;
                enum op_kind kind = OP_READ;
                pthread_mutex_lock(&lock->mu);
                struct op *op = lock->ops;
                while (op && (op->cancel_wanted || (watches_only && !is_watch(op))))
                        op = op->next;
                if (op) {
                        op->cancel_wanted = true;
                        op->superseded |= is_watch(op);
                        client_id = op->client_id;
                        kind = op->kind;
                }
                pthread_mutex_unlock(&lock->mu);
                if (!op)
                        return;
                if (client_id)
                        cancel_at_client(lock, kind, client_id);
        }
}

static int start_watch(struct lease_lock *lock, struct op *op, uint64_t *ret_id) {
        if (op->kind == OP_SHARED_WATCH)
                return hf__lease_watches_open(lock->watches, lock->client, lock->ns, lock->name,
                                              on_event, on_watch_end, op, ret_id);
        struct hf_watch_spec spec = {.size = sizeof spec,
                                     .resource = leases,
                                     .ns = lock->ns,
                                     .name = lock->name,
                                     .bookmarks = true,
                                     .lane = HF_LANE_LEASE};
        return hf_client_watch(lock->client, &spec, on_event, on_watch_end, op, ret_id);
}

/*
 * Opens a watch. A watch that only this lock uses begins with the current object. A shared watch
 * may begin with the next change: until then a standby's elector reads the Lease once in a retry
 * period (its core polls until the watch has reported something), so it does not miss a change
 * since its last read.
 */
static void lock_watch(struct hf__lock *base) {
        struct lease_lock *lock = (struct lease_lock *)base;
        cancel_ops(lock, true);
        bool shared =
                lock->watches && hf__lease_watches_is_shared(lock->watches, lock->client, lock->ns);
        uint64_t client_id = 0;
        struct op *op = op_new(lock, shared ? OP_SHARED_WATCH : OP_WATCH, 0);
        int r = op ? start_watch(lock, op, &client_id) : -ENOMEM;
        if (r == 0) {
                op_started(op, client_id);
                return;
        }
        if (op)
                op_not_started(op);
        lock->base.on_record(lock->base.ctx, NULL);
}

static void lock_unwatch(struct hf__lock *base) { cancel_ops((struct lease_lock *)base, true); }

static bool lock_process(struct hf__lock *base, const char *holder, int64_t acquire_us,
                         char *process, size_t max) {
        struct lease_lock *lock = (struct lease_lock *)base;
        struct hf__json *last = NULL;
        pthread_mutex_lock(&lock->mu);
        int r = lock->last ? hf__json_parse(lock->last, lock->n_last, &last, NULL) : HF_E_NOT_FOUND;
        pthread_mutex_unlock(&lock->mu);
        bool known = r == 0 && hf__lease_process(last, holder, acquire_us, process, max);
        hf__json_free(last);
        return known;
}

static void lock_free(struct hf__lock *base) {
        struct lease_lock *lock = (struct lease_lock *)base;
        pthread_mutex_lock(&lock->mu);
        lock->closed = true;
        pthread_mutex_unlock(&lock->mu);
        cancel_ops(lock, false);
        pthread_mutex_lock(&lock->mu);
        /* This wait is short, because the owner's callbacks do not block (lock_port.h). */
        while (lock->n_in_callback > 0)
                pthread_cond_wait(&lock->quiet, &lock->mu);
        pthread_mutex_unlock(&lock->mu);
        lock_unref(lock);
}

static int copy_labels(struct lease_lock *lock, const char *const *labels, size_t n) {
        if (n == 0)
                return 0;
        lock->labels = calloc(n + 1, sizeof *lock->labels);
        if (!lock->labels)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                lock->labels[i] = strdup(labels[i]);
                if (!lock->labels[i])
                        return -ENOMEM;
        }
        return 0;
}

HF__CLEANUP_DEFINE(lock_cleanup, struct lease_lock *, lock_destroy)

int hf__lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                       struct hf__lease_watches *watches, const char *process,
                       struct hf__lock **ret_lock) {
        static const struct hf__lock_ops ops = {.read = lock_read,
                                                .write = lock_write,
                                                .watch = lock_watch,
                                                .unwatch = lock_unwatch,
                                                .free = lock_free,
                                                .process = lock_process};
        size_t n_ns = strlen(config->ns) + 1, n_name = strlen(config->name) + 1;
        HF__CLEANUP(hf__free_cleanup)
        struct lease_lock *memory = calloc(1, sizeof *memory + n_ns + n_name);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&memory->mu, &memory->quiet);
        if (r != 0)
                return r;
        HF__CLEANUP(lock_cleanup) struct lease_lock *lock = HF__TAKE(memory);
        lock->base.ops = &ops;
        lock->client = config->client;
        lock->watches = watches;
        lock->process = process;
        lock->refs = 1;
        lock->ns = memcpy(lock->texts, config->ns, n_ns);
        lock->name = memcpy(lock->texts + n_ns, config->name, n_name);
        r = copy_labels(lock, config->labels, config->n_labels);
        if (r == 0 && watches)
                r = hf__lease_watches_expect(watches, lock->client, lock->ns);
        if (r != 0)
                return r;
        *ret_lock = &HF__TAKE(lock)->base;
        return 0;
}
