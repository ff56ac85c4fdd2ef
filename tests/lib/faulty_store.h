/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store in front of the memory store that misbehaves as it is told: its watch ends or is deaf,
 * its replies are lost or late, or the history is replaced while it answers. To be included after
 * cmocka; everything is static.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "server/cacher/cacher_private.h"
#include "server/handlers/discovery.h"
#include "server/handlers/openapi.h"
#include "server/registry/loopback.h"
#include "server/registry/registry.h"
#include "server/registry/request.h"
#include "server/storage/store.h"

struct faulty {
        struct hfd_store base;
        struct hfd_store *inner;
        struct hfd_store_ops ops;
        pthread_mutex_t mu;
        uint64_t watch_id;
        const struct hfd_watch_handler *handler;
        void *ctx;
        int end_as;               /* what the next end of the watch is told as; 0 = as it is */
        bool deaf;                /* events are dropped: the cache falls behind */
        int txn_error;            /* transactions are answered so, after they were done */
        uint64_t answer_revision; /* the next answers to revision say this; 0 = the truth */
        struct hfd_cacher *replaced_amid_list,
                *replaced_amid_watch; /* whose history is replaced meanwhile, once; NULL = no */
        bool hold;                    /* the next answer to revision is kept back */
        hfd_store_fn held;
        void *held_ctx;
        int n_gets, n_lists, n_revisions;
};

static inline void replace_once(struct faulty *f, struct hfd_cacher **which) {
        pthread_mutex_lock(&f->mu);
        struct hfd_cacher *cacher = *which;
        *which = NULL;
        pthread_mutex_unlock(&f->mu);
        if (cacher)
                hfd_store_identity_replaced(cacher, "a test says so");
}

static inline int count(struct faulty *f, int *n) {
        pthread_mutex_lock(&f->mu);
        int was = (*n)++;
        pthread_mutex_unlock(&f->mu);
        return was;
}

static inline int f_get(struct hfd_store *s, const char *key, hf_nsec deadline, hfd_store_fn done,
                        void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_gets);
        return f->inner->ops->get(f->inner, key, deadline, done, ctx);
}
static inline int f_list(struct hfd_store *s, const char *prefix, const char *start,
                         uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_lists);
        replace_once(f, &f->replaced_amid_list);
        return f->inner->ops->list(f->inner, prefix, start, revision, limit, keys_only, deadline,
                                   done, ctx);
}
static inline int f_revision(struct hfd_store *s, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        count(f, &f->n_revisions);
        if (f->hold) {
                f->hold = false;
                f->held = done;
                f->held_ctx = ctx;
                return 0;
        }
        if (f->answer_revision) {
                struct hfd_store_reply reply = {.revision = f->answer_revision};
                done(ctx, &reply);
                return 0;
        }
        return f->inner->ops->revision(f->inner, deadline, done, ctx);
}

struct lost {
        hfd_store_fn done;
        void *ctx;
        int error;
};
static inline void lose(void *ctx, const struct hfd_store_reply *reply) {
        struct lost *lost = ctx;
        struct hfd_store_reply instead = {.error = lost->error};
        lost->done(lost->ctx, &instead);
        free(lost);
}
static inline int f_txn(struct hfd_store *s, const struct hfd_txn *txn, hf_nsec deadline,
                        hfd_store_fn done, void *ctx) {
        struct faulty *f = (struct faulty *)s;
        if (!f->txn_error)
                return f->inner->ops->txn(f->inner, txn, deadline, done, ctx);
        struct lost *lost = malloc(sizeof *lost);
        *lost = (struct lost){done, ctx, f->txn_error};
        return f->inner->ops->txn(f->inner, txn, deadline, lose, lost);
}

static inline void f_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct faulty *f = ctx;
        pthread_mutex_lock(&f->mu);
        bool deaf = f->deaf;
        pthread_mutex_unlock(&f->mu);
        if (!deaf)
                f->handler->event(f->ctx, events, n);
}
static inline void f_end(void *ctx, int error, const struct hf_status *status) {
        struct faulty *f = ctx;
        pthread_mutex_lock(&f->mu);
        int as = f->end_as ? f->end_as : error;
        f->end_as = 0;
        pthread_mutex_unlock(&f->mu);
        f->handler->end(f->ctx, as, status);
}
static const struct hfd_watch_handler f_handler = {f_event, f_end};
static inline int f_watch(struct hfd_store *s, const char *begin, const char *end,
                          uint64_t revision, const struct hfd_watch_handler *handler, void *ctx,
                          uint64_t *ret_id) {
        struct faulty *f = (struct faulty *)s;
        f->handler = handler;
        f->ctx = ctx;
        int r = f->inner->ops->watch(f->inner, begin, end, revision, &f_handler, f, ret_id);
        pthread_mutex_lock(&f->mu);
        f->watch_id = *ret_id;
        pthread_mutex_unlock(&f->mu);
        replace_once(f, &f->replaced_amid_watch);
        return r;
}
static inline void f_watch_cancel(struct hfd_store *s, uint64_t id) {
        struct faulty *f = (struct faulty *)s;
        f->inner->ops->watch_cancel(f->inner, id);
}

static inline void end_watch_as(struct faulty *f, int error) {
        pthread_mutex_lock(&f->mu);
        f->end_as = error;
        uint64_t id = f->watch_id;
        pthread_mutex_unlock(&f->mu);
        f->inner->ops->watch_cancel(f->inner, id);
}
