/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects a page from a copy of a reply: the values are shared, the keys are in one block. Each
 * step makes objects of a few hundred values, so that lists of several clients take turns.
 *
 * Invariant: after a successful start, finish is called exactly once, with the page or with NULL.
 * The copy is freed before that.
 */
#include "server/registry/list/stored_page.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/pool/work_pool.h"

/* The values of one step. Parsing them takes about a millisecond. */
#define STEP_VALUES 256

struct stored_page {
        struct hfd_work_task task; /* first member: collect_step casts it back */
        struct hfd_read *read;
        void (*finish)(struct hfd_read *read, struct hfd_list_page *page);
        struct hfd_list_page page;
        struct hfd_store_reply reply; /* owned, with kvs, their keys and references */
        char *keys;                   /* owned */
        size_t at;                    /* the first value that no step has examined */
        struct hfd_kv kvs[];
};

static void stored_page_free(struct stored_page *stored) {
        for (size_t i = 0; i < stored->reply.n_kvs; i++)
                hf__buf_unref(stored->kvs[i].value);
        free(stored->keys);
        free(stored);
}

/* Makes objects of the next values. True: the page is complete, or must not be used. */
static bool collect_some(struct stored_page *stored) {
        assert(stored->at <= stored->reply.n_kvs);
        struct hfd_store_reply part = stored->reply;
        uint64_t limit = stored->read->request->options.limit;
        size_t left = stored->reply.n_kvs - stored->at;

        part.kvs = stored->kvs + stored->at;
        part.n_kvs = left < STEP_VALUES ? left : STEP_VALUES;
        part.more = stored->reply.more || left > STEP_VALUES;
        hfd_list_page_from_store(&stored->page, stored->read, &part);
        stored->at += part.n_kvs;
        return stored->at == stored->reply.n_kvs || stored->page.failed || stored->page.sealed ||
               (limit && stored->page.n == limit);
}

static enum hfd_work_result collect_step(struct hfd_work_task *task) {
        struct stored_page *stored = (struct stored_page *)task;
        struct hfd_read *read = stored->read;
        const atomic_bool *abandoned = read->request->abandoned;
        bool gone = hfd_work_is_cancelled(read->registry->work, task) ||
                    (abandoned && atomic_load_explicit(abandoned, memory_order_relaxed));

        if (!gone && !collect_some(stored))
                return HFD_WORK_MORE;
        struct hfd_list_page page = stored->page;
        void (*finish)(struct hfd_read * read, struct hfd_list_page * page) = stored->finish;
        stored_page_free(stored);
        if (gone)
                hfd_list_page_done(&page);
        finish(read, gone ? NULL : &page);
        return HFD_WORK_DONE;
}

static struct stored_page *copy_reply(const struct hfd_store_reply *reply) {
        struct stored_page *stored =
                calloc(1, sizeof *stored + reply->n_kvs * sizeof stored->kvs[0]);
        size_t n_keys = 0;

        if (!stored)
                return NULL;
        for (size_t i = 0; i < reply->n_kvs; i++)
                n_keys += strlen(reply->kvs[i].key) + 1;
        /* + 1: malloc(0) may return NULL. */
        stored->keys = malloc(n_keys + 1);
        if (!stored->keys) {
                free(stored);
                return NULL;
        }
        stored->reply = *reply;
        stored->reply.kvs = stored->kvs;
        char *key = stored->keys;
        for (size_t i = 0; i < reply->n_kvs; i++) {
                stored->kvs[i] = reply->kvs[i];
                stored->kvs[i].key = key;
                hf__buf_ref(stored->kvs[i].value);
                key = stpcpy(key, reply->kvs[i].key) + 1;
        }
        assert(key == stored->keys + n_keys);
        return stored;
}

int hfd_stored_page_start(struct hfd_read *read, const struct hfd_store_reply *reply,
                          void (*finish)(struct hfd_read *read, struct hfd_list_page *page)) {
        struct stored_page *stored = copy_reply(reply);

        if (!stored)
                return -ENOMEM;
        stored->task = (struct hfd_work_task){.step = collect_step, .owner = read->request->owner};
        stored->read = read;
        stored->finish = finish;
        if (!hfd_work_submit(read->registry->work, &stored->task)) {
                stored_page_free(stored);
                return HF_E_CANCELED;
        }
        return 0;
}
