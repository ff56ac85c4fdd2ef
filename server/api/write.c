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
 * A write belongs to the thread that drives it; the store hands it from one to the next.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/timetext.h"
#include "server/api/core.h"
#include "server/api/meta.h"
#include "server/storage/term_record.h"

#define TRIES_MAX    32
#define GENERATE_MAX 8

struct write {
        struct hfd_api *api;
        struct hfd_call *call;      /* the adapter's until done */
        struct hf__json *sent;      /* owned; the object, or DeleteOptions; NULL = none */
        struct hf__json *object;    /* owned; what is to be stored, prepared */
        struct hfd_object *current; /* owned; NULL = there is none */
        bool fresh;                 /* current is what the store said, not the cache */
        bool generated, created, unchanged;
        bool fence_compared;
        unsigned tries, n_generated;
        char path[2 * HF_NAME_MAX + 2], key[HFD_KEY_MAX];
        struct hf__buf *stored; /* owned; what the transaction puts; NULL = it deletes, or only compares */
        struct hfd_fence_compares fence;
};

static void attempt(struct write *w);

static void finish(struct write *w, struct hfd_answer *answer) {
        struct hfd_call *call = w->call;

        answer->fence_compared = w->fence_compared;
        hf__json_free(w->sent);
        hf__json_free(w->object);
        hfd_object_unref(w->current);
        hf__buf_unref(w->stored);
        free(w);
        call->done(call, answer);
        hfd_answer_done(answer);
}

static void finish_no_memory(struct write *w) {
        struct hfd_answer answer = {0};

        hfd_answer_no_memory(&answer);
        finish(w, &answer);
}

static void finish_store_error(struct write *w, int error, const struct hf_status *status) {
        struct hfd_answer answer = {0};

        hfd_answer_store_error(&answer, error, status);
        finish(w, &answer);
}

static void finish_object(struct write *w, int code, struct hfd_object *object) {
        struct hfd_answer answer = {0};

        hfd_answer_ok(&answer, code, object ? hf__buf_ref(object->bytes) : NULL);
        finish(w, &answer);
}

static const char *name_of(const struct write *w) {
        const char *name = hf__json_string(w->object, "metadata.name");

        return *w->call->name || !name ? w->call->name : name;
}

/* ---- current state ---- */

static void adopt(struct write *w, struct hfd_object *current) {
        hfd_object_unref(w->current);
        w->current = current;
        w->fresh = true;
}

static void on_refetched(void *ctx, const struct hfd_store_reply *reply) {
        struct write *w = ctx;
        struct hfd_object *object = NULL;

        if (reply->error) { /* a read: nothing was written, whatever became of it */
                finish_store_error(w, reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error, &reply->status);
                return;
        }
        if (reply->n_kvs) {
                object = hfd_object_new(w->call->resource, w->path, reply->kvs[0].mod_revision, reply->kvs[0].value);
                if (!object) {
                        finish_no_memory(w);
                        return;
                }
        }
        adopt(w, object);
        attempt(w);
}

/* A refusal that rests on the cache's state: look at the store first. */
static void refetch(struct write *w) {
        int e = hfd_store_get(w->api, w->key, w->call->deadline, on_refetched, w);

        if (e)
                finish_store_error(w, e, NULL);
}

/* ---- the transaction ---- */

static bool same_text(const struct hf__json *a, const struct hf__json *b, const char *path) {
        const char *x = hf__json_string(a, path), *y = hf__json_string(b, path);

        return !strcmp(x ? x : "", y ? y : "");
}

/* What the transaction does to the Lease's term record: 0 ops or 1. Takes nothing; *ret_value is the caller's to drop. */
static int term_op(struct write *w, char key[HFD_KEY_MAX], struct hfd_op *op, struct hf__buf **ret_value) {
        const struct hf__json *object = w->object;

        *ret_value = NULL;
        if (!w->call->resource->term_record || w->unchanged)
                return 0;
        if (hfd_key_terms(key, w->api->prefix, w->call->ns, name_of(w)))
                return HF_E_TOO_LARGE;
        if (!w->stored) {
                *op = (struct hfd_op){.kind = HFD_DELETE, .key = key};
                return 0;
        }
        if (w->current) {
                struct hf__json *old = hfd_object_parse(w->current);
                if (!old)
                        return -ENOMEM;
                bool same = same_text(old, object, "spec.holderIdentity") && same_text(old, object, "spec.acquireTime");
                hf__json_free(old);
                if (same)
                        return 0;
        }
        const char *holder = hf__json_string(object, "spec.holderIdentity"), *acquired = hf__json_string(object, "spec.acquireTime");
        *ret_value = hfd_term_record_value(holder ? holder : "", acquired ? acquired : "");
        *op = (struct hfd_op){.kind = HFD_PUT, .key = key, .value = *ret_value};
        return *ret_value ? 0 : -ENOMEM;
}

