/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes keep the metadata of an object, and the watches that leave them out. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "client_watch.h"
#include "hand_clock.h"
#include "server/registry/kept_metadata.h"
#include "server/registry/loopback.h"
#include "server/resources/objects/object.h"
#include "server/resources/rows/resource_table.h"

/* ---- two versions ---- */

static struct hfd_object *version_of(uint64_t revision, const char *metadata, const char *rest) {
        const struct hfd_resource *configmaps = hfd_resource_find("", "v1", "configmaps");
        char text[600];
        int n = snprintf(text, sizeof text,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{%s}%s}",
                         metadata, rest);
        struct hf__buf *bytes = hf__buf_copy(text, (size_t)n);

        assert_non_null(configmaps);
        struct hfd_object *object = hfd_object_new(configmaps, "default/a", revision, bytes);
        hf__buf_unref(bytes);
        assert_non_null(object);
        return object;
}

static bool kept(const char *metadata, const char *other) {
        struct hfd_object *before = version_of(8, metadata, ",\"data\":{\"a\":\"1\"}"),
                          *after = version_of(1000, other, ",\"data\":{\"a\":\"22\"}");
        bool is_kept = hfd_kept_metadata(before, after);

        assert_int_equal(hfd_kept_metadata(after, before), is_kept);
        hfd_object_unref(before);
        hfd_object_unref(after);
        return is_kept;
}

#define A        "\"name\":\"a\",\"namespace\":\"default\""
#define TIME(t)  ",\"managedFields\":[{\"manager\":\"m\",\"time\":\"" t "\",\"fieldsV1\":{}}]"
#define LABEL(v) ",\"labels\":{\"l\":\"" v "\"}"

static void test_other_parts_and_managed_fields_keep_the_metadata(void **state) {
        assert_true(kept(A, A));
        assert_true(kept("", ""));
        assert_true(kept(A TIME("1"), A TIME("22")));
        assert_true(kept(A TIME("1"), A TIME("2")));
        assert_true(kept(A TIME("12345678901") LABEL("1"), A TIME("12345678902") LABEL("1")));
        assert_true(kept(A TIME("1"), A TIME("a")));
        assert_true(kept(A, A TIME("1")));
        assert_true(kept(A TIME("1") LABEL("x"), A TIME("22") LABEL("x")));
        /* A text that only looks like the member does not count. */
        assert_true(kept(A LABEL("\\\"managedFields\\\":[") TIME("1"),
                         A LABEL("\\\"managedFields\\\":[") TIME("2")));
}

static void test_changed_metadata_are_not_kept(void **state) {
        assert_false(kept(A LABEL("x"), A LABEL("y")));
        assert_false(kept(A LABEL("x"), A LABEL("xy")));
        assert_false(kept(A, A LABEL("x")));
        assert_false(kept(A TIME("1") LABEL("x"), A TIME("1") LABEL("y")));
        assert_false(kept(A LABEL("1"), A LABEL("2")));
        assert_false(kept(A TIME("1") LABEL("1"), A TIME("2") LABEL("2")));
        assert_false(kept(A LABEL("1") TIME("1"), A LABEL("2") TIME("2")));
        assert_false(kept(A, "\"name\":\"a\",\"uid\":\"default\""));
        assert_false(kept("", A));
        assert_false(kept(A ",\"generation\":1", A ",\"generation\":12"));
        /* In doubt they are not kept. */
        assert_false(kept(A, "\"namespace\":\"default\",\"name\":\"a\""));
}

/* The garbage collector's deletes name the resourceVersion, so it needs each version. */
static void test_what_the_garbage_collector_needs_is_not_kept(void **state) {
        static const char *const members[] = {A ",\"ownerReferences\":[{\"uid\":\"u\"}]",
                                              A ",\"finalizers\":[\"f/g\"]",
                                              A ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""};

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
                assert_false(kept(members[i], members[i]));
}

/* ---- watches ---- */

static void put(struct api_fixture *f, enum hf_verb verb, const char *metadata, int value) {
        char body[200];

        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"a\"%s},\"data\":{\"value\":\"%d\"}}", metadata,
                       value);
        assert_int_equal(api_fixture_request(f, verb, api_configmaps, "default",
                                             verb == HF_VERB_CREATE ? NULL : "a", NULL, body),
                         0);
}

static void expect(struct client_watch *seen, size_t i, enum hf_event_type type,
                   const struct api_fixture *f) {
        client_watch_expect(seen, i, type, type == HF_EVENT_BOOKMARK ? "" : "a");
        assert_string_equal(seen->events[i].revision,
                            api_fixture_text_at(f, "metadata.resourceVersion"));
}

static void test_a_watch_of_metadata_leaves_changes_out(void **state) {
        struct api_fixture *f = *state;
        const struct hf_watch_spec spec = {.size = sizeof spec, .resource = api_configmaps};
        struct hf_client *client;

        assert_int_equal(hfd_loopback_new_for_metadata(f->registry, &client), 0);
        struct client_watch *few = client_watch_new(client, &spec),
                            *all = client_watch_new(f->client, &spec);
        put(f, HF_VERB_CREATE, "", 0);
        expect(few, 0, HF_EVENT_ADDED, f);
        put(f, HF_VERB_UPDATE, "", 1); /* the watch gets a bookmark in its place */
        expect(few, 1, HF_EVENT_BOOKMARK, f);
        put(f, HF_VERB_UPDATE, "", 2); /* no further bookmark: the clock stands still */
        put(f, HF_VERB_UPDATE, ",\"labels\":{\"l\":\"x\"}", 2);
        expect(few, 2, HF_EVENT_MODIFIED, f);
        hand_clock_move(20 * HF_NSEC_PER_MSEC);
        put(f, HF_VERB_UPDATE, ",\"labels\":{\"l\":\"x\"}", 3);
        expect(few, 3, HF_EVENT_BOOKMARK, f);
        put(f, HF_VERB_UPDATE, ",\"finalizers\":[\"f/g\"]", 3);
        expect(few, 4, HF_EVENT_MODIFIED, f);
        put(f, HF_VERB_UPDATE, ",\"finalizers\":[\"f/g\"]",
            4); /* the garbage collector needs this version */
        expect(few, 5, HF_EVENT_MODIFIED, f);
        put(f, HF_VERB_UPDATE, "", 4);
        expect(few, 6, HF_EVENT_MODIFIED, f);
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "a", NULL), 0);
        client_watch_expect(few, 7, HF_EVENT_DELETED, "a");
        /* Other clients get every change. */
        client_watch_expect(all, 8, HF_EVENT_DELETED, "a");
        for (size_t i = 1; i < 8; i++)
                client_watch_expect(all, i, HF_EVENT_MODIFIED, "a");
        hfd_cacher_end_watches(f->cacher);
        assert_int_equal(client_watch_await_end(few), 0);
        assert_int_equal(client_watch_await_end(all), 0);
        assert_int_equal(few->n, 8);
        client_watch_free(few);
        client_watch_free(all);
        hf_client_free(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_other_parts_and_managed_fields_keep_the_metadata),
                cmocka_unit_test(test_changed_metadata_are_not_kept),
                cmocka_unit_test(test_what_the_garbage_collector_needs_is_not_kept),
                cmocka_unit_test_setup_teardown(test_a_watch_of_metadata_leaves_changes_out,
                                                api_fixture_set_up_by_hand, api_fixture_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
