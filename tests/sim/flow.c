/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the core of priority and fairness in virtual time, by seeds: random levels, and
 * requests that come, run, give up or wait too long while limits and queues change. After each step
 * it compares the state with its own records, and checks what queue_set.h promises:
 *
 *      seats      the seats of running requests add up to those in use; only a wider request, which
 *                 runs alone, exceeds the limit, or requests that ran before it was lowered; at the
 *                 end no seat is in use
 *      order      requests of a queue start in the order of their arrival
 *      bound      a queue is never longer than configured, and no request waits past its deadline
 *      work       no request waits while there is room for the next one
 *      fairness   flows that always want more get equal seat time, apart from the estimates of
 *                 their running requests; a flow with a single request waits a bounded time
 *      borrowing  current limits stay within their bounds, and add up
 *
 * A failure prints the seed; --seed with --schedules 1 repeats it.
 */
#undef NDEBUG
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/flow/core/borrowing.h"
#include "server/flow/core/dealer.h"
#include "server/flow/core/queue_set.h"

#define MSEC HF_NSEC_PER_MSEC
#define N    256

static uint64_t seed, state;

static uint64_t draw(void) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
}

static uint64_t below(uint64_t n) { return draw() % n; }

static void check(bool good, const char *promise) {
        if (good)
                return;
        (void)printf("seed %" PRIu64 ": %s\n", seed, promise);
        exit(1);
}

/* ---- a level with its requests ---- */

struct request {
        struct hfd_seats seats; /* must be first */
        bool used;
        unsigned width, flow;
        uint64_t number; /* of its arrival */
        hf_nsec ends, deadline, arrived;
};

struct world {
        struct hfd_queue_set set;
        struct request requests[N];
        hf_nsec now;
        uint64_t n_arrived;
        uint64_t running; /* seats in use, by our own records */
        size_t n_running;
        hf_nsec longest;   /* how long a request runs at most */
        hf_nsec served[8]; /* seat time of each flow */
};

static struct world *world;

static struct request *request_of(struct hfd_seats *seats) {
        return (struct request *)(void *)seats;
}

static void note_start(struct request *request) {
        const struct hfd_queue_set *set = &world->set;

        check(request->seats.state == HFD_SEATS_EXECUTING, "a granted request does not run");
        world->running += request->width;
        world->n_running++;
        check(set->config.kind == HFD_LEVEL_EXEMPT || world->running <= set->limit ||
                      (request->width > set->limit && world->n_running == 1),
              "the limit is exceeded");
        request->ends = world->now + 1 + (hf_nsec)below((uint64_t)world->longest);
}

static void note_decisions(const struct hfd_decisions *decisions) {
        /* A request that starts changes the state in which the next one starts, so the records
         * follow in the order of the decisions. */
        for (struct hfd_seats *m = decisions->granted; m; m = m->decided) {
                struct request *request = request_of(m);
                for (size_t i = 0; i < N; i++)
                        check(!world->requests[i].used || m->queue == NULL ||
                                      world->requests[i].seats.state != HFD_SEATS_WAITING ||
                                      world->requests[i].seats.queue != m->queue ||
                                      world->requests[i].number > request->number,
                              "a request has passed another one of its queue");
                note_start(request);
        }
        for (struct hfd_seats *m = decisions->expired; m; m = m->decided) {
                check(request_of(m)->deadline <= world->now, "a wait was ended too early");
                request_of(m)->used = false;
        }
}

static void check_world(void) {
        struct hfd_queue_set *set = &world->set;
        uint64_t running = 0, waiting = 0;
        size_t n_waiting = 0;

        for (size_t i = 0; i < N; i++) {
                const struct request *m = &world->requests[i];
                if (!m->used)
                        continue;
                check(m->seats.state != HFD_SEATS_OUTSIDE, "a request was forgotten");
                bool waits = m->seats.state == HFD_SEATS_WAITING;
                check(!waits || m->deadline > world->now, "a request waits past its deadline");
                n_waiting += waits;
                *(waits ? &waiting : &running) += m->width;
        }
        check(running == set->executing_seats && waiting == set->waiting_seats, "a seat is lost");
        check(running == world->running && n_waiting == set->n_waiting, "a request is lost");
        for (unsigned i = 0; i < set->n_queues; i++)
                check(!set->queues[i] || set->config.kind != HFD_LEVEL_QUEUE ||
                              i < set->config.n_queues ||
                              set->queues[i]->n_waiting + set->queues[i]->n_executing > 0,
                      "an empty queue that is not configured remains");
        if (n_waiting == 0)
                return;
        const struct hfd_seat_queue *next = (const void *)((const char *)set->order.first -
                                                           offsetof(struct hfd_seat_queue, place));
        unsigned width = next->waiting.first->width;
        check(set->limit == 0 || set->executing_seats >= set->limit ||
                      (width > set->limit ? set->n_executing > 0
                                          : set->executing_seats + width > set->limit),
              "a request waits although there is room for it");
}

/* ---- steps ---- */

