/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown fields of custom resources are removed and reported, defaults are added, and objects that
 * need neither are recognized. */
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
#include "server/resources/objects/object.h"
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

/* A list of a few KiB would get many MiB: from a text, from the keys of a map, or from the names of
 * the fields themselves. */
static void test_long_defaults_cannot_grow_an_object_without_limit(void **state) {
        static const struct {
                const char *before, *after; /* of the long text in the schema of the elements */
                const char *element;
        } cases[] = {
                {"{'type':'object','properties':{'a':{'type':'string','default':'", "'}}}", "{}"},
                {"{'type':'object','properties':{'a':{'type':'object','additionalProperties':{"
                 "'type':'boolean'},'default':{'",
                 "':true}}}}", "{}"},
                {"{'type':'object','properties':{'", "':{'type':'boolean','default':true}}}", "{}"},
                {"{'type':'string','default':'", "'}", "null"},
        };
        static char text[4097];

        (void)state;
        memset(text, 'x', sizeof text - 1);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *list = hf__json_array(), *object = hf__json_object();
                struct hf__strbuf props = {0};

                hf__strbuf_puts(&props, "{'type':'array','items':");
                hf__strbuf_puts(&props, cases[i].before);
                hf__strbuf_puts(&props, text);
                hf__strbuf_puts(&props, cases[i].after);
                hf__strbuf_puts(&props, "}");
                struct hfd_custom_schema *schema = schema_of_spec(props.data);
                for (size_t k = 0; k < HFD_CUSTOM_DEFAULT_BYTES_MAX / (sizeof text - 1) + 1; k++)
                        assert_int_equal(hf__json_append(list, json_of(cases[i].element)), 0);
                assert_int_equal(hf__json_set(object, "spec", list), 0);
                assert_int_equal(hfd_custom_schema_default(schema, object), HF_E_TOO_LARGE);
                hf__strbuf_done(&props);
                hf__json_free(object);
                hfd_custom_schema_free(schema);
        }
}

/* ---- objects that have the form already ---- */

/* Returns the stored form of the object, with the members that clients may leave out. */
static struct hf__buf *stored_form(const struct hf__json *object) {
        static const struct hfd_resource row = {.group = "example.com",
                                                .version = "v1",
                                                .kind = "Gadget"};
        struct hf__buf *bytes = hfd_object_encode(&row, object);

        assert_non_null(bytes);
        return bytes;
}

static bool is_formed(const struct hfd_custom_schema *schema, const struct hf__buf *bytes) {
        return hfd_custom_schema_is_formed(schema, bytes->data, bytes->n);
}

/* Checks that an object is recognized as formed only if pruning and defaulting do not change it.
 * expects_formed: the object must be recognized after both. */
static void check_form(const char *schema_text, const char *object_text, bool expects_formed) {
        struct hfd_custom_schema *schema = schema_of_spec(schema_text);
        struct hf__json *object = json_of(object_text);
        struct hf__buf *before = stored_form(object);

        assert_int_equal(hfd_custom_schema_prune(schema, object, NULL), 0);
        assert_int_equal(hfd_custom_schema_default(schema, object), 0);
        struct hf__buf *after = stored_form(object);
        bool changed = before->n != after->n || memcmp(before->data, after->data, after->n) != 0;
        if (changed)
                assert_false(is_formed(schema, before));
        if (expects_formed && !is_formed(schema, after))
                fail_msg("not recognized: %s", after->data);
        hf__buf_unref(before);
        hf__buf_unref(after);
        hf__json_free(object);
        hfd_custom_schema_free(schema);
}

static void test_the_form_of_a_schema_is_recognized(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof pruned / sizeof pruned[0]; i++)
                check_form(pruned[i].schema, pruned[i].object,
                           !strstr(pruned[i].schema, "embedded"));
        for (size_t i = 0; i < sizeof defaulted / sizeof defaulted[0]; i++)
                check_form(defaulted[i].schema, defaulted[i].object, true);
}