static void succeeded(struct write *w, uint64_t revision) {
        struct hfd_answer answer = {0};
        struct hfd_object *object;

        if (w->unchanged) {
                finish_object(w, 200, w->current);
                return;
        }
        if (!w->stored) {
                struct hf__json *old = hfd_object_parse(w->current);
                hfd_answer_deleted(&answer, w->call->resource, w->call->name, hf__json_string(old, "metadata.uid"));
                hf__json_free(old);
                finish(w, &answer);
                return;
        }
        object = hfd_object_new(w->call->resource, w->path, revision, w->stored);
        if (object && !w->call->options.dry_run)
                hfd_cache_note_write(w->api, object);
        finish_object(w, w->created ? 201 : 200, object);
        hfd_object_unref(object);
}

static bool fence_holds(const struct write *w, const struct hfd_store_reply *reply) {
        const struct hfd_compare *value = &w->fence.compares[1];

        for (size_t i = 0; i < reply->n_kvs; i++) {
                const struct hfd_kv *kv = &reply->kvs[i];
                if (!strcmp(kv->key, w->fence.key))
                        return kv->mod_revision == w->call->fence.term && kv->value && kv->value->n >= value->n_value &&
                               !memcmp(kv->value->data, value->value, value->n_value);
        }
        return false;
}

static void conflicted(struct write *w, const struct hfd_store_reply *reply) {
        struct hfd_answer answer = {0};
        struct hfd_object *found = NULL;

        if (w->call->fenced && !fence_holds(w, reply)) {
                hfd_answer_stale_term(&answer, w->call->resource, name_of(w));
                finish(w, &answer);
                return;
        }
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (!strcmp(reply->kvs[i].key, w->key)) {
                        found = hfd_object_new(w->call->resource, w->path, reply->kvs[i].mod_revision, reply->kvs[i].value);
                        if (!found) {
                                finish_no_memory(w);
                                return;
                        }
                }
        w->stored = hf__buf_unref(w->stored);
        w->created = w->unchanged = false;
        adopt(w, found);
        attempt(w);
}

static void on_committed(void *ctx, const struct hfd_store_reply *reply) {
        struct write *w = ctx;

        w->fence_compared = w->call->fenced && (!reply->error || reply->error == HF_E_CONFLICT);
        if (!reply->error)
                succeeded(w, reply->revision);
        else if (reply->error == HF_E_CONFLICT)
                conflicted(w, reply);
        else
                finish_store_error(w, reply->error, &reply->status);
}

static void commit(struct write *w) {
        struct hfd_compare compares[3] = {{.kind = HFD_MOD_EQUALS, .key = w->key, .revision = w->current ? w->current->revision : 0}};
        struct hfd_op ops[2] = {{.kind = w->stored ? HFD_PUT : HFD_DELETE, .key = w->key, .value = w->stored}};
        const char *reads[2] = {w->key, w->fence.key};
        struct hfd_txn txn = {compares, 1, ops, w->unchanged ? 0 : 1, reads, w->call->fenced ? 2 : 1};
        struct hf__buf *term_value;
        char term_key[HFD_KEY_MAX];

        if (w->call->options.dry_run) {
                uint64_t revision = w->current ? w->current->revision : 0;
                succeeded(w, revision);
                return;
        }
        int e = term_op(w, term_key, &ops[1], &term_value);
        if (!e && ops[1].key)
                txn.n_ops = 2;
        if (!e && w->call->fenced) {
                memcpy(&compares[1], w->fence.compares, sizeof w->fence.compares);
                txn.n_compares = 3;
        }
        if (!e)
                e = hfd_store_txn(w->api, &txn, w->call->deadline, on_committed, w);
        hf__buf_unref(term_value);
        if (e)
                finish_store_error(w, e, NULL);
}

/* Validates w->object against old and makes its bytes. False: answered. */
static bool make_stored(struct write *w, const struct hf__json *old) {
        const struct hfd_resource *r = w->call->resource;
        struct hfd_causes *causes = calloc(1, sizeof *causes);
        struct hfd_answer answer = {0};
        int e = causes ? 0 : -ENOMEM;

        if (!e && r->prepare)
                e = r->prepare(w->object, old);
        if (!e) {
                hfd_meta_validate(r, w->object, old, causes);
                if (r->validate)
                        r->validate(w->object, old, causes);
                if (causes->n) {
                        hfd_answer_invalid(&answer, r, name_of(w), causes);
                        free(causes);
                        finish(w, &answer);
                        return false;
                }
        }
        free(causes);
        w->stored = e ? NULL : hfd_object_encode(r, w->object);
        if (!w->stored)
                finish_no_memory(w);
        return w->stored != NULL;
}

