/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The simulator runs several electors against one Lease store, in virtual time. Core and gate are
 * those of the library. Store, network, clocks and the rest of each process are models.
 *
 * One schedule is one seed: one generator makes all random choices, so a seed replays exactly. A
 * schedule has a part with faults ("chaos") and then a part without. Its events are in a heap, and
 * run in the order of true time. Each process sees only its own clock, which may run a little fast
 * or slow, or stand still. A process is a core with a queue of events, a gate, and the work of its
 * term. That work writes to the store all the time. Some writes check the gate first, and some do
 * not.
 *
 *      sim.c       options, counts, output
 *      jobs.c      millions of schedules, in several processes
 *      schedule.c  heap of events, clocks, one schedule
 *      proc.c      steps and actions of a process
 *      net.c       requests and watches, and their faults
 *      store.c     Lease, revisions, term record, fence, restore
 *      unfenced.c  the writes of leaders where there is no fence
 *      chaos.c     which faults happen, and when
 *      planned.c   a schedule without faults, and its speed
 *      slow.c      a crash under a slow server, and the bound of a take-over
 *      queued.c    operations that have to wait before they are sent
 *      check.c     the promises P1 to P6
 *      timeline.c  a schedule as a picture
 *
 * docs/proof.md explains the model, the invariants and how to replay and read a failure.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "leader/core.h"
#include "leader/gate.h"
#include "tests/sim/defects.h"

#define MAX_PROCS   7
#define MAX_OPS     8192
#define MAX_HISTORY 8192
#define MAX_EVENTS  32768
#define MAX_QUEUED  512

#define MS HF_NSEC_PER_MSEC
#define S  HF_NSEC_PER_SEC

/* The counts, and how often each must happen at least in 10,000 schedules. */
#define SIM_COUNTS(X)                                                                              \
        X(terms, 10000)                                                                            \
        X(take_overs, 10000)                                                                       \
        X(takeovers_by_expiry, 1000)                                                               \
        X(planned_releases, 2000)                                                                  \
        X(hand_overs, 200)                                                                         \
        X(hand_overs_to_nobody, 100)                                                               \
        X(hand_overs_by_annotation, 100)                                                           \
        X(stops_following, 500)                                                                    \
        X(stops_not_released, 10)                                                                  \
        X(aborts, 2000)                                                                            \
        X(stuck, 50)                                                                               \
        X(slow_joins, 500)                                                                         \
        X(late_wakes, 50)                                                                          \
        X(deadlines_anew, 200)                                                                     \
        X(pauses, 2000)                                                                            \
        X(frozen_clocks, 1000)                                                                     \
        X(odd_clock_rates, 100)                                                                    \
        X(suspends, 500)                                                                           \
        X(store_hangs, 500)                                                                        \
        X(store_slow, 500)                                                                         \
        X(restores, 500)                                                                           \
        X(restores_under_a_leader, 200)                                                            \
        X(reissued_revisions, 2000)                                                                \
        X(old_writes_applied, 20)                                                                  \
        X(ends_of_term_by_epoch, 100)                                                              \
        X(proofs_of_death, 500)                                                                    \
        X(kills, 2000)                                                                             \
        X(lost_requests, 2000)                                                                     \
        X(lost_replies, 2000)                                                                      \
        X(broken_connections, 2000)                                                                \
        X(refusals, 2000)                                                                          \
        X(hung_requests, 2000)                                                                     \
        X(late_applications, 500)                                                                  \
        X(conflicts, 2000)                                                                         \
        X(watches_lost, 2000)                                                                      \
        X(watches_mute, 500)                                                                       \
        X(stale_watch_events, 500)                                                                 \
        X(deletions, 500)                                                                          \
        X(overwrites, 500)                                                                         \
        X(label_edits, 500)                                                                        \
        X(opaque_revisions, 100)                                                                   \
        X(overlaps_excused, 50)                                                                    \
        X(fenced_writes, 100000)                                                                   \
        X(late_fenced_writes, 2000)                                                                \
        X(stale_writes_refused, 1000)                                                              \
        X(writes_across_a_pause, 200)                                                              \
        X(p3_hand_overs_timed, 200)                                                                \
        X(p3_crashes_timed, 200)                                                                   \
        X(slow_crashes_timed, 0)                                                                   \
        X(slow_crashes_near_bound, 0)                                                              \
        X(unfenced_writes, 20000)                                                                  \
        X(unfenced_in_doubt, 2000)                                                                 \
        X(unfenced_too_late, 100)                                                                  \
        X(unanswered_at_join, 50)                                                                  \
        X(contenders_3, 5000)                                                                      \
        X(contenders_4, 500)                                                                       \
        X(contenders_5, 500)                                                                       \
        X(contenders_6, 500)                                                                       \
        X(contenders_7, 500)                                                                       \
        X(stops_at_a_step, 0)                                                                      \
        X(waits, 0)                                                                                \
        X(requests_while_waiting, 0)                                                               \
        X(tails, 5000)                                                                             \
        X(tails_every_one_leads, 200)                                                              \
        X(events, 0)                                                                               \
        X(steps, 0)

