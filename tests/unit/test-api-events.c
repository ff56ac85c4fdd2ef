/* SPDX-License-Identifier: Apache-2.0 */
/* Events in two API versions: the same objects in both, with the rules of each version. */
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
#include "base/json.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/validation/names.h"
#include "server/schema/schema.h"

static const struct hf_resource v1 = {"", "v1", "events"};
static const struct hf_resource new_events = {"events.k8s.io", "v1", "events"};

static int create(struct api_fixture *f, struct hf_resource resource, const char *body) {
        return api_fixture_request(f, HF_VERB_CREATE, resource, "default", NULL, NULL, body);
}

static int list(struct api_fixture *f, struct hf_resource resource, const char *selector) {
        char query[120];

        (void)snprintf(query, sizeof query, "fieldSelector=%s", selector);
        return api_fixture_request(f, HF_VERB_LIST, resource, "default", NULL, query, NULL);
}

static int patch(struct api_fixture *f, struct hf_resource resource, const char *name,
                 const char *body) {
        return api_fixture_patch(f, resource, "default", name, HFD_SUB_NONE, HFD_PATCH_MERGE, NULL,
                                 body);
}

static void expect_refused(struct api_fixture *f, struct hf_resource resource, const char *body,
                           const char *message) {
        assert_int_equal(create(f, resource, body), HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid", message);
}

#define OLD                                                                                        \
        "{\"metadata\":{\"name\":\"old\"},\"involvedObject\":{\"kind\":\"ConfigMap\",\"name\":"    \
        "\"a\",\"namespace\":\"default\"},\"message\":\"m\",\"reason\":\"R\",\"count\":3,"         \
        "\"source\":{\"component\":\"c\"},\"type\":\"Normal\",\"firstTimestamp\":"                 \
        "\"2026-01-02T03:04:05Z\",\"lastTimestamp\":\"2026-01-02T03:04:06Z\"}"
#define NEW(name, more)                                                                            \
        "{\"metadata\":{\"name\":\"" name "\"},\"regarding\":{\"kind\":\"Secret\",\"name\":"       \
        "\"b\",\"namespace\":\"default\"},\"note\":\"n\",\"reason\":\"S\",\"action\":\"A\","       \
        "\"type\":\"Warning\",\"eventTime\":\"2026-01-02T03:04:05.000001Z\","                      \
        "\"reportingController\":\"x.org/c\",\"reportingInstance\":\"c-1\"" more "}"

static void expect_text(struct api_fixture *f, const char *path, const char *text) {
        assert_string_equal(api_fixture_text_at(f, path), text);
}

static void test_an_object_of_one_version_is_read_in_the_other(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(create(f, v1, OLD), 0);
        assert_int_equal(api_fixture_get(f, new_events, "default", "old"), 0);
        expect_text(f, "apiVersion", "events.k8s.io/v1");
        expect_text(f, "regarding.name", "a");
        expect_text(f, "note", "m");
        expect_text(f, "deprecatedSource.component", "c");
        expect_text(f, "deprecatedFirstTimestamp", "2026-01-02T03:04:05Z");
        expect_text(f, "deprecatedLastTimestamp", "2026-01-02T03:04:06Z");
        assert_non_null(strstr(f->last.body, "\"deprecatedCount\":3"));
        assert_null(strstr(f->last.body, ",\"involvedObject\":{"));
        assert_int_equal(create(f, new_events, NEW("new", "")), 0);
        expect_text(f, "apiVersion", "events.k8s.io/v1");
        expect_text(f, "regarding.kind", "Secret");
        assert_int_equal(api_fixture_get(f, v1, "default", "new"), 0);
        expect_text(f, "apiVersion", "v1");
        expect_text(f, "involvedObject.kind", "Secret");
        expect_text(f, "message", "n");
        expect_text(f, "reportingComponent", "x.org/c");
        assert_int_equal(list(f, new_events, ""), 0);
        expect_text(f, "kind", "EventList");
        assert_int_equal(api_fixture_count_at(f, "items"), 2);
        assert_null(strstr(f->last.body, "\"apiVersion\":\"v1\",\"metadata\":{\"resource"));
        assert_int_equal(api_fixture_delete(f, new_events, "default", "old", NULL), 0);
        assert_int_equal(api_fixture_get(f, v1, "default", "old"), HF_E_NOT_FOUND);
}

static void test_selectors_have_the_names_of_their_version(void **state) {
        static const struct {
                bool is_new;
                const char *selector;
                int n; /* -1 = refused */
        } rows[] = {
                {false, "involvedObject.name%3Da", 1},
                {true, "regarding.name%3Da", 1},
                {true, "regarding.kind%3DSecret", 1},
                {false, "regarding.name%3Da", -1},
                {true, "involvedObject.name%3Da", -1},
                {true, "reportingController%3Dx.org/c", 1},
                {false, "reportingComponent%3Dx.org/c", 1},
                {true, "reportingComponent%3Dx", -1},
                {true, "source%3Dc", 1},
                {false, "source%3Dx.org/c", 1},
                {true, "reason!%3DR", 1},
                {true, "metadata.name%3Dnew", 1},
                {true, "note%3Dn", -1},
        };
        struct api_fixture *f = *state;

        assert_int_equal(create(f, v1, OLD), 0);
        assert_int_equal(create(f, new_events, NEW("new", "")), 0);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                int r = list(f, rows[i].is_new ? new_events : v1, rows[i].selector);
                assert_int_equal(r, rows[i].n < 0 ? HF_E_INVALID : 0);
                if (rows[i].n >= 0)
                        assert_int_equal(api_fixture_count_at(f, "items"), rows[i].n);
        }
        assert_int_equal(list(f, new_events, "involvedObject.name%3Da"), HF_E_INVALID);
        assert_non_null(strstr(api_fixture_text_at(f, "message"),
                               "field label not supported: involvedObject.name"));
}

