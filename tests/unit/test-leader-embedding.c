/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library must not do to the process that embeds it; see the list in docs/embedding.md.
 * tests/lib/check-symbols checks that it imports no exit, abort, fork or signal function.
 * test-leader-host.c has what the process can do with the library.
 */
#undef NDEBUG
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/informer.h>

#include "base/json.h"
#include "embedder.h"
#include "patience.h"

/* ---- what the kernel reports of our threads ---- */

static void read_task(const char *tid, const char *what, char *text, size_t max) {
        char path[600];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/%s", tid, what);
        FILE *file = fopen(path, "re");
        size_t n = file ? fread(text, 1, max - 1, file) : 0;
        if (file)
                (void)fclose(file);
        text[n] = '\0';
        if (n > 0 && text[n - 1] == '\n')
                text[n - 1] = '\0';
}

/*
 * Every signal except those that cannot be blocked, the two of the C library, and the last one,
 * which valgrind uses.
 */
static uint64_t all_signals(void) {
        uint64_t mask = 0;
        for (int i = 1; i < 64; i++)
                if (i != SIGKILL && i != SIGSTOP && i != 32 && i != 33)
                        mask |= UINT64_C(1) << (i - 1);
        return mask;
}

static bool is_ours(const char *name) { return strncmp(name, "hf-", 3) == 0; }

/*
 * Counts threads with and without a name of the library, and asserts that each thread with such a
 * name blocks all signals.
 */
static unsigned look_at_threads(char *names, size_t max, unsigned *ret_n_unnamed) {
        DIR *dir = opendir("/proc/self/task");
        unsigned n = 0, n_unnamed = 0;

        assert_non_null(dir);
        names[0] = '\0';
        for (struct dirent *entry; (entry = readdir(dir));) {
                char name[64], status[4096];
                if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
                        continue;
                read_task(entry->d_name, "comm", name, sizeof name);
                read_task(entry->d_name, "status", status, sizeof status);
                const char *blocked = strstr(status, "SigBlk:");
                if (strcmp(name, "fake-api") == 0)
                        continue;
                if (!is_ours(name)) {
                        n_unnamed++; /* the thread sanitizer has one */
                        continue;
                }
                n++;
                (void)snprintf(names + strlen(names), max - strlen(names), "%s ", name);
                if (!blocked || (strtoull(blocked + 7, NULL, 16) & all_signals()) != all_signals())
                        fail_msg("thread %s does not block all signals: %.40s", name,
                                 blocked ? blocked : "?");
        }
        closedir(dir);
        *ret_n_unnamed = n_unnamed;
        return n;
}

/* A thread sets its name itself, so a new thread may not have its name yet. */
static unsigned check_threads(char *names, size_t max) {
#ifdef __SANITIZE_THREAD__
        const unsigned most_unnamed = 1;
#else
        const unsigned most_unnamed = 0;
#endif
        unsigned n_unnamed, n = look_at_threads(names, max, &n_unnamed);

        for (hf_nsec until = hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC;
             n_unnamed > most_unnamed && hf_now(hf_clock_system()) < until;) {
                (void)sched_yield();
                n = look_at_threads(names, max, &n_unnamed);
        }
        assert_in_range(n_unnamed, 0, most_unnamed);
        return n;
}

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {}

static void test_threads_are_named_and_block_all_signals(void **state) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .resource = {"coordination.k8s.io", "v1",
                                                               "leases"}};
        struct embedder *e = embedder_new();
        struct hf_informer_config with_client = config;
        struct hf_informer *informer;
        struct hf_informer_handler *handler;
        char names[512];

        with_client.client = &e->client->base;
        assert_int_equal(hf_informer_new(&e->host, &with_client, &informer), 0);
        assert_int_equal(hf_informer_add_handler(informer, on_object, NULL, &handler), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        assert_int_equal(hf_electors_start(e->electors, NULL), 0);
        embedder_await_leading(e);
        unsigned n = check_threads(names, sizeof names);
        static const char *const expected[] = {"hf-rest ", "hf-elector ", "hf-worker ",
                                               "hf-informer "};
        for (size_t i = 0; i < 4; i++)
                if (!strstr(names, expected[i]))
                        fail_msg("there is no thread %sbut %s", expected[i], names);
        assert_int_equal(n, 4);
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        hf_informer_free(informer);
        assert_int_equal(check_threads(names, sizeof names), 1); /* the REST client's */
        embedder_free(e);
        assert_int_equal(check_threads(names, sizeof names), 0); /* all are joined */
}

static void test_threads_have_the_stack_that_was_asked_for(void **state) {
        struct embedder *e = embedder_new();

        assert_int_equal(hf_electors_start(e->electors, NULL), 0);
        embedder_await_leading(e);
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        /* The library adds what a deep JSON value needs. Depending on its version, glibc counts the
         * guard page or not. */
        assert_true(e->least_stack >= EMBEDDER_STACK - 8192);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* which make it larger */
        assert_true(e->most_stack <= EMBEDDER_STACK + HF__JSON_STACK + 8192);
#endif
        embedder_free(e);

        struct hf_host tiny = {.size = sizeof tiny, .thread_stack_bytes = 4096};
        const struct hf_rest_config config = {.size = sizeof config,
                                              .server = "http://127.0.0.1:1"};
        struct hf_client *client = NULL;
        assert_int_equal(hf_rest_client_new(&tiny, &config, &client, NULL), -EINVAL);
}

