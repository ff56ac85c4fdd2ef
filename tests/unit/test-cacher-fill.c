/* SPDX-License-Identifier: Apache-2.0 */
/* Filling the cache: the number and size of the pages, pages that fail, and its progress. */
#undef NDEBUG
#include <dirent.h>
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

#include "patience.h"
#include "server/cacher/cacher.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/listing.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/memory/store.h"
#include "store_client.h"
#include "time_units.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};

/* A memory store whose pages are counted, and fail if the test wants it. */
static const struct hfd_store_ops *real_ops;
static atomic_uint n_pages, n_to_fail;
static atomic_int fail_as;
/* n_counted: the keys from the start of each page to the end, summed up; n_keys: all keys. */
static _Atomic uint64_t n_counted, n_keys;
static atomic_size_t smallest; /* limit of a page */

static int counted_list(struct hfd_store *store, const char *prefix, const char *start_key,
                        uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                        hfd_store_fn done, void *ctx) {
        if (strncmp(prefix, "/registry/", 10) != 0)
                return real_ops->list(store, prefix, start_key, revision, limit, keys_only,
                                      deadline, done, ctx);
        if (limit < atomic_load(&smallest))
                atomic_store(&smallest, limit);
        if (atomic_load(&n_pages) > 0 && atomic_load(&n_to_fail) > 0) {
                const struct hfd_store_reply reply = {.error = atomic_load(&fail_as)};
                atomic_fetch_sub(&n_to_fail, 1);
                done(ctx, &reply);
                return 0;
        }
        atomic_fetch_add(&n_pages, 1);
        /* A page begins behind the last key of the page before, which has a number. A page that
         * begins at the next namespace has none, and is not counted. */
        const char *number = start_key ? strstr(start_key, "/n0") : NULL;
        if (!start_key || number)
                atomic_fetch_add(&n_counted, atomic_load(&n_keys) -
                                                     (number ? strtoull(number + 2, NULL, 10) : 0));
        return real_ops->list(store, prefix, start_key, revision, limit, keys_only, deadline, done,
                              ctx);
}

static struct hfd_store *make_store(unsigned n) {
        static struct hfd_store_ops ops;
        struct hfd_store *store;
        char key[64];

        assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/n%08u", i);
                assert_true(store_client_put(store, key,
                                             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                             "\"metadata\":{\"name\":\"x\"}}") > 0);
        }
        real_ops = store->ops;
        ops = *real_ops;
        ops.list = counted_list;
        store->ops = &ops;
        atomic_store(&n_pages, 0);
        atomic_store(&n_to_fail, 0);
        atomic_store(&n_counted, 0);
        atomic_store(&n_keys, n);
        atomic_store(&smallest, SIZE_MAX);
        return store;
}

static struct hfd_cacher *start_cacher(struct hfd_store *store) {
        const struct hfd_cacher_config config = {.store = store, .prefix = "/registry"};
        struct hfd_cacher *cacher;

        assert_int_equal(hfd_cacher_new(&host, &config, &cacher), 0);
        assert_int_equal(hfd_cacher_fill_progress(cacher), 0);
        assert_int_equal(hfd_cacher_start(cacher), 0);
        return cacher;
}

static void await_fill(struct hfd_cacher *cacher, unsigned n) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        struct hfd_snapshot snapshot;
        struct hf_cancel *token;

        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(PATIENCE_MSEC));
        assert_int_equal(hfd_cacher_wait_synced(cacher, token, NULL), 0);
        hf_cancel_unref(token);
        assert_true(hfd_snapshot_take(cacher, resource, 0, &snapshot));
        assert_int_equal(hfd_object_tree_size(&snapshot.objects), n);
        hfd_snapshot_done(&snapshot);
        assert_true(hfd_cacher_fill_progress(cacher) > 0);
}

/* A store counts the keys that follow each page, so this work must not grow faster than the
 * keys. */
static void test_the_stores_work_grows_as_the_objects_do(void **state) {
        uint64_t before = 0;

        for (unsigned n = 5000; n <= 40000; n *= 2) {
                struct hfd_store *store = make_store(n);
                struct hfd_cacher *cacher = start_cacher(store);

                await_fill(cacher, n);
                assert_true(atomic_load(&n_pages) <= 12);
                if (before > 0)
                        assert_true(atomic_load(&n_counted) * 2 <= before * 5);
                before = atomic_load(&n_counted);
                hfd_cacher_free(cacher);
                store->ops->free(store);
        }
}

/* Large namespaces are read to their end before the next ones, small ones together. */
static void test_every_namespace_is_listed(void **state) {
        struct hfd_store *store = make_store(3000);
        char key[64];

        for (unsigned ns = 0; ns < 700; ns++)
                for (unsigned i = 0; i < (ns % 300 == 7 ? 2500u : 2u); i++) {
                        (void)snprintf(key, sizeof key, "/registry/configmaps/a%03u/m%05u", ns, i);
                        assert_true(store_client_put(store, key,
                                                     "{\"kind\":\"ConfigMap\",\"apiVersion\":"
                                                     "\"v1\",\"metadata\":{\"name\":\"x\"}}") > 0);
                }
        struct hfd_cacher *cacher = start_cacher(store);
        await_fill(cacher, 3000 + 3 * 2500 + 697 * 2);
        hfd_cacher_free(cacher);
        store->ops->free(store);
}

