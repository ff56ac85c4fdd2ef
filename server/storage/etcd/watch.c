/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on etcd. Each is a gRPC stream of its own: we send the create request and, while etcd has
 * nothing to say, progress requests; etcd sends events until one side ends the stream.
 *
 * Invariant: the channel owns a watch from its start to on_watch_release, which frees it. All of
 * its callbacks run on the channel's thread. A watch is in etcd->watches from its start until its
 * end, so that hfd_etcd_watch_cancel, which looks there under the lock, never finds a freed one.
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
 * revision is compacted. The price: etcd serves a watch of a past revision in rounds of 100 ms, so
 * the first events of each watch are up to that late. To have another watch on the stream look for
 * the compaction does not help: etcd 3.4.38, 3.5.22 and 3.6.2 do not respond to a progress request
 * while a watch of the stream begins after the last revision.
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

#define HEAD_TIMEOUT (5 * HF_NSEC_PER_SEC)
#define PROBE_AFTER  (2 * HF_NSEC_PER_SEC)
#define PROBE_TIME   (3 * HF_NSEC_PER_SEC)

struct hfd_etcd_watch {
        struct hfd_grpc_stream stream;
        struct hfd_etcd *etcd; /* borrowed */
        size_t endpoint;
        struct hfd_watch_handler handler;
        void *ctx;
        uint64_t from;                  /* the first revision that the user gets; 0 = any */
        struct hf__buf *create, *probe; /* owned */
        struct hf_status end;           /* end.error != 0: why the watch ends */
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
        if (response->n_events > 0) {
                size_t n_before = 0; /* events before `from`; etcd sorts events by revision */

                while (n_before < response->n_events &&
                       response->events[n_before].revision < watch->from)
                        n_before++;
                if (n_before < response->n_events)
                        watch->handler.event(watch->ctx, response->events + n_before,
                                             response->n_events - n_before);
        } else if (!response->created) {
                struct hfd_watch_event progress = {.type = HFD_WATCH_PROGRESS,
                                                   .revision = response->revision};

                watch->handler.event(watch->ctx, &progress, 1);
        }
        return 0;
}

static int on_watch_message(void *ctx, const char *data, size_t n) {
        struct hfd_etcd_watch *watch = ctx;
        struct hfd_etcd_watch_response response;
        struct hf__arena arena;
        int r;

        assert(watch->end.error == 0);
        hf__arena_init(&arena);
        r = hfd_etcd_parse_watch_response(data, n, &arena, &response);
        if (r != 0)
                (void)fail_watch(watch, HF_E_UNAVAILABLE, hf_strerror(r));
        else
                r = deliver_response(watch, &response);
        hfd_etcd_release_watch_response(&response);
        hf__arena_deinit(&arena);
        return r;
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
        watch->handler.end(watch->ctx, watch->end.error, &watch->end);
        pthread_mutex_lock(&watch->etcd->mu);
        unlink_locked(watch);
        pthread_mutex_unlock(&watch->etcd->mu);
}

static void on_watch_release(void *ctx) { free_watch(ctx); }

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
        watch->from = revision;
        /* 0 would mean "from the next write on", so revision 1 stays as it is. */
        watch->create = hfd_etcd_pack_watch(begin, end, revision > 1 ? revision - 1 : revision);
        watch->probe = hfd_etcd_pack_watch_progress();
        if (!watch->create || !watch->probe)
                return -ENOMEM;
        request = (struct hfd_grpc_request){
                .path = "/etcdserverpb.Watch/Watch",
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
