/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a custom kind's schema that the rest of the server reads: fields and their types. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "server/apply/sets/element_step.h"
#include "server/apply/sets/step.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/schema/common.h"

/* "spec.list[].a": a field, "[]" elements or values. */
static const struct hfd_schema *at(const struct hfd_custom_schema *schema, const char *path) {
        const struct hfd_schema *here = hfd_custom_schema_fields(schema);
        char copy[128];

        (void)snprintf(copy, sizeof copy, "%s", path);
        for (char *rest = copy, *step; (step = strsep(&rest, ".")) != NULL;) {
                if (strcmp(step, "[]") == 0) {
                        here = here->items;
                        continue;
                }
                const struct hfd_schema_field *field = hfd_schema_field(here, step);
                if (!field)
                        fail_msg("no field %s of %s", step, path);
                here = field->schema;
        }
        return here;
}

static void test_each_type_has_its_schema(void **state) {
        static const struct {
                const char *props;
                enum hfd_schema_type type;
        } rows[] = {
                {"{'type':'string'}", HFD_SCHEMA_TEXT},
                {"{'type':'string','format':'date-time'}", HFD_SCHEMA_TEXT},
                {"{'type':'integer'}", HFD_SCHEMA_INT64},
                {"{'type':'integer','format':'int32'}", HFD_SCHEMA_INT32},
                {"{'type':'number'}", HFD_SCHEMA_NUMBER},
                {"{'type':'boolean'}", HFD_SCHEMA_BOOLEAN},
                {"{'type':'object'}", HFD_SCHEMA_STRUCT},
                {"{'type':'object','additionalProperties':true}", HFD_SCHEMA_MAP},
                {"{'type':'object','additionalProperties':{'type':'string'}}", HFD_SCHEMA_MAP},
                {"{'type':'array','items':{'type':'string'}}", HFD_SCHEMA_LIST},
                {"{'x-kubernetes-int-or-string':true}", HFD_SCHEMA_INT_OR_STRING},
                {"{'x-kubernetes-preserve-unknown-fields':true}", HFD_SCHEMA_ANY},
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hfd_custom_schema *schema = schema_of_spec(rows[i].props);
                assert_int_equal(at(schema, "spec")->type, rows[i].type);
                hfd_custom_schema_free(schema);
        }
}

static void test_fields_are_sorted(void **state) {
        struct hfd_custom_schema *schema = schema_of(
                "{'type':'object','description':'A widget.','required':['spec'],'properties':{"
                "'zone':{'type':'string','description':'Where.'},'spec':{'type':'object',"
                "'x-kubernetes-preserve-unknown-fields':true,'properties':{'b':{'type':'integer'},"
                "'a':{'type':'string'}}},'metadata':{'type':'object'},'kind':{'type':'string'}}}");
        const struct hfd_schema *root = hfd_custom_schema_fields(schema);

        (void)state;
        assert_int_equal(root->n_fields, 5);
        for (size_t i = 1; i < root->n_fields; i++)
                assert_true(strcmp(root->fields[i - 1].name, root->fields[i].name) < 0);
        assert_ptr_equal(at(schema, "metadata"), &hfd_schema_object_meta);
        assert_null(hfd_schema_field(root, "zone")
                            ->description); /* only the definition has the description */
        assert_non_null(hfd_schema_field(root, "metadata")->description);
        assert_int_equal(hfd_schema_field(root, "spec")->flags, HFD_FIELD_REQUIRED);
        assert_int_equal(hfd_schema_field(root, "zone")->flags, 0);
        assert_true(at(schema, "spec")->preserve_unknown);
        assert_false(root->preserve_unknown);
        hfd_custom_schema_free(schema);
}

static void test_lists_and_maps_have_their_types(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(
                "{'type':'object','properties':{'set':{'type':'array','x-kubernetes-list-type':"
                "'set','items':{'type':'string'}},'atomic':{'type':'object',"
                "'x-kubernetes-map-type':'atomic','properties':{'a':{'type':'string'}}},'map':{"
                "'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':["
                "'port','name'],'items':{'type':'object','properties':{'port':{'type':'integer'},"
                "'name':{'type':'string','default':'main'}}}}}}");
        const struct hfd_schema *map = at(schema, "spec.map");

        (void)state;
        assert_int_equal(at(schema, "spec.set")->list_type, HFD_LIST_SET);
        assert_true(at(schema, "spec.atomic")->atomic);
        assert_int_equal(map->list_type, HFD_LIST_MAP);
        assert_string_equal(map->list_keys[0], "name");
        assert_string_equal(map->list_keys[1], "port");
        assert_null(map->list_keys[2]);
        assert_string_equal(hf__json_text(hfd_schema_field(map->items, "name")->key_value), "main");
        hfd_custom_schema_free(schema);
}

