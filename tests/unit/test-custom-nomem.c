/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas and rules of custom kinds when memory runs out: nothing leaks, no schema is made in
 * part, an object with a mistake is never accepted, and one without is not refused for its values.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_blocks.h"
#include "custom_schema_fixture.h"
#include "failing_memory.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/structural.h"
#include "server/schema/strict.h"

static struct hf__json *props, *broken_props, *object, *stored;

static void use(const struct hfd_custom_schema *schema) {
        static struct hfd_causes causes;
        struct hfd_strict strict = {0};
        struct hf__json *copy = hf__json_dup(object);

        int r = copy ? hfd_custom_schema_prune(schema, copy, &strict) : -ENOMEM;
        assert_true(r == 0 || is_shortage(r));
        r = copy ? hfd_custom_schema_default(schema, copy) : -ENOMEM;
        assert_true(r == 0 || is_shortage(r));
        for (int i = 0; i < 2; i++) {
                hfd_causes_init(&causes);
                hfd_custom_schema_validate(schema, object, i == 0 ? NULL : stored, &causes);
                assert_true(causes.n > 0 || causes.error == -ENOMEM);
        }
        hf__strbuf_done(&strict.lines);
        hf__json_free(copy);
}

static void life(int n) {
        static struct hfd_causes causes;
        struct hfd_custom_schema *schema = NULL;
        struct hfd_schema_effort effort = {0};

        failing_memory_arm(n);
        int r = hfd_custom_schema_new_named(props, "com.example.v1.Widget", &schema);
        if (r == 0) {
                use(schema);
        } else {
                assert_true(is_shortage(r));
                assert_null(schema);
        }
        hfd_causes_init(&causes);
        hfd_structural_validate(broken_props, "s", &effort, &causes);
        failing_memory_disarm();
        assert_true(causes.n > 0 || causes.error == -ENOMEM);
        hfd_custom_schema_free(schema);
}

static void test_shortage_of_memory(void **state) {
        (void)state;
        props = json_of(
                "{'type':'object','properties':{'spec':{'type':'object','required':['a','b','c',"
                "'d','e','f','g','h','i'],'properties':{'a':{'type':'string','pattern':"
                "'^[a-z]{1,9}$','default':'x','description':'An a.'},'set':{'type':'array',"
                "'x-kubernetes-list-type':'set','items':{'type':'object',"
                "'x-kubernetes-map-type':'atomic','additionalProperties':{'type':'string'}}},"
                "'map':{'type':'array','x-kubernetes-list-type':'map',"
                "'x-kubernetes-list-map-keys':['k'],'items':{'type':'object','required':['k'],"
                "'properties':{'k':{'type':'string'},'v':{'type':'integer','enum':[1,2],"
                "'anyOf':[{'minimum':1},{'maximum':9}]}}}},'r':{'type':'object',"
                "'x-kubernetes-embedded-resource':true,'x-kubernetes-preserve-unknown-fields':true"
                "}}}}}");
        broken_props = json_of(
                "{'type':'object','properties':{'a':{'type':'string','pattern':'a','default':1},"
                "'b':{'type':'array'},'c':{},'d':{},'e':{},'f':{},'g':{},'h':{},'i':{},'j':{},"
                "'k':{},'l':{},'m':{},'n':{},'o':{},'p':{},'q':{}},'allOf':[{'properties':{'q':{},"
                "'r':{}}}]}");
        object = json_of("{'spec':{'a':'A','x':1,'set':[{'a':'b'},{'c':'d'},{'a':'b'}],'map':[{"
                         "'k':'b','v':3},{'k':'a','v':1}],'r':{'apiVersion':'v1','kind':'Pod',"
                         "'metadata':{'name':'a/b','y':1}}}}");
        stored = json_of("{'spec':{'map':[{'k':'a','v':1}],'set':[],'a':'B','r':{}}}");
        failing_memory_try_all(life, 20);
        hf__json_free(props);
        hf__json_free(broken_props);
        hf__json_free(object);
        hf__json_free(stored);
}

/* ---- causes that are full ---- */

/* A mistake that finds no room is not printed, so that a million of them cost next to nothing. The
 * first sixteen need some memory each. The same list twice as long needs no more, so the last
 * allocation of the short one is the last of the long one, too. */
