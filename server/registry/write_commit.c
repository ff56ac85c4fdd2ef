/* SPDX-License-Identifier: Apache-2.0 */
/* The transaction of a write: its compares (the object, the fence, the epoch), its puts (the
 * object, the term record), its outcome. */
#include "server/registry/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current) {
        hfd_object_unref(w->current);
        w->current = current;
        w->fresh = true;
}

void hfd_write_finish(struct hfd_write *w, struct hfd_response *response) {
        struct hfd_request *request = w->request;

        response->fence_compared = w->fence_compared;
        hf__json_free(w->sent);
        hf__json_free(w->object);
        hfd_object_unref(w->current);
        hf__buf_unref(w->stored);
        hf__buf_unref(w->epoch);
        hf__buf_unref(w->last);
        free(w->key);
        free(w->fence);
        free(w);
        request->done(request, response);
        hfd_response_done(response);
}

void hfd_write_finish_no_memory(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        hfd_write_finish(w, &response);
}

void hfd_write_finish_store_error(struct hfd_write *w, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        hfd_response_store_error(&response, error, status);
        hfd_write_finish(w, &response);
}

static void finish_object(struct hfd_write *w, int code, struct hfd_object *object) {
        struct hfd_response response = {0};

        hfd_response_ok(&response, code, object ? hf__buf_ref(object->bytes) : NULL);
        hfd_write_finish(w, &response);
}

const char *hfd_write_name(const struct hfd_write *w) {
        const char *name = hf__json_string(w->object, "metadata.name"),
                   *slash = strrchr(w->path, '/');

        if (*w->request->name || (!name && !*w->path))
                return w->request->name;
        return name ? name : slash ? slash + 1 : w->path;
}

static bool same_text(const struct hf__json *a, const struct hf__json *b, const char *key) {
        const char *x = hf__json_string(a, key), *y = hf__json_string(b, key);

        return strcmp(x ? x : "", y ? y : "") == 0;
}

bool hfd_term_is_same(const struct hf__json *a, const struct hf__json *b) {
        const struct hf__json *x = hf__json_get(a, "spec"), *y = hf__json_get(b, "spec");

        return same_text(x, y, "holderIdentity") && same_text(x, y, "acquireTime");
}

/* What the transaction does to the Lease's term record: 0 ops or 1. Takes nothing; *ret_value is
 * the caller's to drop. */
static int term_op(struct hfd_write *w, char key[HFD_KEY_MAX], struct hfd_op *op,
                   struct hf__buf **ret_value) {
        const struct hf__json *object = w->object;

        *ret_value = NULL;
        if (!w->request->resource->term_record || w->unchanged)
                return 0;
        if (hfd_key_terms(key, w->api->prefix, w->request->ns, hfd_write_name(w)))
                return HF_E_TOO_LARGE;
        if (!w->stored) {
                *op = (struct hfd_op){.kind = HFD_DELETE, .key = key};
                return 0;
        }
        if (w->current && w->same_term)
                return 0;
        const char *holder = hf__json_string(object, "spec.holderIdentity"),
                   *acquired = hf__json_string(object, "spec.acquireTime");
        *ret_value = hfd_term_record_value(holder ? holder : "", acquired ? acquired : "");
        *op = (struct hfd_op){.kind = HFD_PUT, .key = key, .value = *ret_value};
        return *ret_value ? 0 : -ENOMEM;
}

static int success_code(const struct hfd_write *w) {
        /* Who asked for the dependents' deletion in the older words is told that more is to come.
         */
        if (w->request->verb == HFD_DELETE_ONE && w->request->options.has_orphan &&
            !w->request->options.orphan)
                return 202;
        return w->created ? 201 : 200;
}

static void succeeded(struct hfd_write *w, uint64_t revision) {
        struct hfd_response response = {0};
        struct hfd_object *object;

        if (w->unchanged) {
                finish_object(w, success_code(w), w->current);
                return;
        }
        if (!w->stored && !w->last) {
                struct hf__json *old = hfd_object_parse(w->current);
                hfd_response_deleted(&response, w->request->resource, w->request->name,
                                     hf__json_string(old, "metadata.uid"));
                hf__json_free(old);
                hfd_write_finish(w, &response);
                return;
        }
        object = hfd_object_new(w->request->resource, w->path, revision,
                                w->stored ? w->stored : w->last);
        if (object && w->stored && !w->request->options.dry_run)
                hfd_cacher_note_write(w->api, object);
        finish_object(w, success_code(w), object);
        hfd_object_unref(object);
}

static bool term_holds(const struct hfd_compare compares[2], const struct hfd_store_reply *reply) {
        const struct hfd_compare *value = &compares[1];

        for (size_t i = 0; i < reply->n_kvs; i++) {
                const struct hfd_kv *kv = &reply->kvs[i];
                if (strcmp(kv->key, value->key) == 0)
                        return kv->mod_revision == compares[0].revision && kv->value &&
                               kv->value->n >= value->n_value &&
                               memcmp(kv->value->data, value->value, value->n_value) == 0;
        }
        return false;
}

static bool fence_holds(const struct hfd_write *w, const struct hfd_store_reply *reply) {
        for (size_t i = 0; i < w->fence->n_leases; i++)
                if (!term_holds(&w->fence->compares[2 * i], reply))
                        return false;
        return true;
}

/* Whether the store's epoch is another than the one the write compared, and what follows from that.
 */
