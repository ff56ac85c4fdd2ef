/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.managedFields after each kind of write: who owns what, since when, and what a client can
 * do to the list.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "apply_fixture.h"
#include "base/json.h"
#include "server/apply/apply.h"

static struct hf__json *live;
static struct hfd_apply_failure failure;
static int minute; /* of the time of the next write */

static int set_up(void **state) {
        live = NULL;
        minute = 0;
        return 0;
}

static int tear_down(void **state) {
        live = hf__json_free(live);
        hfd_apply_failure_done(&failure);
        return 0;
}

static struct hfd_writer writer_of(const char *manager, const char *subresource) {
        static char now[40];

        (void)snprintf(now, sizeof now, "2026-01-01T00:%02d:00Z", minute++);
        return (struct hfd_writer){manager, subresource, "v1", now};
}

/* rest: members of the object, after its name. */
static struct hf__json *thing(const char *rest) {
        char text[8000];

        (void)snprintf(text, sizeof text,
                       "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t'}%s}", rest);
        return apply_fixture_parse(text);
}

/* list: the managedFields that the client sends; NULL = none. */
static void update_as(const char *manager, const char *subresource, const char *rest,
                      const char *list) {
        const struct hfd_writer writer = writer_of(manager, subresource);
        struct hf__json *object = thing(rest);

        if (list)
                assert_int_equal(hf__json_set(object, "metadata.managedFields",
                                              apply_fixture_parse(list)),
                                 0);
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, live, object, &writer, false,
                                              &(bool){false}),
                         0);
        hf__json_free(live);
        live = object;
}

static int apply_as(const char *manager, const char *rest, bool force) {
        const struct hfd_writer writer = writer_of(manager, "");
        struct hf__json *config = thing(rest), *object = NULL;

        hfd_apply_failure_done(&failure);
        int r = hfd_apply(apply_fixture_thing, live, config, &writer, force, &object, &failure);
        hf__json_free(config);
        if (r == 0) {
                hf__json_free(live);
                live = object;
        }
        return r;
}

/* Lines of `manager operation subresource minute fields`. */
static const char *managers(void) {
        static char text[20000];
        const struct hf__json *list = hf__json_path(live, "metadata.managedFields");
        size_t n = 0;

        text[0] = 0;
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *time = hf__json_string(m, "time");
                const char *subresource = hf__json_string(m, "subresource");
                assert_true(hf__json_has_text(m, "fieldsType", "FieldsV1"));
                n += (size_t)snprintf(text + n, sizeof text - n, "%s %s%s%s %.2s %s\n",
                                      hf__json_string(m, "manager"),
                                      hf__json_string(m, "operation"), subresource ? " " : "",
                                      subresource ? subresource : "", time ? time + 14 : "--",
                                      apply_fixture_print(hf__json_get(m, "fieldsV1")));
        }
        return text;
}

static void test_the_creator_owns_every_field(void **state) {
        update_as("m1", "",
                  ",'data':{'a':'1'},'spec':{'set':['x'],'items':[{'name':'i'}],"
                  "'atomicMap':{'k':'v'},'named':{}}",
                  NULL);
        assert_string_equal(
                managers(),
                "m1 Update 00 {'f:data':{'.':{},'f:a':{}},'f:spec':{'.':{},'f:atomicMap':{},"
                "'f:items':{'.':{},'k:{\\'name\\':\\'i\\'}':{'.':{},'f:name':{}}},'f:named':{},"
                "'f:set':{'.':{},'v:\\'x\\'':{}}}}\n");
}

static void test_an_applier_owns_no_field_by_a_part_of_it(void **state) {
        assert_int_equal(apply_as("m1",
                                  ",'data':{'a':'1'},'spec':{'set':['x'],'items':[{'name':"
                                  "'i'}],'atomicMap':{'k':'v'},'named':{}}",
                                  false),
                         0);
        assert_string_equal(managers(),
                            "m1 Apply 00 "
                            "{'f:data':{'f:a':{}},'f:spec':{'f:atomicMap':{},'f:items':{"
                            "'k:{\\'name\\':\\'i\\'}':{'.':{},'f:name':{}}},'f:named':{},'f:set':{"
                            "'v:\\'x\\'':{}}}}\n");
}

