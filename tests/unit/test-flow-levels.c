/* SPDX-License-Identifier: Apache-2.0 */
/* The priority levels at work: decisions on other threads, deadlines, a new configuration while
 * requests wait, and the contents of metrics and dumps. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "failing_memory.h"
#include "patience.h"
#include "server/flow/flow_dump.h"
#include "server/flow/flow_level.h"
#include "server/flow/flow_levels.h"
#include "server/flow/flow_metrics.h"

#define SEC HF_NSEC_PER_SEC

static struct hf_host host = {.size = sizeof host};
static struct hfd_flow_levels *levels;

/* A request of the tests. */
struct request {
        struct hfd_flow_place place; /* must be first */
        atomic_int granted, expired;
};

static void decided(struct hfd_flow_place *place, bool granted) {
        struct request *request = (struct request *)(void *)place;

        atomic_fetch_add(granted ? &request->granted : &request->expired, 1);
}

static void describe(const struct hfd_flow_place *place, struct hfd_flow_description *ret) {
        *ret = (struct hfd_flow_description){"who",  "who\tor", "get", "/api",   "ns",
                                             "name", "apps",    "v1",  "things", ""};
}

static const struct hfd_flow_owner owner = {decided, describe};

static const struct hfd_flow_level_spec one_seat = {.name = "one",
                                                    .shares = {false, 1, 0, 0},
                                                    .queues = {HFD_LEVEL_QUEUE, 4, 2, 50}},
                                        rest = {.name = "rest",
                                                .shares = {false, 9, 0, 0},
                                                .queues = {HFD_LEVEL_REJECT, 0, 0, 0}};

static struct hfd_flow_level *at_work[2];
static struct hfd_flow_class *classes[2];

static void apply(const struct hfd_flow_level_spec *first,
                  const struct hfd_flow_level_spec *second) {
        const struct hfd_flow_level_spec specs[] = {*first, *second};

        assert_int_equal(hfd_flow_levels_apply(levels, specs, 2, at_work), 0);
        for (size_t i = 0; i < 2; i++) {
                classes[i] = hfd_flow_level_class(at_work[i], "schema");
                assert_non_null(classes[i]);
        }
}

static void let_go(struct hfd_flow_level *of[2], struct hfd_flow_class *with[2]) {
        for (size_t i = 0; i < 2; i++) {
                hfd_flow_level_drop_class(of[i], with[i]);
                hfd_flow_level_unref(of[i]);
        }
}

static int set_up(void **state) {
        assert_int_equal(hfd_flow_levels_new(&host, 10, &levels), 0);
        apply(&one_seat, &rest);
        return 0;
}

static int tear_down(void **state) {
        let_go(at_work, classes);
        levels = hfd_flow_levels_free(levels);
        return 0;
}

static hf_nsec now(void) { return hf_now(hf_clock_system()); }

static enum hfd_verdict enter_until(struct request *request, size_t level, hf_nsec deadline) {
        unsigned retry_after = 0;

        *request = (struct request){.place = {.level = at_work[level],
                                              .flow_class = classes[level],
                                              .owner = &owner,
                                              .deadline = deadline,
                                              .bytes = 100}};
        enum hfd_verdict verdict = hfd_flow_level_enter(&request->place, 1, now(), &retry_after);
        assert_int_equal(retry_after > 0,
                         verdict == HFD_VERDICT_QUEUE_FULL || verdict == HFD_VERDICT_NO_SEATS);
        return verdict;
}

static enum hfd_verdict enter(struct request *request, size_t level) {
        return enter_until(request, level, HF_NSEC_NEVER);
}

static void test_a_request_that_ends_lets_the_next_one_run(void **state) {
        struct request a, b, c;

        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter(&b, 0), HFD_VERDICT_WAIT);
        assert_int_equal(enter(&c, 0), HFD_VERDICT_WAIT);
        assert_true(hfd_flow_level_leave(&b.place, now())); /* its client has left */
        assert_false(hfd_flow_level_leave(&a.place, now()));
        assert_int_equal(a.granted + b.granted + b.expired, 0);
        assert_int_equal(c.granted, 1);
        assert_int_equal(c.place.seats.state, HFD_SEATS_EXECUTING);
        assert_false(hfd_flow_level_leave(&c.place, now()));
        assert_false(hfd_flow_level_leave(&c.place, now()));
}

