/* SPDX-License-Identifier: Apache-2.0 */
/* The generation of an object grows with each change of its desired state. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "custom_schema_fixture.h"
#include "server/resources/meta.h"
#include "server/resources/workloads/workloads.h"

/* The generation after a change of an object with generation 4. */
static int64_t after_by(const struct hfd_schema *schema, const char *old_text, const char *text,
                        bool has_generation) {
        const struct hfd_resource row = {.kind = "K",
                                         .has_generation = has_generation,
                                         .schema = schema};
        struct hf__json *old = json_of(old_text), *object = json_of(text);
        int64_t generation = -1;

        assert_int_equal(hfd_meta_set_generation(&row, object, old, false), 0);
        (void)hf__json_i64(object, "metadata.generation", &generation);
        hf__json_free(old);
        hf__json_free(object);
        return generation;
}

static int64_t after(const char *old_text, const char *text, bool has_generation) {
        return after_by(NULL, old_text, text, has_generation);
}

static void test_changes_beside_metadata_and_status_count(void **state) {
        static const char old[] = "{'kind':'K','apiVersion':'v','metadata':{'generation':4},"
                                  "'spec':{'a':1,'b':2},'data':{'c':'d'},'status':{'x':1}}";
        static const struct {
                const char *text;
                int64_t generation;
        } rows[] = {
                {"{'spec':{'a':1,'b':2},'data':{'c':'d'},'metadata':{'generation':9,'name':'n'}}",
                 4},
                {"{'metadata':{},'data':{'c':'d'},'status':{'x':2},'spec':{'b':2,'a':1},'kind':'L'"
                 "}",
                 4},
                {"{'metadata':{},'spec':{'a':1,'b':3},'data':{'c':'d'}}", 5},
                {"{'metadata':{},'data':{'c':'e'},'spec':{'a':1,'b':2}}", 5},
                {"{'metadata':{},'spec':{'a':1,'b':2}}", 5},
                {"{'metadata':{},'data':{'c':'d'}}", 5},
                {"{'metadata':{},'spec':{'a':1,'b':2},'data':{'c':'d'},'more':null}", 5},
                {"{'metadata':{},'spec':{'a':1,'b':2},'datb':{'c':'d'}}", 5},
                {"{'metadata':{}}", 5},
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                assert_int_equal(after(old, rows[i].text, true), rows[i].generation);
        assert_int_equal(after("{'metadata':{}}", "{'metadata':{'generation':7}}", true), -1);
        assert_int_equal(after("{'metadata':{}}", "{'metadata':{},'spec':1}", true), 1);
        /* a kind without generations keeps what was stored */
        assert_int_equal(after(old, "{'metadata':{'generation':9}}", false), 4);
}

/* A typed client leaves out what is zero. */
static void test_a_zero_that_is_left_out_does_not_count(void **state) {
        static const char old[] =
                "{'metadata':{'generation':4},'spec':{'paused':false,'replicas':0,"
                "'template':{'spec':{'containers':[{'tty':false}]}}}}";
        static const struct {
                const char *text;
                int64_t generation;
        } rows[] = {
                {"{'metadata':{},'spec':{'replicas':0,'template':{'spec':{'containers':[{}]}}}}",
                 4},
                {"{'spec':{'replicas':0,'template':{'spec':{'containers':[{}]}}},'metadata':{}}",
                 4},
                /* The number is a pointer in Go. */
                {"{'metadata':{},'spec':{'template':{'spec':{'containers':[{}]}}}}", 5},
                {"{'metadata':{},'spec':{'replicas':0,'template':{'spec':{'containers':[{'tty':"
                 "true}]}}}}",
                 5},
                {"{'metadata':{}}", 5},
        };

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                assert_int_equal(after_by(&hfd_deployment_schema, old, rows[i].text, true),
                                 rows[i].generation);
                assert_int_equal(after(old, rows[i].text, true), 5);
        }
        assert_int_equal(after_by(&hfd_deployment_schema, "{'metadata':{'generation':4}}",
                                  "{'metadata':{},'spec':{'paused':false}}", true),
                         4);
}

/* Whether a change of the annotations counts. */
static bool counts(const char *before, const char *after, bool of_status) {
        const struct hfd_resource row = {.kind = "K",
                                         .has_generation = true,
                                         .counted_metadata = "annotations"};
        struct hf__json *old = json_of(before), *object = json_of(after);
        int64_t generation = -1;

        assert_int_equal(hfd_meta_set_generation(&row, object, old, of_status), 0);
        assert_true(hf__json_i64(object, "metadata.generation", &generation));
        hf__json_free(old);
        hf__json_free(object);
        return generation == 5;
}

static void test_some_kinds_count_a_map_in_metadata(void **state) {
        static const char plain[] = "{'metadata':{'generation':4,'labels':{'x':'y'}}}",
                          empty[] = "{'metadata':{'generation':4,'annotations':{}}}",
                          one[] = "{'metadata':{'generation':4,'annotations':{'a':'b','c':'d'}}}",
                          sorted[] =
                                  "{'metadata':{'generation':4,'annotations':{'c':'d','a':'b'}}}",
                          other[] = "{'metadata':{'generation':4,'annotations':{'a':'c','c':'d'}}}";

        (void)state;
        assert_false(counts(plain, empty, false));
        assert_false(counts(empty, plain, false));
        assert_false(counts(one, sorted, false));
        assert_true(counts(plain, one, false));
        assert_true(counts(one, empty, false));
        assert_true(counts(one, other, false));
        assert_false(counts(one, other, true));
        assert_int_equal(after(plain, one, true), 4); /* another kind */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_changes_beside_metadata_and_status_count),
                cmocka_unit_test(test_a_zero_that_is_left_out_does_not_count),
                cmocka_unit_test(test_some_kinds_count_a_map_in_metadata),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