static bool is_another_epoch(struct hfd_write *w, const struct hfd_store_reply *reply) {
        const struct hf__buf *found = NULL;
        char key[HFD_KEY_MAX];

        if (!w->epoch || hfd_store_identity_epoch_key(w->api, key))
                return false;
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (strcmp(reply->kvs[i].key, key) == 0)
                        found = reply->kvs[i].value;
        if (w->epoch_exists == (found != NULL) &&
            (!found ||
             (found->n == w->epoch->n && memcmp(found->data, w->epoch->data, found->n) == 0)))
                return false;
        if (hfd_store_identity_epoch_changed(w->api, found))
                hfd_store_identity_replaced(w->api, "the epoch key changed");
        return true;
}

static void finish_stale_term(struct hfd_write *w) {
        struct hfd_response response = {0};

        hfd_response_stale_term(&response, w->request->resource, hfd_write_name(w));
        hfd_write_finish(w, &response);
}

static void conflicted(struct hfd_write *w, const struct hfd_store_reply *reply) {
        struct hfd_object *found = NULL;

        if (w->request->fence && (is_another_epoch(w, reply) || !fence_holds(w, reply))) {
                finish_stale_term(w);
                return;
        }
        for (size_t i = 0; i < reply->n_kvs; i++)
                if (strcmp(reply->kvs[i].key, w->key) == 0) {
                        found = hfd_object_new(w->request->resource, w->path,
                                               reply->kvs[i].mod_revision, reply->kvs[i].value);
                        if (!found) {
                                hfd_write_finish_no_memory(w);
                                return;
                        }
                }
        if (!hfd_write_namespace_found(w, reply->kvs, reply->n_kvs)) {
                hfd_object_unref(found);
                hfd_write_finish_no_memory(w);
                return;
        }
        w->stored = hf__buf_unref(w->stored);
        w->last = hf__buf_unref(w->last);
        w->created = w->unchanged = w->same_term = false;
        hfd_write_adopt(w, found);
        hfd_write_attempt(w);
}

static void on_committed(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_write *w = ctx;

        w->fence_compared = w->request->fence && (!reply->error || reply->error == HF_E_CONFLICT);
        if (!reply->error)
                succeeded(w, reply->revision);
        else if (reply->error == HF_E_CONFLICT)
                conflicted(w, reply);
        else
                hfd_write_finish_store_error(w, reply->error, &reply->status);
}

/* The epoch as it was at the first attempt, so that one which changes between two attempts refuses
 * the second. */
static int compare_epoch(struct hfd_write *w, char *key, struct hfd_compare *ret_compare) {
        int r = hfd_store_identity_epoch_key(w->api, key);

        if (!w->epoch)
                w->epoch = hfd_store_identity_epoch_known(w->api, &w->epoch_exists);
        *ret_compare =
                (struct hfd_compare){.kind = w->epoch_exists ? HFD_VALUE_EQUALS : HFD_MOD_EQUALS,
                                     .key = key};
        if (w->epoch && w->epoch_exists) {
                ret_compare->value = w->epoch->data;
                ret_compare->n_value = w->epoch->n;
        }
        return r;
}

void hfd_write_commit(struct hfd_write *w) {
        struct hfd_compare compares[3 + 2 * HFD_FENCE_LEASES] = {
                {.kind = HFD_MOD_EQUALS,
                 .key = w->key,
                 .revision = w->current ? w->current->revision : 0}};
        struct hfd_op ops[2] = {
                {.kind = w->stored ? HFD_PUT : HFD_DELETE, .key = w->key, .value = w->stored}};
        const char *reads[3 + HFD_FENCE_LEASES] = {w->key};
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = 1,
                              .ops = ops,
                              .n_ops = w->unchanged ? 0 : 1,
                              .get_on_failure = reads,
                              .n_get_on_failure = 1,
                              .urgent = w->request->resource->term_record};
        struct hf__buf *term_value;
        char term_key[HFD_KEY_MAX], ns_key[HFD_KEY_MAX], epoch_key[HFD_KEY_MAX];

        if (w->request->options.dry_run) {
                uint64_t revision = w->current ? w->current->revision : 0;
                succeeded(w, revision);
                return;
        }
        if (w->request->fence &&
            hfd_store_identity_settles(
                    w->api)) { /* a term of before may not know yet that it is over */
                w->fence_compared = true;
                finish_stale_term(w);
                return;
        }
        int r = term_op(w, term_key, &ops[1], &term_value);
        if (r == 0 && ops[1].key)
                txn.n_ops = 2;
        if (r == 0 && w->request->fence) {
                memcpy(&compares[1], w->fence->compares, sizeof w->fence->compares);
                txn.n_compares += 2 * w->fence->n_leases;
                for (size_t i = 0; i < w->fence->n_leases; i++)
                        reads[txn.n_get_on_failure++] = w->fence->key[i];
                r = compare_epoch(w, epoch_key, &compares[txn.n_compares]);
                if (r == 0 && w->epoch) {
                        txn.n_compares++;
                        reads[txn.n_get_on_failure++] = epoch_key;
                }
        }
        if (r == 0 && hfd_write_namespace_compare(w, ns_key, &compares[txn.n_compares])) {
                txn.n_compares++;
                reads[txn.n_get_on_failure++] = ns_key;
        }
        /* The answer comes on the store's thread, which would free what this one's allocator keeps
         * at hand. */
        w->object = hf__json_free(w->object);
        w->sent = hf__json_free(w->sent);
        if (r == 0)
                r = hfd_store_txn(w->api, &txn, w->request->deadline, on_committed, w);
        hf__buf_unref(term_value);
        if (r != 0)
                hfd_write_finish_store_error(w, r, NULL);
}
