/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create, update, delete: the optimistic loop of apiserver.md 4, one transaction in the normal case.
 *
 *      start -> [namespace there?] -> attempt -> commit -> done
 *                                       ^  |        |
 *                               refetch +--+        +-- conflict: adopt what the transaction read, attempt again
 *
 * An attempt works on w->current: the newest version the cache knows (not fresh: a refusal that rests on it is checked
 * against the store first), or what the store said (fresh). A transaction compares the object's mod revision, and for a
 * fenced call the term record (design 6); with a Lease it writes the term record whenever holder or acquireTime change.
 * An update that changes nothing is a transaction with compares only: it writes nothing and is known to be still true.
 *
 * A write belongs to the thread that drives it; the store hands it from one to the next. Trees are freed by the thread that made
 * them, before the transaction is sent; an attempt after the first, which is rare, parses the body once more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/timetext.h"
#include "server/api/meta.h"
#include "server/api/write.h"

#define GENERATE_MAX 8

/* ---- current state ---- */

static void on_refetched(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;
        struct hfd_object *object = NULL;

        if (reply->error) { /* a read: nothing was written, whatever became of it */
                hfd_write_finish_store_error(w, reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error, &reply->status);
                return;
        }
        if (reply->n_kvs) {
                object = hfd_object_new(w->call->resource, w->path, reply->kvs[0].mod_revision, reply->kvs[0].value);
                if (!object) {
                        hfd_write_finish_no_memory(w);
                        return;
                }
        }
        hfd_write_adopt(w, object);
        hfd_write_attempt(w);
}

/* A refusal that rests on the cache's state: look at the store first. */
static void refetch(struct hfd_write *w) {
        int e = hfd_store_get(w->api, w->key, w->call->deadline, on_refetched, w);

        if (e)
                hfd_write_finish_store_error(w, e, NULL);
}

/* Validates w->object against old and makes its bytes. False: answered. */
static bool make_stored(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_resource *r = w->call->resource;
        struct hfd_causes causes; /* 15 KiB, of which only what is counted is looked at */
        struct hfd_answer answer = {0};
        int e = r->prepare ? r->prepare(w->object, old) : 0;

        if (!e) {
                causes.n = 0;
                hfd_meta_validate(r, w->object, old, &causes);
                if (r->validate)
                        r->validate(w->object, old, &causes);
                if (causes.n) {
                        hfd_answer_invalid(&answer, r, hfd_write_name(w), &causes);
                        hfd_write_finish(w, &answer);
                        return false;
                }
        }
        w->stored = e ? NULL : hfd_object_encode(r, w->object);
        if (!w->stored)
                hfd_write_finish_no_memory(w);
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
        const struct hf_clock *clock = hf_host_clock(w->api->host);

        take_sent(w);
        return hfd_meta_prepare_create(w->call, w->object, clock->real(clock->ctx) / HF_NSEC_PER_SEC);
}

static void attempt_create(struct hfd_write *w) {
        struct hfd_answer answer = {0};
        const char *name, *base;
        int e;

        if (w->current && !w->generated) {
                hfd_answer_exists(&answer, w->call->resource, w->current->name, false);
                hfd_write_finish(w, &answer);
                return;
        }
        if (w->current && ++w->n_generated == GENERATE_MAX) {
                hfd_answer_exists(&answer, w->call->resource, w->current->name, true);
                hfd_write_finish(w, &answer);
                return;
        }
        hfd_write_adopt(w, NULL);
        e = start_object(w);
        name = hf__json_string(w->object, "metadata.name");
        base = hf__json_string(w->object, "metadata.generateName");
        if (!e && (!name || !*name) && base && *base) {
                w->generated = true;
                e = hfd_meta_generate_name(w->object);
        }
        if (e) {
                hfd_write_finish_no_memory(w);
                return;
        }
        w->created = true;
        if (!make_stored(w, NULL))
                return;
        (void)snprintf(w->path, sizeof w->path, "%s%s%s", w->call->ns, w->call->resource->namespaced ? "/" : "",
                       hf__json_string(w->object, "metadata.name"));
        e = hfd_object_key(w->api, w->call->resource, w->path, w->key);
        if (e) {
                hfd_write_finish_store_error(w, e, NULL);
                return;
        }
        if (w->call->options.dry_run) {
                bool synced;
                struct hfd_object *there = hfd_cache_newest(w->api, w->call->resource, w->path, &synced);
                if (there) {
                        hfd_answer_exists(&answer, w->call->resource, there->name, false);
                        hfd_object_unref(there);
                        hfd_write_finish(w, &answer);
                        return;
                }
        }
        hfd_write_commit(w);
}

/* ---- update ---- */

