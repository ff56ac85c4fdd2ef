/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards divided over members, simulated in virtual time: processes join, leave, crash and pause,
 * and each sees every Lease with a delay of its own. HOLDFAST_SEED=n begins with schedule n,
 * HOLDFAST_SCHEDULES=n sets their number.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/shards.h>

#include "counted_key_index.h"
#include "leader/shards_core.h"
#include "time_units.h"

#define N_PROCESSES 6
#define N_SHARDS    17
#define TICK        (50 * MSEC)
#define LEASE       (15 * SEC)
#define RETRY       (2 * SEC)
#define HOLD_BACK   (3 * RETRY)

struct lease {
        char holder[HF_IDENTITY_MAX + 1], successor[HF_IDENTITY_MAX + 1];
        unsigned version;
};

/* What the elector of one shard knows and does. */
struct contender {
        struct lease seen;
        hf_nsec seen_at; /* when `seen` last changed */
        bool leads, drains;
        hf_nsec drained_at, renew_at, yields_until;
        char successor[HF_IDENTITY_MAX + 1];
};

struct process {
        bool alive, stops;
        hf_nsec paused_until;
        char identity[32];
        uint64_t key;
        hf_nsec renew_at;
        struct hf__shards_core core;
        unsigned seen_member[64]; /* by the number of a member's Lease: the version that was seen */
        struct contender contenders[N_SHARDS];
};

struct world {
        uint64_t rng;
        hf_nsec now;
        struct process processes[N_PROCESSES];
        struct lease shards[N_SHARDS];
        struct lease members[64]; /* one for each identity that ever was */
        uint64_t member_keys[64];
        unsigned n_members;
        char last_holder[N_SHARDS][HF_IDENTITY_MAX + 1];
        unsigned n_moves[N_SHARDS];
        hf_nsec free_since[N_SHARDS], longest_gap;
        unsigned n_changes; /* of the membership */
        bool lags;          /* a change may be seen any time later; false: within 500 ms */
};

static bool saw_member(struct hf__shards_core *core, uint64_t key, const char *holder,
                       int64_t renew_us, hf_nsec now) {
        struct hf__record record = {.exists = true, .renew_us = renew_us};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        (void)snprintf(record.rv, sizeof record.rv, "%lld", (long long)renew_us);
        return hf__shards_core_saw_member(core, key, &record, now);
}

static uint64_t random_below(struct world *w, uint64_t n) {
        w->rng ^= w->rng << 13;
        w->rng ^= w->rng >> 7;
        w->rng ^= w->rng << 17;
        return (w->rng >> 11) % n;
}

static void start(struct world *w, int number) {
        struct process *p = &w->processes[number];

        if (p->alive || w->n_members == 64)
                return;
        memset(p, 0, sizeof *p);
        p->alive = true;
        (void)snprintf(p->identity, sizeof p->identity, "p%d-%u", number, w->n_members);
        p->key = hf__shards_key(p->identity);
        assert_int_equal(hf__shards_core_init(&p->core, p->identity, N_SHARDS, LEASE, RETRY), 0);
        w->member_keys[w->n_members] = p->key;
        strcpy(w->members[w->n_members].holder, p->identity);
        w->members[w->n_members++].version = 1;
        p->renew_at = w->now + RETRY;
        for (int i = 0; i < N_SHARDS; i++)
                p->contenders[i].seen_at = w->now;
        w->n_changes++;
}

static void end(struct world *w, int number) {
        struct process *p = &w->processes[number];

        if (p->alive)
                hf__shards_core_done(&p->core);
        p->alive = false;
}

static void crash(struct world *w, int number) {
        w->n_changes += w->processes[number].alive;
        end(w, number);
}

static struct lease *find_member(struct world *w, const struct process *p) {
        for (unsigned i = 0; i < w->n_members; i++)
                if (w->member_keys[i] == p->key)
                        return &w->members[i];
        abort();
}

/* Releases the member's Lease at once, and the shards when their work has drained. */
static void leave(struct world *w, int number) {
        struct process *p = &w->processes[number];

        if (!p->alive || p->stops)
                return;
        p->stops = true;
        find_member(w, p)->holder[0] = '\0';
        find_member(w, p)->version++;
        w->n_changes++;
}

