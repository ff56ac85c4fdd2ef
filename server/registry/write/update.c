/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a create, an update or a patch.
 *
 *      create  body -> metadata filled in -> defaults, validation -> commit
 *      update  body, or patched copy of current -> preconditions -> parts that the path may not
 *              write are taken from current -> defaults, validation -> commit
 *
 * Invariants: the status and the finalizers of a spec are written through their subresources only.
 * A resourceVersion or uid that the client names must be that of the object that is replaced.
 */
#include "server/registry/write/update.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/write/commit.h"
#include "server/registry/write/delete.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/namespace.h"
#include "server/registry/write/patch.h"
#include "server/registry/write/reply.h"
#include "server/resources/meta.h"
#include "server/resources/meta_validation.h"

#define NAMES_MAX 8 /* generated names that are tried */

/*
 * Fills in defaults, validates w->object against old (NULL = a create), and makes the bytes to
 * store. False: w was answered, or is attempted again.
 */
static bool make_stored(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_resource *resource = w->request->resource;
        /*
         * 15 KiB, of which only `n` is initialized: a stack page that a thread has touched once
         * stays resident, and valid objects do not need these.
         */
        struct hfd_causes causes;
        struct hfd_response response = {0};

        assert(!w->stored);
        if (resource->prepare && resource->prepare(w->object, old) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        causes.n = 0;
        hfd_meta_validate(resource, w->object, old, &causes);
        if (resource->validate)
                resource->validate(w->object, old, &causes);
        if (causes.n && old && !w->fresh) {
                hfd_write_refetch(w);
                return false;
        }
        if (causes.n) {
                hfd_response_invalid(&response, resource, hfd_write_name(w), &causes);
                hfd_write_reply(w, &response);
                return false;
        }
        w->stored = hfd_object_encode(resource, w->object);
        if (!w->stored)
                hfd_write_reply_no_memory(w);
        return w->stored != NULL;
}

/* Moves the body to w->object. */
static void take_sent(struct hfd_write *w) {
        assert(w->sent);
        hf__json_free(w->object);
        w->object = w->sent;
        w->sent = NULL;
}

/* ---- create ---- */

/*
 * Called after a conflict has shown that the name exists. At most NAMES_MAX generated names are
 * tried. True: w was answered.
 */
static bool refuse_taken_name(struct hfd_write *w) {
        struct hfd_response response = {0};

        assert(w->fresh); /* the first attempt of a create has no current */
        if (w->name_generated && ++w->n_names_taken < NAMES_MAX)
                return false;
        hfd_response_exists(&response, w->request->resource, w->current->name, w->name_generated);
        hfd_write_reply(w, &response);
        return true;
}

/* A dry run sends no transaction: it asks the cacher whether the name exists. True: w was answered.
 */
static bool refuse_existing_dry(struct hfd_write *w) {
        struct hfd_response response = {0};
        bool synced;
        struct hfd_object *existing =
                hfd_cacher_newest(w->registry->cacher, w->request->resource, w->path, &synced);

        if (!existing)
                return false;
        hfd_response_exists(&response, w->request->resource, existing->name, false);
        hfd_object_unref(existing);
        hfd_write_reply(w, &response);
        return true;
}

/* Fills in what the server sets, the generated name included. 0 or -errno. */
static int prepare_create(struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        const struct hfd_resource *resource = w->request->resource;
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC;
        const char *name, *base;
        int r;

        if (resource->subresources & HFD_SUB_STATUS)
                hf__json_remove(w->object, "status");
        r = hfd_meta_prepare_create(resource, w->request->ns, w->object, now_s);
        if (r == 0 && resource->has_generation)
                r = hf__json_set_i64(w->object, "metadata.generation", 1);
        name = hf__json_string(w->object, "metadata.name");
        base = hf__json_string(w->object, "metadata.generateName");
        if (r == 0 && (!name || !*name) && base && *base) {
                w->name_generated = true;
                r = hfd_meta_generate_name(w->object);
        }
        return r;
}

void hfd_write_update_create(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        int r;

        assert(!w->at_store && !w->created);
        if (!hfd_write_namespace_accepts_create(w) || (w->current && refuse_taken_name(w)))
                return;
        hfd_write_set_current(w, NULL);
        take_sent(w);
        r = prepare_create(w);
        if (r != 0) {
                hfd_write_reply_no_memory(w);
                return;
        }
        w->created = true;
        if (!make_stored(w, NULL))
                return;
        (void)snprintf(w->path, sizeof w->path, "%s%s%s", request->ns,
                       request->resource->namespaced ? "/" : "",
                       hf__json_string(w->object, "metadata.name"));
        r = hfd_write_make_key(w);
        if (r != 0) {
                hfd_write_reply_store_error(w, r, NULL);
                return;
        }
        if (request->options.dry_run && refuse_existing_dry(w))
                return;
        hfd_write_commit(w);
}

/* ---- update: preconditions ---- */

/* "" and "0" stand for any version. */
static bool names_version(const char *revision) {
        return revision && *revision && strcmp(revision, "0") != 0;
}

/* The object to update does not exist. uid and revision are from the client, and may be NULL. */
static void update_missing(struct hfd_write *w, const char *uid, const char *revision) {
        const struct hfd_request *request = w->request;
        struct hfd_response response = {0};

        if (!w->fresh) {
                hfd_write_refetch(w);
        } else if (uid && *uid) {
                hfd_write_precondition_failed(w, "UID", uid, "");
        } else if (request->verb == HFD_PATCH || !request->resource->create_on_update ||
                   request->subresource) {
                hfd_response_not_found(&response, request->resource, request->name);
                hfd_write_reply(w, &response);
        } else if (names_version(revision)) {
                /* The client means the deleted object, so the update must not create another. */
                hfd_response_conflict(&response, request->resource, request->name, NULL);
                hfd_write_reply(w, &response);
        } else {
                hfd_write_update_create(w);
        }
}

/* Some kinds cannot be updated without naming a version. */
static void reply_version_required(struct hfd_write *w) {
        struct hfd_causes causes = {0};
        struct hfd_response response = {0};
        struct hfd_resource by_plural = *w->request->resource;

        by_plural.kind = by_plural.plural; /* Kubernetes' message has the resource here */
        hfd_cause_invalid(&causes, "metadata.resourceVersion", "0x0",
                          "must be specified for an update");
        hfd_response_invalid(&response, &by_plural, w->request->name, &causes);
        hfd_write_reply(w, &response);
}

/*
 * Whether the client's resourceVersion lets the update through. False: w was answered, or is
 * attempted again.
 */
static bool check_revision(struct hfd_write *w, const char *revision) {
        struct hfd_response response = {0};
        char current[HF__U64_TEXT_MAX];

        if (!names_version(revision)) {
                if (w->request->resource->unconditional_update)
                        return true;
                reply_version_required(w);
                return false;
        }
        (void)hf__u64_text(w->current->revision, current);
        if (strcmp(revision, current) == 0)
                return true;
        if (!w->fresh) {
                hfd_write_refetch(w);
                return false;
        }
        hfd_response_conflict(&response, w->request->resource, w->request->name, NULL);
        hfd_write_reply(w, &response);
        return false;
}

/* ---- update ---- */

/* Puts a copy of the part of `from` into object. Absent or null: removes it there. */
static int replace_part(struct hf__json *object, const char *path, const struct hf__json *from) {
        const struct hf__json *part = hf__json_path(from, path);
        struct hf__json *copy;

        if (!part || hf__json_is_null(part)) {
                hf__json_remove(object, path);
                return 0;
        }
        copy = hf__json_dup(part);
        return copy ? hf__json_set(object, path, copy) : -ENOMEM;
}

/* For a subresource: takes the whole object from old, except for the one part. 0 or -ENOMEM. */
static int merge_subresource(struct hfd_write *w, const struct hf__json *old) {
        const char *part = w->request->subresource == HFD_SUB_STATUS ? "status" : "spec.finalizers";
        struct hf__json *whole = hf__json_dup(old);
        int r = whole ? replace_part(whole, part, w->object) : -ENOMEM;

        if (r != 0) {
                hf__json_free(whole);
                return r;
        }
        hf__json_free(w->object);
        w->object = whole;
        return 0;
}

/* Copies from old the parts that a request to this path must not write. 0 or -ENOMEM. */
static int merge_parts(struct hfd_write *w, const struct hf__json *old) {
        unsigned subresources = w->request->resource->subresources;
        int r = 0;

        if (w->request->subresource)
                return merge_subresource(w, old);
        if (subresources & HFD_SUB_STATUS)
                r = replace_part(w->object, "status", old);
        if (r == 0 && subresources & HFD_SUB_FINALIZE)
                r = replace_part(w->object, "spec.finalizers", old);
        return r == 0 ? hfd_meta_prepare_update(w->request->resource, w->object, old) : r;
}

/* Makes w->object the new version of old, and commits it. */
static void update_existing(struct hfd_write *w, struct hf__json *old) {
        const struct hfd_resource *resource = w->request->resource;
        bool deleting = hf__json_string(old, "metadata.deletionTimestamp");

        hf__json_remove(old, "metadata.resourceVersion"); /* it is not stored, nor compared below */
        if (merge_parts(w, old) != 0) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (!make_stored(w, old))
                return;
        w->same_term = resource->term_record && hfd_write_fence_same_term(old, w->object);
        if (deleting && !hfd_write_delete_is_blocked(resource, w->object)) {
                /* The update has removed the last finalizer, so it is the deletion as well. */
                w->last = w->stored;
                w->stored = NULL;
        } else if (hfd_object_has_bytes(w->current, w->stored) || hf__json_equal(w->object, old)) {
                /* The same bytes, or the same members in another order: some clients sort them. */
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        hfd_write_commit(w);
}

void hfd_write_update_attempt(struct hfd_write *w) {
        struct hf__json *old;
        const struct hf__json *meta;
        const char *uid, *revision, *old_uid;

        if (!w->current) {
                update_missing(w, hf__json_string(w->sent, "metadata.uid"),
                               hf__json_string(w->sent, "metadata.resourceVersion"));
                return;
        }
        old = hfd_object_parse(w->current);
        if (!old) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (w->request->verb != HFD_PATCH) {
                take_sent(w);
        } else if (!hfd_write_patch_apply(w, old)) {
                hf__json_free(old);
                return;
        }
        meta = hf__json_get(w->object, "metadata");
        uid = hf__json_string(meta, "uid");
        revision = hf__json_string(meta, "resourceVersion");
        old_uid = hf__json_string(old, "metadata.uid");
        if (!old_uid)
                old_uid = "";
        if (uid && *uid && strcmp(uid, old_uid) != 0)
                hfd_write_precondition_failed(w, "UID", uid, old_uid);
        else if (check_revision(w, revision))
                update_existing(w, old);
        hf__json_free(old);
}