static void end_request(struct request *request) {
        struct hfd_decisions decisions = {0};
        hf_nsec started = request->seats.started;
        enum hfd_seats_state was =
                hfd_queue_set_leave(&world->set, &request->seats, world->now, &decisions);

        if (was == HFD_SEATS_EXECUTING) {
                world->running -= request->width;
                world->n_running--;
                world->served[request->flow % 8] +=
                        (hf_nsec)request->width * (world->now - started);
        }
        request->used = false;
        note_decisions(&decisions);
}

/* Makes a request arrive. False: the records are full, or it was refused. */
static bool begin_request(unsigned flow, uint64_t hash, unsigned width, hf_nsec patience) {
        struct hfd_queue_set *set = &world->set;
        struct request *request = world->requests;

        while (request < world->requests + N && request->used)
                request++;
        if (request == world->requests + N)
                return false;
        *request = (struct request){.used = true,
                                    .flow = flow,
                                    .width = width,
                                    .number = world->n_arrived++,
                                    .arrived = world->now,
                                    .deadline = world->now + patience};
        struct hfd_decisions decisions = {0};
        size_t n_running = set->n_executing;
        uint64_t running = set->executing_seats;
        enum hfd_verdict verdict = hfd_queue_set_arrive(set, &request->seats, width, hash,
                                                        world->now, request->deadline, &decisions);
        if (verdict == HFD_VERDICT_EXECUTE)
                note_start(request);
        note_decisions(&decisions);
        if (verdict == HFD_VERDICT_EXECUTE)
                return true;
        if (verdict == HFD_VERDICT_WAIT) {
                check(request->seats.queue->n_waiting <= set->config.max_length,
                      "a queue is too long");
                return true;
        }
        request->used = false;
        check(set->config.kind != HFD_LEVEL_EXEMPT, "an exempt request was refused");
        check(verdict != HFD_VERDICT_NO_SEATS || running + width > set->limit ||
                      (width > set->limit && n_running > 0),
              "a request was refused although there is room for it");
        return false;
}

/* Moves the time to the next end or deadline, and a little further. */
static void pass_time(void) {
        struct hfd_decisions decisions = {0};

        world->now += (hf_nsec)below(4 * MSEC);
        for (size_t i = 0; i < N; i++) {
                struct request *m = &world->requests[i];
                if (m->used && m->seats.state == HFD_SEATS_EXECUTING && m->ends <= world->now)
                        end_request(m);
        }
        hfd_queue_set_expire(&world->set, world->now, &decisions);
        note_decisions(&decisions);
}

static struct hfd_queue_config any_config(bool exempt) {
        unsigned n_queues = 1 + (unsigned)below(12);

        if (exempt)
                return (struct hfd_queue_config){.kind = HFD_LEVEL_EXEMPT};
        if (below(5) == 0)
                return (struct hfd_queue_config){.kind = HFD_LEVEL_REJECT};
        return (struct hfd_queue_config){.kind = HFD_LEVEL_QUEUE,
                                         .n_queues = n_queues,
                                         .n_hand = 1 + (unsigned)below(n_queues),
                                         .max_length = 1 + (unsigned)below(20)};
}

static void reconfigure(bool exempt) {
        const struct hfd_queue_config config = any_config(exempt);
        struct hfd_decisions decisions = {0};

        assert(hfd_queue_set_configure(&world->set, &config, world->now, &decisions) == 0);
        note_decisions(&decisions);
}

static void change_limit(void) {
        struct hfd_decisions decisions = {0};

        hfd_queue_set_limit(&world->set, (unsigned)below(12), world->now, &decisions);
        note_decisions(&decisions);
}

static void finish_world(void) {
        for (int i = 0; i < 3; i++) /* ending one may start another */
                for (size_t j = 0; j < N; j++)
                        if (world->requests[j].used)
                                end_request(&world->requests[j]);
        check_world();
        check(world->set.executing_seats == 0 && world->set.n_active == 0, "a seat leaked");
        hfd_queue_set_done(&world->set);
        free(world);
}

static void begin_world(const struct hfd_queue_config *config, unsigned limit) {
        world = calloc(1, sizeof *world);
        assert(world);
        world->longest = 20 * MSEC;
        assert(hfd_queue_set_init(&world->set, config, limit, 0) == 0);
}

/* ---- schedules ---- */

static void chaos(void) {
        bool exempt = below(10) == 0;
        const struct hfd_queue_config config = any_config(exempt);

        begin_world(&config, 1 + (unsigned)below(10));
        for (int i = 0; i < 600; i++) {
                uint64_t what = below(100);
                struct request *any = &world->requests[below(N)];
                if (what < 60)
                        (void)begin_request((unsigned)below(5), hfd_dealer_hash(below(5), "flow"),
                                            below(6) ? 1 : 1 + (unsigned)below(14),
                                            1 + (hf_nsec)below(100 * MSEC));
                else if (what < 90)
                        pass_time();
                else if (what < 96 && any->used)
                        end_request(any); /* its client leaves */
                else if (what < 98)
                        change_limit();
                else
                        reconfigure(exempt);
                /* A deadline may have passed since the last call. */
                check_world();
        }
        finish_world();
}

