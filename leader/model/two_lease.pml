/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of two Leases, as two_lease_core.c decides it, with the election's core above it, as a model for spin. Spin tries every
 * order in which the processes of a fleet that moves from an old Lease to a new one, their requests and time can take their
 * steps. tests/model/run.py explains how it is run, docs/proof.md what is left out and why.
 *
 * A process knows only the old Lease, both, or only the new one. OLD_FLEET, NEW_FLEET and PAIR_FLEET say which processes run
 * together. All else is as in election.pml, which has the election itself: ticks, `fresh`, requests that are dropped when
 * another write makes them void, and one request of each Lease that nobody waits for any more (`left_*`). New here:
 *
 * An operation writes the old Lease, then the new one, each at the revision that was known when the operation began. It
 * succeeds when both are written, and allows to act for RENEW ticks from before the first write. The server may refuse the
 * second write although the first was done. An acquire then gives the old Lease back. A process that finds itself with the
 * old Lease only (a reply was lost, or the new one was taken) does not renew it, and gives it back later. How much later is
 * a matter of the work that may still run, and left to the tests: here it may come at once.
 *
 * `saw_*` is what a process knows of a Lease, which need not be so any more; `fresh` says whether it is. A standby waits LEASE
 * ticks from the last change of either Lease that it saw.
 *
 * With REPLAY see election.pml. The macros M_... are mistakes; spin must find each of them.
 */
#ifdef REPLAY
#define N 3
#else
#define N 2
#endif
#define LEASE 3
#define RENEW 2

#define OLD 0
#define NEW 1

#define KNOWS_OLD  0
#define KNOWS_BOTH 1
#define KNOWS_NEW  2

#define FOLLOWING 0
#define LEADING   1
#define DRAINING  2 /* it stops; its work still ends by itself */
#define ABORTING  3
#define RELEASING 4
#define GONE      5

#define NONE      0
#define ACQUIRE   1
#define RENEWAL   2
#define RELEASE   3
#define GIVE_BACK 4 /* the old Lease only */

#define IDLE    0
#define SENT    1
#define DONE    2
#define REFUSED 3 /* an acquire of the new Lease, which another process wrote first */

#define FREE  0
#define OWN   1
#define OTHER 2

typedef process_t {
        unsigned knows : 2;
        unsigned state : 3;
        unsigned valid : 2;
        unsigned wait : 2;
        bit fresh[2];
        unsigned saw_old : 2;
        unsigned saw_new : 2;
        unsigned op : 3;
        unsigned op_phase : 2;
        bit op_side;
        bit op_expects;     /* the new Lease is as it was when the operation began */
        bit op_fresh;       /* done: nobody else has written this Lease since */
        bit op_term[2];     /* an acquire that is done: the term record is still its own */
        unsigned op_left : 2;
        bit term_now[2];
        bit work;
        bit stop;
};

#ifdef REPLAY
#define former N
process_t p[N + 1];
#else
process_t p[N];
#endif
byte holder[2];    /* 0 = nobody, else 1 + process */
byte left_kind[2];
byte left_by[2];
byte fenced_by;
bit fenced_now;
byte n_gone;
bit is_set_up;
hidden byte j, kind_left, by_left;

/* ---- the steps of a schedule that is replayed: the numbers are those of replay.py ---- */

#define SENDS(kind, side)  (2 * (kind) - 1 + (side))
#define WRITES(kind, side) (8 + SENDS(kind, side))
#define LEADS       17
#define EXTENDS     18
#define DRAINS      19 /* as LEADS and EXTENDS, of the process */
#define ABORTS      20
#define JOINED      21
#define STOPS       22
#define STOPPED     23 /* without a word about the Leases */
#define RELEASED    24
#define DIES        25
#define STARTS      26 /* and what it knows */

#ifdef REPLAY
short n_replayed;
byte next_step, next_by;

