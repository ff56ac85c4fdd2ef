/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event expiry: deletes an Event that has not been reported again for --event-ttl. (kube-apiserver
 * attaches an etcd lease to each Event instead, so that etcd deletes it.)
 *
 * The informer has metadata only, so the creation time decides when an Event is checked first. Then
 * the whole Event is read: if the same thing has happened again, its reporter has updated the times
 * in the object, and the Event is kept longer.
 *
 * Invariant: the delete has the uid and resourceVersion of the Event that was read as
 * preconditions, so an Event that is updated in between is kept.
 *
 * An age is a difference between the real-time clocks of two machines. One has set the newest time
 * in the Event: the reporter, or the API server for creationTimestamp. The other is this machine.
 * The skew of the two clocks is small compared with the default time to live of an hour.
 */
#include "server/controllers/event_expiry.h"

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/event_time.h"

#define N_WORKERS 8 /* a worker mostly waits for responses */

static const struct hf_resource events = {"", "v1", "events"};

/* The time until the Event expires; 0 or less = it has expired. */
static hf_nsec time_left(struct hfd_controller_context *context, struct hf_term *term,
                         const struct hf__json *event) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        int64_t now = clock->real(clock->ctx) / HF_NSEC_PER_SEC;

        return hfd_event_time_last(event, now) * HF_NSEC_PER_SEC + context->event_ttl -
               now * HF_NSEC_PER_SEC;
}

/* Reads the whole Event. Deletes it if it has expired; otherwise *ret_again is the time left. */
static int expire_event(struct hfd_controller_context *context, struct hf_term *term,
                        const char *ns, const char *name, hf_nsec *ret_again) {
        struct hf__json *event;
        int r = hfd_object_client_get(term, &events, ns, name, &event);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        hf_nsec left = time_left(context, term, event);
        if (left > 0) {
                *ret_again = left;
        } else {
                struct hfd_object_client_delete_options options =
                        {.uid = hf__json_string(event, "metadata.uid"),
                         .resource_version = hf__json_string(event, "metadata.resourceVersion")};
                r = hfd_object_client_delete(term, &events, ns, name, &options);
        }
        hf__json_free(event);
        return hfd_object_client_ignore_stale(r);
}

static int reconcile_event(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__json *event;

        int r = hf_key_split(key, ns, name);
        if (r == 0)
                r = hfd_object_client_get_cached(context->events->informer, ns, name, &event);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        hf_nsec left = time_left(context, term, event);
        bool deleted = hf__json_string(event, "metadata.deletionTimestamp");
        hf__json_free(event);
        if (deleted)
                return 0;
        if (left > 0) {
                *ret_again = left;
                return 0;
        }
        return expire_event(context, term, ns, name, ret_again);
}

int hfd_event_expiry_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        const struct hfd_reconcile_loop loop = {
                .name = HFD_EVENT_EXPIRY,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_event,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->events)}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