static void test_a_level_without_queues_refuses(void **state) {
        struct request requests[10];

        for (size_t i = 0; i < 9; i++)
                assert_int_equal(enter(&requests[i], 1), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter(&requests[9], 1), HFD_VERDICT_NO_SEATS);
        assert_false(hfd_flow_level_leave(&requests[9].place, now()));
        for (size_t i = 0; i < 9; i++)
                (void)hfd_flow_level_leave(&requests[i].place, now());
}

/* Real threads: the timer decides. */
static void test_the_timer_ends_a_wait(void **state) {
        struct request a, b, c;

        assert_int_equal(hfd_flow_levels_start(levels), 0);
        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter_until(&b, 0, now() + 3600 * SEC), HFD_VERDICT_WAIT);
        assert_int_equal(enter_until(&c, 0, now() + SEC / 100), HFD_VERDICT_WAIT);
        PATIENCE_AWAIT(atomic_load(&c.expired) > 0);
        assert_int_equal(b.granted + b.expired + c.granted, 0);
        (void)hfd_flow_level_leave(&a.place, now());
        assert_int_equal(b.granted, 1);
        (void)hfd_flow_level_leave(&b.place, now());
        hfd_flow_levels_stop(levels);
}

static void test_a_shutdown_shortens_every_wait(void **state) {
        hf_nsec end = now() + 3600 * SEC;
        struct request a, b, c, soon;

        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter(&b, 0), HFD_VERDICT_WAIT);
        assert_int_equal(enter_until(&soon, 0, end - SEC), HFD_VERDICT_WAIT);
        hfd_flow_levels_hurry(levels, end);
        assert_int_equal(enter(&c, 0), HFD_VERDICT_WAIT);
        assert_true(hfd_flow_levels_expire(levels, now()) == end - SEC);
        assert_true(hfd_flow_levels_expire(levels, end - SEC) == end);
        assert_int_equal(soon.expired, 1);
        assert_int_equal(b.expired + c.expired, 0);
        assert_true(hfd_flow_levels_expire(levels, end) == HF_NSEC_NEVER);
        assert_int_equal(b.expired, 1);
        assert_int_equal(c.expired, 1);
        (void)hfd_flow_level_leave(&a.place, now());
}

/* The timer, which sleeps until a later deadline, notices. */
static void test_a_shutdown_wakes_the_timer(void **state) {
        struct request a, b;

        assert_int_equal(hfd_flow_levels_start(levels), 0);
        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter_until(&b, 0, now() + 3600 * SEC), HFD_VERDICT_WAIT);
        hfd_flow_levels_hurry(levels, now() + SEC / 100);
        PATIENCE_AWAIT(atomic_load(&b.expired) > 0);
        (void)hfd_flow_level_leave(&a.place, now());
        hfd_flow_levels_stop(levels);
}

/* Waiting large requests do not cause refusals of small ones, but small ones have a limit, too. */
static void test_waiting_requests_keep_limited_memory(void **state) {
        struct request a, b, c;
        size_t n_small = 0;

        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_true(hfd_flow_levels_take_bytes(levels, HFD_FLOW_WAITING_BYTES));
        assert_false(hfd_flow_levels_take_bytes(levels, HFD_FLOW_SMALL_BYTES + 1));
        assert_int_equal(enter(&b, 0), HFD_VERDICT_WAIT);
        while (hfd_flow_levels_take_bytes(levels, HFD_FLOW_SMALL_BYTES))
                n_small++;
        assert_int_equal(n_small, HFD_FLOW_SMALL_RESERVE / HFD_FLOW_SMALL_BYTES - 1);
        assert_true(hfd_flow_levels_take_bytes(levels, HFD_FLOW_SMALL_BYTES - 150));
        assert_int_equal(enter(&c, 0), HFD_VERDICT_QUEUE_FULL);
        hfd_flow_levels_free_bytes(levels, HFD_FLOW_WAITING_BYTES + HFD_FLOW_SMALL_RESERVE - 150);
        assert_int_equal(enter(&c, 0), HFD_VERDICT_WAIT);
        assert_true(hfd_flow_level_leave(&c.place, now()));
        (void)hfd_flow_level_leave(&a.place, now());
        (void)hfd_flow_level_leave(&b.place, now());
}

