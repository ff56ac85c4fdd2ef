/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock port with two Leases. two_lease_core.c (the core) decides; this file adds the mutex, the
 * handling of threads and the lifetime.
 *
 * Every reply and every record of the two Lease locks is passed to the core under `mu`. (The loss
 * of a watch is passed to the elector instead.) The core returns commands. The same thread carries
 * them out after it has unlocked `mu`: it starts the next request of a Lease lock, which may reply
 * before it returns, or posts to the elector's mailbox. Neither blocks.
 *
 * Invariants:
 *  - `mu` is not held while a Lease lock or the elector is called;
 *  - if several threads carry out commands at the same time, these may reach the mailbox in another
 *    order than the core returned them. That is harmless, because the elector's core orders records
 *    by their revision numbers, and reads the Lease if they have none;
 *  - lock_free closes the lock, waits for the threads that carry out commands, and only then frees
 *    the Lease locks. A late callback finds the lock closed.
 */
#include "leader/two_lease_lock.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "leader/lease_lock.h"
#include "leader/two_lease_core.h"

/* One of the two Lease locks, and the context of its callbacks. */
struct side {
        struct two_lease_lock *lock;
        enum hf__two_lease_side which;
        struct hf__lock *lease; /* owned */
};

struct two_lease_lock {
        struct hf__lock base; /* first */
        /* immutable */
        const struct hf_clock *clock;
        struct side sides[HF__TWO_LEASE_SIDES];
        char old_ns[HF_NAME_MAX + 1], old_name[HF_NAME_MAX + 1];

        pthread_mutex_t mu;
        pthread_cond_t quiet;
        /* guarded by mu */
        bool closed;
        bool watched; /* the elector has opened the watches, and knows of no loss since */
        unsigned n_carrying_out; /* threads between enter_locking and the end of
                                    carry_out_unlocking */
        struct hf__two_lease two;
};

static struct hf__core_time now_of(const struct two_lease_lock *lock) {
        return (struct hf__core_time){.boot = hf_now(lock->clock),
                                      .real_us = lock->clock->real(lock->clock->ctx) /
                                                 HF_NSEC_PER_USEC};
}

/* True: mu is held, and the caller must call carry_out_unlocking. False: the lock is closed, and mu
 * is not held. */
static bool enter_locking(struct two_lease_lock *lock) {
        pthread_mutex_lock(&lock->mu);
        if (!lock->closed) {
                lock->n_carrying_out++;
                return true;
        }
        pthread_mutex_unlock(&lock->mu);
        return false;
}

static void reply_to_elector(struct two_lease_lock *lock,
                             const struct hf__two_lease_command *command,
                             const struct hf_status *why) {
        struct hf__lock_reply reply = {.result = command->result,
                                       .retry_after = command->retry_after};

        if (command->result == 0)
                reply.record = command->record;
        else if (why && why->message[0])
                reply.status = *why;
        else
                (void)hf_fail(&reply.status, command->result, "the two Leases: %s",
                              hf_strerror(command->result));
        lock->base.on_reply(lock->base.ctx, command->op_id, &reply);
}

/* Unlocks mu and carries out the commands. why: the status of the failed reply that caused them, or
 * NULL. */
static void carry_out_unlocking(struct two_lease_lock *lock,
                                const struct hf__two_lease_commands *commands,
                                const struct hf_status *why) {
        hf__mutex_assert_held(&lock->mu);
        pthread_mutex_unlock(&lock->mu);
        for (unsigned i = 0; i < commands->n; i++) {
                const struct hf__two_lease_command *command = &commands->list[i];
                struct hf__lock *lease = lock->sides[command->side].lease;
                switch (command->type) {
                case HF__TWO_LEASE_READ:
                        lease->ops->read(lease, command->op_id, command->deadline);
                        break;
                case HF__TWO_LEASE_WRITE:
                        lease->ops->write(lease, command->op_id, &command->record,
                                          command->deadline);
                        break;
                case HF__TWO_LEASE_RESPONSE: reply_to_elector(lock, command, why); break;
                case HF__TWO_LEASE_EVENT:
                        lock->base.on_record(lock->base.ctx, &command->record);
                        break;
                }
        }
        pthread_mutex_lock(&lock->mu);
        assert(lock->n_carrying_out > 0);
        if (--lock->n_carrying_out == 0)
                pthread_cond_broadcast(&lock->quiet);
        pthread_mutex_unlock(&lock->mu);
}

/* ---- callbacks of the Lease locks ---- */

static void on_reply(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        struct side *side = ctx;
        struct two_lease_lock *lock = side->lock;
        struct hf__two_lease_commands commands;

        if (!enter_locking(lock))
                return;
        hf__two_lease_response(&lock->two, side->which, op_id, reply->result, reply->retry_after,
                               &reply->record, now_of(lock), &commands);
        carry_out_unlocking(lock, &commands, reply->result ? &reply->status : NULL);
}

