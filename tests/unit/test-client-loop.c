/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client whose callbacks run in the host's loop, over an inner client for which the test replies:
 * what a callback gets and when, the effects of a cancel and a free, and what happens when memory
 * or the room for events runs out. test-leader-host-loop.c has the loop itself, with threads.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/loop.h>

#include "failing_memory.h"
#include "held_client.h"

static const struct hf_host host = {.size = sizeof host};
static const struct hf_resource things = {.version = "v1", .plural = "things"};

static struct {
        struct hf_loop *loop;
        struct hf_client *client;
        struct hf_client_ops inner_ops;
        char text[512]; /* what the callbacks got */
        size_t n_text, n_events, n_bytes;
        int error;
        struct hf_status status;
        bool starts_another; /* the callback of a response starts a request */
        int another;         /* the result of that */
        size_t n_live;
} f;

static void add_text(const char *text, size_t n) {
        if (f.n_text + n < sizeof f.text) {
                memcpy(f.text + f.n_text, text, n);
                f.n_text += n;
        }
        f.text[f.n_text] = '\0';
}

static void on_response(void *ctx, const struct hf_response *response);

static int request(uint64_t *ret_id) {
        const struct hf_request spec = {.size = sizeof spec,
                                        .verb = HF_VERB_GET,
                                        .resource = things,
                                        .name = "a"};

        return hf_client_request(f.client, &spec, on_response, &f, ret_id);
}

static void on_response(void *ctx, const struct hf_response *response) {
        assert_ptr_equal(ctx, &f);
        assert_int_equal(response->size, sizeof *response);
        if (response->body) {
                assert_int_equal(response->body[response->n_body], '\0');
                add_text(response->body, response->n_body);
        } else {
                assert_int_equal(response->n_body, 0);
        }
        add_text(";", 1);
        f.error = response->error;
        f.status = response->status;
        if (f.starts_another)
                f.another = request(NULL);
}

static void on_event(void *ctx, const struct hf_event *event) {
        assert_ptr_equal(ctx, &f);
        assert_int_equal(event->object[event->n_object], '\0');
        f.n_events++;
        f.n_bytes += event->n_object;
        if (event->n_object > 64)
                return;
        add_text(&"+~-b"[event->type], 1);
        add_text(event->object, event->n_object);
        add_text("@", 1);
        add_text(event->resource_version, strlen(event->resource_version));
        add_text(" ", 1);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        assert_ptr_equal(ctx, &f);
        add_text("END", 3);
        f.error = error;
        f.status = *status;
}

static int watch(uint64_t *ret_id) {
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = things};

        return hf_client_watch(f.client, &spec, on_event, on_end, &f, ret_id);
}

static void expect(const char *text, int error) {
        assert_string_equal(f.text, text);
        assert_int_equal(f.error, error);
        f.text[0] = '\0';
        f.n_text = 0;
        f.error = 0;
}

/* Sends an event. Its texts are freed afterwards. */
static void send_event(unsigned number, enum hf_event_type type, const char *object,
                       const char *version) {
        failing_memory_enter();
        char *copy = strdup(object), *version_copy = version ? strdup(version) : NULL;
        failing_memory_leave();
        const struct hf_event event = {.type = type,
                                       .object = copy,
                                       .n_object = strlen(object),
                                       .resource_version = version_copy};

        held.watches[number].on_event(held.watches[number].ctx, &event);
        memset(copy, 'x', strlen(object));
        free(copy);
        free(version_copy);
}

/* ---- set-up ---- */

/* The inner client ends a canceled request at once. */
static void cancel_request(struct hf_client *self, uint64_t id) {
        held.requests[id - HELD_ID].n_cancels++;
        if (held.requests[id - HELD_ID].is_open)
                held_respond((unsigned)(id - HELD_ID), HF_E_CANCELED, NULL, NULL);
}

static void cancel_watch(struct hf_client *self, uint64_t id) {
        held.watches[id - HELD_ID].n_cancels++;
        if (held.watches[id - HELD_ID].is_open)
                held_end_watch((unsigned)(id - HELD_ID), HF_E_CANCELED);
}