/* ---- create ---- */

static int start_object(struct write *w) {
        const struct hf_clock *clock = hf_host_clock(w->api->host);

        hf__json_free(w->object);
        w->object = hf__json_dup(w->sent);
        if (!w->object)
                return -ENOMEM;
        return hfd_meta_prepare_create(w->call, w->object, clock->real(clock->ctx) / HF_NSEC_PER_SEC);
}

static void attempt_create(struct write *w) {
        struct hfd_answer answer = {0};
        const char *name, *base;
        int e;

        if (w->current && !w->generated) {
                hfd_answer_exists(&answer, w->call->resource, w->current->name, false);
                finish(w, &answer);
                return;
        }
        if (w->current && ++w->n_generated == GENERATE_MAX) {
                hfd_answer_exists(&answer, w->call->resource, w->current->name, true);
                finish(w, &answer);
                return;
        }
        adopt(w, NULL);
        e = start_object(w);
        name = hf__json_string(w->object, "metadata.name");
        base = hf__json_string(w->object, "metadata.generateName");
        if (!e && (!name || !*name) && base && *base) {
                w->generated = true;
                e = hfd_meta_generate_name(w->object);
        }
        if (e) {
                finish_no_memory(w);
                return;
        }
        w->created = true;
        if (!make_stored(w, NULL))
                return;
        (void)snprintf(w->path, sizeof w->path, "%s%s%s", w->call->ns, w->call->resource->namespaced ? "/" : "",
                       hf__json_string(w->object, "metadata.name"));
        e = hfd_object_key(w->api, w->call->resource, w->path, w->key);
        if (e) {
                finish_store_error(w, e, NULL);
                return;
        }
        if (w->call->options.dry_run) {
                bool synced;
                struct hfd_object *there = hfd_cache_newest(w->api, w->call->resource, w->path, &synced);
                if (there) {
                        hfd_answer_exists(&answer, w->call->resource, there->name, false);
                        hfd_object_unref(there);
                        finish(w, &answer);
                        return;
                }
        }
        commit(w);
}

/* ---- update ---- */

static void precondition_failed(struct write *w, const char *what, const char *wanted, const char *found) {
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
        finish(w, &answer);
}

static void update_missing(struct write *w, const char *uid, const char *revision) {
        struct hfd_answer answer = {0};

        if (!w->fresh) {
                refetch(w);
        } else if (uid && *uid) {
                precondition_failed(w, "UID", uid, "");
        } else if (!w->call->resource->create_on_update) {
                hfd_answer_not_found(&answer, w->call->resource, w->call->name);
                finish(w, &answer);
        } else if (revision && *revision && strcmp(revision, "0")) {
                /* Who names a version means the object that is gone; a new one in its place is not what was asked for. */
                hfd_answer_conflict(&answer, w->call->resource, w->call->name, NULL);
                finish(w, &answer);
        } else {
                attempt_create(w);
        }
}

/* Whether the sent resourceVersion lets the update through; false: answered, or refetching. */
static bool revision_fits(struct write *w, const char *revision) {
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
        finish(w, &answer);
        return false;
}

static void update_existing(struct write *w, const struct hf__json *old) {
        bool deleting = hf__json_string(old, "metadata.deletionTimestamp");

        hf__json_free(w->object);
        w->object = hf__json_dup(w->sent);
        if (!w->object || hfd_meta_prepare_update(w->object, old)) {
                finish_no_memory(w);
                return;
        }
        if (!make_stored(w, old))
                return;
        if (deleting && !hf__json_count(hf__json_path(w->object, "metadata.finalizers"))) {
                w->stored = hf__buf_unref(w->stored); /* the last finalizer is gone: so is the object */
        } else if (hfd_object_is(w->current, w->stored)) {
                w->unchanged = true;
                w->stored = hf__buf_unref(w->stored);
        }
        commit(w);
}