#define BAD_OLD "Event \"e\" is invalid: "
#define BAD_NEW "Event.events.k8s.io \"e\" is invalid: "

static void test_each_version_has_its_rules(void **state) {
        struct api_fixture *f = *state;
        char message[600];

        expect_refused(f, v1,
                       "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"namespace\":\"other\"}"
                       "}",
                       BAD_OLD "involvedObject.namespace: Invalid value: \"other\": does not match "
                               "event.namespace");
        expect_refused(f, v1,
                       "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{},\"eventTime\":"
                       "\"2026-01-02T03:04:05.000001Z\",\"reportingComponent\":\"c\"}",
                       BAD_OLD
                       "[reportingInstance: Required value, action: Required value, reason: "
                       "Required value]");
        /* Each version has its own name for the reporter. */
        (void)snprintf(message, sizeof message,
                       BAD_OLD "reportingComponent: Invalid value: \"a b\": %s",
                       hfd_qualified_name_rule);
        expect_refused(f, v1,
                       "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{},\"eventTime\":"
                       "\"2026-01-02T03:04:05.000001Z\",\"reportingComponent\":\"a b\","
                       "\"reportingInstance\":\"i\",\"action\":\"a\",\"reason\":\"r\"}",
                       message);
        expect_refused(f, new_events,
                       "{\"metadata\":{\"name\":\"e\"},\"regarding\":{},\"type\":\"Odd\","
                       "\"deprecatedCount\":1,\"deprecatedSource\":{\"host\":\"h\"},\"series\":{"
                       "\"count\":1}}",
                       BAD_NEW
                       "[series.count: Invalid value: \"\": should be at least 2, "
                       "series.lastObservedTime: Required value, eventTime: Required value, "
                       "type: Invalid value: \"\": has invalid value: Odd, count: Invalid value: "
                       "\"\": needs to be unset, source: Invalid value: \"\": needs to be unset]");
        assert_int_equal(create(f, new_events, NEW("e", "")), 0);
        assert_int_equal(patch(f, new_events, "e", "{\"note\":\"other\",\"type\":\"Normal\"}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   BAD_NEW "[message: Invalid value: \"other\": field is "
                                           "immutable, type: Invalid value: \"Normal\": field is "
                                           "immutable]");
        assert_int_equal(patch(f, new_events, "e",
                               "{\"series\":{\"count\":2,\"lastObservedTime\":"
                               "\"2026-01-02T03:04:06.000000Z\"}}"),
                         0);
        assert_int_equal(patch(f, v1, "e", "{\"message\":\"other\"}"), 0);
        expect_text(f, "message", "other");
}

/* Both versions share managedFields. Each entry has the field names of its own version. */
static void test_versions_share_the_owners_of_fields(void **state) {
        struct api_fixture *f = *state;
        struct hf__json *object = NULL;
        const struct hf__json *first, *second;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, new_events, "default", NULL,
                                             "fieldManager=a", NEW("e", "")),
                         0);
        assert_int_equal(api_fixture_patch(f, v1, "default", "e", HFD_SUB_NONE, HFD_PATCH_MERGE,
                                           "fieldManager=b", "{\"message\":\"other\"}"),
                         0);
        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &object, NULL), 0);
        first = hf__json_first(hf__json_path(object, "metadata.managedFields"));
        second = hf__json_next(first);
        if (!hf__json_has_text(first, "manager", "a")) {
                const struct hf__json *swap = first;
                first = second;
                second = swap;
        }
        assert_true(hf__json_has_text(first, "apiVersion", "events.k8s.io/v1"));
        assert_true(hf__json_has_text(second, "apiVersion", "v1"));
        assert_non_null(hf__json_get(hf__json_get(first, "fieldsV1"), "f:regarding"));
        assert_null(hf__json_get(hf__json_get(first, "fieldsV1"), "f:note")); /* b has it now */
        assert_non_null(hf__json_get(hf__json_get(second, "fieldsV1"), "f:message"));
        hf__json_free(object);
}