static void test_mistakes_beyond_the_causes_are_not_printed(void **state) {
        static const struct {
                const char *items, *element;
        } cases[] = {
                {"{'type':'object','required':['a','b']}", "{}"},
                {"{'type':'string'}", "1"},
                {"{'type':'string','maxLength':1}", "'abc'"},
                {"{'type':'string','enum':['a']}", "'abc'"},
                {"{'type':'string','format':'date'}", "'abc'"},
                {"{'type':'array','maxItems':1,'items':{'type':'integer'}}", "[1,2]"},
                {"{'type':'array','minItems':1,'items':{'type':'integer'}}", "[]"},
                {"{'type':'object','maxProperties':0}", "{'a':1}"},
                {"{'type':'object','properties':{'a':{}},'additionalProperties':false}", "{'b':1}"},
                {"{'type':'integer','anyOf':[{'minimum':9}]}", "1"},
                {"{'type':'integer','not':{'minimum':0}}", "1"},
                {"{'type':'integer','multipleOf':0}", "1"},
                {"{'type':'integer','format':'int32'}", "9999999999"},
                {"{'type':'object','x-kubernetes-embedded-resource':true}", "{}"},
                {"{'type':'object','x-kubernetes-embedded-resource':true}",
                 "{'apiVersion':'','kind':''}"},
        };
        static struct hfd_causes causes;

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *spec = hf__json_array(), *whole = hf__json_object();
                struct hf__strbuf text = {0};
                int n = 0;

                hf__strbuf_printf(&text, "{'type':'array','items':%s}", cases[i].items);
                struct hfd_custom_schema *schema = schema_of_spec(text.data);
                assert_int_equal(hf__json_set(whole, "spec", spec), 0);
                for (int k = 0; k < 20; k++)
                        assert_int_equal(hf__json_append(spec, json_of(cases[i].element)), 0);
                do {
                        hfd_causes_init(&causes);
                        failing_memory_arm(n++);
                        hfd_custom_schema_validate(schema, whole, NULL, &causes);
                        failing_memory_disarm();
                } while (failing_memory_hit());
                if (causes.n != HFD_CAUSES_MAX)
                        fail_msg("%s: %zu causes", cases[i].items, causes.n);
                for (int k = 0; k < 20; k++)
                        assert_int_equal(hf__json_append(spec, json_of(cases[i].element)), 0);
                hfd_causes_init(&causes);
                failing_memory_arm(n);
                hfd_custom_schema_validate(schema, whole, NULL, &causes);
                failing_memory_disarm();
                if (failing_memory_hit())
                        fail_msg("%s: more mistakes need more memory", cases[i].items);
                hf__strbuf_done(&text);
                hf__json_free(whole);
                hfd_custom_schema_free(schema);
        }
}

/* ---- one mistake ---- */

static struct hfd_custom_schema *only_schema;

static void only_life(int n) {
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        failing_memory_arm(n);
        hfd_custom_schema_validate(only_schema, object, stored, &causes);
        failing_memory_disarm();
        assert_true(causes.error == 0 ? causes.n > 0 : failing_memory_hit());
}

/* Each object has one mistake. A check that cannot say whether the stored object has it as well, or
 * whether a schema below `not` accepts the object, does not count as good. */
static void test_one_mistake_is_never_accepted(void **state) {
        static const struct {
                const char *spec, *object, *stored;
        } cases[] = {
                {"{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}}",
                 "{'spec':['a','b','a']}", "{'spec':['a','b']}"},
                {"{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':["
                 "'k'],'items':{'type':'object','required':['k'],'properties':{'k':{'type':"
                 "'string'}}}}",
                 "{'spec':[{'k':'a'},{'k':'b'},{'k':'a'}]}", "{'spec':[{'k':'a'},{'k':'b'}]}"},
                {"{'type':'object','x-kubernetes-preserve-unknown-fields':true,'not':{'required':["
                 "'a','b','c','d','e','f','g','h','i']}}",
                 "{'spec':{'i':1,'a':1,'b':1,'c':1,'d':1,'e':1,'f':1,'g':1,'h':1}}", NULL},
                {"{'type':'object','x-kubernetes-preserve-unknown-fields':true,'not':{'enum':[{"
                 "'a':1,'b':1}]}}",
                 "{'spec':{'b':1,'a':1}}", NULL},
                {"{'type':'string','not':{'pattern':'^[a-c]{1,9}$'}}", "{'spec':'abc'}", NULL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                only_schema = schema_of_spec(cases[i].spec);
                object = json_of(cases[i].object);
                stored = json_of(cases[i].stored);
                failing_memory_try_all(only_life, 1);
                hfd_custom_schema_free(only_schema);
                hf__json_free(object);
                hf__json_free(stored);
        }
}

/* ---- rules ---- */

static struct hfd_custom_rules *rules;

static void rules_life(int n) {
        static struct hfd_causes causes;

        hfd_causes_init(&causes);
        failing_memory_arm(n);
        int r = hfd_custom_rules_check(rules, object, NULL, &causes);
        failing_memory_disarm();
        if (r == 0)
                assert_int_equal(causes.n, 0);
        else
                assert_true(is_shortage(r) && failing_memory_hit());
}

/* A value that could not be read breaks no rule. */
static void test_a_shortage_breaks_no_rule(void **state) {
        (void)state;
        props = json_of("{'type':'object','properties':{'spec':{'type':'string','format':'byte',"
                        "'maxLength':9,'x-kubernetes-validations':[{'rule':'size(self) == 3'}]}}}");
        assert_int_equal(hfd_custom_rules_new(props, "s", NULL, NULL, &rules), 0);
        object = json_of("{'spec':'YWJj'}");
        failing_memory_try_all(rules_life, 1);
        hfd_custom_rules_free(rules);
        hf__json_free(props);
        hf__json_free(object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shortage_of_memory),
                cmocka_unit_test(test_mistakes_beyond_the_causes_are_not_printed),
                cmocka_unit_test(test_one_mistake_is_never_accepted),
                cmocka_unit_test(test_a_shortage_breaks_no_rule),
        };

        hf__json_blocks_init(); /* allocations of cJSON fail, too */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