/* Four flows with a queue each: three of them always have ten requests waiting, and one has one
 * request at a time. */
static void fairness(void) {
        const struct hfd_queue_config config = {.kind = HFD_LEVEL_QUEUE,
                                                .n_queues = 4,
                                                .n_hand = 1,
                                                .max_length = 40};
        unsigned limit = 1 + (unsigned)below(4), widths[4];
        size_t meek_starts = 0;

        begin_world(&config, limit);
        world->longest = 1 * MSEC + (hf_nsec)below(30 * MSEC);
        /* A request ends only when pass_time sees that its time is over. */
        hf_nsec longest = world->longest + 4 * MSEC;
        for (unsigned i = 0; i < 4; i++)
                widths[i] = 1 + (unsigned)below(limit);
        for (int i = 0; i < 3000; i++) {
                size_t n[4] = {0};
                for (size_t j = 0; j < N; j++) {
                        const struct request *m = &world->requests[j];
                        if (m->used && (m->flow == 3 || m->seats.state == HFD_SEATS_WAITING))
                                n[m->flow]++;
                }
                for (unsigned flow = 0; flow < 4; flow++)
                        for (size_t j = n[flow]; j < (flow == 3 ? 1 : 10); j++)
                                meek_starts += begin_request(flow, flow, widths[flow],
                                                             HF_NSEC_NEVER / 2) &&
                                               flow == 3;
                pass_time();
                check_world();
                /* Each of the others may be about `limit` running requests ahead. */
                hf_nsec bound = (hf_nsec)(4 * limit + 4) * (hf_nsec)limit * longest;
                for (size_t j = 0; j < N; j++)
                        check(!world->requests[j].used || world->requests[j].flow != 3 ||
                                      world->requests[j].seats.state != HFD_SEATS_WAITING ||
                                      world->now - world->requests[j].arrived < bound,
                              "a meek flow starves");
        }
        hf_nsec most = 0, least = HF_NSEC_NEVER;
        for (unsigned i = 0; i < 3; i++) {
                most = world->served[i] > most ? world->served[i] : most;
                least = world->served[i] < least ? world->served[i] : least;
        }
        check(most - least <= (hf_nsec)(2 * limit + 2) * (hf_nsec)limit * longest,
              "flows that always want more were not served alike");
        check(meek_starts > 10, "the meek flow was hardly served");
        finish_world();
}

static void borrowing(void) {
        struct hfd_level_limits levels[8] = {0};
        uint64_t sum = 0, wanted = 0, total = 0, current = 0;
        size_t n = 1 + below(8);
        struct hfd_level_shares shares[8];
        unsigned seats = 1 + (unsigned)below(2000);

        for (size_t i = 0; i < n; i++) {
                shares[i] = (struct hfd_level_shares){.is_exempt = i == 0,
                                                      .shares = i == 0 && below(2)
                                                                        ? 0
                                                                        : (uint32_t)below(200),
                                                      .lendable_percent = (unsigned)below(101),
                                                      .borrowing_percent =
                                                              below(2) ? -1 : (int64_t)below(300)};
                sum += shares[i].shares;
        }
        for (size_t i = 0; i < n; i++) {
                hfd_borrowing_nominal(&shares[i], sum, seats, &levels[i]);
                levels[i].current = hfd_borrowing_first(&levels[i]);
                levels[i].high_watermark = below(2) ? below(3000) : below(20);
                levels[i].smoothed = (double)below(2000);
                total += levels[i].nominal;
        }
        check(total >= (sum ? seats : 0) && total <= seats + n, "the shares do not add up");
        (void)hfd_borrowing_adjust(levels, n);
        for (size_t i = 0; i < n; i++) {
                check(levels[i].current >= levels[i].lower, "a level has too few seats");
                check(levels[i].is_exempt || levels[i].current <= levels[i].upper,
                      "a level has too many seats");
                current += levels[i].is_exempt ? 0 : levels[i].current;
                wanted += levels[i].is_exempt ? 0 : levels[i].lower;
        }
        check(current <= total + n, "more seats are given out than there are");
        check(current >= wanted, "seats are lost");
}

int main(int argc, char **argv) {
        uint64_t first = 1, n = 2000;

        for (int i = 1; i + 1 < argc; i += 2) {
                if (strcmp(argv[i], "--seed") == 0)
                        first = strtoull(argv[i + 1], NULL, 10);
                else if (strcmp(argv[i], "--schedules") == 0)
                        n = strtoull(argv[i + 1], NULL, 10);
        }
        for (seed = first; seed < first + n; seed++) {
                state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
                for (int i = 0; i < 8; i++)
                        (void)draw();
                chaos();
                borrowing();
                if (seed % 10 == 0)
                        fairness();
        }
        (void)printf("%" PRIu64 " schedules from seed %" PRIu64 "\n", n, first);
        return 0;
}
