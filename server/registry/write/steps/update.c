/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a create, an update or a patch.
 *
 *      create  body -> metadata filled in -> defaults, owners of fields -> admission
 *      update  current gets the defaults of today -> body, or patched copy of current ->
 *              preconditions -> parts that this path must not change are copied from current ->
 *              defaults, owners of fields -> admission
 *
 *      both    an object that admission has changed is prepared again -> validation -> admission ->
 *              commit
 *
 * Invariants: if the kind has a subresource for status or spec.finalizers, an update of the object
 * itself does not change that part, and a create keeps the client's status only for a Node. A
 * request to a subresource changes only its part, and in some kinds metadata (enum
 * hfd_subresource). A uid that the client names must be that of the object that the update
 * replaces, except in a patch of a subresource that keeps metadata. A resourceVersion must be the
 * object's, too, unless it is "" or "0".
 */
#include "server/registry/write/steps/update.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/usage.h"
#include "server/registry/write/admit.h"
#include "server/registry/write/checks/certificate.h"
#include "server/registry/write/checks/claim_resize.h"
#include "server/registry/write/checks/custom.h"
#include "server/registry/write/checks/default_class.h"
#include "server/registry/write/checks/grant.h"
#include "server/registry/write/checks/limit_ranges.h"
#include "server/registry/write/checks/namespace.h"
#include "server/registry/write/checks/param_access.h"
#include "server/registry/write/checks/pod_account.h"
#include "server/registry/write/checks/pod_priority.h"
#include "server/registry/write/checks/pod_runtime.h"
#include "server/registry/write/checks/priority_default.h"
#include "server/registry/write/checks/taints.h"
#include "server/registry/write/convert.h"
#include "server/registry/write/defer.h"
#include "server/registry/write/fence.h"
#include "server/registry/write/patches/apply.h"
#include "server/registry/write/patches/merge_parts.h"
#include "server/registry/write/patches/patch.h"
#include "server/registry/write/quota/quota.h"
#include "server/registry/write/reply.h"
#include "server/registry/write/steps/commit.h"
#include "server/registry/write/steps/delete.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/meta.h"
#include "server/resources/validation/manager_names.h"
#include "server/resources/validation/meta_validation.h"

#define NAMES_MAX 8 /* attempts to generate a name that does not exist */

static void store_admitted(struct hfd_write *w);
static void store_object(struct hfd_write *w);

static bool is_apply(const struct hfd_write *w) {
        return w->request->verb == HFD_PATCH && w->request->patch == HFD_PATCH_APPLY;
}

/* Fills in the defaults, and the members that the server sets. The generation comes last: a member
 * that the client leaves out, and that a default puts back, has not changed. False: the response
 * was sent. */
static bool prepare_object(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        const struct hf__json *old = w->old;

        if (!hfd_write_custom_prepare(w))
                return false;
        if (hfd_write_certificate_prepare(w, old) != 0 ||
            (resource->prepare && resource->prepare(w->object, old) != 0) ||
            (old && w->request->subresource != HFD_SUB_BINDING &&
             hfd_meta_set_generation(resource, w->object, old,
                                     w->request->subresource == HFD_SUB_STATUS) != 0)) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        return true;
}

/* Replies that the object has mistakes. If it replaces a version that may be old, starts another
 * attempt with the newest version instead. */
