/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library must not do to the process that embeds it; see the list in docs/embedding.md.
 * tests/lib/check-symbols checks that it imports no exit, abort, fork or signal function.
 */
#undef NDEBUG
#include <assert.h>
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

#include "base/strbuf.h"
#include "base/thread.h"
#include "fake_api_client.h"

#include <holdfast/health.h>
#include <holdfast/hooks.h>
#include <holdfast/informer.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#define GUARD (60 * HF_NSEC_PER_SEC)
#define STACK ((size_t)320 << 10)

/* ---- a host that uses every part of the library that starts threads ---- */

struct embedder {
        struct fake_api *api;
        struct hf_host host;
        struct fake_api_client *client;
        struct hf_client *rest;
        struct hf_informer *informer;
        struct hf_informer_handler *handler;
        struct hf_electors *electors;
        struct hf_elector *elector;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        bool leads, handler_ran;
        size_t least_stack, most_stack;
        char report[512]; /* of the controller, about its own process */
        int n_ended;
};

static void record_stack(struct embedder *g) {
        pthread_attr_t attr;
        void *low;
        size_t n = 0;

        assert(pthread_getattr_np(pthread_self(), &attr) == 0);
        assert(pthread_attr_getstack(&attr, &low, &n) == 0);
        (void)pthread_attr_destroy(&attr);
        pthread_mutex_lock(&g->mu);
        g->least_stack = n < g->least_stack ? n : g->least_stack;
        g->most_stack = n > g->most_stack ? n : g->most_stack;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->mu);
}

static int controller(struct hf_term *term, void *ctx) {
        struct embedder *g = ctx;

        record_stack(g);
        pthread_mutex_lock(&g->mu);
        g->leads = true;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        pthread_mutex_lock(&g->mu);
        g->n_ended++;
        g->leads = false;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->mu);
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) { record_stack(ctx); }

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {
        struct embedder *g = ctx;
        record_stack(g);
        pthread_mutex_lock(&g->mu);
        g->handler_ran = true;
        pthread_mutex_unlock(&g->mu);
}

static const struct hf_leader_timing quick = {
        .lease_duration = 2 * HF_NSEC_PER_SEC,
        .renew_deadline = 1 * HF_NSEC_PER_SEC,
        .retry_period = 200 * HF_NSEC_PER_MSEC,
        .request_timeout = 300 * HF_NSEC_PER_MSEC,
};

static struct hf_elector_config config_of(struct embedder *g, const struct hf_controller *it) {
        return (struct hf_elector_config){.size = sizeof(struct hf_elector_config),
                                          .ns = "default",
                                          .name = "lead",
                                          .identity = "me",
                                          .client = &g->client->base,
                                          .timing = quick,
                                          .controllers = it,
                                          .n_controllers = 1,
                                          .on_change = on_change,
                                          .ctx = g};
}

static struct embedder *guest_new(void) {
        struct embedder *g = calloc(1, sizeof *g);
        const struct hf_rest_config rest = {.size = sizeof rest, .server = "http://127.0.0.1:1"};
        struct hf_status status = {0};

        assert_non_null(g);
        g->least_stack = SIZE_MAX;
        assert_int_equal(hf__mutex_init(&g->mu), 0);
        assert_int_equal(hf_cond_init(&g->changed), 0);
        g->api = fake_api_new();
        g->client = fake_api_client_new(g->api);
        g->host = (struct hf_host){.size = sizeof g->host, .thread_stack_bytes = STACK};
        assert_int_equal(hf_health_new(&g->host.health), 0);
        assert_int_equal(hf_metrics_new(&g->host.metrics), 0);
        assert_int_equal(hf_rest_client_new(&g->host, &rest, &g->rest, &status), 0);
        const struct hf_controller it = {.name = "worker", .run = controller, .ctx = g};
        const struct hf_elector_config config = config_of(g, &it);
        assert_int_equal(hf_electors_new(&g->host, &g->electors), 0);
        assert_int_equal(hf_electors_add(g->electors, &config, &g->elector, &status), 0);
        return g;
}

