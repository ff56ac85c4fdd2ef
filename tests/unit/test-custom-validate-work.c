/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of custom kinds with texts for which the patterns of the schema need much work: how much
 * there may be, and what may change beside them. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_index.h"
#include "custom_schema_fixture.h"

#define S(text) "{'type':'string'," text "}"

/* A text of n times "a", in quotes. The caller frees it. */
static char *text_of(size_t n) {
        char *text = malloc(n + 3);

        assert_non_null(text);
        memset(text, 'a', n + 2);
        text[0] = text[n + 1] = '\'';
        text[n + 2] = 0;
        return text;
}

/* Also if the text is in a `not`: nobody knows then whether it is valid. */
static void test_the_work_of_patterns_is_in_proportion_to_the_texts(void **state) {
        static const char too_much[] = "<nil>: Invalid value: null: the patterns of the schema "
                                       "need too much work for its texts";
        char *long_text = text_of(30000), *longest = text_of(1 << 20);

        (void)state;
        expect_validation(S("'pattern':'[a-z]{0,1000}[a-z]{0,1000}!'"), long_text, NULL, too_much);
        expect_validation(S("'not':{'pattern':'[a-z]{0,1000}[a-z]{0,1000}!'}"), long_text, NULL,
                          too_much);
        expect_validation(S("'allOf':[{'pattern':'^[a-z]+$'},{'pattern':'^[b-z]?[a-y]+$'},"
                            "{'pattern':'^[a]+$'},{'pattern':'^[a-f]+$'},{'pattern':'a$'},"
                            "{'pattern':'^[^ ]+$'}]"),
                          longest, NULL, "");
        free(longest);
        free(long_text);
}

/* The causes of an update from old to object, both of which also have this text under the key. */
static size_t n_causes_beside(const char *key, const char *text, const char *schema,
                              const char *old, const char *object) {
        struct hfd_custom_schema *compiled = schema_of(schema);
        struct hf__json *both[] = {json_of("{}"), json_of("{}")},
                        *members[] = {json_of(old), json_of(object)};
        struct hfd_causes causes = {0};

        for (size_t i = 0; i < 2; i++) { /* the text is searched first */
                assert_int_equal(hf__json_add(both[i], key, json_of(text)), 0);
                assert_int_equal(hf__json_add_members(both[i], members[i], true), 0);
        }
        hfd_custom_schema_validate(compiled, both[1], both[0], &causes);
        for (size_t i = 0; i < 2; i++) {
                hf__json_free(both[i]);
                hf__json_free(members[i]);
        }
        hfd_custom_schema_free(compiled);
        return causes.n;
}

/* The object may have been stored when its texts had no limit. The status is checked all the same.
 */
static void test_metadata_and_status_may_change_beside_texts_that_take_too_much_work(void **state) {
#define SPEC   "'spec':{'type':'string','pattern':'[a-z]{0,1000}[a-z]{0,1000}!'}"
#define STATUS "'status':{'type':'object','properties':{'a':{'type':'string','pattern':'^x'}}}"
#define PLAIN  "{'type':'object','properties':{" SPEC "," STATUS ",'b':{'type':'integer'}}}"
#define NEEDS  "{'type':'object','required':['status'],'properties':{" SPEC "," STATUS "}}"
#define BOTH   "{'properties':{'spec':{'pattern':'[a-z]{0,1000}[a-z]{0,1000}!'}," STATUS "}}"
#define HEAVY                                                                                      \
        "{'type':'object','properties':{'status':{'type':'string','pattern':"                      \
        "'[a-z]{0,1000}[a-z]{0,1000}!'}}}"
#define WHOLE(limit)                                                                               \
        "{'type':'object','properties':{'spec':{'type':'string'},'status':{'type':'object',"       \
        "'properties':{'a':{'type':'string'}}}}," limit "}"
        static const struct {
                const char *schema, *old, *object;
                size_t n;
        } rows[] = {
                {PLAIN, "{'metadata':{'finalizers':['a/b']}}", "{'metadata':{'finalizers':[]}}", 0},
                {PLAIN, "{}", "{'metadata':{'finalizers':[]}}", 0},
                {PLAIN, "{'metadata':{}}", "{}", 0},
                {PLAIN, "{'status':{'a':'x1'}}", "{'metadata':{},'status':{'a':'x2'}}", 0},
                {PLAIN, "{'status':{'a':'x1'}}", "{'metadata':{}}", 0},
                {PLAIN, "{'metadata':{}}", "{'status':{'a':'y'}}", 1},
                {PLAIN, "{'status':{'a':'y'}}", "{'status':{'a':'y'}}", 0},
                {PLAIN, "{'metadata':{},'b':1}", "{'metadata':{},'b':2}", 1},
                {PLAIN, "{'metadata':{}}", "{'metadata':{},'b':2}", 1},
                {PLAIN, "{'metadata':{},'b':1}", "{'metadata':{}}", 1},
                {NEEDS, "{'status':{'a':'x1'}}", "{'status':{'a':'x2'}}", 0},
                {NEEDS, "{'status':{'a':'x1'}}", "{}", 2}, /* also because a status is required */
                {WHOLE("'allOf':[" BOTH "]"), "{'metadata':{}}", "{}", 0},
                {WHOLE("'not':" BOTH), "{'metadata':{}}", "{}", 0},
                {WHOLE("'not':" BOTH), "{'status':{'a':'y'}}", "{'status':{'a':'x'}}", 1},
        };
        char *text = text_of(30000);

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                size_t n =
                        n_causes_beside("spec", text, rows[i].schema, rows[i].old, rows[i].object);
                if (n != rows[i].n)
                        fail_msg("%zu causes after %s", n, rows[i].object);
        }
        assert_int_equal(n_causes_beside("status", text, HEAVY, "{}", "{'metadata':{}}"), 0);
        assert_int_equal(n_causes_beside("status", text, HEAVY, "{'status':'a'}", "{}"), 1);
        free(text);
#undef SPEC
#undef STATUS
#undef PLAIN
#undef NEEDS
#undef BOTH
#undef HEAVY
#undef WHOLE
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_work_of_patterns_is_in_proportion_to_the_texts),
                cmocka_unit_test(
                        test_metadata_and_status_may_change_beside_texts_that_take_too_much_work),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