static void put(struct world *w, int i, const char *holder, const char *successor) {
        struct lease *lease = &w->shards[i];

        if (holder[0] == '\0' || lease->holder[0] == '\0' || strcmp(holder, lease->holder) != 0) {
                if (holder[0] && w->free_since[i] && w->now - w->free_since[i] > w->longest_gap)
                        w->longest_gap = w->now - w->free_since[i];
                w->free_since[i] = holder[0] ? 0 : w->now;
        }
        if (holder[0] && strcmp(w->last_holder[i], holder) != 0) {
                w->n_moves[i]++;
                strcpy(w->last_holder[i], holder);
        }
        strcpy(lease->holder, holder);
        strcpy(lease->successor, successor);
        lease->version++;
}

/* ---- one process ---- */

static bool sees(struct world *w) {
        return random_below(w, 4) == 0 || (!w->lags && w->now / TICK % 10 == 0);
}

static void look(struct world *w, struct process *p) {
        for (unsigned i = 0; i < w->n_members; i++)
                if (p->seen_member[i] != w->members[i].version && sees(w)) {
                        p->seen_member[i] = w->members[i].version;
                        (void)saw_member(&p->core, w->member_keys[i], w->members[i].holder,
                                         w->members[i].version, w->now);
                }
        for (int i = 0; i < N_SHARDS; i++) {
                struct contender *c = &p->contenders[i];
                if (c->seen.version == w->shards[i].version || !sees(w))
                        continue;
                c->seen = w->shards[i];
                c->seen_at = w->now;
                if (c->seen.holder[0] && strcmp(c->seen.holder, p->identity) != 0)
                        c->yields_until = 0;
                (void)hf__shards_core_saw_shard(&p->core, (size_t)i, c->seen.holder,
                                                c->seen.successor);
        }
}

static bool may_take(const struct world *w, const struct process *p, int i) {
        const struct contender *c = &p->contenders[i];
        hf_nsec at = c->seen_at;

        if (c->seen.holder[0] == '\0' && strcmp(c->seen.successor, p->identity) == 0)
                return true;
        if (c->seen.holder[0])
                at += LEASE;
        else if (c->seen.successor[0])
                at += RETRY;
        if (at < c->yields_until)
                at = c->yields_until;
        return w->now >= at + (p->core.shards[i].contends ? 0 : HOLD_BACK);
}

static void lead(struct world *w, struct process *p, int i) {
        struct contender *c = &p->contenders[i];

        if (strcmp(w->shards[i].holder, p->identity) != 0) { /* it was paused, and lost it */
                c->leads = c->drains = false;
                return;
        }
        const char *to = p->core.shards[i].hand_over_to;
        if (!c->drains && (p->stops || to[0])) {
                c->drains = true;
                c->drained_at = w->now + (hf_nsec)random_below(w, 1500) * MSEC;
                strcpy(c->successor, p->stops ? "" : to);
        }
        if (c->drains && w->now >= c->drained_at) {
                put(w, i, "", c->successor);
                c->leads = c->drains = false;
                c->yields_until = w->now + 2 * RETRY;
        } else if (w->now >= c->renew_at) {
                put(w, i, p->identity, "");
                c->renew_at = w->now + RETRY;
        }
}

static void step_process(struct world *w, struct process *p) {
        unsigned n_led = 0;

        if (!p->stops && w->now >= p->renew_at) {
                find_member(w, p)->version++;
                p->renew_at = w->now + RETRY;
        }
        look(w, p);
        (void)hf__shards_core_decide(&p->core, w->now);
        for (int i = 0; i < N_SHARDS; i++) {
                struct contender *c = &p->contenders[i];
                if (c->leads) {
                        lead(w, p, i);
                } else if (!p->stops && c->seen.version == w->shards[i].version &&
                           may_take(w, p, i)) {
                        put(w, i, p->identity, "");
                        c->leads = true;
                        c->renew_at = w->now + RETRY;
                }
                n_led += c->leads;
        }
        if (p->stops && n_led == 0)
                end(w, (int)(p - w->processes));
}

static void run_for(struct world *w, hf_nsec duration) {
        for (hf_nsec until = w->now + duration; w->now < until; w->now += TICK)
                for (int i = 0; i < N_PROCESSES; i++)
                        if (w->processes[i].alive && w->now >= w->processes[i].paused_until)
                                step_process(w, &w->processes[i]);
}

static void begin(struct world *w, uint64_t seed, int n) {
        memset(w, 0, sizeof *w);
        w->rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        w->now = 1000 * SEC;
        for (int i = 0; i < n; i++)
                start(w, i);
}

static void finish(struct world *w) {
        for (int i = 0; i < N_PROCESSES; i++)
                end(w, i);
}