static void test_a_dry_run_answers_in_the_requested_form(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, new_events, "default", NULL,
                                             "dryRun=All", NEW("e", "")),
                         0);
        expect_text(f, "apiVersion", "events.k8s.io/v1");
        expect_text(f, "note", "n");
        assert_int_equal(api_fixture_get(f, new_events, "default", "e"), HF_E_NOT_FOUND);
}

/* No field name of one version has a meaning in the other, so a conversion there and back changes
 * nothing.
 */
static void test_conversions_are_reversible(void **state) {
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                const struct hfd_conversion *conversion = row->conversion;
                const struct hfd_resource *stored = hfd_resource_stored(row);
                assert_true((stored == row) == !conversion);
                if (!conversion)
                        continue;
                assert_string_equal(row->storage, stored->storage);
                assert_int_equal(row->namespaced, stored->namespaced);
                assert_int_equal(row->subresources, stored->subresources);
                for (size_t k = 0; k < conversion->n_renamed; k++) {
                        const struct hfd_renamed *renamed = &conversion->renamed[k];
                        assert_non_null(hfd_schema_of_member(row->schema, renamed->name));
                        assert_null(hfd_schema_of_member(row->schema, renamed->stored));
                        assert_non_null(hfd_schema_of_member(stored->schema, renamed->stored));
                        assert_null(hfd_schema_of_member(stored->schema, renamed->name));
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_an_object_of_one_version_is_read_in_the_other),
                API_TEST(test_selectors_have_the_names_of_their_version),
                API_TEST(test_each_version_has_its_rules),
                API_TEST(test_versions_share_the_owners_of_fields),
                API_TEST(test_a_dry_run_answers_in_the_requested_form),
                cmocka_unit_test(test_conversions_are_reversible),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
