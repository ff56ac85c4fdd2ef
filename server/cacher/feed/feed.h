/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A thread that builds something from the objects of some kinds, for example an index of roles, and
 * builds it again after each change. Changes that come while it works share the next run. Roles,
 * FlowSchemas, the configuration of admission and definitions of custom resources have one each.
 */
#include <stdint.h>

#include <holdfast/host.h>

struct hf__json;
struct hfd_cacher;
struct hfd_feed;
struct hfd_resource;

struct hfd_feed_config {
        struct hfd_cacher *cacher; /* borrowed; not freed before the stop */
        const char *thread;        /* its name; static */
        const char *component;     /* for the log; static */
        /* The longest pause after a run, in which further changes wait; 0 = none. After memory ran
         * out, the pause is always a second. */
        hf_nsec pause_max;
        /*
         * Builds the result from the cacher and puts it in use. 0; -ENOMEM: it is called again
         * after a while; -EAGAIN: the cacher is not filled yet. Then it is called again after a
         * wake, so the owner of the feed must call hfd_feed_wake when the cacher has been filled
         * (on_observed in cacher.h). Thread: one that the feed's thread starts for each call and
         * joins, or, if none can be started, the feed's thread. The calls do not overlap. No lock
         * is held.
         */
        int (*make)(void *ctx, struct hfd_cacher *cacher);
        void *ctx;
};

/* Starts the thread, which calls make at once, without a wake. config is copied. host outlives the
 * feed. 0 or -errno. */
int hfd_feed_new(const struct hf_host *host, const struct hfd_feed_config *config,
                 struct hfd_feed **ret_feed);
/* Joins the thread, so blocks until a run of `make` has ended. Then the feed does not use the
 * cacher any more, but the cacher may still wake it. Accepts NULL. Idempotent. */
void hfd_feed_stop(struct hfd_feed *feed);
/* Stops. Accepts NULL, returns NULL. */
struct hfd_feed *hfd_feed_free(struct hfd_feed *feed);
/* Call it when the objects may have changed: the feed calls make again. Accepts NULL. Thread: any.
 * Never blocks. */
void hfd_feed_wake(struct hfd_feed *feed);

/*
 * Calls fn for each cached object of a kind. `make` uses it to read the objects. ns: "" = the
 * object has none. ns, name and object are borrowed for the call of fn. fn returns 0 or -ENOMEM,
 * which ends the walk. An object that cannot be parsed is left out. Returns 0, -ENOMEM, or -EAGAIN:
 * the cacher is not filled yet.
 *
 * *revision: 0 = the objects are the current ones, and *revision is set to their revision.
 * Otherwise they are those of *revision, so that an index of several kinds shows one state of the
 * store. If the cacher cannot restore that state (hfd_snapshot_take), they are the current ones,
 * and *revision stays.
 */
typedef int (*hfd_feed_object_fn)(void *ctx, const char *ns, const char *name,
                                  const struct hf__json *object);
int hfd_feed_each(struct hfd_cacher *cacher, const struct hfd_resource *resource,
                  uint64_t *revision, hfd_feed_object_fn fn, void *ctx);
