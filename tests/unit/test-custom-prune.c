/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown fields of custom resources are removed and reported, and defaults are added. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "server/schema/strict.h"

struct row {
        const char *schema; /* of spec */
        const char *object, *expected;
        const char *unknown; /* the fields that are reported */
};

static const struct row pruned[] = {
        {"{'type':'object','properties':{'a':{'type':'string'}}}",
         "{'apiVersion':'v','kind':'K','metadata':{'name':'n','x':1},'spec':{'a':1,'b':{}},'c':2}",
         "{'apiVersion':'v','kind':'K','metadata':{'name':'n','x':1},'spec':{'a':1}}",
         "unknown field \"spec.b\"\nunknown field \"c\""},
        {"{'type':'object','x-kubernetes-preserve-unknown-fields':true,'properties':{'a':{"
         "'type':'object','properties':{'x':{'type':'string'}}}}}",
         "{'spec':{'a':{'x':1,'y':2},'b':{'c':1}}}", "{'spec':{'a':{'x':1},'b':{'c':1}}}",
         "unknown field \"spec.a.y\""},
        {"{'type':'object','additionalProperties':{'type':'object','properties':{'x':{"
         "'type':'string'}}}}",
         "{'spec':{'k':{'x':1,'y':2}}}", "{'spec':{'k':{'x':1}}}", "unknown field \"spec.k.y\""},
        {"{'type':'object','additionalProperties':true}", "{'spec':{'k':{'x':1},'s':'t'}}",
         "{'spec':{'k':{},'s':'t'}}", "unknown field \"spec.k.x\""},
        {"{'type':'array','items':{'type':'object','properties':{'x':{'type':'string'}}}}",
         "{'spec':[{'x':1},{'y':2},3]}", "{'spec':[{'x':1},{},3]}", "unknown field \"spec[1].y\""},
        {"{'type':'array','x-kubernetes-preserve-unknown-fields':true,'items':{'type':'object',"
         "'properties':{'x':{'type':'object'}}}}",
         "{'spec':[{'x':{'z':1},'y':2}]}", "{'spec':[{'x':{},'y':2}]}",
         "unknown field \"spec[0].x.z\""},
        {"{'x-kubernetes-int-or-string':true}", "{'spec':{'a':1}}", "{'spec':{}}",
         "unknown field \"spec.a\""},
        {"{'type':'object','x-kubernetes-embedded-resource':true,'properties':{'a':{"
         "'type':'string'}}}",
         "{'spec':{'apiVersion':'v1','kind':'X','metadata':{'name':'n','x':1,'labels':{'l':'m'}},"
         "'a':'b','c':1}}",
         "{'spec':{'apiVersion':'v1','kind':'X','metadata':{'name':'n','labels':{'l':'m'}},"
         "'a':'b'}}",
         "unknown field \"spec.metadata.x\"\nunknown field \"spec.c\""},
        {"{'type':'object','x-kubernetes-embedded-resource':true,"
         "'x-kubernetes-preserve-unknown-fields':true}",
         "{'spec':{'kind':7,'metadata':{'name':7,'x':1},'c':1}}",
         "{'spec':{'kind':7,'metadata':{'name':7,'x':1},'c':1}}", ""},
};

static void test_unknown_fields_are_removed_and_reported(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof pruned / sizeof pruned[0]; i++) {
                struct hfd_custom_schema *schema = schema_of_spec(pruned[i].schema);
                struct hf__json *object = json_of(pruned[i].object),
                                *again = json_of(pruned[i].object);
                struct hfd_strict strict = {0};

                assert_int_equal(hfd_custom_schema_prune(schema, object, &strict), 0);
                expect_json(object, pruned[i].expected);
                assert_string_equal(strict.lines.data ? strict.lines.data : "", pruned[i].unknown);
                assert_int_equal(hfd_custom_schema_prune(schema, again, NULL), 0);
                expect_json(again, pruned[i].expected);
                hf__strbuf_done(&strict.lines);
                hf__json_free(object);
                hf__json_free(again);
                hfd_custom_schema_free(schema);
        }
}