/* ---- what must hold ---- */

static unsigned count_held(const struct world *w, const char *identity) {
        unsigned n = 0;

        for (int i = 0; i < N_SHARDS; i++)
                n += strcmp(w->shards[i].holder, identity) == 0;
        return n;
}

static void assert_balanced(const struct world *w) {
        unsigned n_held = 0, n_alive = 0, least = N_SHARDS, most = 0;

        for (int i = 0; i < N_PROCESSES; i++) {
                if (!w->processes[i].alive)
                        continue;
                unsigned n = count_held(w, w->processes[i].identity);
                least = n < least ? n : least;
                most = n > most ? n : most;
                n_held += n;
                n_alive++;
        }
        assert_true(n_alive > 0);
        assert_int_equal(n_held, N_SHARDS);
        assert_true(most - least <= 1);
}

static unsigned reset_moves(struct world *w, unsigned *ret_most) {
        unsigned n = 0, most = 0;

        for (int i = 0; i < N_SHARDS; i++) {
                n += w->n_moves[i];
                most = w->n_moves[i] > most ? w->n_moves[i] : most;
                w->n_moves[i] = 0;
        }
        if (ret_most)
                *ret_most = most;
        w->longest_gap = 0;
        return n;
}

static uint64_t first_seed(void) {
        const char *text = getenv("HOLDFAST_SEED");
        return text ? strtoull(text, NULL, 10) : 1;
}
static uint64_t n_schedules(uint64_t n) {
        const char *text = getenv("HOLDFAST_SCHEDULES");
        return text ? strtoull(text, NULL, 10) : n;
}

#define EACH_SEED(seed, n)                                                                         \
        for (uint64_t seed = first_seed(), last = seed + n_schedules(n); seed < last; seed++)

/* Processes that start together divide the shards without moving one. */
static void test_a_start_divides_the_shards(void **state) {
        struct world w;
        unsigned most;

        EACH_SEED(seed, 100) {
                begin(&w, seed, 1 + (int)(seed % N_PROCESSES));
                run_for(&w, 4 * RETRY);
                assert_balanced(&w);
                assert_int_equal(reset_moves(&w, &most), N_SHARDS);
                assert_int_equal(most, 1);
                run_for(&w, 60 * SEC);
                assert_int_equal(reset_moves(&w, NULL), 0);
                finish(&w);
        }
}

/* Only the shards that a new process needs move to it, by hand-over, without waiting for an expiry.
 */
static void test_a_new_process_takes_its_share(void **state) {
        struct world w;
        unsigned most;

        EACH_SEED(seed, 200) {
                int n = 1 + (int)(seed % (N_PROCESSES - 1));
                begin(&w, seed, n);
                run_for(&w, 20 * SEC);
                (void)reset_moves(&w, NULL);
                start(&w, n);
                run_for(&w, 3 * RETRY);
                assert_balanced(&w);
                assert_true(w.longest_gap < RETRY);
                assert_int_equal(reset_moves(&w, &most), N_SHARDS / (n + 1));
                assert_int_equal(most, 1);
                run_for(&w, 60 * SEC);
                assert_int_equal(reset_moves(&w, NULL), 0);
                finish(&w);
        }
}

/* Only the shards of a process that crashed or left move, each once. */
static void test_only_the_shards_of_the_one_that_ends_move(void **state) {
        struct world w;
        unsigned most;

        EACH_SEED(seed, 200) {
                int n = 2 + (int)(seed % (N_PROCESSES - 1));
                begin(&w, seed, n);
                run_for(&w, 20 * SEC);
                (void)reset_moves(&w, NULL);
                unsigned n_held = count_held(&w, w.processes[0].identity);
                if (seed % 2)
                        crash(&w, 0);
                else
                        leave(&w, 0);
                run_for(&w, seed % 2 ? LEASE + 2 * RETRY : 2 * RETRY);
                assert_balanced(&w);
                assert_int_equal(reset_moves(&w, &most), n_held);
                assert_int_equal(most, n_held > 0);
                run_for(&w, 60 * SEC);
                assert_int_equal(reset_moves(&w, NULL), 0);
                finish(&w);
        }
}