static void await_leading(struct embedder *g) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;

        pthread_mutex_lock(&g->mu);
        while (!g->leads)
                assert_int_equal(clock->wait(clock->ctx, &g->changed, &g->mu, until), 0);
        pthread_mutex_unlock(&g->mu);
}

static void guest_free(struct embedder *g) {
        hf_electors_free(g->electors);
        hf_client_free(g->rest);
        hf_client_free(&g->client->base);
        fake_api_free(g->api);
        hf_metrics_free(g->host.metrics);
        hf_health_free(g->host.health);
        pthread_cond_destroy(&g->changed);
        pthread_mutex_destroy(&g->mu);
        free(g);
}

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
 * Counts threads with and without a name of the library, and asserts that each of the former blocks
 * all signals.
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

/* A thread sets its name itself, so a new thread may not have done it yet. */
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

static void test_threads_are_named_and_block_all_signals(void **state) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .resource = {"coordination.k8s.io", "v1",
                                                               "leases"}};
        struct embedder *g = guest_new();
        struct hf_informer_config with_client = config;
        char names[512];

        with_client.client = &g->client->base;
        assert_int_equal(hf_informer_new(&g->host, &with_client, &g->informer), 0);
        assert_int_equal(hf_informer_add_handler(g->informer, on_object, g, &g->handler), 0);
        assert_int_equal(hf_informer_start(g->informer), 0);
        assert_int_equal(hf_electors_start(g->electors, NULL), 0);
        await_leading(g);
        unsigned n = check_threads(names, sizeof names);
        static const char *const expected[] = {"hf-rest ", "hf-elector ", "hf-worker ",
                                               "hf-informer "};
        for (size_t i = 0; i < 4; i++)
                if (!strstr(names, expected[i]))
                        fail_msg("there is no thread %sbut %s", expected[i], names);
        assert_int_equal(n, 4);
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        g->informer = hf_informer_free(g->informer);
        assert_int_equal(check_threads(names, sizeof names), 1); /* the REST client's */
        guest_free(g);
        assert_int_equal(check_threads(names, sizeof names), 0); /* all are joined */
}

static void test_threads_have_the_stack_that_was_asked_for(void **state) {
        struct embedder *g = guest_new();

        assert_int_equal(hf_electors_start(g->electors, NULL), 0);
        await_leading(g);
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        /* depending on its version, glibc counts the guard page or not */
        assert_true(g->least_stack >= STACK - 8192);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* which make it larger */
        assert_true(g->most_stack <= STACK + 8192);
#endif
        guest_free(g);

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
        struct embedder *g = guest_new();
        assert_int_equal(hf_electors_start(g->electors, NULL), 0);
        await_leading(g);
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
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        guest_free(g);
}

/*
 * libcurl must not do it either: it would ignore SIGPIPE while it closes, and a host that sets a
 * handler at that moment would lose it.
 */