static void precondition_failed(struct hfd_write *w, const char *what, const char *wanted, const char *found) {
        struct hfd_answer answer = {0};
        char why[1500];

        if (!w->fresh) {
                refetch(w);
                return;
        }
        (void)snprintf(why, sizeof why,
                       "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: %s in "
                       "precondition: %.100s, %s in object meta: %.100s",
                       w->key, what, wanted, what, found);
        hfd_answer_conflict(&answer, w->call->resource, w->call->name, why);
        hfd_write_finish(w, &answer);
}

static void update_missing(struct hfd_write *w, const char *uid, const char *revision) {
        struct hfd_answer answer = {0};

        if (!w->fresh) {
                refetch(w);
        } else if (uid && *uid) {
                precondition_failed(w, "UID", uid, "");
        } else if (!w->call->resource->create_on_update) {
                hfd_answer_not_found(&answer, w->call->resource, w->call->name);
                hfd_write_finish(w, &answer);
        } else if (revision && *revision && strcmp(revision, "0")) {
                /* Who names a version means the object that is gone; a new one in its place is not what was asked for. */
                hfd_answer_conflict(&answer, w->call->resource, w->call->name, NULL);
                hfd_write_finish(w, &answer);
        } else {
                attempt_create(w);
        }
}

/* Whether the sent resourceVersion lets the update through; false: answered, or refetching. */
static bool revision_fits(struct hfd_write *w, const char *revision) {
        struct hfd_answer answer = {0};
        char current[24];

        (void)snprintf(current, sizeof current, "%" PRIu64, w->current->revision);
        if (revision && *revision && strcmp(revision, "0")) {
                if (!strcmp(revision, current))
                        return true;
                if (!w->fresh) {
                        refetch(w);
                        return false;
                }
                hfd_answer_conflict(&answer, w->call->resource, w->call->name, NULL);
        } else {
                if (w->call->resource->unconditional_update)
                        return true;
                struct hfd_causes causes = {0};
                struct hfd_resource by_plural = *w->call->resource; /* upstream names the resource here, not the kind */
                by_plural.kind = by_plural.plural;
                hfd_cause_invalid(&causes, "metadata.resourceVersion", "0x0", "must be specified for an update");
                hfd_answer_invalid(&answer, &by_plural, w->call->name, &causes);
        }
        hfd_write_finish(w, &answer);
        return false;
}

