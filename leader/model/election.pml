/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Election, gate, fence and release, as core*.c decide them, as a model for spin. Spin tries every order in which three
 * contenders, their requests and time can take their steps. tests/model/run.py explains how it is run, docs/proof.md what is
 * left out and why.
 *
 * Time is counted in ticks, which may come at any moment. A process that does nothing while ticks pass is one that was paused,
 * or whose request hangs. A leader may act for RENEW ticks after it sent its last successful renewal. A standby waits LEASE
 * ticks from the moment at which it saw the record change last.
 *
 * Revisions are not counted. A write names the revision that it expects; all that matters is whether the Lease still has it.
 * `fresh` is true while a process knows the Lease as it is. When another process writes before a request is applied, that
 * request will be refused, and its sender must read the Lease before it writes again. It must do that anyway when what it knows
 * is not fresh, so the request is dropped at once. Likewise a term is not a number: `term_now` is true while the term record is
 * that of the process's own term, `fenced_now` is the same for a leader's write under way.
 *
 * A request is sent, applied and answered, each at any time or never. A process that gives up waiting may leave its request
 * behind (`left_*`); it is applied later, or never. One leader's write (`fenced_*`) is followed at a time, because the promise
 * is about each write by itself.
 *
 * With UNFENCED, the server has no fence, and applies each leader's write whenever it arrives. A process knows which of its writes
 * are still on their way. While there is one, it neither releases the Lease nor acquires it. (How long it expects a write without
 * an answer is a matter of time, which is left to the simulator.)
 *
 * With CALM, everything that can fail fails only until `calm` is set. From then on time passes only while nothing else can
 * happen, and some process must come to lead (the formula `live`).
 *
 * With REPLAY, only the steps are possible that a schedule of the simulator has, in its order (tests/model/replay.py). Ticks and
 * what a process learns may come anywhere between them. If no order of those fits, then the code does what the model does not
 * know. A process that has died may be started again. It has another identity then, so what is left of the old one belongs to
 * `former`, a process without steps.
 *
 * The macros M_... are mistakes; spin must find each of them.
 */
#define N     3
#define LEASE 3
#define RENEW 2

#define FOLLOWING 0
#define LEADING   1
#define DRAINING  2
#define ABORTING  3
#define RELEASING 4
#define GONE      5 /* stopped, dead, or stuck with controllers still running */

#define NONE    0
#define ACQUIRE 1
#define RENEWAL 2
#define RELEASE 3

#define IDLE     0
#define SENT     1
#define DONE     2

typedef process_t {
        unsigned state : 3;
        unsigned valid : 2;    /* ticks for which it may act */
        unsigned wait : 2;     /* ticks until it may take the Lease, by what it knows */
        bit fresh;             /* it knows the Lease as it is */
        unsigned op : 2;       /* its request under way */
        unsigned op_phase : 2;
        bit op_fresh;          /* done: no other process has written since */
        bit op_term;           /* an acquire that is done: the term record is still its own */
        unsigned op_left : 2;  /* ticks for which its success would allow to act */
        bit term_now;
        bit work;
        bit stop;
        bit hand_over;         /* aborting: it was asked to hand over before, so it will release */
};

#ifdef REPLAY
#define former N
process_t p[N + 1];
#else
process_t p[N];
#endif
byte holder;       /* 0 = nobody, else 1 + process */
byte left_kind;    /* a request whose sender has given up; the Lease is still as it expects */
byte left_by;      /* 0, or 1 + process */
byte fenced_by;    /* 1 + process whose write is under way */
bit fenced_now;
byte n_gone;       /* contenders that are gone or were asked to stop */
bit calm;
hidden byte j, kind_left, by_left; /* used within a step only */

/* ---- the steps of a schedule that is replayed ---- */