c_decl {
        \#include <stdio.h>
        \#include <stdlib.h>
        static int replay[20000][2], n_replay, furthest;

        /* The schedule is on standard input: a step and a process a line. */
        static void say_stuck(void) {
                printf("replay: stuck, %d of %d steps\n", furthest, n_replay);
        }
        __attribute__((constructor)) static void read_replay(void) {
                while (n_replay < 20000 && scanf("%d %d", &replay[n_replay][0], &replay[n_replay][1]) == 2)
                        n_replay++;
                atexit(say_stuck);
        }
}

inline happens() {
        c_code {
                if (now.n_replayed > furthest)
                        furthest = now.n_replayed;
                if (now.n_replayed == n_replay) {
                        printf("replay: complete, %d steps\n", n_replay);
                        exit(0);
                }
                now.next_step = replay[now.n_replayed][0];
                now.next_by = replay[now.n_replayed][1];
                now.n_replayed++;
        }
}
#define is_next(step, k) (next_step == (step) && next_by == (k))
#else
#define is_next(step, k) true
inline happens() { skip }
#endif

/* Processes that know the same Leases are alike: after each step they are sorted, as in election.pml. */
c_decl {
        \#include <string.h>
}
c_code {
        static int is_after(int a, int b) {
                int order = memcmp(&now.p[a], &now.p[b], sizeof(now.p[a]));
                for (int side = 0; side < 2 && order == 0; side++) {
                        order = (now.holder[side] == a + 1) - (now.holder[side] == b + 1);
                        if (order == 0)
                                order = (now.left_by[side] == a + 1) - (now.left_by[side] == b + 1);
                }
                if (order == 0)
                        order = (now.fenced_by == a + 1) - (now.fenced_by == b + 1);
                return order > 0;
        }
        static void rename_one(uchar *name, int a, int b) {
                *name = *name == a + 1 ? b + 1 : *name == b + 1 ? a + 1 : *name;
        }
        static void swap(int a, int b) {
                struct process_t kept = now.p[a];
                if (!is_after(a, b))
                        return;
                now.p[a] = now.p[b];
                now.p[b] = kept;
                for (int side = 0; side < 2; side++) {
                        rename_one(&now.holder[side], a, b);
                        rename_one(&now.left_by[side], a, b);
                }
                rename_one(&now.fenced_by, a, b);
        }
}
inline in_order() {
#ifdef REPLAY
        skip
#else
        c_code { swap(0, 1); }
#endif
}

#define uses(k, side) ((side) == OLD && p[k].knows != KNOWS_NEW || (side) == NEW && p[k].knows != KNOWS_OLD)
#define leads(k)      (p[k].state == LEADING || p[k].state == DRAINING)
#define acts(k)       (leads(k) && p[k].valid > 0)
#define ended(k)      (p[k].state == GONE)
#ifdef REPLAY
#define may_go(k)  true
#define count_gone skip
#else
#define may_go(k)  (p[k].stop || n_gone < N - 1) /* one is left to lead */
#define count_gone n_gone++
#endif
#if N == 3
#define other_acts(k) ((k) != 0 && acts(0) || (k) != 1 && acts(1) || (k) != 2 && acts(2))
#else
#define other_acts(k) ((k) != 0 && acts(0) || (k) != 1 && acts(1))
#endif

/* ---- the store ---- */

inline forget_op(k) {
        p[k].op = NONE;
        p[k].op_phase = IDLE;
        p[k].op_side = 0;
        p[k].op_expects = 0;
        p[k].op_fresh = 0;
        p[k].op_term[OLD] = 0;
        p[k].op_term[NEW] = 0;
        p[k].op_left = 0
}

