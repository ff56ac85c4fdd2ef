/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypts on the way to the inner store, decrypts on the way back.
 *
 *      txn                  the puts are copied, with encrypted values   the caller's thread
 *      replies, events      copied, with decrypted values                the inner store's thread
 *
 * A value that no rule covers is passed on without a copy of its bytes.
 *
 * Invariant: if a rule covers a key, a callback gets the key's value decrypted or marked as sealed.
 * (If the rule is newer than the get or the transaction, an encrypted value comes without the mark.
 * hfd_kv_sealed recognizes it too.) If memory runs out, a reply becomes the error -ENOMEM. Of a
 * batch of events only one is delivered then, without its value; this tells the receiver that
 * memory ran out (hfd_kv.value in storage/store.h).
 */
#include "server/encryption/encrypted_store.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/rand.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "server/encryption/decrypt.h"

#define PREFIX_MAX 256

struct encrypted {
        struct hfd_store store;  /* first member: encrypted_of casts it back */
        struct hfd_store *inner; /* owned */
        hfd_random_fn random;
        char prefix[PREFIX_MAX];
        pthread_mutex_t mu;                /* guards only `encryption`, the pointer */
        struct hfd_encryption *encryption; /* owned reference; immutable itself */
};

static struct encrypted *encrypted_of(struct hfd_store *store) { return (struct encrypted *)store; }

int hfd_random_bytes(uint8_t *ret_bytes, size_t n) {
        int ok = RAND_bytes(ret_bytes, (int)n);

        ERR_clear_error();
        return ok == 1 ? 0 : -EIO;
}

/* The current rules, with a reference that drop_covered drops. Until it is taken, the lock keeps
 * hfd_encrypted_store_set from dropping the store's own reference. */
static struct hfd_covered take_covered(struct encrypted *e) {
        pthread_mutex_lock(&e->mu);
        struct hfd_encryption *encryption = hfd_encryption_ref(e->encryption);
        pthread_mutex_unlock(&e->mu);
        return (struct hfd_covered){e->prefix, encryption};
}

static void drop_covered(struct hfd_covered *covered) {
        covered->encryption = hfd_encryption_unref(covered->encryption);
}

/* ---- replies ---- */

/* The caller's callback, kept while the inner store carries out the operation. */
struct forward {
        struct encrypted *e;
        hfd_store_fn done;
        void *ctx;
};

static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct forward *forward = ctx;
        struct hfd_covered covered = take_covered(forward->e);
        struct hfd_store_reply opened = *reply;
        struct hfd_kv *kvs = NULL;
        int r = hfd_decrypt_kvs(&covered, reply->kvs, reply->n_kvs, &kvs);

        if (kvs)
                opened.kvs = kvs;
        if (r != 0) {
                opened = (struct hfd_store_reply){.error = r};
                (void)hf_fail(&opened.status, r, "%s", hf_strerror(r));
        }
        drop_covered(&covered);
        forward->done(forward->ctx, &opened);
        hfd_decrypt_kvs_free(kvs, reply->n_kvs);
        free(forward);
}

static struct forward *new_forward(struct encrypted *e, hfd_store_fn done, void *ctx) {
        struct forward *forward = malloc(sizeof *forward);

        if (forward)
                *forward = (struct forward){e, done, ctx};
        return forward;
}

/* r: the result of starting the operation. After an error on_reply is not called, so forward is
 * freed here. Returns r. */
static int check_started(struct forward *forward, int r) {
        if (r != 0)
                free(forward);
        return r;
}

static int encrypted_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        struct encrypted *e = encrypted_of(store);
        struct hfd_covered covered = take_covered(e);
        bool is_plain = hfd_covered_rule(&covered, key) == NULL;

        drop_covered(&covered);
        if (is_plain)
                return e->inner->ops->get(e->inner, key, urgent, deadline, done, ctx);
        struct forward *forward = new_forward(e, done, ctx);
        return forward ? check_started(forward, e->inner->ops->get(e->inner, key, urgent, deadline,
                                                                   on_reply, forward))
                       : -ENOMEM;
}

