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

struct hf__cache_letter {
        struct hf__cache_letter *next;
        struct hf__cache_source *source;
        bool last;
        enum hf_event_type type;
        struct hf__buf *object; /* owned; NULL for a bookmark; of a list, its body */
        char resource_version[HF__CACHE_RV_MAX];
};

struct hf__cache_source {
        struct hf_cache *cache;
        uint64_t id;
        bool probe; /* a list made for waiters, beside a watch */
        hf_nsec started_at;
        size_t n_events;              /* the thread's */
        bool lost;                    /* an event could not be kept; guarded by the cache's mu */
        struct hf__cache_letter last; /* posted once, at the end */
        int error;                    /* written before it is posted, as status */
        struct hf_status status;
};

/* ---- the client's side ---- */

/* What counts against the limit: events. Of lists there is one at a time, with the client's own
 * limit. */
static size_t letter_bytes(const struct hf__cache_letter *letter) {
        return letter->last ? 0 : sizeof *letter + (letter->object ? letter->object->n : 0);
}

static void post(struct hf_cache *cache, struct hf__cache_letter *letter) {
        size_t n = letter_bytes(letter);
        bool last = letter->last;

        (void)pthread_mutex_lock(&cache->mu);
        letter->next = NULL;
        *cache->letters_tail = letter;
        cache->letters_tail = &letter->next;
        cache->n_letter_bytes += n;
        bool wakes = cache->sleeps;
        cache->sleeps = false;
        /* The last one's signal is under the lock: after it the cache may be gone as soon as the
         * lock is free. With the others the cache waits for the last, and its thread need not wake
         * only to wait for the lock. */
        if (wakes && last)
                (void)pthread_cond_signal(&cache->wake);
        (void)pthread_mutex_unlock(&cache->mu);
        if (wakes && !last)
                (void)pthread_cond_signal(&cache->wake);
}

static void on_list(void *ctx, const struct hf_reply *reply) {
        struct hf__cache_source *source = ctx;

        source->error = reply->error;
        source->status = reply->status;
        if (reply->error == 0) {
                source->last.object = hf__buf_copy(reply->body ? reply->body : "",
                                                   reply->body ? reply->n_body : 0);
                if (!source->last.object)
                        source->error =
                                hf_fail(&source->status, -ENOMEM, "out of memory for a list");
        }
        post(source->cache, &source->last);
}

static void lose(struct hf__cache_source *source) {
        struct hf_cache *cache = source->cache;

        (void)pthread_mutex_lock(&cache->mu);
        source->lost = true;
        (void)pthread_cond_signal(&cache->wake);
        (void)pthread_mutex_unlock(&cache->mu);
}

static bool may_keep(struct hf__cache_source *source) {
        struct hf_cache *cache = source->cache;

        (void)pthread_mutex_lock(&cache->mu);
        bool may = !source->lost && cache->n_letter_bytes < MAX_LETTER_BYTES;
        (void)pthread_mutex_unlock(&cache->mu);
        return may;
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct hf__cache_source *source = ctx;
        struct hf__cache_letter *letter = may_keep(source) ? calloc(1, sizeof *letter) : NULL;
        const char *version = event->resource_version ? event->resource_version : "";

        if (!letter || strlen(version) >= sizeof letter->resource_version) {
                free(letter);
                lose(source);
                return;
        }
        letter->source = source;
        letter->type = event->type;
        strcpy(letter->resource_version, version);
        if (event->type != HF_EVENT_BOOKMARK &&
            hf__cache_keep(source->cache, event->object, event->n_object, &letter->object) < 0) {
                free(letter);
                lose(source);
                return;
        }
        post(source->cache, letter);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct hf__cache_source *source = ctx;

        source->error = error;
        if (status)
                source->status = *status;
        post(source->cache, &source->last);
}

/* ---- starting and leaving sources ---- */

static struct hf__cache_source *source_new(struct hf_cache *cache) {
        struct hf__cache_source *source = calloc(1, sizeof *source);