static void test_no_signal_disposition_is_changed_even_briefly(void **state) {
        const struct hf_request get = {.verb = HF_VERB_GET,
                                       .resource = {"", "v1", "things"},
                                       .name = "one"};

        n_sigactions = 0;
        for (int used = 0; used < 2; used++) {
                struct embedder *g = guest_new();
                if (used) /* nothing listens there */
                        assert_int_not_equal(hf_client_do(g->rest, &get, hf_cancel_never(), NULL,
                                                          NULL, NULL),
                                             0);
                g->rest = hf_client_free(g->rest);
                assert_int_equal(n_sigactions, 0);
                guest_free(g);
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
        struct embedder *g = guest_new();
        const struct hf_request get = {.verb = HF_VERB_GET,
                                       .resource = {"", "v1", "configmaps"},
                                       .ns = "a",
                                       .name = "b"};
        int refused = hf_client_do(g->rest, &get, hf_cancel_never(), NULL, NULL, NULL);
        int started = hf_electors_start(g->electors, NULL);
        await_leading(g);
        fake_api_delete(g->api, "leases/default/lead"); /* the term is lost, and another follows */
        pthread_mutex_lock(&g->mu);
        while (g->n_ended == 0 || !g->leads)
                (void)pthread_cond_wait(&g->changed, &g->mu);
        pthread_mutex_unlock(&g->mu);
        int stopped = hf_electors_stop(g->electors, NULL);
        guest_free(g);
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
        struct embedder *g = guest_new();
        int status = 0;

        assert_int_equal(hf_electors_start(g->electors, NULL), 0);
        await_leading(g);
        assert_true(hf_elector_may_act(g->elector));
        pid_t pid = fork();
        assert_true(pid >= 0);
        /*
         * It ends by a signal: at an exit, a memory checker would report the memory of threads that
         * do not exist in the child.
         */
        if (pid == 0)
                (void)kill(getpid(), hf_elector_may_act(g->elector) ? SIGTERM : SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_true(hf_elector_may_act(g->elector)); /* the parent goes on */
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        guest_free(g);
}

/* ---- the host's own hooks, health and metrics ---- */

static void *stop_on_another_thread(void *ctx) {
        struct embedder *g = ctx;
        return (void *)(intptr_t)hf_electors_stop(g->electors, NULL);
}

/*
 * A host with its own hooks does not need those of the library: start returns at once, and any
 * thread may call stop.
 */
static void test_a_hosts_own_hooks_can_drive_it(void **state) {
        struct embedder *g = guest_new();
        pthread_t thread;
        void *result = NULL;

        assert_int_equal(hf_electors_start(g->electors, NULL), 0); /* the host's post-start hook */
        await_leading(g);
        /* the host's pre-shutdown hook */
        assert_int_equal(pthread_create(&thread, NULL, stop_on_another_thread, g), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal((intptr_t)result, 0);
        assert_int_equal(g->n_ended, 1);
        char *lease = fake_api_get(g->api, "leases/default/lead");
        assert_non_null(strstr(lease, "\"holderIdentity\":\"\"")); /* released */
        free(lease);
        guest_free(g);
}

static int own_start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        *(bool *)ctx = true;
        return 0;
}

/* A host without its own hooks registers one pair of hooks for all electors. */
static void test_our_hooks_drive_it(void **state) {
        struct embedder *g = guest_new();
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        bool own = false;
        static const char *const after[] = {"own"};
        const struct hf_hook hook = {.name = "own", .start = own_start, .ctx = &own};

        assert_int_equal(hf_hooks_new(&g->host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, &status), 0);
        assert_int_equal(hf_controllers_install(hooks, g->electors, after, 1, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_true(own);
        await_leading(g);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(g->n_ended, 1);
        hf_hooks_stopped(hooks);
        hf_hooks_free(hooks);
        guest_free(g);
}

static void collect_check(void *ctx, const char *name, bool healthy, const char *reason) {
        char *text = ctx;
        (void)snprintf(text + strlen(text), 1024 - strlen(text), "%s=%d ", name, healthy);
}
static void collect_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

static void test_health_and_metrics_are_enumerated(void **state) {
        struct embedder *g = guest_new();
        char checks[1024] = "";
        struct hf__strbuf text = {0};

        assert_int_equal(hf_electors_start(g->electors, NULL), 0);
        await_leading(g);
        assert_int_equal(hf_health_each(g->host.health, HF_LIVEZ, collect_check, checks), 0);
        assert_string_equal(checks, "leaderElection=1 ");
        hf_metrics_write(g->host.metrics, collect_text, &text);
        assert_int_equal(text.error, 0);
        assert_non_null(strstr(text.data, "\nleader_election_master_status{"));
        assert_non_null(strstr(text.data, "# TYPE holdfast_leader_term gauge"));
        hf__strbuf_done(&text);
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        guest_free(g);
}

/* ---- structs that grow ---- */

/*
 * Members that an older program does not know get their defaults. Members beyond its struct are
 * ignored.
 */
static void test_smaller_and_larger_configurations_work(void **state) {
        struct embedder *g = guest_new();
        const struct hf_controller one = {.name = "one", .run = controller, .ctx = g},
                                   two = {.name = "two", .run = controller, .ctx = g};
        struct {
                struct hf_elector_config config;
                char more[16];
        } newer = {.config = config_of(g, &two)};
        struct hf_elector_config older = config_of(g, &one), none = older;
        struct hf_status status = {0};

        older.name = "older";
        older.size = offsetof(struct hf_elector_config, labels);
        older.labels = (const char *const *)(uintptr_t)0x10;
        older.on_change = (void (*)(void *, const struct hf_leader_info *))(uintptr_t)0x10;
        if (hf_electors_add(g->electors, &older, NULL, &status) != 0)
                fail_msg("%s", status.message);
        newer.config.name = "newer";
        newer.config.size = sizeof newer;
        assert_int_equal(hf_electors_add(g->electors, &newer.config, NULL, &status), 0);
        newer.config.name = "newest";
        newer.more[15] = 1;
        assert_int_equal(hf_electors_add(g->electors, &newer.config, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "size"));
        none.name = "none";
        none.size = 0;
        assert_int_equal(hf_electors_add(g->electors, &none, NULL, &status), -EINVAL);
        assert_int_equal(hf_electors_start(g->electors, &status), 0);
        await_leading(g);
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);

        struct hf_informer_config small = {.client = &g->client->base,
                                           .resource = {"", "v1", "configmaps"}};
        struct hf_informer *informer = NULL;
        small.size = offsetof(struct hf_informer_config, ns);
        small.ns = small.query = (const char *)(uintptr_t)0x10;
        assert_int_equal(hf_informer_new(&g->host, &small, &informer), 0);
        hf_informer_free(informer);
        small.size = 0;
        assert_int_equal(hf_informer_new(&g->host, &small, &informer), -EINVAL);
        guest_free(g);
}

/* Electors for one Lease name in two clusters both lead, each with a controller of one name. */
static void test_two_clusters_may_have_the_same_lease(void **state) {
        struct embedder *g = guest_new(), *other = guest_new();
        const struct hf_controller same = {.name = "worker", .run = controller, .ctx = other};
        struct hf_elector_config west = config_of(other, &same);
        struct hf_elector *in_west;
        struct hf_status status = {0};

        assert_int_equal(hf_electors_add(g->electors, &west, NULL, &status), HF_E_EXISTS);
        west.cluster = "west side";
        assert_int_equal(hf_electors_add(g->electors, &west, NULL, &status), HF_E_INVALID);
        west.cluster = "west";
        if (hf_electors_add(g->electors, &west, &in_west, &status) != 0)
                fail_msg("%s", status.message);
        assert_int_equal(hf_electors_add(g->electors, &west, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_electors_start(g->electors, &status), 0);
        await_leading(g);
        await_leading(other);
        assert_true(hf_elector_may_act(g->elector) && hf_elector_may_act(in_west));
        assert_int_equal(hf_electors_stop(g->electors, NULL), 0);
        guest_free(other);
        guest_free(g);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads_are_named_and_block_all_signals),
                cmocka_unit_test(test_threads_have_the_stack_that_was_asked_for),
                cmocka_unit_test(test_signals_are_left_alone),
                cmocka_unit_test(test_no_signal_disposition_is_changed_even_briefly),
                cmocka_unit_test(test_nothing_is_printed),
                cmocka_unit_test(test_a_forked_child_does_not_lead),
                cmocka_unit_test(test_a_hosts_own_hooks_can_drive_it),
                cmocka_unit_test(test_our_hooks_drive_it),
                cmocka_unit_test(test_health_and_metrics_are_enumerated),
                cmocka_unit_test(test_smaller_and_larger_configurations_work),
                cmocka_unit_test(test_two_clusters_may_have_the_same_lease),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
