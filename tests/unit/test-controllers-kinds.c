/* SPDX-License-Identifier: Apache-2.0 */
/* The index of owners when memory runs out while an object is parsed for it. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/kinds/kinds.h"
#include "time_units.h"

/* How many more objects that may have owners cannot be parsed. */
static atomic_int n_failures;
static _Thread_local bool next_fails;

/* The linker redirects hfd_gc_filter_may_concern and hf__json_parse here. The index of owners calls
 * the first, and then the second on the same thread. */
bool __real_hfd_gc_filter_may_concern(const char *object, size_t n);
bool __wrap_hfd_gc_filter_may_concern(const char *object, size_t n);
bool __wrap_hfd_gc_filter_may_concern(const char *object, size_t n) {
        bool concerns = __real_hfd_gc_filter_may_concern(object, n);

        next_fails = concerns && atomic_load(&n_failures) > 0;
        return concerns;
}

int __real_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *reterr_offset) {
        if (next_fails) {
                next_fails = false;
                atomic_fetch_sub(&n_failures, 1);
                return -ENOMEM;
        }
        return __real_hf__json_parse(data, n, ret_json, reterr_offset);
}

static void count(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        ++*(int *)ctx;
}

static void test_a_dependent_is_found_although_memory_ran_out(void **state) {
        static const struct hfd_kind_row row = {{"", "v1", "configmaps"}, "ConfigMap", true};
        struct api_fixture *f = *state;
        struct hfd_kinds kinds;
        struct hf_cancel *token;
        char revision[32];
        int n = 0;

        api_fixture_make(f, api_configmaps, "default",
                         "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":"
                         "\"v1\",\"kind\":\"ConfigMap\",\"name\":\"b\",\"uid\":\"7\"}]}}");
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(PATIENCE_MSEC));
        const struct hfd_kinds_config config = {.sources = {.host = &f->host, .client = f->client},
                                                .rows = &row,
                                                .n_rows = 1};
        assert_int_equal(hfd_kinds_init(&kinds, &config), 0);
        atomic_store(&n_failures, 1);
        assert_int_equal(hfd_kinds_start(&kinds), 0);
        int waited = hf_informer_wait(kinds.kinds[0].informer, revision, token);
        int found = hf_informer_by_index(kinds.kinds[0].informer, HFD_OWNER_INDEX, "7", count, &n);
        hfd_kinds_done(&kinds); /* first, because the fixture can be freed only after it */
        assert_int_equal(waited, 0);
        assert_int_equal(found, 0);
        assert_int_equal(atomic_load(&n_failures), 0);
        assert_int_equal(n, 1);
        hf_cancel_unref(token);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_dependent_is_found_although_memory_ran_out),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
