/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of strangers, grouped by address, and the choice of the one to close (strangers.h).
 *
 * A group exists while it has members. Its list is ordered by activity, the least recent first. The
 * search for the largest group visits every group, but it happens only when a connection has to be
 * closed and the new connection's address has less than its share; there are at most as many groups
 * as members.
 *
 * Invariants: n is the sum of the groups' n, and no group is empty.
 */
#include "server/http/limits/strangers.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct hfd_stranger_group {
        struct hfd_stranger_group *next; /* in the bucket */
        struct hfd_stranger_key key;
        struct hfd_stranger *oldest, *newest;
        size_t n;
};

/* A listener for both kinds of addresses sees IPv4 clients at mapped IPv6 addresses. Their first 64
 * bits are all the same, so they are grouped by the IPv4 address. */
struct hfd_stranger_key hfd_stranger_key(const struct sockaddr_storage *address) {
        struct hfd_stranger_key key = {.family = address->ss_family};
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

        if (address->ss_family == AF_INET) {
                memcpy(key.bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
        } else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(in6)) {
                key.family = AF_INET;
                memcpy(key.bytes, in6->s6_addr + 12, 4);
        } else if (address->ss_family == AF_INET6) {
                memcpy(key.bytes, in6, 8);
        }
        return key;
}

static bool key_equals(const struct hfd_stranger_key *a, const struct hfd_stranger_key *b) {
        return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* Hashes a key with FNV-1a. A client does not know the initial value, so it cannot choose keys that
 * share a bucket. */
static size_t bucket_of(const struct hfd_strangers *set, const struct hfd_stranger_key *key) {
        uint64_t hash = set->seed ^ 0xcbf29ce484222325u;

        for (size_t i = 0; i < sizeof key->bytes; i++)
                hash = (hash ^ key->bytes[i]) * 0x100000001b3u;
        return (size_t)((hash ^ hash >> 32) % HFD_STRANGER_BUCKETS);
}

static struct hfd_stranger_group *find_group(const struct hfd_strangers *set,
                                             const struct hfd_stranger_key *key) {
        struct hfd_stranger_group *group = set->buckets[bucket_of(set, key)];

        while (group && !key_equals(&group->key, key))
                group = group->next;
        return group;
}

static struct hfd_stranger_group *make_group(struct hfd_strangers *set,
                                             const struct hfd_stranger_key *key) {
        struct hfd_stranger_group **bucket = &set->buckets[bucket_of(set, key)];
        struct hfd_stranger_group *group = calloc(1, sizeof *group);

        if (!group)
                return NULL;
        group->key = *key;
        group->next = *bucket;
        *bucket = group;
        set->n_groups++;
        return group;
}

/* A group is dropped at once when its last member leaves, because n_groups is the number of
 * addresses among which the places are shared. */
static void drop_group(struct hfd_strangers *set, struct hfd_stranger_group *group) {
        struct hfd_stranger_group **at = &set->buckets[bucket_of(set, &group->key)];

        assert(group->n == 0 && set->n_groups > 0);
        while (*at != group)
                at = &(*at)->next;
        *at = group->next;
        set->n_groups--;
        free(group);
}

static void append_stranger(struct hfd_stranger_group *group, struct hfd_stranger *stranger) {
        stranger->newer = NULL;
        assert(!group->newest || !group->newest->newer);
        stranger->older = group->newest;
        if (group->newest)
                group->newest->newer = stranger;
        else
                group->oldest = stranger;
        group->newest = stranger;
}

static void unlink_stranger(struct hfd_stranger_group *group, struct hfd_stranger *stranger) {
        assert(stranger->older ? stranger->older->newer == stranger : group->oldest == stranger);
        if (stranger->older)
                stranger->older->newer = stranger->newer;
        else
                group->oldest = stranger->newer;
        if (stranger->newer)
                stranger->newer->older = stranger->older;
        else
                group->newest = stranger->older;
}

void hfd_strangers_init(struct hfd_strangers *set, uint64_t seed) {
        *set = (struct hfd_strangers){.seed = seed};
}

void hfd_strangers_done(struct hfd_strangers *set) { assert(set->n == 0 && set->n_groups == 0); }

int hfd_strangers_add(struct hfd_strangers *set, struct hfd_stranger *stranger,
                      const struct hfd_stranger_key *key, hf_nsec now) {
        struct hfd_stranger_group *group = find_group(set, key);

        assert(!stranger->set);
        if (!group)
                group = make_group(set, key);
        if (!group)
                return -ENOMEM;
        *stranger =
                (struct hfd_stranger){.set = set, .group = group, .key = *key, .active_at = now};
        append_stranger(group, stranger);
        group->n++;
        set->n++;
        return 0;
}

void hfd_strangers_remove(struct hfd_stranger *stranger) {
        struct hfd_strangers *set = stranger->set;
        struct hfd_stranger_group *group = stranger->group;

        if (!set)
                return;
        assert(group->n > 0 && set->n >= group->n);
        unlink_stranger(group, stranger);
        group->n--;
        set->n--;
        if (group->n == 0)
                drop_group(set, group);
        *stranger = (struct hfd_stranger){0};
}

/* The connection calls it for each complete head, not for every byte. So a client that sends
 * slowly, to occupy a place for long, stays the next one of its address to be closed. */
void hfd_strangers_touch(struct hfd_stranger *stranger, hf_nsec now) {
        if (!stranger->set)
                return;
        assert(stranger->group);
        unlink_stranger(stranger->group, stranger);
        append_stranger(stranger->group, stranger);
        stranger->active_at = now;
}

static struct hfd_stranger_group *find_largest(const struct hfd_strangers *set) {
        struct hfd_stranger_group *largest = NULL;

        for (size_t i = 0; i < HFD_STRANGER_BUCKETS; i++)
                for (struct hfd_stranger_group *g = set->buckets[i]; g; g = g->next)
                        if (!largest || g->n > largest->n)
                                largest = g;
        return largest;
}

struct hfd_stranger *hfd_strangers_victim(const struct hfd_strangers *set,
                                          const struct hfd_stranger_key *key, hf_nsec now,
                                          hf_nsec min_age) {
        const struct hfd_stranger_group *own = find_group(set, key);

        assert(!own || own->n > 0);
        /* The new address has no group, or one with less than an equal share. The address with the
         * most connections gives one up whatever its age: min_age protects the clients of one host
         * from each other only. */
        if (!own || own->n * set->n_groups < set->n) {
                const struct hfd_stranger_group *largest = find_largest(set);

                if (largest && largest != own)
                        return largest->oldest;
        }
        return own && now - own->oldest->active_at >= min_age ? own->oldest : NULL;
}