static void test_the_writer_owns_what_it_changes(void **state) {
        update_as("m1", "", ",'data':{'a':'1','b':'1','c':'1'}", NULL);
        update_as("m2", "", ",'data':{'a':'1','b':'2','d':'1'}", NULL);
        assert_string_equal(managers(), "m1 Update 00 {'f:data':{'.':{},'f:a':{}}}\n"
                                        "m2 Update 01 {'f:data':{'f:b':{},'f:d':{}}}\n");
        /* The same value is not a change. A removal does not make the writer an owner. */
        update_as("m1", "", ",'data':{'a':'1','b':'2'}", NULL);
        assert_string_equal(managers(), "m1 Update 00 {'f:data':{'.':{},'f:a':{}}}\n"
                                        "m2 Update 01 {'f:data':{'f:b':{}}}\n");
        update_as("m1", "", "", NULL);
        assert_string_equal(managers(), "");
}

static void test_an_update_takes_fields_from_appliers(void **state) {
        assert_int_equal(apply_as("m1", ",'data':{'a':'1','b':'1'}", false), 0);
        update_as("m2", "", ",'data':{'a':'2','b':'1'}", NULL);
        assert_string_equal(managers(), "m1 Apply 00 {'f:data':{'f:b':{}}}\n"
                                        "m2 Update 01 {'f:data':{'f:a':{}}}\n");
        assert_int_equal(apply_as("m1", ",'data':{'a':'1','b':'1'}", false), HF_E_CONFLICT);
}

static void test_a_name_is_one_manager_for_each_operation_and_subresource(void **state) {
        update_as("m", "", ",'data':{'a':'1'}", NULL);
        update_as("m", "status", ",'data':{'a':'1'},'status':{'phase':'x'}", NULL);
        assert_int_equal(apply_as("m", ",'spec':{'text':'a'}", false), 0);
        assert_string_equal(managers(), "m Apply 02 {'f:spec':{'f:text':{}}}\n"
                                        "m Update 00 {'f:data':{'.':{},'f:a':{}}}\n"
                                        "m Update status 01 {'f:status':{'.':{},'f:phase':{}}}\n");
}

static void test_a_write_that_changes_nothing_keeps_the_times(void **state) {
        update_as("m1", "", ",'data':{'a':'1'}", NULL);
        assert_int_equal(apply_as("m2", ",'spec':{'text':'a'}", false), 0);
        struct hf__json *before = hf__json_dup(live);
        assert_int_equal(apply_as("m2", ",'spec':{'text':'a'}", false), 0);
        assert_true(hf__json_equal(live, before));
        update_as("m1", "", ",'data':{'a':'1'},'spec':{'text':'a'}", NULL);
        assert_true(hf__json_equal(live, before));
        update_as("m3", "", ",'data':{'a':'1'},'spec':{'text':'a'}", NULL);
        assert_true(hf__json_equal(live, before));
        hf__json_free(before);
}

static void test_what_the_server_sets_has_no_owner(void **state) {
        update_as("m1", "", "", NULL);
        assert_null(hf__json_path(live, "metadata.managedFields"));
        assert_int_equal(apply_as("m1", "", false), 0);
        struct hf__json *object = apply_fixture_parse(
                "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t','namespace':'n',"
                "'uid':'u','resourceVersion':'1','generation':3,"
                "'creationTimestamp':'2026-01-01T00:00:00Z','labels':{'l':'1'}}}");
        const struct hfd_writer writer = writer_of("", "");
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, NULL, object, &writer, false,
                                              &(bool){false}),
                         0);
        hf__json_free(live);
        live = object;
        assert_string_equal(managers(),
                            "unknown Update 02 {'f:metadata':{'f:labels':{'.':{},'f:l':{}}}}\n");
}

/* ---- lists that a client sends ---- */

