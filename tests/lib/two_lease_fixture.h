/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A simulated fleet of processes that migrate from an old Lease to a new one: the elector's core
 * and the two-Lease lock, in virtual time, over two Leases in memory.
 *
 * Model. Each process knows only the old Lease, both Leases, or only the new one. The simulation
 * consists of events with a time: a request arrives at the store, its reply arrives at the process,
 * a watch event arrives, a message from the lock arrives at the core, the work of a term ends.
 * Messages of the lock take time and may overtake each other, because in the product several
 * threads send them. With `faults`, requests, replies and watch events are delayed or lost. A test
 * can pause and stop processes, and crash them anywhere, even between the two writes of one
 * operation.
 *
 * The fixture asserts: when a term begins no other process acts, unless overlap_is_expected; no
 * process replaces the unexpired record of another one; a process that has stopped and reported its
 * release neither holds a Lease nor acquires one again.
 *
 * All random choices come from the seed, so each seed is one schedule. Single-threaded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "leader/core.h"
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
        TWO_LEASE_MESSAGE,     /* from the lock, arrives at the core */
        TWO_LEASE_JOINED,      /* the work of a term has ended */
};

struct two_lease_event {
        hf_nsec at;
        uint64_t seq; /* orders events of the same time */
        enum two_lease_event_type type;
        int process;
        unsigned incarnation; /* of the process; events for an earlier one are dropped */
        unsigned watch;       /* for a watch event: the number of the watch that it belongs to */
        enum hf__two_lease_side side;
        bool write; /* for a request and its reply */
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
        unsigned watch;     /* number of the open watch; 0 = no watch */
        unsigned n_watches; /* opened so far */
        char identity[32];
        struct hf__core core;
        struct hf__two_lease two;
        hf_nsec wake_at, paused_until;
        hf_nsec watched_at[HF__TWO_LEASE_SIDES]; /* when the last watch event arrives: a later event
                                                    must not arrive earlier */
        uint64_t watched_revision[HF__TWO_LEASE_SIDES]; /* of the last watch event that arrived */
        bool acts;                                      /* its gate is open */
        bool is_done;    /* it has stopped and reported its release */
        bool is_stopped; /* it was asked to stop */
        bool works;      /* the work of a term runs */
        hf_nsec valid_until;
        uint32_t write_id; /* id of the last write of the core */
        unsigned n_requests;
};

struct two_lease_fixture {
        hf_nsec now;
        uint64_t seed, rng, seq, revision;
        struct hf__record lease[HF__TWO_LEASE_SIDES];
        uint64_t term[HF__TWO_LEASE_SIDES];  /* the term records */
        hf_nsec put_at[HF__TWO_LEASE_SIDES]; /* when the holder last changed its record */
        struct two_lease_event events[TWO_LEASE_MAX_EVENTS]; /* pending events, unordered */
        unsigned n_events;
        struct two_lease_process processes[TWO_LEASE_MAX_PROCESSES];
        unsigned n_processes;
        bool faults;
        unsigned crash_at; /* the process that gets this reply, counted over all processes, crashes;
                              0 = none */
        unsigned n_replies; /* handled so far */
        bool overlap_is_expected;
        /* The steps that leader/model/two_lease.pml knows are printed here, and the model judges
         * them: the fixture asserts nothing, and no outsider writes. NULL = nothing is printed */
        FILE *steps;
        /* counts for the tests */
        unsigned n_overlaps, n_terms[3], n_split_crashes, n_half_held, n_given_back, n_undone;
};

/* Begins at 1000 s with revision 100. There is one fixture: the next call resets it. */
struct two_lease_fixture *two_lease_fixture_new(uint64_t seed);

uint64_t two_lease_fixture_random(struct two_lease_fixture *f);
bool two_lease_fixture_chance(struct two_lease_fixture *f, unsigned of_1000);
hf_nsec two_lease_fixture_random_below(struct two_lease_fixture *f, hf_nsec most);

/* Starts a process, or replaces one that crashed or stopped. identity NULL = a new one. */
void two_lease_fixture_start(struct two_lease_fixture *f, int process,
                             enum two_lease_knowledge knows, const char *identity);
void two_lease_fixture_crash(struct two_lease_fixture *f, int process);
/* Feeds the core of a living process an event without content, for example HF__EV_STOP. */
void two_lease_fixture_feed(struct two_lease_fixture *f, int process,
                            enum hf__core_event_type type);
/* Writes a Lease as a foreign client would. The assertions apply. */
void two_lease_fixture_put(struct two_lease_fixture *f, enum hf__two_lease_side side,
                           const struct hf__record *record);
/* Runs a fleet of processes that know a or b under faults, crashes, pauses and stops. */
void two_lease_fixture_run_fleet(struct two_lease_fixture *f, enum two_lease_knowledge a,
                                 enum two_lease_knowledge b, hf_nsec duration);
void two_lease_fixture_run_for(struct two_lease_fixture *f, hf_nsec duration);
