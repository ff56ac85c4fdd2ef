/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of an elector: one Lease, with a watch of its own or with one that it shares, or two
 * Leases. Its owner reads, writes and watches, and frees it at any moment, while another process
 * writes the Leases and requests fail or hang.
 *
 * Promised: each read and write is answered once, unless the lock is freed before; a watch tells
 * the next change; the free returns, waits for a callback that runs, and none comes after it.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "fake_api_client.h"
#include "leader/lease_lock.h"
#include "leader/lease_watches.h"
#include "leader/two_lease_lock.h"
#include "threads.h"

enum { MAX_OPS = 16 };

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf__lease_watches *watches; /* NULL = none is shared */
        struct hf__lock *lock;
        struct hf__record record; /* the last one that was told */
        uint32_t n_ops;           /* their ids are 1 to n_ops */
        bool is_answered[MAX_OPS + 1];
        unsigned n_records;
        bool is_freed;
} k;

/* ---- what the elector is told ---- */

/* The free waits for a thread that is here. */
static void check_the_lock_lives(void) {
        BATON_CHECK(!k.is_freed);
        baton_point();
        BATON_CHECK(!k.is_freed);
}

static void on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        BATON_CHECK(op_id >= 1 && op_id <= k.n_ops && !k.is_answered[op_id]);
        k.is_answered[op_id] = true;
        if (reply->result == 0 || reply->result == HF_E_NOT_FOUND)
                k.record = reply->record;
        check_the_lock_lives();
}

static void on_record(void *ctx, const struct hf__record *record) {
        if (record) {
                k.record = *record;
                k.n_records++;
        }
        check_the_lock_lives();
}

/* ---- the other process ---- */

static void put_lease(const char *name, unsigned holder) {
        char key[64], text[200];

        (void)snprintf(key, sizeof key, "leases/kube-system/%s", name);
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"holderIdentity\":\"x%u\","
                       "\"leaseDurationSeconds\":15}}",
                       name, holder);
        (void)fake_api_put(k.api, key, text);
}

static void *disturb(void *ctx) {
        for (uint64_t left = baton_random(5); left > 0; left--) {
                switch (baton_random(5)) {
                case 0: put_lease("lead", (unsigned)left); break;
                case 1: put_lease("lead-old", (unsigned)left); break;
                case 2: fake_api_end_watches(k.api, HF_E_GONE, NULL); break;
                case 3: fake_api_client_refuse(k.client, HF_E_UNAVAILABLE, 1); break;
                default:
                        fake_api_client_set_mode(k.client, FAKE_API_HANGS);
                        scenario_sleep((hf_nsec)baton_random(10) * HF_NSEC_PER_SEC);
                        fake_api_client_set_mode(k.client, FAKE_API_RESPONDS);
                }
        }
        return NULL;
}

/* ---- the owner ---- */

static void begin_write(hf_nsec deadline) {
        struct hf__record record = k.record;

        strcpy(record.holder, "a");
        record.duration_s = 15;
        record.acquire_us = record.renew_us = hf_clock_system()->real(NULL) / HF_NSEC_PER_USEC;
        record.cause = HF__CAUSE_CREATED;
        k.lock->ops->write(k.lock, ++k.n_ops, &record, deadline);
}

static void operate(void) {
        hf_nsec deadline = hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC;

        switch (baton_random(5)) {
        case 0: k.lock->ops->read(k.lock, ++k.n_ops, deadline); break;
        case 1: begin_write(deadline); break;
        case 2: k.lock->ops->watch(k.lock); break;
        case 3: k.lock->ops->unwatch(k.lock); break;
        default: scenario_sleep((hf_nsec)baton_random(4) * HF_NSEC_PER_SEC);
        }
}

/* Nothing fails any more. */
static void be_calm(void) {
        baton_be_quick();
        scenario_sleep(10 * HF_NSEC_PER_SEC); /* longer than the deadlines */
        for (uint32_t id = 1; id <= k.n_ops; id++)
                BATON_CHECK(k.is_answered[id]);
        k.lock->ops->watch(k.lock);
        scenario_sleep(HF_NSEC_PER_SEC);
        unsigned n = k.n_records;
        put_lease("lead-old", 9); /* of two Leases, both must be known */
        put_lease("lead", 9);
        scenario_sleep(HF_NSEC_PER_SEC);
        BATON_CHECK(k.n_records > n);
}

static void begin(void) {
        bool has_two = baton_random(2) == 0, is_shared = !has_two && baton_random(2) == 0;

        memset(&k, 0, sizeof k);
        k.api = fake_api_new();
        k.client = fake_api_client_new(k.api);
        const struct hf_elector_config config = {.ns = "kube-system",
                                                 .name = "lead",
                                                 .migrate_from = has_two ? "lead-old" : NULL,
                                                 .identity = "a",
                                                 .client = &k.client->base};
        if (is_shared)
                BATON_CHECK(hf__lease_watches_new(&k.watches) == 0);
        for (int i = 1; is_shared && i < HF__LEASE_WATCHES_SHARED; i++)
                BATON_CHECK(hf__lease_watches_expect(k.watches, config.client, config.ns) == 0);
        BATON_CHECK((has_two ? hf__two_lease_lock_new(&scenario_host, &config, 15 * HF_NSEC_PER_SEC,
                                                      &k.lock)
                             : hf__lease_lock_new(&scenario_host, &config, k.watches, NULL,
                                                  &k.lock)) == 0);
        k.lock->on_reply = on_reply;
        k.lock->on_record = on_record;
}

void lock_end(void) {
        begin();
        pthread_t disturber = scenario_thread("disturber", disturb, NULL);
        for (uint64_t left = 1 + baton_random(MAX_OPS); left > 0; left--)
                operate();
        bool is_calm = baton_random(3) == 0;
        if (is_calm) {
                (void)hf__thread_join(disturber);
                be_calm();
        }
        k.lock->ops->free(k.lock);
        k.is_freed = true;
        if (!is_calm)
                (void)hf__thread_join(disturber);
        baton_be_quick();
        k.watches = hf__lease_watches_free(k.watches);
        hf_client_free(&k.client->base);
        fake_api_free(k.api);
}
