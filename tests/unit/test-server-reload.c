/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When reloads begin and end, and which messages the service manager gets. test_reload.py shows
 * that a reload does not delay the watchdog.
 */
#undef NDEBUG
#include <assert.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/reload/reload.h"
#include "server/systemd/sdnotify.h"

/*
 * The work of a reload in this test: reports that it has begun, and returns when the test lets it.
 */
struct world {
        struct hf_host host;
        struct hfd_reload reload;
        sem_t began, let_go;
        int wake; /* eventfd */
        atomic_int n_inside, n_done;
};

static int manager = -1;

static int bind_manager(void **state) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char name[64];
        int n = snprintf(name, sizeof name, "@holdfast-reload-%d", (int)getpid());

        memcpy(address.sun_path + 1, name + 1, (size_t)n - 1);
        manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
        if (bind(manager, (struct sockaddr *)&address, length) != 0)
                return -1;
        return setenv("NOTIFY_SOCKET", name, 1);
}

static int close_manager(void **state) { return close(manager); }

/*
 * Asserts the notifications since the last call, by the first word of each: "RELOADING=1 READY=1 ".
 * Without libsystemd there are none.
 */
static void expect_heard(const char *expected) {
        char text[256], all[1024] = "";
        ssize_t n;

        while ((n = recv(manager, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
                text[n] = '\0';
                text[strcspn(text, "\n")] = '\0';
                strcat(strcat(all, text), " ");
        }
        assert_string_equal(all, hfd_sdnotify_supported() ? expected : "");
}

static void work(void *ctx) {
        struct world *world = ctx;

        assert(atomic_fetch_add(&world->n_inside, 1) == 0);
        sem_post(&world->began);
        sem_wait(&world->let_go);
        atomic_fetch_sub(&world->n_inside, 1);
        atomic_fetch_add(&world->n_done, 1);
}

static void wake(void *ctx) {
        struct world *world = ctx;
        assert(eventfd_write(world->wake, 1) == 0);
}

static void make_world(struct world *world) {
        *world = (struct world){.host = {.size = sizeof world->host},
                                .wake = eventfd(0, EFD_CLOEXEC)};
        assert(world->wake >= 0);
        assert(sem_init(&world->began, 0, 0) == 0 && sem_init(&world->let_go, 0, 0) == 0);
        hfd_reload_init(&world->reload, &world->host, work, wake, world);
}

static void end_world(struct world *world) {
        assert_int_equal(atomic_load(&world->n_inside), 0);
        sem_destroy(&world->began);
        sem_destroy(&world->let_go);
        close(world->wake);
}

/* Requests a reload that begins at once. */
static void begin_work(struct world *world) {
        hfd_reload_request(&world->reload);
        hfd_reload_step(&world->reload, true);
        sem_wait(&world->began);
}

/* Lets the running work return, and waits as main does. */
static void finish_work(struct world *world) {
        eventfd_t count;
        sem_post(&world->let_go);
        assert_int_equal(eventfd_read(world->wake, &count), 0);
}

static void test_a_reload_waits_until_it_may_begin(void **state) {
        struct world world;

        make_world(&world);
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        hfd_reload_request(&world.reload);
        hfd_reload_step(&world.reload, false);
        expect_heard("");
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        expect_heard("RELOADING=1 ");
        /* While the reload runs, a step does not wait and sends nothing. */
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        expect_heard("READY=1 ");
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        assert_int_equal(atomic_load(&world.n_done), 1);
        end_world(&world);
}

static void test_requests_during_a_reload_cause_one_more(void **state) {
        struct world world;

        make_world(&world);
        begin_work(&world);
        for (int i = 0; i < 3; i++) {
                hfd_reload_request(&world.reload);
                hfd_reload_step(&world.reload, true);
        }
        expect_heard("RELOADING=1 ");
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        expect_heard("READY=1 RELOADING=1 ");
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        expect_heard("READY=1 ");
        assert_int_equal(atomic_load(&world.n_done), 2);
        end_world(&world);
}

static void test_a_stop_drops_requested_reloads(void **state) {
        struct world world;

        make_world(&world);
        begin_work(&world);
        expect_heard("RELOADING=1 ");
        hfd_reload_request(&world.reload);
        hfd_reload_disable(&world.reload);
        finish_work(&world);
        hfd_reload_step(&world.reload, false);
        hfd_reload_request(&world.reload);
        hfd_reload_step(&world.reload, true);
        assert_false(hfd_reload_is_running(&world.reload));
        expect_heard("");
        assert_int_equal(atomic_load(&world.n_done), 1);
        end_world(&world);
}

static int n_errors;

static void count_error(void *ctx, enum hf_log_level level, const char *component,
                        const char *message) {
        assert_int_equal(level, HF_LOG_ERROR);
        assert_non_null(strstr(message, "cannot start a thread"));
        n_errors++;
}

static void test_a_reload_without_a_thread_is_abandoned(void **state) {
        struct world world;

        make_world(&world);
        world.host.thread_stack_bytes = 1; /* refused */
        world.host.log = (struct hf_log){.write = count_error};
        hfd_reload_request(&world.reload);
        hfd_reload_step(&world.reload, true);
        expect_heard("RELOADING=1 READY=1 ");
        assert_int_equal(n_errors, 1);
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        end_world(&world);
}

static void minor_work(void *ctx) { work(ctx); }

static void test_the_minor_work_is_silent_and_never_runs_with_a_reload(void **state) {
        struct world world;

        make_world(&world);
        world.reload.minor_work = minor_work;
        hfd_reload_request_minor(&world.reload);
        hfd_reload_step(&world.reload, false);
        assert_false(hfd_reload_is_running(&world.reload));
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        hfd_reload_request(&world.reload); /* both are requested while it runs */
        hfd_reload_request_minor(&world.reload);
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        expect_heard("RELOADING=1 ");
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        expect_heard("READY=1 ");
        hfd_reload_request_minor(&world.reload);
        hfd_reload_disable(&world.reload);
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        hfd_reload_request_minor(&world.reload);
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        assert_int_equal(atomic_load(&world.n_done), 3);
        end_world(&world);
}

static void test_the_minor_work_is_begun_again_when_there_was_no_thread(void **state) {
        struct world world;

        make_world(&world);
        n_errors = 0;
        world.reload.minor_work = minor_work;
        world.host.thread_stack_bytes = 1; /* refused */
        world.host.log = (struct hf_log){.write = count_error};
        hfd_reload_request_minor(&world.reload);
        hfd_reload_step(&world.reload, true);
        assert_int_equal(n_errors, 1);
        world.host.thread_stack_bytes = 0;
        hfd_reload_step(&world.reload, true);
        sem_wait(&world.began);
        finish_work(&world);
        hfd_reload_step(&world.reload, true);
        expect_heard("");
        assert_int_equal(atomic_load(&world.n_done), 1);
        end_world(&world);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_reload_waits_until_it_may_begin),
                cmocka_unit_test(test_requests_during_a_reload_cause_one_more),
                cmocka_unit_test(test_a_stop_drops_requested_reloads),
                cmocka_unit_test(test_a_reload_without_a_thread_is_abandoned),
                cmocka_unit_test(test_the_minor_work_is_silent_and_never_runs_with_a_reload),
                cmocka_unit_test(test_the_minor_work_is_begun_again_when_there_was_no_thread),
        };
        return cmocka_run_group_tests(tests, bind_manager, close_manager);
}
