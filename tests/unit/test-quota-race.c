/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two instances and a controller that recounts use one store, in the orders that random schedules
 * choose. The store is a model: it commits a transaction if the quota still has the version that
 * the transaction compares. Instances decide by versions that may be old, and stop at any step.
 *
 * The test checks that the namespace never has more objects than a limit that was counted, that
 * status.used is never less than the number of objects, and that it is equal once nothing changes
 * any more.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/quota.h"
#include "server/schema/values/quantity.h"

#define HARD      3
#define N_WRITERS 4 /* creates at a time, of two instances */
#define SCHEDULES 1000
#define STEPS     150

/* The created objects are either only counted, or have an amount each. */
static const char *of_kind, *resource;
#define POD(cpu)                                                                                   \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"" cpu   \
        "\"}}}]}}"

/* A version of the quota. */
struct version {
        struct hf__json *quota;
        unsigned revision;
};

struct store {
        unsigned revision;
        struct version quota;
        unsigned n_objects;
};

/* A create: it has decided, and will commit. */
struct writer {
        bool deciding;
        struct version base;     /* the version that it compares */
        struct hf__json *result; /* the object that it writes; the same as base if it was pending */
};

static uint64_t random_state;

static unsigned pick(unsigned n) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)(random_state >> 33) % n;
}

static struct version copy(const struct version *version) {
        return (struct version){hf__json_dup(version->quota), version->revision};
}

static void replace(struct version *version, struct hf__json *quota, unsigned revision) {
        hf__json_free(version->quota);
        *version = (struct version){quota, revision};
}

static const char *status_used(void) {
        return strcmp(resource, "cpu") == 0 ? "status.used.cpu" : "status.used.configmaps";
}

static uint64_t used(const struct store *store) {
        const char *text = hf__json_string(store->quota.quota, status_used());
        struct hfd_quantity quantity;

        assert_non_null(text);
        assert_null(hfd_quantity_parse(text, &quantity));
        return quantity.whole;
}

/* ---- a create ---- */

/* Decides by a version that the instance knows: the store's, or its view, which may be old. */
static void decide(struct writer *w, const struct version *view, unsigned *n_refused) {
        struct hf__json *quota = hf__json_dup(view->quota);
        struct hf__strbuf why = {0};
        static const char text[] = POD("1");
        struct hfd_quota_change change;
        enum hfd_quota_verdict verdict;
        struct hf__json *pod;
        int r;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &pod, NULL), 0);
        assert_true(
                hfd_quota_change_init(&change, "", of_kind, pod, NULL, HFD_QUOTA_OF_OBJECT, 0, &r));
        assert_int_equal(r, 0);
        assert_int_equal(hfd_quota_charge(quota, &change, &verdict, &why), 0);
        hfd_quota_change_done(&change);
        hf__json_free(pod);
        hf__strbuf_done(&why);
        if (verdict == HFD_QUOTA_REFUSED) {
                ++*n_refused;
                hf__json_free(quota);
                return;
        }
        w->deciding = true;
        assert_true(verdict == HFD_QUOTA_CHARGED || verdict == HFD_QUOTA_PENDING);
        w->base = copy(view);
        w->result = quota;
}

static void commit(struct store *store, struct writer *w) {
        if (w->base.revision == store->quota.revision) {
                store->revision++;
                store->n_objects++;
                replace(&store->quota, w->result, store->revision);
                w->result = NULL;
        }
        hf__json_free(w->result);
        hf__json_free(w->base.quota);
        *w = (struct writer){0};
}

/* ---- the controller ---- */

struct recount {
        bool active;
        struct version base;
        unsigned counted;
};

static int visit(void *ctx, const char *plural, hfd_quota_each_fn each, void *each_ctx,
                 bool *ret_served) {
        static const char text[] = POD("1");
        unsigned n = *(unsigned *)ctx;
        struct hf__json *pod;
        int r = 0;

        assert_int_equal(hf__json_parse(text, sizeof text - 1, &pod, NULL), 0);
        for (unsigned i = 0; i < n && r == 0; i++)
                r = each(each_ctx, pod);
        hf__json_free(pod);
        return r;
}

static int count(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                 bool *ret_served) {
        *ret_served = true;
        *ret_n = *(unsigned *)ctx;
        return 0;
}

