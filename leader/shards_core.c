/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides shards over the live members of a group. shards_core.h has the rules.
 *
 * Invariants: `members` is sorted by key. All processes must go through the members in the same
 * order, or they would compute different divisions from the same view. A decision depends on the
 * records and on this process's clock alone, because machines' clocks differ: times that others
 * have written into a record are only compared for equality.
 */
#include "leader/shards_core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX

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
        free(core->members);
        free(core->shards);
}

/* ---- observations ---- */

/* Returns the index of the first member whose key is not less than `key`; n_members = none. A group
 * has as many members as instances, so a search from the beginning is quick enough. */
static size_t find_place(const struct hf__shards_core *core, uint64_t key) {
        size_t at = 0;

        while (at < core->n_members && core->members[at].key < key)
                at++;
        return at;
}

static struct hf__shards_member *find_member(const struct hf__shards_core *core, uint64_t key) {
        size_t at = find_place(core, key);

        return at < core->n_members && core->members[at].key == key ? &core->members[at] : NULL;
}

static struct hf__shards_member *add_member(struct hf__shards_core *core, uint64_t key) {
        size_t at = find_place(core, key);
        struct hf__shards_member *members =
                realloc(core->members, (core->n_members + 1) * sizeof *members);

        if (!members)
                return NULL;
        core->members = members;
        memmove(members + at + 1, members + at, (core->n_members - at) * sizeof *members);
        members[at] = (struct hf__shards_member){.key = key};
        core->n_members++;
        return &members[at];
}

static bool is_expired(const struct hf__shards_core *core, const struct hf__shards_member *member,
                       hf_nsec now) {
        return now >= member->seen_at + core->lease_duration;
}

bool hf__shards_core_saw_member(struct hf__shards_core *core, uint64_t key, const char *identity,
                                int64_t renew_us, hf_nsec now) {
        struct hf__shards_member *member = find_member(core, key);
        bool held = identity[0] != '\0' && strlen(identity) <= HF_IDENTITY_MAX;

        if (!member) {
                member = add_member(core, key);
                if (!member)
                        return false;
        } else if (member->held == held && member->renew_us == renew_us) {
                return false; /* the same record again, for example from another list */
        }
        bool was_live = member->live && !is_expired(core, member, now);
        bool is_proof = held && member->held && !is_expired(core, member, now);

        member->live = is_proof;
        if (is_proof && !was_live)
                core->joined_at = now;
        member->held = held;
        member->renew_us = renew_us;
        member->seen_at = now;
        if (held)
                strcpy(member->identity, identity);
        return was_live != member->live;
}

void hf__shards_core_lost_member(struct hf__shards_core *core, uint64_t key) {
        struct hf__shards_member *member = find_member(core, key);

        if (!member)
                return;
        size_t n_after = (size_t)(core->members + core->n_members - (member + 1));
        memmove(member, member + 1, n_after * sizeof *member);
        assert(core->n_members > 0);
        core->n_members--;
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
        return true;
}

/* ---- the division ---- */

/* The index of the live member with this identity. NONE: there is none, so its shards are free to
 * be given to others. */
static size_t find_live(const struct hf__shards_core *core, const char *identity) {
        for (size_t i = 0; i < core->n_members; i++)
                if (core->members[i].live && strcmp(core->members[i].identity, identity) == 0)
                        return i;
        return NONE;
}

/* Gives one more to members of one kind, in the order of their keys: those that hold more than
 * `least`, or the others. Returns how many are left to give. */
static size_t give_extras(struct hf__shards_core *core, size_t least, bool holds_more,
                          size_t n_extras) {
        for (size_t i = 0; i < core->n_members && n_extras > 0; i++) {
                struct hf__shards_member *member = &core->members[i];
                if (member->live && (member->n_held > least) == holds_more) {
                        member->quota++;
                        n_extras--;
                }
        }
        return n_extras;
}

