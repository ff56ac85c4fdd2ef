/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the sources of a reflector (its list requests and watches), and queues what they deliver
 * on the client's threads for the reflector's thread.
 *
 * Invariants: a callback blocks only for the locks of the informer and of its thread. It calls no
 * function of the user but the transform, and that without a lock. If an event cannot be queued (it
 * is malformed, memory is exhausted, or MAX_QUEUED_BYTES are reached), its watch is marked as lost,
 * and the reflector lists again. So no event is lost unnoticed.
 */
#include "client/reflector_source.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "client/informer_private.h"

#define MAX_QUEUED_BYTES ((size_t)64 << 20)
#define LIST_TIMEOUT     (60 * HF_NSEC_PER_SEC)

/* ---- the queue ---- */

void hf__reflector_queue_init(struct hf__reflector_queue *queue) {
        *queue = (struct hf__reflector_queue){.tail = &queue->first};
}

/* The size of a message for the limit. Bodies of lists do not count, because there is only one list
 * at a time and the client limits its size. */
static size_t message_bytes(const struct hf__reflector_message *message) {
        if (message->is_last)
                return 0;
        return sizeof *message + (message->object ? message->object->n : 0);
}

/* Appends a message, which the queue then owns. Called by the client's callbacks. */
static void post_message(struct hf_informer *informer, struct hf__reflector_message *message) {
        struct hf__reflector_queue *queue = &informer->queue;
        size_t n = message_bytes(message);
        bool is_last = message->is_last;

        (void)pthread_mutex_lock(&informer->mu);
        message->next = NULL;
        *queue->tail = message;
        queue->tail = &message->next;
        queue->n_bytes += n;
        bool wakes = informer->rests;
        informer->rests = false;
        /*
         * After the last message of a source, wake the reflector before the lock is released,
         * because from then on the reflector may end and the informer may be freed. After an event,
         * wake the reflector when the lock has been released, so that it does not wake only to wait
         * for the lock. That is safe, because the informer is not freed before the source's last
         * message.
         */
        if (wakes && is_last)
                hf__informer_thread_wake(informer);
        (void)pthread_mutex_unlock(&informer->mu);
        if (wakes && !is_last)
                hf__informer_thread_wake(informer);
}

struct hf__reflector_message *hf__reflector_queue_pop_locked(struct hf_informer *informer) {
        struct hf__reflector_queue *queue = &informer->queue;
        struct hf__reflector_message *message = queue->first;

        hf__mutex_assert_held(&informer->mu);
        assert(hf__reflector_on_thread(&informer->reflector));
        if (!message)
                return NULL;
        queue->first = message->next;
        if (!queue->first)
                queue->tail = &queue->first;
        assert(queue->n_bytes >= message_bytes(message));
        queue->n_bytes -= message_bytes(message);
        return message;
}

void hf__reflector_message_free(struct hf_informer *informer,
                                struct hf__reflector_message *message) {
        struct hf__reflector *reflector = &informer->reflector;

        (void)hf__buf_unref(message->object);
        if (!message->is_last) {
                free(message);
                return;
        }
        struct hf__reflector_source *source = message->source;
        assert(source != reflector->list && source != reflector->watch);
        assert(reflector->n_sources > 0);
        reflector->n_sources--;
        free(source); /* and the message in it */
}

/* ---- callbacks of the client ---- */

/* Copies the body, because it is borrowed only until this function returns. */
static void on_list(void *ctx, const struct hf_response *response) {
        struct hf__reflector_source *source = ctx;

        source->error = response->error;
        source->status = response->status;
        if (response->error == 0) {
                source->last.object = hf__buf_copy(response->body ? response->body : "",
                                                   response->body ? response->n_body : 0);
                if (!source->last.object)
                        source->error =
                                hf_fail(&source->status, -ENOMEM, "out of memory for a list");
        }
        post_message(source->informer, &source->last);
}