/* The Lease has a new revision: what is known of it is outdated, and requests that expect the old one will be refused. */
inline written(side) {
        for (j : 0 .. N - 1) {
                p[j].fresh[side] = 0;
                if
                :: side == OLD && p[j].knows != KNOWS_NEW || side == NEW && p[j].knows == KNOWS_NEW -> p[j].wait = 0 /* it must read this one first, and begins to wait then */
                :: else
                fi;
                if
                :: side == NEW -> p[j].op_expects = 0
                :: else
                fi;
                if
                :: p[j].op_side == side ->
                        p[j].op_fresh = 0;
                        if
                        :: p[j].op_phase == SENT && p[j].op == ACQUIRE && side == NEW && p[j].knows == KNOWS_BOTH -> p[j].op_phase = REFUSED
                        :: p[j].op_phase == SENT && !(p[j].op == ACQUIRE && side == NEW && p[j].knows == KNOWS_BOTH) -> forget_op(j)
                        :: else
                        fi
                :: else
                fi
        }
        j = 0;
        left_kind[side] = NONE;
        left_by[side] = 0
}

#ifdef M_FENCE_NEW_ONLY
#define is_fenced_by(k, side) (uses(k, side) && ((side) == NEW || p[k].knows == KNOWS_OLD))
#else
#define is_fenced_by(k, side) uses(k, side)
#endif

inline new_term(side) {
        for (j : 0 .. N - 1) {
                p[j].term_now[side] = 0;
                p[j].op_term[side] = 0
        }
        j = 0;
        if
        :: fenced_by != 0 && is_fenced_by(fenced_by - 1, side) -> fenced_now = 0
        :: else
        fi
}

inline store(k, kind, side) {
        written(side);
        if
        :: kind == ACQUIRE ->
                new_term(side);
                holder[side] = k + 1
        :: kind == RENEWAL ->
                assert(holder[side] == k + 1) /* no process writes in another's name */
        :: kind == RELEASE || kind == GIVE_BACK ->
                assert(holder[side] == 0 || holder[side] == k + 1 || !acts(holder[side] - 1)); /* P6 */
                assert(!acts(k));
                if
                :: kind == RELEASE -> assert(!p[k].work) /* P6: after the controllers have returned */
                :: else
                fi;
                new_term(side);
                holder[side] = 0
        fi
}

/* ---- a process ---- */

#define me _pid
#define first_side(k) (p[k].knows == KNOWS_NEW -> NEW : OLD)
#define last_side(k)  (p[k].knows == KNOWS_OLD -> OLD : NEW)
#define is_at_last(k) (p[k].op_side == last_side(k))

#define saw(k, side)   ((side) == OLD -> p[k].saw_old : p[k].saw_new)
#define saw_other(k)   (uses(k, OLD) && p[k].saw_old == OTHER || uses(k, NEW) && p[k].saw_new == OTHER)
#define has_all(k)     ((!uses(k, OLD) || p[k].saw_old == OWN) && (!uses(k, NEW) || p[k].saw_new == OWN))
#define has_a_half(k)  (p[k].knows == KNOWS_BOTH && p[k].saw_old == OWN && p[k].saw_new != OWN)
#define is_lost(k)     (leads(k) && (uses(k, OLD) && !p[k].term_now[OLD] || uses(k, NEW) && !p[k].term_now[NEW]))
#define may_lose(k)    is_next(ABORTS, k)

inline lose(k) {
        p[k].state = ABORTING;
        p[k].valid = 0;
        happens()
}

inline set_saw(k, side, what) {
        if
        :: side == OLD -> p[k].saw_old = what
        :: else -> p[k].saw_new = what
        fi
}

/* A change was seen. */
inline begin_wait(k) {
#ifdef M_WAIT_FOR_OLD
        if
        :: uses(k, OLD) && p[k].saw_old == OTHER -> p[k].wait = LEASE
        :: !uses(k, OLD) && p[k].saw_new == OTHER -> p[k].wait = LEASE
        :: else -> p[k].wait = 0
        fi
#else
        if
        :: saw_other(k) -> p[k].wait = LEASE
        :: else -> p[k].wait = 0
        fi
#endif
}

#define would_lose(k, side) (leads(k) && !p[k].term_now[side])

