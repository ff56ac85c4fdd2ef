/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gated and fenced client. It guards every write at three moments:
 *
 *      before sending   Is the gate open, and has the term neither been aborted nor ended? Else the
 *                       write is refused.
 *      under way        Its deadline is no later than the end of the term's validity, as known when
 *                       it was sent. An abort cancels it.
 *      response         Did the server check the fence? If it reports that the term is stale, or
 *                       does not confirm the fence (unless config.unfenced or a dry run permits
 *                       that), the term ends. If the outcome is unknown, the write is in doubt,
 *                       unless it is a dry run: a server without fences may apply it later.
 *
 * The gate alone is not enough: the process may be paused between the check and the commit. The
 * fence closes that window. A refused write gets its response through `done` like any other, but on
 * the calling thread.
 *
 * Invariants:
 *  - every write that was admitted is a `struct write` on one of the two lists until its response,
 *    and holds a reference on the client;
 *  - no lock is held while the inner client or `done` is called. Only `stale` and `settled` are
 *    called under the lock, so that neither is called after hf__leader_client_release has returned.
 *
 * Reads and watches change nothing, so they go to the inner client unchanged until the term is
 * aborted or ended. All ids are the inner client's; id 0 = the request was refused or has ended.
 */
#include "leader/leader_client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sized_struct.h"
#include "base/thread.h"

struct write {
        /* immutable once it is sent */
        struct leader_client *client; /* holds a reference */
        hf_response_fn done;
        void *ctx;
        bool dry_run; /* commits nothing, so the server neither compares nor confirms the fence */
        hf_nsec deadline; /* no part of the write is sent later; 0 = no limit */

        /* guarded by client->mu */
        struct write *next, **at; /* its list; at: the pointer that points here */
        uint64_t inner_id;        /* the inner client's id of the request; 0 = not known yet */
        bool has_response;
        bool cancel_wanted; /* it is on the list `canceled` */
        int refs;           /* one for send_write, one for the callback */
};

struct leader_client {
        struct hf_client base;                  /* first */
        struct hf__leader_client_config config; /* immutable */

        pthread_mutex_t mu;
        /* guarded by mu */
        int refs; /* one for the owner, one for each write under way */
        bool aborted, ended, released;
        bool is_fenced;         /* the server has confirmed a fence */
        hf_nsec doubt_at;       /* when the last write in doubt ended; 0 = none was in doubt */
        struct write *writes;   /* under way, and not canceled by an abort */
        struct write *canceled; /* under way, and canceled by an abort */
        size_t n_pending;       /* writes under way that may take effect: not the dry runs */
};

static void client_unref(struct leader_client *client) {
        pthread_mutex_lock(&client->mu);
        assert(client->refs > 0);
        bool is_last_ref = --client->refs == 0;
        assert(!is_last_ref || (client->released && !client->writes && !client->canceled));
        pthread_mutex_unlock(&client->mu);
        if (is_last_ref) {
                pthread_mutex_destroy(&client->mu);
                free(client);
        }
}

static void write_unref(struct write *write) {
        struct leader_client *client = write->client;
        pthread_mutex_lock(&client->mu);
        assert(write->refs > 0);
        bool is_last_ref = --write->refs == 0;
        assert(!is_last_ref || write->has_response);
        pthread_mutex_unlock(&client->mu);
        if (is_last_ref) {
                free(write);
                client_unref(client);
        }
}

static void link_locked(struct write *write, struct write **list) {
        hf__mutex_assert_held(&write->client->mu);
        write->next = *list;
        write->at = list;
        if (write->next)
                write->next->at = &write->next;
        *list = write;
}

static void unlink_locked(struct write *write) {
        hf__mutex_assert_held(&write->client->mu);
        *write->at = write->next;
        if (write->next)
                write->next->at = write->at;
}

static void write_end_locked(struct write *write) {
        struct leader_client *client = write->client;

        hf__mutex_assert_held(&client->mu);
        assert(!write->has_response);
        write->has_response = true;
        unlink_locked(write);
        assert(write->dry_run || client->n_pending > 0);
        client->n_pending -= !write->dry_run;
        /* Called under the lock (see the invariants): it only sets a flag and wakes the loop. */
        if (client->ended && !client->released && client->n_pending == 0 && client->config.settled)
                client->config.settled(client->config.ctx);
}

static const struct hf__sized sized_response = HF__SIZED(struct hf_response, status);

static void complete_with_error(hf_response_fn done, void *ctx, int error, const char *why) {
        struct hf_response reply = {.size = sizeof reply, .error = error};
        (void)hf_fail(&reply.status, error, "%s", why);
        done(ctx, &reply);
}