struct sim_counts {
#define X(name, least) uint64_t name;
        SIM_COUNTS(X)
#undef X
};

/* The network of one process. Even a good one loses a request now and then. */
enum sim_network { NET_GOOD, NET_LOSSY, NET_CUT, NET_REFUSING, NET_SLOW, _N_NETWORKS };

enum sim_event_type {
        E_WAKE,
        E_APPLY, /* a request reaches the store */
        E_REPLY,
        E_WATCH,
        E_WATCH_LOST,
        E_WORK,     /* the work of a term writes */
        E_FENCED,   /* a write of that work reaches the store */
        E_UNFENCED, /* the same at a store without a fence */
        E_ANSWER,   /* a write of E_UNFENCED ends at its sender: with a response, or without */
        E_STALE,    /* the elector learns that a write of E_FENCED was refused */
        E_JOIN,     /* the work of a term has ended */
        E_CHAOS,
        E_RESUME,
        E_THAW,
        E_RESTART,
        E_TURN,  /* an operation that waited may be sent */
        E_DEAD,  /* a process learns, by a lock file, that another one is dead */
        E_EPOCH, /* a process learns that the store's history was replaced */
};

struct sim_event {
        hf_nsec at; /* true time */
        uint64_t seq;
        enum sim_event_type type;
        int proc;
        unsigned incarnation;
        uint64_t a, b; /* by type: index of an operation or in the history, generation, term */
};

/* A read or a write of the Lease, from its sending to its reply. */
struct sim_op {
        int proc;
        unsigned incarnation;
        uint32_t op_id;
        bool is_write;
        bool delayed;           /* a slow store has delayed it; this happens only once */
        bool delivered;         /* the core was waiting for the reply when it arrived */
        unsigned n_epochs_seen; /* of the sender, when it sent this */
        bool stale;          /* the sender did not know yet that the store's history was replaced */
        unsigned n_restores; /* of the store: first when this was sent, then when it was applied */
        hf_nsec sent_local, sent_at;
        hf_nsec applied_at, replied_at; /* -1 = not yet, or never */
        hf_nsec reply_after;            /* how long the reply takes; HF_NSEC_NEVER = it is lost */
        struct hf__record record;       /* of a write */
        int result;
        hf_nsec retry_after;
        unsigned history; /* index of the record that the reply carries */
};

/* A write of a term's work at a store without a fence. */
struct sim_work_write {
        int proc;
        unsigned incarnation;
        uint64_t work_gen, term;
        hf_nsec deadline_local; /* the end of the validity; the client gives up then */
        bool ended, answered;   /* at its sender */
        hf_nsec ended_local;    /* if ended; not later than the deadline */
        bool released;          /* its process has released the Lease since */
        bool outlived;          /* its process has begun another term since */
        bool forgotten;         /* its process died without a release */
};

struct sim_proc {
        struct hf__core core;
        struct hf__gate gate;
        char identity[32];
        unsigned incarnation; /* counts the starts */
        bool alive, paused, frozen, restarting;
        hf_nsec paused_at;
        enum sim_network network;

        /* The clock: local = local0 + (true - true0) x rate. */
        hf_nsec local0, true0;
        double rate;
        hf_nsec thawed_at; /* true time at which the clock last stopped standing still */
        int64_t real_offset_us;

        hf_nsec wake_local;
        uint64_t wake_gen;
        hf_nsec last_step_at;
        unsigned n_same_instant;

