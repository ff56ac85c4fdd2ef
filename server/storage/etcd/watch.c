/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on etcd. Each is a gRPC stream of its own: we send the create request and, while etcd has
 * nothing to say, progress requests; etcd sends events until one side ends the stream. A second,
 * early stream may help for the first moment (see below).
 *
 * Invariant: the channel owns a watch from its start until its streams are released, when it is
 * freed. All of its callbacks run on the channel's thread. A watch is in etcd->watches from its
 * start until its end, so that hfd_etcd_watch_cancel, which looks there under the lock, never finds
 * a freed one.
 *
 * etcd puts the events of one revision into one message (we do not ask for fragments), so a
 * revision is never split.
 *
 * A watch never resumes by itself: its user knows the last revision and decides. After a compaction
 * etcd sends a message and leaves the stream open; we end it. An etcd that sends nothing at all is
 * noticed because the header block of its response must arrive within HEAD_TIMEOUT. One that falls
 * silent later, because it is stopped or cut off, is noticed because it does not respond to a
 * progress request.
 *
 * The response to a progress request is only a sign of life here. etcd before 3.4.25 and 3.5.8 may
 * send it ahead of events of older revisions (etcd issue 15220), so it must not become
 * HFD_WATCH_PROGRESS. The notifications that etcd sends by itself keep the order.
 *
 * Versions of etcd 3.4 (3.4.23, for example) and 3.5 lose a deletion if its revision is the
 * compacted one and a watch begins there (etcd issue 18089): they have removed the deletion, but
 * say nothing. So each watch from revision 2 or later asks etcd for one revision more, and drops
 * the events before its own first revision. After such a compaction etcd says that the additional
 * revision is compacted.
 *
 * But etcd serves a watch of a past revision in rounds of 100 ms, and would let each watch wait
 * that long for its first events. So if nothing was written since the revision before its first
 * one, the watch opens an early stream, which asks for nothing past and is served at once. Events
 * that both bring are delivered once. The early stream ends when the watch itself is served, or
 * after EARLY_TIME. It gets no probes: etcd 3.4.38, 3.5.22 and 3.6.2 do not respond to a progress
 * request on a stream whose watch begins after the last revision. It says nothing about
 * compactions; the watch itself does, within its first round. (A write at the moment when etcd
 * creates the early stream can make that one of the past, too. Only if the written revision is a
 * deletion that is compacted within the same round could it be left out.)
 */
#include "server/storage/etcd/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/storage/etcd/etcd.h"
#include "server/storage/etcd/grpc_status.h"
#include "server/storage/etcd/pack.h"
#include "server/storage/etcd/parse.h"

#define WATCH_PATH   "/etcdserverpb.Watch/Watch"
#define HEAD_TIMEOUT (5 * HF_NSEC_PER_SEC)
#define PROBE_AFTER  (2 * HF_NSEC_PER_SEC)
#define PROBE_TIME   (3 * HF_NSEC_PER_SEC)
#define EARLY_TIME   (5 * HF_NSEC_PER_SEC)

struct hfd_etcd_watch {
        struct hfd_grpc_stream stream, early;
        struct hfd_etcd *etcd; /* borrowed */
        size_t endpoint;
        struct hfd_watch_handler handler;
        void *ctx;
        struct hf__buf *create, *create_early, *probe; /* owned; create_early may be NULL */
        struct hf_status end;                          /* end.error != 0: why the watch ends */
        /* the channel's thread only, after the start */
        uint64_t first;    /* the user gets what is from this revision on; 0 = all */
        uint64_t before;   /* what is up to this revision was delivered, or is not wanted */
        bool is_over;      /* the user was told of its end */
        bool has_early;    /* the channel owns `early` */
        bool was_released; /* `stream` is the watch's again, but not `early` */
        /* guarded by etcd->mu */
        uint64_t id;
        struct hfd_etcd_watch *next, **link; /* in etcd->watches */
};

/* Records why the watch ends. The channel ends the stream when on_message returns a value other
 * than 0. */
static int fail_watch(struct hfd_etcd_watch *watch, int error, const char *why) {
        return hf_fail(&watch->end, error, "etcd %s: watch ended: %s",
                       watch->etcd->endpoints[watch->endpoint].url, why);
}

static int on_early_message(void *ctx, const char *data, size_t n);
static void on_early_done(void *ctx, const struct hfd_grpc_result *result);
static void on_early_release(void *ctx);

/* Opens the early stream. If it cannot be opened, the watch gets its first events later. */
static void start_early(struct hfd_etcd_watch *watch) {
        struct hfd_etcd *etcd = watch->etcd;

        if (!watch->create_early || watch->has_early)
                return;
        const struct hfd_grpc_request request = {
                .path = WATCH_PATH,
                .body = watch->create_early,
                .endpoint = watch->endpoint,
                .lane = HFD_ETCD_LANE_WATCH,
                .deadline = hf_now(hf_host_clock(etcd->store.host)) + EARLY_TIME,
                .max_message = HFD_ETCD_BODY_MAX,
                .on_message = on_early_message,
                .on_done = on_early_done,
                .on_release = on_early_release,
                .ctx = watch,
        };
        watch->has_early = true;
        if (hfd_grpc_channel_start(etcd->calls, &watch->early, &request) != 0)
                watch->has_early = false;
}

