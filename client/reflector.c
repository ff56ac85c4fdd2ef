/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's thread: it lists, watches on from there, lists again when history is gone, and backs
 * off from failures.
 *
 * A source is one list call or one watch. Its callbacks run on the client's threads and only post
 * letters, the last of which is the source's own and ends it. The thread takes letters in order;
 * letters of a watch it no longer follows are thrown away. At most one list and one watch are
 * followed at a time:
 *
 *      need_list, no list          start a list at list_at
 *      no need_list, no watch      start a watch at watch_at, from the revision last seen
 *      a watch, waiters ahead      start a list beside the watch at probe_at: the probe
 *
 * A list comes in pages of at most 500 objects, so that no body is a giant; each is put into the
 * store as it comes, and what none of them had goes with the last. A list that breaks off begins
 * again; when the server forgot its revision between two pages, in one piece.
 *
 * A probe's answer at revision R is newer than the store when R is above what was seen: then the
 * store is made equal to it, and the watch's events up to R, which may still come, are skipped
 * (floor). When the watch was faster the answer is of no use but to those who wait for any
 * consistent list. So a quiet collection learns its revision, and a busy one is not set back. An
 * answer that cannot be laid beside the watch, because more pages follow or its version is no
 * number, ends the watch and becomes the list that the next one begins from; one that comes when
 * the watch is lost already is thrown away, for it may be older than what was seen.
 *
 * A server whose revisions run backwards, or that does not know ours yet, was set back to a backup:
 * the collection is listed again, and what that says counts, also of an object whose revision is
 * the one we know, for it may have been issued anew.
 *
 * Failures delay 0.1 s doubling to 30 s, or for as long as the server asks, up to 5 minutes, but to
 * 0.8 s only while somebody waits: a new leader's controllers must not wait out a delay that grew
 * during an outage before its term. An event, or a watch that lived for a second, resets the
 * watch's count; a list that succeeds resets the list's.
 */
#include "client/informer_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/strbuf.h"

#define MAX_LETTER_BYTES                                                                           \
        ((size_t)64 << 20) /* beyond it the watch is dropped and the collection listed again */
#define PAGE         500   /* objects */
#define LIST_TIMEOUT (60 * HF_NSEC_PER_SEC)
#define FIRST_DELAY  (100 * HF_NSEC_PER_MSEC)
#define LAST_DELAY   (30 * HF_NSEC_PER_SEC)
#define LONGEST_ASKED                                                                              \
        (300 * HF_NSEC_PER_SEC) /* a Retry-After beyond it is cut: a slip of the server is not to  \
                                   stop a cache for years */
#define STABLE_WATCH HF_NSEC_PER_SEC
#define URGENT_FAILURES                                                                            \
        3 /* the delay does not grow beyond that of the third while somebody waits */

struct hf__reflector_message {
        struct hf__reflector_message *next;
        struct hf__reflector_source *source;
        bool last;
        enum hf_event_type type;
        struct hf__buf *object; /* owned; NULL for a bookmark; of a list, its body */
        char resource_version[HF__INFORMER_RV_MAX];
};

struct hf__reflector_source {
        struct hf_informer *informer;
        uint64_t id;
        bool probe; /* a list made for waiters, beside a watch */
        hf_nsec started_at;
        size_t n_events; /* the thread's */
        bool lost;       /* an event could not be kept; guarded by the cache's mu */
        struct hf__reflector_message last; /* posted once, at the end */
        int error;                         /* written before it is posted, as status */
        struct hf_status status;
};

/* ---- the client's side ---- */

/* What counts against the limit: events. Of lists there is one at a time, with the client's own
 * limit. */
static size_t message_bytes(const struct hf__reflector_message *message) {
        return message->last ? 0 : sizeof *message + (message->object ? message->object->n : 0);
}

static void post(struct hf_informer *informer, struct hf__reflector_message *message) {
        size_t n = message_bytes(message);
        bool last = message->last;

        (void)pthread_mutex_lock(&informer->mu);
        message->next = NULL;
        *informer->messages_tail = message;
        informer->messages_tail = &message->next;
        informer->n_message_bytes += n;
        bool wakes = informer->sleeps;
        informer->sleeps = false;
        /* The last one's signal is under the lock: after it the cache may be gone as soon as the
         * lock is free. With the others the cache waits for the last, and its thread need not wake
         * only to wait for the lock. */
        if (wakes && last)
                (void)pthread_cond_signal(&informer->wake);
        (void)pthread_mutex_unlock(&informer->mu);
        if (wakes && !last)
                (void)pthread_cond_signal(&informer->wake);
}

