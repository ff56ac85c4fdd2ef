/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The connections of one worker whose senders are not known yet, grouped by address. When their
 * places are used up, hfd_strangers_victim chooses the one to close, so that an address with many
 * connections takes no places from addresses with few.
 *
 * An address is an IPv4 address, or the first 64 bits of an IPv6 address, because one customer
 * commonly gets that many. All peers of a unix socket share one group.
 *
 * Pure. Threads: the worker only. No lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <holdfast/clock.h>

struct hfd_strangers;
struct hfd_stranger_group;

/* The part of an address that identifies its group, padded with 0. */
struct hfd_stranger_key {
        sa_family_t family;
        uint8_t bytes[8];
};

struct hfd_stranger_key hfd_stranger_key(const struct sockaddr_storage *address);

/* A member of the connection. Zero-initialized: in no set. */
struct hfd_stranger {
        struct hfd_strangers *set;          /* borrowed; NULL = in no set */
        struct hfd_stranger_group *group;   /* borrowed from the set */
        struct hfd_stranger *older, *newer; /* within the group */
        struct hfd_stranger_key key;
        hf_nsec active_at; /* boot time of the last activity */
};

#define HFD_STRANGER_BUCKETS 256

struct hfd_strangers {
        struct hfd_stranger_group *buckets[HFD_STRANGER_BUCKETS]; /* owned */
        size_t n, n_groups;
        uint64_t seed; /* so that a stranger cannot choose which addresses share a bucket */
};

void hfd_strangers_init(struct hfd_strangers *set, uint64_t seed);
void hfd_strangers_done(struct hfd_strangers *set); /* the set must be empty */

/* Adds it as its address's newest. 0 or -ENOMEM. */
int hfd_strangers_add(struct hfd_strangers *set, struct hfd_stranger *stranger,
                      const struct hfd_stranger_key *key, hf_nsec now);
/* Does nothing if it is in no set. */
void hfd_strangers_remove(struct hfd_stranger *stranger);
/* Records activity: it becomes its address's newest. Does nothing if it is in no set. */
void hfd_strangers_touch(struct hfd_stranger *stranger, hf_nsec now);

/*
 * The connection to close for a new one from an address: the oldest one of the same address if that
 * has at least an average share, otherwise the oldest one of the address with the most. A
 * connection of the same address is only chosen if it was inactive for min_age: otherwise many
 * clients of one host that connect at once would end each other's unfinished handshakes. "Oldest"
 * means: inactive for the longest time. NULL: close the new connection.
 */
struct hfd_stranger *hfd_strangers_victim(const struct hfd_strangers *set,
                                          const struct hfd_stranger_key *key, hf_nsec now,
                                          hf_nsec min_age);
