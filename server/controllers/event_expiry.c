/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event expiry: an event that nothing was said about for --event-ttl is deleted, as in the field,
 * where the store forgets it.
 *
 * The cache has metadata only, so an event is looked at when its creation is that long ago, and
 * what it says itself (a series goes on in the same object) is read then, once, before it is
 * deleted or given more time. The delete names uid and resourceVersion: one that is written in
 * between stays. Ages are differences of wall clocks, the creator's server's and ours: an hour's
 * time to live does not mind.
 */
#include "base/json.h"
#include "base/time_format.h"
#include "server/controllers/controllers.h"
#include "server/controllers/event_core.h"
#include "server/controllers/object_client.h"

#define N_WORKERS 8

static const struct hf_resource events = {"", "v1", "events"};

/* How long until the event has been silent for the time to live; <= 0 = it has. */
static hf_nsec left_of(struct hfd_controllers *controllers, struct hf_term *term,
                       const struct hf__json *event) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        int64_t now = clock->real(clock->ctx) / HF_NSEC_PER_SEC;

        return hfd_event_seen_at(event, now) * HF_NSEC_PER_SEC + controllers->event_ttl -
               now * HF_NSEC_PER_SEC;
}

static int expire(struct hfd_controllers *controllers, struct hf_term *term, const char *ns,
                  const char *name, hf_nsec *ret_again) {
        struct hf__json *event;
        int r = hfd_object_read(term, &events, ns, name, &event);

        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        hf_nsec left = left_of(controllers, term, event);
        if (left > 0) {
                *ret_again = left;
        } else {
                struct hfd_delete what = {.uid = hf__json_string(event, "metadata.uid"),
                                          .resource_version =
                                                  hf__json_string(event,
                                                                  "metadata.resourceVersion")};
                r = hfd_object_delete(term, &events, ns, name, &what);
        }
        hf__json_free(event);
        return r == HF_E_NOT_FOUND || r == HF_E_CONFLICT ? 0 : r;
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controllers *controllers = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__json *event;

        int r = hf_key_split(key, ns, name);
        if (r == 0)
                r = hfd_object_cached(controllers->events->informer, ns, name, &event);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        hf_nsec left = left_of(controllers, term, event);
        bool marked = hf__json_string(event, "metadata.deletionTimestamp");
        hf__json_free(event);
        if (marked)
                return 0;
        if (left > 0) {
                *ret_again = left;
                return 0;
        }
        return expire(controllers, term, ns, name, ret_again);
}

int hfd_run_event_expiry(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        const struct hf_reconciler_source source = {.informer = controllers->events->informer};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_EVENT_EXPIRY,
                .sources = &source,
                .n_sources = 1,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = controllers,
        };

        return hf_reconciler_run(&reconciler, term);
}
