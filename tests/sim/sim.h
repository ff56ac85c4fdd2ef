/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The simulator: N electors (the real core, the real gate), one Lease store, their network and
 * clocks, in virtual time.
 *
 * One schedule = one seed: everything is drawn from one generator, so that a seed replays to the
 * letter. A schedule has a stretch of chaos and a faultless tail. The world is a heap of events by
 * true time; each process sees its own clock, which may run a little fast or slow, or stand still.
 * A process is a core plus what a shell would be: a mailbox, a gate, and the work of a term with
 * two writers, one that asks the gate and one that does not.
 *
 *      sim.c    options, counts, what is said             jobs.c     schedules by the million, over
 * several processes world.c  heap, clocks, a schedule                  proc.c     steps and actions
 * of a process net.c    operations and watches, their faults      store.c    Lease, revisions, term
 * record, fence, restore chaos.c  what goes wrong, when                     planned.c  what a
 * faultless schedule does, and how fast check.c  the promises P1-P6 timeline.c a schedule as a
 * picture
 *
 * docs/proof.md explains the model, the invariants and how to replay and read a failure.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "leader/elector_core.h"
#include "leader/gate.h"
#include "tests/sim/defects.h"

#define MAX_PROCS   7
#define MAX_OPS     8192
#define MAX_HISTORY 8192
#define MAX_EVENTS  32768
#define MAX_MAIL    512

#define MS HF_NSEC_PER_MSEC
#define S  HF_NSEC_PER_SEC

/* What is counted, and how often at least it must have happened in 10,000 schedules. */
#define SIM_COUNTS(X)                                                                              \
        X(terms, 10000)                                                                            \
        X(take_overs, 10000)                                                                       \
        X(takeovers_by_expiry, 1000)                                                               \
        X(planned_releases, 2000)                                                                  \
        X(hand_overs, 200)                                                                         \
        X(hand_overs_to_a_ghost, 100)                                                              \
        X(hand_overs_by_annotation, 100)                                                           \
        X(stops_following, 500)                                                                    \
        X(stops_not_released, 10)                                                                  \
        X(aborts, 2000)                                                                            \
        X(stuck, 50)                                                                               \
        X(slow_joins, 500)                                                                         \
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
        X(stale_event, 500)                                                                        \
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
        X(contenders_3, 5000)                                                                      \
        X(contenders_4, 500)                                                                       \
        X(contenders_5, 500)                                                                       \
        X(contenders_6, 500)                                                                       \
        X(contenders_7, 500)                                                                       \
        X(stops_at_a_step, 0)                                                                      \
        X(tails, 5000)                                                                             \
        X(tails_every_one_leads, 200)                                                              \
        X(events, 0)                                                                               \
        X(steps, 0)

struct sim_counts {
#define X(name, least) uint64_t name;
        SIM_COUNTS(X)
#undef X
};

enum sim_weather { CLEAR, LOSSY, DARK, REFUSING, SLUGGISH, _N_WEATHERS };

enum sim_event_type {
        E_WAKE,
        E_APPLY,
        E_REPLY,
        E_WATCH,
        E_WATCH_LOST,
        E_WORK,   /* the writers of a term take their turn */
        E_FENCED, /* a leader's write reaches the store */
        E_STALE,  /* its refusal reaches the leader */
        E_JOIN,   /* the work of a term has returned */
        E_CHAOS,
        E_RESUME,
        E_THAW,
        E_RESTART,
        E_PLANNED, /* a stop or hand-over that a clean schedule makes */
        E_EPOCH,   /* a process learns that the store's history was replaced */
};

struct sim_event {
        hf_nsec at; /* true time */
        uint64_t seq;
        enum sim_event_type type;
        int proc;
        unsigned incarnation;
        uint64_t a; /* op index, history index, generation, term: by type */
        uint64_t b;
};

struct sim_op {
        int proc;
        unsigned incarnation;
        uint32_t op_id;
        bool is_write;
        bool slowed;
        bool heard;          /* its answer reached a core that waited for it */
        unsigned told_n;     /* how often its sender had been told of a new history */
        bool old;            /* it goes by what was known before the store's history was replaced */
        unsigned n_restores; /* of the store when it was sent; from the time on it is applied: then
                              */
        hf_nsec sent_local, sent_at;
        hf_nsec applied_at, answered_at; /* -1 = not (yet) */
        hf_nsec answer_after;            /* the way back; HF_NSEC_NEVER = the reply is lost */
        struct hf__record record;        /* what a write sends */
        int result;
        hf_nsec retry_after;
        unsigned history; /* index of the record in the answer */
};

