/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A set of electors (usually all of a process), its one loop thread and that loop's mailbox. */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/leader.h>

#include "base/mailbox.h"
#include "base/sized_struct.h"
#include "leader/elector.h"
#include "leader/kept_texts.h"
#include "leader/stop_thread.h"
#include "leader/taken_names.h"

/* The name and the sizes of struct hf_elector_config; see struct hf__sized. */
extern const struct hf__sized hf__sized_elector_config;

enum hf__electors_state {
        HF__ELECTORS_NEW,
        HF__ELECTORS_STARTING,
        HF__ELECTORS_RUNNING,
        HF__ELECTORS_STOPPING,
        HF__ELECTORS_STOPPED,
        HF__ELECTORS_HUNG, /* stopped, but the loop's thread did not end */
};

/* The first member of an object that lives as long as the electors and is freed with them. */
struct hf__electors_part {
        struct hf__electors_part *next;
        void (*free)(struct hf__electors_part *part);
};

struct hf_electors {
        /* immutable after start */
        const struct hf_host *host; /* borrowed */
        struct hf_elector **list;   /* owned */
        size_t n;
        struct hf__taken_names names;      /* while electors are added */
        struct hf__electors_part *parts;   /* owned; freed after the electors */
        struct hf__lease_watches *watches; /* owned */
        struct hf__holder_watch *holders;  /* owned; NULL = no lock file is used */
        uint64_t first_phase; /* random: when in the retry period the first elector renews; 2^64
                                 stands for the whole period (elector.c) */
        int epoll_fd, timer_fd;
        pthread_t thread;
        bool has_health; /* this set has registered the host's leaderElection checks */

        /* only the loop's thread */
        struct hf__timer_heap timers;
        struct hf_elector *stepped; /* the electors with `stepped` set, linked by next_stepped */
        struct hf__op_queues queues;
        struct hf__kept_texts texts; /* of the cores */
        size_t n_ended;              /* this many electors, the first of the list, have ended */
        size_t n_waiting_threads;    /* for terms that have not begun yet; see next_term.h */
        bool stop_noticed;           /* the messages before the stop were handled */

        /* any thread */
        struct hf__mailbox mailbox;
        atomic_bool stop_requested;
        atomic_bool attention; /* the next iteration includes all electors */
        /* The electors with `is_flagged` set, linked by next_flagged. Any thread adds to it, and
         * the loop takes all of it. */
        struct hf_elector *_Atomic flagged;
        _Atomic uint64_t iterations;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu, and so are the members of struct hf_elector that say so */
        enum hf__electors_state state;
        bool loop_over;               /* every elector is stopped or stuck; the thread is about to
                                         exit */
        hf_nsec stop_by;              /* the latest hf__core_stops_by of any core so far */
        int stop_result;              /* result of the stop, for later callers; HF_E_STUCK after a
                                         start that has failed and left a stuck controller */
        struct hf_status stop_status; /* its message */

        struct hf__stop_thread stop_thread;
};

/* Wakes the loop for all electors. Must be called after setting a flag of the set. Thread: any. */
static inline void hf__electors_wake(struct hf_electors *electors) {
        atomic_store(&electors->attention, true);
        hf__mailbox_wake(&electors->mailbox);
}

/* Wakes the loop for one elector. Must be called after setting a flag of it. Thread: any. */
void hf__elector_wake(struct hf_elector *elector);