/* A read, or the watch: one Lease as it is now. */
inline learn(k, side) {
        p[k].fresh[side] = 1;
        if
        :: holder[side] == 0 -> set_saw(k, side, FREE)
        :: holder[side] == k + 1 -> set_saw(k, side, OWN)
        :: else -> set_saw(k, side, OTHER)
        fi;
        begin_wait(k);
        if
        :: would_lose(k, side) -> lose(k)
        :: else
        fi
}

inline send_to(k, side) {
        p[k].op_side = side;
        if
        :: side == NEW && p[k].knows == KNOWS_BOTH && !p[k].op_expects ->
                /* Another process has written it since. */
                if
                :: p[k].op == ACQUIRE -> p[k].op_phase = REFUSED
                :: else -> forget_op(k)
                fi
        :: else -> p[k].op_phase = SENT
        fi
}

/* Begins an operation. */
inline send(k, kind, side) {
        p[k].op = kind;
        p[k].op_expects = p[k].fresh[NEW];
        p[k].op_left = RENEW;
        send_to(k, side);
        happens()
}

inline apply(k) {
        p[k].op_phase = DONE;
        store(k, p[k].op, p[k].op_side);
        p[k].op_fresh = 1;
        if
        :: p[k].op == ACQUIRE -> p[k].op_term[p[k].op_side] = 1
        :: else
        fi;
        happens()
}

inline check_p1() {
        assert(!(acts(0) && acts(1)));
#if N == 3
        assert(!(acts(0) && acts(2)) && !(acts(1) && acts(2)))
#endif
}

#define in_time(k) (p[k].op_left > 0)

inline extend(k) {
        if
        :: p[k].op_left > p[k].valid -> p[k].valid = p[k].op_left
        :: else
        fi
}

inline start_term(k) {
        assert(!p[k].work); /* P5 */
        assert(!p[k].stop); /* P6 */
        p[k].state = LEADING;
        p[k].work = 1;
        p[k].valid = p[k].op_left;
        p[k].wait = 0;
        p[k].term_now[OLD] = p[k].op_term[OLD];
        p[k].term_now[NEW] = p[k].op_term[NEW];
        if
        :: fenced_by == k + 1 && !fenced_now -> fenced_by = 0 /* a write of the last term will be refused */
        :: else
        fi;
        happens()
}

inline gone(k) {
        p[k].state = GONE;
        p[k].valid = 0;
        p[k].wait = 0;
        p[k].fresh[OLD] = 0;
        p[k].fresh[NEW] = 0;
        p[k].saw_old = FREE;
        p[k].saw_new = FREE;
        p[k].term_now[OLD] = 0;
        p[k].term_now[NEW] = 0;
        p[k].work = 0;
        if
        :: !p[k].stop -> count_gone
        :: else -> p[k].stop = 0
        fi;
        happens()
}

/* An acquire may still arrive, or has arrived without an answer. The code cannot know whether a request without an answer was lost; here it matters only if it was not. */
#define may_arrive(k, side) (left_kind[side] == ACQUIRE && left_by[side] == (k) + 1 || !p[k].fresh[side] && holder[side] == (k) + 1)
#ifdef REPLAY
#define may_void(k, side) true
#else
#define may_void(k, side) may_arrive(k, side)
#endif
/* A release writes what is its own, and what it may still acquire. */
#ifdef M_RELEASE_OWN_ONLY
#define to_release(k, side) (uses(k, side) && saw(k, side) == OWN)
#define must_release(k, side) to_release(k, side)
#else
#define to_release(k, side) (uses(k, side) && (saw(k, side) == OWN || may_void(k, side) && saw(k, side) == FREE))
#define must_release(k, side) (uses(k, side) && (saw(k, side) == OWN || may_arrive(k, side)))
#endif

/* P6: it says that nothing is held, and nothing of it can be acquired any more. */
inline released(k) {
        assert(holder[OLD] != k + 1 && holder[NEW] != k + 1);
        assert(!(left_kind[OLD] == ACQUIRE && left_by[OLD] == k + 1) && !(left_kind[NEW] == ACQUIRE && left_by[NEW] == k + 1));
        gone(k)
}