static void on_list(void *ctx, const struct hf_response *reply) {
        struct hf__reflector_source *source = ctx;

        source->error = reply->error;
        source->status = reply->status;
        if (reply->error == 0) {
                source->last.object = hf__buf_copy(reply->body ? reply->body : "",
                                                   reply->body ? reply->n_body : 0);
                if (!source->last.object)
                        source->error =
                                hf_fail(&source->status, -ENOMEM, "out of memory for a list");
        }
        post(source->informer, &source->last);
}

static void lose(struct hf__reflector_source *source) {
        struct hf_informer *informer = source->informer;

        (void)pthread_mutex_lock(&informer->mu);
        source->lost = true;
        (void)pthread_cond_signal(&informer->wake);
        (void)pthread_mutex_unlock(&informer->mu);
}

static bool may_keep(struct hf__reflector_source *source) {
        struct hf_informer *informer = source->informer;

        (void)pthread_mutex_lock(&informer->mu);
        bool may = !source->lost && informer->n_message_bytes < MAX_LETTER_BYTES;
        (void)pthread_mutex_unlock(&informer->mu);
        return may;
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct hf__reflector_source *source = ctx;
        struct hf__reflector_message *message =
                may_keep(source) ? calloc(1, sizeof *message) : NULL;
        const char *version = event->resource_version ? event->resource_version : "";

        if (!message || strlen(version) >= sizeof message->resource_version) {
                free(message);
                lose(source);
                return;
        }
        message->source = source;
        message->type = event->type;
        strcpy(message->resource_version, version);
        if (event->type != HF_EVENT_BOOKMARK &&
            hf__informer_keep(source->informer, event->object, event->n_object, &message->object) <
                    0) {
                free(message);
                lose(source);
                return;
        }
        post(source->informer, message);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct hf__reflector_source *source = ctx;

        source->error = error;
        if (status)
                source->status = *status;
        post(source->informer, &source->last);
}

/* ---- starting and leaving sources ---- */

static struct hf__reflector_source *source_new(struct hf_informer *informer) {
        struct hf__reflector_source *source = calloc(1, sizeof *source);

        if (!source)
                return NULL;
        source->informer = informer;
        source->started_at = hf_now(informer->clock);
        source->last.source = source;
        source->last.last = true;
        return source;
}

static hf_nsec delay_after(unsigned failures, uint32_t retry_after_s) {
        hf_nsec delay = FIRST_DELAY, said = (hf_nsec)retry_after_s * HF_NSEC_PER_SEC;

        while (failures-- > 0 && delay < LAST_DELAY)
                delay *= 2;
        if (delay > LAST_DELAY)
                delay = LAST_DELAY;
        if (said > LONGEST_ASKED)
                said = LONGEST_ASKED;
        return said > delay ? said : delay;
}

/* Somebody waits for a probe, so its delays end below a second. */
static hf_nsec probe_delay_locked(struct hf_informer *informer, uint32_t retry_after_s) {
        return delay_after(informer->probe_failures < URGENT_FAILURES ? informer->probe_failures++
                                                                      : URGENT_FAILURES,
                           retry_after_s);
}

/* When to try again after the failures there were; for those who wait, urgent_at. */
static hf_nsec again_at(struct hf_informer *informer, unsigned failures, uint32_t retry_after_s) {
        hf_nsec now = hf_now(informer->clock);

        informer->urgent_at =
                now +
                delay_after(failures < URGENT_FAILURES ? failures : URGENT_FAILURES, retry_after_s);
        return now + delay_after(failures, retry_after_s);
}

static void complain(struct hf_informer *informer, const char *verb, unsigned failures, int error,
                     const struct hf_status *status) {
        enum hf_log_level level =
                failures == 0 ? HF_LOG_WARNING : HF_LOG_DEBUG; /* the first of a row is news */
        const char *words = status && status->message[0] ? status->message : hf_strerror(error);

        hf_log(&informer->host->log, level, "cache", "%s of %s%s%s failed: %s", verb,
               informer->resource.plural, informer->ns[0] ? " in " : "", informer->ns, words);
}

static void forget_pages(struct hf_informer *informer) {
        free(informer->more);
        informer->more = NULL;
}

