/* SPDX-License-Identifier: Apache-2.0 */
/* Which observers the cacher calls after a change, for every row of the table of resources. */
#undef NDEBUG
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
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/memory/store.h"
#include "store_client.h"
#include "time_units.h"

#define UNOBSERVED 5

static const struct hf_host host = {.size = sizeof(struct hf_host)};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned n_calls, last; /* guarded by mu */

/* Neighbours in the table have different observers. */
static unsigned char observers_of(const struct hfd_resource *resource) {
        size_t i = hfd_resource_index(resource);

        return i == UNOBSERVED ? 0 : (unsigned char)(1u << i % 8);
}

static void on_observed(void *ctx, unsigned observers) {
        pthread_mutex_lock(&mu);
        n_calls++;
        last = observers;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mu);
}

static unsigned await_call(unsigned n) {
        pthread_mutex_lock(&mu);
        PATIENCE_AWAIT_LOCKED(&cond, &mu, n_calls >= n);
        assert_int_equal(n_calls, n);
        unsigned observers = last;
        pthread_mutex_unlock(&mu);
        return observers;
}

/* The memory store delivers the event of each write before the next one. */
static void test_the_observers_of_every_resource_are_called(void **state) {
        struct hfd_cacher_config config = {.prefix = "/registry",
                                           .observers = observers_of,
                                           .on_observed = on_observed};
        struct hfd_cacher *cacher;
        unsigned n_expected = 1;
        char key[256];

        assert_int_equal(hfd_memory_store_new(&host, &config.store), 0);
        assert_int_equal(hfd_cacher_new(&host, &config, &cacher), 0);
        assert_int_equal(hfd_cacher_start(cacher), 0);
        assert_int_equal(await_call(1), 0xff); /* a filling of the cache calls all observers */
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                if (row->is_review || row->conversion)
                        continue;
                (void)snprintf(key, sizeof key, "/registry/%s/%sx", row->storage,
                               row->namespaced ? "default/" : "");
                assert_true(store_client_put(config.store, key, "{\"metadata\":{}}") > 0);
                if (i != UNOBSERVED)
                        assert_int_equal(await_call(++n_expected), observers_of(row));
        }
        hfd_cacher_free(cacher);
        config.store->ops->free(config.store);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_observers_of_every_resource_are_called),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
