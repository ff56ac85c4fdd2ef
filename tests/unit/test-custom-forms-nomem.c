/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation fails once while the cached objects of a custom resource are converted: the
 * caller gets an error, and tries again. */
#undef NDEBUG
#include "api_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "failing_memory.h"
#include "hand_clock.h"
#include "patience.h"
#include "server/cacher/feed/kind_feed.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/custom/custom_table.h"
#include "store_client.h"

#define CRD    "/registry/apiextensions.k8s.io/customresourcedefinitions/gadgets.example.com"
#define GADGET "/registry/example.com/gadgets/default/"

static const struct hfd_resource *slot;

/* The definition of gadgets whose text has this default. Valid until the next call. */
static const char *definition_of(const char *text) {
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
        static char definition[1024];

        (void)snprintf(definition, sizeof definition, format, text);
        return definition;
}

static struct hfd_custom_kind *kind_of(const char *text) {
        const char *definition = definition_of(text);
        struct hfd_custom_kind *kind;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(definition, strlen(definition), &json, NULL), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &kind), 0);
        hf__json_free(json);
        return kind;
}

/* Returns the number of cached objects. *ret_n_formed: how many of them have the form of this row.
 */
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
        struct hfd_custom_kind *kinds[] = {kind_of("first"), kind_of("second")};
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

/* Whether the served kind has this text as a default. If not, moves the clock
 * towards the next attempt. */
static bool will_serve(struct api_fixture *f, const char *text) {
        failing_memory_enter();
        struct hfd_custom_set *set = hfd_custom_table_set(f->table);
        struct hfd_custom_kind *kind = hfd_custom_set_find(set, "example.com", "gadgets");
        struct hfd_custom_kind *wanted = kind_of(text);
        bool is = kind && hfd_custom_same_form(&kind->storage->row, &wanted->storage->row);

        hfd_custom_kind_unref(wanted);
        hfd_custom_set_unref(set);
        if (!is)
                hand_clock_move(HF_NSEC_PER_SEC);
        failing_memory_leave();
        return is;
}

/* The feed says that it is synced a moment after it serves the kind, or after another attempt. */
static bool will_settle(struct api_fixture *f, struct hfd_kind_feed *feed, const char *text) {
        if (!will_serve(f, text))
                return false;
        if (hfd_kind_feed_synced(feed))
                return true;
        failing_memory_enter();
        hand_clock_move(HF_NSEC_PER_SEC);
        failing_memory_leave();
        return false;
}

/* The definition does not change any more, so only the time makes the feed run again. */
static void test_a_definition_is_served_when_there_is_memory_again(void **state) {
        static const char *const texts[] = {"first", "second"};
        struct api_fixture *f = *state;
        bool hit = true;

        assert_int_equal(hfd_custom_table_slot(f->table, "example.com", "gadgets", &slot), 0);
        hfd_kind_feed_stop(f->feed);
        for (int n = 0; hit; n++) {
                struct hfd_kind_feed *feed = NULL;
                uint64_t revision = store_client_put(f->store, CRD, definition_of(texts[n % 2]));
                assert_true(revision > 0);
                PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= revision);
                failing_memory_arm(n);
                int r = hfd_kind_feed_new(&f->host, f->cacher, f->table, &feed);
                if (r == 0)
                        PATIENCE_AWAIT(will_settle(f, feed, texts[n % 2]));
                hit = failing_memory_hit();
                failing_memory_disarm();
                assert_true(r == 0 || is_shortage(r));
                assert_null(hfd_kind_feed_free(feed));
        }
}

static size_t n_live; /* blocks before a test */

static int set_up(void **state) {
        n_live = failing_memory_n_live();
        return api_fixture_set_up_custom_by_hand(state);
}

static int tear_down(void **state) {
        (void)api_fixture_tear_down(state);
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_change_of_the_form_is_whole_or_comes_again,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_definition_is_served_when_there_is_memory_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_feed_is_made_or_not, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
