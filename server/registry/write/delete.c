/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delete: one attempt, on w->current. Finalizers hold the object: it is marked instead of deleted.
 * propagationPolicy is kept as one of two finalizers that the garbage collector takes away again:
 * `orphan`, `foregroundDeletion`.
 */
#include "server/registry/write/delete.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/registry/write/commit.h"
#include "server/registry/write/reply.h"

bool hfd_write_delete_is_held(const struct hfd_resource *resource, const struct hf__json *object) {
        return hf__json_count(hf__json_path(object, "metadata.finalizers")) ||
               (resource->subresources & HFD_SUB_FINALIZE &&
                hf__json_count(hf__json_path(object, "spec.finalizers")));
}

/* Which finalizer says what the options say; NULL = none. False: they say nothing, what is there
 * stays. */
static bool wanted_finalizer(const struct hfd_write *w, const char **ret_finalizer) {
        const struct hfd_options *o = &w->request->options;

        *ret_finalizer = NULL;
        if (w->request->resource->owns_nothing)
                return true;
        if (o->has_orphan)
                *ret_finalizer = o->orphan ? "orphan" : NULL;
        else if (o->propagation == HFD_PROPAGATE_ORPHAN)
                *ret_finalizer = "orphan";
        else if (o->propagation == HFD_PROPAGATE_FOREGROUND)
                *ret_finalizer = "foregroundDeletion";
        return o->has_orphan || o->propagation != HFD_PROPAGATE_UNSET;
}

/* Puts the policy into w->object's finalizers. 0 or -ENOMEM. */
static int put_policy(struct hfd_write *w) {
        const struct hf__json *had = hf__json_path(w->object, "metadata.finalizers");
        const char *wanted;
        bool there = false;
        int r = 0;

        if (!wanted_finalizer(w, &wanted))
                return 0;
        struct hf__json *list = hf__json_array();
        if (!list)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(had); m && r == 0; m = hf__json_next(m)) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                bool policy =
                        strcmp(text, "orphan") == 0 || strcmp(text, "foregroundDeletion") == 0;
                bool kept = !policy || (wanted && strcmp(text, wanted) == 0);
                there |= policy && kept;
                if (kept)
                        r = hf__json_append_string(list, text);
        }
        if (r == 0 && wanted && !there)
                r = hf__json_append_string(list, wanted);
        if (r != 0 || !hf__json_count(list)) {
                hf__json_free(list);
                if (r == 0)
                        hf__json_remove(w->object, "metadata.finalizers");
                return r;
        }
        return hf__json_set(w->object, "metadata.finalizers", list);
}

/* What a deleted object that is still held looks like. 0 or -ENOMEM. */
static int mark(struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        const struct hfd_resource *r = w->request->resource;
        char now[HF__MICROTIME_MAX];
        int64_t generation;
        int e;

        if (hf__json_string(w->object, "metadata.deletionTimestamp"))
                return 0;
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        e = hf__json_set_string(w->object, "metadata.deletionTimestamp", now);
        if (!e)
                e = hf__json_set_i64(w->object, "metadata.deletionGracePeriodSeconds", 0);
        if (!e && r->has_generation && hf__json_i64(w->object, "metadata.generation", &generation))
                e = hf__json_set_i64(w->object, "metadata.generation", generation + 1);
        if (!e && r->subresources & HFD_SUB_FINALIZE) {
                if (!hf__json_is_object(hf__json_get(w->object, "status")))
                        e = hf__json_set(w->object, "status", hf__json_object());
                if (!e)
                        e = hf__json_set_string(w->object, "status.phase", "Terminating");
        }
        return e;
}

/* Deletes, or marks. */
static void delete_existing(struct hfd_write *w, struct hf__json *old) {
        hf__json_remove(old, "metadata.resourceVersion");
        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        w->same_term = true;
        int r = w->object ? put_policy(w) : -ENOMEM;
        bool held = r == 0 && hfd_write_delete_is_held(w->request->resource, w->object);
        if (held)
                r = mark(w);
        if (held && r == 0) {
                w->unchanged = hf__json_equal(w->object, old);
                w->stored =
                        w->unchanged ? NULL : hfd_object_encode(w->request->resource, w->object);
                r = w->unchanged || w->stored ? 0 : -ENOMEM;
        }
        if (r != 0)
                hfd_write_reply_no_memory(w);
        else
                hfd_write_commit(w);
}

/* The store's word that there is none; the cache's only makes it ask. */
static void finish_not_found(struct hfd_write *w) {
        struct hfd_response response = {0};

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        hfd_response_not_found(&response, w->request->resource, w->request->name);
        hfd_write_reply(w, &response);
}

void hfd_write_delete_attempt(struct hfd_write *w) {
        const char *uid = hf__json_string(w->sent, "preconditions.uid");
        const char *revision = hf__json_string(w->sent, "preconditions.resourceVersion");
        char current[24];

        if (!w->current) {
                finish_not_found(w);
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        const char *old_uid = hf__json_string(old, "metadata.uid");
        (void)snprintf(current, sizeof current, "%" PRIu64, w->current->revision);
        if (!old)
                hfd_write_reply_no_memory(w);
        else if (*w->request->only_uid && strcmp(w->request->only_uid, old_uid ? old_uid : "") != 0)
                finish_not_found(w);
        else if (uid && strcmp(uid, old_uid ? old_uid : "") != 0)
                hfd_write_precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        else if (revision && strcmp(revision, current) != 0)
                hfd_write_precondition_failed(w, "ResourceVersion", revision, current);
        else
                delete_existing(w, old);
        hf__json_free(old);
}