static void update_existing(struct hfd_write *w, const struct hf__json *old) {
        bool deleting = hf__json_string(old, "metadata.deletionTimestamp");

        take_sent(w);
        if (hfd_meta_prepare_update(w->object, old)) {
                hfd_write_finish_no_memory(w);
                return;
        }
        if (!make_stored(w, old))
                return;
        w->same_term = w->call->resource->term_record && hfd_term_is_same(old, w->object);
        if (deleting && !hf__json_count(hf__json_path(w->object, "metadata.finalizers"))) {
                w->stored = hf__buf_unref(w->stored); /* the last finalizer is gone: so is the object */
        } else if (hfd_object_is(w->current, w->stored) || hf__json_equal(w->object, old)) {
                /* The same bytes, or the same members in the order of a client that sorts them. */
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        hfd_write_commit(w);
}

static void attempt_update(struct hfd_write *w) {
        const char *uid = hf__json_string(w->sent, "metadata.uid"), *revision = hf__json_string(w->sent, "metadata.resourceVersion");

        if (!w->current) {
                update_missing(w, uid, revision);
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        const char *old_uid = hf__json_string(old, "metadata.uid");
        if (!old) {
                hfd_write_finish_no_memory(w);
        } else if (uid && *uid && strcmp(uid, old_uid ? old_uid : "")) {
                precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        } else if (revision_fits(w, revision)) {
                hf__json_remove(old, "metadata.resourceVersion"); /* not stored, and so no part of what is compared */
                update_existing(w, old);
        }
        hf__json_free(old);
}

/* ---- delete ---- */

/* Finalizers hold the object: it is marked instead of deleted. */
static void mark_deleting(struct hfd_write *w, struct hf__json *old) {
        const struct hf_clock *clock = hf_host_clock(w->api->host);
        char now[HF__MICROTIME_MAX];

        if (hf__json_string(old, "metadata.deletionTimestamp")) {
                w->unchanged = true;
                hfd_write_commit(w);
                return;
        }
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        w->same_term = true;
        if (!w->object || hf__json_set_string(w->object, "metadata.deletionTimestamp", now) ||
            hf__json_set_i64(w->object, "metadata.deletionGracePeriodSeconds", 0)) {
                hfd_write_finish_no_memory(w);
                return;
        }
        w->stored = hfd_object_encode(w->call->resource, w->object);
        if (w->stored)
                hfd_write_commit(w);
        else
                hfd_write_finish_no_memory(w);
}

static void attempt_delete(struct hfd_write *w) {
        struct hfd_answer answer = {0};
        const char *uid = hf__json_string(w->sent, "preconditions.uid");
        const char *revision = hf__json_string(w->sent, "preconditions.resourceVersion");
        char current[24];

        if (!w->current) {
                if (!w->fresh) {
                        refetch(w);
                        return;
                }
                hfd_answer_not_found(&answer, w->call->resource, w->call->name);
                hfd_write_finish(w, &answer);
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        const char *old_uid = hf__json_string(old, "metadata.uid");
        (void)snprintf(current, sizeof current, "%" PRIu64, w->current->revision);
        if (!old)
                hfd_write_finish_no_memory(w);
        else if (uid && strcmp(uid, old_uid ? old_uid : ""))
                precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        else if (revision && strcmp(revision, current))
                precondition_failed(w, "ResourceVersion", revision, current);
        else if (hf__json_count(hf__json_path(old, "metadata.finalizers")))
                mark_deleting(w, old);
        else
                hfd_write_commit(w);
        hf__json_free(old);
}

static bool parse_body(struct hfd_write *w, struct hfd_answer *answer);

void hfd_write_attempt(struct hfd_write *w) {
        struct hfd_answer answer = {0};

        /* Others may win many times over on a busy object; what ends the loop is the call's own deadline. Nothing was written. */
        if (w->tries++ && hfd_api_now(w->api) >= w->call->deadline) {
                hfd_answer_conflict(&answer, w->call->resource, hfd_write_name(w), NULL);
                hfd_write_finish(w, &answer);
        } else if (!w->sent && !parse_body(w, &answer)) {
                hfd_write_finish(w, &answer);
        } else if (w->call->verb == HFD_CREATE) {
                attempt_create(w);
        } else if (w->call->verb == HFD_UPDATE) {
                attempt_update(w);
        } else {
                attempt_delete(w);
        }
}

/* ---- start ---- */

static void namespace_missing(struct hfd_write *w) {
        struct hfd_answer answer = {0};

        hfd_answer_not_found(&answer, hfd_resource_namespaces(), w->call->ns);
        hfd_write_finish(w, &answer);
}

static void on_namespace(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        if (reply->error)
                hfd_write_finish_store_error(w, reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error, &reply->status);
        else if (!reply->n_kvs)
                namespace_missing(w);
        else
                hfd_write_attempt(w);
}

/* The four the host itself makes at its start are taken for there: the first Lease is written beside their creation. */
static bool is_system_namespace(const char *ns) {
        return !strcmp(ns, "default") || !strcmp(ns, "kube-system") || !strcmp(ns, "kube-public") || !strcmp(ns, "kube-node-lease");
}

static void check_namespace(struct hfd_write *w) {
        const struct hfd_resource *namespaces = hfd_resource_namespaces();
        char key[HFD_KEY_MAX];
        bool synced;

        if (!w->call->resource->namespaced || w->call->verb == HFD_DELETE_ONE || is_system_namespace(w->call->ns)) {
                hfd_write_attempt(w);
                return;
        }
        struct hfd_object *ns = hfd_cache_newest(w->api, namespaces, w->call->ns, &synced);
        if (ns || (w->call->verb == HFD_UPDATE && w->current)) {
                hfd_object_unref(ns);
                hfd_write_attempt(w);
                return;
        }
        int e = hfd_object_key(w->api, namespaces, w->call->ns, key);
        if (!e)
                e = hfd_store_get(w->api, key, w->call->deadline, on_namespace, w);
        if (e)
                hfd_write_finish_store_error(w, e, NULL);
}

/*
 * A delete must not go further than was meant: an option of a type that cannot be read is refused, never passed over.
 * False: answer is filled.
 */
static bool read_delete_options(struct hfd_write *w, struct hfd_answer *answer) {
        static const char *const texts[] = {"preconditions.uid", "preconditions.resourceVersion"};
        const struct hf__json *dry = hf__json_get(w->sent, "dryRun"), *pre = hf__json_get(w->sent, "preconditions");
        const char *bad = NULL;

        if (dry && !hf__json_is_null(dry) && !hf__json_is_array(dry))
                bad = "dryRun";
        for (const struct hf__json *m = hf__json_first(dry); m && !bad; m = hf__json_next(m))
                if (!hf__json_is_string(m) || strcmp(hf__json_text(m), "All"))
                        bad = "dryRun";
        if (pre && !hf__json_is_null(pre) && !hf__json_is_object(pre))
                bad = "preconditions";
        for (size_t i = 0; i < 2 && !bad; i++) {
                const struct hf__json *value = hf__json_path(w->sent, texts[i]);
                if (value && !hf__json_is_null(value) && !hf__json_is_string(value))
                        bad = texts[i];
        }
        if (bad)
                hfd_answer_bad_request(answer, "DeleteOptions in version \"v1\" cannot be handled: the field %s cannot be read", bad);
        w->call->options.dry_run |= hf__json_count(dry) > 0;
        return !bad;
}

/* Of two equal keys readers take the first or the last: neither is stored. False: answer is filled. */
static bool keys_unique(struct hfd_write *w, struct hfd_answer *answer) {
        int e = hf__json_check_unique(w->sent);

        if (e == -ENOMEM)
                hfd_answer_no_memory(answer);
        else if (e)
                hfd_answer_bad_request(answer, "the object provided has a key twice in one of its objects");
        return !e;
}

/* What fieldValidation asks for. False: answer is filled. */
static bool fields_known(struct hfd_write *w, struct hfd_answer *answer) {
        const struct hfd_resource *r = w->call->resource;
        struct hfd_options *o = &w->call->options;
        char list[1600], *save = NULL;
        size_t n = 0;

        if (o->field_validation == HFD_FIELDS_IGNORE || w->tries)
                return true;
        if (hfd_unknown_fields(r, w->sent, &o->unknown_fields)) {
                hfd_answer_no_memory(answer);
                return false;
        }
        if (!o->unknown_fields || o->field_validation == HFD_FIELDS_WARN)
                return true;
        for (char *line = strtok_r(o->unknown_fields, "\n", &save); line && n < sizeof list; line = strtok_r(NULL, "\n", &save))
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", line);
        hfd_answer_bad_request(answer, "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s", r->kind, r->version,
                               r->kind, list);
        return false;
}

/* Parses the body into w->sent. False: answer is filled. */
static bool parse_body(struct hfd_write *w, struct hfd_answer *answer) {
        const struct hfd_resource *r = w->call->resource;
        char reason[320];
        size_t offset = 0;

        if (w->call->verb == HFD_DELETE_ONE && !w->call->n_body)
                return true;
        /* Clients read whole lists as UTF-8: one object that is not would hide all others from them. */
        if (w->call->n_body && !hf__utf8_valid(w->call->body, w->call->n_body)) {
                hfd_answer_bad_request(answer, "the object provided is unrecognized (must be of type %s): it is not valid UTF-8",
                                       w->call->verb == HFD_DELETE_ONE ? "DeleteOptions" : r->kind);
                return false;
        }
        int e = hf__json_parse(w->call->body ? w->call->body : "", w->call->n_body, &w->sent, &offset);
        if (e == -ENOMEM) {
                hfd_answer_no_memory(answer);
                return false;
        }
        if (e || !hf__json_is_object(w->sent)) {
                hfd_answer_bad_request(answer,
                                       "the object provided is unrecognized (must be of type %s): couldn't get version/kind; json parse "
                                       "error "
                                       "at offset %zu",
                                       w->call->verb == HFD_DELETE_ONE ? "DeleteOptions" : r->kind, offset);
                return false;
        }
        if (!keys_unique(w, answer))
                return false;
        if (w->call->verb == HFD_DELETE_ONE)
                return read_delete_options(w, answer);
        if (!hfd_meta_accept(w->call, w->sent, answer) || !fields_known(w, answer))
                return false;
        if (r->decode && !r->decode(w->sent, reason, sizeof reason)) {
                hfd_answer_bad_request(answer, "%s in version \"%s\" cannot be handled as a %s: %s", r->kind, r->version, r->kind, reason);
                return false;
        }
        const char *revision = hf__json_string(w->sent, "metadata.resourceVersion");
        if (w->call->verb == HFD_CREATE && revision && *revision && strcmp(revision, "0")) {
                hfd_answer_bad_request(answer, "resourceVersion should not be set on objects to be created");
                return false;
        }
        return true;
}

void hfd_write_start(struct hfd_api *api, struct hfd_call *call) {
        struct hfd_write *w = calloc(1, sizeof *w);
        struct hfd_answer answer = {0};
        int e = 0;

        if (!w) {
                hfd_answer_no_memory(&answer);
                call->done(call, &answer);
                hfd_answer_done(&answer);
                return;
        }
        w->api = api;
        w->call = call;
        if (!parse_body(w, &answer)) {
                hfd_write_finish(w, &answer);
                return;
        }
        if (call->fenced)
                e = hfd_fence_compares(&w->fence, api->prefix, &call->fence);
        if (!e && call->verb != HFD_CREATE) {
                bool synced;
                hfd_call_path(call, w->path);
                e = hfd_object_key(api, call->resource, w->path, w->key);
                if (!e)
                        w->current = hfd_cache_newest(api, call->resource, w->path, &synced);
        }
        if (e)
                hfd_write_finish_store_error(w, e, NULL);
        else
                check_namespace(w);
}