static void on_record(void *ctx, const struct hf__record *record) {
        struct side *side = ctx;
        struct two_lease_lock *lock = side->lock;
        struct hf__two_lease_commands commands = {.n = 0};

        if (!enter_locking(lock))
                return;
        if (record) {
                hf__two_lease_watched(&lock->two, side->which, record, now_of(lock), &commands);
                carry_out_unlocking(lock, &commands, NULL);
                return;
        }
        bool is_news = lock->watched;
        lock->watched = false;
        pthread_mutex_unlock(&lock->mu);
        /* The pair needs both watches. The elector reopens both when one is reported as lost, so a
         * loss of the other one is no news: often both end together, and the second report would
         * make the elector pass over what the new watches show. */
        if (is_news)
                lock->base.on_record(lock->base.ctx, NULL);
        pthread_mutex_lock(&lock->mu);
        carry_out_unlocking(lock, &commands, NULL);
}

/* ---- operations of the elector ---- */

static void lock_read(struct hf__lock *base, uint32_t op_id, hf_nsec deadline) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;
        struct hf__two_lease_commands commands;

        if (!enter_locking(lock))
                return;
        hf__two_lease_read(&lock->two, op_id, deadline, now_of(lock), &commands);
        carry_out_unlocking(lock, &commands, NULL);
}

static void lock_write(struct hf__lock *base, uint32_t op_id, const struct hf__record *record,
                       hf_nsec deadline) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;
        struct hf__two_lease_commands commands;

        if (!enter_locking(lock))
                return;
        hf__two_lease_write(&lock->two, op_id, record, deadline, now_of(lock), &commands);
        carry_out_unlocking(lock, &commands, NULL);
}

static void lock_watch(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        pthread_mutex_lock(&lock->mu);
        lock->watched = true;
        pthread_mutex_unlock(&lock->mu);
        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                lock->sides[i].lease->ops->watch(lock->sides[i].lease);
}

static void lock_unwatch(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                lock->sides[i].lease->ops->unwatch(lock->sides[i].lease);
}

/* Adds the old Lease to the fence. The new Lease was written last, so caches must reach its
 * revision. */
static void lock_grant(struct hf__lock *base, struct hf_fence *fence,
                       char acquired_at[HF__REVISION_MAX]) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        memcpy(fence->also_ns, lock->old_ns, sizeof lock->old_ns);
        memcpy(fence->also_name, lock->old_name, sizeof lock->old_name);
        pthread_mutex_lock(&lock->mu);
        fence->also_term = lock->two.old_term;
        strcpy(acquired_at, lock->two.acquired_at);
        pthread_mutex_unlock(&lock->mu);
}

static void destroy_lock(struct two_lease_lock *lock) {
        assert(lock->n_carrying_out == 0);
        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                if (lock->sides[i].lease)
                        lock->sides[i].lease->ops->free(lock->sides[i].lease);
        pthread_cond_destroy(&lock->quiet);
        pthread_mutex_destroy(&lock->mu);
        free(lock);
}

static void lock_free(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        pthread_mutex_lock(&lock->mu);
        lock->closed = true;
        while (lock->n_carrying_out)
                pthread_cond_wait(&lock->quiet, &lock->mu);
        pthread_mutex_unlock(&lock->mu);
        destroy_lock(lock);
}

static int init_side(const struct hf_host *host, const struct hf_elector_config *config,
                     struct two_lease_lock *lock, enum hf__two_lease_side which) {
        struct hf_elector_config one = *config;
        struct side *side = &lock->sides[which];

        if (which == HF__TWO_LEASE_OLD) {
                one.ns = lock->old_ns;
                one.name = lock->old_name;
        }
        int r = hf__lease_lock_new(host, &one, NULL, NULL, &side->lease);
        if (r != 0)
                return r;
        side->lock = lock;
        side->which = which;
        side->lease->on_reply = on_reply;
        side->lease->on_record = on_record;
        side->lease->ctx = side;
        return 0;
}

HF__CLEANUP_DEFINE(lock_cleanup, struct two_lease_lock *, destroy_lock)

int hf__two_lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                           hf_nsec lease_duration, struct hf__lock **ret_lock) {
        static const struct hf__lock_ops ops = {lock_read,    lock_write, lock_watch,
                                                lock_unwatch, lock_free,  lock_grant};
        HF__CLEANUP(hf__free_cleanup) struct two_lease_lock *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&memory->mu, &memory->quiet);
        if (r != 0)
                return r;
        HF__CLEANUP(lock_cleanup) struct two_lease_lock *lock = HF__TAKE(memory);
        lock->base.ops = &ops;
        lock->clock = hf_host_clock(host);
        (void)snprintf(lock->old_ns, sizeof lock->old_ns, "%s",
                       config->migrate_from_ns ? config->migrate_from_ns : config->ns);
        (void)snprintf(lock->old_name, sizeof lock->old_name, "%s", config->migrate_from);
        hf__two_lease_init(&lock->two, config->identity, lease_duration);
        r = init_side(host, config, lock, HF__TWO_LEASE_OLD);
        if (r != 0)
                return r;
        r = init_side(host, config, lock, HF__TWO_LEASE_NEW);
        if (r != 0)
                return r;
        *ret_lock = &HF__TAKE(lock)->base;
        return 0;
}
