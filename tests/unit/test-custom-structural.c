/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for the schemas of custom kinds, with the messages of kube-apiserver. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/structural.h"

struct row {
        const char *props; /* the schema of the field f; after a "=", the whole schema */
        const char *causes;
};

#define F "s.properties[f]"

static void check_rows(const struct row *rows, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char text[2048];
                if (rows[i].props[0] == '=')
                        (void)snprintf(text, sizeof text, "%s", rows[i].props + 1);
                else
                        (void)snprintf(text, sizeof text, "{'type':'object','properties':{'f':%s}}",
                                       rows[i].props);
                struct hf__json *props = json_of(text);
                struct hfd_schema_effort effort = {0};
                struct hfd_causes causes = {.n = 0};
                hfd_structural_validate(props, "s", &effort, &causes);
                expect_causes(&causes, rows[i].causes);
                hf__json_free(props);
        }
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

static const struct row valid[] = {
        {"{'type':'string'}", ""},
        {"{'type':'object','additionalProperties':{'type':'string'}}", ""},
        {"{'type':'object','additionalProperties':true}", ""},
        {"{'type':'object','properties':{'a':{'type':'string'}},'additionalProperties':true}", ""},
        {"{'x-kubernetes-int-or-string':true,'anyOf':[{'type':'integer'},{'type':'string'}],"
         "'pattern':'^x'}",
         ""},
        {"{'x-kubernetes-int-or-string':true,'allOf':[{'anyOf':[{'type':'integer'},"
         "{'type':'string'}]},{'pattern':'^x'}]}",
         ""},
        {"{'x-kubernetes-preserve-unknown-fields':true}", ""},
        {"{'type':'object','x-kubernetes-embedded-resource':true,"
         "'x-kubernetes-preserve-unknown-fields':true}",
         ""},
        {"{'type':'string','format':'whatever','title':'t','description':'d','nullable':true}", ""},
        {"{'type':'object','oneOf':[{'required':['a']},{'required':['b']}],'properties':{'a':{"
         "'type':'string'},'b':{'type':'string'}}}",
         ""},
        {"={'type':'object','properties':{'metadata':{'type':'object','properties':{'name':{"
         "'type':'string','pattern':'^a'}}},'kind':{'type':'string'}},'anyOf':[{'properties':{"
         "'kind':{'enum':['K']}}}]}",
         ""},
        {"={'type':'object','x-kubernetes-preserve-unknown-fields':true}", ""},
};

static void test_structural_schemas_have_no_cause(void **state) {
        (void)state;
        CHECK(valid);
}

static const struct row types[] = {
        {"={}", "s.type: Required value: must not be empty at the root"},
        {"={'type':'array','items':{'type':'string'}}",
         "s.type: Invalid value: \"array\": must be object at the root"},
        {"={'type':'object','additionalProperties':true}",
         "s.additionalProperties: Forbidden: must not be used at the root"},
        {"{}", F ".type: Required value: must not be empty for specified object fields"},
        {"{'type':'array'}", F ".items: Required value: must be specified"},
        {"{'type':'array','items':{}}",
         F ".items.type: Required value: must not be empty for specified array items"},
        {"{'type':'object','additionalProperties':{}}",
         F ".additionalProperties.type: Required value: must not be empty for specified object "
           "fields"},
        {"{'type':'file'}",
         F ".type: Unsupported value: \"file\": supported values: \"array\", \"boolean\", "
           "\"integer\", \"number\", \"object\", \"string\""},
        {"{'type':'null'}",
         F ".type: Unsupported value: \"null\": supported values: \"array\", \"boolean\", "
           "\"integer\", \"number\", \"object\", \"string\"\n" F
           ".type: Forbidden: type cannot be set to null, use nullable as an alternative"},
        {"{'x-kubernetes-int-or-string':true,'x-kubernetes-preserve-unknown-fields':true}",
         F ".x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if "
           "x-kubernetes-int-or-string is true"},
        {"{'x-kubernetes-embedded-resource':true,'x-kubernetes-preserve-unknown-fields':true}",
         F ".type: Required value: must be object if x-kubernetes-embedded-resource is true"},
        {"{'type':'string','x-kubernetes-embedded-resource':true,"
         "'x-kubernetes-preserve-unknown-fields':true}",
         F ".type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is "
           "true"},
        {"{'type':'object','x-kubernetes-embedded-resource':true}",
         F ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is "
           "true without x-kubernetes-preserve-unknown-fields"},
        {"{'type':'object','x-kubernetes-embedded-resource':true,'additionalProperties':true,"
         "'properties':{'a':{'type':'string'}}}",
         F ".additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource "
           "is set"},
        {"={'type':'object','properties':{'kind':{'type':'integer'},'apiVersion':{'type':"
         "'integer'},'metadata':{'type':'string'}}}",
         "s.properties[kind].type: Invalid value: \"integer\": must be string\n"
         "s.properties[apiVersion].type: Invalid value: \"integer\": must be string\n"
         "s.properties[metadata].type: Invalid value: \"string\": must be object"},
        {"={'type':'object','properties':{'metadata':{'type':'object','properties':{'labels':{"
         "'type':'object'}}}}}",
         "s.properties[metadata]: Forbidden: must not specify anything other than name and "
         "generateName, but metadata is implicitly specified"},
        {"{'x-kubernetes-preserve-unknown-fields':false,'type':'object'}",
         F ".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or "
           "undefined"},
};