static void refuse_object(struct hfd_write *w, const struct hfd_causes *causes) {
        struct hfd_response response = {0};

        if (w->old && !w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        hfd_response_invalid(&response, w->request->resource, hfd_write_name(w), causes);
        hfd_write_reply(w, &response);
}

/* Validates the managers that a client has sent. False: the response was sent, or another attempt
 * was started. Not a part of its caller, because of the size of the causes (validate_object). */
__attribute__((noinline)) static bool validate_managers(struct hfd_write *w) {
        static const char managers[] = "metadata.managedFields";
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        bool failed = hf__json_expand(w->old, managers) == -ENOMEM;
        hfd_managed_fields_validate(hf__json_path(w->object, managers),
                                    hf__json_path(w->old, managers), &causes);
        if (failed || causes.error != 0)
                hfd_write_reply_no_memory(w);
        else if (causes.n > 0)
                refuse_object(w, &causes);
        return !failed && causes.error == 0 && causes.n == 0;
}

/* Completes the object, and records the owners of the fields that this write changes. Admission
 * comes later, so its changes have no owner in managedFields, as in Kubernetes. False: the response
 * was sent, or another attempt was started. */
static bool prepare_and_track(struct hfd_write *w) {
        if (!prepare_object(w))
                return false;
        /* The managers are validated before the rest of the object, because hfd_write_apply_track
         * may move managedFields from the stored object to the new one. */
        if (w->request->subresource == HFD_SUB_NONE &&
            hfd_managed_fields_are_suspect(hf__json_path(w->object, "metadata.managedFields")) &&
            !validate_managers(w))
                return false;
        if (hfd_write_apply_track(w, w->old) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        return true;
}

/*
 * Validates w->object against w->old (NULL = a create). False: the response was sent, or another
 * attempt was started. The causes take 15 KiB, and their items are not initialized. A stack page
 * that a thread has touched stays resident, and a valid object should not touch these pages. So
 * this function is not made a part of its caller, which encodes the object later.
 */
__attribute__((noinline)) static bool validate_object(struct hfd_write *w) {
        const struct hf__json *old = w->old;
        const struct hfd_resource *resource = w->request->resource;
        struct hfd_causes causes;

        hfd_causes_init(&causes);
        hfd_meta_validate(resource, w->object, old, &causes);
        hfd_write_certificate_validate(w, old, &causes);
        const struct hfd_part_rules *part =
                hfd_resource_part_rules(resource, w->request->subresource);
        if (part)
                part->validate(w->request->subresource, w->object, old, &causes);
        else if (w->request->subresource == HFD_SUB_STATUS && resource->validate_status)
                resource->validate_status(w->object, old, &causes);
        else if (resource->validate)
                resource->validate(w->object, old, &causes);
        if (hfd_write_custom_validate(w, old, &causes) != 0 || causes.error != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        if (causes.n > 0)
                refuse_object(w, &causes);
        return causes.n == 0;
}

/*
 * Validates w->object, makes the checks that need it complete (checks/: the rights that it grants,
 * its params and certificate, whether a priority class may be the default, limits, account, runtime
 * class, whether a claim may grow), and encodes it as w->stored. False: the response was sent, or
 * another attempt was started.
 */
static bool make_stored(struct hfd_write *w) {
        const struct hf__json *old = w->old;

        assert(!w->stored);
        if (!validate_object(w) || !hfd_write_may_grant(w, old) ||
            !hfd_write_may_read_params(w, old) || !hfd_write_may_certify(w, old) ||
            !hfd_write_may_be_default(w, old) || !hfd_write_limit_ranges_allow(w, old) ||
            !hfd_write_account_allows(w) || !hfd_write_runtime_allows(w) ||
            !hfd_write_claim_may_grow(w))
                return false;
        w->stored = hfd_conversion_encode(w->request->resource, w->object);
        if (!w->stored)
                hfd_write_reply_no_memory(w);
        return w->stored != NULL;
}

/* Moves the body to w->object. */
static void move_body_to_object(struct hfd_write *w) {
        assert(w->body);
        hf__json_free(w->object);
        w->object = w->body;
        w->body = NULL;
}

/* ---- create ---- */

/*
 * Called after a conflict has shown that the name exists. True: the response was sent. False: the
 * name was generated, so the caller must try another one.
 */
static bool refuse_existing_name(struct hfd_write *w) {
        struct hfd_response response = {0};

        assert(w->fresh); /* the first attempt of a create has no current */
        if (w->name_generated && ++w->n_name_conflicts < NAMES_MAX)
                return false;
        hfd_response_exists(&response, w->request->resource, hfd_object_name(w->current),
                            w->name_generated);
        hfd_write_reply(w, &response);
        return true;
}

/*
 * A dry run sends no transaction, so the cacher decides whether the name exists. True: the response
 * was sent.
 */
static bool refuse_existing_in_dry_run(struct hfd_write *w) {
        struct hfd_response response = {0};
        bool synced;
        struct hfd_object *existing =
                hfd_cacher_newest(w->registry->cacher, hfd_resource_stored(w->request->resource),
                                  w->path, &synced);

        if (!existing)
                return false;
        hfd_response_exists(&response, w->request->resource, hfd_object_name(existing), false);
        hfd_object_unref(existing);
        hfd_write_reply(w, &response);
        return true;
}

/* Responds 400: the object to create names a version. Kubernetes finds this when it stores the
 * object, so a dry run does not. */
static void refuse_revision(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_bad_request(&response,
                                 "resourceVersion should not be set on objects to be created");
        hfd_write_reply(w, &response);
}

/* If a kind has the subresource status, a create writes no status; but a kubelet creates its node
 * with one. */
static void drop_status(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;

        if (resource->subresources & HFD_SUB_STATUS && !resource->created_with_status)
                hf__json_remove(w->object, "status");
}

/* Sets the metadata that the server provides, including a generated name. 0 or -errno. */
static int prepare_create(struct hfd_write *w) {
        const struct hf_clock *clock = hf_host_clock(w->registry->host);
        const struct hfd_resource *resource = w->request->resource;
        int64_t now_s = clock->real(clock->ctx) / HF_NSEC_PER_SEC;
        const char *name, *base;
        int r;

        drop_status(w);
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

/* The quotas come last: a write that has its turn there (quota_turn.h) makes others wait. */
static void commit_create(struct hfd_write *w) {
        if (!hfd_write_quota_admit(w, hfd_write_commit) ||
            (w->request->options.dry_run && refuse_existing_in_dry_run(w)))
                return;
        hfd_write_commit(w);
}

/* Sets the path and the key of the new object, converts the object and commits it. */
static void finish_create(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        int r;

        (void)snprintf(w->path, sizeof w->path, "%s%s%s", request->ns,
                       request->resource->namespaced ? "/" : "",
                       hf__json_string(w->object, "metadata.name"));
        r = hfd_write_make_key(w);
        if (r != 0) {
                hfd_write_reply_store_error(w, r, NULL);
                return;
        }
        hfd_write_convert_stored(w, commit_create);
}

void hfd_write_update_create(struct hfd_write *w) {
        int r;

        assert(!w->awaiting && !w->created && !w->old);
        if (hfd_write_custom_refuse_create(w))
                return;
        if (!hfd_write_namespace_accepts_create(w) || (w->current && refuse_existing_name(w)))
                return;
        hfd_write_set_current(w, NULL);
        move_body_to_object(w);
        r = prepare_create(w);
        if (r == -ENOMEM)
                hfd_write_reply_no_memory(w);
        else if (r != 0)
                hfd_write_reply_store_error(w, r, NULL); /* there are no random numbers */
        if (r != 0)
                return;
        /* The right to update or patch is not the right to create. */
        if (w->request->verb != HFD_CREATE && !hfd_write_may_create(w))
                return;
        if (is_apply(w) && !hfd_write_apply(w, NULL))
                return;
        w->created = true;
        /* The work of Kubernetes' admission plug-ins, in their order: for a pod LimitRanger,
         * ServiceAccount, Priority, DefaultTolerationSeconds and RuntimeClass; webhooks last. Each
         * sees what those before it have set, and the first refusal is the response. */
        if (prepare_and_track(w) && hfd_write_limit_ranges_default(w) &&
            hfd_write_account_assign(w) && hfd_write_prioritize(w) && hfd_write_taint(w) &&
            hfd_write_class_assign(w) && hfd_write_runtime_assign(w) &&
            hfd_write_admit_mutate(w, store_admitted))
                store_object(w);
}

/* ---- update: preconditions ---- */

/* Whether the client requires one version. "" and "0" mean any version. */
static bool requires_version(const char *revision) {
        return revision && *revision && strcmp(revision, "0") != 0;
}

/* Whether an update of an object that does not exist creates it. */
static bool may_create(const struct hfd_request *request) {
        if (request->subresource)
                return false;
        return request->verb == HFD_PATCH ? request->patch == HFD_PATCH_APPLY
                                          : request->resource->create_on_update;
}

/* Responds 409: the apply names the uid of an object that is gone. */
static void reply_uid_without_object(struct hfd_write *w, const char *uid) {
        struct hfd_response response = {0};
        char why[300];

        (void)snprintf(why, sizeof why,
                       "uid mismatch: the provided object specified uid %.100s, and no existing "
                       "object was found",
                       uid);
        hfd_response_conflict(&response, w->request->resource, w->request->name, why);
        hfd_write_reply(w, &response);
}

/*
 * Responds 409: the update names the uid `wanted`, but the object has `found`. If current is not
 * fresh, refetches it instead.
 */
static void uid_precondition_failed(struct hfd_write *w, const char *wanted, const char *found) {
        struct hfd_response response = {0};
        char why[1500];

        if (!w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: UID in precondition: %.100s, UID "
                       "in object meta: %.100s",
                       w->key, wanted, found);
        hfd_response_conflict(&response, w->request->resource, w->request->name, why);
        hfd_write_reply(w, &response);
}

/*
 * Handles an update of an object that does not exist: an apply creates the object, and so does a
 * PUT if the kind allows that. uid and revision are from the client, and may be NULL. The uid in a
 * patch other than an apply is no precondition.
 */
static void handle_missing_object(struct hfd_write *w, const char *uid, const char *revision) {
        const struct hfd_request *request = w->request;
        struct hfd_response response = {0};

        if (!w->fresh) {
                hfd_write_refetch(w);
        } else if (uid && *uid && request->verb != HFD_PATCH) {
                uid_precondition_failed(w, uid, "");
        } else if (!may_create(request)) {
                hfd_response_not_found(&response, request->resource, request->name);
                hfd_write_reply(w, &response);
        } else if (uid && *uid && request->patch == HFD_PATCH_APPLY) {
                reply_uid_without_object(w, uid);
        } else if (requires_version(revision)) {
                /* The client refers to a deleted object: the update must not create a new one. */
                hfd_response_conflict(&response, request->resource, request->name, NULL);
                hfd_write_reply(w, &response);
        } else {
                hfd_write_update_create(w);
        }
}

/* Responds 422: objects of this kind cannot be updated without a resourceVersion. */
static void reply_version_required(struct hfd_write *w) {
        struct hfd_causes causes = {0};
        struct hfd_response response = {0};
        struct hfd_resource by_plural = *w->request->resource;

        by_plural.kind = by_plural.plural; /* Kubernetes' message contains the plural here */
        hfd_cause_invalid(&causes, "metadata.resourceVersion", "0",
                          "must be specified for an update");
        hfd_response_invalid(&response, &by_plural, w->request->name, &causes);
        hfd_write_reply(w, &response);
}

/*
 * Whether the client's resourceVersion allows the update. False: the response was sent, or another
 * attempt was started.
 */
static bool check_revision(struct hfd_write *w, const char *revision) {
        struct hfd_response response = {0};
        char current[HF__U64_TEXT_MAX];

        if (!requires_version(revision)) {
                if (w->request->resource->unconditional_update ||
                    w->request->subresource == HFD_SUB_SCALE)
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

/* An update that deletes the object, or changes nothing, needs no quota. Nor does an update of a
 * kind of which quotas count only how many objects there are. */
static void commit_update(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;

        if (w->stored && hfd_quota_kind(resource->group, resource->plural) != HFD_QUOTA_OBJECTS &&
            !hfd_write_quota_admit(w, hfd_write_commit))
                return;
        hfd_write_commit(w);
}

/* Parses the object that the update changes. with_text: managedFields may stay unparsed text. NULL:
 * the stored value is no object, or memory ran out. */
static struct hf__json *parse_current(const struct hfd_write *w, bool with_text) {
        const struct hfd_object *current = w->converted ? w->converted : w->current;

        return with_text ? hfd_conversion_parse_for_update(w->request->resource, current)
                         : hfd_conversion_parse(w->request->resource, current);
}

/* Whether the store has the new version already: the same bytes, or the same members in another
 * order, because some clients sort them. w->old may have defaults that the store lacks. */
static bool is_stored(const struct hfd_write *w) {
        static const char managers[] = "metadata.managedFields";

        if (hfd_object_has_bytes(w->current, w->stored))
                return true;
        if (w->changed || !hf__json_equal(w->object, w->old))
                return false;
        if (!w->request->resource->prepare)
                return true;
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *stored =
                parse_current(w, hf__json_raw(hf__json_path(w->object, managers)) != NULL);
        hf__json_remove(stored, "metadata.resourceVersion");
        return stored && hf__json_equal(w->object, stored);
}

/* Decides whether the new version is put, deletes the object or changes nothing; converts and
 * commits it. */
static void finish_update(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        const struct hf__json *old = w->old;
        bool deleting = hf__json_string(old, "metadata.deletionTimestamp");

        w->same_term = resource->term_record && hfd_write_fence_same_term(old, w->object);
        if (deleting && !hfd_write_delete_is_blocked(resource, w->object)) {
                /* The update has removed the last finalizer, so it also deletes the object. */
                w->last = w->stored;
                w->stored = NULL;
        } else if (!w->current->stale && !w->current->has_origin && !hfd_write_moves_version(w) &&
                   is_stored(w)) {
                /* Stored bytes that would now be encrypted in another way, or that have an older
                 * form or another version, are replaced even if the object is the same: clients
                 * write objects again to achieve that. */
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        hfd_write_convert_stored(w, commit_update);
}

/* Makes w->object the new version of w->old, and commits it. */
static void update_existing(struct hfd_write *w) {
        hf__json_remove(w->old,
                        "metadata.resourceVersion"); /* it is neither stored nor compared later */
        if (hfd_write_merge_parts(w, w->old) != 0)
                hfd_write_reply_no_memory(w);
        else if (prepare_and_track(w) && hfd_write_taint(w) &&
                 hfd_write_admit_mutate(w, store_admitted))
                store_object(w);
}

/* ---- after the object is computed ---- */

/* Continues after admission has allowed the write or was not asked. */
static void finish_object(struct hfd_write *w) {
        hfd_write_admit_done(w);
        if (w->request->verb == HFD_CREATE && w->names_revision && !w->request->options.dry_run)
                refuse_revision(w);
        else if (w->created)
                finish_create(w);
        else
                finish_update(w);
}

/* Continues after the last change by a client or by admission: completes a new object
 * (strategies.h), validates it, asks validating admission, and stores the object. */
static void store_object(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        int r = w->created && resource->complete ? resource->complete(w->object) : 0;

        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        else if (make_stored(w) && hfd_write_admit_validate(w, finish_object))
                finish_object(w);
}

/*
 * Admission has decided, perhaps on another thread. An object that it has changed is prepared
 * again, so that admission can change no more than the client could with a request to this
 * subresource.
 */
static void store_admitted(struct hfd_write *w) {
        if (hfd_write_must_defer(w)) {
                hfd_write_defer(w, store_admitted);
                return;
        }
        if (!hfd_write_admit_has_mutated(w)) {
                store_object(w);
                return;
        }
        w->changed = false; /* the changed object was not compared yet */
        if (w->created)
                drop_status(w);
        if (!w->created && hfd_write_merge_parts(w, w->old) != 0)
                hfd_write_reply_no_memory(w);
        else if (prepare_object(w))
                store_object(w);
}

/*
 * Gives the stored object the defaults that it would get if it were written now. Kubernetes gives
 * them to each object that it reads. The object may be older than a default: then a client that
 * sends the default would change the field, which may be immutable, and would own it. A value of
 * the wrong type in the store gets no default. 0 or -ENOMEM.
 */
static int default_old(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        int r = resource->prepare ? resource->prepare(w->old, w->old) : 0;

        return r == -ENOMEM ? r : 0;
}

void hfd_write_update_attempt(struct hfd_write *w) {
        struct hf__json *old;
        const struct hf__json *meta;
        const char *uid, *revision, *old_uid;

        if (!w->current) {
                handle_missing_object(w, hf__json_string(w->body, "metadata.uid"),
                                      hf__json_string(w->body, "metadata.resourceVersion"));
                return;
        }
        old = parse_current(w, w->request->verb != HFD_PATCH || !hfd_write_patch_reads_managers(w));
        if (!old) {
                hfd_write_reply_unreadable_current(w);
                return;
        }
        w->old = old;
        if (default_old(w) != 0) {
                hfd_write_reply_no_memory(w);
                return;
        }
        if (w->request->verb != HFD_PATCH)
                move_body_to_object(w);
        else if (!hfd_write_patch_apply(w, old))
                return;
        meta = hf__json_get(w->object, "metadata");
        uid = hf__json_string(meta, "uid");
        revision = hf__json_string(meta, "resourceVersion");
        old_uid = hf__json_string(old, "metadata.uid");
        if (!old_uid)
                old_uid = "";
        /* A patch has no preconditions but the resourceVersion: validation refuses another uid. */
        if (w->request->verb != HFD_PATCH && uid && *uid && strcmp(uid, old_uid) != 0)
                uid_precondition_failed(w, uid, old_uid);
        else if (check_revision(w, revision))
                update_existing(w);
}
