/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a delete.
 *
 * An object with finalizers is not removed, but marked with a deletionTimestamp. The update that
 * removes the last finalizer also removes the object (update.c). The policies Orphan and Foreground
 * are stored as a finalizer, "orphan" or "foregroundDeletion", which the garbage collector removes
 * after it has carried out the policy. Background needs none.
 *
 * Invariant: a delete with a policy replaces the policies of earlier deletes. A delete without a
 * policy keeps them, except that a kind which owns nothing keeps no policy. A delete changes no
 * other finalizer, unless the kind marks its objects itself (mark_deleted).
 */
#include "server/registry/write/steps/delete.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/convert.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/steps/commit.h"
#include "server/resources/forms/conversion.h"

#define ORPHAN     "orphan"
#define FOREGROUND "foregroundDeletion"

bool hfd_write_delete_is_blocked(const struct hfd_resource *resource,
                                 const struct hf__json *object) {
        return hf__json_count(hf__json_path(object, "metadata.finalizers")) > 0 ||
               (resource->subresources & HFD_SUB_FINALIZE &&
                hf__json_count(hf__json_path(object, "spec.finalizers")) > 0);
}

/* ---- the propagation policy ---- */

/*
 * Sets *ret_finalizer to the finalizer for the policy in the options; NULL = this policy has none.
 * False: the options contain no policy, so the finalizers do not change.
 */
static bool policy_finalizer(const struct hfd_write *w, const char **ret_finalizer) {
        const struct hfd_options *o = &w->request->options;

        *ret_finalizer = NULL;
        /* An object that owns nothing has no dependents, to which a policy could apply. */
        if (w->request->resource->owns_nothing)
                return true;
        if (o->has_orphan) {
                if (o->orphan)
                        *ret_finalizer = ORPHAN;
                return true;
        }
        if (o->propagation == HFD_PROPAGATE_ORPHAN)
                *ret_finalizer = ORPHAN;
        else if (o->propagation == HFD_PROPAGATE_FOREGROUND)
                *ret_finalizer = FOREGROUND;
        return o->propagation != HFD_PROPAGATE_UNSET;
}

/*
 * Appends finalizers to list. Of the finalizers for policies only `wanted` is copied, and it is
 * appended if it is missing. wanted NULL: none of them. 0 or -ENOMEM.
 */
static int copy_finalizers(struct hf__json *list, const struct hf__json *finalizers,
                           const char *wanted) {
        bool has_wanted = false;
        int r = 0;

        for (const struct hf__json *m = hf__json_first(finalizers); m && r == 0;
             m = hf__json_next(m)) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                bool is_policy = strcmp(text, ORPHAN) == 0 || strcmp(text, FOREGROUND) == 0;
                bool is_wanted = is_policy && wanted && strcmp(text, wanted) == 0;
                if (is_wanted)
                        has_wanted = true;
                if (!is_policy || is_wanted)
                        r = hf__json_append_string(list, text);
        }
        if (r == 0 && wanted && !has_wanted)
                r = hf__json_append_string(list, wanted);
        return r;
}

/* Changes w->object's finalizers as the policy requires. 0 or -ENOMEM. */
static int apply_policy(struct hfd_write *w) {
        const char *wanted;
        struct hf__json *list;
        int r;

        if (!policy_finalizer(w, &wanted))
                return 0;
        list = hf__json_array();
        if (!list)
                return -ENOMEM;
        r = copy_finalizers(list, hf__json_path(w->object, "metadata.finalizers"), wanted);
        if (r == 0 && hf__json_count(list) > 0)
                return hf__json_set(w->object, "metadata.finalizers", list);
        hf__json_free(list);
        if (r == 0)
                hf__json_remove(w->object, "metadata.finalizers");
        return r;
}

/* ---- the delete ---- */

static bool is_marked(const struct hfd_write *w) {
        return hf__json_string(w->object, "metadata.deletionTimestamp") != NULL;
}

/* Marks w->object as deleted, unless an earlier delete has done so. 0 or -ENOMEM. */
static int mark_object(struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        const struct hfd_resource *resource = w->request->resource;
        char now[HF__MICROTIME_MAX];
        int64_t generation;
        int r;

        if (is_marked(w))
                return 0;
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        if (resource->mark_deleted)
                return resource->mark_deleted(w->object, now);
        r = hf__json_set_string(w->object, "metadata.deletionTimestamp", now);
        if (r == 0)
                r = hf__json_set_i64(w->object, "metadata.deletionGracePeriodSeconds", 0);
        if (r == 0 && resource->has_generation &&
            hf__json_i64(w->object, "metadata.generation", &generation))
                r = hf__json_set_i64(w->object, "metadata.generation", generation + 1);
        if (r != 0 || !(resource->subresources & HFD_SUB_FINALIZE))
                return r;
        if (!hf__json_is_object(hf__json_get(w->object, "status")))
                r = hf__json_set(w->object, "status", hf__json_object());
        if (r == 0)
                r = hf__json_set_string(w->object, "status.phase", "Terminating");
        return r;
}