/* The numbers are those of replay.py. A request and a write are numbered by the kind of the operation. */
#define SENDS(kind)  (kind)
#define WRITES(kind) (3 + (kind))
#define LEADS        7
#define EXTENDS      8
#define DRAINS       9
#define ABORTS       10
#define JOINED       11
#define STOPS        12
#define STOPPED      13
#define STUCK        14
#define DIES         15
#define STARTS       16
#define ACTS         17

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

/*
 * The contenders are alike, so states that differ only by swapping two of them are the same. After each step they are sorted.
 * (Spin runs one step at a time, and no contender keeps a position in its program between two steps.)
 */
c_decl {
        \#include <string.h>
}
c_code {
        static int is_after(int a, int b) {
                int order = memcmp(&now.p[a], &now.p[b], sizeof(now.p[a]));
                if (order == 0)
                        order = (now.holder == a + 1) - (now.holder == b + 1);
                if (order == 0)
                        order = (now.left_by == a + 1) - (now.left_by == b + 1);
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
                rename_one(&now.holder, a, b);
                rename_one(&now.left_by, a, b);
                rename_one(&now.fenced_by, a, b);
        }
}
inline in_order() {
#ifdef REPLAY
        skip /* the schedule names them */
#else
        c_code { swap(0, 1); swap(1, 2); swap(0, 1); }
#endif
}

#define leads(k)   (p[k].state == LEADING || p[k].state == DRAINING)
#define acts(k)    (leads(k) && p[k].valid > 0)
#define ended(k)   (p[k].state == GONE)
#ifdef REPLAY
#define may_go(k)  true
#define count_gone skip
#else
#define may_go(k)  (!calm && (p[k].stop || n_gone < N - 1)) /* one is left to lead */
#define count_gone n_gone++
#endif
#define anybody_acts (acts(0) || acts(1) || acts(2))

/* ---- the store ---- */

inline forget_op(k) {
        p[k].op = NONE;
        p[k].op_phase = IDLE;
        p[k].op_fresh = 0;
        p[k].op_term = 0;
        p[k].op_left = 0
}

/* The Lease has a new revision: everything known is outdated, and requests that expect the old one will be refused. */
inline written() {
        for (j : 0 .. N - 1) {
                p[j].fresh = 0;
                p[j].op_fresh = 0;
#ifndef M_SKIP_COMPARE
                p[j].wait = 0; /* a process that must read the Lease again begins to wait then */
                if
                :: p[j].op_phase == SENT -> forget_op(j)
                :: else
                fi
#endif
        }
        j = 0;
        left_kind = NONE;
        left_by = 0
}

inline new_term() {
        for (j : 0 .. N - 1) {
                p[j].term_now = 0;
                p[j].op_term = 0
        }
        j = 0;
        fenced_now = 0
}

inline store(k, kind) {
        written();
        if
        :: kind == ACQUIRE ->
                new_term();
                holder = k + 1
        :: kind == RENEWAL ->
                assert(holder == k + 1) /* no process writes in another's name */
        :: kind == RELEASE ->
                /* P6: a release clears no record of another process that may act */
                assert(holder == 0 || holder == k + 1 || !acts(holder - 1));
                assert(!p[k].work); /* P6: and comes after the controllers have returned */
                assert(!acts(k));
#ifdef UNFENCED
                assert(fenced_by != k + 1); /* P6: and after the last write of the term */
#endif
                new_term();
                holder = 0
        fi
}

/* ---- a process ---- */

#define me _pid
#ifdef M_SKIP_COMPARE
#define knows(k) true
#else
#define knows(k) p[k].fresh
#endif
#define is_own(k) (holder == k + 1)
#define is_dead(name) (name != 0 && p[name - 1].state == GONE && !p[name - 1].work)

inline lose(k) {
        p[k].hand_over = p[k].state == DRAINING && !p[k].stop;
        p[k].state = ABORTING;
        p[k].valid = 0;
        happens()
}

#define is_lost(k)  (leads(k) && !p[k].term_now)
#define may_lose(k) is_next(ABORTS, k)