#define ENTRY(name, fields)                                                                        \
        "{'manager':'" name "','operation':'Update','apiVersion':'v1','time':"                     \
        "'2025-01-01T00:59:00Z','fieldsType':'FieldsV1','fieldsV1':" fields "}"

static void test_a_client_can_clear_and_change_the_owners(void **state) {
        update_as("m1", "", ",'data':{'a':'1'}", NULL);
        /* A valid list of the client replaces the stored one. */
        update_as("m1", "", ",'data':{'a':'1'}", "[" ENTRY("x", "{'f:data':{'f:a':{}}}") "]");
        assert_string_equal(managers(), "x Update 59 {'f:data':{'f:a':{}}}\n");
        /* If a manager has several entries, the last one counts. */
        update_as("m1", "", ",'data':{'a':'1'}",
                  "[" ENTRY("x", "{'f:data':{}}") "," ENTRY("y", "{'f:data':{}}") "," ENTRY(
                          "x", "{'f:data':{'f:a':{}}}") "]");
        assert_string_equal(managers(), "x Update 59 {'f:data':{'f:a':{}}}\n"
                                        "y Update 59 {'f:data':{}}\n");
        /* An empty list clears, and so does a list with an empty entry. From then on no manager is
         * tracked. */
        update_as("m1", "", ",'data':{'a':'1'}", "[]");
        assert_null(hf__json_path(live, "metadata.managedFields"));
        update_as("m1", "", ",'data':{'a':'1'}", "[" ENTRY("x", "{'f:data':{'f:a':{}}}") "]");
        update_as("m1", "", ",'data':{'a':'2'}", "[{}]");
        assert_null(hf__json_path(live, "metadata.managedFields"));
        update_as("m1", "", ",'data':{'a':'3'}", NULL);
        assert_null(hf__json_path(live, "metadata.managedFields"));
        /* The first apply gives the fields without an owner to "before-first-apply". */
        assert_int_equal(apply_as("m2", ",'data':{'b':'1'}", false), 0);
        assert_string_equal(managers(),
                            "m2 Apply 07 {'f:data':{'f:b':{}}}\n"
                            "before-first-apply Update 07 {'f:data':{'.':{},'f:a':{}}}\n");
}

static void test_lists_that_are_malformed_or_missing_do_not_count(void **state) {
        static const char *const table[] = {
                "null",
                "'text'",
                "{}",
                "[1]",
                "[{},{}]",
                "[{'manager':'x'}]",
                "[{'manager':'x','operation':'Update','apiVersion':'v1'}]",
                "[{'manager':'x','operation':'Other','apiVersion':'v1','fieldsType':'FieldsV1'}]",
                "[{'manager':'x','operation':'Update','apiVersion':'','fieldsType':'FieldsV1'}]",
                "[{'manager':'x','operation':'Update','apiVersion':'v1','fieldsType':'FieldsV2'}]",
                "[{'manager':1,'operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1'}]",
                "[" ENTRY("x", "{'f':{}}") "]",
        };

        update_as("m1", "", ",'data':{'a':'1'}", NULL);
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                update_as("m2", "", ",'data':{'a':'1'}", table[i]);
                assert_string_equal(managers(), "m1 Update 00 {'f:data':{'.':{},'f:a':{}}}\n");
        }
}

static void test_a_write_of_a_subresource_does_not_change_the_list(void **state) {
        update_as("m1", "", ",'data':{'a':'1'}", NULL);
        update_as("m2", "status", ",'data':{'a':'1'},'status':{'phase':'x'}", "[{}]");
        assert_string_equal(managers(), "m1 Update 00 {'f:data':{'.':{},'f:a':{}}}\n"
                                        "m2 Update status 01 {'f:status':{'.':{},'f:phase':{}}}\n");
}