#define is_complete(k) (is_at_last(k) || p[k].op == RELEASE && !must_release(k, NEW))
#ifdef M_LEAD_BY_OLD
#define begins(k)      (p[k].op == ACQUIRE && p[k].state == FOLLOWING && in_time(k))
#else
#define begins(k)      (p[k].op == ACQUIRE && is_complete(k) && p[k].state == FOLLOWING && in_time(k))
#endif
#ifdef M_RENEW_OLD_ONLY
#define goes_on(k)     (p[k].op == RENEWAL && leads(k))
#else
#define goes_on(k)     (p[k].op == RENEWAL && is_complete(k) && leads(k))
#endif
#define is_freed(k)    (p[k].op == RELEASE && is_complete(k) && p[k].state == RELEASING)
#define sends_on(k)    (p[k].op != GIVE_BACK && !is_complete(k) && !begins(k) && !goes_on(k))
#define may_answer(k)  ((!begins(k) || is_next(LEADS, k)) && (!goes_on(k) || is_next(EXTENDS, k)) && (!is_freed(k) || is_next(RELEASED, k)) && (!sends_on(k) || is_next(SENDS(p[k].op, NEW), k)))

inline take_answer(k) {
        if
        :: p[k].op_fresh ->
                p[k].fresh[p[k].op_side] = 1
        :: else
        fi;
        if
        :: p[k].op_fresh || !p[k].fresh[p[k].op_side] ->
                if
                :: p[k].op == RELEASE || p[k].op == GIVE_BACK -> set_saw(k, p[k].op_side, FREE)
                :: else -> set_saw(k, p[k].op_side, OWN)
                fi
        :: else
        fi;
        begin_wait(k)
}

inline answered(k) {
        take_answer(k);
        if
        :: begins(k) -> start_term(k); forget_op(k)
        :: goes_on(k) -> extend(k); forget_op(k); happens()
        :: is_freed(k) -> forget_op(k); released(k)
        :: sends_on(k) ->
#ifdef M_VALID_FROM_SECOND
                p[k].op_left = RENEW;
#endif
#ifdef M_NEW_REVISION
                p[k].op_expects = p[k].fresh[NEW];
#endif
                p[k].op_fresh = 0;
                send_to(k, NEW);
                happens()
        :: else -> forget_op(k)
        fi;
        check_p1()
}

/* The new Lease was refused: the old one is given back within the same operation. */
inline undo(k) {
        p[k].op = GIVE_BACK;
        p[k].op_phase = SENT;
        p[k].op_side = OLD;
        happens()
}

/* The deadline of an operation passes. A request or its reply is lost, or it is applied later. */
inline give_up(k) {
        if
        :: p[k].op_phase == SENT && left_kind[p[k].op_side] == NONE ->
                left_kind[p[k].op_side] = p[k].op;
                left_by[p[k].op_side] = k + 1
        :: true
        fi;
        forget_op(k)
}

inline joined(k) {
        p[k].work = 0;
        p[k].term_now[OLD] = 0;
        p[k].term_now[NEW] = 0;
        p[k].valid = 0;
        if
        :: p[k].stop -> p[k].state = RELEASING
        :: else -> p[k].state = FOLLOWING
        fi;
        happens()
}

#ifdef REPLAY
#define is_worth_it(k) true
#else
#define is_worth_it(k) (p[k].valid < RENEW)
#endif

#ifdef REPLAY
/* It has died or stopped, and is started again under another identity. */
inline start_again(k, kind) {
        p[k].state = FOLLOWING;
        p[k].knows = kind;
        for (j : 0 .. 1) {
                if
                :: holder[j] == k + 1 -> holder[j] = former + 1
                :: else
                fi;
                if
                :: left_by[j] == k + 1 -> left_by[j] = former + 1
                :: else
                fi
        }
        j = 0;
        happens()
}
#endif