static void test_types_and_metadata(void **state) {
        (void)state;
        CHECK(types);
}

static const struct row nested[] = {
        {"{'type':'string','allOf':[{'type':'string'}]}",
         F ".allOf[0].type: Forbidden: must be empty to be structural"},
        {"{'type':'string','anyOf':[{'description':'d','title':'t','nullable':true}]}",
         F ".anyOf[0].description: Forbidden: must be empty to be structural\n" F
           ".anyOf[0].title: Forbidden: must be empty to be structural\n" F
           ".anyOf[0].nullable: Forbidden: must be false to be structural"},
        {"{'type':'string','not':{'default':'x'}}",
         F ".not.default: Forbidden: must be undefined to be structural"},
        {"{'type':'object','oneOf':[{'additionalProperties':{}}]}",
         F ".oneOf[0].additionalProperties: Forbidden: must be undefined to be structural"},
        {"{'type':'object','oneOf':[{'additionalProperties':true}]}",
         F ".oneOf[0].additionalProperties: Forbidden: must be undefined to be structural"},
        {"{'type':'object','oneOf':[{'additionalProperties':false}]}", ""},
        {"{'type':'string','allOf':[{'x-kubernetes-int-or-string':true,"
         "'x-kubernetes-validations':[{'rule':'true'}]}]}",
         F ".allOf[0].x-kubernetes-int-or-string: Forbidden: must be false to be structural\n" F
           ".allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"},
        {"{'type':'string','anyOf':[{'type':'integer'},{'type':'string'},{'type':'boolean'}]}",
         F ".anyOf[0].type: Forbidden: must be empty to be structural\n" F
           ".anyOf[1].type: Forbidden: must be empty to be structural\n" F
           ".anyOf[2].type: Forbidden: must be empty to be structural"},
        {"={'type':'object','allOf':[{'properties':{'a':{'minLength':1}}}]}",
         "s.properties[a]: Required value: because it is defined in s.allOf[0].properties[a]"},
        {"={'type':'object','not':{'properties':{'metadata':{'required':['x']}}}}",
         "s.not.properties[metadata]: Forbidden: must not be specified in a nested context\n"
         "s.properties[metadata]: Required value: because it is defined in "
         "s.not.properties[metadata]"},
        {"={'type':'object','properties':{'l':{'type':'array','items':{'type':'string'}}},'anyOf':"
         "[{'properties':{'l':{'items':{'minLength':1}}}}]}",
         ""},
};

static void test_value_validations(void **state) {
        (void)state;
        CHECK(nested);
}