/* Wakes the reflector without a message, because there may be no memory for one. */
static void mark_lost(struct hf__reflector_source *source) {
        struct hf_informer *informer = source->informer;

        (void)pthread_mutex_lock(&informer->mu);
        source->lost = true;
        hf__informer_thread_wake(informer);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Refuses events of a lost watch, because they are useless, and events above the limit, because a
 * slow handler could otherwise fill the memory. */
static bool may_queue_event(struct hf__reflector_source *source) {
        struct hf_informer *informer = source->informer;

        (void)pthread_mutex_lock(&informer->mu);
        bool may = !source->lost && informer->queue.n_bytes < MAX_QUEUED_BYTES;
        (void)pthread_mutex_unlock(&informer->mu);
        return may;
}

/* Returns NULL if the event cannot be stored. */
static struct hf__reflector_message *make_message(struct hf__reflector_source *source,
                                                  const struct hf_event *event) {
        const char *version = event->resource_version ? event->resource_version : "";
        HF__CLEANUP(hf__free_cleanup)
        struct hf__reflector_message *message = calloc(1, sizeof *message);

        if (!message || strlen(version) >= sizeof message->resource_version)
                return NULL;
        message->source = source;
        message->type = event->type;
        strcpy(message->resource_version, version);
        if (event->type != HF_EVENT_BOOKMARK &&
            hf__informer_store_transform(source->informer, event->object, event->n_object,
                                         &message->object) < 0)
                return NULL;
        return HF__TAKE(message);
}

static void on_event(void *ctx, const struct hf_event *event) {
        struct hf__reflector_source *source = ctx;
        struct hf__reflector_message *message =
                may_queue_event(source) ? make_message(source, event) : NULL;

        if (message)
                post_message(source->informer, message);
        else
                mark_lost(source);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct hf__reflector_source *source = ctx;

        source->error = error;
        if (status)
                source->status = *status;
        post_message(source->informer, &source->last);
}

/* ---- starting and abandoning sources ----
 * A source may end before the function that starts it has returned. It still exists then, because
 * only the reflector's thread, which runs these functions, takes its last message and frees it. */

static struct hf__reflector_source *source_new(struct hf_informer *informer) {
        struct hf__reflector_source *source = calloc(1, sizeof *source);

        if (!source)
                return NULL;
        source->informer = informer;
        source->started_at = hf_now(informer->clock);
        source->last.source = source;
        source->last.is_last = true;
        return source;
}

int hf__reflector_source_list(struct hf_informer *informer, const char *query, bool is_probe,
                              struct hf__reflector_source **ret_source) {
        const struct hf_request request = {
                .size = sizeof request,
                .verb = HF_VERB_LIST,
                .resource = informer->resource,
                .ns = informer->ns,
                .query = query,
                .deadline = hf_now(informer->clock) + LIST_TIMEOUT,
        };
        struct hf__reflector_source *source = source_new(informer);

        assert(hf__reflector_on_thread(&informer->reflector));
        if (!source)
                return -ENOMEM;
        source->is_probe = is_probe;
        int r = hf_client_request(informer->client, &request, on_list, source, &source->id);
        if (r != 0) {
                free(source);
                return r;
        }
        informer->reflector.n_sources++;
        *ret_source = source;
        return 0;
}

int hf__reflector_source_watch(struct hf_informer *informer,
                               struct hf__reflector_source **ret_source) {
        const struct hf_watch_spec spec = {
                .size = sizeof spec,
                .resource = informer->resource,
                .ns = informer->ns,
                .query = informer->query,
                .resource_version = informer->reflector.last_sync_version,
                .bookmarks = true,
                .lane = HF_LANE_WATCH,
        };
        struct hf__reflector_source *source = source_new(informer);

        assert(hf__reflector_on_thread(&informer->reflector));
        if (!source)
                return -ENOMEM;
        int r = hf_client_watch(informer->client, &spec, on_event, on_end, source, &source->id);
        if (r != 0) {
                free(source);
                return r;
        }
        informer->reflector.n_sources++;
        *ret_source = source;
        return 0;
}

void hf__reflector_abandon_watch(struct hf_informer *informer) {
        struct hf__reflector *reflector = &informer->reflector;

        assert(hf__reflector_on_thread(reflector));
        if (reflector->watch)
                hf_client_watch_cancel(informer->client, reflector->watch->id);
        reflector->watch = NULL;
}