#define knows_first(k) (uses(k, OLD) && p[k].fresh[OLD] || !uses(k, OLD) && p[k].fresh[NEW])
#define knows_all(k)   ((!uses(k, OLD) || p[k].fresh[OLD]) && (!uses(k, NEW) || p[k].fresh[NEW]))
#define is_idle(k)     (is_set_up && p[k].op == NONE)

active [N] proctype contender() {
end:    do
        /* It reads a Lease, or the watch reports it. */
        :: atomic { is_set_up && uses(me, OLD) && !p[me].fresh[OLD] && !ended(me) && (!would_lose(me, OLD) || may_lose(me)) -> learn(me, OLD); in_order() }
        :: atomic { is_set_up && uses(me, NEW) && !p[me].fresh[NEW] && !ended(me) && (!would_lose(me, NEW) || may_lose(me)) -> learn(me, NEW); in_order() }
        /* It acquires the pair; it renews it. */
        :: atomic { is_idle(me) && p[me].state == FOLLOWING && knows_first(me) && p[me].wait == 0 && is_next(SENDS(ACQUIRE, first_side(me)), me) -> send(me, ACQUIRE, first_side(me)); in_order() }
        :: atomic { is_idle(me) && leads(me) && knows_first(me) && has_all(me) && p[me].valid > 0 && is_worth_it(me) && is_next(SENDS(RENEWAL, first_side(me)), me) -> send(me, RENEWAL, first_side(me)); in_order() }
        :: atomic { p[me].op_phase == SENT && is_next(WRITES(p[me].op, p[me].op_side), me) -> apply(me); in_order() }
        :: atomic { p[me].op_phase == DONE && may_answer(me) -> answered(me); in_order() }
        :: atomic { p[me].op_phase == REFUSED && p[me].saw_old == OWN && p[me].fresh[OLD] && is_next(SENDS(GIVE_BACK, OLD), me) -> undo(me); in_order() }
        :: atomic { p[me].op_phase == REFUSED -> forget_op(me); in_order() }
        :: atomic { p[me].op_phase == SENT || p[me].op_phase == DONE -> give_up(me); in_order() }
        /* It holds only the old Lease. */
        :: atomic { is_idle(me) && !ended(me) && has_a_half(me) && p[me].fresh[OLD] && is_next(SENDS(GIVE_BACK, OLD), me) -> send(me, GIVE_BACK, OLD); in_order() }
        /* The ways a term ends. */
        :: atomic { leads(me) && p[me].valid == 0 && may_lose(me) -> lose(me); in_order() }
        :: atomic { p[me].state == DRAINING && may_lose(me) -> lose(me); in_order() } /* the drain deadline */
        :: atomic { (p[me].state == DRAINING || p[me].state == ABORTING) && p[me].work && is_next(JOINED, me) -> joined(me); in_order() }
        :: atomic { is_set_up && !ended(me) && may_go(me) && is_next(DIES, me) -> give_up(me); gone(me); in_order() }
        /* The release. */
        :: atomic { is_idle(me) && p[me].state == RELEASING && uses(me, OLD) && p[me].fresh[OLD] && to_release(me, OLD) && is_next(SENDS(RELEASE, OLD), me) -> send(me, RELEASE, OLD); in_order() }
        :: atomic { is_idle(me) && p[me].state == RELEASING && uses(me, NEW) && p[me].fresh[NEW] && to_release(me, NEW) && !must_release(me, OLD) && is_next(SENDS(RELEASE, NEW), me) -> send(me, RELEASE, NEW); in_order() }
        :: atomic { is_idle(me) && p[me].state == RELEASING && knows_all(me) && !must_release(me, OLD) && !must_release(me, NEW) && is_next(RELEASED, me) -> released(me); in_order() }
        :: atomic { is_idle(me) && p[me].state == RELEASING && is_next(STOPPED, me) -> gone(me); in_order() }
        :: atomic { is_set_up && !p[me].stop && !ended(me) && may_go(me) && is_next(STOPS, me) ->
                p[me].stop = 1;
                count_gone;
                happens();
                if
                :: p[me].state == FOLLOWING -> p[me].state = RELEASING
                :: p[me].state == LEADING -> p[me].state = DRAINING
                :: else
                fi;
                in_order()
        }
#ifdef REPLAY
        /* A request that was refused is no step, so the refused second write of an acquire is none either. */
        :: atomic { p[me].op == ACQUIRE && p[me].op_phase == DONE && p[me].op_side == OLD && p[me].knows == KNOWS_BOTH && p[me].op_fresh && !p[me].op_expects && is_next(SENDS(GIVE_BACK, OLD), me) -> take_answer(me); undo(me) }
        :: atomic { ended(me) && is_next(STARTS + KNOWS_OLD, me) -> start_again(me, KNOWS_OLD) }
        :: atomic { ended(me) && is_next(STARTS + KNOWS_BOTH, me) -> start_again(me, KNOWS_BOTH) }
        :: atomic { ended(me) && is_next(STARTS + KNOWS_NEW, me) -> start_again(me, KNOWS_NEW) }
#endif
#if !defined(REPLAY) && !defined(PAIR_FLEET)
        /* Its controllers write, whether they may or not. */
        :: atomic { p[me].work && fenced_by == 0 -> fenced_by = me + 1; fenced_now = (!is_fenced_by(me, OLD) || p[me].term_now[OLD]) && (!is_fenced_by(me, NEW) || p[me].term_now[NEW]); in_order() }
#endif
        od
}

