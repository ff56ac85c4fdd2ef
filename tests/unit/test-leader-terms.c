/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many terms in one process: what they leave behind. Under valgrind (tools/test valgrind) that
 * includes every byte; the ten thousand of tests/bench/terms.py are the same against a real server.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Room for the changes and the Lease's writes of ten thousand terms. */
#define API_FAKE_MAX_EVENTS 16384
#define FAKE_MAX_COMMITS    65536
#include "api-fake.c"
#include "fake_api.h"

#include <holdfast/reconciler.h>

#define N_TERMS 60 /* or HOLDFAST_TERMS of them, for valgrind; there is room for some 16,000 */

/* The Lease is in one server, what the controllers watch in another: its revisions mean nothing
 * there. */
static struct {
        struct api_fake *things;
        struct hf_informer *informer;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        int leads;
        unsigned n_terms;
        size_t most_handlers;
        uint64_t wrong; /* terms that did not see the last change made before them */
        char expected[16];
} w;

struct run {
        int me;
        atomic_bool counted;
};

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct run *run = ctx;
        char *object = NULL, expected[32];

        if (strcmp(key, "a/changes") != 0 || atomic_exchange(&run->counted, true))
                return 0;
        assert(hf_informer_get(w.informer, "a", "changes", &object, NULL) == 0);
        size_t n = hf_informer_n_handlers(w.informer);
        pthread_mutex_lock(&w.mu);
        snprintf(expected, sizeof expected, "\"v\":\"%s\"", w.expected);
        w.wrong += strstr(object, expected) == NULL;
        w.most_handlers = n > w.most_handlers ? n : w.most_handlers;
        w.n_terms++;
        w.leads = run->me;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
        free(object);
        return 0;
}

static int run_controller(struct hf_term *term, void *ctx) {
        struct run run = {.me = *(int *)ctx};
        const struct hf_reconciler_source source = {.informer = w.informer};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "terms",
                                                 .sources = &source,
                                                 .n_sources = 1,
                                                 .n_workers = 2,
                                                 .reconcile = reconcile,
                                                 .ctx = &run};
        return hf_reconciler_run(&reconciler, term);
}

static struct hf_electors *start(struct fake_api *api, struct fake_client *client, int *me,
                                 struct hf_elector **ret_elector) {
        const struct hf_controller controller = {.name = "terms",
                                                 .class = HF_LEADER_ONLY,
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
                                .lease_duration =
                                        20 *
                                        HF_NSEC_PER_SEC, /* ample: under valgrind all is slow */
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

        pthread_mutex_lock(&w.mu);
        while (w.n_terms < n)
                assert_int_equal(clock->wait(clock->ctx, &w.changed, &w.mu,
                                             hf_now(clock) + 60 * HF_NSEC_PER_SEC),
                                 0);
        int leads = w.leads;
        pthread_mutex_unlock(&w.mu);
        return leads;
}

static void change(unsigned i) {
        pthread_mutex_lock(&w.mu);
        snprintf(w.expected, sizeof w.expected, "%u", i);
        pthread_mutex_unlock(&w.mu);
        api_fake_put(w.things, "a", "changes", w.expected);
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

/* A16, LK01: nothing accumulates, and each term begins with what was changed before it. */
static void test_terms_leave_nothing_behind(void **state) {
        static const struct hf_host host = {.size = sizeof host};
        struct fake_api *api = fake_api_new();
        struct fake_client *clients[2] = {fake_client_new(api), fake_client_new(api)};
        struct hf_electors *electors[2];
        struct hf_elector *elector[2];
        int me[2] = {0, 1};

        pthread_mutex_init(&w.mu, NULL);
        hf_cond_init(&w.changed);
        w.things = api_fake_new(&host);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = api_fake_client(w.things),
                                                  .resource = {.group = "",
                                                               .version = "v1",
                                                               .plural = "things"}};
        assert_int_equal(hf_informer_new(&host, &config, &w.informer), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
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
                api_fake_mute_watches(w.things,
                                      true); /* the cache is behind when the next term begins */
                change(i);
                assert_int_equal(hf_elector_hand_over(elector[leads], leads == 0 ? "one" : "zero"),
                                 0);
                (void)await_term(i + 1);
                api_fake_mute_watches(w.things, false);
        }
        for (int i = 0; i < 2; i++) {
                assert_int_equal(hf_electors_stop(electors[i], NULL), 0);
                hf_electors_free(electors[i]);
                hf_client_free(&clients[i]->base);
        }
        assert_int_equal(w.most_handlers, 1);
        assert_int_equal(hf_informer_n_handlers(w.informer), 0);
        assert_int_equal(w.wrong, 0);
        assert_int_equal(api_fake_n_watches(w.things), 1);
        assert_int_equal(n_threads(), n_before);
        hf_informer_free(w.informer);
        hf_client_free(api_fake_client(w.things));
        fake_api_free(api);
        pthread_cond_destroy(&w.changed);
        pthread_mutex_destroy(&w.mu);
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_terms_leave_nothing_behind)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