        if (!source)
                return NULL;
        source->cache = cache;
        source->started_at = hf_now(cache->clock);
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
static hf_nsec probe_delay_locked(struct hf_cache *cache, uint32_t retry_after_s) {
        return delay_after(cache->probe_failures < URGENT_FAILURES ? cache->probe_failures++
                                                                   : URGENT_FAILURES,
                           retry_after_s);
}

/* When to try again after the failures there were; for those who wait, urgent_at. */
static hf_nsec again_at(struct hf_cache *cache, unsigned failures, uint32_t retry_after_s) {
        hf_nsec now = hf_now(cache->clock);

        cache->urgent_at =
                now +
                delay_after(failures < URGENT_FAILURES ? failures : URGENT_FAILURES, retry_after_s);
        return now + delay_after(failures, retry_after_s);
}

static void complain(struct hf_cache *cache, const char *verb, unsigned failures, int error,
                     const struct hf_status *status) {
        enum hf_log_level level =
                failures == 0 ? HF_LOG_WARNING : HF_LOG_DEBUG; /* the first of a row is news */
        const char *words = status && status->message[0] ? status->message : hf_strerror(error);

        hf_log(&cache->host->log, level, "cache", "%s of %s%s%s failed: %s", verb,
               cache->resource.plural, cache->ns[0] ? " in " : "", cache->ns, words);
}

static void forget_pages(struct hf_cache *cache) {
        free(cache->more);
        cache->more = NULL;
}

static void list_failed(struct hf_cache *cache, int error, const struct hf_status *status) {
        uint32_t retry_after_s = status ? status->retry_after_s : 0;

        cache->whole = cache->more && error == HF_E_GONE;
        forget_pages(cache);
        if (cache->need_list) {
                complain(cache, "list", cache->list_failures, error, status);
                cache->list_at = again_at(cache, cache->list_failures++, retry_after_s);
                return;
        }
        (void)pthread_mutex_lock(&cache->mu);
        cache->probe_at = hf_now(cache->clock) + probe_delay_locked(cache, retry_after_s);
        (void)pthread_mutex_unlock(&cache->mu);
}

/* The server says that it has not reached our revision, and knows no better way to say it than in
 * words. */
static bool is_ahead_of_server(int error, const struct hf_status *status) {
        return error == HF_E_TIMEOUT && status &&
               strstr(status->message, "Too large resource version");
}

/* A probe under way is of no use any more, and must not be waited for. */
static void want_list(struct hf_cache *cache, hf_nsec at) {
        cache->need_list = true;
        cache->list_at = at;
        if (cache->list && cache->list->probe)
                hf_client_cancel(cache->client, cache->list->id);
}

static void watch_failed(struct hf_cache *cache, int error, const struct hf_status *status) {
        hf_nsec at = again_at(cache, cache->watch_failures, status ? status->retry_after_s : 0);

        if (error != 0 && error != HF_E_GONE)
                complain(cache, "watch", cache->watch_failures, error, status);
        if (error == HF_E_GONE && cache->watch_failures == 0)
                at = hf_now(cache->clock); /* a first one is ordinary life */
        cache->set_back = cache->set_back || is_ahead_of_server(error, status);
        if (error == HF_E_GONE || is_ahead_of_server(error, status))
                want_list(cache, at);
        cache->watch_at = at;
        cache->watch_failures++;
}

static uint64_t last_awaited(struct hf_cache *cache) {
        uint64_t revision = 0;

        (void)pthread_mutex_lock(&cache->mu);
        for (const struct hf__cache_waiter *w = cache->waiters; w; w = w->next)
                if (w->revision > revision)
                        revision = w->revision;
        (void)pthread_mutex_unlock(&cache->mu);
        return revision;
}

/*
 * The query of the next list, or of its next page. One that is made for waiters of a server with
 * one revision may be as old as what the last of them waits for; where that was not enough, and
 * anywhere else, it is a consistent one, which has a number.
 */
static void list_query(struct hf_cache *cache, struct hf__strbuf *out) {
        (void)pthread_mutex_lock(&cache->mu);
        bool first = !cache->more, lenient = first && cache->one_revision && !cache->need_list &&
                                             cache->probe_failures == 0;
        (void)pthread_mutex_unlock(&cache->mu);

        if (cache->query[0])
                hf__strbuf_printf(out, "%s&", cache->query);
        if (cache->whole)
                hf__strbuf_puts(out, "limit=0");
        else
                hf__strbuf_printf(out, "limit=%d", HF__CACHE_PAGE);
        if (lenient)
                hf__strbuf_printf(out,
                                  "&resourceVersion=%" PRIu64 "&resourceVersionMatch=NotOlderThan",
                                  last_awaited(cache));
        if (!first) {
                hf__strbuf_puts(out, "&continue=");
                hf__strbuf_urlencode(out, cache->more);
                return;
        }
        (void)pthread_mutex_lock(&cache->mu);
        cache->list_number = lenient ? 0 : ++cache->n_lists;
        (void)pthread_mutex_unlock(&cache->mu);
}

static void start_list(struct hf_cache *cache) {
        struct hf__strbuf query = {0};

        list_query(cache, &query);
        const struct hf_call call = {
                .verb = HF_VERB_LIST,
                .resource = cache->resource,
                .ns = cache->ns,
                .query = query.data,
                .deadline = hf_now(cache->clock) + LIST_TIMEOUT,
        };
        struct hf__cache_source *source = query.error ? NULL : source_new(cache);
        int r = -ENOMEM;
        if (source) {
                source->probe = !cache->need_list;
                r = hf_client_call(cache->client, &call, on_list, source, &source->id);
        }
        hf__strbuf_done(&query);
        if (r != 0) {
                free(source);
                list_failed(cache, r, NULL);
                return;
        }
        cache->n_sources++;
        cache->list = source;
}

static void start_watch(struct hf_cache *cache) {
        const struct hf_watch_spec spec = {
                .resource = cache->resource,
                .ns = cache->ns,
                .query = cache->query,
                .resource_version = cache->resource_version,
                .bookmarks = true,
                .lane = HF_LANE_WATCH,
        };
        struct hf__cache_source *source = source_new(cache);
        int r = source ? hf_client_watch(cache->client, &spec, on_event, on_end, source,
                                         &source->id)
                       : -ENOMEM;

        if (r != 0) {
                free(source);
                watch_failed(cache, r, NULL);
                return;
        }
        cache->n_sources++;
        cache->watch = source;
        cache->floor = 0; /* it begins behind every list there was */
}

static void leave_watch(struct hf_cache *cache) {
        if (cache->watch)
                hf_client_watch_cancel(cache->client, cache->watch->id);
        cache->watch = NULL; /* its last letter frees it */
}

static void list_again(struct hf_cache *cache) {
        leave_watch(cache);
        want_list(cache, hf_now(cache->clock));
}

/* ---- taking letters ---- */

static void set_seen(struct hf_cache *cache, const char *resource_version) {
        strcpy(cache->resource_version, resource_version);
        (void)pthread_mutex_lock(&cache->mu);
        cache->seen = hf__cache_revision(resource_version);
        (void)pthread_cond_broadcast(&cache->changed);
        (void)pthread_mutex_unlock(&cache->mu);
}

static void take_event(struct hf_cache *cache, const struct hf__cache_letter *letter) {
        uint64_t revision = hf__cache_revision(letter->resource_version);
        int r = 0;

        cache->watch->n_events++;
        cache->watch_failures = 0;
        if (revision != 0 && revision <= cache->floor)
                return;
        if (revision != 0 && revision < cache->seen) {
                cache->set_back = true;
                list_again(cache);
                return;
        }
        if (letter->type != HF_EVENT_BOOKMARK)
                r = hf__cache_take_object(cache, letter->type, letter->object);
        if (r == 0) {
                set_seen(cache, letter->resource_version);
                return;
        }
        /* An event that cannot be kept is never skipped: the list that follows brings what it said.
         */
        complain(cache, "watch", 0, r, NULL);
        leave_watch(cache);
        want_list(cache, again_at(cache, 0, 0));
}

static bool newcomers_locked(const struct hf_cache *cache) {
        for (const struct hf__cache_waiter *w = cache->waiters; w; w = w->next)
                if (!hf__cache_reached_locked(cache, w) && w->after >= cache->list_number &&
                    cache->list_number > 0)
                        return true;
        return false;
}

/* The list of that number is in the store, or the store is newer than it. */
static void list_done(struct hf_cache *cache, bool probe) {
        cache->list_failures = 0;
        cache->whole = false;
        (void)pthread_mutex_lock(&cache->mu);
        if (cache->list_number > cache->consistent)
                cache->consistent = cache->list_number;
        cache->synced = true;
        /* Whoever still waits came while the list was made, or is ahead of the server as well: ask
         * again, the latter ever more slowly. */
        cache->probe_at = hf_now(cache->clock) +
                          (probe && !newcomers_locked(cache) ? probe_delay_locked(cache, 0) : 0);
        (void)pthread_cond_broadcast(&cache->changed);
        (void)pthread_mutex_unlock(&cache->mu);
}

/* Of the first page: what is to become of the list? False: nothing, the watch was faster. */
static bool list_counts(struct hf_cache *cache, const char *version, bool more) {
        uint64_t revision = hf__cache_revision(version);

        if (cache->need_list)
                return true;
        if (revision != 0 && revision <= cache->seen)
                return false;
        if (more || revision == 0)
                list_again(cache);
        return true;
}

static int take_page(struct hf_cache *cache, const struct hf__buf *body, bool probe) {
        char version[HF__CACHE_RV_MAX], *more = NULL;
        bool first = !cache->more;

        int r = hf__cache_list_head(body->data, body->n, version, &more);
        if (r != 0)
                return r;
        forget_pages(cache);
        if (first) {
                if (!list_counts(cache, version, more)) {
                        free(more);
                        list_done(cache, probe);
                        return 0;
                }
                strcpy(cache->list_version, version);
                cache->set_back = cache->set_back || (hf__cache_revision(version) != 0 &&
                                                      hf__cache_revision(version) < cache->seen);
                hf__cache_list_begin(cache);
        }
        cache->more = more;
        r = hf__cache_list_page(cache, body->data, body->n);
        if (r != 0 || more)
                return r;
        hf__cache_list_end(cache);
        cache->set_back = false;
        cache->floor = cache->need_list ? 0 : hf__cache_revision(cache->list_version);
        cache->need_list = false;
        set_seen(cache, cache->list_version);
        list_done(cache, probe);
        return 0;
}

static void list_ended(struct hf_cache *cache, const struct hf__cache_source *source) {
        int r = source->error;

        cache->list = NULL;
        if (source->probe && cache->need_list)
                return;
        if (r == 0)
                r = take_page(cache, source->last.object, source->probe);
        if (r != 0)
                list_failed(cache, r, source->error ? &source->status : NULL);
}

static void watch_ended(struct hf_cache *cache, const struct hf__cache_source *source) {
        bool stable =
                source->n_events > 0 || hf_now(cache->clock) - source->started_at >= STABLE_WATCH;

        cache->watch = NULL;
        if (stable)
                cache->watch_failures = 0;
        if (source->error == 0 && stable)
                cache->watch_at = hf_now(cache->clock);
        else
                watch_failed(cache, source->error, &source->status);
}

static void take_letter(struct hf_cache *cache, struct hf__cache_letter *letter) {
        struct hf__cache_source *source = letter->source;

        if (!letter->last) {
                if (source == cache->watch)
                        take_event(cache, letter);
                (void)hf__buf_unref(letter->object);
                free(letter);
                return;
        }
        if (source == cache->list)
                list_ended(cache, source);
        else if (source == cache->watch)
                watch_ended(cache, source);
        cache->n_sources--;
        (void)hf__buf_unref(source->last.object);
        free(source);
}

/* ---- the loop ---- */

static struct hf__cache_letter *pop_locked(struct hf_cache *cache) {
        struct hf__cache_letter *letter = cache->letters;