static void attempt_update(struct write *w) {
        const char *uid = hf__json_string(w->sent, "metadata.uid"), *revision = hf__json_string(w->sent, "metadata.resourceVersion");

        if (!w->current) {
                update_missing(w, uid, revision);
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        const char *old_uid = hf__json_string(old, "metadata.uid");
        if (!old)
                finish_no_memory(w);
        else if (uid && *uid && strcmp(uid, old_uid ? old_uid : ""))
                precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        else if (revision_fits(w, revision))
                update_existing(w, old);
        hf__json_free(old);
}

/* ---- delete ---- */

/* Finalizers hold the object: it is marked instead of deleted. */
static void mark_deleting(struct write *w, struct hf__json *old) {
        const struct hf_clock *clock = hf_host_clock(w->api->host);
        char now[HF__MICROTIME_MAX];

        if (hf__json_string(old, "metadata.deletionTimestamp")) {
                w->unchanged = true;
                commit(w);
                return;
        }
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        hf__json_free(w->object);
        w->object = hf__json_dup(old);
        if (!w->object || hf__json_set_string(w->object, "metadata.deletionTimestamp", now) ||
            hf__json_set_i64(w->object, "metadata.deletionGracePeriodSeconds", 0)) {
                finish_no_memory(w);
                return;
        }
        w->stored = hfd_object_encode(w->call->resource, w->object);
        if (w->stored)
                commit(w);
        else
                finish_no_memory(w);
}

static void attempt_delete(struct write *w) {
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
                finish(w, &answer);
                return;
        }
        struct hf__json *old = hfd_object_parse(w->current);
        const char *old_uid = hf__json_string(old, "metadata.uid");
        (void)snprintf(current, sizeof current, "%" PRIu64, w->current->revision);
        if (!old)
                finish_no_memory(w);
        else if (uid && strcmp(uid, old_uid ? old_uid : ""))
                precondition_failed(w, "UID", uid, old_uid ? old_uid : "");
        else if (revision && strcmp(revision, current))
                precondition_failed(w, "ResourceVersion", revision, current);
        else if (hf__json_count(hf__json_path(old, "metadata.finalizers")))
                mark_deleting(w, old);
        else
                commit(w);
        hf__json_free(old);
}

static void attempt(struct write *w) {
        struct hfd_answer answer = {0};

        if (++w->tries > TRIES_MAX) {
                hfd_answer_conflict(&answer, w->call->resource, name_of(w), NULL);
                finish(w, &answer);
        } else if (w->call->verb == HFD_CREATE) {
                attempt_create(w);
        } else if (w->call->verb == HFD_UPDATE) {
                attempt_update(w);
        } else {
                attempt_delete(w);
        }
}

/* ---- start ---- */

static void namespace_missing(struct write *w) {
        struct hfd_answer answer = {0};

        hfd_answer_not_found(&answer, hfd_resource_namespaces(), w->call->ns);
        finish(w, &answer);
}

static void on_namespace(void *ctx, const struct hfd_store_reply *reply) {
        struct write *w = ctx;

        if (reply->error)
                finish_store_error(w, reply->error == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : reply->error, &reply->status);
        else if (!reply->n_kvs)
                namespace_missing(w);
        else
                attempt(w);
}

/* The four the host itself makes at its start are taken for there: the first Lease is written beside their creation. */
static bool is_system_namespace(const char *ns) {
        return !strcmp(ns, "default") || !strcmp(ns, "kube-system") || !strcmp(ns, "kube-public") || !strcmp(ns, "kube-node-lease");
}

static void check_namespace(struct write *w) {
        const struct hfd_resource *namespaces = hfd_resource_namespaces();
        char key[HFD_KEY_MAX];
        bool synced;

        if (!w->call->resource->namespaced || w->call->verb == HFD_DELETE_ONE || is_system_namespace(w->call->ns)) {
                attempt(w);
                return;
        }
        struct hfd_object *ns = hfd_cache_newest(w->api, namespaces, w->call->ns, &synced);
        if (ns || (w->call->verb == HFD_UPDATE && w->current)) {
                hfd_object_unref(ns);
                attempt(w);
                return;
        }
        int e = hfd_object_key(w->api, namespaces, w->call->ns, key);
        if (!e)
                e = hfd_store_get(w->api, key, w->call->deadline, on_namespace, w);
        if (e)
                finish_store_error(w, e, NULL);
}

/* Parses the body into w->sent. False: answer is filled. */
static bool parse_body(struct write *w, struct hfd_answer *answer) {
        const struct hfd_resource *r = w->call->resource;
        char reason[320];
        size_t offset = 0;

        if (w->call->verb == HFD_DELETE_ONE && !w->call->n_body)
                return true;
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
        if (w->call->verb == HFD_DELETE_ONE) {
                struct hf__json *dry = hf__json_get(w->sent, "dryRun");
                w->call->options.dry_run |= hf__json_count(dry) > 0;
                return true;
        }
        if (!hfd_meta_accept(w->call, w->sent, answer))
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
        struct write *w = calloc(1, sizeof *w);
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
                finish(w, &answer);
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
                finish_store_error(w, e, NULL);
        else
                check_namespace(w);
}