/* Whatever happened, in the end every shard has one holder, evenly, and then none moves. */
static void test_random_fleets_settle(void **state) {
        struct world w;
        unsigned most;

        EACH_SEED(seed, 300) {
                begin(&w, seed, 3);
                w.lags = true;
                for (int k = 0; k < 30; k++) {
                        int number = (int)random_below(&w, N_PROCESSES);
                        struct process *p = &w.processes[number];
                        switch (random_below(&w, 5)) {
                        case 0: crash(&w, number); break;
                        case 1: leave(&w, number); break;
                        case 2:
                                if (w.now >= p->paused_until) {
                                        p->paused_until =
                                                w.now + (hf_nsec)random_below(&w, 25) * SEC;
                                        w.n_changes += 2; /* it may leave and come back */
                                }
                                break;
                        default: start(&w, number); break;
                        }
                        run_for(&w, (hf_nsec)random_below(&w, 10000) * MSEC);
                }
                start(&w, 0);
                run_for(&w, 60 * SEC);
                assert_balanced(&w);
                (void)reset_moves(&w, &most);
                assert_true(most <= w.n_changes + 1);
                run_for(&w, 120 * SEC);
                assert_int_equal(reset_moves(&w, NULL), 0);
                finish(&w);
        }
}

/* A process whose Lease is not renewed is no member. A member that was away counts again only after
 * another renewal. */
static void test_a_member_must_renew(void **state) {
        struct hf__shards_core core;
        uint64_t self = hf__shards_key("a"), dead = hf__shards_key("b");
        hf_nsec now = 100 * SEC;

        assert_int_equal(hf__shards_core_init(&core, "a", 2, LEASE, RETRY), 0);
        assert_false(saw_member(&core, dead, "b", 1, now));
        assert_false(saw_member(&core, self, "a", 1, now));
        assert_false(saw_member(&core, dead, "b", 1, now + SEC)); /* listed again */
        (void)hf__shards_core_decide(&core, now);
        assert_false(core.shards[0].contends);
        assert_true(saw_member(&core, self, "a", 2, now + RETRY));
        assert_int_equal(hf__shards_core_decide(&core, now + RETRY), now + RETRY + RETRY / 2);
        assert_false(core.shards[0].contends);
        now += 2 * RETRY;
        assert_int_equal(hf__shards_core_decide(&core, now), now - RETRY + LEASE);
        assert_true(core.shards[0].contends && core.shards[1].contends);
        /* b was alive after all, so it gets one of the two shards. */
        assert_true(saw_member(&core, dead, "b", 2, now));
        now += RETRY;
        (void)hf__shards_core_decide(&core, now);
        assert_int_equal(core.shards[0].contends + core.shards[1].contends, 1);
        /* It expires, comes back, and counts from its next renewal on. */
        now += LEASE;
        (void)saw_member(&core, self, "a", 3, now - SEC);
        assert_false(saw_member(&core, dead, "b", 3, now + SEC));
        assert_true(saw_member(&core, dead, "b", 4, now + SEC + RETRY));
        hf__shards_core_done(&core);
}

/* A member counts until just before a lease duration has passed since its last renewal, and the
 * decision is due anew at that time. */
static void test_a_member_expires_after_a_lease_duration(void **state) {
        for (int way = 0; way < 3; way++) {
                struct hf__shards_core core;
                uint64_t self = hf__shards_key("a"), other = hf__shards_key("b");
                hf_nsec now = 100 * SEC;

                assert_int_equal(hf__shards_core_init(&core, "a", 2, LEASE, RETRY), 0);
                (void)saw_member(&core, self, "a", 1, now);
                (void)saw_member(&core, other, "b", 1, now);
                (void)saw_member(&core, other, "b", 2, now + RETRY);
                (void)saw_member(&core, self, "a", 2, now + 2 * RETRY);
                now += RETRY + LEASE + (way - 1); /* b's end, and just before and after it */
                hf_nsec due = hf__shards_core_decide(&core, now);
                assert_int_equal(core.shards[0].contends + core.shards[1].contends,
                                 way == 0 ? 1 : 2);
                assert_true(way == 0 ? due == now + 1 : due > now + 1);
                hf__shards_core_done(&core);
        }
}

/* The members in the order of their keys, by a walk like that of a decision. */
static unsigned list_members(const struct hf__shards_core *core, const char *ret_identities[3]) {
        const struct hf__shards_member *member;
        struct hf__key_iter iter;
        unsigned n = 0;

        hf__key_iter_init(&iter, &core->members);
        while ((member = (const struct hf__shards_member *)hf__key_iter_next(&iter)))
                ret_identities[n++] = member->identity;
        return n;
}