static int encrypted_list(struct hfd_store *store, const char *prefix, const char *start_key,
                          uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        struct encrypted *e = encrypted_of(store);

        if (keys_only)
                return e->inner->ops->list(e->inner, prefix, start_key, revision, limit, true,
                                           deadline, done, ctx);
        struct forward *forward = new_forward(e, done, ctx);
        return forward ? check_started(forward, e->inner->ops->list(e->inner, prefix, start_key,
                                                                    revision, limit, false,
                                                                    deadline, on_reply, forward))
                       : -ENOMEM;
}

/* ---- transactions ---- */

/* Whether a rule covers a key that the transaction writes or may return. */
static bool is_covered(const struct hfd_covered *covered, const struct hfd_txn *txn) {
        for (size_t i = 0; i < txn->n_ops; i++)
                if (hfd_covered_rule(covered, txn->ops[i].key))
                        return true;
        for (size_t i = 0; i < txn->n_get_on_failure; i++)
                if (hfd_covered_rule(covered, txn->get_on_failure[i]))
                        return true;
        return false;
}

/* Whether the transaction compares the value of a key that a rule covers. Such a comparison could
 * fail for the sole reason that the stored value is encrypted. */
static bool compares_sealed(const struct hfd_covered *covered, const struct hfd_txn *txn) {
        for (size_t i = 0; i < txn->n_compares; i++)
                if (txn->compares[i].kind != HFD_MOD_EQUALS &&
                    hfd_covered_rule(covered, txn->compares[i].key))
                        return true;
        return false;
}

/* Gives op a reference to its value, which the caller drops: for a put that a rule covers, to the
 * encrypted value. 0, or -ENOMEM or -EIO: then op has no value. */
static int seal_op(struct encrypted *e, const struct hfd_covered *covered, struct hfd_op *op) {
        const struct hfd_encryption_rule *rule = hfd_covered_rule(covered, op->key);
        struct hf__buf *plain = op->value;
        uint8_t nonce[HFD_NONCE_MAX];

        if (op->kind != HFD_PUT || !plain || !rule) {
                hf__buf_ref(plain);
                return 0;
        }
        op->value = NULL;
        int r = e->random(nonce, sizeof nonce);
        return r == 0 ? hfd_encryption_seal(rule, op->key, nonce, plain, &op->value) : r;
}

/* Starts the transaction with encrypted values. After an error on_reply is not called. */
static int start_sealed(struct encrypted *e, const struct hfd_covered *covered,
                        const struct hfd_txn *txn, hf_nsec deadline, struct forward *forward) {
        struct hfd_op ops[HFD_TXN_MAX];
        struct hfd_txn sealed = *txn;
        size_t n = 0;
        int r = 0;

        assert(txn->n_ops <= HFD_TXN_MAX);
        sealed.ops = ops;
        for (; n < txn->n_ops && r == 0; n++) {
                ops[n] = txn->ops[n];
                r = seal_op(e, covered, &ops[n]);
        }
        if (r == 0)
                r = e->inner->ops->txn(e->inner, &sealed, deadline, on_reply, forward);
        for (size_t i = 0; i < n; i++)
                hf__buf_unref(ops[i].value);
        return r;
}

static int encrypted_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        struct encrypted *e = encrypted_of(store);
        struct hfd_covered covered = take_covered(e);
        int r = hfd_txn_check(txn);

        if (r == 0 && compares_sealed(&covered, txn))
                r = -EINVAL;
        if (r == 0 && !is_covered(&covered, txn)) {
                r = e->inner->ops->txn(e->inner, txn, deadline, done, ctx);
        } else if (r == 0) {
                struct forward *forward = new_forward(e, done, ctx);
                r = forward ? check_started(forward,
                                            start_sealed(e, &covered, txn, deadline, forward))
                            : -ENOMEM;
        }
        drop_covered(&covered);
        return r;
}

/* ---- watches ---- */

struct watch {
        struct encrypted *e;
        struct hfd_watch_handler handler;
        void *ctx;
};

/* Memory has run out. One event without a value is enough: its receiver lists everything again. */
static void lose_events(struct watch *watch, const struct hfd_covered *covered,
                        const struct hfd_watch_event *events) {
        while (!hfd_covered_event(covered, events))
                events++; /* there is one, or nothing would have been decrypted */
        struct hfd_watch_event lost = *events;
        lost.kv.value = NULL;
        watch->handler.event(watch->ctx, &lost, 1);
}