static void end_early(struct hfd_etcd_watch *watch) {
        if (watch->has_early)
                hfd_grpc_channel_cancel(watch->etcd->calls, &watch->early);
}

/* Delivers the events after watch->before. etcd sorts events by revision. */
static void deliver_events(struct hfd_etcd_watch *watch, const struct hfd_watch_event *events,
                           size_t n) {
        size_t n_before = 0;

        while (n_before < n && events[n_before].revision <= watch->before)
                n_before++;
        if (n_before == n)
                return;
        watch->before = events[n - 1].revision;
        watch->handler.event(watch->ctx, events + n_before, n - n_before);
}

/* Delivers the events of a response. 0, or another value: the watch must end. */
static int deliver_response(struct hfd_etcd_watch *watch,
                            const struct hfd_etcd_watch_response *response) {
        if (response->compact_revision != 0)
                return fail_watch(watch, HF_E_GONE, "a revision that it needs is compacted");
        if (response->canceled)
                return fail_watch(watch, HF_E_UNAVAILABLE,
                                  *response->cancel_reason ? response->cancel_reason
                                                           : "canceled by etcd");
        if (response->is_probed)
                return 0;
        if (response->created) {
                if (response->revision == watch->before)
                        start_early(watch);
                return 0;
        }
        end_early(watch);
        if (response->n_events > 0) {
                deliver_events(watch, response->events, response->n_events);
        } else if (response->revision >= watch->before) {
                struct hfd_watch_event progress = {.type = HFD_WATCH_PROGRESS,
                                                   .revision = response->revision};

                watch->handler.event(watch->ctx, &progress, 1);
        }
        return 0;
}

/* The same for the early stream. If something was written before etcd created it, etcd does not
 * serve it earlier than the watch itself. */
static int deliver_early_response(struct hfd_etcd_watch *watch,
                                  const struct hfd_etcd_watch_response *response) {
        if (watch->is_over || response->canceled || response->compact_revision != 0 ||
            (response->created && response->revision > watch->first - 1))
                return HF_E_CANCELED;
        deliver_events(watch, response->events, response->n_events);
        return 0;
}

/* Handles a message by `deliver`. */
static int handle_message(struct hfd_etcd_watch *watch, const char *data, size_t n,
                          int (*deliver)(struct hfd_etcd_watch *watch,
                                         const struct hfd_etcd_watch_response *response)) {
        struct hfd_etcd_watch_response response;
        struct hf__arena arena;

        hf__arena_init(&arena);
        int r = hfd_etcd_parse_watch_response(data, n, &arena, &response);
        if (r == 0)
                r = deliver(watch, &response);
        else if (deliver == deliver_response)
                (void)fail_watch(watch, HF_E_UNAVAILABLE, hf_strerror(r));
        hfd_etcd_release_watch_response(&response);
        hf__arena_deinit(&arena);
        return r;
}

static int on_watch_message(void *ctx, const char *data, size_t n) {
        struct hfd_etcd_watch *watch = ctx;

        assert(watch->end.error == 0);
        return handle_message(watch, data, n, deliver_response);
}

static int on_early_message(void *ctx, const char *data, size_t n) {
        return handle_message(ctx, data, n, deliver_early_response);
}

static void link_locked(struct hfd_etcd_watch *watch) {
        struct hfd_etcd *etcd = watch->etcd;

        hf__mutex_assert_held(&etcd->mu);
        watch->id = ++etcd->last_watch_id;
        watch->next = etcd->watches;
        if (watch->next)
                watch->next->link = &watch->next;
        watch->link = &etcd->watches;
        etcd->watches = watch;
}

static void unlink_locked(struct hfd_etcd_watch *watch) {
        hf__mutex_assert_held(&watch->etcd->mu);
        *watch->link = watch->next;
        if (watch->next)
                watch->next->link = watch->link;
}

static void free_watch(struct hfd_etcd_watch *watch) {
        hf__buf_unref(watch->create);
        hf__buf_unref(watch->create_early);
        hf__buf_unref(watch->probe);
        free(watch);
}

