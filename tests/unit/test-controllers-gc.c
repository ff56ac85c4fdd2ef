/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the garbage collector. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/kinds/gc_filter.h"

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void expect_text(struct hf__json *json, const char *text) {
        struct hf__strbuf out = {0};
        hf__json_print(json, &out);
        assert_string_equal(out.data, text);
        hf__strbuf_done(&out);
        hf__json_free(json);
}

static void expect(struct hfd_gc_view view, enum hfd_gc_verdict verdict) {
        assert_int_equal(hfd_gc_decide(&view), verdict);
}

/*
 * Every combination: nothing is deleted while an owner exists, and nothing is changed while all its
 * owners exist.
 */
static void test_an_existing_owner_keeps_its_dependents(void **state) {
        (void)state;
        for (unsigned bits = 0; bits < 256; bits++) {
                struct hfd_gc_view view = {.n_solid = bits & 1,
                                           .n_waiting = bits >> 1 & 1,
                                           .n_absent = bits >> 2 & 1,
                                           .orphan = bits >> 3 & 1,
                                           .foreground = bits >> 4 & 1,
                                           .has_dependents = bits >> 5 & 1,
                                           .dependent_waits = bits >> 6 & 1,
                                           .blocks = bits >> 7 & 1};
                enum hfd_gc_verdict verdict = hfd_gc_decide(&view);
                if (view.n_solid)
                        assert_int_equal(verdict, view.n_waiting + view.n_absent
                                                          ? HFD_GC_DROP_OWNERS
                                                          : HFD_GC_KEEP);
                else
                        assert_int_equal(hfd_gc_policy(verdict) == NULL &&
                                                 verdict != HFD_GC_UNBLOCK,
                                         view.n_waiting + view.n_absent == 0);
        }
}

static void test_the_deletion_policy_follows_owners_and_finalizers(void **state) {
        (void)state;
        expect((struct hfd_gc_view){.n_absent = 1}, HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_absent = 1, .has_dependents = true},
               HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_absent = 2, .foreground = true}, HFD_GC_DELETE_FOREGROUND);
        expect((struct hfd_gc_view){.n_absent = 2, .orphan = true, .foreground = true},
               HFD_GC_DELETE_ORPHAN);
        expect((struct hfd_gc_view){.n_waiting = 1}, HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_waiting = 1, .n_absent = 1, .has_dependents = true},
               HFD_GC_DELETE_FOREGROUND);
        expect((struct hfd_gc_view){.n_waiting = 1,
                                    .has_dependents = true,
                                    .dependent_waits = true,
                                    .blocks = true},
               HFD_GC_UNBLOCK);
        expect((struct hfd_gc_view){.n_waiting = 1,
                                    .has_dependents = true,
                                    .dependent_waits = true},
               HFD_GC_DELETE_FOREGROUND);
}

static void test_owner_references_are_removed(void **state) {
        (void)state;
        struct hf__json *object = parsed("{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{"
                                         "\"uid\":\"x\",\"blockOwnerDeletion\":true},"
                                         "{\"uid\":\"y\"}]}}");
        struct hf__json *uids = parsed("{\"uids\":[\"w\",\"x\"]}");
        assert_true(hfd_gc_blocks(object));
        assert_int_equal(hfd_gc_unblock(object), 0);
        assert_false(hfd_gc_blocks(object));
        assert_int_equal(hfd_gc_drop_owners(object, uids), 0);
        expect_text(object, "{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"uid\":\"y\","
                            "\"blockOwnerDeletion\":false}]}}");
        object = parsed("{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"uid\":\"x\"}]}}");
        assert_int_equal(hfd_gc_drop_owners(object, uids), 0);
        expect_text(object, "{\"metadata\":{\"name\":\"n\"}}");
        hf__json_free(uids);
}

static void test_objects_deleted_in_the_foreground_wait_for_dependents(void **state) {
        static const char *const no[] =
                {"{}", "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}",
                 "{\"metadata\":{\"deletionTimestamp\":\"t\",\"finalizers\":[\"orphan\",7]}}"};
        (void)state;
        for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
                struct hf__json *object = parsed(no[i]);
                assert_false(hfd_gc_waits(object));
                hf__json_free(object);
        }
        struct hf__json *object = parsed("{\"metadata\":{\"deletionTimestamp\":\"t\","
                                         "\"finalizers\":[\"a\",\"foregroundDeletion\"]}}");
        assert_true(hfd_gc_waits(object));
        hf__json_free(object);
}

static void test_objects_with_owners_or_deletion_marks_are_collected(void **state) {
        static const char owned[] = "{\"metadata\":{\"ownerReferences\":[]}}",
                          marked[] = "{\"metadata\":{\"deletionTimestamp\":\"t\"}}",
                          plain[] = "{\"metadata\":{\"name\":\"ownerReferences\"}}";
        (void)state;
        assert_true(hfd_gc_filter_may_concern(owned, sizeof owned - 1));
        assert_true(hfd_gc_filter_may_concern(marked, sizeof marked - 1));
        assert_false(hfd_gc_filter_may_concern(marked, 20));
        /* A name that contains these letters only costs a useless check. */
        assert_true(hfd_gc_filter_may_concern(plain, sizeof plain - 1));
}

static void test_string_lists_have_no_duplicates(void **state) {
        (void)state;
        struct hf__json *object = parsed("{}");
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "c"), 0);
        assert_true(hfd_string_list_has(object, "metadata.finalizers", "c"));
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "absent"), 0);
        assert_int_equal(hf__json_count(hf__json_path(object, "metadata.finalizers")), 1);
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "c"), 0);
        expect_text(object, "{\"metadata\":{}}");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_existing_owner_keeps_its_dependents),
                cmocka_unit_test(test_the_deletion_policy_follows_owners_and_finalizers),
                cmocka_unit_test(test_owner_references_are_removed),
                cmocka_unit_test(test_objects_deleted_in_the_foreground_wait_for_dependents),
                cmocka_unit_test(test_objects_with_owners_or_deletion_marks_are_collected),
                cmocka_unit_test(test_string_lists_have_no_duplicates),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
