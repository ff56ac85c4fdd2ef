/* SPDX-License-Identifier: Apache-2.0 */
/* A boot that fails says why, also where the failing part gives only an error code. It waits for a
 * store as long as objects arrive from it, and a minute longer. No controller starts on an
 * incomplete copy of a store, or before the stored kinds are served. The elector is not used after
 * its end. The last line of a process that is stuck says whether it keeps the Lease. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hand_clock.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/leadership.h"
#include "server/main/boot.h"
#include "server/main/sequence.h"
#include "server/main/shutdown.h"
#include "server/server.h"

/* The results of the two parts that can fail here. The linker redirects the parts of the boot to
 * the functions below. */
static int wait_result, controllers_result;
static bool incomplete_copy;
static int kinds_wait; /* how often the stored kinds are not served yet */

#define SECONDS(n) ((n)*HF_NSEC_PER_SEC)

/* A store that sends a page after each `interval`, n_pages in all. After the last one it is silent,
 * or, if it `completes`, the cache is filled. By the hand clock; n_pages 0: there is no such store,
 * and wait_result is the result. */
static struct {
        hf_nsec interval, started;
        int n_pages;
        bool completes;
} pages;

int __wrap_hfd_cacher_start(struct hfd_cacher *cacher);
int __wrap_hfd_cacher_start(struct hfd_cacher *cacher) { return 0; }
int __wrap_hfd_http_start(struct hfd_http *http);
int __wrap_hfd_http_start(struct hfd_http *http) { return 0; }
int __wrap_hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path,
                                      const char *server, const struct hfd_admin_servers *others,
                                      struct hf_status *reterr_status);
int __wrap_hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path,
                                      const char *server, const struct hfd_admin_servers *others,
                                      struct hf_status *reterr_status) {
        return 0;
}
hf_nsec __wrap_hfd_cacher_fill_progress(struct hfd_cacher *cacher);
hf_nsec __wrap_hfd_cacher_fill_progress(struct hfd_cacher *cacher) {
        hf_nsec n = pages.n_pages > 0 ? (hand_clock_now() - pages.started) / pages.interval : 0;

        if (n > pages.n_pages)
                n = pages.n_pages;
        return n > 0 ? pages.started + n * pages.interval : 0;
}
int __wrap_hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                                  struct hf_status *ret_why);
int __wrap_hfd_cacher_wait_synced(struct hfd_cacher *cacher, struct hf_cancel *token,
                                  struct hf_status *ret_why) {
        hf_nsec end = pages.started + pages.n_pages * pages.interval;
        hf_nsec until = hf_cancel_deadline(token);

        if (pages.n_pages == 0)
                return wait_result;
        /* Nobody waits for hours. */
        assert_true(hand_clock_now() < end + SECONDS(3600));
        if (pages.completes && until >= end) {
                hand_clock_move(end - hand_clock_now());
                return 0;
        }
        assert_true(until > hand_clock_now());
        hand_clock_move(until - hand_clock_now());
        return hf_fail(ret_why, HF_E_CANCELED, "the cache has some objects so far");
}
int __wrap_hfd_copy_is_incomplete(struct hfd_store *store, const char *prefix, hf_nsec deadline,
                                  bool *ret_incomplete, struct hf_status *reterr_status);
int __wrap_hfd_copy_is_incomplete(struct hfd_store *store, const char *prefix, hf_nsec deadline,
                                  bool *ret_incomplete, struct hf_status *reterr_status) {
        *ret_incomplete = incomplete_copy;
        return 0;
}
bool __wrap_hfd_kind_feed_synced(struct hfd_kind_feed *feed);
bool __wrap_hfd_kind_feed_synced(struct hfd_kind_feed *feed) { return kinds_wait-- <= 0; }
int __wrap_hfd_controllers_start(struct hfd_controllers *controllers);
int __wrap_hfd_controllers_start(struct hfd_controllers *controllers) {
        assert(kinds_wait < 0);
        return controllers_result;
}
int __wrap_hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status);
int __wrap_hf_hooks_start(struct hf_hooks *hooks, struct hf_status *reterr_status) { return 0; }

static struct hfd_server server;
static int n_ended; /* calls of hf_elector_end_term */

void __wrap_hf_elector_end_term(struct hf_elector *elector);
void __wrap_hf_elector_end_term(struct hf_elector *elector) {
        assert_ptr_equal(elector, server.elector);
        /* So nobody frees the elector meanwhile. */
        assert_int_equal(pthread_mutex_trylock(&server.elector_mu), EBUSY);
        n_ended++;
}

static void prepare(void) {
        static char dir[] = "/tmp", etcd[] = "http://127.0.0.1:2379";
        static struct hfd_config config = {.data_dir = dir,
                                           .etcd_servers = {etcd},
                                           .n_etcd_servers = 1};
        static char part; /* its address stands for parts that the functions above do not use */

        assert_int_equal(hfd_server_init(&server, &config, NULL), 0);
        if (pages.n_pages > 0)
                server.host.clock = &hand_clock;
        server.cacher = (struct hfd_cacher *)&part;
        server.http = (struct hfd_http *)&part;
        server.controllers = (struct hfd_controllers *)&part;
        server.hooks = (struct hf_hooks *)&part;
        assert_int_equal(hfd_peers_new(&server.identity, hf_clock_system(), NULL, NULL,
                                       &server.peers),
                         0);
}

static int boot(struct hf_status *ret_status) {
        prepare();
        *ret_status = (struct hf_status){0};
        int r = hfd_boot_run(&server, ret_status);
        server.http = NULL;
        server.hooks = NULL;
        server.peers = hfd_peers_free(server.peers);
        hfd_server_done(&server);
        return r;
}