static const struct row keywords[] = {
        {"{'type':'string','id':'x'}", F ".id: Forbidden: id is not supported"},
        {"{'type':'string','$ref':'#/x'}", F ".$ref: Forbidden: $ref is not supported"},
        {"{'type':'object','patternProperties':{'^a':{}}}",
         F ".patternProperties: Forbidden: patternProperties is not supported"},
        {"{'type':'object','dependencies':{'a':['b']}}",
         F ".dependencies: Forbidden: dependencies is not supported"},
        {"{'type':'object','definitions':{'a':{}}}",
         F ".definitions: Forbidden: definitions is not supported"},
        {"{'type':'array','items':{'type':'string'},'additionalItems':true,'uniqueItems':true}",
         F ".additionalItems: Forbidden: additionalItems is not supported\n" F
           ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
           "complexity becomes quadratic"},
        {"{'type':'array','items':[{'type':'string'}]}",
         F ".items: Forbidden: items must be a schema object and not an array"},
        {"{'type':'object','properties':{'a':{'type':'string'}},'additionalProperties':{"
         "'type':'string'}}",
         F ".additionalProperties: Forbidden: additionalProperties and properties are mutual "
           "exclusive"},
        {"{'type':'string','pattern':'a)'}",
         F ".pattern: Invalid value: \"a)\": must be a valid regular expression, but isn't: error "
           "parsing regexp: unexpected ): `a)`"},
};

static void test_keywords(void **state) {
        (void)state;
        CHECK(keywords);
}

#define LIST "{'type':'array','x-kubernetes-list-type':"