static void on_watch_done(void *ctx, const struct hfd_grpc_result *result) {
        struct hfd_etcd_watch *watch = ctx;

        /* If an error is set already, a message of etcd was the reason: the endpoint responds, and
         * stays in use. */
        if (watch->end.error == 0) {
                int r = hfd_grpc_status_error(result, false,
                                              watch->etcd->endpoints[watch->endpoint].url,
                                              &watch->end);

                if (r != HF_E_GONE && r != HF_E_CANCELED) {
                        /* After any other error the user can resume the watch, perhaps on another
                         * endpoint. */
                        watch->end.error = HF_E_UNAVAILABLE;
                        hfd_etcd_fail_over(watch->etcd, watch->endpoint);
                        hfd_etcd_watch_fail_over(watch->etcd, watch->endpoint);
                }
        }
        end_early(watch);
        watch->is_over = true;
        watch->handler.end(watch->ctx, watch->end.error, &watch->end);
        pthread_mutex_lock(&watch->etcd->mu);
        unlink_locked(watch);
        pthread_mutex_unlock(&watch->etcd->mu);
}

static void on_watch_release(void *ctx) {
        struct hfd_etcd_watch *watch = ctx;

        watch->was_released = true;
        if (!watch->has_early)
                free_watch(watch);
}

static void on_early_done(void *ctx, const struct hfd_grpc_result *result) {}

static void on_early_release(void *ctx) {
        struct hfd_etcd_watch *watch = ctx;

        watch->has_early = false;
        if (watch->was_released)
                free_watch(watch);
}

HF__CLEANUP_DEFINE(watch_cleanup, struct hfd_etcd_watch *, free_watch)

int hfd_etcd_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                   const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        HF__CLEANUP(watch_cleanup) struct hfd_etcd_watch *watch = calloc(1, sizeof *watch);
        struct hfd_grpc_request request;
        int r;

        assert(handler->event && handler->end);
        if (!watch)
                return -ENOMEM;
        watch->etcd = etcd;
        watch->endpoint = hfd_etcd_watch_endpoint(etcd);
        watch->handler = *handler;
        watch->ctx = ctx;
        watch->first = revision;
        watch->before = revision > 0 ? revision - 1 : 0;
        /* 0 would mean "from the next write on", so revision 1 stays as it is. */
        watch->create = hfd_etcd_pack_watch(begin, end, revision > 1 ? revision - 1 : revision);
        if (revision > 1)
                watch->create_early = hfd_etcd_pack_watch(begin, end, revision);
        watch->probe = hfd_etcd_pack_watch_progress();
        if (!watch->create || (revision > 1 && !watch->create_early) || !watch->probe)
                return -ENOMEM;
        request = (struct hfd_grpc_request){
                .path = WATCH_PATH,
                /* etcd ends the watch when its member loses the leader */
                .header_name = "hasleader",
                .header_value = "true",
                .body = watch->create,
                .endpoint = watch->endpoint,
                .lane = HFD_ETCD_LANE_WATCH,
                .deadline = HF_NSEC_NEVER,
                .head_timeout = HEAD_TIMEOUT,
                .max_message = HFD_ETCD_BODY_MAX,
                .probe = watch->probe,
                .probe_after = PROBE_AFTER,
                .probe_time = PROBE_TIME,
                .on_message = on_watch_message,
                .on_done = on_watch_done,
                .on_release = on_watch_release,
                .ctx = watch,
        };
        pthread_mutex_lock(&etcd->mu);
        link_locked(watch);
        if (ret_id) /* before the start, because a callback may need the id */
                *ret_id = watch->id;
        r = hfd_grpc_channel_start(etcd->calls, &watch->stream, &request);
        if (r != 0)
                unlink_locked(watch);
        pthread_mutex_unlock(&etcd->mu);
        if (r == 0)
                (void)HF__TAKE(watch); /* on_watch_release frees it */
        return r;
}

static struct hfd_etcd_watch *find_locked(struct hfd_etcd *etcd, uint64_t id) {
        struct hfd_etcd_watch *watch = etcd->watches;

        hf__mutex_assert_held(&etcd->mu);
        while (watch && watch->id != id)
                watch = watch->next;
        return watch;
}

/* Canceling under the lock keeps the watch from being released meanwhile. */
void hfd_etcd_watch_cancel(struct hfd_store *store, uint64_t id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        struct hfd_etcd_watch *watch;

        pthread_mutex_lock(&etcd->mu);
        watch = find_locked(etcd, id);
        if (watch)
                hfd_grpc_channel_cancel(etcd->calls, &watch->stream);
        pthread_mutex_unlock(&etcd->mu);
}

/* The endpoint is switched first, because the end of the watch makes its user open another one. */
void hfd_etcd_watch_suspect(struct hfd_store *store, uint64_t id) {
        struct hfd_etcd *etcd = hfd_etcd_of(store);
        size_t endpoint = HFD_ETCD_NO_ENDPOINT;

        pthread_mutex_lock(&etcd->mu);
        const struct hfd_etcd_watch *watch = find_locked(etcd, id);
        if (watch)
                endpoint = watch->endpoint;
        pthread_mutex_unlock(&etcd->mu);
        if (endpoint == HFD_ETCD_NO_ENDPOINT)
                return;
        hfd_etcd_watch_fail_over(etcd, endpoint);
        hfd_etcd_watch_cancel(store, id);
}