        /* What arrives during a pause is kept here until the end of the pause. */
        struct sim_event queue[MAX_QUEUED];
        unsigned n_queued;

        uint64_t watch_gen;
        bool watch_open, watch_mute;
        hf_nsec watch_last_at;

        /* The last write of the Lease of which the core learned that it succeeded. */
        hf_nsec ok_sent_local, ok_sent_at;
        unsigned ok_restores; /* restores of the store before it was applied */
        bool outsider_wrote;  /* an outsider changed the Lease after it was sent */

        bool work_alive, joining;
        uint64_t work_gen, term, last_term;
        unsigned last_term_restores;
        int64_t acquire_us;
        bool held_write; /* a write of the work had passed the gate when the process was paused */
        int join_mode;   /* when the work ends: 0 promptly, 1 late in the drain, 2 only after an
                            abort, 3 never */

        /* Of the present or last term, at a store without a fence. */
        unsigned n_unanswered; /* writes that have not ended */
        hf_nsec doubt_at;      /* local time at which the last write ended whose outcome is
                                  unknown; 0 = none */

        bool stop_asked;
        bool clean_since_stop; /* nothing has failed since the stop was requested */
        bool has_written;
        unsigned last_write;    /* the last operation of this incarnation that is a write */
        bool old_write_applied; /* a write from before a restore was applied after it: its revision
                                   was issued again */
        bool stopped_free;  /* at its stop the process reported that the Lease does not name it */
        unsigned n_steps;   /* of this incarnation */
        bool op_went_wrong; /* the last operation met a fault */
        hf_nsec stop_by_local;
        hf_nsec stuck_by_local; /* if ABORTING: the state must end by then */
        hf_nsec wakes_late;     /* true time by which each wake-up is late */
        bool stale_history; /* the store's history was replaced, and the process does not know it
                               yet */
        unsigned n_epochs_seen; /* replacements of the history of which the process knows */
        bool must_read;         /* it learned of a replacement and has not read the Lease since */
        bool short_abort;       /* its present term was short and ends by a loss */
        hf_nsec contend_from;   /* local time before which it may not contend, after a short term */
        hf_nsec term_local;     /* when its term began */
        bool op_waits, has_turn; /* the operation waits; its turn is now, and it was not sent yet */
        uint64_t wait_gen;
        hf_nsec late_until; /* true time until which the store may apply a late request of it */
};

struct sim_term_record {
        uint64_t revision; /* names the term; 0 = there is no record */
        char holder[32];
        int64_t acquire_us;
};

/* Stops one process after one of its steps. */
struct sim_sweep {
        bool on, calm; /* calm: without other faults */
        int proc;
        unsigned at;      /* the step after which it is stopped; 0 = never */
        unsigned n_steps; /* steps that the process has made */
};

/* What a timeline shows besides the operations and the Lease's history. */
enum sim_mark_kind {
        MARK_STATE,
        MARK_VALID,
        MARK_PAUSE,
        MARK_FREEZE,
        MARK_NETWORK,
        MARK_NOTE,
        MARK_REFUSED,
        MARK_STORE,
        MARK_VIOLATION
};

struct sim_mark {
        enum sim_mark_kind kind;
        int proc; /* -1 = the store */
        hf_nsec at, until;
        int value; /* state or network; -1 = not alive */
        char text[64];
};

struct sim {
        struct sim_counts *counts;
        uint64_t rng, unfenced_rng;
        bool trace;
        bool steps; /* print each step that the model knows, and make only its faults */
        bool clean; /* a schedule without faults, whose speed is measured */
        bool slow;  /* a schedule of slow.c; is_slow: the server is slow now */
        bool is_slow;
        bool has_steady_network; /* every delay of the network is the same */
        bool queued;             /* operations may have to wait, see queued.c */
        int slow_victim;         /* the leader that will die; -1 = not chosen yet */
        hf_nsec slow_cut_until;  /* until then its requests are lost */
        bool calm;               /* nothing fails at random, now */
        bool opaque;             /* a foreign server, whose revisions are not numbers */
        bool fence_off;          /* a foreign server, which has no fence */
        bool draw;               /* keep the marks of a timeline */
        enum sim_defect defect;
        bool by_effect; /* make no early checks, see check.c */
        struct hf_leader_timing timing;
        int n_procs;
        struct sim_sweep sweep;
        hf_nsec now, chaos_until;
        hf_nsec longest_gap; /* between two faults */
        struct sim_proc procs[MAX_PROCS];