static void report_stale(struct leader_client *client, int error) {
        pthread_mutex_lock(&client->mu);
        /* Called under the lock (see the invariants): it only counts, sets a flag, and wakes the
         * loop. */
        if (!client->ended && !client->released && client->config.stale)
                client->config.stale(client->config.ctx, error);
        pthread_mutex_unlock(&client->mu);
}

static bool is_in_doubt(const struct hf_response *response) {
        return (response->error == HF_E_TIMEOUT || response->error == HF_E_CANCELED ||
                response->error < 0) &&
               !response->not_sent;
}

/* Ends a write that was sent, and stores what its response says. */
static void write_responded(struct write *write, const struct hf_response *response) {
        struct leader_client *client = write->client;
        hf_nsec ended_at = hf_now(hf_host_clock(client->base.host));

        /* Between its deadline and its response nothing more of it was sent. */
        if (write->deadline != 0 && write->deadline < ended_at)
                ended_at = write->deadline;
        pthread_mutex_lock(&client->mu);
        client->is_fenced |= response->fence_echoed;
        if (!write->dry_run && is_in_doubt(response) && client->doubt_at < ended_at)
                client->doubt_at = ended_at;
        write_end_locked(write);
        pthread_mutex_unlock(&client->mu);
}

static void on_written(void *ctx, const struct hf_response *from) {
        struct write *write = ctx;
        struct leader_client *client = write->client;
        struct hf_response reply;
        struct hf_status status;
        int r = hf__sized_copy(&sized_response, &reply, from, &status);

        if (r != 0) {
                /* The embedder's client gave a wrong size: nothing is known of the write. */
                reply = (struct hf_response){.size = sizeof reply, .error = r, .status = status};
        }
        if (reply.error == 0 && !reply.fence_echoed && !client->config.unfenced &&
            !write->dry_run) {
                reply.error = HF_E_UNFENCED;
                (void)hf_fail(&reply.status, HF_E_UNFENCED,
                              "the server did not confirm the fence of term %llu: the write may "
                              "have been made without it, so the term ends",
                              (unsigned long long)client->config.fence.term);
        }
        if (reply.error == HF_E_UNFENCED || reply.error == HF_E_STALE_TERM)
                report_stale(client, reply.error);
        write_responded(write, &reply);
        write->done(write->ctx, &reply);
        write_unref(write);
}

/* Returns 0 if the write may be sent, and limits request->deadline to the validity. Otherwise
 * returns the error for its response, and the reason in *ret_why. */
static int admit_locked(struct leader_client *client, struct hf_request *request,
                        const char **ret_why) {
        hf__mutex_assert_held(&client->mu);
        return hf__gate_admit(client->config.gate, hf_now(hf_host_clock(client->base.host)),
                              client->aborted || client->ended, &request->deadline, ret_why);
}

/* Admits the write and puts it on the list in one step, so that nobody ever waits for a write that
 * is refused. Returns as admit_locked. */
static int write_begin(struct write *write, struct hf_request *request, const char **ret_why) {
        struct leader_client *client = write->client;

        pthread_mutex_lock(&client->mu);
        int r = admit_locked(client, request, ret_why);
        if (r == 0) {
                write->deadline = request->deadline;
                assert(client->refs > 0);
                client->refs++;
                client->n_pending += !write->dry_run;
                link_locked(write, &client->writes);
        }
        pthread_mutex_unlock(&client->mu);
        return r;
}

/* The body of a delete may be DeleteOptions with a list dryRun. */
static bool is_dry_run_by_options(const struct hf_request *request) {
        struct hf__json *options = NULL;

        if ((request->verb != HF_VERB_DELETE && request->verb != HF_VERB_DELETE_COLLECTION) ||
            !request->body || !request->n_body ||
            hf__json_parse(request->body, request->n_body, &options, NULL) != 0)
                return false;
        bool dry_run = hf__json_count(hf__json_get(options, "dryRun")) > 0;
        hf__json_free(options);
        return dry_run;
}

static bool is_dry_run(const struct hf_request *request) {
        const char *at = request->query ? strstr(request->query, "dryRun=All") : NULL;
        return (at && (at == request->query || at[-1] == '&')) || is_dry_run_by_options(request);
}

static int send_write(struct leader_client *client, const struct hf_request *from,
                      hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct hf_request request = *from;
        const char *why = "";
        uint64_t id = 0;
        struct write *write = calloc(1, sizeof *write);
        if (!write)
                return -ENOMEM;
        *write = (struct write){.client = client,
                                .done = done,
                                .ctx = ctx,
                                .dry_run = is_dry_run(from),
                                .refs = 2};
        request.fence = client->config.fence.term ? &client->config.fence : NULL;
        int r = write_begin(write, &request, &why);
        if (r != 0) {
                free(write);
                complete_with_error(done, ctx, r, why);
                if (ret_id)
                        *ret_id = 0;
                return 0;
        }
        r = hf_client_request(client->config.inner, &request, on_written, write, &id);
        pthread_mutex_lock(&client->mu);
        write->inner_id = id;
        bool cancel = r == 0 && write->cancel_wanted && !write->has_response;
        if (r != 0)
                write_end_locked(write);
        pthread_mutex_unlock(&client->mu);
        if (cancel)
                hf_client_cancel(client->config.inner, id);
        write_unref(write);
        if (r != 0)
                write_unref(write); /* the callback's reference: there will be no callback */
        if (r == 0 && ret_id)
                *ret_id = id;
        return r;
}