static const struct row lists[] = {
        {"{'type':'string','x-kubernetes-list-type':'set'}",
         F ".type: Invalid value: \"string\": must be array if x-kubernetes-list-type is "
           "specified"},
        {"{'type':'string','x-kubernetes-map-type':'atomic'}",
         F ".type: Invalid value: \"string\": must be object if x-kubernetes-map-type is "
           "specified"},
        {"{'type':'object','x-kubernetes-map-type':'x'}",
         F ".x-kubernetes-map-type: Unsupported value: \"x\": supported values: \"atomic\", "
           "\"granular\""},
        {LIST "'x','items':{'type':'string'}}",
         F ".x-kubernetes-list-type: Unsupported value: \"x\": supported values: \"atomic\", "
           "\"set\", \"map\""},
        {LIST "'set','items':{'type':'object','nullable':true}}",
         F ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list "
           "with x-kubernetes-list-type=set\n" F
           ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"},
        {LIST "'map','items':{'type':'object'}}",
         F ".x-kubernetes-list-map-keys: Required value: must not be empty if "
           "x-kubernetes-list-type is map"},
        {LIST "'map','x-kubernetes-list-map-keys':['a'],'items':{'type':'string'}}",
         F ".items.type: Invalid value: \"string\": must be object if parent array's "
           "x-kubernetes-list-type is map"},
        {LIST "'map','x-kubernetes-list-map-keys':['a','b','b'],'items':{'type':'object',"
              "'required':['b'],'properties':{'b':{'type':'string'}}}}",
         F ".x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"b\"]: entries must all be "
           "names of item properties\n" F
           ".x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"b\"]: must not contain "
           "duplicate entries"},
        {LIST "'map','x-kubernetes-list-map-keys':['a','b'],'items':{'type':'object',"
              "'required':['a'],'properties':{'a':{'type':'array','items':{'type':'string'}},"
              "'b':{'type':'string','nullable':true}}}}",
         F ".items.properties[a].type: Invalid value: \"object\": must be a scalar type if parent "
           "array's x-kubernetes-list-type is map\n" F
           ".items.properties[b].default: Required value: this property is in "
           "x-kubernetes-list-map-keys, so it must have a default or be a required property\n" F
           ".items.properties[b].nullable: Forbidden: this property is in "
           "x-kubernetes-list-map-keys, so it cannot be nullable"},
        {LIST "'map','x-kubernetes-list-map-keys':['a'],'items':{'type':'object','properties':{"
              "'a':{'type':'string','default':'x'}}}}",
         ""},
        {"{'type':'array','x-kubernetes-list-map-keys':['a'],'items':{'type':'object'}}",
         F ".x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is "
           "non-empty"},
};

static void test_list_and_map_types(void **state) {
        (void)state;
        CHECK(lists);
}

static const struct row defaults[] = {
        {"{'type':'string','default':'x'}", ""},
        {"{'type':'integer','default':'x'}",
         F ".default: Invalid value: \"string\":  in body must be of type integer: \"string\""},
        {"{'type':'object','default':{'a':1},'properties':{'a':{'type':'string'}}}",
         F ".default.a: Invalid value: \"integer\": a in body must be of type string: "
           "\"integer\""},
        {"{'type':'object','default':{'a':'x','b':1},'properties':{'a':{'type':'string'}}}",
         F ".default: Invalid value: {\"a\":\"x\",\"b\":1}: must not have unknown fields"},
        {"{'type':'object','default':{},'required':['a'],'properties':{'a':{'type':'string'}}}",
         F ".default.a: Required value"},
        {"{'type':'array','items':{'type':'string','default':1}}",
         F ".items.default: Invalid value: \"integer\":  in body must be of type string: "
           "\"integer\""},
        {"={'type':'object','properties':{'metadata':{'type':'object','default':{}},'kind':{"
         "'type':'string','default':'K'}}}",
         "s.properties[metadata].default: Forbidden: must not be set in top-level metadata\n"
         "s.properties[kind].default: Forbidden: must not be set in top-level kind"},
};

static void test_defaults(void **state) {
        (void)state;
        CHECK(defaults);
}

/* Value validations look each of their properties up in an index. Without it, each of 20000
 * look-ups would compare up to 20000 names. */
static void test_large_schemas_are_checked(void **state) {
        struct hf__strbuf text = {0};
        struct hfd_schema_effort effort = {0};
        struct hfd_causes causes = {.n = 0};
        struct hf__json *props;

        (void)state;
        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{");
        for (int i = 0; i < 20000; i++)
                hf__strbuf_printf(&text, "%s\"p%d\":{\"type\":\"string\"}", i > 0 ? "," : "", i);
        hf__strbuf_puts(&text, "},\"allOf\":[");
        for (int i = 0; i < 20000; i++)
                hf__strbuf_printf(&text, "%s{\"properties\":{\"p%d\":{\"minLength\":1}}}",
                                  i > 0 ? "," : "", 19999 - i);
        hf__strbuf_puts(&text, "]}");
        assert_int_equal(hf__json_parse(text.data, text.n, &props, NULL), 0);
        hfd_structural_validate(props, "s", &effort, &causes);
        assert_int_equal(causes.n, 0);
        hf__json_free(props);
        hf__strbuf_done(&text);
}

/* Checks a schema of n fields whose patterns have 30 classes, which takes more than 100,000 steps.
 */
static void check_dear_patterns(unsigned n, bool differ, struct hfd_schema_effort *effort,
                                struct hfd_causes *causes) {
        struct hf__strbuf text = {0};
        struct hf__json *props;

        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{");
        for (unsigned i = 0; i < n; i++) {
                hf__strbuf_printf(&text, "%s\"f%u\":{\"type\":\"string\",\"pattern\":\"(?i)%u[",
                                  i > 0 ? "," : "", i, differ ? i : 0);
                for (int k = 0; k < 30; k++)
                        hf__strbuf_puts(&text, "\\\\pL");
                hf__strbuf_puts(&text, "]\"}");
        }
        hf__strbuf_puts(&text, "}}");
        props = json_of(text.data);
        hfd_structural_validate(props, "s", effort, causes);
        hf__json_free(props);
        hf__strbuf_done(&text);
}

static void test_the_work_of_all_patterns_is_limited(void **state) {
        static struct hfd_causes causes;
        struct hfd_schema_effort effort = {0};

        (void)state;
        hfd_causes_init(&causes);
        check_dear_patterns(10, true, &effort, &causes);
        assert_int_equal(causes.n, 0);
        assert_true(effort.work > 2000000);
        /* Another schema of the definition. */
        check_dear_patterns(4000, true, &effort, &causes);
        assert_true(effort.work > HFD_SCHEMA_WORK_MAX);
        assert_true(effort.work < HFD_SCHEMA_WORK_MAX + 300000);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].text,
                            "Forbidden: the patterns and rules of the definition take more than "
                            "10,000,000 steps of work to compile in all");
        hfd_causes_init(&causes);
        effort = (struct hfd_schema_effort){0};
        check_dear_patterns(4000, false, &effort, &causes);
        assert_int_equal(causes.n, 0);
        assert_true(effort.work < 600000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_structural_schemas_have_no_cause),
                cmocka_unit_test(test_types_and_metadata),
                cmocka_unit_test(test_value_validations),
                cmocka_unit_test(test_keywords),
                cmocka_unit_test(test_list_and_map_types),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_large_schemas_are_checked),
                cmocka_unit_test(test_the_work_of_all_patterns_is_limited),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
