/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers for controllers that send no request: selectors, owners, finalizers, conditions. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/condition.h>
#include <holdfast/finalizer.h>
#include <holdfast/owner.h>
#include <holdfast/selector.h>

#include "base/json.h"

/* ---- selectors ---- */

static char *query_of(const struct hf_selector *selector) {
        struct hf_status status = {0};
        char *query = NULL;
        int r = hf_selector_query(selector, &query, &status);
        if (r != 0 || status.message[0])
                fail_msg("%d: %s", r, status.message);
        return query;
}

static void test_a_selector_is_written_and_escaped(void **state) {
        const char *const one[] = {"yes"}, *const two[] = {"a", "b.c"}, *const odd[] = {"x,y=z\\"};
        const struct hf_selector_term labels[] =
                {{.key = "copy", .values = one, .n_values = 1},
                 {.key = "x.io/tier", .op = HF_SELECTOR_IN, .values = two, .n_values = 2},
                 {.key = "t", .op = HF_SELECTOR_NOT_IN, .values = one, .n_values = 1},
                 {.key = "u", .op = HF_SELECTOR_NOT_EQUALS, .values = one, .n_values = 1},
                 {.key = "aZ-9_v.Y/A0z", .op = HF_SELECTOR_EXISTS},
                 {.key = "w", .op = HF_SELECTOR_NOT_EXISTS}};
        const struct hf_selector_term fields[] = {
                {.key = "metadata.name", .values = odd, .n_values = 1}};
        const struct hf_selector both = {.size = sizeof both,
                                         .labels = labels,
                                         .n_labels = 6,
                                         .fields = fields,
                                         .n_fields = 1};
        const struct hf_selector fields_only = {.size = sizeof both,
                                                .fields = fields,
                                                .n_fields = 1};
        const struct hf_selector none = {.size = sizeof none};

        char *query = query_of(&both);
        assert_string_equal(query, "labelSelector=copy%3Dyes%2Cx.io%2Ftier%20in%20%28a%2Cb.c%29%2C"
                                   "t%20notin%20%28yes%29%2Cu%21%3Dyes%2CaZ-9_v.Y%2FA0z%2C%21w"
                                   "&fieldSelector=metadata.name%3Dx%5C%2Cy%5C%3Dz%5C%5C");
        free(query);
        query = query_of(&fields_only);
        assert_string_equal(query, "fieldSelector=metadata.name%3Dx%5C%2Cy%5C%3Dz%5C%5C");
        free(query);
        query = query_of(&none);
        assert_string_equal(query, "");
        free(query);
}

static void test_a_selector_refuses_what_would_change_its_meaning(void **state) {
        const char *const comma[] = {"a,b"}, *const one[] = {"a"}, *const two[] = {"a", "b"},
                          *const null[] = {NULL};
        const struct hf_selector_term wrong[] =
                {{.key = "k", .values = comma, .n_values = 1},
                 {.values = one, .n_values = 1},
                 {.key = "k", .n_values = 1},
                 {.key = "k", .values = null, .n_values = 1},
                 {.key = "k", .values = two, .n_values = 2},
                 {.key = "k[0]", .values = one, .n_values = 1},
                 {.key = "k=v,l", .values = one, .n_values = 1},
                 {.key = "", .values = one, .n_values = 1},
                 {.key = "k"},
                 {.key = "k", .op = HF_SELECTOR_IN},
                 {.key = "k", .op = HF_SELECTOR_EXISTS, .values = one, .n_values = 1},
                 {.key = "k", .op = (enum hf_selector_op)9, .values = one, .n_values = 1}};
        const struct hf_selector_term fields[] =
                {{.key = "k", .op = HF_SELECTOR_IN, .values = one, .n_values = 1},
                 {.key = "k", .op = HF_SELECTOR_EXISTS},
                 {.key = "k"},
                 {.key = "k", .values = null, .n_values = 1}};
        struct hf_selector selector = {.size = sizeof selector};
        struct hf_status status;
        char *query;

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                selector.labels = &wrong[i];
                selector.n_labels = 1;
                status = (struct hf_status){0};
                assert_int_equal(hf_selector_query(&selector, &query, &status), HF_E_INVALID);
                assert_true(status.message[0]);
        }
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
                selector = (struct hf_selector){.size = sizeof selector,
                                                .fields = &fields[i],
                                                .n_fields = 1};
                assert_int_equal(hf_selector_query(&selector, &query, &status), HF_E_INVALID);
        }
        assert_int_equal(hf_selector_query(&selector, NULL, NULL), -EINVAL);
        assert_int_equal(hf_selector_query(NULL, &query, NULL), -EINVAL);
        selector.size = 1;
        assert_int_equal(hf_selector_query(&selector, &query, NULL), -EINVAL);
}