static bool is_aborted(struct leader_client *client) {
        pthread_mutex_lock(&client->mu);
        bool aborted = client->aborted || client->ended;
        pthread_mutex_unlock(&client->mu);
        return aborted;
}

static int leader_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct leader_client *client = (struct leader_client *)self;
        if (request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST)
                return send_write(client, request, done, ctx, ret_id);
        if (!is_aborted(client))
                return hf_client_request(client->config.inner, request, done, ctx, ret_id);
        if (ret_id)
                *ret_id = 0;
        complete_with_error(done, ctx, HF_E_CANCELED, "the term is over");
        return 0;
}

/* id 0: the request was refused or has ended, so its response has already been delivered. */
static void leader_cancel(struct hf_client *self, uint64_t id) {
        if (id)
                hf_client_cancel(((struct leader_client *)self)->config.inner, id);
}

static int leader_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                        hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct leader_client *client = (struct leader_client *)self;
        if (is_aborted(client))
                return HF_E_CLOSED;
        return hf_client_watch(client->config.inner, spec, on_event, on_end, ctx, ret_id);
}

static void leader_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(((struct leader_client *)self)->config.inner, id);
}

/* Each pass cancels one write, and unlocks before it calls the inner client. The write goes to the
 * other list, so that no pass searches. If its id is not known yet, send_write cancels it. */
void hf__leader_client_abort(struct hf_client *self) {
        struct leader_client *client = (struct leader_client *)self;
        for (;;) {
                pthread_mutex_lock(&client->mu);
                client->aborted = true;
                struct write *write = client->writes;
                uint64_t id = write ? write->inner_id : 0;
                if (write) {
                        write->cancel_wanted = true;
                        unlink_locked(write);
                        link_locked(write, &client->canceled);
                }
                pthread_mutex_unlock(&client->mu);
                if (!write)
                        return;
                if (id)
                        hf_client_cancel(client->config.inner, id);
        }
}

void hf__leader_client_end(struct hf_client *self) {
        struct leader_client *client = (struct leader_client *)self;
        pthread_mutex_lock(&client->mu);
        client->ended = true;
        pthread_mutex_unlock(&client->mu);
}

hf_nsec hf__leader_client_doubt_at(struct hf_client *self) {
        struct leader_client *client = (struct leader_client *)self;
        pthread_mutex_lock(&client->mu);
        hf_nsec doubt_at = client->n_pending > 0 ? HF_NSEC_NEVER : client->doubt_at;
        if (client->is_fenced)
                doubt_at = 0;
        pthread_mutex_unlock(&client->mu);
        return doubt_at;
}

const struct hf_fence *hf__leader_client_fence(struct hf_client *self) {
        return &((struct leader_client *)self)->config.fence;
}

bool hf__leader_client_is_fenced(struct hf_client *self) {
        struct leader_client *client = (struct leader_client *)self;
        pthread_mutex_lock(&client->mu);
        bool is_fenced = client->is_fenced;
        pthread_mutex_unlock(&client->mu);
        return is_fenced;
}

void hf__leader_client_release(struct hf_client *self) {
        if (!self)
                return;
        hf__leader_client_abort(self);
        struct leader_client *client = (struct leader_client *)self;
        pthread_mutex_lock(&client->mu);
        assert(!client->released);
        client->released = true;
        pthread_mutex_unlock(&client->mu);
        client_unref(client);
}

int hf__leader_client_new(const struct hf_host *host, const struct hf__leader_client_config *config,
                          struct hf_client **ret_client) {
        static const struct hf_client_ops ops = {
                .size = sizeof ops,
                .request = leader_request,
                .cancel = leader_cancel,
                .watch = leader_watch,
                .watch_cancel = leader_watch_cancel,
                .free = hf__leader_client_release,
        };
        assert(config->inner && config->gate);
        struct leader_client *client = calloc(1, sizeof *client);
        if (!client)
                return -ENOMEM;
        int r = hf__mutex_init(&client->mu);
        if (r != 0) {
                free(client);
                return r;
        }
        client->base = (struct hf_client){.ops = &ops, .host = host};
        client->config = *config;
        client->is_fenced = config->is_fenced;
        client->refs = 1;
        *ret_client = &client->base;
        return 0;
}