struct sim_proc {
        struct hf__core core;
        struct hf__gate gate;
        char identity[32];
        unsigned incarnation;
        bool alive, paused, frozen, restarting;
        hf_nsec paused_at;
        enum sim_weather weather;

        /* its clock: local = local0 + (true - true0) x rate */
        hf_nsec local0, true0;
        double rate;
        hf_nsec thawed_at; /* true time of the end of the last freeze */
        int64_t real_offset_us;

        hf_nsec wake_local;
        uint64_t wake_gen;
        hf_nsec last_step_at;
        unsigned n_same_instant;

        struct sim_event mail[MAX_MAIL];
        unsigned n_mail;

        uint64_t watch_gen;
        bool watch_open, watch_mute;
        hf_nsec watch_last_at;

        /* the last write that was answered with success */
        hf_nsec ok_sent_local, ok_sent_at;
        unsigned ok_restores; /* the store's history in which it was applied */
        bool robbed;          /* an outsider has touched the Lease since that write was sent */

        bool work_alive, joining;
        uint64_t work_gen, term, last_term;
        unsigned last_term_restores;
        int64_t acquire_us;
        bool held_write; /* a write past its gate check when the process was paused */
        int join_mode;   /* 0 prompt, 1 slow in draining, 2 slow in aborting, 3 never */

        bool stop_asked, clean_since_stop;
        bool has_written;
        bool surprised; /* a write of its from before a restore was applied after it: a revision was
                           issued anew just so */
        unsigned last_write; /* of this incarnation */
        bool stopped_free;   /* it said that the Lease does not bear its name */
        unsigned n_steps;    /* of this incarnation */
        bool op_went_wrong;  /* what happened to the last operation sent */
        hf_nsec stop_by_local;
        bool old_history;     /* the store's history was replaced, and it has not been told */
        unsigned told_n;      /* how often */
        bool must_hear;       /* it has been told, and has not read the Lease since */
        bool short_abort;     /* its term under way is ending, by a loss and soon after it began */
        hf_nsec contend_from; /* local: not before, after a short term */
        hf_nsec term_local;   /* when its term began */
        hf_nsec dirty_until;  /* true time until which a request of its may still be applied late */
};

struct sim_term_record {
        uint64_t revision; /* the term; 0 = there is none */
        char holder[32];
        int64_t acquire_us;
};

/* A stop at a certain step of a certain process. */
struct sim_sweep {
        bool on, calm; /* calm: nothing else happens */
        int proc;
        unsigned at;      /* the step after which it is asked to stop; 0 = never */
        unsigned n_steps; /* how many the process made */
};

/* What a timeline shows beside the operations and the Lease's history, which it takes from where
 * they are. */
enum sim_mark_kind {
        MARK_STATE,
        MARK_VALID,
        MARK_PAUSE,
        MARK_FREEZE,
        MARK_WEATHER,
        MARK_NOTE,
        MARK_REFUSED,
        MARK_STORE,
        MARK_VIOLATION
};

struct sim_mark {
        enum sim_mark_kind kind;
        int proc; /* -1 = the store */
        hf_nsec at, until;
        int value; /* state, weather; -1 = not alive */
        char text[64];
};

struct sim {
        struct sim_counts *counts;
        uint64_t rng;
        bool trace, clean, opaque, calm, fence_off;
        bool draw; /* keep the marks of a timeline */
        enum sim_defect defect;
        bool by_effect; /* make no early checks, see check.c */
        struct hf_leader_timing timing;
        int n_procs;
        struct sim_sweep sweep;
        hf_nsec now, chaos_until;
        hf_nsec longest_lull; /* between two disturbances */
        struct sim_proc procs[MAX_PROCS];

        struct sim_event heap[MAX_EVENTS];
        unsigned n_events;
        uint64_t seq;
        struct sim_op ops[MAX_OPS];
        unsigned n_ops;

        /* the store */
        struct hf__record history[MAX_HISTORY];
        struct sim_term_record terms[MAX_HISTORY]; /* as it was with each */
        hf_nsec put_times[MAX_HISTORY];
        unsigned n_history; /* the last one is the Lease as it is */
        uint64_t revision, highest_revision;
        struct sim_term_record term;
        unsigned n_restores, restored_index;    /* of the history: what the last backup brought */
        hf_nsec hung_until, slow_until;         /* the store answers nothing; late */
        uint64_t newest_term, last_commit_term; /* newest acquired; of the last write committed */
        hf_nsec outsider_at;

        /* a planned event of a clean schedule */
        hf_nsec release_at, last_put_at,
                put_at; /* of the last release; of the last write before the take-over */
        hf_nsec took_at;
        bool took;

        struct hf__core_actions actions;
        struct hf__core_event event;
        jmp_buf violated;
        char violation[256];

