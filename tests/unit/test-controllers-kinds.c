/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of owners when memory runs out while an object is parsed for it. Which changes the
 * informers of the kinds get.
 */
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
#include "server/registry/loopback.h"
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

/* ---- changes ---- */

static const struct hf_resource quotas = {"", "v1", "resourcequotas"};

static void count_changes(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                          const char *object, size_t n) {
        *(int *)ctx += type == HF_EVENT_MODIFIED;
}

/* members: the members of the object's JSON beside the name. */
static void update(struct api_fixture *f, struct hf_resource resource, const char *members) {
        char body[200];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"a\"%s}", members);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, resource, "default", "a", NULL,
                                             body),
                         0);
}

/* The quota controller must see changed limits, even from an informer that keeps metadata only. Of
 * most kinds only changed metadata matter. */
static void test_quotas_get_all_changes_and_other_kinds_those_of_metadata(void **state) {
        static const struct hfd_kind_row rows[] = {{{"", "v1", "configmaps"}, "ConfigMap", true},
                                                   {{"", "v1", "resourcequotas"},
                                                    "ResourceQuota",
                                                    true}};
        struct api_fixture *f = *state;
        struct hf_informer_handler *handler;
        struct hf_client *client;
        struct hfd_kinds kinds;
        struct hf_cancel *token;
        int n[2] = {0}, waited[2] = {0};

        assert_int_equal(hfd_loopback_new_for_metadata(f->registry, &client), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(PATIENCE_MSEC));
        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        api_fixture_make(f, quotas, "default",
                         "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"hard\":{\"pods\":\"1\"}}}");
        const struct hfd_kinds_config config = {.sources = {.host = &f->host,
                                                            .client = f->client,
                                                            .metadata_client = client},
                                                .rows = rows,
                                                .n_rows = 2};
        assert_int_equal(hfd_kinds_init(&kinds, &config), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(hf_informer_add_handler(kinds.kinds[i].informer, count_changes,
                                                         &n[i], &handler),
                                 0);
        assert_int_equal(hfd_kinds_start(&kinds), 0);
        for (size_t i = 0; i < 2; i++)
                waited[i] = hf_informer_wait(kinds.kinds[i].informer, NULL, token);
        update(f, api_configmaps, "},\"data\":{\"b\":\"c\"}");
        update(f, api_configmaps, ",\"labels\":{\"l\":\"1\"}},\"data\":{\"b\":\"c\"}");
        update(f, quotas, "},\"spec\":{\"hard\":{\"pods\":\"2\"}}");
        for (size_t i = 0; i < 2 && waited[i] == 0; i++)
                waited[i] =
                        hf_informer_wait(kinds.kinds[i].informer,
                                         api_fixture_text_at(f, "metadata.resourceVersion"), token);
        hfd_kinds_done(&kinds);
        hf_client_free(client);
        hf_cancel_unref(token);
        assert_int_equal(waited[0], 0);
        assert_int_equal(waited[1], 0);
        assert_int_equal(n[0], 1);
        assert_int_equal(n[1], 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_dependent_is_found_although_memory_ran_out),
                API_TEST(test_quotas_get_all_changes_and_other_kinds_those_of_metadata),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