/* The row of the version that w->old has. A delete of a kind that a webhook converts changes
 * metadata only, so the object was converted only if admission wanted to see it. */
static const struct hfd_resource *row_of_old(const struct hfd_write *w) {
        return w->converted ? w->request->resource
                            : hfd_conversion_row(w->request->resource, w->current);
}

/* Marks w->object, and encodes it as w->stored; sets w->unchanged instead if it is equal to old. 0
 * or -ENOMEM. */
static int store_marked(struct hfd_write *w, const struct hf__json *old) {
        int r = mark_object(w);

        if (r != 0)
                return r;
        w->unchanged = hf__json_equal(w->object, old);
        if (w->unchanged)
                return 0;
        w->stored = hfd_conversion_encode(row_of_old(w), w->object);
        return w->stored ? 0 : -ENOMEM;
}

/* Continues after admission has allowed the delete or was not asked. */
static void delete_admitted(struct hfd_write *w) {
        struct hf__json *old = w->old;
        int r = 0;

        assert(w->current && !w->stored);
        if (hfd_write_must_defer(w)) {
                hfd_write_defer(w, delete_admitted);
                return;
        }
        hfd_write_admit_done(w);
        hf__json_remove(old, "metadata.resourceVersion"); /* it is not stored */
        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        w->same_term = true; /* a delete changes neither holder nor acquireTime */
        /* A kind may mark its objects itself (mark_deleted): a CustomResourceDefinition also gets a
         * finalizer, which blocks the removal. Then the propagationPolicy is ignored. */
        bool kind_marks = w->object && w->request->resource->mark_deleted && !is_marked(w);
        if (!kind_marks)
                r = w->object ? apply_policy(w) : -ENOMEM;
        if (r == 0 && (kind_marks || hfd_write_delete_is_blocked(w->request->resource, w->object)))
                r = store_marked(w, old);
        if (r != 0)
                hfd_write_reply_no_memory(w);
        else if (w->converted)
                hfd_write_convert_stored(w, hfd_write_commit);
        else
                hfd_write_commit(w);
}

static void delete_existing(struct hfd_write *w) {
        w->object = hf__json_free(w->object); /* of an earlier attempt */
        if (hfd_write_admit_delete(w, delete_admitted))
                delete_admitted(w);
}

static void reply_not_found(struct hfd_write *w) {
        struct hfd_response response = {0};

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        hfd_response_not_found(&response, w->request->resource, w->request->name);
        hfd_write_reply(w, &response);
}

/*
 * Responds 409: a precondition (what: "UID" or "ResourceVersion") requires the value `wanted`, but
 * the object has the value `found`. If current is not fresh, refetches it instead.
 */
static void precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                const char *found, const char *change) {
        struct hfd_resource by_kind = *w->request->resource;
        struct hfd_response response = {0};
        char why[500];

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        by_kind.plural = by_kind.kind; /* Kubernetes' message contains the Kind here */
        (void)snprintf(why, sizeof why,
                       "the %s in the precondition (%.100s) does not match the %s in record "
                       "(%.100s). The object might have been %s",
                       what, wanted, what, found, change);
        hfd_response_conflict(&response, &by_kind, w->request->name, why);
        hfd_write_reply(w, &response);
}

void hfd_write_delete_attempt(struct hfd_write *w) {
        const char *only_uid = w->request->only_uid;
        const char *uid = hf__json_string(w->body, "preconditions.uid");
        const char *revision = hf__json_string(w->body, "preconditions.resourceVersion");
        const char *old_uid;
        char current[HF__U64_TEXT_MAX];
        struct hf__json *old;

        assert(w->request->verb == HFD_DELETE_OBJECT);
        if (!w->current) {
                reply_not_found(w);
                return;
        }
        if (!w->converted && !hfd_write_form_current(w))
                return;
        old = hfd_conversion_parse(row_of_old(w), w->converted ? w->converted : w->current);
        if (!old) {
                hfd_write_reply_unreadable_current(w);
                return;
        }
        w->old = old;
        (void)hf__u64_text(w->current->revision, current);
        old_uid = hf__json_string(old, "metadata.uid");
        if (!old_uid)
                old_uid = "";
        if (*only_uid && strcmp(only_uid, old_uid) != 0)
                reply_not_found(w);
        else if (uid && strcmp(uid, old_uid) != 0)
                precondition_failed(w, "UID", uid, old_uid, "deleted and then recreated");
        else if (revision && strcmp(revision, current) != 0)
                precondition_failed(w, "ResourceVersion", revision, current, "modified");
        else
                delete_existing(w);
}