/* Replaces the C library's, also for the libraries that the library uses. */
static atomic_uint n_sigactions; /* that change something */
int sigaction(int signal, const struct sigaction *action, struct sigaction *former) {
        static int (*real)(int, const struct sigaction *, struct sigaction *);
        if (!real)
                real = (int (*)(int, const struct sigaction *,
                                struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
        atomic_fetch_add(&n_sigactions, action != NULL);
        return real(signal, action, former);
}

static void test_signals_are_left_alone(void **state) {
        struct sigaction before[65], after;
        sigset_t mask_before, mask_after;

        for (int i = 1; i <= 64; i++)
                (void)sigaction(i, NULL, &before[i]);
        assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask_before), 0);
        struct embedder *e = embedder_new();
        assert_int_equal(hf_electors_start(e->electors, NULL), 0);
        embedder_await_leading(e);
        for (int i = 1; i <= 64; i++) {
                if (i == 32 || i == 33) /* the C library's own */
                        continue;
                memset(&after, 0, sizeof after);
                (void)sigaction(i, NULL, &after);
                if (after.sa_handler != before[i].sa_handler)
                        fail_msg("signal %d has another handler", i);
        }
        assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask_after), 0);
        for (int i = 1; i <= 64; i++)
                assert_int_equal(sigismember(&mask_before, i), sigismember(&mask_after, i));
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        embedder_free(e);
}

/*
 * libcurl must not change a signal's disposition either: it would ignore SIGPIPE while it closes,
 * and a host that sets a handler at that moment would lose it.
 */
static void test_no_signal_disposition_is_changed_even_briefly(void **state) {
        const struct hf_request get = {.size = sizeof get,
                                       .verb = HF_VERB_GET,
                                       .resource = {"", "v1", "things"},
                                       .name = "one"};

        n_sigactions = 0;
        for (int used = 0; used < 2; used++) {
                struct embedder *e = embedder_new();
                if (used) /* nothing listens there */
                        assert_int_not_equal(hf_client_do(e->rest, &get, hf_cancel_never(), NULL,
                                                          NULL, NULL),
                                             0);
                e->rest = hf_client_free(e->rest);
                assert_int_equal(n_sigactions, 0);
                embedder_free(e);
        }
}

/*
 * Without a log callback nothing is written, even if a term is lost or stopped, or a server refuses
 * requests.
 */
static void test_nothing_is_printed(void **state) {
        FILE *file = tmpfile();
        int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);

        (void)fflush(NULL);
        assert_true(file && out >= 0 && err >= 0);
        assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0 &&
                    dup2(fileno(file), STDERR_FILENO) >= 0);
        struct embedder *e = embedder_new();
        const struct hf_request get = {.size = sizeof get,
                                       .verb = HF_VERB_GET,
                                       .resource = {"", "v1", "configmaps"},
                                       .ns = "a",
                                       .name = "b"};
        int refused = hf_client_do(e->rest, &get, hf_cancel_never(), NULL, NULL, NULL);
        int started = hf_electors_start(e->electors, NULL);
        embedder_await_leading(e);
        fake_api_delete(e->api, "leases/default/lead"); /* the term is lost, and another follows */
        pthread_mutex_lock(&e->mu);
        PATIENCE_AWAIT_LOCKED(&e->changed, &e->mu, e->n_ended != 0 && e->leads);
        pthread_mutex_unlock(&e->mu);
        int stopped = hf_electors_stop(e->electors, NULL);
        embedder_free(e);
        (void)fflush(NULL);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(err, STDERR_FILENO);
        (void)close(out);
        (void)close(err);
        assert_int_equal(refused, HF_E_UNAVAILABLE);
        assert_int_equal(started, 0);
        assert_int_equal(stopped, 0);
        assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
        (void)fclose(file);
}

static void test_a_forked_child_does_not_lead(void **state) {
        struct embedder *e = embedder_new();
        int status = 0;

        assert_int_equal(hf_electors_start(e->electors, NULL), 0);
        embedder_await_leading(e);
        assert_true(hf_elector_may_act(e->elector));
        pid_t pid = fork();
        assert_true(pid >= 0);
        /*
         * It ends by a signal: at an exit, a memory checker would report the memory of threads that
         * do not exist in the child.
         */
        if (pid == 0)
                (void)kill(getpid(), hf_elector_may_act(e->elector) ? SIGTERM : SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_true(hf_elector_may_act(e->elector)); /* the parent goes on */
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        embedder_free(e);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads_are_named_and_block_all_signals),
                cmocka_unit_test(test_threads_have_the_stack_that_was_asked_for),
                cmocka_unit_test(test_signals_are_left_alone),
                cmocka_unit_test(test_no_signal_disposition_is_changed_even_briefly),
                cmocka_unit_test(test_nothing_is_printed),
                cmocka_unit_test(test_a_forked_child_does_not_lead),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