/* Applies rule 2 of shards_core.h. */
static void set_quotas(struct hf__shards_core *core, size_t n_live) {
        size_t least = core->n_shards / n_live, n_extras = core->n_shards % n_live;

        for (size_t i = 0; i < core->n_members; i++) {
                core->members[i].n_held = 0;
                core->members[i].quota = core->members[i].live ? (unsigned)least : 0;
        }
        for (size_t i = 0; i < core->n_shards; i++) {
                size_t owner = find_live(core, core->shards[i].owner);
                core->shards[i].target = owner;
                if (owner != NONE)
                        core->members[owner].n_held++;
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
                if (shard->target == NONE)
                        continue;
                struct hf__shards_member *owner = &core->members[shard->target];
                if (owner->quota == 0)
                        shard->target = NONE;
                else
                        owner->quota--;
        }
        for (size_t i = 0; i < core->n_shards; i++) {
                if (core->shards[i].target != NONE)
                        continue;
                while (core->members[next].quota == 0)
                        next++;
                core->members[next].quota--;
                core->shards[i].target = next;
        }
}

/* Turns the targets into this process's decisions. */
static void decide_own(struct hf__shards_core *core, size_t self) {
        for (size_t i = 0; i < core->n_shards; i++) {
                struct hf__shards_shard *shard = &core->shards[i];
                const struct hf__shards_member *target = &core->members[shard->target];

                shard->contends = shard->target == self;
                if (shard->target != self && shard->held &&
                    strcmp(shard->owner, core->members[self].identity) == 0)
                        strcpy(shard->hand_over_to, target->identity);
        }
}

hf_nsec hf__shards_core_decide(struct hf__shards_core *core, hf_nsec now) {
        hf_nsec again_at = now + core->lease_duration, settled_at;
        size_t n_live = 0, self = NONE;

        for (size_t i = 0; i < core->n_members; i++) {
                struct hf__shards_member *member = &core->members[i];
                if (member->live && is_expired(core, member, now))
                        member->live = false;
                if (!member->live)
                        continue;
                n_live++;
                if (member->key == core->self)
                        self = i;
                if (member->seen_at + core->lease_duration < again_at)
                        again_at = member->seen_at + core->lease_duration;
        }
        for (size_t i = 0; i < core->n_shards; i++) {
                core->shards[i].contends = false;
                core->shards[i].hand_over_to[0] = '\0';
        }
        if (self == NONE)
                return again_at;
        settled_at = core->joined_at + core->retry_period / 2; /* rule 4 */
        if (now < settled_at)
                return settled_at < again_at ? settled_at : again_at;
        set_quotas(core, n_live);
        set_targets(core);
        decide_own(core, self);
        return again_at;
}

/* Whether the member's Lease may be deleted now. Four lease durations are long after any other
 * instance, with a slower clock, has seen it expire. */
static bool is_garbage(const struct hf__shards_core *core, const struct hf__shards_member *member,
                       hf_nsec now) {
        return !member->live && now >= member->seen_at + 4 * core->lease_duration &&
               (member->tried_at == 0 || now >= member->tried_at + core->lease_duration);
}

/* Only the first live member finds any, so that not all members send the same deletes. A Lease that
 * cannot be deleted must not keep the others from being deleted. So the Leases that were never
 * tried come first, then those whose last try is the oldest. */
bool hf__shards_core_find_garbage(struct hf__shards_core *core, hf_nsec now, uint64_t *ret_key) {
        struct hf__shards_member *found = NULL, *first = core->members;
        struct hf__shards_member *end = first + core->n_members;

        while (first < end && !first->live)
                first++;
        if (first == end || first->key != core->self)
                return false;
        for (struct hf__shards_member *member = core->members; member < end; member++)
                if (is_garbage(core, member, now) && (!found || member->tried_at < found->tried_at))
                        found = member;
        if (!found)
                return false;
        found->tried_at = now;
        *ret_key = found->key;
        return true;
}