#define HEAD "{\"kind\":\"K\",\"apiVersion\":\"v\",\"metadata\":{\"name\":\"n\"}"

static void test_other_texts_are_left_to_the_parser(void **state) {
        static const struct {
                const char *text;
                bool formed;
        } rows[] = {
                {HEAD "}", true},
                {HEAD ",\"spec\":{\"a\":\"\\n\\\"\\\\\",\"d\":-7}}", true},
                {HEAD ",\"spec\":{\"a\":\"\xc3\xa4\",\"d\":123456789012345}}", true},
                {HEAD ",\"spec\":{\"p\":{\"k\":{\"\\n\":[{},[],null,true,{\"x\":0}]}},\"d\":0}}",
                 true},
                {HEAD ",\"spec\":{\"p\":{},\"d\":0}} ", false},
                {HEAD ",\"spec\":{\"d\":0,\"a\": \"\"}}", false},
                {HEAD ",\"spec\":{\"d\":0,\"a\":\"\\u0041\"}}", false},
                {HEAD ",\"spec\":{\"d\":0,\"a\":\"\\/\"}}", false},
                {HEAD ",\"spec\":{\"d\":0,\"a\":\"\xff\"}}", false},
                {HEAD ",\"spec\":{\"d\":0,\"a\":\"\x01\"}}", false},
                {HEAD ",\"spec\":{\"\\n\":0,\"d\":0}}", false},
                {HEAD ",\"spec\":{\"a\":\"d\"}}", false},
                {HEAD ",\"spec\":{\"d\":1.5}}", false},
                {HEAD ",\"spec\":{\"d\":-0}}", false},
                {HEAD ",\"spec\":{\"d\":01}}", false},
                {HEAD ",\"spec\":{\"d\":1e2}}", false},
                {HEAD ",\"spec\":{\"d\":1234567890123456}}", false},
                {HEAD ",\"spec\":{\"d\":nul}}", false},
                {HEAD ",\"spec\":{\"d\":0,}}", false},
                {HEAD ",\"spec\":{\"d\":0}", false},
                {HEAD ",\"spec\":{\"d\":0", false},
                {HEAD ",\"spec\":{\"d\":", false},
                {HEAD ",\"spec\":{\"d", false},
                {HEAD ",\"kind\":\"K\"}", false},
                {HEAD ",\"metadata\":{}}", false},
                {HEAD "]", false},
                {"{\"apiVersion\":\"v\",\"kind\":\"K\",\"metadata\":{}}", false},
                {"{\"kind\":\"K\",\"apiVersion\":\"v\",\"metadata\":{\"resourceVersion\":\"1\"}}",
                 false},
                {"{\"kind\":\"K\",\"apiVersion\":\"v\",\"metadata\":{\"labels\":null}}", false},
                {"", false},
                {"[]", false},
        };
        struct hfd_custom_schema *schema = schema_of_spec(
                "{'type':'object','properties':{'a':{'type':'string'},'d':{'type':'integer',"
                "'default':7},'p':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}}");

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                /* without the NUL, so that a read behind the text is found */
                size_t n = strlen(rows[i].text);
                char *text = malloc(n > 0 ? n : 1);
                assert_non_null(text);
                memcpy(text, rows[i].text, n);
                if (hfd_custom_schema_is_formed(schema, text, n) != rows[i].formed)
                        fail_msg("%s", rows[i].text);
                free(text);
        }
        hfd_custom_schema_free(schema);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unknown_fields_are_removed_and_reported),
                cmocka_unit_test(test_defaults_are_added),
                cmocka_unit_test(test_defaults_cannot_grow_an_object_without_limit),
                cmocka_unit_test(test_long_defaults_cannot_grow_an_object_without_limit),
                cmocka_unit_test(test_the_form_of_a_schema_is_recognized),
                cmocka_unit_test(test_other_texts_are_left_to_the_parser),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