static void end_canceled_at_once(void) {
        f.inner_ops = *held.base.ops;
        f.inner_ops.cancel = cancel_request;
        f.inner_ops.watch_cancel = cancel_watch;
        held.base.ops = &f.inner_ops;
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        f.n_live = failing_memory_n_live();
        held_client_init(&host);
        assert_int_equal(hf_loop_new(&f.loop), 0);
        assert_int_equal(hf_loop_client_new(f.loop, &held.base, &f.client), 0);
        return 0;
}

static int tear_down(void **state) {
        if (held.base.ops != &f.inner_ops)
                end_canceled_at_once();
        assert_null(hf_client_free(f.client));
        assert_null(hf_loop_free(f.loop));
        assert_int_equal(failing_memory_n_live(), f.n_live);
        return 0;
}

static void test_all_three_are_needed(void **state) {
        struct hf_client *client;

        assert_int_equal(hf_loop_client_new(NULL, &held.base, &client), -EINVAL);
        assert_int_equal(hf_loop_client_new(f.loop, NULL, &client), -EINVAL);
        assert_int_equal(hf_loop_client_new(f.loop, &held.base, NULL), -EINVAL);
        assert_ptr_equal(f.client->host, &host);
}

/* ---- requests ---- */

static void test_a_response_comes_when_the_loop_runs(void **state) {
        char body[] = "first";
        uint64_t id = 0;

        assert_int_equal(request(&id), 0);
        assert_int_equal(id, HELD_ID);
        assert_int_equal(request(NULL), 0);
        assert_int_equal(hf_loop_dispatch(f.loop), 0);
        held_respond(1, 0, NULL, "second");
        held_respond(0, 0, NULL, body);
        memset(body, 'x', sizeof body - 1);
        expect("", 0);
        assert_int_equal(hf_loop_dispatch(f.loop), 2);
        expect("second;first;", 0);
        assert_int_equal(hf_loop_dispatch(f.loop), 0);
        assert_int_equal(request(NULL), 0);
        held_respond(2, 0, NULL, ""); /* a body of no bytes */
        assert_int_equal(hf_loop_dispatch(f.loop), 1);
        expect(";", 0);
}

static void test_a_failure_comes_with_its_status(void **state) {
        const struct hf_status status = {.error = HF_E_NOT_FOUND, .message = "no such thing"};

        assert_int_equal(request(NULL), 0);
        held_respond(0, HF_E_NOT_FOUND, &status, "{}");
        (void)hf_loop_dispatch(f.loop);
        assert_string_equal(f.status.message, "no such thing");
        expect("{};", HF_E_NOT_FOUND);
        assert_int_equal(request(NULL), 0);
        held_respond(1, HF_E_TIMEOUT, NULL, NULL);
        (void)hf_loop_dispatch(f.loop);
        expect(";", HF_E_TIMEOUT);
}

/* A struct of an unknown size is not a response of this library. */
static void test_a_response_of_a_strange_size_is_a_failure(void **state) {
        const struct hf_response response = {.size = 1};

        assert_int_equal(request(NULL), 0);
        held.requests[0].is_open = false;
        held.requests[0].done(held.requests[0].ctx, &response);
        assert_int_equal(hf_loop_dispatch(f.loop), 1);
        assert_true(f.error != 0);
        assert_string_equal(f.text, ";");
}

/* If the start fails, no callback is called. */
static void test_a_start_that_fails_leaves_nothing(void **state) {
        uint64_t id = 5;

        held.fail = -EINVAL;
        assert_int_equal(request(&id), -EINVAL);
        assert_int_equal(watch(&id), -EINVAL);
        assert_int_equal(id, 5);
        assert_int_equal(hf_loop_dispatch(f.loop), 0);
        held.fail = 0;
}

