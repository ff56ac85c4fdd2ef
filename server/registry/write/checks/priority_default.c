/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses a second PriorityClass that is the default, and finds classes for the other checks. There
 * are few classes, and only a write of a default, and a new pod that names no class, look at all of
 * them.
 *
 * Invariant: of several writes one after another, only the first makes a default. So a write first
 * waits until the cache has every write that was acknowledged before. (Two writes at the same time
 * may both succeed, as in Kubernetes; then the default with the lowest value counts.)
 */
#include "server/registry/write/checks/priority_default.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/cacher.h"
#include "server/cacher/history/object_tree.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/watch/snapshot.h"
#include "server/registry/write/reply.h"
#include "server/resources/strategies/strategies.h"

/* Whether object is a default. 0: it is not; 1: it is; or -ENOMEM. */
static int check_default(const struct hfd_object *object, int64_t *ret_value) {
        static const char key[] = "\"globalDefault\"";
        struct hf__json *json;
        bool is_default;

        /* Most classes do not contain the word, and need no parsing. */
        if (!memmem(object->bytes->data, object->bytes->n, key, sizeof key - 1))
                return 0;
        json = hfd_object_parse(object);
        if (!json)
                return -ENOMEM;
        is_default = hf__json_bool(json, "globalDefault", false);
        *ret_value = 0;
        (void)hf__json_i64(json, "value", ret_value);
        hf__json_free(json);
        return is_default;
}

int hfd_write_default_class(struct hfd_write *w, const struct hfd_resource *classes,
                            char name[HF_NAME_MAX + 1]) {
        const struct hfd_scope all = {0};
        struct hfd_snapshot snapshot;
        struct hfd_object_iter iter;
        struct hfd_object *object;
        int64_t value, lowest = INT64_MAX;
        int r = 0;

        *name = '\0';
        if (!hfd_snapshot_take(w->registry->cacher, classes, 0, &snapshot))
                return 0; /* the cache is not filled yet: nothing is known */
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r >= 0 && (object = hfd_object_iter_next(&iter)) != NULL) {
                r = check_default(object, &value);
                if (r == 1 && value < lowest) {
                        lowest = value;
                        (void)snprintf(name, HF_NAME_MAX + 1, "%s", hfd_object_name(object));
                }
        }
        hfd_snapshot_done(&snapshot);
        return r < 0 ? r : 0;
}

/* ---- the wait for the cache ---- */

struct wait {
        struct hfd_consistent_read read; /* first member: on_ready casts it back */
        struct hfd_write *w;
        bool may_be_late;
};

/* Goes on with another attempt, or responds with an error (the cache stays behind, ...). */
static void on_ready(struct hfd_consistent_read *read) {
        const struct wait *wait = (const struct wait *)read;
        struct hfd_write *w = wait->w;
        const struct hf_status status = read->status;
        int outcome = read->outcome;

        /* A cache that was never filled knows no class at all. */
        if (outcome == HF_E_TIMEOUT && wait->may_be_late && hfd_cacher_synced(w->registry->cacher))
                outcome = 0;
        free(read);
        w->awaiting = false;
        w->knows_classes = true;
        if (outcome == 0)
                hfd_write_attempt(w);
        else /* nothing was written, so the client may repeat the write */
                hfd_write_reply_store_error(w, outcome == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : outcome,
                                            &status);
}

int hfd_write_find_class(struct hfd_write *w, const struct hfd_resource *classes, const char *name,
                         struct hf__json **ret_class) {
        bool synced;
        struct hfd_object *object = hfd_cacher_newest(w->registry->cacher, classes, name, &synced);

        *ret_class = NULL;
        if (!object)
                return synced ? HF_E_NOT_FOUND : HF_E_UNAVAILABLE;
        *ret_class = hfd_object_parse(object);
        hfd_object_unref(object);
        return *ret_class ? 0 : -ENOMEM;
}

void hfd_write_await_classes(struct hfd_write *w, bool may_be_late) {
        struct wait *wait = calloc(1, sizeof *wait);

        if (!wait) {
                hfd_write_reply_no_memory(w);
                return;
        }
        wait->w = w;
        wait->may_be_late = may_be_late;
        wait->read.ready = on_ready;
        wait->read.deadline = w->request->deadline;
        w->created = false;
        hfd_write_await(w);
        hfd_consistent_read_start(w->registry->cacher, &wait->read);
}

bool hfd_write_may_be_default(struct hfd_write *w, const struct hf__json *old) {
        char name[HF_NAME_MAX + 1], why[HF_NAME_MAX + 80];

        if (w->request->resource->validate != hfd_priority_class_validate ||
            !hf__json_bool(w->object, "globalDefault", false))
                return true;
        if (!w->knows_classes) {
                hfd_write_await_classes(w, false);
                return false;
        }
        if (hfd_write_default_class(w, w->request->resource, name) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        if (!*name || (old && strcmp(name, hfd_write_name(w)) == 0)) /* it is the default itself */
                return true;
        if (old && !w->fresh) { /* the newest version may be no default any more */
                hfd_write_refetch(w);
                return false;
        }
        (void)snprintf(why, sizeof why,
                       "PriorityClass %s is already marked as default. Only one default can exist",
                       name);
        hfd_write_reply_forbidden(w, why);
        return false;
}