/* First the configuration gives the level more seats, then it no longer has the level. */
static void test_another_configuration_while_requests_wait(void **state) {
        struct hfd_flow_level *old[2];
        struct hfd_flow_class *old_classes[2];
        struct hfd_flow_level_spec more = one_seat, other = one_seat;
        struct hf__strbuf text = {0};
        struct request a, b, c;

        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter(&b, 0), HFD_VERDICT_WAIT);
        assert_int_equal(enter(&c, 0), HFD_VERDICT_WAIT);
        memcpy(old, at_work, sizeof old);
        memcpy(old_classes, classes, sizeof old_classes);
        more.shares.shares = 2; /* 2 of 11: two seats */
        apply(&more, &rest);
        assert_ptr_equal(at_work[0], old[0]);
        assert_ptr_equal(classes[0], old_classes[0]);
        assert_int_equal(b.granted, 1);
        assert_int_equal(c.granted, 0);
        let_go(old, old_classes);

        memcpy(old, at_work, sizeof old);
        memcpy(old_classes, classes, sizeof old_classes);
        other.name = "other";
        apply(&other, &rest);
        hfd_flow_levels_end_period(levels, now());
        hfd_flow_dump_levels(levels, &text);
        assert_non_null(strstr(text.data, "\none,               1,            false,  true,"));
        hf__strbuf_reset(&text);
        (void)hfd_flow_level_leave(&a.place, now());
        (void)hfd_flow_level_leave(&b.place, now());
        assert_int_equal(c.granted, 1); /* the level still serves its requests */
        (void)hfd_flow_level_leave(&c.place, now());
        /* Only an old index refers to the level, so the others get its share. */
        hfd_flow_levels_end_period(levels, now());
        hfd_flow_metrics_write(levels, &text);
        assert_non_null(strstr(text.data, "nominal_limit_seats{priority_level=\"rest\"} 9\n"));
        assert_null(strstr(text.data, "priority_level=\"one\""));
        hf__strbuf_reset(&text);
        let_go(old, old_classes);
        hfd_flow_levels_end_period(levels, now());
        hfd_flow_dump_levels(levels, &text);
        assert_null(strstr(text.data, "\none,"));
        hf__strbuf_done(&text);
}

static void expect_text(const struct hf__strbuf *text, const char *part) {
        assert_int_equal(text->error, 0);
        if (!strstr(text->data, part))
                print_error("no %s in:\n%s\n", part, text->data);
        assert_non_null(strstr(text->data, part));
}