        struct sim_mark *marks; /* owned; of the timeline */
        unsigned n_marks, max_marks;
};

/* sim.c */
void sim_violate(struct sim *sim, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define TRACE(sim, ...)                                                                            \
        do {                                                                                       \
                if ((sim)->trace)                                                                  \
                        sim_trace(sim, __VA_ARGS__);                                               \
        } while (0)
#define COUNT(sim, name) ((sim)->counts->name++)

/* timeline.c. Marks are kept only when sim->draw is set. */
void sim_mark(struct sim *sim, enum sim_mark_kind kind, int proc, hf_nsec until, int value,
              const char *text);
void sim_mark_awake(struct sim *sim, int proc); /* a pause ends, before its time perhaps */
int sim_timeline_write(const struct sim *sim, const char *path, uint64_t seed,
                       hf_nsec last); /* last: of the schedule; 0 = all */

/* jobs.c */
struct sim_plan {
        uint64_t seed, n_schedules;
        int electors, n_jobs;
        bool sweep; /* stop one process at each of its steps */
        bool progress;
        enum sim_defect defect;
        bool by_effect;
};
struct sim_failure {
        bool found;
        uint64_t seed, nth; /* nth = how many schedules were run before it */
        struct sim_sweep sweep;
        hf_nsec at;
        char violation[256];
};
/* Runs the plan, in n_jobs processes. 0, or -errno. */
int sim_run(const struct sim_plan *plan, struct sim_counts *counts, struct sim_failure *ret_failure,
            uint64_t *ret_n_run);

/* world.c */
uint64_t sim_draw(struct sim *sim);
hf_nsec sim_between(struct sim *sim, hf_nsec low, hf_nsec high);
bool sim_chance(struct sim *sim, unsigned percent);
hf_nsec sim_local(const struct sim *sim, const struct sim_proc *proc);
void sim_set_clock(struct sim *sim, struct sim_proc *proc, double rate, bool frozen);
void sim_at(struct sim *sim, hf_nsec at, enum sim_event_type type, int proc, uint64_t a,
            uint64_t b);
void sim_dispatch(struct sim *sim, const struct sim_event *event);
void sim_run_until(struct sim *sim, hf_nsec until);
/* False: a promise was broken; sim->violation says which. sim->sweep is heeded. */
bool sim_schedule(struct sim *sim, uint64_t seed, int n_procs);

/* proc.c */
void sim_proc_boot(struct sim *sim, int p);
void sim_proc_kill(struct sim *sim, int p);
void sim_proc_resume(struct sim *sim, int p);
void sim_proc_step(struct sim *sim, int p); /* with sim->event filled */
void sim_proc_event(struct sim *sim, int p, enum hf__core_event_type type);
void sim_proc_wake_later(struct sim *sim, int p);
void sim_proc_stop(struct sim *sim, int p);
void sim_proc_epoch(struct sim *sim, int p);
void sim_proc_work(struct sim *sim, int p);
void sim_proc_join(struct sim *sim, int p);
bool sim_leads(const struct sim_proc *proc);
int sim_leader(struct sim *sim); /* who may act now, by the gate; -1 = nobody */

/* net.c */
void sim_net_send(struct sim *sim, int p, const struct hf__core_action *action);
void sim_net_apply(struct sim *sim, uint64_t op);
void sim_net_reply(struct sim *sim, uint64_t op);
void sim_net_watch(struct sim *sim, int p);
void sim_net_unwatch(struct sim *sim, int p);
void sim_net_news(struct sim *sim); /* the Lease has changed: tell all watchers */

/* store.c */
int sim_store_write(struct sim *sim, const struct sim_op *op);
void sim_store_put(struct sim *sim, const struct hf__record *record); /* unconditionally */
void sim_store_restore(struct sim *sim);
void sim_store_fenced(struct sim *sim, const struct sim_event *event);
const struct hf__record *sim_store_lease(const struct sim *sim);

/* chaos.c */
void sim_chaos(struct sim *sim);
void sim_chaos_end(struct sim *sim);
void sim_hand_over(struct sim *sim, int p, const char *successor);
void sim_rob_all(struct sim *sim); /* an act that obeys no lease */

/* planned.c */
void sim_planned(struct sim *sim, bool crash);

/* check.c */
void sim_check_p1(struct sim *sim);
void sim_check_write(struct sim *sim,
                     const struct sim_op *op); /* before it is applied, which it will be */
void sim_check_actions(struct sim *sim, int p, const struct hf__core_action *action);
void sim_check_stopped(struct sim *sim, int p, bool released);
void sim_check_overdue(struct sim *sim, int p);