/* The next page begins at a key of the same length, because a longer key would be invalid. */
static void test_a_page_may_end_with_a_key_of_the_greatest_length(void **state) {
        struct hfd_store *store = make_store(499);
        char key[HFD_KEY_MAX] = "/registry/unknown/";
        size_t n = strlen(key);

        memset(key + n, 'k', sizeof key - 1 - n);
        assert_true(store_client_put(store, key, "{}") > 0);
        assert_true(store_client_put(store, "/registry/unknown/l", "{}") > 0);
        struct hfd_cacher *cacher = start_cacher(store);
        await_fill(cacher, 499);
        pthread_mutex_lock(&cacher->mu);
        assert_int_equal(cacher->listings->n_max, 501);
        pthread_mutex_unlock(&cacher->mu);
        hfd_cacher_free(cacher);
        store->ops->free(store);
}

/* Pages may be too large for the store or for its deadline: they are requested again, smaller. */
static void test_a_page_that_fails_is_requested_again(void **state) {
        static const int errors[] = {HF_E_TIMEOUT, HF_E_UNAVAILABLE, -EMSGSIZE};

        for (size_t i = 0; i < 3; i++) {
                struct hfd_store *store = make_store(3000);
                atomic_store(&fail_as, errors[i]);
                atomic_store(&n_to_fail, 3);
                struct hfd_cacher *cacher = start_cacher(store);

                await_fill(cacher, 3000);
                assert_int_equal(atomic_load(&n_to_fail), 0);
                assert_int_equal(atomic_load(&smallest), 250); /* 4 * 500, halved three times */
                hfd_cacher_free(cacher);
                store->ops->free(store);
        }
}

/* Each attempt fails at the same place: that is not progress, and the message says how far it
 * came. */
static void test_repeated_failures_are_no_progress(void **state) {
        struct hfd_store *store = make_store(3000);
        struct hf_status why = {0};
        struct hf_cancel *token;

        atomic_store(&fail_as, HF_E_TIMEOUT);
        atomic_store(&n_to_fail, UINT32_MAX);
        struct hfd_cacher *cacher = start_cacher(store);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(200));
        assert_int_equal(hfd_cacher_wait_synced(cacher, token, &why), HF_E_CANCELED);
        hf_cancel_unref(token);
        assert_true(why.message[0] != 0);
        hf_nsec progress = hfd_cacher_fill_progress(cacher);
        assert_true(progress > 0);
        pthread_mutex_lock(&cacher->mu);
        assert_int_equal(cacher->listings->n_max, 500);
        pthread_mutex_unlock(&cacher->mu);
        atomic_store(&n_to_fail, 0);
        await_fill(cacher, 3000);
        assert_true(hfd_cacher_fill_progress(cacher) > progress);
        hfd_cacher_free(cacher);
        store->ops->free(store);
}

/* ---- a stop while the epoch is read ---- */

static struct held_get {
        struct hfd_store *store;
        char key[HFD_KEY_MAX];
        bool urgent;
        hf_nsec deadline;
        hfd_store_fn done;
        void *ctx;
} held;
static atomic_bool is_held;

static int hold_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                    hfd_store_fn done, void *ctx) {
        held = (struct held_get){.store = store,
                                 .urgent = urgent,
                                 .deadline = deadline,
                                 .done = done,
                                 .ctx = ctx};
        (void)snprintf(held.key, sizeof held.key, "%s", key);
        atomic_store(&is_held, true);
        return 0;
}

/* Whether the process has a thread of this name. */
static bool has_thread(const char *name) {
        DIR *tasks = opendir("/proc/self/task");
        bool found = false;

        assert_non_null(tasks);
        for (struct dirent *task; (task = readdir(tasks)) != NULL && !found;) {
                char path[300], comm[32] = "";
                (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
                FILE *file = fopen(path, "r");
                if (!file)
                        continue;
                found = fgets(comm, sizeof comm, file) && strncmp(comm, name, strlen(name)) == 0;
                (void)fclose(file);
        }
        (void)closedir(tasks);
        return found;
}

/* Replies when the cacher is being freed and its timer thread has ended. */
static void *reply_late(void *ctx) {
        PATIENCE_AWAIT(!has_thread("hf-api-time"));
        assert_int_equal(real_ops->get(held.store, held.key, held.urgent, held.deadline, held.done,
                                       held.ctx),
                         0);
        return NULL;
}

/* The listing that would follow the reply needs the timer thread, which has ended. */
static void test_a_stop_during_the_first_read_waits_for_no_listing(void **state) {
        struct hfd_store *store = make_store(1);
        struct hfd_store_ops ops = *store->ops;
        pthread_t thread;

        ops.get = hold_get;
        store->ops = &ops;
        struct hfd_cacher *cacher = start_cacher(store);
        PATIENCE_AWAIT(atomic_load(&is_held));
        assert_int_equal(pthread_create(&thread, NULL, reply_late, NULL), 0);
        hfd_cacher_free(cacher);
        pthread_join(thread, NULL);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_stores_work_grows_as_the_objects_do),
                cmocka_unit_test(test_every_namespace_is_listed),
                cmocka_unit_test(test_a_page_may_end_with_a_key_of_the_greatest_length),
                cmocka_unit_test(test_a_page_that_fails_is_requested_again),
                cmocka_unit_test(test_repeated_failures_are_no_progress),
                cmocka_unit_test(test_a_stop_during_the_first_read_waits_for_no_listing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