/* ---- the rest of the world ---- */

inline left_applied(side) {
        kind_left = left_kind[side];
        by_left = left_by[side] - 1;
        store(by_left, kind_left, side);
        happens();
        kind_left = 0;
        by_left = 0
}

inline fenced_arrives() {
        if
        :: fenced_now -> assert(!other_acts(fenced_by - 1)) /* P2 */
        :: else -> assert(!acts(fenced_by - 1)) /* P2: it refuses no process that leads rightfully */
        fi;
        fenced_by = 0;
        fenced_now = 0
}

#define runs(k) (p[k].valid > 0 || p[k].wait > 0 || p[k].op_left > 0)
#if N == 3
#define anything_runs (runs(0) || runs(1) || runs(2))
#else
#define anything_runs (runs(0) || runs(1))
#endif

inline one_less(x) {
        if
        :: x > 0 -> x--
        :: else
        fi
}

inline tick() {
        for (j : 0 .. N - 1) {
                one_less(p[j].valid);
                one_less(p[j].wait);
                one_less(p[j].op_left)
        }
        j = 0
}

/* Which processes run together. */
inline set_up() {
#ifdef REPLAY
        p[0].state = GONE;
        p[1].state = GONE;
        p[2].state = GONE;
        p[former].state = GONE;
        happens();
#else
        for (j : 0 .. N - 1) {
                p[j].knows = KNOWS_BOTH
        }
        j = 0;
#ifdef OLD_FLEET
        p[0].knows = KNOWS_OLD;
#endif
#ifdef NEW_FLEET
        p[N - 1].knows = KNOWS_NEW;
#endif
#endif
        is_set_up = 1
}

active proctype world() {
end:    do
        :: atomic { !is_set_up -> set_up(); in_order() }
        :: atomic { left_kind[OLD] != NONE && is_next(WRITES(left_kind[OLD], OLD), left_by[OLD] - 1) -> left_applied(OLD); in_order() }
        :: atomic { left_kind[NEW] != NONE && is_next(WRITES(left_kind[NEW], NEW), left_by[NEW] - 1) -> left_applied(NEW); in_order() }
        :: atomic { fenced_by != 0 -> fenced_arrives(); in_order() }
        :: atomic { is_set_up && anything_runs -> tick(); in_order() }
        od
}