/* ---- owner references ---- */

#define OWNER(uid)                                                                                 \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"o\","              \
        "\"namespace\":\"a\",\"uid\":\"" uid "\"}}"
#define OWNED "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\"}}"

static void test_an_object_has_one_controller(void **state) {
        char *once, *twice, *none = NULL;
        bool is = false;

        assert_int_equal(hf_owner_set(OWNED, strlen(OWNED), OWNER("u"), strlen(OWNER("u")), &once),
                         0);
        assert_string_equal(once, "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\","
                                  "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                                  "\"ConfigMap\",\"name\":\"o\",\"uid\":\"u\",\"controller\":true,"
                                  "\"blockOwnerDeletion\":true}]}}");
        assert_int_equal(hf_owner_set(once, strlen(once), OWNER("u"), strlen(OWNER("u")), &twice),
                         0);
        assert_string_equal(once, twice);
        assert_int_equal(hf_owner_set(once, strlen(once), OWNER("w"), strlen(OWNER("w")), &none),
                         HF_E_CONFLICT);
        assert_null(none);
        assert_int_equal(hf_owner_check(once, strlen(once), "u", &is), 0);
        assert_true(is);
        assert_int_equal(hf_owner_check(once, strlen(once), "w", &is), 0);
        assert_false(is);
        assert_int_equal(hf_owner_check(OWNED, strlen(OWNED), "u", &is), 0);
        assert_false(is);
        free(once);
        free(twice);
}

static void test_an_owner_must_be_one_that_the_collector_finds(void **state) {
        static const char *const wrong[] = {"{\"metadata\":{\"name\":\"x\",\"namespace\":\"b\"}}",
                                            "{\"metadata\":{\"name\":\"x\"}}", "[]", "{"};
        char *object = NULL;

        for (size_t i = 0; i < 4; i++)
                assert_int_equal(hf_owner_set(wrong[i], strlen(wrong[i]), OWNER("u"),
                                              strlen(OWNER("u")), &object),
                                 HF_E_INVALID);
        assert_int_equal(hf_owner_set(OWNED, strlen(OWNED), OWNED, strlen(OWNED), &object),
                         HF_E_INVALID); /* without a uid */
        assert_null(object);
}

/* A cluster-scoped owner may own objects of any namespace. An existing reference to it
 * becomes that of the controller. */
static void test_an_owner_may_have_no_namespace(void **state) {
        static const char *const owners[] =
                {"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{"
                 "\"name\":\"o\",\"uid\":\"u\"}}",
                 "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{"
                 "\"name\":\"o\",\"namespace\":\"\",\"uid\":\"u\"}}"};
        static const char owned[] = "{\"metadata\":{\"name\":\"x\",\"namespace\":\"a\","
                                    "\"ownerReferences\":[{\"uid\":\"v\"},{\"uid\":\"u\"}]}}";
        char *object;

        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(hf_owner_set(owned, strlen(owned), owners[i], strlen(owners[i]),
                                              &object),
                                 0);
                assert_non_null(strstr(object,
                                       "[{\"uid\":\"v\"},{\"uid\":\"u\",\"apiVersion\":\"v1\","
                                       "\"kind\":\"Node\",\"name\":\"o\",\"controller\":true,"
                                       "\"blockOwnerDeletion\":true}]"));
                free(object);
        }
        assert_int_equal(hf_owner_set(owned, strlen(owned), "{", 1, &object), HF_E_INVALID);
}

static void test_a_controller_has_a_name_that_fits(void **state) {
        char long_name[HF_NAME_MAX + 2], name[HF_NAME_MAX + 1], object[HF_NAME_MAX + 200];

        for (size_t n = HF_NAME_MAX; n <= HF_NAME_MAX + 1; n++) {
                memset(long_name, 'n', n);
                long_name[n] = '\0';
                (void)snprintf(object, sizeof object,
                               "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\","
                               "\"kind\":"
                               "\"K\",\"name\":\"%s\",\"uid\":\"u\",\"controller\":true}]}}",
                               long_name);
                assert_int_equal(hf_owner_name(object, strlen(object), NULL, "K", name),
                                 n == HF_NAME_MAX ? 0 : HF_E_NOT_FOUND);
        }
        assert_int_equal(strlen(name), HF_NAME_MAX);
}

/* The object is too large, and memory is not exhausted. With -ENOMEM a controller would retry for
 * ever. */
static void test_an_object_without_room_for_a_reference_is_invalid(void **state) {
        static const char *const wrong[] =
                {"{\"metadata\":\"x\"}", "{\"metadata\":null}",
                 "{\"metadata\":{\"name\":\"x\",\"ownerReferences\":\"none\"}}"};
        static const char owner[] = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
                                    "\"metadata\":{\"name\":\"o\",\"uid\":\"u\"}}";
        char *object = NULL;

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                assert_int_equal(hf_owner_set(wrong[i], strlen(wrong[i]), owner, strlen(owner),
                                              &object),
                                 HF_E_INVALID);
        assert_null(object);
}