static void on_events(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct watch *watch = ctx;
        struct hfd_covered covered = take_covered(watch->e);
        struct hfd_watch_event *opened = NULL;

        if (hfd_decrypt_events(&covered, events, n, &opened) != 0)
                lose_events(watch, &covered, events);
        else
                watch->handler.event(watch->ctx, opened ? opened : events, n);
        drop_covered(&covered);
        hfd_decrypt_events_free(opened, n);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct watch *watch = ctx;

        watch->handler.end(watch->ctx, error, status);
        free(watch);
}

static int encrypted_watch(struct hfd_store *store, const char *begin, const char *end,
                           uint64_t revision, const struct hfd_watch_handler *handler, void *ctx,
                           uint64_t *ret_id) {
        static const struct hfd_watch_handler own = {on_events, on_end};
        struct encrypted *e = encrypted_of(store);
        struct watch *watch = malloc(sizeof *watch);

        if (!watch)
                return -ENOMEM;
        *watch = (struct watch){e, *handler, ctx};
        int r = e->inner->ops->watch(e->inner, begin, end, revision, &own, watch, ret_id);
        if (r != 0)
                free(watch);
        return r;
}

/* ---- operations without values ---- */

static void encrypted_watch_cancel(struct hfd_store *store, uint64_t id) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        inner->ops->watch_cancel(inner, id);
}

static void encrypted_watch_suspect(struct hfd_store *store, uint64_t id) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        inner->ops->watch_suspect(inner, id);
}

static int encrypted_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                             hfd_store_fn done, void *ctx) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        return inner->ops->compact(inner, revision, deadline, done, ctx);
}

static int encrypted_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done,
                              void *ctx) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        return inner->ops->revision(inner, deadline, done, ctx);
}

static void encrypted_stop(struct hfd_store *store) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        inner->ops->stop(inner);
}

static uint64_t encrypted_iterations(struct hfd_store *store) {
        struct hfd_store *inner = encrypted_of(store)->inner;

        return inner->ops->iterations(inner);
}

static void encrypted_free(struct hfd_store *store) {
        struct encrypted *e = encrypted_of(store);

        assert(e->inner);
        e->inner->ops->free(e->inner); /* every callback has returned then */
        (void)hfd_encryption_unref(e->encryption);
        (void)pthread_mutex_destroy(&e->mu);
        free(e);
}

/* ---- making it ---- */

int hfd_encrypted_store_new(struct hfd_store *inner, const char *prefix,
                            struct hfd_encryption *encryption, hfd_random_fn random,
                            struct hfd_store **ret_store) {
        static const struct hfd_store_ops ops = {.get = encrypted_get,
                                                 .list = encrypted_list,
                                                 .txn = encrypted_txn,
                                                 .watch = encrypted_watch,
                                                 .watch_cancel = encrypted_watch_cancel,
                                                 .watch_suspect = encrypted_watch_suspect,
                                                 .compact = encrypted_compact,
                                                 .revision = encrypted_revision,
                                                 .stop = encrypted_stop,
                                                 .free = encrypted_free,
                                                 .iterations = encrypted_iterations};
        HF__CLEANUP(hf__free_cleanup) struct encrypted *e = calloc(1, sizeof *e);

        if (!e)
                return -ENOMEM;
        assert(inner->ops && random);
        e->store = (struct hfd_store){.ops = &ops, .host = inner->host};
        e->inner = inner;
        e->random = random;
        if (!hf__join(e->prefix, sizeof e->prefix, prefix, NULL))
                return -EINVAL;
        int r = hf__mutex_init(&e->mu);
        if (r != 0)
                return r;
        e->encryption = hfd_encryption_ref(encryption);
        *ret_store = &HF__TAKE(e)->store;
        return 0;
}

bool hfd_encrypted_store_set(struct hfd_store *store, struct hfd_encryption *encryption) {
        struct encrypted *e = encrypted_of(store);

        assert(store->ops->free == encrypted_free);
        pthread_mutex_lock(&e->mu);
        struct hfd_encryption *old = e->encryption;
        bool changed = !hfd_encryption_is_same(old, encryption);
        if (changed)
                e->encryption = hfd_encryption_ref(encryption);
        pthread_mutex_unlock(&e->mu);
        if (changed)
                (void)hfd_encryption_unref(old);
        return changed;
}