/* A read, or the watch: the Lease as it is now. */
inline learn(k) {
        p[k].fresh = 1;
        if
        :: holder == 0 || holder == k + 1 -> p[k].wait = 0
#ifdef M_TAKE_EARLY
        :: else -> p[k].wait = 1
#else
        :: else -> p[k].wait = LEASE
#endif
        fi;
        if
        :: is_lost(k) -> lose(k) /* another process holds it */
        :: else
        fi
}

inline send(k, kind) {
        p[k].op = kind;
        p[k].op_phase = SENT;
        p[k].op_left = RENEW;
        happens()
}

inline apply(k) {
        p[k].op_phase = DONE; /* before the requests of the others are checked */
        store(k, p[k].op);
        p[k].op_fresh = 1;
        if
        :: p[k].op == ACQUIRE -> p[k].op_term = 1
        :: else
        fi;
        happens()
}

inline check_p1() {
        assert(!(acts(0) && acts(1)) && !(acts(0) && acts(2)) && !(acts(1) && acts(2)))
}

#ifdef M_COUNT_FROM_REPLY
#define in_time(k) true
#define counted(k) RENEW
#else
#define in_time(k) (p[k].op_left > 0)
#define counted(k) p[k].op_left
#endif

inline extend(k) {
        if
        :: counted(k) > p[k].valid -> p[k].valid = counted(k)
        :: else
        fi
}

inline start_term(k) {
        assert(!p[k].work); /* P5: nothing of the last term still runs */
#ifdef UNFENCED
        assert(fenced_by != k + 1); /* P5: nor is a write of it on its way */
#endif
        assert(!p[k].stop); /* P6 */
        p[k].state = LEADING;
        p[k].work = 1;
        p[k].valid = counted(k);
        p[k].wait = 0;
        p[k].term_now = p[k].op_term;
        happens()
}

inline finish(k) {
        if
        :: p[k].stop -> p[k].state = GONE; p[k].stop = 0; p[k].wait = 0; p[k].fresh = 0; happens()
        :: else -> p[k].state = FOLLOWING
        fi
}
#define may_finish(k) (!p[k].stop || is_next(STOPPED, k))

#define begins(k)     (p[k].op == ACQUIRE && p[k].state == FOLLOWING && in_time(k))
#define goes_on(k)    (p[k].op == RENEWAL && leads(k))
#define is_freed(k)   (p[k].op == RELEASE && p[k].state == RELEASING)
#define may_answer(k) ((!begins(k) || is_next(LEADS, k)) && (!goes_on(k) || is_next(EXTENDS, k)) && (!is_freed(k) || may_finish(k)))

inline answered(k) {
        if
        :: p[k].op_fresh -> p[k].fresh = 1; p[k].wait = 0
        :: else
        fi;
        if
        :: begins(k) -> start_term(k)
        :: goes_on(k) -> extend(k); happens()
        :: is_freed(k) -> finish(k)
        :: else
        fi;
        forget_op(k);
        check_p1()
}

/* The deadline of a request passes. The request or its reply is lost, or it is applied later. */
inline give_up(k) {
        if
        :: p[k].op_phase == SENT && left_kind == NONE ->
                left_kind = p[k].op;
                left_by = k + 1
        :: true
        fi;
        forget_op(k)
}

inline joined(k) {
        p[k].work = 0;
        p[k].term_now = 0;
        p[k].valid = 0;
        if
        :: p[k].state == DRAINING || p[k].hand_over || p[k].stop -> p[k].state = RELEASING
        :: else -> p[k].state = FOLLOWING
        fi;
        p[k].hand_over = 0;
        happens()
}

inline gone(k) {
        p[k].state = GONE;
        p[k].hand_over = 0;
        p[k].valid = 0;
        p[k].wait = 0;
        p[k].fresh = 0;
        p[k].term_now = 0;
        if
        :: !p[k].stop -> count_gone
        :: else -> p[k].stop = 0
        fi;
        happens()
}

