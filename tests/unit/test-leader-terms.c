/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many terms in one process leave nothing behind. The address sanitizer's leak check shows this to
 * the byte. tests/bench/terms.py runs ten thousand terms against a real server.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "fake_api_client.h"

#include <holdfast/reconciler.h>

#define N_TERMS 60 /* or HOLDFAST_TERMS of them, by hand */

/*
 * The Lease is on one server and the objects of the controllers on another, so the revisions of the
 * Lease mean nothing there.
 */
static struct {
        struct fake_api *things;
        struct fake_api_client *client;
        struct hf_informer *informer;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        int leads;
        unsigned n_terms;
        size_t most_handlers;
        uint64_t wrong; /* terms that did not see the last change made before them */
        char expected[16];
} f;

struct run {
        int me;
        atomic_bool counted;
};

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct run *run = ctx;
        char *object = NULL, expected[32];

        if (strcmp(key, "a/changes") != 0 || atomic_exchange(&run->counted, true))
                return 0;
        assert(hf_informer_get(f.informer, "a", "changes", &object, NULL) == 0);
        size_t n = hf_informer_n_handlers(f.informer);
        pthread_mutex_lock(&f.mu);
        snprintf(expected, sizeof expected, "\"v\":\"%s\"", f.expected);
        f.wrong += strstr(object, expected) == NULL;
        f.most_handlers = n > f.most_handlers ? n : f.most_handlers;
        f.n_terms++;
        f.leads = run->me;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        free(object);
        return 0;
}

static int run_controller(struct hf_term *term, void *ctx) {
        struct run run = {.me = *(int *)ctx};
        const struct hf_reconciler_source source = {.size = sizeof source, .informer = f.informer};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "terms",
                                                 .sources = &source,
                                                 .n_sources = 1,
                                                 .n_workers = 2,
                                                 .reconcile = reconcile,
                                                 .ctx = &run};
        return hf_reconciler_run(&reconciler, term);
}

static struct hf_electors *start(struct fake_api *api, struct fake_api_client *client, int *me,
                                 struct hf_elector **ret_elector) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "terms",
                                                 .runs = HF_LEADER_ONLY,
                                                 .run = run_controller,
                                                 .ctx = me};
        struct hf_electors *electors = NULL;
        const struct hf_elector_config config = {
                .size = sizeof config,
                .ns = "kube-system",
                .name = "lead",
                .identity = *me == 0 ? "zero" : "one",
                .client = &client->base,
                .timing =
                        {
                                /* ample, because under valgrind everything is slow */
                                .lease_duration = 20 * HF_NSEC_PER_SEC,
                                .renew_deadline = 10 * HF_NSEC_PER_SEC,
                                .retry_period = 20 * HF_NSEC_PER_MSEC,
                        },
                .controllers = &controller,
                .n_controllers = 1,
        };
        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        assert_int_equal(hf_electors_add(electors, &config, ret_elector, NULL), 0);
        assert_int_equal(hf_electors_start(electors, NULL), 0);
        return electors;
}

static int await_term(unsigned n) {
        const struct hf_clock *clock = hf_clock_system();

        pthread_mutex_lock(&f.mu);
        while (f.n_terms < n)
                assert_int_equal(clock->wait(clock->ctx, &f.changed, &f.mu,
                                             hf_now(clock) + 60 * HF_NSEC_PER_SEC),
                                 0);
        int leads = f.leads;
        pthread_mutex_unlock(&f.mu);
        return leads;
}

static void change(unsigned i) {
        pthread_mutex_lock(&f.mu);
        snprintf(f.expected, sizeof f.expected, "%u", i);
        pthread_mutex_unlock(&f.mu);
        fake_api_put_thing(f.things, "a", "changes", f.expected);
}

static unsigned n_threads(void) {
        unsigned n = 0;
        char line[128];
        FILE *file = fopen("/proc/self/status", "re");

        while (file && fgets(line, sizeof line, file))
                if (sscanf(line, "Threads: %u", &n) == 1)
                        break;
        if (file)
                fclose(file);
        return n;
}

/* Fills f: an API with the things, and an informer of them. */
static void set_up(void) {
        static const struct hf_host host = {.size = sizeof host};

        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.changed), 0);
        f.things = fake_api_new();
        f.client = fake_api_client_new(f.things);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .resource = {.group = "",
                                                               .version = "v1",
                                                               .plural = "things"}};
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), 0);
        assert_int_equal(hf_informer_start(f.informer), 0);
}

static void tear_down(void) {
        hf_informer_free(f.informer);
        hf_client_free(&f.client->base);
        fake_api_free(f.things);
        pthread_cond_destroy(&f.changed);
        pthread_mutex_destroy(&f.mu);
}

/* A16, LK01: Nothing accumulates, and each term begins with the changes made before it. */
static void test_terms_leave_nothing_behind(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *clients[2] = {fake_api_client_new(api), fake_api_client_new(api)};
        struct hf_electors *electors[2];
        struct hf_elector *elector[2];
        int me[2] = {0, 1};

        set_up();
        change(0);
        unsigned n_before = n_threads();
        for (int i = 0; i < 2; i++)
                electors[i] = start(api, clients[i], &me[i], &elector[i]);
        const char *wanted = getenv("HOLDFAST_TERMS");
        const unsigned n_terms = wanted ? (unsigned)atoi(wanted) : N_TERMS;

        for (unsigned i = 1; i <= n_terms; i++) {
                int leads = await_term(i);
                if (i == n_terms)
                        break;
                /* the cache is behind when the next term begins */
                fake_api_client_hold_events(f.client, true);
                change(i);
                assert_int_equal(hf_elector_hand_over(elector[leads], leads == 0 ? "one" : "zero"),
                                 0);
                (void)await_term(i + 1);
                fake_api_client_hold_events(f.client, false);
        }
        for (int i = 0; i < 2; i++) {
                assert_int_equal(hf_electors_stop(electors[i], NULL), 0);
                hf_electors_free(electors[i]);
                hf_client_free(&clients[i]->base);
        }
        assert_int_equal(f.most_handlers, 1);
        assert_int_equal(hf_informer_n_handlers(f.informer), 0);
        assert_int_equal(f.wrong, 0);
        assert_int_equal(fake_api_n_watches(f.things), 1);
        assert_int_equal(n_threads(), n_before);
        fake_api_free(api);
        tear_down();
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_terms_leave_nothing_behind)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