static void test_a_controller_is_found_by_its_kind(void **state) {
        static const char owner[] =
                "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Notice\","
                "\"metadata\":{\"name\":\"o\",\"namespace\":\"a\",\"uid\":\"u\"}}";
        static const struct {
                const char *group, *kind;
                int r;
        } cases[] = {{"example.com", "Notice", 0},
                     {"example.com", "Other", HF_E_NOT_FOUND},
                     {"example.co", "Notice", HF_E_NOT_FOUND},
                     {"", "Notice", HF_E_NOT_FOUND},
                     {NULL, "Notice", HF_E_NOT_FOUND}};
        char name[HF_NAME_MAX + 1], *owned = NULL;

        assert_int_equal(hf_owner_set(OWNED, strlen(OWNED), owner, strlen(owner), &owned), 0);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                (void)strcpy(name, "");
                assert_int_equal(hf_owner_name(owned, strlen(owned), cases[i].group, cases[i].kind,
                                               name),
                                 cases[i].r);
                assert_string_equal(name, cases[i].r == 0 ? "o" : "");
        }
        free(owned);
        assert_int_equal(hf_owner_set(OWNED, strlen(OWNED), OWNER("u"), strlen(OWNER("u")), &owned),
                         0);
        assert_int_equal(hf_owner_name(owned, strlen(owned), NULL, "ConfigMap", name), 0);
        assert_string_equal(name, "o");
        free(owned);
        assert_int_equal(hf_owner_name(OWNED, strlen(OWNED), NULL, "ConfigMap", name),
                         HF_E_NOT_FOUND);
        assert_int_equal(hf_owner_name("{", 1, NULL, "ConfigMap", name), HF_E_INVALID);
        assert_int_equal(hf_owner_name(OWNED, strlen(OWNED), NULL, NULL, name), -EINVAL);
}

/* ---- finalizers ---- */

