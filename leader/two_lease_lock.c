/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock port over two Lease locks. What is decided is in two_lease_core.c; here are its lock,
 * its threads, its end.
 *
 * Model. Each answer or piece of news of a Lease is handed to the pure part under `mu`, which says
 * what to do next; that is carried out after `mu` is let go, on the thread that brought it.
 * Carrying out asks a Lease lock for the next request, which may answer before it returns, or posts
 * to the elector's mailbox; neither blocks. What several threads carry out at once may reach the
 * mailbox in another order than it was decided in: the records' numbers tell the elector's core
 * which is the newer.
 *
 * Freeing closes first, waits for those who are carrying out, and then frees the Lease locks, whose
 * late callbacks find it closed.
 */
#include "leader/lock_port.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/leader.h>

#include "base/thread.h"
#include "leader/two_lease_core.h"

/* What a Lease lock calls back with. */
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
        unsigned n_carrying_out;
        struct hf__two_lease two;
};

static struct hf__core_time now_of(const struct two_lease_lock *lock) {
        return (struct hf__core_time){.boot = hf_now(lock->clock),
                                      .real_us = lock->clock->real(lock->clock->ctx) /
                                                 HF_NSEC_PER_USEC};
}

/* False: closed, nothing is to be done any more. True: mu is held, and carry_out must follow. */
static bool enter(struct two_lease_lock *lock) {
        pthread_mutex_lock(&lock->mu);
        if (!lock->closed) {
                lock->n_carrying_out++;
                return true;
        }
        pthread_mutex_unlock(&lock->mu);
        return false;
}

static void tell(struct two_lease_lock *lock, const struct hf__two_lease_command *command,
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
        lock->base.done(lock->base.ctx, command->op_id, &reply);
}

/* Lets mu go. why: of the answer that led to the commands; may be NULL. */
static void carry_out(struct two_lease_lock *lock, const struct hf__two_lease_commands *commands,
                      const struct hf_status *why) {
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
                case HF__TWO_LEASE_RESPONSE: tell(lock, command, why); break;
                case HF__TWO_LEASE_EVENT:
                        lock->base.on_record(lock->base.ctx, &command->record);
                        break;
                }
        }
        pthread_mutex_lock(&lock->mu);
        if (--lock->n_carrying_out == 0)
                pthread_cond_broadcast(&lock->quiet);
        pthread_mutex_unlock(&lock->mu);
}

/* ---- from the Lease locks ---- */

static void on_done(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        struct side *side = ctx;
        struct two_lease_lock *lock = side->lock;
        struct hf__two_lease_commands commands;

        if (!enter(lock))
                return;
        hf__two_lease_response(&lock->two, side->which, op_id, reply->result, reply->retry_after,
                               &reply->record, now_of(lock), &commands);
        carry_out(lock, &commands, reply->result ? &reply->status : NULL);
}

static void on_record(void *ctx, const struct hf__record *record) {
        struct side *side = ctx;
        struct two_lease_lock *lock = side->lock;
        struct hf__two_lease_commands commands = {.n = 0};

        if (!enter(lock))
                return;
        if (record) {
                hf__two_lease_watched(&lock->two, side->which, record, now_of(lock), &commands);
                carry_out(lock, &commands, NULL);
                return;
        }
        pthread_mutex_unlock(&lock->mu);
        lock->base.on_record(lock->base.ctx, NULL); /* one of two is none: both are opened again */
        pthread_mutex_lock(&lock->mu);
        carry_out(lock, &commands, NULL);
}

/* ---- from the elector ---- */

static void two_read(struct hf__lock *base, uint32_t op_id, hf_nsec deadline) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;
        struct hf__two_lease_commands commands;

        if (!enter(lock))
                return;
        hf__two_lease_read(&lock->two, op_id, deadline, now_of(lock), &commands);
        carry_out(lock, &commands, NULL);
}

static void two_write(struct hf__lock *base, uint32_t op_id, const struct hf__record *record,
                      hf_nsec deadline) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;
        struct hf__two_lease_commands commands;

        if (!enter(lock))
                return;
        hf__two_lease_write(&lock->two, op_id, record, deadline, now_of(lock), &commands);
        carry_out(lock, &commands, NULL);
}

static void two_watch(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                lock->sides[i].lease->ops->watch(lock->sides[i].lease);
}

static void two_unwatch(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                lock->sides[i].lease->ops->unwatch(lock->sides[i].lease);
}

/* The new Lease's revision is the later one of the two. */
static void two_grant(struct hf__lock *base, struct hf_fence *fence,
                      char acquired_at[HF__REVISION_MAX]) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        memcpy(fence->also_ns, lock->old_ns, sizeof lock->old_ns);
        memcpy(fence->also_name, lock->old_name, sizeof lock->old_name);
        pthread_mutex_lock(&lock->mu);
        fence->also_term = lock->two.old_term;
        strcpy(acquired_at, lock->two.acquired_at);
        pthread_mutex_unlock(&lock->mu);
}

static void destroy(struct two_lease_lock *lock) {
        for (int i = 0; i < HF__TWO_LEASE_SIDES; i++)
                if (lock->sides[i].lease)
                        lock->sides[i].lease->ops->free(lock->sides[i].lease);
        pthread_cond_destroy(&lock->quiet);
        pthread_mutex_destroy(&lock->mu);
        free(lock);
}

static void two_free(struct hf__lock *base) {
        struct two_lease_lock *lock = (struct two_lease_lock *)base;

        pthread_mutex_lock(&lock->mu);
        lock->closed = true;
        while (lock->n_carrying_out)
                pthread_cond_wait(&lock->quiet, &lock->mu);
        pthread_mutex_unlock(&lock->mu);
        destroy(lock);
}

static int make_side(const struct hf_host *host, const struct hf_elector_config *config,
                     struct two_lease_lock *lock, enum hf__two_lease_side which) {
        struct hf_elector_config one = *config;
        struct side *side = &lock->sides[which];

        if (which == HF__TWO_LEASE_OLD) {
                one.ns = lock->old_ns;
                one.name = lock->old_name;
        }
        int r = hf__lease_lock_new(host, &one, &side->lease);
        if (r != 0)
                return r;
        side->lock = lock;
        side->which = which;
        side->lease->done = on_done;
        side->lease->on_record = on_record;
        side->lease->ctx = side;
        return 0;
}

int hf__two_lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                           hf_nsec lease_duration, struct hf__lock **ret_lock) {
        static const struct hf__lock_ops ops = {two_read,    two_write, two_watch,
                                                two_unwatch, two_free,  two_grant};
        struct two_lease_lock *lock = calloc(1, sizeof *lock);
        if (!lock)
                return -ENOMEM;
        int r = hf__mutex_init(&lock->mu);
        if (r == 0 && (r = hf_cond_init(&lock->quiet)) != 0)
                pthread_mutex_destroy(&lock->mu);
        if (r != 0) {
                free(lock);
                return r;
        }
        lock->base.ops = &ops;
        lock->clock = hf_host_clock(host);
        (void)snprintf(lock->old_ns, sizeof lock->old_ns, "%s",
                       config->migrate_from_ns ? config->migrate_from_ns : config->ns);
        (void)snprintf(lock->old_name, sizeof lock->old_name, "%s", config->migrate_from);
        hf__two_lease_init(&lock->two, config->identity, lease_duration);
        r = make_side(host, config, lock, HF__TWO_LEASE_OLD);
        r = r != 0 ? r : make_side(host, config, lock, HF__TWO_LEASE_NEW);
        if (r != 0) {
                destroy(lock);
                return r;
        }
        *ret_lock = &lock->base;
        return 0;
}