/* The text of an element's step, in one of two static buffers in turn. */
static const char *step_text(const struct hfd_schema *list, const char *element) {
        static char texts[2][200];
        static unsigned turn;
        struct hf__arena scratch;
        struct hf__strbuf text = {0};
        struct hf__json *json = json_of(element);
        struct hfd_step step;

        hf__arena_init(&scratch);
        assert_int_equal(hfd_element_step(&scratch, list, json, 0, &step, NULL), 0);
        hfd_step_put(&step, &text);
        turn = !turn;
        (void)snprintf(texts[turn], sizeof texts[turn], "%s", text.data);
        hf__strbuf_done(&text);
        hf__arena_deinit(&scratch);
        hf__json_free(json);
        return texts[turn];
}

/* Stored elements have their defaults, and those of an apply may omit them: they must be the same
 * elements. */
static void test_a_default_of_any_type_is_the_key_of_an_element(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(
                "{'type':'object','properties':{'map':{'type':'array','x-kubernetes-list-type':"
                "'map','x-kubernetes-list-map-keys':['e','d','c','b','a','name'],'items':{'type':"
                "'object','required':['name','b'],'properties':{'name':{'type':'string'},'a':{"
                "'type':'boolean','default':false},'b':{'type':'integer','default':80},'c':{'type':"
                "'number','default':1.5},'d':{'type':'string','default':'80'},'e':{"
                "'x-kubernetes-int-or-string':true,'default':7}}}}}}");
        const struct hfd_schema *map = at(schema, "spec.map");

        (void)state;
        assert_string_equal(step_text(map, "{'name':'n'}"), "k:{\"a\":false,\"b\":80,\"c\":1.5,"
                                                            "\"d\":\"80\",\"e\":7,\"name\":\"n\"}");
        assert_string_equal(step_text(map, "{'name':'n'}"),
                            step_text(map, "{'name':'n','a':false,'b':80,'c':1.5,'d':'80','e':7}"));
        assert_string_not_equal(step_text(map, "{'name':'n'}"),
                                step_text(map, "{'name':'n','a':true}"));
        hfd_custom_schema_free(schema);
}

static void test_an_embedded_resource_has_the_fields_of_resources(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(
                "{'type':'object','x-kubernetes-embedded-resource':true,"
                "'properties':{'data':{'type':'string'},'metadata':{'type':'object'}}}");

        (void)state;
        assert_int_equal(at(schema, "spec")->n_fields, 4);
        assert_ptr_equal(at(schema, "spec.metadata"), &hfd_schema_object_meta);
        assert_int_equal(at(schema, "spec.data")->type, HFD_SCHEMA_TEXT);
        hfd_custom_schema_free(schema);
}

static void test_the_root_alone_has_a_definition(void **state) {
        struct hf__json *props =
                json_of("{'type':'object','properties':{'spec':{'type':'object'}}}");
        struct hfd_custom_schema *schema = NULL;

        (void)state;
        assert_int_equal(hfd_custom_schema_new_named(props, "com.example.v1.Widget", &schema), 0);
        assert_string_equal(hfd_custom_schema_fields(schema)->definition, "com.example.v1.Widget");
        assert_null(at(schema, "spec")->definition);
        hf__json_free(props);
        hfd_custom_schema_free(schema);
}

static void test_no_schema_keeps_everything(void **state) {
        struct hfd_custom_schema *schema = schema_of(NULL);
        struct hf__json *object = json_of("{'spec':{'a':[1]},'x':null}");

        (void)state;
        assert_true(hfd_custom_schema_fields(schema)->preserve_unknown);
        assert_int_equal(hfd_custom_schema_fields(schema)->n_fields, 3);
        assert_int_equal(hfd_custom_schema_prune(schema, object, NULL), 0);
        assert_int_equal(hfd_custom_schema_default(schema, object), 0);
        expect_json(object, "{'spec':{'a':[1]},'x':null}");
        hf__json_free(object);
        hfd_custom_schema_free(schema);
}

static void test_what_cannot_be_compiled_is_refused(void **state) {
        static const char *const rows[] = {
                "[]",
                "{'type':'file'}",
                "{'type':'object','properties':[1]}",
                "{'type':'object','properties':{'a':1}}",
                "{'type':'array','items':[{'type':'string'}]}",
                "{'type':'string','anyOf':{}}",
                "{'type':'object','required':[1]}",
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hf__json *props = json_of(rows[i]);
                struct hfd_custom_schema *schema = NULL;
                if (hfd_custom_schema_new(props, &schema) != HF_E_INVALID)
                        fail_msg("accepted: %s", rows[i]);
                assert_null(schema);
                hf__json_free(props);
        }
}

/* An older server may have accepted a pattern that this one does not. The rest of the schema stays
 * in force (test-custom-validate.c). */
static void test_only_a_stored_pattern_may_be_wrong(void **state) {
        static const char *const rows[] = {
                "{'type':'string','pattern':'('}",
                "{'type':'string','pattern':'(((a{1000}){1000}){1000})'}",
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hf__json *props = json_of(rows[i]);
                struct hfd_schema_effort effort = {0};
                struct hfd_custom_schema *schema = NULL;

                assert_int_equal(hfd_custom_schema_new_limited(props, &effort, &schema),
                                 HF_E_INVALID);
                assert_null(schema);
                assert_int_equal(hfd_custom_schema_new(props, &schema), 0);
                hfd_custom_schema_free(schema);
                hf__json_free(props);
        }
}