static void test_a_failed_boot_says_why(void **state) {
        struct hf_status status;

        assert_int_equal(boot(&status), 0);
        controllers_result = -EAGAIN;
        assert_int_equal(boot(&status), -EAGAIN);
        assert_non_null(strstr(status.message, "controllers"));
        wait_result = -ENOMEM;
        assert_int_equal(boot(&status), -ENOMEM);
        assert_non_null(strstr(status.message, "etcd"));
        controllers_result = wait_result = 0;
}

/* Boots from a store that sends n pages, one after each interval. Returns what hfd_boot_run
 * returns, and how long that took. */
static int boot_from_pages(int n, hf_nsec interval, bool completes, hf_nsec *ret_took) {
        struct hf_status status;

        hand_clock_reset();
        pages.started = hand_clock_now();
        pages.n_pages = n;
        pages.interval = interval;
        pages.completes = completes;
        int r = boot(&status);
        *ret_took = hand_clock_now() - pages.started;
        pages.n_pages = 0;
        return r;
}

static void test_a_store_may_take_long_while_objects_arrive(void **state) {
        hf_nsec took;

        assert_int_equal(boot_from_pages(20, SECONDS(50), true, &took), 0);
        assert_int_equal(took, SECONDS(20 * 50));
}

/* The minute counts from the last page: the boot neither ends early nor waits for ever. */
static void test_a_store_that_falls_silent_is_given_up_after_a_minute(void **state) {
        hf_nsec took;

        for (int n = 1; n <= 7; n += 3) {
                assert_int_equal(boot_from_pages(n, SECONDS(45), false, &took), HF_E_UNAVAILABLE);
                assert_int_equal(took, SECONDS(n * 45 + 60));
        }
        /* The first page comes too late. */
        assert_int_equal(boot_from_pages(1, SECONDS(61), true, &took), HF_E_UNAVAILABLE);
        assert_int_equal(took, SECONDS(60));
}

static void test_no_controller_starts_on_an_incomplete_copy(void **state) {
        struct hf_status status;

        /* If the controllers started, the boot would fail with their error. */
        controllers_result = -EAGAIN;
        incomplete_copy = true;
        assert_int_equal(boot(&status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "holdfastd store copy"));
        controllers_result = 0;
        incomplete_copy = false;
}

static void test_controllers_start_when_the_stored_kinds_are_served(void **state) {
        struct hf_status status;

        kinds_wait = 3;
        assert_int_equal(boot(&status), 0);
        assert_int_equal(kinds_wait, -1);
}

/* A thread of the store may learn of the replacement while main frees the electors. */
static void test_a_replaced_store_ends_no_term_after_the_electors(void **state) {
        struct hfd_config config = {0};
        char part;

        assert_int_equal(hfd_server_init(&server, &config, NULL), 0);
        server.elector = (struct hf_elector *)&part;
        hfd_leadership_end_term(&server);
        assert_int_equal(n_ended, 1);
        hfd_leadership_forget_elector(&server);
        hfd_leadership_end_term(&server);
        assert_int_equal(n_ended, 1);
        hfd_server_done(&server);
}

/* ---- the end ---- */

/* So this process never has a second thread. */
int __wrap_hf__thread_run(const struct hf_host *host, const char *name, int (*fn)(void *ctx),
                          void *ctx);
int __wrap_hf__thread_run(const struct hf_host *host, const char *name, int (*fn)(void *ctx),
                          void *ctx) {
        return fn(ctx);
}

int __wrap_hfd_shutdown_run(struct hfd_server *of, struct hf_status *reterr_status);
int __wrap_hfd_shutdown_run(struct hfd_server *of, struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_STUCK, "hook \"a\" is stuck");
}

static void write_line(void *ctx, enum hf_log_level level, const char *component,
                       const char *message) {
        (void)dprintf(*(int *)ctx, "%s\n", message);
}

/* Boots and stops in another process, which ends with status 70, and compares its last line. */
static void expect_last_line(bool controller_is_stuck, const char *line) {
        char text[4096];
        size_t n = 0;
        ssize_t got;
        int fds[2], status;

        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                prepare();
                server.host.log = (struct hf_log){.write = write_line, .ctx = &fds[1]};
                atomic_store(&server.stuck, controller_is_stuck);
                hf_cancel_fire(server.stop, HF_CANCEL_STOPPING);
                (void)hfd_sequence_thread(&server);
                _exit(1);
        }
        close(fds[1]);
        while ((got = read(fds[0], text + n, sizeof text - 1 - n)) > 0)
                n += (size_t)got;
        close(fds[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 70);
        assert_true(n >= strlen(line));
        text[n] = '\0';
        assert_string_equal(text + n - strlen(line), line);
}

/* A hook that is stuck does not keep the election from its release. */
static void test_the_last_line_says_if_the_lease_is_not_released(void **state) {
        expect_last_line(true, "hook \"a\" is stuck; the lease is not released, exiting\n");
        expect_last_line(false, "hook \"a\" is stuck; exiting\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_failed_boot_says_why),
                cmocka_unit_test(test_a_store_may_take_long_while_objects_arrive),
                cmocka_unit_test(test_a_store_that_falls_silent_is_given_up_after_a_minute),
                cmocka_unit_test(test_controllers_start_when_the_stored_kinds_are_served),
                cmocka_unit_test(test_no_controller_starts_on_an_incomplete_copy),
                cmocka_unit_test(test_a_replaced_store_ends_no_term_after_the_electors),
                cmocka_unit_test(test_the_last_line_says_if_the_lease_is_not_released),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