static void test_a_cancel_goes_to_the_inner_client(void **state) {
        uint64_t requested, watched;

        assert_int_equal(request(NULL), 0);
        assert_int_equal(request(&requested), 0);
        assert_int_equal(watch(&watched), 0);
        hf_client_cancel(f.client, requested);
        assert_int_equal(held.requests[0].n_cancels, 0);
        assert_int_equal(held.requests[1].n_cancels, 1);
        assert_int_equal(held.watches[0].n_cancels, 0);
        hf_client_watch_cancel(f.client, watched);
        assert_int_equal(held.watches[0].n_cancels, 1);
        assert_int_equal(held.requests[0].n_cancels, 0);
        held_respond(1, HF_E_CANCELED, NULL, NULL);
        (void)hf_loop_dispatch(f.loop);
        expect(";", HF_E_CANCELED);
}

/* ---- watches ---- */

static void test_events_come_in_order_and_then_the_end(void **state) {
        uint64_t id = 0;

        assert_int_equal(watch(&id), 0);
        assert_int_equal(id, HELD_ID);
        send_event(0, HF_EVENT_ADDED, "a", "1");
        send_event(0, HF_EVENT_MODIFIED, "ab", "22");
        send_event(0, HF_EVENT_DELETED, "", NULL);
        expect("", 0);
        assert_int_equal(hf_loop_dispatch(f.loop), 3);
        expect("+a@1 ~ab@22 -@ ", 0);
        send_event(0, HF_EVENT_BOOKMARK, "c", "3");
        held_end_watch(0, HF_E_GONE);
        assert_int_equal(hf_loop_dispatch(f.loop), 2);
        expect("bc@3 END", HF_E_GONE);
}

static void test_the_end_has_its_status(void **state) {
        const struct hf_status status = {.error = HF_E_UNAVAILABLE, .message = "cut off"};

        assert_int_equal(watch(NULL), 0);
        held.watches[0].is_open = false;
        held.watches[0].on_end(held.watches[0].ctx, HF_E_UNAVAILABLE, &status);
        (void)hf_loop_dispatch(f.loop);
        assert_string_equal(f.status.message, "cut off");
        expect("END", HF_E_UNAVAILABLE);
        assert_int_equal(held.watches[0].n_cancels, 0);
}

/* Events that the loop has taken no longer count. */
static void test_a_watch_ends_when_too_many_bytes_wait(void **state) {
        const size_t n_large = (size_t)1 << 20;
        char *large = malloc(n_large + 1);

        assert_non_null(large);
        memset(large, 'l', n_large);
        large[n_large] = '\0';
        assert_int_equal(watch(NULL), 0);
        for (int i = 0; i < 40; i++)
                send_event(0, HF_EVENT_ADDED, large, "1");
        assert_int_equal(hf_loop_dispatch(f.loop), 40);
        for (int i = 0; i < 65; i++) /* 64 MiB, and one event above that limit */
                send_event(0, HF_EVENT_ADDED, large, "1");
        assert_int_equal(held.watches[0].n_cancels, 0);
        send_event(0, HF_EVENT_ADDED, "lost", "2");
        assert_int_equal(held.watches[0].n_cancels, 1);
        assert_int_equal(hf_loop_dispatch(f.loop), 65);
        assert_true(f.n_bytes == 105 * n_large);
        send_event(0, HF_EVENT_ADDED, "too late", "3"); /* an earlier event was lost */
        held_end_watch(0, HF_E_CANCELED);
        assert_int_equal(hf_loop_dispatch(f.loop), 1);
        assert_non_null(strstr(f.status.message, "events could not be queued: "));
        expect("END", HF_E_TOO_LARGE);
        free(large);
}

/* ---- the free ---- */

/* Everything that had begun ends with a callback, and nothing begins any more. */
static void test_a_free_ends_everything(void **state) {
        end_canceled_at_once();
        f.starts_another = true;
        assert_int_equal(request(NULL), 0);
        assert_int_equal(request(NULL), 0);
        assert_int_equal(watch(NULL), 0);
        send_event(0, HF_EVENT_ADDED, "a", "1");
        held_respond(1, 0, NULL, "done");
        f.client = hf_client_free(f.client);
        assert_int_equal(f.another, HF_E_CLOSED);
        assert_int_equal(held.requests[0].n_cancels, 1);
        assert_int_equal(held.watches[0].n_cancels, 1);
        expect("+a@1 done;END;", HF_E_CANCELED);
        assert_int_equal(hf_loop_client_new(f.loop, &held.base, &f.client), 0);
}