static void list_failed(struct hf_informer *informer, int error, const struct hf_status *status) {
        uint32_t retry_after_s = status ? status->retry_after_s : 0;

        informer->whole = informer->more && error == HF_E_GONE;
        forget_pages(informer);
        if (informer->need_list) {
                complain(informer, "list", informer->list_failures, error, status);
                informer->list_at = again_at(informer, informer->list_failures++, retry_after_s);
                return;
        }
        (void)pthread_mutex_lock(&informer->mu);
        informer->probe_at = hf_now(informer->clock) + probe_delay_locked(informer, retry_after_s);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* The server says that it has not reached our revision, and knows no better way to say it than in
 * words. */
static bool is_ahead_of_server(int error, const struct hf_status *status) {
        return error == HF_E_TIMEOUT && status &&
               strstr(status->message, "Too large resource version");
}

/* A probe under way is of no use any more, and must not be waited for. */
static void want_list(struct hf_informer *informer, hf_nsec at) {
        informer->need_list = true;
        informer->list_at = at;
        if (informer->list && informer->list->probe)
                hf_client_cancel(informer->client, informer->list->id);
}

static void watch_failed(struct hf_informer *informer, int error, const struct hf_status *status) {
        hf_nsec at =
                again_at(informer, informer->watch_failures, status ? status->retry_after_s : 0);

        if (error != 0 && error != HF_E_GONE)
                complain(informer, "watch", informer->watch_failures, error, status);
        if (error == HF_E_GONE && informer->watch_failures == 0)
                at = hf_now(informer->clock); /* a first one is ordinary life */
        informer->set_back = informer->set_back || is_ahead_of_server(error, status);
        if (error == HF_E_GONE || is_ahead_of_server(error, status))
                want_list(informer, at);
        informer->watch_at = at;
        informer->watch_failures++;
}

static uint64_t last_awaited(struct hf_informer *informer) {
        uint64_t revision = 0;

        (void)pthread_mutex_lock(&informer->mu);
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (w->revision > revision)
                        revision = w->revision;
        (void)pthread_mutex_unlock(&informer->mu);
        return revision;
}

/*
 * The query of the next list, or of its next page. One that is made for waiters of a server with
 * one revision may be as old as what the last of them waits for; where that was not enough, and
 * anywhere else, it is a consistent one, which has a number.
 */
static void list_query(struct hf_informer *informer, struct hf__strbuf *out) {
        (void)pthread_mutex_lock(&informer->mu);
        bool first = !informer->more, lenient = first && informer->one_revision &&
                                                !informer->need_list &&
                                                informer->probe_failures == 0;
        (void)pthread_mutex_unlock(&informer->mu);

        if (informer->query[0])
                hf__strbuf_printf(out, "%s&", informer->query);
        if (informer->whole)
                hf__strbuf_puts(out, "limit=0");
        else
                hf__strbuf_printf(out, "limit=%d", HF__REFLECTOR_PAGE);
        if (lenient)
                hf__strbuf_printf(out,
                                  "&resourceVersion=%" PRIu64 "&resourceVersionMatch=NotOlderThan",
                                  last_awaited(informer));
        if (!first) {
                hf__strbuf_puts(out, "&continue=");
                hf__strbuf_urlencode(out, informer->more);
                return;
        }
        (void)pthread_mutex_lock(&informer->mu);
        informer->list_number = lenient ? 0 : ++informer->n_lists;
        (void)pthread_mutex_unlock(&informer->mu);
}

static void start_list(struct hf_informer *informer) {
        struct hf__strbuf query = {0};

        list_query(informer, &query);
        const struct hf_request request = {
                .verb = HF_VERB_LIST,
                .resource = informer->resource,
                .ns = informer->ns,
                .query = query.data,
                .deadline = hf_now(informer->clock) + LIST_TIMEOUT,
        };
        struct hf__reflector_source *source = query.error ? NULL : source_new(informer);
        int r = -ENOMEM;
        if (source) {
                source->probe = !informer->need_list;
                r = hf_client_request(informer->client, &request, on_list, source, &source->id);
        }
        hf__strbuf_done(&query);
        if (r != 0) {
                free(source);
                list_failed(informer, r, NULL);
                return;
        }
        informer->n_sources++;
        informer->list = source;
}

static void start_watch(struct hf_informer *informer) {
        const struct hf_watch_spec spec = {
                .resource = informer->resource,
                .ns = informer->ns,
                .query = informer->query,
                .resource_version = informer->resource_version,
                .bookmarks = true,
                .lane = HF_LANE_WATCH,
        };
        struct hf__reflector_source *source = source_new(informer);
        int r = source ? hf_client_watch(informer->client, &spec, on_event, on_end, source,
                                         &source->id)
                       : -ENOMEM;

        if (r != 0) {
                free(source);
                watch_failed(informer, r, NULL);
                return;
        }
        informer->n_sources++;
        informer->watch = source;
        informer->floor = 0; /* it begins behind every list there was */
}

static void leave_watch(struct hf_informer *informer) {
        if (informer->watch)
                hf_client_watch_cancel(informer->client, informer->watch->id);
        informer->watch = NULL; /* its last letter frees it */
}

static void list_again(struct hf_informer *informer) {
        leave_watch(informer);
        want_list(informer, hf_now(informer->clock));
}

/* ---- taking letters ---- */

static void set_seen(struct hf_informer *informer, const char *resource_version) {
        strcpy(informer->resource_version, resource_version);
        (void)pthread_mutex_lock(&informer->mu);
        informer->seen = hf__informer_revision(resource_version);
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

static void take_event(struct hf_informer *informer, const struct hf__reflector_message *message) {
        uint64_t revision = hf__informer_revision(message->resource_version);
        int r = 0;

        informer->watch->n_events++;
        informer->watch_failures = 0;
        if (revision != 0 && revision <= informer->floor)
                return;
        if (revision != 0 && revision < informer->seen) {
                informer->set_back = true;
                list_again(informer);
                return;
        }
        if (message->type != HF_EVENT_BOOKMARK)
                r = hf__informer_take_object(informer, message->type, message->object);
        if (r == 0) {
                set_seen(informer, message->resource_version);
                return;
        }
        /* An event that cannot be kept is never skipped: the list that follows brings what it said.
         */
        complain(informer, "watch", 0, r, NULL);
        leave_watch(informer);
        want_list(informer, again_at(informer, 0, 0));
}

static bool newcomers_locked(const struct hf_informer *informer) {
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (!hf__informer_reached_locked(informer, w) &&
                    w->after >= informer->list_number && informer->list_number > 0)
                        return true;
        return false;
}

/* The list of that number is in the store, or the store is newer than it. */
static void list_done(struct hf_informer *informer, bool probe) {
        informer->list_failures = 0;
        informer->whole = false;
        (void)pthread_mutex_lock(&informer->mu);
        if (informer->list_number > informer->consistent)
                informer->consistent = informer->list_number;
        informer->synced = true;
        /* Whoever still waits came while the list was made, or is ahead of the server as well: ask
         * again, the latter ever more slowly. */
        informer->probe_at =
                hf_now(informer->clock) +
                (probe && !newcomers_locked(informer) ? probe_delay_locked(informer, 0) : 0);
        (void)pthread_cond_broadcast(&informer->changed);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Of the first page: what is to become of the list? False: nothing, the watch was faster. */
static bool list_counts(struct hf_informer *informer, const char *version, bool more) {
        uint64_t revision = hf__informer_revision(version);

        if (informer->need_list)
                return true;
        if (revision != 0 && revision <= informer->seen)
                return false;
        if (more || revision == 0)
                list_again(informer);
        return true;
}

static int take_page(struct hf_informer *informer, const struct hf__buf *body, bool probe) {
        char version[HF__INFORMER_RV_MAX], *more = NULL;
        bool first = !informer->more;

        int r = hf__informer_list_head(body->data, body->n, version, &more);
        if (r != 0)
                return r;
        forget_pages(informer);
        if (first) {
                if (!list_counts(informer, version, more)) {
                        free(more);
                        list_done(informer, probe);
                        return 0;
                }
                strcpy(informer->list_version, version);
                informer->set_back =
                        informer->set_back || (hf__informer_revision(version) != 0 &&
                                               hf__informer_revision(version) < informer->seen);
                hf__informer_list_begin(informer);
        }
        informer->more = more;
        r = hf__informer_list_page(informer, body->data, body->n);
        if (r != 0 || more)
                return r;
        hf__informer_list_end(informer);
        informer->set_back = false;
        informer->floor = informer->need_list ? 0 : hf__informer_revision(informer->list_version);
        informer->need_list = false;
        set_seen(informer, informer->list_version);
        list_done(informer, probe);
        return 0;
}

static void list_ended(struct hf_informer *informer, const struct hf__reflector_source *source) {
        int r = source->error;

        informer->list = NULL;
        if (source->probe && informer->need_list)
                return;
        if (r == 0)
                r = take_page(informer, source->last.object, source->probe);
        if (r != 0)
                list_failed(informer, r, source->error ? &source->status : NULL);
}

static void watch_ended(struct hf_informer *informer, const struct hf__reflector_source *source) {
        bool stable = source->n_events > 0 ||
                      hf_now(informer->clock) - source->started_at >= STABLE_WATCH;

        informer->watch = NULL;
        if (stable)
                informer->watch_failures = 0;
        if (source->error == 0 && stable)
                informer->watch_at = hf_now(informer->clock);
        else
                watch_failed(informer, source->error, &source->status);
}

static void take_message(struct hf_informer *informer, struct hf__reflector_message *message) {
        struct hf__reflector_source *source = message->source;

        if (!message->last) {
                if (source == informer->watch)
                        take_event(informer, message);
                (void)hf__buf_unref(message->object);
                free(message);
                return;
        }
        if (source == informer->list)
                list_ended(informer, source);
        else if (source == informer->watch)
                watch_ended(informer, source);
        informer->n_sources--;
        (void)hf__buf_unref(source->last.object);
        free(source);
}

/* ---- the loop ---- */

static struct hf__reflector_message *pop_locked(struct hf_informer *informer) {
        struct hf__reflector_message *message = informer->messages;

        if (!message)
                return NULL;
        informer->messages = message->next;
        if (!informer->messages)
                informer->messages_tail = &informer->messages;
        informer->n_message_bytes -= message_bytes(message);
        return message;
}

static bool waiters_ahead_locked(const struct hf_informer *informer) {
        for (const struct hf__informer_waiter *w = informer->waiters; w; w = w->next)
                if (!hf__informer_reached_locked(informer, w))
                        return true;
        return false;
}

static hf_nsec not_before_locked(const struct hf_informer *informer, hf_nsec at) {
        return informer->waiters && informer->urgent_at < at ? informer->urgent_at : at;
}

/* What is to be done now, or NULL and until when there is nothing. */
static void (*next_step_locked(struct hf_informer *informer,
                               hf_nsec *ret_until))(struct hf_informer *informer) {
        hf_nsec now = hf_now(informer->clock), at = HF_NSEC_NEVER;
        void (*step)(struct hf_informer *) = NULL;

        if (informer->watch && informer->watch->lost)
                return list_again;
        if (informer->need_list) {
                step = start_list;
                at = informer->list ? HF_NSEC_NEVER
                                    : not_before_locked(informer, informer->list_at);
        } else if (!informer->watch) {
                step = start_watch;
                at = not_before_locked(informer, informer->watch_at);
        } else if (!informer->list && waiters_ahead_locked(informer)) {
                step = start_list;
                at = informer->probe_at;
        }
        *ret_until = informer->resync > 0 && informer->resync_at < at ? informer->resync_at : at;
        return at <= now ? step : NULL;
}

static void sleep_locked(struct hf_informer *informer, hf_nsec until) {
        informer->sleeps = true;
        (void)informer->clock->wait(informer->clock->ctx, &informer->wake, &informer->mu, until);
        informer->sleeps = false;
}

static void iteration_locked(struct hf_informer *informer) {
        void (*step)(struct hf_informer *) = NULL;
        hf_nsec until = HF_NSEC_NEVER;

        if (hf__informer_replay_locked(informer) || hf__informer_resync_locked(informer))
                return;
        struct hf__reflector_message *message = pop_locked(informer);
        if (!message && !(step = next_step_locked(informer, &until))) {
                sleep_locked(informer, until);
                return;
        }
        (void)pthread_mutex_unlock(&informer->mu);
        if (message)
                take_message(informer, message);
        else
                step(informer);
        (void)pthread_mutex_lock(&informer->mu);
}

/* The client answers what is cancelled soon, so this ends. */
static void leave_all_locked(struct hf_informer *informer) {
        (void)pthread_mutex_unlock(&informer->mu);
        if (informer->list)
                hf_client_cancel(informer->client, informer->list->id);
        informer->list = NULL;
        leave_watch(informer);
        (void)pthread_mutex_lock(&informer->mu);
        while (informer->n_sources > 0) {
                struct hf__reflector_message *message = pop_locked(informer);
                if (message)
                        take_message(informer, message);
                else
                        sleep_locked(informer, HF_NSEC_NEVER);
        }
}

void *hf__reflector_run(void *ctx) {
        struct hf_informer *informer = ctx;

        (void)pthread_mutex_lock(&informer->mu);
        while (!informer->stop)
                iteration_locked(informer);
        leave_all_locked(informer);
        (void)pthread_mutex_unlock(&informer->mu);
        forget_pages(informer);
        return NULL;
}