static void test_a_member_whose_lease_is_deleted_is_forgotten(void **state) {
        struct hf__shards_core core;
        const char *const names[] = {"a", "b", "c"};
        const char *before[3], *after[3];

        assert_int_equal(hf__shards_core_init(&core, "a", 2, LEASE, RETRY), 0);
        for (int i = 0; i < 3; i++)
                (void)saw_member(&core, hf__shards_key(names[i]), names[i], 1, SEC);
        assert_int_equal(list_members(&core, before), 3);
        assert_true(hf__shards_key(before[0]) < hf__shards_key(before[1]));
        assert_true(hf__shards_key(before[1]) < hf__shards_key(before[2]));
        assert_false(hf__shards_core_lost_member(&core, hf__shards_key(before[1]))); /* not live */
        assert_int_equal(list_members(&core, after), 2);
        assert_string_equal(after[0], before[0]);
        assert_string_equal(after[1], before[2]);
        assert_false(hf__shards_core_lost_member(&core, 4711)); /* no member has this Lease */
        (void)saw_member(&core, hf__shards_key("a"), "a", 2, SEC);
        assert_true(hf__shards_core_lost_member(&core, hf__shards_key("a")));
        assert_int_equal(core.members.n, 1);
        hf__shards_core_done(&core);
}

/* A shard that is being handed over counts for its successor. Otherwise another member would get
 * one too many. */
static void test_a_shard_counts_for_its_successor(void **state) {
        struct hf__shards_core core;
        const char *names[] = {"a", "b"};
        hf_nsec now = 100 * SEC;

        for (int self = 0; self < 2; self++) {
                assert_int_equal(hf__shards_core_init(&core, names[self], 3, LEASE, RETRY), 0);
                for (int i = 0; i < 2; i++)
                        for (int k = 1; k <= 2; k++)
                                (void)saw_member(&core, hf__shards_key(names[i]), names[i], k, now);
                assert_true(hf__shards_core_saw_shard(&core, 0, "a", ""));
                assert_true(hf__shards_core_saw_shard(&core, 1, "", "b"));
                assert_true(hf__shards_core_saw_shard(&core, 2, "", "b"));
                assert_false(hf__shards_core_saw_shard(&core, 2, "", "b"));
                (void)hf__shards_core_decide(&core, now + RETRY);
                assert_int_equal(core.shards[0].contends, self == 0);
                assert_int_equal(core.shards[1].contends, self == 1);
                assert_int_equal(core.shards[2].contends, self == 1);
                hf__shards_core_done(&core);
        }
}

static bool finds(struct hf__shards_core *core, hf_nsec now, uint64_t key) {
        const struct hf__shards_member *found = hf__shards_core_find_garbage(core, now);

        assert_true(!found || found->key == key);
        return found != NULL;
}

/* One live member finds the Leases of those that ended long ago. */
static void test_old_members_are_garbage(void **state) {
        struct hf__shards_core core;
        uint64_t self = hf__shards_key("a"), dead = hf__shards_key("b"),
                 other = hf__shards_key("c");
        hf_nsec now = 100 * SEC;

        assert_int_equal(hf__shards_core_init(&core, "a", 1, LEASE, RETRY), 0);
        (void)saw_member(&core, dead, "b", 1, now);
        for (int i = 1; i <= 31; i++)
                (void)saw_member(&core, self, "a", i, now + (i - 1) * RETRY);
        now += 4 * LEASE;
        assert_false(finds(&core, now, dead)); /* nothing was decided yet */
        (void)hf__shards_core_decide(&core, now);
        assert_false(finds(&core, now - 1, dead));
        assert_true(finds(&core, now, dead));
        /* It is still there: the delete has failed. */
        assert_false(finds(&core, now + LEASE - 1, dead));
        (void)saw_member(&core, self, "a", 32, now + LEASE - 1);
        now += LEASE;
        assert_true(finds(&core, now, dead));
        now += LEASE;
        /* If two members are live, one of them deletes. */
        (void)saw_member(&core, other, "c", 1, now);
        (void)saw_member(&core, other, "c", 2, now);
        (void)saw_member(&core, self, "a", 33, now - 1);
        (void)hf__shards_core_decide(&core, now);
        assert_int_equal(finds(&core, now, dead), self < other);
        core.self = other;
        (void)hf__shards_core_decide(&core, now);
        assert_int_equal(finds(&core, now, dead), other < self);
        (void)hf__shards_core_lost_member(&core, dead);
        assert_false(finds(&core, now, dead));
        hf__shards_core_done(&core);
}

/* A Lease whose delete fails leaves the turn to the others. One that was written again is young
 * again, and its newest revision is the one to delete. */
