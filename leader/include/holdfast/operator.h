/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An operator: everything that a controller of one kind needs, except its reconcile function. Every
 * instance watches the objects of the kind and the collections in which they own objects, and
 * contends for a Lease. The leader creates the CustomResourceDefinition, and works on each object
 * that has changed, or that owns a changed one, with a finalizer, Events and a status. At the
 * beginning of its term the leader works on all objects.
 *
 * An operator is made of the other headers (leader.h, reconciler.h, informer.h, definition.h,
 * finalizer.h, owned.h, condition.h, recorder.h); a controller with other needs uses them itself.
 *
 *      r = hf_operator_new(&host, &config, &op, &status);
 *      if (r == 0)
 *              r = hf_operator_start(op, &status);
 *      ... until the process is to end ...
 *      r = hf_operator_stop(op, &status);
 *      if (r != HF_E_STUCK)
 *              hf_operator_free(op);
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>
#include <holdfast/condition.h>
#include <holdfast/leader.h>
#include <holdfast/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_OPERATOR_OWNED_MAX 8

struct hf_operator;
/* An object that is worked on. It lives for one call of a function of the configuration. */
struct hf_operator_work;

/* A collection in which objects of the kind own others. */
struct hf_operator_owned {
        size_t size; /* sizeof(struct hf_operator_owned) */
        struct hf_resource resource;
        const char *query; /* of the watch: "labelSelector=app%3Dx"; NULL = all */
};

/* All that it points to is borrowed until hf_operator_free. */
struct hf_operator_config {
        size_t size;                 /* sizeof(struct hf_operator_config) */
        const char *name;            /* required: of the Lease, the controller and its Events */
        const char *ns;              /* required: the namespace of the Lease */
        const char *identity;        /* required: as in struct hf_elector_config */
        struct hf_client *client;    /* required */
        struct hf_resource resource; /* required: of the kind */
        const char *kind;            /* required: "Notice" */
        /* The kind's CustomResourceDefinition as JSON, which a leader establishes before it works.
         * NULL = the kind exists. */
        const char *definition;
        /* An object gets this finalizer before it is worked on, and loses it when `finalize` has
         * returned 0. NULL = none. */
        const char *finalizer;
        const struct hf_operator_owned *owned; /* n_owned, up to HF_OPERATOR_OWNED_MAX */
        size_t n_owned;
        unsigned n_workers;             /* 0 = 1 */
        struct hf_leader_timing timing; /* zero members = defaults */
        bool unfenced;                  /* as in struct hf_elector_config */
        /* required: brings the world to the state that the object describes. 0 = done, and if
         * *ret_again > 0 the object comes again after that delay; an error: it comes again with a
         * growing delay. Called on a worker's thread, for one object on one thread at a time. */
        int (*reconcile)(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again);
        /* required with `finalizer`: cleans up after an object that is being deleted. */
        int (*finalize)(void *ctx, struct hf_operator_work *work);
        void *ctx; /* passed to both; borrowed */
};

/* `host` is borrowed until hf_operator_free. 0 or -ENOMEM. -EINVAL: a size is wrong, a required
 * member is missing, or there are too many owned collections. Otherwise an error of
 * hf_informer_new, hf_electors_new or hf_electors_add (HF_E_INVALID: a name or the timing is
 * invalid). reterr_status says what is wrong, except after -ENOMEM and after an error of
 * hf_informer_new or hf_electors_new. Does not block. Thread: any. */
HF_MUST_CHECK int hf_operator_new(const struct hf_host *host,
                                  const struct hf_operator_config *config,
                                  struct hf_operator **ret_operator,
                                  struct hf_status *reterr_status);
/* Begins to watch and to contend, and returns at once. The informers list again until the kind is
 * served. 0, or an error of hf_informer_start (reterr_status is not set then) or hf_electors_start.
 * Once only. Thread: owner only. */
HF_MUST_CHECK int hf_operator_start(struct hf_operator *op, struct hf_status *reterr_status);
/* Ends the election and the work: blocks and returns as hf_electors_stop does. The informers run on
 * until hf_operator_free. Thread: owner only. */
HF_MUST_CHECK int hf_operator_stop(struct hf_operator *op, struct hf_status *reterr_status);
/* After hf_operator_stop has returned anything but HF_E_STUCK, or without a start. Accepts NULL,
 * returns NULL. */
struct hf_operator *hf_operator_free(struct hf_operator *op);

/* ---- within reconcile and finalize ----
 * Functions that send requests block, but not longer than until the term's abort. They return 0 or
 * an error of hf_client_do, and hf_operator_status has the message of the last one. Thread: the
 * worker's. */

/* The object as JSON with a NUL; ret_n may be NULL. It is what the informer has, so it may be a
 * moment old: a write of it that would undo a newer write fails with HF_E_CONFLICT. */
const char *hf_operator_object(const struct hf_operator_work *work, size_t *ret_n);
const char *hf_operator_ns(const struct hf_operator_work *work); /* "" = none */
const char *hf_operator_name(const struct hf_operator_work *work);
struct hf_term *hf_operator_term(const struct hf_operator_work *work);
const struct hf_status *hf_operator_status(const struct hf_operator_work *work);

/* Creates or updates an object that the object of this work owns, in the same namespace. If it does
 * not exist, creates it from `body` (JSON with a NUL; the name and the namespace are put into it);
 * else merges `body` into it. See hf_owned_upsert. HF_E_EXISTS: an object of that name has another
 * controller, or none, and was left alone. */
HF_MUST_CHECK int hf_operator_upsert(struct hf_operator_work *work, struct hf_resource resource,
                                     const char *name, const char *body);
/* Deletes an object of this name if it exists and the object of this work is its controller: see
 * hf_owned_delete. Sends no request and returns 0 if the operator watches that collection and none
 * of its informers of that collection has the object. So an object that matches no `query` of the
 * collection is not deleted, and one that was created a moment ago may not be deleted either. */
HF_MUST_CHECK int hf_operator_delete(struct hf_operator_work *work, struct hf_resource resource,
                                     const char *name);
/* The same as hf_operator_upsert for an object that nobody owns: hf_upsert. */
HF_MUST_CHECK int hf_operator_merge(struct hf_operator_work *work, struct hf_resource resource,
                                    const char *name, const char *body);
/*
 * Writes the object's status, if it differs: `status` (a JSON object with a NUL; NULL = none) is
 * merged into it as hf_upsert does, so a member that is null is removed, and one that is an object
 * keeps the members that it does not name; and the condition is set, about the object's generation
 * if it names none. The kind needs the subresource status. -EINVAL: the condition is not
 * valid (hf_condition_set); HF_E_INVALID: `status` is not a JSON object, or the conditions are
 * not a list.
 */
HF_MUST_CHECK int hf_operator_report(struct hf_operator_work *work, const char *status,
                                     const struct hf_condition *condition);
/* Records an Event about the object: hf_recorder_event. Never blocks. */
void hf_operator_event(struct hf_operator_work *work, enum hf_recorder_type type,
                       const char *reason, const char *format, ...) HF_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif
