/* SPDX-License-Identifier: Apache-2.0 */
/* create and update: one attempt each, on w->current. */
#include "server/registry/write_update.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/write_body.h"
#include "server/registry/write_commit.h"
#include "server/registry/write_delete.h"
#include "server/registry/write_fence.h"
#include "server/registry/write_namespace.h"
#include "server/registry/write_reply.h"
#include "server/resources/meta.h"
#include "server/resources/meta_validation.h"

#define GENERATE_MAX 8

/* Validates w->object against old and makes its bytes. False: answered, or looked at again. */
static bool make_stored(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_resource *r = w->request->resource;
        struct hfd_causes causes; /* 15 KiB, of which only what is counted is looked at */
        struct hfd_response response = {0};
        int e = r->prepare ? r->prepare(w->object, old) : 0;

        if (!e) {
                causes.n = 0;
                hfd_meta_validate(r, w->object, old, &causes);
                if (r->validate)
                        r->validate(w->object, old, &causes);
                if (causes.n && old && !w->fresh) {
                        hfd_write_refetch(w);
                        return false;
                }
                if (causes.n) {
                        hfd_response_invalid(&response, r, hfd_write_name(w), &causes);
                        hfd_write_reply(w, &response);
                        return false;
                }
        }
        w->stored = e ? NULL : hfd_object_encode(r, w->object);
        if (!w->stored)
                hfd_write_reply_no_memory(w);
        return w->stored != NULL;
}

/* Makes what was sent w->object, to be prepared. */
static void take_sent(struct hfd_write *w) {
        hf__json_free(w->object);
        w->object = w->sent;
        w->sent = NULL;
}

/* ---- create ---- */

static int start_object(struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        const struct hfd_resource *r = w->request->resource;

        take_sent(w);
        if (r->subresources & HFD_SUB_STATUS)
                hf__json_remove(w->object, "status");
        int e = hfd_meta_prepare_create(r, w->request->ns, w->object,
                                        clock->real(clock->ctx) / HF_NSEC_PER_SEC);
        return e || !r->has_generation ? e : hf__json_set_i64(w->object, "metadata.generation", 1);
}

void hfd_write_update_create(struct hfd_write *w) {
        struct hfd_response response = {0};
        const char *name, *base;
        int r;

        if (!hfd_write_namespace_open(w))
                return;
        if (w->current && !w->generated) {
                hfd_response_exists(&response, w->request->resource, w->current->name, false);
                hfd_write_reply(w, &response);
                return;
        }
        if (w->current && ++w->n_generated == GENERATE_MAX) {
                hfd_response_exists(&response, w->request->resource, w->current->name, true);
                hfd_write_reply(w, &response);
                return;
        }
        hfd_write_adopt(w, NULL);
        r = start_object(w);
        name = hf__json_string(w->object, "metadata.name");
        base = hf__json_string(w->object, "metadata.generateName");
        if (r == 0 && (!name || !*name) && base && *base) {
                w->generated = true;
                r = hfd_meta_generate_name(w->object);
        }
        if (r != 0) {
                hfd_write_reply_no_memory(w);
                return;
        }
        w->created = true;
        if (!make_stored(w, NULL))
                return;
        (void)snprintf(w->path, sizeof w->path, "%s%s%s", w->request->ns,
                       w->request->resource->namespaced ? "/" : "",
                       hf__json_string(w->object, "metadata.name"));
        r = hfd_write_make_key(w);
        if (r != 0) {
                hfd_write_reply_store_error(w, r, NULL);
                return;
        }
        if (w->request->options.dry_run) {
                bool synced;
                struct hfd_object *there =
                        hfd_cacher_newest(w->registry->cacher, w->request->resource, w->path,
                                          &synced);
                if (there) {
                        hfd_response_exists(&response, w->request->resource, there->name, false);
                        hfd_object_unref(there);
                        hfd_write_reply(w, &response);
                        return;
                }
        }
        hfd_write_commit(w);
}

/* ---- update ---- */

static void update_missing(struct hfd_write *w, const char *uid, const char *revision) {
        struct hfd_response response = {0};

        if (!w->fresh) {
                hfd_write_refetch(w);
        } else if (uid && *uid) {
                hfd_write_precondition_failed(w, "UID", uid, "");
        } else if (w->request->verb == HFD_PATCH || !w->request->resource->create_on_update ||
                   w->request->subresource) {
                hfd_response_not_found(&response, w->request->resource, w->request->name);
                hfd_write_reply(w, &response);
        } else if (revision && *revision && strcmp(revision, "0") != 0) {
                /* Who names a version means the object that is gone; a new one in its place is not
                 * what was asked for. */
                hfd_response_conflict(&response, w->request->resource, w->request->name, NULL);
                hfd_write_reply(w, &response);
        } else {
                hfd_write_update_create(w);
        }
}

/* Whether the sent resourceVersion lets the update through; false: answered, or refetching. */
static bool revision_fits(struct hfd_write *w, const char *revision) {
        struct hfd_response response = {0};
        char current[HF__U64_TEXT_MAX];

        (void)hf__u64_text(w->current->revision, current);
        if (revision && *revision && strcmp(revision, "0") != 0) {
                if (strcmp(revision, current) == 0)
                        return true;
                if (!w->fresh) {
                        hfd_write_refetch(w);
                        return false;
                }
                hfd_response_conflict(&response, w->request->resource, w->request->name, NULL);
        } else {
                if (w->request->resource->unconditional_update)
                        return true;
                struct hfd_causes causes = {0};
                struct hfd_resource by_plural =
                        *w->request->resource; /* upstream names the resource here, not the kind */
                by_plural.kind = by_plural.plural;
                hfd_cause_invalid(&causes, "metadata.resourceVersion", "0x0",
                                  "must be specified for an update");
                hfd_response_invalid(&response, &by_plural, w->request->name, &causes);
        }
        hfd_write_reply(w, &response);
        return false;
}

static int replace_part(struct hf__json *object, const char *path, const struct hf__json *from) {
        const struct hf__json *part = hf__json_path(from, path);
        struct hf__json *copy = part && !hf__json_is_null(part) ? hf__json_dup(part) : NULL;

        if (copy)
                return hf__json_set(object, path, copy);
        if (part && !hf__json_is_null(part))
                return -ENOMEM;
        hf__json_remove(object, path);
        return 0;
}

/* w->object is what was sent: it becomes what the (sub)resource lets through of it, on old. 0 or
 * -ENOMEM. */
static int merge_parts(struct hfd_write *w, const struct hf__json *old) {
        unsigned subresources = w->request->resource->subresources;
        int r = 0;

        if (w->request->subresource) {
                struct hf__json *whole = hf__json_dup(old);
                const char *part =
                        w->request->subresource == HFD_SUB_STATUS ? "status" : "spec.finalizers";
                r = whole ? replace_part(whole, part, w->object) : -ENOMEM;
                hf__json_free(r != 0 ? whole : w->object);
                if (r == 0)
                        w->object = whole;
                return r;
        }
        if (subresources & HFD_SUB_STATUS)
                r = replace_part(w->object, "status", old);
        if (r == 0 && subresources & HFD_SUB_FINALIZE)
                r = replace_part(w->object, "spec.finalizers", old);
        return r != 0 ? r : hfd_meta_prepare_update(w->request->resource, w->object, old);
}

static void update_existing(struct hfd_write *w, struct hf__json *old) {
        bool deleting = hf__json_string(old, "metadata.deletionTimestamp");

        hf__json_remove(old, "metadata.resourceVersion"); /* not stored, and so no part of what is
                                                             compared */
        if (merge_parts(w, old)) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (!make_stored(w, old))
                return;
        w->same_term =
                w->request->resource->term_record && hfd_write_fence_same_term(old, w->object);
        if (deleting && !hfd_write_delete_is_held(w->request->resource, w->object)) {
                w->last = w->stored; /* the last finalizer is gone: so is the object */
                w->stored = NULL;
        } else if (hfd_object_has_bytes(w->current, w->stored) || hf__json_equal(w->object, old)) {
                /* The same bytes, or the same members in the order of a client that sorts them. */
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        hfd_write_commit(w);
}

static void patch_failed(struct hfd_write *w, int r, const char *why) {
        struct hfd_response response = {0};
        char message[HFD_PATCH_WHY + 120];

        if (r == -ENOMEM) {
                hfd_write_reply_no_memory(w);
        } else if (!w->fresh) {
                hfd_write_refetch(w);
        } else if (r == HF_E_TOO_LARGE) {
                (void)snprintf(message, sizeof message, "Request entity too large: %s", why);
                hfd_response_status(&response, HF_E_TOO_LARGE, 413, "RequestEntityTooLarge",
                                    message, NULL);
                hfd_write_reply(w, &response);
        } else {
                (void)snprintf(message, sizeof message,
                               "the server rejected our request due to an error in our request: %s",
                               why);
                hfd_response_status(&response, HF_E_INVALID, 422, "Invalid", message, NULL);
                hfd_write_reply(w, &response);
        }
}

/* Makes w->object what the patch makes of old. False: answered, or looked at again. */
static bool apply_patch(struct hfd_write *w, const struct hf__json *old) {
        struct hfd_response response = {0};
        char why[HFD_PATCH_WHY] = "";
        int r;

        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        if (!w->object)
                r = -ENOMEM;
        else if (w->request->patch == HFD_PATCH_JSON)
                r = hfd_patch_json(&w->object, w->sent, why);
        else if (w->request->patch == HFD_PATCH_MERGE)
                r = hfd_patch_merge(&w->object, w->sent);
        else
                r = hfd_patch_strategic(w->request->resource, &w->object, w->sent, why);
        if (r == 0 && !hf__json_is_object(w->object)) {
                (void)snprintf(why, sizeof why, "what the patch makes is no object");
                r = HF_E_INVALID;
        }
        if (r != 0) {
                patch_failed(w, r, why);
                return false;
        }
        if (hfd_write_body_accept(w, w->object, &response))
                return true;
        if (w->fresh) {
                hfd_write_reply(w, &response);
        } else {
                hfd_response_done(&response);
                hfd_write_refetch(w);
        }
        return false;
}

void hfd_write_update_attempt(struct hfd_write *w) {
        bool patches = w->request->verb == HFD_PATCH;

        if (!w->current) {
                update_missing(w, hf__json_string(w->sent, "metadata.uid"),
                               hf__json_string(w->sent, "metadata.resourceVersion"));
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        if (old && patches && !apply_patch(w, old)) {
                hf__json_free(old);
                return;
        }
        if (!patches)
                take_sent(w);
        const struct hf__json *meta = hf__json_get(w->object, "metadata");
        const char *uid = hf__json_string(meta, "uid"),
                   *revision = hf__json_string(meta, "resourceVersion");
        const char *old_uid = hf__json_string(old, "metadata.uid");
        if (!old)
                hfd_write_reply_no_memory(w);
        else if (uid && *uid && strcmp(uid, old_uid ? old_uid : "") != 0)
                hfd_write_precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        else if (revision_fits(w, revision))
                update_existing(w, old);
        hf__json_free(old);
}