        struct sim_event heap[MAX_EVENTS];
        unsigned n_events;
        uint64_t seq;
        struct sim_op ops[MAX_OPS];
        unsigned n_ops;
        struct sim_work_write work_writes[MAX_OPS];
        unsigned n_work_writes;

        /* The store. */
        struct hf__record history[MAX_HISTORY];
        struct sim_term_record terms[MAX_HISTORY]; /* the term record, by history index */
        hf_nsec put_times[MAX_HISTORY];
        unsigned n_history; /* the last record is the present Lease */
        uint64_t revision, highest_revision;
        struct sim_term_record term;
        unsigned n_restores, restored_index;    /* history index of the last restored record */
        hf_nsec hung_until, slow_until;         /* until then it does not reply; it replies late */
        uint64_t newest_term, last_commit_term; /* last term acquired; term of the last commit */
        hf_nsec outsider_at; /* when an outsider last changed the Lease; -1 = never */

        /* The speed of a clean schedule. */
        hf_nsec release_at;  /* of the last release */
        hf_nsec last_put_at; /* of the last write */
        hf_nsec put_at;      /* of the last write before a take-over */
        hf_nsec took_at;
        bool took;

        struct hf__core_actions actions;
        struct hf__core_event event;
        jmp_buf violated;
        char violation[256];

        struct sim_mark *marks; /* owned */
        unsigned n_marks, max_marks;
};

