/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation fails once while the cached objects of a custom resource get another form: the
 * caller is told, and comes again. */
#undef NDEBUG
#include "api_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "failing_memory.h"
#include "patience.h"
#include "server/cacher/feed/kind_feed.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/custom/custom_table.h"
#include "store_client.h"

#define GADGET "/registry/example.com/gadgets/default/"

static const struct hfd_resource *slot;

static struct hfd_custom_kind *kind_of(struct hfd_custom_table *table, const char *text) {
        static const char format[] =
                "{\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
                "\"gadgets.example.com\"},\"spec\":{\"group\":\"example.com\",\"scope\":"
                "\"Namespaced\",\"names\":{\"plural\":\"gadgets\",\"kind\":\"Gadget\"},"
                "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
                "\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"
                "\"object\",\"default\":{},\"properties\":{\"text\":{\"type\":\"string\","
                "\"default\":\"%s\"}}}}}}}]},\"status\":{\"acceptedNames\":{\"plural\":"
                "\"gadgets\",\"kind\":\"Gadget\",\"listKind\":\"GadgetList\"},\"conditions\":[{"
                "\"type\":\"Established\",\"status\":\"True\"}]}}";
        struct hfd_custom_kind *kind;
        struct hf__json *json;
        char definition[1024];

        int n = snprintf(definition, sizeof definition, format, text);
        assert_int_equal(hf__json_parse(definition, (size_t)n, &json, NULL), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &kind), 0);
        hf__json_free(json);
        return kind;
}

/* The number of cached objects, of which n_formed have the form of this row. */
static size_t count(struct api_fixture *f, const struct hfd_resource *row, size_t *ret_n_formed) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        size_t n = 0;

        *ret_n_formed = 0;
        if (hfd_snapshot_take_now(f->cacher, slot, &snapshot) != 0)
                return 0;
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        for (; (object = hfd_object_iter_next(&iter)); n++)
                *ret_n_formed += hfd_custom_same_form(object->resource, row);
        hfd_snapshot_done(&snapshot);
        return n;
}

static void test_a_change_of_the_form_is_whole_or_comes_again(void **state) {
        enum { N = 40 }; /* more than are replaced under one lock */
        struct api_fixture *f = *state;
        char key[96], text[200];
        size_t n_formed = 0;

        assert_int_equal(hfd_custom_table_slot(f->table, "example.com", "gadgets", &slot), 0);
        for (int i = 0; i < N; i++) {
                (void)snprintf(key, sizeof key, GADGET "g%02d", i);
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\","
                               "\"metadata\":{\"name\":\"g%02d\",\"namespace\":\"default\"}}",
                               i);
                assert_true(store_client_put(f->store, key, text) > 0);
        }
        PATIENCE_AWAIT(count(f, slot, &n_formed) == N);
        hfd_kind_feed_stop(f->feed);
        struct hfd_custom_kind *kinds[] = {kind_of(f->table, "first"), kind_of(f->table, "second")};
        int n = 0;
        for (bool hit = true; hit; n++) {
                const struct hfd_resource *row = &kinds[n % 2]->storage->row;
                failing_memory_arm(n);
                int r = hfd_slot_form_set(f->cacher, row);
                failing_memory_disarm();
                hit = failing_memory_hit();
                assert_true(r == 0 || r == -ENOMEM);
                assert_int_equal(count(f, row, &n_formed), N);
                assert_true(r != 0 || n_formed == N);
                if (r != 0)
                        assert_int_equal(hfd_slot_form_set(f->cacher, row), 0);
                assert_int_equal(count(f, row, &n_formed), N);
                assert_int_equal(n_formed, N);
        }
        assert_true(n > N);
        hfd_slot_form_clear(f->cacher, slot);
        hfd_custom_kind_unref(kinds[0]);
        hfd_custom_kind_unref(kinds[1]);
}

static void test_a_feed_is_made_or_not(void **state) {
        struct api_fixture *f = *state;
        bool hit = true;

        for (int n = 0; hit; n++) {
                struct hfd_kind_feed *feed = NULL;
                failing_memory_arm(n);
                int r = hfd_kind_feed_new(&f->host, f->cacher, f->table, &feed);
                failing_memory_disarm();
                hit = failing_memory_hit();
                assert_true(r == 0 || is_shortage(r));
                assert_true((r == 0) == (feed != NULL));
                hfd_kind_feed_stop(feed);
                assert_null(hfd_kind_feed_free(feed));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_change_of_the_form_is_whole_or_comes_again,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_feed_is_made_or_not,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