static void test_metrics_and_dumps(void **state) {
        struct hf__strbuf text = {0};
        struct request a, b, c;

        assert_int_equal(enter(&a, 0), HFD_VERDICT_EXECUTE);
        assert_int_equal(enter(&b, 0), HFD_VERDICT_WAIT);
        assert_int_equal(enter_until(&c, 0, 1), HFD_VERDICT_WAIT);
        assert_int_equal(hfd_flow_levels_expire(levels, now()), HF_NSEC_NEVER);
        assert_int_equal(c.expired, 1);

        hfd_flow_metrics_write(levels, &text);
#define P      "apiserver_flowcontrol_"
#define LABELS "{flow_schema=\"schema\",priority_level=\"one\""
        expect_text(&text, P "nominal_limit_seats{priority_level=\"one\"} 1\n");
        expect_text(&text, P "current_limit_seats{priority_level=\"rest\"} 9\n");
        expect_text(&text, P "dispatched_requests_total" LABELS "} 1\n");
        expect_text(&text, P "current_inqueue_requests" LABELS "} 1\n");
        expect_text(&text, P "current_executing_requests" LABELS "} 1\n");
        expect_text(&text, P "rejected_requests_total" LABELS ",reason=\"time-out\"} 1\n");
        expect_text(&text, P "request_wait_duration_seconds_bucket" LABELS
                             ",execute=\"true\",le=\"0\"} 1\n");
        expect_text(&text,
                    P "request_wait_duration_seconds_count" LABELS ",execute=\"false\"} 1\n");
        expect_text(&text, P "request_queue_length_after_enqueue_count" LABELS "} 3\n");
        expect_text(&text, P "work_estimated_seats_bucket" LABELS ",le=\"1\"} 3\n");
        /* No class is left out for want of memory: the text is all that needs some. */
        size_t n = text.n;
        hf__strbuf_reset(&text);
        hf__strbuf_reserve(&text, n + 1);
        failing_memory_arm(0);
        hfd_flow_metrics_write(levels, &text);
        failing_memory_disarm();
        assert_false(failing_memory_hit());
        assert_int_equal(text.n, n);
        hf__strbuf_reset(&text);

        hfd_flow_dump_levels(levels, &text);
        expect_text(&text, "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, "
                           "ExecutingRequests, DispatchedRequests, RejectedRequests, "
                           "TimedoutRequests, CancelledRequests\n"
                           "one,               1,            false,  false,       1,               "
                           "1,                 1,                  1,                1,            "
                           "    0\n"
                           "rest,              0,            true,   false,       0,");
        hf__strbuf_reset(&text);
        hfd_flow_dump_queues(levels, &text);
        expect_text(&text, "PriorityLevelName, Index,  PendingRequests, ExecutingRequests,");
        hf__strbuf_reset(&text);
        hfd_flow_dump_requests(levels, &host, true, &text);
        expect_text(&text, "0001-01-01T00:00:00Z");
        expect_text(&text, " who or,   get, "); /* a tab in a name moves no column */
        expect_text(&text, "apps/v1,");
        hf__strbuf_done(&text);
        (void)hfd_flow_level_leave(&a.place, now());
        (void)hfd_flow_level_leave(&b.place, now());
}

/* ---- many threads ---- */

#define N_THREADS 4
#define N_ROUNDS  400

static void *contend(void *ctx) {
        struct request request;
        int *n_run = ctx;

        for (int i = 0; i < N_ROUNDS; i++) {
                enum hfd_verdict verdict = enter(&request, 0);
                assert(verdict == HFD_VERDICT_EXECUTE || verdict == HFD_VERDICT_WAIT);
                bool gives_up = verdict == HFD_VERDICT_WAIT && i % 7 == 0;
                if (gives_up && hfd_flow_level_leave(&request.place, now()))
                        continue;
                /* If it gives up too late, it has had the seat, but the report may still be under
                 * way. */
                while (verdict == HFD_VERDICT_WAIT && atomic_load(&request.granted) == 0)
                        (void)sched_yield();
                if (gives_up)
                        continue;
                (*n_run)++; /* there is one seat, so nobody else is here */
                (void)hfd_flow_level_leave(&request.place, now());
        }
        return NULL;
}

static void test_one_seat_serves_many_threads(void **state) {
        pthread_t threads[N_THREADS];
        struct hf__strbuf text = {0};
        int n_run = 0;

        assert_int_equal(hfd_flow_levels_start(levels), 0);
        for (size_t i = 0; i < N_THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, contend, &n_run), 0);
        for (int i = 0; i < 20; i++) {
                hfd_flow_metrics_write(levels, &text);
                hfd_flow_levels_end_period(levels, now());
                hf__strbuf_reset(&text);
        }
        for (size_t i = 0; i < N_THREADS; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        hf__strbuf_done(&text);
        hfd_flow_levels_stop(levels);
        assert_true(n_run > N_THREADS * N_ROUNDS / 2 && n_run <= N_THREADS * N_ROUNDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_request_that_ends_lets_the_next_one_run),
                TEST(test_a_level_without_queues_refuses),
                TEST(test_the_timer_ends_a_wait),
                TEST(test_a_shutdown_shortens_every_wait),
                TEST(test_a_shutdown_wakes_the_timer),
                TEST(test_waiting_requests_keep_limited_memory),
                TEST(test_another_configuration_while_requests_wait),
                TEST(test_metrics_and_dumps),
                TEST(test_one_seat_serves_many_threads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