static void test_a_finalizer_is_added_and_removed_among_others(void **state) {
        static const struct {
                const char *before;
                bool present;
                const char *after; /* NULL: invalid */
                bool changed;
        } cases[] = {
                {"{\"metadata\":{}}", true, "{\"metadata\":{\"finalizers\":[\"x/f\"]}}", true},
                {"{\"metadata\":{\"finalizers\":null}}", true,
                 "{\"metadata\":{\"finalizers\":[\"x/f\"]}}", true},
                {"{\"metadata\":{\"finalizers\":[\"o\"]}}", true,
                 "{\"metadata\":{\"finalizers\":[\"o\",\"x/f\"]}}", true},
                {"{\"metadata\":{\"finalizers\":[\"x/f\",\"o\"]}}", true,
                 "{\"metadata\":{\"finalizers\":[\"x/f\",\"o\"]}}", false},
                {"{\"metadata\":{\"finalizers\":[\"x/f\",\"o\",\"x/f\"]}}", false,
                 "{\"metadata\":{\"finalizers\":[\"o\"]}}", true},
                {"{\"metadata\":{\"finalizers\":[\"x/f\",1,\"x/f\"]}}", false,
                 "{\"metadata\":{\"finalizers\":[1]}}", true},
                {"{\"metadata\":{}}", false, "{\"metadata\":{}}", false},
                {"{\"metadata\":{\"finalizers\":\"x/f\"}}", true, NULL, false},
                {"{}", true, NULL, false},
                {"[]", false, NULL, false},
                {"{", true, NULL, false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                const char *before = cases[i].before;
                char *after = NULL;
                bool changed = false;
                int r = hf_finalizer_set(before, strlen(before), "x/f", cases[i].present, &after,
                                         &changed);

                assert_int_equal(r, cases[i].after ? 0 : HF_E_INVALID);
                assert_int_equal(changed, cases[i].changed);
                if (cases[i].after)
                        assert_string_equal(after, cases[i].after);
                else
                        assert_null(after);
                free(after);
        }
}

static void test_a_finalizer_and_a_deletion_are_found(void **state) {
        static const char kept[] = "{\"metadata\":{\"finalizers\":[\"x/f\"]}}",
                          ending[] = "{\"metadata\":{\"finalizers\":[\"o\"],\"deletionTimestamp\":"
                                     "\"2026-01-01T00:00:00Z\"}}";
        bool has, is_deleted;

        assert_int_equal(hf_finalizer_check(kept, sizeof kept - 1, "x/f", &has, &is_deleted), 0);
        assert_true(has && !is_deleted);
        assert_int_equal(hf_finalizer_check(ending, sizeof ending - 1, "x/f", &has, &is_deleted),
                         0);
        assert_true(!has && is_deleted);
        assert_int_equal(hf_finalizer_check("[]", 2, "x/f", NULL, NULL), 0);
        assert_int_equal(hf_finalizer_check("x", 1, "x/f", &has, NULL), HF_E_INVALID);
        assert_int_equal(hf_finalizer_check(NULL, 1, "x/f", &has, NULL), -EINVAL);
}

/* ---- conditions ---- */

static int64_t real_s;
static hf_nsec fake_real(void *ctx) { return real_s * HF_NSEC_PER_SEC; }

static void test_the_time_of_a_condition_is_that_of_its_last_change(void **state) {
        struct hf_clock clock = *hf_clock_system();
        const struct hf_host host = {.size = sizeof host, .clock = &clock};
        struct hf_condition condition = {.size = sizeof condition,
                                         .type = "Ready",
                                         .status = "True",
                                         .reason = "Done"};
        static const char first[] = "{\"status\":{\"conditions\":[{\"type\":\"Other\"}]}}";
        char *objects[4];
        bool changed = false;

        clock.real = fake_real;
        real_s = 1767225600; /* 2026-01-01 */
        assert_int_equal(hf_condition_set(&host, first, strlen(first), &condition, &objects[0],
                                          &changed),
                         0);
        assert_true(changed);
        assert_string_equal(objects[0],
                            "{\"status\":{\"conditions\":[{\"type\":\"Other\"},{"
                            "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"type\":\"Ready\","
                            "\"status\":\"True\",\"reason\":\"Done\",\"message\":\"\"}]}}");
        real_s++;
        assert_int_equal(hf_condition_set(&host, objects[0], strlen(objects[0]), &condition,
                                          &objects[1], &changed),
                         0);
        assert_false(changed);
        assert_string_equal(objects[0], objects[1]);
        condition.reason = "StillDone";
        condition.observed_generation = 4;
        assert_int_equal(hf_condition_set(&host, objects[1], strlen(objects[1]), &condition,
                                          &objects[2], &changed),
                         0);
        assert_true(changed);
        assert_non_null(strstr(objects[2], "\"2026-01-01T00:00:00Z\""));
        assert_non_null(strstr(objects[2], "\"observedGeneration\":4"));
        condition.status = "False";
        assert_int_equal(hf_condition_set(&host, objects[2], strlen(objects[2]), &condition,
                                          &objects[3], NULL),
                         0);
        assert_non_null(strstr(objects[3], "\"2026-01-01T00:00:01Z\""));
        assert_null(strstr(objects[3], "\"2026-01-01T00:00:00Z\""));
        for (size_t i = 0; i < 4; i++)
                free(objects[i]);
        condition.status = "true";
        assert_int_equal(hf_condition_set(&host, "{}", 2, &condition, &objects[0], NULL), -EINVAL);
        condition.status = "True";
        assert_int_equal(hf_condition_set(&host, "[]", 2, &condition, &objects[0], NULL),
                         HF_E_INVALID);
}

static void test_an_object_without_room_for_a_condition_is_invalid(void **state) {
        static const char *const wrong[] = {"{\"status\":\"Running\"}", "{\"status\":null}",
                                            "{\"status\":{\"conditions\":{\"type\":\"Ready\"}}}"};
        const struct hf_host host = {.size = sizeof host};
        const struct hf_condition condition = {.size = sizeof condition,
                                               .type = "Ready",
                                               .status = "True",
                                               .reason = "Done"};
        char *object = NULL;

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                assert_int_equal(hf_condition_set(&host, wrong[i], strlen(wrong[i]), &condition,
                                                  &object, NULL),
                                 HF_E_INVALID);
        assert_null(object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_selector_is_written_and_escaped),
                cmocka_unit_test(test_a_selector_refuses_what_would_change_its_meaning),
                cmocka_unit_test(test_an_object_has_one_controller),
                cmocka_unit_test(test_an_owner_must_be_one_that_the_collector_finds),
                cmocka_unit_test(test_an_owner_may_have_no_namespace),
                cmocka_unit_test(test_a_controller_has_a_name_that_fits),
                cmocka_unit_test(test_an_object_without_room_for_a_reference_is_invalid),
                cmocka_unit_test(test_a_controller_is_found_by_its_kind),
                cmocka_unit_test(test_a_finalizer_is_added_and_removed_among_others),
                cmocka_unit_test(test_a_finalizer_and_a_deletion_are_found),
                cmocka_unit_test(test_an_object_without_room_for_a_condition_is_invalid),
                cmocka_unit_test(test_the_time_of_a_condition_is_that_of_its_last_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