static const struct row defaulted[] = {
        {"{'type':'object','default':{},'properties':{'a':{'type':'string','default':'x'},'b':{"
         "'type':'object','properties':{'c':{'type':'integer','default':7}}}}}",
         "{}", "{'spec':{'a':'x'}}", NULL},
        {"{'type':'object','properties':{'a':{'type':'string','default':'x'},'b':{"
         "'type':'object','properties':{'c':{'type':'integer','default':7}}}}}",
         "{'spec':{'a':'y','b':{}}}", "{'spec':{'a':'y','b':{'c':7}}}", NULL},
        {"{'type':'object','properties':{'a':{'type':'string','default':'x'},'b':{'type':'string'},"
         "'n':{'type':'string','nullable':true,'default':'x'},'m':{'type':'string','nullable':true"
         "}}}",
         "{'spec':{'a':null,'b':null,'n':null,'m':null,'u':null}}",
         "{'spec':{'a':'x','n':null,'m':null,'u':null}}", NULL},
        {"{'type':'array','items':{'type':'object','default':{'b':1},'properties':{'a':{"
         "'type':'string','default':'x'},'b':{'type':'integer'}}}}",
         "{'spec':[{},null,{'a':'y'}]}", "{'spec':[{'a':'x'},{'a':'x','b':1},{'a':'y'}]}", NULL},
        {"{'type':'array','items':{'type':'string'}}", "{'spec':['a',null]}", "{'spec':['a',null]}",
         NULL},
        {"{'type':'object','additionalProperties':{'type':'string'}}",
         "{'spec':{'a':null,'b':'c'}}", "{'spec':{'b':'c'}}", NULL},
        {"{'type':'object','additionalProperties':{'type':'object','properties':{'a':{"
         "'type':'string','default':'x'}}}}",
         "{'spec':{'k':{},'l':{'a':'y'}}}", "{'spec':{'k':{'a':'x'},'l':{'a':'y'}}}", NULL},
        {"{'type':'object','properties':{'a':{'type':'boolean','default':false},'b':{"
         "'type':'boolean','default':true},'c':{'type':'integer','default':0},'d':{"
         "'type':'string','default':''},'e':{'type':'array','items':{'type':'string'},"
         "'default':['x']},'f':{'type':'string','default':'f'},'g':{'type':'string','default':'g'},"
         "'h':{'type':'string','default':'h'},'i':{'type':'string','default':'i'}}}",
         "{'spec':{'d':'e','i':'j'}}",
         "{'spec':{'d':'e','i':'j','a':false,'b':true,'c':0,'e':['x'],'f':'f','g':'g','h':'h'}}",
         NULL},
        /* A default is pruned by the schema of its field. */
        {"{'type':'object','default':{'a':'y','z':1},'properties':{'a':{'type':'string'}}}", "{}",
         "{'spec':{'a':'y'}}", NULL},
};

static void test_defaults_are_added(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof defaulted / sizeof defaulted[0]; i++) {
                struct hfd_custom_schema *schema = schema_of_spec(defaulted[i].schema);
                struct hf__json *object = json_of(defaulted[i].object);

                assert_int_equal(hfd_custom_schema_default(schema, object), 0);
                expect_json(object, defaulted[i].expected);
                hf__json_free(object);
                hfd_custom_schema_free(schema);
        }
}

static void test_defaults_cannot_grow_an_object_without_limit(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(
                "{'type':'array','items':{'type':'object','properties':{'a':{'type':'array',"
                "'items':{'type':'integer'},'default':[1,2,3,4,5,6,7,8,9]}}}}");
        struct hf__json *list = hf__json_array(), *object = hf__json_object();

        (void)state;
        for (size_t i = 0; i < HFD_CUSTOM_DEFAULTS_MAX / 10 + 1; i++)
                assert_int_equal(hf__json_append(list, hf__json_object()), 0);
        assert_int_equal(hf__json_set(object, "spec", list), 0);
        assert_int_equal(hfd_custom_schema_default(schema, object), HF_E_TOO_LARGE);
        hf__json_free(object);
        hfd_custom_schema_free(schema);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unknown_fields_are_removed_and_reported),
                cmocka_unit_test(test_defaults_are_added),
                cmocka_unit_test(test_defaults_cannot_grow_an_object_without_limit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
