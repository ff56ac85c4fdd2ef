/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Strangers: connections of one worker whose senders are not known (connection.c says when they
 * are), grouped by address. A worker has one set for those in the TLS handshake, and one for the
 * others. When the places of a set are used up, hfd_strangers_victim chooses the one to close, so
 * that an address with many connections takes no places from addresses with few.
 *
 * An address is an IPv4 address, or the first 64 bits of an IPv6 address, because one customer
 * commonly has all addresses with the same first 64 bits. All peers of a unix socket share one
 * group.
 *
 * No I/O: the caller passes the time. Thread: the worker only. No lock.
 */
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

/* Embedded in struct hfd_connection. Zero-initialized: in no set. */
struct hfd_stranger {
        struct hfd_strangers *set;          /* borrowed; NULL = in no set */
        struct hfd_stranger_group *group;   /* borrowed from the set */
        struct hfd_stranger *older, *newer; /* within the group */
        struct hfd_stranger_key key;
        hf_nsec active_at; /* boot time of the last activity */
};

#define HFD_STRANGER_BUCKETS 256 /* by default a worker has 2000 strangers at most */

struct hfd_strangers {
        struct hfd_stranger_group *buckets[HFD_STRANGER_BUCKETS]; /* owned */
        size_t n, n_groups;
        uint64_t seed; /* so that a stranger cannot choose which addresses share a bucket */
};

void hfd_strangers_init(struct hfd_strangers *set, uint64_t seed);
void hfd_strangers_done(struct hfd_strangers *set); /* the set must be empty */

/* Adds the stranger to the set, as the newest of its address. 0 or -ENOMEM. */
int hfd_strangers_add(struct hfd_strangers *set, struct hfd_stranger *stranger,
                      const struct hfd_stranger_key *key, hf_nsec now);
/* Removes the stranger from its set, if it is in one. */
void hfd_strangers_remove(struct hfd_stranger *stranger);
/* Records activity: the stranger becomes the newest of its address. Does nothing if it is in no
 * set. */
void hfd_strangers_touch(struct hfd_stranger *stranger, hf_nsec now);

/*
 * The connection to close for a new one from an address: the oldest one of the same address if this
 * address has at least an average share, otherwise the oldest one of the address with the most. A
 * connection of the same address is only chosen if it was inactive for min_age: otherwise many
 * clients of one host that connect at once would end each other's unfinished handshakes. "Oldest"
 * means: inactive for the longest time. NULL: close the new connection.
 */
struct hfd_stranger *hfd_strangers_victim(const struct hfd_strangers *set,
                                          const struct hfd_stranger_key *key, hf_nsec now,
                                          hf_nsec min_age);