/* ---- without memory ---- */

/* The inner client passes an event while the watch is being started: its id is not known yet. */
static int watch_with_event(struct hf_client *self, const struct hf_watch_spec *spec,
                            hf_event_fn event_fn, hf_watch_end_fn end_fn, void *ctx,
                            uint64_t *ret_id) {
        const struct hf_event event = {.type = HF_EVENT_ADDED,
                                       .object = "early",
                                       .n_object = 5,
                                       .resource_version = "1"};

        event_fn(ctx, &event);
        held.watches[held.n_watches++] = (struct held_watch){.on_event = event_fn,
                                                             .on_end = end_fn,
                                                             .ctx = ctx,
                                                             .is_open = true};
        *ret_id = HELD_ID + held.n_watches - 1;
        return 0;
}

static void test_no_event_is_lost_without_memory(void **state) {
        for (int n = 0; n < 100; n++) {
                end_canceled_at_once();
                f.inner_ops.watch = watch_with_event;
                failing_memory_arm(n);
                int r = watch(NULL);
                if (r == 0) /* after a lost event the watch is canceled at once, even if the event
                               came during the start */
                        assert_int_equal(held.watches[0].n_cancels, failing_memory_hit() ? 1 : 0);
                if (r == 0 && held.watches[0].is_open)
                        send_event(0, HF_EVENT_MODIFIED, "late", "2");
                failing_memory_disarm();
                (void)hf_loop_dispatch(f.loop);
                if (!failing_memory_hit()) {
                        assert_int_equal(r, 0);
                        expect("+early@1 ~late@2 ", 0);
                        return;
                }
                if (r != 0) {
                        assert_int_equal(r, -ENOMEM);
                        expect("", 0);
                } else {
                        assert_int_equal(held.watches[0].n_cancels, 1);
                        assert_int_equal(f.error, -ENOMEM);
                        assert_non_null(strstr(f.text, "END"));
                        assert_null(strstr(f.text, "late"));
                }
                (void)tear_down(NULL);
                (void)set_up(NULL);
        }
        fail();
}

static void test_a_response_without_memory_is_a_failure(void **state) {
        static const struct hf_status refused = {.error = HF_E_FORBIDDEN, .message = "no"};

        assert_int_equal(request(NULL), 0);
        failing_memory_arm(0);
        held_respond(0, 0, NULL, "body");
        assert_true(failing_memory_hit());
        (void)hf_loop_dispatch(f.loop);
        assert_string_equal(f.status.message, "out of memory for a response of 4 bytes");
        expect(";", -ENOMEM);
        assert_int_equal(request(NULL), 0);
        failing_memory_arm(0);
        held_respond(1, HF_E_FORBIDDEN, &refused, "body");
        failing_memory_disarm();
        (void)hf_loop_dispatch(f.loop);
        assert_string_equal(f.status.message, "no"); /* the server's reason stays */
        expect(";", HF_E_FORBIDDEN);
        failing_memory_arm(0);
        assert_int_equal(request(NULL), -ENOMEM);
        failing_memory_disarm();
        struct hf_client *client = NULL;
        failing_memory_arm(0);
        assert_int_equal(hf_loop_client_new(f.loop, &held.base, &client), -ENOMEM);
        failing_memory_disarm();
        assert_null(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_all_three_are_needed),
                TEST(test_a_response_comes_when_the_loop_runs),
                TEST(test_a_failure_comes_with_its_status),
                TEST(test_a_response_of_a_strange_size_is_a_failure),
                TEST(test_a_start_that_fails_leaves_nothing),
                TEST(test_a_cancel_goes_to_the_inner_client),
                TEST(test_events_come_in_order_and_then_the_end),
                TEST(test_the_end_has_its_status),
                TEST(test_a_watch_ends_when_too_many_bytes_wait),
                TEST(test_a_free_ends_everything),
                TEST(test_no_event_is_lost_without_memory),
                TEST(test_a_response_without_memory_is_a_failure),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