/* A write of the last term has to be expected. */
#ifdef UNFENCED
#define writes(k) (fenced_by == k + 1)
#else
#define writes(k) false
#endif
#ifdef M_LEAD_UNSETTLED
#define may_lead(k) true
#else
#define may_lead(k) (!writes(k))
#endif
#ifdef M_RELEASE_UNSETTLED
#define may_release(k) true
#else
#define may_release(k) (!writes(k))
#endif

/* Whether to renew. A renewal before the first tick would only make more states. */
#ifdef REPLAY
#define is_worth_it(k) true
#else
#define is_worth_it(k) (p[k].valid < RENEW)
#endif
/* The code cannot know whether a request without an answer was lost; here it matters only if it was not. */
#ifdef REPLAY
#define may_void(k) true
#else
#define may_void(k) (left_kind == ACQUIRE && left_by == (k) + 1)
#endif

/* It has died or stopped, or is stuck, and is started again under another identity. */
inline start_again(k) {
        p[k].state = FOLLOWING;
        p[k].work = 0;
        if
        :: holder == k + 1 -> holder = former + 1
        :: else
        fi;
        if
        :: left_by == k + 1 -> left_by = former + 1
        :: else
        fi;
        happens()
}

active [N] proctype contender() {
end:    do
        /* It reads the Lease, or the watch reports it. */
        :: atomic { !p[me].fresh && !ended(me) && (!is_lost(me) || may_lose(me)) -> learn(me); in_order() }
#ifndef UNFENCED
        /* It learns, by a lock on its host, that the holder is dead. */
        :: atomic { p[me].state == FOLLOWING && p[me].fresh && p[me].wait > 0 && is_dead(holder) -> p[me].wait = 0; in_order() }
#endif
#ifdef M_BELIEVE_LATE
        /* A late event says that the Lease was free once. It is older than what is known, so it changes nothing. The mistake keeps
         * the new revision with the old holder. */
        :: atomic { p[me].state == FOLLOWING && p[me].fresh && p[me].wait > 0 -> p[me].wait = 0; in_order() }
#endif
        /* It acquires the Lease; it renews it. */
        :: atomic { p[me].state == FOLLOWING && p[me].op == NONE && knows(me) && p[me].wait == 0 && may_lead(me) && is_next(SENDS(ACQUIRE), me) -> send(me, ACQUIRE); in_order() }
        :: atomic { leads(me) && p[me].op == NONE && knows(me) && p[me].valid > 0 && is_worth_it(me) && is_next(SENDS(RENEWAL), me) -> send(me, RENEWAL); in_order() }
        :: atomic { p[me].op_phase == SENT && is_next(WRITES(p[me].op), me) -> apply(me); in_order() }
        :: atomic { p[me].op_phase == DONE && may_answer(me) -> answered(me); in_order() }
        :: atomic { p[me].op_phase == SENT && (!calm || p[me].op_left == 0) || p[me].op_phase == DONE && !calm -> give_up(me); in_order() }
        /* The ways a term ends. */
        :: atomic { leads(me) && p[me].valid == 0 && may_lose(me) -> lose(me); in_order() }
        :: atomic { p[me].state == LEADING && !calm && is_next(DRAINS, me) -> p[me].state = DRAINING; happens(); in_order() }
        :: atomic { p[me].state == DRAINING && may_lose(me) -> lose(me); in_order() } /* the drain deadline */
        :: atomic { (p[me].state == DRAINING || p[me].state == ABORTING) && p[me].work && is_next(JOINED, me) -> joined(me); in_order() }
#ifdef M_RELEASE_BEFORE_JOIN
        :: atomic { p[me].state == DRAINING -> p[me].state = RELEASING; in_order() }
#endif
#ifdef M_SKIP_JOIN
        :: atomic { p[me].state == ABORTING -> p[me].state = FOLLOWING; in_order() }
#endif
        :: atomic { p[me].state == ABORTING && p[me].work && may_go(me) && is_next(STUCK, me) -> give_up(me); gone(me); in_order() }
        :: atomic { !ended(me) && may_go(me) && is_next(DIES, me) -> give_up(me); p[me].work = 0; gone(me); in_order() }
        /* The release: compare and clear, bounded. */
        :: atomic { p[me].state == RELEASING && p[me].op == NONE && knows(me) && is_own(me) && may_release(me) && is_next(SENDS(RELEASE), me) -> send(me, RELEASE); in_order() }
        :: atomic { p[me].state == RELEASING && p[me].op == NONE && p[me].fresh && holder != me + 1 && may_finish(me) -> finish(me); in_order() }
        /* An acquire may still arrive. A release of the free or expired Lease makes it void. */
        :: atomic { p[me].state == RELEASING && p[me].op == NONE && knows(me) && !is_own(me) && p[me].wait == 0 && may_void(me) && is_next(SENDS(RELEASE), me) -> send(me, RELEASE); in_order() }
        :: atomic { p[me].state == RELEASING && p[me].op == NONE && !calm && may_finish(me) -> finish(me); in_order() }
        :: atomic { !p[me].stop && !ended(me) && may_go(me) && is_next(STOPS, me) ->
                p[me].stop = 1;
                p[me].hand_over = 0;
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
        :: atomic { acts(me) && is_next(ACTS, me) -> happens() }
        :: atomic { ended(me) && is_next(STARTS, me) -> start_again(me) }
#endif
#ifdef UNFENCED
        :: atomic { p[me].work && acts(me) && fenced_by == 0 -> fenced_by = me + 1; in_order() }
#elif !defined(CALM) && !defined(REPLAY)
        /* Its controllers write, whether they may or not: the fence must hold even if the clock stands still. */
        :: atomic { p[me].work && fenced_by == 0 && !calm -> fenced_by = me + 1; fenced_now = p[me].term_now; in_order() }
#endif
        od
}

/* ---- the rest of the world ---- */

inline left_applied() {
        kind_left = left_kind;
        by_left = left_by - 1;
        store(by_left, kind_left);
        happens();
        kind_left = 0;
        by_left = 0
}

#ifdef M_FENCE_IDENTITY_ONLY
#define fence_holds (holder == fenced_by)
#else
#ifdef M_NO_FENCE
#define fence_holds (true)
#else
#define fence_holds (fenced_now)
#endif
#endif

inline fenced_arrives() {
#ifndef UNFENCED
        if
        :: fence_holds -> assert(fenced_now && holder == fenced_by) /* P2 */
        :: else ->
                if
                :: leads(fenced_by - 1) && !p[fenced_by - 1].term_now -> lose(fenced_by - 1)
                :: else
                fi
        fi;
#endif
        fenced_by = 0;
        fenced_now = 0
}

#define runs(k) (p[k].valid > 0 || p[k].wait > 0 || p[k].op_left > 0)

inline one_less(x) {
        if
        :: x > 0 -> x--
        :: else
        fi
}

inline tick() {
        for (j : 0 .. N - 1) {
#ifndef M_GATE_BY_FLAG
                one_less(p[j].valid);
#endif
#ifndef M_WAIT_FOREVER
                one_less(p[j].wait);
#endif
                one_less(p[j].op_left)
        }
        j = 0
}

active proctype world() {
end:    do
#ifdef REPLAY
        :: atomic { n_replayed == 0 -> happens() }
#endif
        :: atomic { left_kind != NONE && is_next(WRITES(left_kind), left_by - 1) -> left_applied(); in_order() }
        :: atomic { fenced_by != 0 -> fenced_arrives(); in_order() }
        :: atomic { (!calm || timeout) && (runs(0) || runs(1) || runs(2)) -> tick(); in_order() }
#ifdef CALM
        :: atomic { !calm -> calm = 1; in_order() }
#endif
        od
}

#ifdef CALM
ltl live { [] (calm -> <> anybody_acts) }
#endif