/* sim.c */
void sim_violate(struct sim *sim, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_print_step(const char *identity, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
#define TRACE(sim, ...)                                                                            \
        do {                                                                                       \
                if ((sim)->trace)                                                                  \
                        sim_trace(sim, __VA_ARGS__);                                               \
        } while (0)
/* A step of a process that the model in leader/model knows too; tests/model/replay.py reads it. */
#define STEP(sim, p, ...)                                                                          \
        do {                                                                                       \
                if ((sim)->steps)                                                                  \
                        sim_print_step((sim)->procs[p].identity, __VA_ARGS__);                     \
        } while (0)
#define COUNT(sim, name) ((sim)->counts->name++)

/* timeline.c. Marks are kept only if sim->draw is set. */
void sim_mark(struct sim *sim, enum sim_mark_kind kind, int proc, hf_nsec until, int value,
              const char *text);
void sim_mark_resumed(struct sim *sim, int proc); /* a pause ends, perhaps early */
int sim_timeline_write(const struct sim *sim, const char *path, uint64_t seed,
                       hf_nsec last); /* last: shows the end only; 0 = all */

/* jobs.c */
struct sim_plan {
        uint64_t seed, n_schedules;
        int electors, n_jobs;
        bool sweep; /* stop one process at each of its steps */
        bool slow;  /* schedules of slow.c */
        bool queued;
        bool progress;
        enum sim_defect defect;
        bool by_effect;
};
struct sim_failure {
        bool found;
        uint64_t seed, nth; /* nth: schedules that the job ran before it */
        struct sim_sweep sweep;
        hf_nsec at;
        char violation[256];
};
/* Runs the plan in n_jobs processes. Returns 0, also when a promise was broken, or -errno. */
int sim_run(const struct sim_plan *plan, struct sim_counts *counts, struct sim_failure *ret_failure,
            uint64_t *ret_n_run);

/* schedule.c */
uint64_t sim_draw(struct sim *sim);
hf_nsec sim_between(struct sim *sim, hf_nsec low, hf_nsec high);
bool sim_chance(struct sim *sim, unsigned percent);
hf_nsec sim_local_time(const struct sim *sim, const struct sim_proc *proc);
void sim_set_clock(struct sim *sim, struct sim_proc *proc, double rate, bool frozen);
void sim_event_at(struct sim *sim, hf_nsec at, enum sim_event_type type, int proc, uint64_t a,
                  uint64_t b);
void sim_dispatch(struct sim *sim, const struct sim_event *event);
void sim_run_until(struct sim *sim, hf_nsec until);
/*
 * Runs one schedule, with the stop of sim->sweep if there is one. Returns false if a promise was
 * broken, see sim->violation.
 */
bool sim_schedule(struct sim *sim, uint64_t seed, int n_procs);

/* proc.c */
void sim_proc_boot(struct sim *sim, int p);
void sim_proc_kill(struct sim *sim, int p);
/* Some of the other processes are on the same host, and learn soon that process p is dead. */
void sim_proc_prove_death(struct sim *sim, int p);
void sim_proc_resume(struct sim *sim, int p);
void sim_proc_step(struct sim *sim, int p); /* handles sim->event */
void sim_proc_event(struct sim *sim, int p, enum hf__core_event_type type);
void sim_proc_set_wake(struct sim *sim, int p);
void sim_proc_stop(struct sim *sim, int p);
void sim_proc_epoch(struct sim *sim, int p);
void sim_proc_work(struct sim *sim, int p);
void sim_proc_join(struct sim *sim, int p);
bool sim_is_leading(const struct sim_proc *proc);
hf_nsec
sim_state_limit(const struct sim_proc *proc); /* how long its state may last; 0 = no limit */
int sim_leader(struct sim *sim); /* the process that may act now, by its gate; -1 = none */

/* net.c */
void sim_net_send(struct sim *sim, int p, const struct hf__core_action *action);
void sim_net_apply(struct sim *sim, uint64_t op);
void sim_net_reply(struct sim *sim, uint64_t op);
void sim_net_watch(struct sim *sim, int p);
void sim_net_unwatch(struct sim *sim, int p);
void sim_net_notify(struct sim *sim); /* sends the present Lease to all watches */

/* store.c */
int sim_store_write(struct sim *sim, const struct sim_op *op);
void sim_store_put(struct sim *sim, const struct hf__record *record); /* without a condition */
void sim_store_restore(struct sim *sim);
void sim_store_fenced(struct sim *sim, const struct sim_event *event);
const struct hf__record *sim_store_lease(const struct sim *sim);

/* unfenced.c */
void sim_unfenced_begin(struct sim *sim, uint64_t seed); /* decides whether there is a fence */
void sim_unfenced_term(struct sim *sim, int p);          /* a term begins */
void sim_unfenced_abort(struct sim *sim, int p);         /* the term is aborted with its writes */
void sim_unfenced_kill(struct sim *sim, int p);
void sim_unfenced_send(struct sim *sim, int p, hf_nsec under_way);
void sim_unfenced_answer(struct sim *sim, const struct sim_event *event);
void sim_unfenced_arrive(struct sim *sim, uint64_t write);
void sim_unfenced_release(struct sim *sim, const struct sim_op *op); /* op releases the Lease */
bool sim_unfenced_delays_join(struct sim *sim, int p); /* the work waits for a response first */
/* The value of hf__core_event.doubt_at. */
hf_nsec sim_unfenced_doubt_at(const struct sim_proc *proc);
/* Whether no write of the last term has to be expected any more. */
bool sim_unfenced_is_settled(const struct sim *sim, const struct sim_proc *proc);

/* chaos.c */
void sim_chaos(struct sim *sim);
void sim_chaos_end(struct sim *sim);
void sim_hand_over(struct sim *sim, int p, const char *successor);
void sim_note_outsider(
        struct sim *sim); /* the Lease was changed by something that obeys no lease */

/* slow.c */
void sim_slow(struct sim *sim);
void sim_slow_send(struct sim *sim, struct sim_op *op); /* only while is_slow, like the next two */
hf_nsec sim_slow_event_delay(struct sim *sim);
void sim_slow_watch(struct sim *sim, int p);

/* queued.c */
bool sim_queue_holds(struct sim *sim, int p);
void sim_queue_turn(struct sim *sim, int p, uint64_t wait_gen);
bool sim_queue_is_unsent(const struct sim_proc *proc);

/* planned.c */
void sim_planned(struct sim *sim, bool crash);

/* check.c */
void sim_check_p1(struct sim *sim);
void sim_check_write(struct sim *sim,
                     const struct sim_op *op); /* called just before the write is applied */
void sim_check_actions(struct sim *sim, int p, const struct hf__core_action *action);
void sim_check_stopped(struct sim *sim, int p, bool released);
void sim_check_overdue(struct sim *sim, int p);
