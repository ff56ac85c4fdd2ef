/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A simulated fleet of processes that migrate from an old Lease to a new one: the elector's core
 * over the decisions of the two-Lease lock, in virtual time, against two Leases in memory.
 *
 * Model. Each process knows the old Lease only, both Leases, or the new one only. All that happens
 * is an event with a time: a request arrives at the store, its reply arrives at the process, a
 * watch event arrives, a message from the lock arrives at the core, the work of a term ends.
 * Messages of the lock take time and may be overtaken, as those of several threads are, because the
 * core must decide by what the lock already knows better. With `faults`, requests, replies and
 * watch events are late or lost. A test pauses processes, stops them, and crashes them anywhere,
 * also between the two writes of one operation.
 *
 * At every step the fixture asserts: of the processes that share a Lease at most one acts; no
 * unexpired record is replaced by another process; a process that has stopped and reported its
 * release neither holds a Lease nor takes one again.
 *
 * Everything is drawn from the seed, so one seed is one schedule. Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include "leader/elector_core.h"
#include "leader/two_lease_core.h"
#include "time_units.h"

#define OLD HF__TWO_LEASE_OLD
#define NEW HF__TWO_LEASE_NEW

#define TWO_LEASE_MAX_PROCESSES 3
#define TWO_LEASE_MAX_EVENTS    512

enum two_lease_knowledge { KNOWS_OLD, KNOWS_BOTH, KNOWS_NEW };

enum two_lease_event_type {
        TWO_LEASE_REQUEST,     /* arrives at the store */
        TWO_LEASE_REPLY,       /* arrives at the process */
        TWO_LEASE_WATCH_EVENT, /* arrives at the process */
        TWO_LEASE_MESSAGE,     /* of the lock, arrives at the core */
        TWO_LEASE_JOINED,      /* the work of a term has ended */
};

struct two_lease_event {
        hf_nsec at;
        uint64_t seq; /* the order among events of the same time */
        enum two_lease_event_type type;
        int process;
        unsigned incarnation; /* of the process: events for an earlier one are dropped */
        unsigned watch;       /* of a watch event: which opening of the watch it belongs to */
        enum hf__two_lease_side side;
        bool write; /* of a request and its reply */
        uint32_t op_id;
        hf_nsec deadline;
        int result;
        struct hf__record record;
        enum hf__core_event_type message;
};

struct two_lease_process {
        enum two_lease_knowledge knows;
        bool alive;
        unsigned incarnation;
        unsigned watch; /* how often the watch was opened; 0 = closed */
        char identity[32];
        struct hf__core core;
        struct hf__two_lease two;
        hf_nsec wake_at, paused_until;
        hf_nsec watched_at[HF__TWO_LEASE_SIDES]; /* when the last watch event arrives: they keep
                                                    order */
        bool acts;                               /* its gate is open */
        bool is_done;                            /* it has stopped, and reported that it released */
        hf_nsec valid_until;
        uint32_t write_id; /* of the core's last write */
        unsigned n_requests;
};

struct two_lease_fixture {
        hf_nsec now;
        uint64_t seed, rng, seq, revision;
        struct hf__record lease[HF__TWO_LEASE_SIDES];
        uint64_t term[HF__TWO_LEASE_SIDES];  /* the term records */
        hf_nsec put_at[HF__TWO_LEASE_SIDES]; /* when the holder last changed its record */
        struct two_lease_event events[TWO_LEASE_MAX_EVENTS]; /* that are to come, in no order */
        unsigned n_events;
        struct two_lease_process processes[TWO_LEASE_MAX_PROCESSES];
        unsigned n_processes;
        bool faults;
        unsigned crash_at;  /* the process that gets this reply, of all, crashes; 0 = none */
        unsigned n_replies; /* handled so far */
        bool overlap_is_expected;
        /* what has happened, for the tests to look at */
        unsigned n_overlaps, n_terms[3], n_split_crashes, n_halves, n_given_back, n_undone;
};

/* There is only one: the next call resets it. Begins at 1000 s with revision 100. */
struct two_lease_fixture *two_lease_fixture_new(uint64_t seed);

uint64_t two_lease_fixture_draw(struct two_lease_fixture *f);
bool two_lease_fixture_chance(struct two_lease_fixture *f, unsigned of_1000);
hf_nsec two_lease_fixture_up_to(struct two_lease_fixture *f, hf_nsec most);

/* Starts a process, also in the place of one that crashed or stopped. identity NULL = a new one. */
void two_lease_fixture_start(struct two_lease_fixture *f, int process,
                             enum two_lease_knowledge knows, const char *identity);
void two_lease_fixture_crash(struct two_lease_fixture *f, int process);
/* Feeds the core of a living process an event without content (HF__EV_STOP). */
void two_lease_fixture_order(struct two_lease_fixture *f, int process,
                             enum hf__core_event_type type);
/* Writes a Lease as a foreign client would. The checks apply. */
void two_lease_fixture_put(struct two_lease_fixture *f, enum hf__two_lease_side side,
                           const struct hf__record *record);
void two_lease_fixture_run_for(struct two_lease_fixture *f, hf_nsec duration);