static void recount_step(struct store *store, struct recount *recount) {
        bool changed = false;

        if (!recount->active) { /* reads the quota, and later counts at that revision or a newer */
                recount->base = copy(&store->quota);
                recount->active = true;
                recount->counted = UINT32_MAX;
                return;
        }
        if (recount->counted == UINT32_MAX) {
                recount->counted = store->n_objects;
                return;
        }
        const struct hfd_quota_source source = {.count = count,
                                                .visit = visit,
                                                .ctx = &recount->counted};
        assert_int_equal(hfd_quota_recount(recount->base.quota, &source, &changed), 0);
        if (changed && recount->base.revision == store->quota.revision)
                replace(&store->quota, hf__json_dup(recount->base.quota), ++store->revision);
        hf__json_free(recount->base.quota);
        *recount = (struct recount){0};
}

/* ---- schedules ---- */

/* One random step. views: the quota as the caches of two instances have it. */
static void step(struct store *store, struct writer *writers, struct recount *recount,
                 struct version *views, unsigned *n_refused) {
        unsigned n = pick(N_WRITERS), what = pick(8);
        struct writer *w = &writers[n];

        if (what == 0) { /* the watch delivers */
                replace(&views[n % 2], hf__json_dup(store->quota.quota), store->quota.revision);
        } else if (what == 1) {
                recount_step(store, recount);
        } else if (what == 2 && store->n_objects > 0) {
                store->revision++;
                store->n_objects--;
        } else if (what == 3) { /* the instance dies before it sends the transaction */
                hf__json_free(w->result);
                hf__json_free(w->base.quota);
                *w = (struct writer){0};
        } else if (w->deciding) {
                commit(store, w);
        } else {
                decide(w, pick(2) ? &views[n % 2] : &store->quota, n_refused);
        }
}

/* Runs one schedule. Returns how many creates were refused. */
static unsigned run(uint64_t seed) {
        char text[100];
        struct store store = {.revision = 1};
        struct writer writers[N_WRITERS] = {0};
        struct recount recount = {0};
        struct version views[2] = {0};
        unsigned n_refused = 0, bound = UINT32_MAX;

        random_state = seed * 7919 + 1;
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{\"%s\":\"3\"}}}",
                       resource);
        assert_int_equal(hf__json_parse(text, strlen(text), &store.quota.quota, NULL), 0);
        store.quota.revision = store.revision;
        store.n_objects = pick(2);
        views[0] = copy(&store.quota);
        views[1] = copy(&store.quota);
        for (unsigned i = 0; i < STEPS; i++) {
                step(&store, writers, &recount, views, &n_refused);
                if (!hf__json_path(store.quota.quota, status_used()))
                        continue; /* no recount yet, so the limit is not enforced */
                assert_true(store.n_objects <= used(&store));
                assert_true(store.n_objects <= bound);
                /* There may be more objects from before the first recount, but never again. */
                if (store.n_objects < bound)
                        bound = store.n_objects > HARD ? store.n_objects : HARD;
        }
        for (unsigned i = 0; i < N_WRITERS; i++) {
                hf__json_free(writers[i].result);
                hf__json_free(writers[i].base.quota);
        }
        do
                recount_step(&store, &recount); /* ends the recount that was under way, then does a
                                                   whole one */
        while (recount.active);
        for (int i = 0; i < 3; i++)
                recount_step(&store, &recount);
        assert_int_equal(used(&store), store.n_objects);
        hf__json_free(store.quota.quota);
        hf__json_free(views[0].quota);
        hf__json_free(views[1].quota);
        return n_refused;
}

static void no_schedule_exceeds_a_limit_or_leaves_a_wrong_count(void **state) {
        unsigned n_refused = 0;

        of_kind = "configmaps";
        resource = "configmaps";
        for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
                n_refused += run(seed);
        assert_true(n_refused > SCHEDULES); /* the limit was reached */
}

static void no_schedule_exceeds_what_pods_may_use(void **state) {
        unsigned n_refused = 0;

        of_kind = "pods";
        resource = "cpu";
        for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
                n_refused += run(seed);
        assert_true(n_refused > SCHEDULES);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_schedule_exceeds_a_limit_or_leaves_a_wrong_count),
                cmocka_unit_test(no_schedule_exceeds_what_pods_may_use),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
