/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides shards over the live members of a group. shards_core.h has the rules.
 *
 * Invariants: all processes go through the members in the order of their keys, or they would
 * compute different divisions from the same view. A decision depends on the records and on this
 * process's clock alone, because machines' clocks differ: times that others have written into a
 * record are only compared for equality. Every member is in one of the two queues.
 */
#include "leader/shards_core.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t hf__shards_key(const char *text) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (const unsigned char *at = (const unsigned char *)text; *at; at++)
                hash = (hash ^ *at) * UINT64_C(1099511628211);
        /* FNV mixes the last bytes little, so names that differ only at the end would be close.
         * This is the last step of MurmurHash3. */
        hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
        hash = (hash ^ (hash >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
        return hash ^ (hash >> 33);
}

int hf__shards_core_init(struct hf__shards_core *core, const char *identity, size_t n_shards,
                         hf_nsec lease_duration, hf_nsec retry_period) {
        assert(n_shards > 0 && lease_duration > 0 && retry_period > 0);
        *core = (struct hf__shards_core){.self = hf__shards_key(identity),
                                         .lease_duration = lease_duration,
                                         .retry_period = retry_period,
                                         .n_shards = n_shards};
        core->shards = calloc(n_shards, sizeof *core->shards);
        return core->shards ? 0 : -ENOMEM;
}

void hf__shards_core_done(struct hf__shards_core *core) {
        hf__key_index_free_items(&core->members);
        free(core->live);
        free(core->shards);
}

/* ---- members ---- */

static void leave_queue(struct hf__shards_queue *queue, struct hf__shards_member *member) {
        *(member->before ? &member->before->after : &queue->first) = member->after;
        *(member->after ? &member->after->before : &queue->last) = member->before;
}

static void join_queue(struct hf__shards_queue *queue, struct hf__shards_member *member) {
        member->before = queue->last;
        member->after = NULL;
        *(queue->last ? &queue->last->after : &queue->first) = member;
        queue->last = member;
}

static struct hf__shards_queue *queue_of(struct hf__shards_core *core,
                                         const struct hf__shards_member *member) {
        return member->tried_at == 0 ? &core->untried : &core->tried;
}

static void print_name(uint64_t key, char name[HF__SHARDS_MEMBER_NAME]) {
        (void)snprintf(name, HF__SHARDS_MEMBER_NAME, "%016" PRIx64, key);
}

static struct hf__shards_member *find_member(const struct hf__shards_core *core, uint64_t key) {
        char name[HF__SHARDS_MEMBER_NAME];

        print_name(key, name);
        return (struct hf__shards_member *)hf__key_index_find(&core->members, name);
}

/* Makes room for one more member in core->live, so that a decision needs no memory. */
static bool has_room(struct hf__shards_core *core) {
        size_t size = core->live_size ? 2 * core->live_size : 8;

        if (core->members.n < core->live_size)
                return true;
        struct hf__shards_member **live = reallocarray(core->live, size, sizeof *live);
        if (!live)
                return false;
        core->live = live;
        core->live_size = size;
        return true;
}

static struct hf__shards_member *add_member(struct hf__shards_core *core, uint64_t key) {
        struct hf__shards_member *member = has_room(core) ? calloc(1, sizeof *member) : NULL;

        if (!member)
                return NULL;
        member->key = key;
        print_name(key, member->name);
        member->keyed.key = member->name;
        if (hf__key_index_insert(&core->members, &member->keyed) != 0) {
                free(member);
                return NULL;
        }
        join_queue(&core->untried, member);
        return member;
}

/* ---- observations ---- */

static bool is_expired(const struct hf__shards_core *core, const struct hf__shards_member *member,
                       hf_nsec now) {
        return now >= member->seen_at + core->lease_duration;
}

bool hf__shards_core_saw_member(struct hf__shards_core *core, uint64_t key,
                                const struct hf__record *record, hf_nsec now) {
        struct hf__shards_member *member = find_member(core, key);
        bool held = record->holder[0] != '\0', is_new = !member;

        if (is_new)
                member = add_member(core, key);
        if (!member)
                return false;
        memcpy(member->rv, record->rv, sizeof member->rv);
        if (!is_new && member->held == held && member->renew_us == record->renew_us)
                return false; /* the same record again, for example from another list */
        bool was_live = member->live && !is_expired(core, member, now);
        bool is_proof = held && member->held && !is_expired(core, member, now);

        member->live = is_proof;
        if (is_proof && !was_live)
                core->joined_at = now;
        member->held = held;
        member->renew_us = record->renew_us;
        member->seen_at = now;
        leave_queue(queue_of(core, member), member);
        member->tried_at = 0;
        join_queue(&core->untried, member);
        if (held)
                strcpy(member->identity, record->holder);
        return was_live != member->live;
}

bool hf__shards_core_lost_member(struct hf__shards_core *core, uint64_t key) {
        struct hf__shards_member *member = find_member(core, key);

        if (!member)
                return false;
        bool was_live = member->live;
        leave_queue(queue_of(core, member), member);
        hf__key_index_remove(&core->members, member->name);
        free(member);
        return was_live;
}

bool hf__shards_core_saw_shard(struct hf__shards_core *core, size_t number, const char *holder,
                               const char *successor) {
        assert(number < core->n_shards);
        struct hf__shards_shard *shard = &core->shards[number];
        bool held = holder[0] != '\0';
        const char *owner = held ? holder : successor;

        if (strlen(owner) > HF_IDENTITY_MAX)
                owner = "";
        if (shard->held == held && strcmp(shard->owner, owner) == 0)
                return false;
        shard->held = held;
        strcpy(shard->owner, owner);
        print_name(hf__shards_key(owner), shard->member);
        return true;
}

/* ---- the division ---- */

/* The live member that owns the shard. NULL: there is none, so the shard is free to be given to
 * others. */
static struct hf__shards_member *find_owner(const struct hf__shards_core *core,
                                            const struct hf__shards_shard *shard) {
        const char *owner = shard->owner;
        struct hf__shards_member *member =
                owner[0] ? (struct hf__shards_member *)hf__key_index_find(&core->members,
                                                                          shard->member)
                         : NULL;

        return member && member->live && strcmp(member->identity, owner) == 0 ? member : NULL;
}

/* Gives one more to members of one kind, in the order of their keys: if holds_more, to those that
 * hold more than `least`, else to the others. Returns how many are left to give. */
static size_t give_extras(struct hf__shards_core *core, size_t least, bool holds_more,
                          size_t n_extras) {
        for (size_t i = 0; i < core->n_live && n_extras > 0; i++) {
                struct hf__shards_member *member = core->live[i];
                if ((member->n_held > least) == holds_more) {
                        member->quota++;
                        n_extras--;
                }
        }
        return n_extras;
}

/* Applies rule 2 of shards_core.h. */
static void set_quotas(struct hf__shards_core *core) {
        size_t least = core->n_shards / core->n_live, n_extras = core->n_shards % core->n_live;

        for (size_t i = 0; i < core->n_live; i++) {
                core->live[i]->n_held = 0;
                core->live[i]->quota = (unsigned)least;
        }
        for (size_t i = 0; i < core->n_shards; i++) {
                struct hf__shards_member *owner = find_owner(core, &core->shards[i]);
                core->shards[i].target = owner;
                if (owner)
                        owner->n_held++;
        }
        n_extras = give_extras(core, least, true, n_extras);
        n_extras = give_extras(core, least, false, n_extras);
        assert(n_extras == 0);
}

/* Rule 3. The quotas add up to the number of shards, so each shard finds a member. */
static void set_targets(struct hf__shards_core *core) {
        size_t next = 0;

        for (size_t i = 0; i < core->n_shards; i++) {
                struct hf__shards_shard *shard = &core->shards[i];
                if (!shard->target)
                        continue;
                if (shard->target->quota == 0)
                        shard->target = NULL;
                else
                        shard->target->quota--;
        }
        for (size_t i = 0; i < core->n_shards; i++) {
                if (core->shards[i].target)
                        continue;
                while (core->live[next]->quota == 0)
                        next++;
                core->live[next]->quota--;
                core->shards[i].target = core->live[next];
        }
}

/* Turns the targets into this process's decisions. */
static void decide_own(struct hf__shards_core *core, const struct hf__shards_member *self) {
        for (size_t i = 0; i < core->n_shards; i++) {
                struct hf__shards_shard *shard = &core->shards[i];

                shard->contends = shard->target == self;
                if (shard->target != self && shard->held &&
                    strcmp(shard->owner, self->identity) == 0)
                        strcpy(shard->hand_over_to, shard->target->identity);
        }
}

/* Collects the live members. *ret_self: this process's; NULL = it is not live. Returns the boot
 * time at which the first of them expires if it is not renewed, or HF_NSEC_NEVER. */
static hf_nsec collect_live(struct hf__shards_core *core, hf_nsec now,
                            const struct hf__shards_member **ret_self) {
        hf_nsec expires_at = HF_NSEC_NEVER;
        struct hf__shards_member *member;
        struct hf__key_iter iter;

        core->n_live = 0;
        *ret_self = NULL;
        hf__key_iter_init(&iter, &core->members);
        while ((member = (struct hf__shards_member *)hf__key_iter_next(&iter))) {
                if (member->live && is_expired(core, member, now))
                        member->live = false;
                if (!member->live)
                        continue;
                core->live[core->n_live++] = member;
                if (member->key == core->self)
                        *ret_self = member;
                if (member->seen_at + core->lease_duration < expires_at)
                        expires_at = member->seen_at + core->lease_duration;
        }
        return expires_at;
}

hf_nsec hf__shards_core_decide(struct hf__shards_core *core, hf_nsec now) {
        hf_nsec again_at = now + core->lease_duration, settled_at;
        const struct hf__shards_member *self;
        hf_nsec expires_at = collect_live(core, now, &self);

        if (expires_at < again_at)
                again_at = expires_at;
        core->cleans = self && core->live[0] == self;
        for (size_t i = 0; i < core->n_shards; i++) {
                core->shards[i].contends = false;
                core->shards[i].hand_over_to[0] = '\0';
        }
        if (!self)
                return again_at;
        settled_at = core->joined_at + core->retry_period / 2; /* rule 4 */
        if (now < settled_at)
                return settled_at < again_at ? settled_at : again_at;
        set_quotas(core);
        set_targets(core);
        decide_own(core, self);
        return again_at;
}

/* ---- garbage ---- */

/* Four lease durations are long after any other instance, with a slower clock, has seen the Lease
 * expire. */
static bool is_garbage(const struct hf__shards_core *core, const struct hf__shards_member *member,
                       hf_nsec now) {
        return now >= member->seen_at + 4 * core->lease_duration &&
               (member->tried_at == 0 || now >= member->tried_at + core->lease_duration);
}

/* Only one member finds any, so that not all members send the same deletes. A Lease that cannot be
 * deleted must not keep the others from being deleted. So the Leases that were never tried come
 * first, then those whose last try is the oldest. */
const struct hf__shards_member *hf__shards_core_find_garbage(struct hf__shards_core *core,
                                                             hf_nsec now) {
        struct hf__shards_member *found = core->untried.first;

        if (!core->cleans)
                return NULL;
        if (!found || !is_garbage(core, found, now))
                found = core->tried.first;
        if (!found || !is_garbage(core, found, now))
                return NULL;
        leave_queue(queue_of(core, found), found);
        found->tried_at = now;
        join_queue(&core->tried, found);
        return found;
}