static void test_garbage_takes_turns(void **state) {
        struct hf__shards_core core;
        uint64_t self = hf__shards_key("a"), first = 1, second = 2, third = 3;
        hf_nsec now = 100 * SEC;

        assert_int_equal(hf__shards_core_init(&core, "a", 1, LEASE, RETRY), 0);
        (void)saw_member(&core, first, "", 1, now);
        (void)saw_member(&core, second, "", 1, now + 1);
        now += 5 * LEASE;
        (void)saw_member(&core, self, "a", 1, now);
        (void)saw_member(&core, self, "a", 2, now);
        (void)hf__shards_core_decide(&core, now);
        core.cleans = true; /* as the first live one */
        assert_true(finds(&core, now, first));
        assert_true(finds(&core, now + 1, second));
        assert_false(finds(&core, now + LEASE - 1, first));
        assert_true(finds(&core, now + LEASE, first));
        assert_false(finds(&core, now + LEASE, second));
        assert_true(finds(&core, now + LEASE + 1, second));
        assert_false(saw_member(&core, first, "", 7, now + LEASE + 2));
        (void)saw_member(&core, third, "", 1, now + LEASE + 3);
        now += LEASE + 2;
        (void)saw_member(&core, self, "a", 3, now + 2);
        assert_true(finds(&core, now + LEASE, second));
        assert_false(hf__shards_core_lost_member(&core, second));
        assert_false(finds(&core, now + 4 * LEASE - 1, first));
        const struct hf__shards_member *found =
                hf__shards_core_find_garbage(&core, now + 4 * LEASE);
        assert_true(found && found->key == first);
        assert_string_equal(found->rv, "7");
        assert_true(finds(&core, now + 4 * LEASE + 1, third));
        assert_false(finds(&core, now + 4 * LEASE + 1, third));
        hf__shards_core_done(&core);
}

/* Whoever may write Leases can make any number of them without a holder. Each costs a process a
 * search in a tree, to see it, to find it as garbage and to forget it; nothing goes through all. */
static void test_released_leases_cost_little(void **state) {
        enum { N = 50000 };
        struct hf__shards_core core;
        hf_nsec now = 100 * SEC;
        unsigned n_found = 0;
        uint64_t before = counted_key_index_comparisons();

        assert_int_equal(hf__shards_core_init(&core, "a", 1, LEASE, RETRY), 0);
        for (uint64_t i = 0; i < N; i++) {
                uint64_t key = i * UINT64_C(0x9e3779b97f4a7c15) | 1;
                assert_false(saw_member(&core, key, "", 1, now));
        }
        now += 4 * LEASE;
        core.cleans = true;
        for (const struct hf__shards_member *found;
             (found = hf__shards_core_find_garbage(&core, now)); n_found++)
                assert_false(hf__shards_core_lost_member(&core, found->key));
        assert_int_equal(n_found, N);
        assert_true(counted_key_index_comparisons() - before < (uint64_t)N * 200);
        hf__shards_core_done(&core);
}

/* The hash never changes, or two versions would disagree about where a key belongs. */
static void test_a_key_has_one_shard(void **state) {
        unsigned count[7] = {0};
        char key[32];

        assert_int_equal(hf_shard_of("default/a", 7), 2);
        assert_int_equal(hf_shard_of("default/b", 7), 2);
        assert_int_equal(hf_shard_of("", 1), 0);
        for (int i = 0; i < 7000; i++) {
                (void)snprintf(key, sizeof key, "default/object-%d", i);
                unsigned shard = hf_shard_of(key, 7);
                assert_true(shard < 7);
                count[shard]++;
        }
        for (int i = 0; i < 7; i++)
                assert_in_range(count[i], 850, 1150);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_key_has_one_shard),
                cmocka_unit_test(test_a_member_must_renew),
                cmocka_unit_test(test_a_member_expires_after_a_lease_duration),
                cmocka_unit_test(test_a_member_whose_lease_is_deleted_is_forgotten),
                cmocka_unit_test(test_a_shard_counts_for_its_successor),
                cmocka_unit_test(test_old_members_are_garbage),
                cmocka_unit_test(test_garbage_takes_turns),
                cmocka_unit_test(test_released_leases_cost_little),
                cmocka_unit_test(test_a_start_divides_the_shards),
                cmocka_unit_test(test_a_new_process_takes_its_share),
                cmocka_unit_test(test_only_the_shards_of_the_one_that_ends_move),
                cmocka_unit_test(test_random_fleets_settle),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