/* The result of validating a schema of n fields. The pattern of each begins with its number and
 * `part`. */
static int result_of_patterns(unsigned n, const char *part, unsigned n_parts) {
        struct hf__strbuf text = {0};
        struct hfd_custom_schema *schema = NULL, *stored = NULL;
        struct hfd_schema_effort effort = {0};
        struct hf__json *props;

        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{");
        for (unsigned i = 0; i < n; i++) {
                hf__strbuf_printf(&text, "%s\"f%u\":{\"type\":\"string\",\"pattern\":\"^%u",
                                  i > 0 ? "," : "", i, i);
                for (unsigned k = 0; k < n_parts; k++)
                        hf__strbuf_puts(&text, part);
                hf__strbuf_puts(&text, "\"}");
        }
        hf__strbuf_puts(&text, "}}");
        props = json_of(text.data);
        int r = hfd_custom_schema_new_limited(props, &effort, &schema);
        hfd_custom_schema_free(schema);
        /* A stored schema has no limits. */
        assert_int_equal(hfd_custom_schema_new(props, &stored), 0);
        hfd_custom_schema_free(stored);
        hf__json_free(props);
        hf__strbuf_done(&text);
        return r;
}

static void test_the_memory_of_all_patterns_of_a_schema_is_limited(void **state) {
        (void)state;
        assert_int_equal(result_of_patterns(1000, "[a-z]", 30), 0);
        assert_int_equal(result_of_patterns(10, "\\\\pL", 60), 0);
        assert_int_equal(result_of_patterns(60, "x{1000}", 4), 0);
        assert_int_equal(result_of_patterns(120, "x{1000}", 4), HF_E_TOO_LARGE);
        /* The classes take 5 KiB each, but all patterns share one. */
        assert_int_equal(result_of_patterns(100, "\\\\pL", 20), 0);
        assert_int_equal(result_of_patterns(400, "[\\\\pL\\\\pN][\\\\pL\\\\pN ]{0,60}", 1), 0);
}

/* A large kind: 500 fields, each with a name and a description of its own. */
static void test_500_fields_need_at_most_50_KiB(void **state) {
        struct hf__strbuf text = {0};
        struct hf__json *props;
        struct hfd_custom_schema *schema;

        (void)state;
        hf__strbuf_puts(&text, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
                               "\"properties\":{");
        for (int i = 0; i < 25; i++) {
                hf__strbuf_printf(&text,
                                  "%s\"group%d\":{\"type\":\"object\",\"description\":"
                                  "\"Group %d of the settings.\",\"properties\":{",
                                  i > 0 ? "," : "", i, i);
                for (int k = 0; k < 20; k++) {
                        static const char *const kinds[] =
                                {"\"type\":\"string\",\"pattern\":\"^[a-z]([-a-z0-9]*[a-z0-9])?$\"",
                                 "\"type\":\"integer\",\"minimum\":0,\"default\":1",
                                 "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
                                 "\"type\":\"string\",\"enum\":[\"A\",\"B\",\"C\"]",
                                 "\"type\":\"boolean\""};
                        hf__strbuf_printf(&text,
                                          "%s\"setting%dOf%d\":{%s,\"description\":\"What "
                                          "the setting %d of group %d is for.\"}",
                                          k > 0 ? "," : "", k, i, kinds[k % 5], k, i);
                }
                hf__strbuf_puts(&text, "}}");
        }
        hf__strbuf_puts(&text, "}}}}");
        assert_int_equal(text.error, 0);
        assert_int_equal(hf__json_parse(text.data, text.n, &props, NULL), 0);
        assert_int_equal(hfd_custom_schema_new(props, &schema), 0);
        print_message("%zu bytes\n", hfd_custom_schema_memory(schema));
        assert_in_range(hfd_custom_schema_memory(schema), 1, 50 << 10);
        hf__json_free(props);
        hf__strbuf_done(&text);
        hfd_custom_schema_free(schema);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_type_has_its_schema),
                cmocka_unit_test(test_fields_are_sorted),
                cmocka_unit_test(test_lists_and_maps_have_their_types),
                cmocka_unit_test(test_a_default_of_any_type_is_the_key_of_an_element),
                cmocka_unit_test(test_an_embedded_resource_has_the_fields_of_resources),
                cmocka_unit_test(test_the_root_alone_has_a_definition),
                cmocka_unit_test(test_no_schema_keeps_everything),
                cmocka_unit_test(test_what_cannot_be_compiled_is_refused),
                cmocka_unit_test(test_only_a_stored_pattern_may_be_wrong),
                cmocka_unit_test(test_the_memory_of_all_patterns_of_a_schema_is_limited),
                cmocka_unit_test(test_500_fields_need_at_most_50_KiB),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