static void test_old_updaters_are_joined(void **state) {
        char rest[400] = ",'data':{", name[20];
        size_t n = strlen(rest);

        for (int i = 0; i < 12; i++) {
                n += (size_t)snprintf(rest + n, sizeof rest - n, "%s'k%02d':'1'", i ? "," : "", i);
                (void)snprintf(rest + n, sizeof rest - n, "}");
                (void)snprintf(name, sizeof name, "u%02d", i);
                update_as(name, "", rest, NULL);
                assert_int_equal(hf__json_count(hf__json_path(live, "metadata.managedFields")),
                                 i < 10 ? i + 1 : 10);
        }
        assert_non_null(strstr(managers(), "ancient-changes Update 02 "
                                           "{'f:data':{'.':{},'f:k00':{},'f:k01':{},'f:k02':{}}}\n"
                                           "u03 Update 03 {'f:data':{'f:k03':{}}}\n"));
}

/* ---- kubectl apply without --server-side ---- */

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* The object as `kubectl apply` creates it: with its configuration in the annotation. */
static void apply_by_client(const char *value) {
        struct hf__json *object, *annotations;
        char rest[100], config[300];
        const struct hfd_writer writer = writer_of("kubectl-client-side-apply", "");

        (void)snprintf(rest, sizeof rest, ",'data':{'a':'%s'}", value);
        (void)snprintf(config, sizeof config,
                       "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"},"
                       "\"data\":{\"a\":\"%s\"}}\n",
                       value);
        object = thing(rest);
        assert_int_equal(hf__json_set(object, "metadata.annotations", hf__json_object()), 0);
        annotations = hf__json_path(object, "metadata.annotations");
        assert_int_equal(hf__json_put_string(annotations, LAST_APPLIED, config), 0);
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, live, object, &writer, false,
                                              &(bool){false}),
                         0);
        hf__json_free(live);
        live = object;
}

static void test_kubectl_takes_over_what_it_has_applied_by_itself(void **state) {
        apply_by_client("1");
        assert_int_equal(apply_as("other", ",'data':{'a':'2'}", false), HF_E_CONFLICT);
        assert_int_equal(apply_as("kubectl", ",'data':{'a':'2'}", false), 0);
        assert_string_equal(hf__json_string(live, "data.a"), "2");
        assert_non_null(strstr(managers(), "kubectl Apply 02 {'f:data':{'f:a':{}}}\n"));
        /* The annotation changes with the configuration. */
        assert_string_equal(hf__json_text(hf__json_get(hf__json_path(live, "metadata.annotations"),
                                                       LAST_APPLIED)),
                            "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
                            "\"t\"},\"data\":{\"a\":\"2\"}}\n");
}

static void test_kubectl_does_not_take_over_what_others_have_changed(void **state) {
        apply_by_client("1");
        struct hf__json *changed = hf__json_dup(live);
        const struct hfd_writer writer = writer_of("editor", "");
        assert_int_equal(hf__json_set_string(changed, "data.a", "3"), 0);
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, live, changed, &writer, false,
                                              &(bool){false}),
                         0);
        hf__json_free(live);
        live = changed;
        assert_int_equal(apply_as("kubectl", ",'data':{'a':'2'}", false), HF_E_CONFLICT);
        assert_string_equal(failure.message.data, "Apply failed with 1 conflict: conflict with "
                                                  "\"editor\" using v1: .data.a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_the_creator_owns_every_field),
                TEST(test_an_applier_owns_no_field_by_a_part_of_it),
                TEST(test_the_writer_owns_what_it_changes),
                TEST(test_an_update_takes_fields_from_appliers),
                TEST(test_a_name_is_one_manager_for_each_operation_and_subresource),
                TEST(test_a_write_that_changes_nothing_keeps_the_times),
                TEST(test_what_the_server_sets_has_no_owner),
                TEST(test_a_client_can_clear_and_change_the_owners),
                TEST(test_lists_that_are_malformed_or_missing_do_not_count),
                TEST(test_a_write_of_a_subresource_does_not_change_the_list),
                TEST(test_old_updaters_are_joined),
                TEST(test_kubectl_takes_over_what_it_has_applied_by_itself),
                TEST(test_kubectl_does_not_take_over_what_others_have_changed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