        if (!letter)
                return NULL;
        cache->letters = letter->next;
        if (!cache->letters)
                cache->letters_tail = &cache->letters;
        cache->n_letter_bytes -= letter_bytes(letter);
        return letter;
}

static bool waiters_ahead_locked(const struct hf_cache *cache) {
        for (const struct hf__cache_waiter *w = cache->waiters; w; w = w->next)
                if (!hf__cache_reached_locked(cache, w))
                        return true;
        return false;
}

static hf_nsec not_before_locked(const struct hf_cache *cache, hf_nsec at) {
        return cache->waiters && cache->urgent_at < at ? cache->urgent_at : at;
}

/* What is to be done now, or NULL and until when there is nothing. */
static void (*next_step_locked(struct hf_cache *cache,
                               hf_nsec *ret_until))(struct hf_cache *cache) {
        hf_nsec now = hf_now(cache->clock), at = HF_NSEC_NEVER;
        void (*step)(struct hf_cache *) = NULL;

        if (cache->watch && cache->watch->lost)
                return list_again;
        if (cache->need_list) {
                step = start_list;
                at = cache->list ? HF_NSEC_NEVER : not_before_locked(cache, cache->list_at);
        } else if (!cache->watch) {
                step = start_watch;
                at = not_before_locked(cache, cache->watch_at);
        } else if (!cache->list && waiters_ahead_locked(cache)) {
                step = start_list;
                at = cache->probe_at;
        }
        *ret_until = cache->resync > 0 && cache->resync_at < at ? cache->resync_at : at;
        return at <= now ? step : NULL;
}

static void sleep_locked(struct hf_cache *cache, hf_nsec until) {
        cache->sleeps = true;
        (void)cache->clock->wait(cache->clock->ctx, &cache->wake, &cache->mu, until);
        cache->sleeps = false;
}

static void turn_locked(struct hf_cache *cache) {
        void (*step)(struct hf_cache *) = NULL;
        hf_nsec until = HF_NSEC_NEVER;

        if (hf__cache_replay_locked(cache) || hf__cache_resync_locked(cache))
                return;
        struct hf__cache_letter *letter = pop_locked(cache);
        if (!letter && !(step = next_step_locked(cache, &until))) {
                sleep_locked(cache, until);
                return;
        }
        (void)pthread_mutex_unlock(&cache->mu);
        if (letter)
                take_letter(cache, letter);
        else
                step(cache);
        (void)pthread_mutex_lock(&cache->mu);
}

/* The client answers what is cancelled soon, so this ends. */
static void leave_all_locked(struct hf_cache *cache) {
        (void)pthread_mutex_unlock(&cache->mu);
        if (cache->list)
                hf_client_cancel(cache->client, cache->list->id);
        cache->list = NULL;
        leave_watch(cache);
        (void)pthread_mutex_lock(&cache->mu);
        while (cache->n_sources > 0) {
                struct hf__cache_letter *letter = pop_locked(cache);
                if (letter)
                        take_letter(cache, letter);
                else
                        sleep_locked(cache, HF_NSEC_NEVER);
        }
}

void *hf__cache_run(void *ctx) {
        struct hf_cache *cache = ctx;

        (void)pthread_mutex_lock(&cache->mu);
        while (!cache->stop)
                turn_locked(cache);
        leave_all_locked(cache);
        (void)pthread_mutex_unlock(&cache->mu);
        forget_pages(cache);
        return NULL;
}
