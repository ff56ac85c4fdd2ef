/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of custom kinds are validated, with the messages of kube-apiserver. */
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

#include "base/strbuf.h"
#include "custom_schema_fixture.h"
#include "server/resources/custom/schema/check/compared.h"

struct row {
        const char *schema; /* of spec */
        const char *spec;
        const char *causes;
};

static void check_rows(const struct row *rows, size_t n) {
        for (size_t i = 0; i < n; i++)
                expect_validation(rows[i].schema, rows[i].spec, NULL, rows[i].causes);
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

#define S(text) "{'type':'string'," text "}"
#define I(text) "{'type':'integer'," text "}"
#define N(text) "{'type':'number'," text "}"

static const struct row types[] = {
        {"{'type':'string'}", "'a'", ""},
        {"{'type':'string'}", "1",
         "spec: Invalid value: \"integer\": spec in body must be of type string: \"integer\""},
        {"{'type':'string'}", "1.5",
         "spec: Invalid value: \"number\": spec in body must be of type string: \"number\""},
        {"{'type':'string'}", "null",
         "spec: Invalid value: \"null\": spec in body must be of type string: \"null\""},
        {"{'type':'string','nullable':true}", "null", ""},
        {"{'type':'integer'}", "'1'",
         "spec: Invalid value: \"string\": spec in body must be of type integer: \"string\""},
        {"{'type':'integer'}", "1.0", ""},
        {"{'type':'number'}", "1", ""},
        {"{'type':'number'}", "true",
         "spec: Invalid value: \"boolean\": spec in body must be of type number: \"boolean\""},
        {"{'type':'boolean'}", "[]",
         "spec: Invalid value: \"array\": spec in body must be of type boolean: \"array\""},
        {"{'type':'array','items':{'type':'string'}}", "{}",
         "spec: Invalid value: \"object\": spec in body must be of type array: \"object\""},
        {"{'type':'object'}", "[]",
         "spec: Invalid value: \"array\": spec in body must be of type object: \"array\""},
        {"{'type':'array','items':{'type':'string'}}", "['a',1]",
         "spec[1]: Invalid value: \"integer\": spec[1] in body must be of type string: "
         "\"integer\""},
        {"{'type':'object','properties':{'a':{'type':'string'}}}", "{'a':1}",
         "spec.a: Invalid value: \"integer\": spec.a in body must be of type string: "
         "\"integer\""},
        {"{'type':'object','additionalProperties':{'type':'string'}}", "{'x.y':1}",
         "spec.x.y: Invalid value: \"integer\": spec.x.y in body must be of type string: "
         "\"integer\""},
        {"{'x-kubernetes-int-or-string':true}", "1", ""},
        {"{'x-kubernetes-int-or-string':true}", "'a'", ""},
        {"{'x-kubernetes-int-or-string':true}", "true",
         "spec: Invalid value: \"boolean\": spec in body must be of type integer,string: "
         "\"boolean\""},
        {"{'x-kubernetes-preserve-unknown-fields':true}", "[{'a':null}]", ""},
        {"{'type':'object','properties':{'a':{'type':'string'}},"
         "'x-kubernetes-preserve-unknown-fields':true}",
         "{'b':1,'c':null}", ""},
};

static void test_types(void **state) {
        (void)state;
        CHECK(types);
}

static const struct row texts[] = {
        {S("'maxLength':2"), "'\u00e4\u00f6'", ""},
        {S("'maxLength':2"), "'abc'", "spec: Too long: may not be more than 2 bytes"},
        {S("'maxLength':1"), "'abc'", "spec: Too long: may not be more than 1 byte"},
        {S("'minLength':2"), "'\u00e4'",
         "spec: Invalid value: \"\u00e4\": spec in body should be at least 2 chars long"},
        {S("'pattern':'^[a-z]+$'"), "'abc'", ""},
        {S("'pattern':'^[a-z]+$'"), "'aBc'",
         "spec: Invalid value: \"aBc\": spec in body should match '^[a-z]+$'"},
        {S("'pattern':'b'"), "'abc'", ""},
        {S("'pattern':'+'"), "'foo'",
         "spec: Invalid value: \"foo\": spec in body should match '+, but pattern is invalid: "
         "error "
         "parsing regexp: missing argument to repetition operator: `+`'"},
        {S("'not':{'pattern':'+'}"), "'foo'", ""},
        {S("'minLength':5,'pattern':'^b'"), "'abc'",
         "spec: Invalid value: \"abc\": spec in body should be at least 5 chars long"},
        {S("'enum':['a','b']"), "'b'", ""},
        {S("'enum':['a','b']"), "'c'",
         "spec: Unsupported value: \"c\": supported values: \"a\", \"b\""},
        {S("'nullable':true,'enum':['a',null]"), "null",
         "spec: Unsupported value: null: supported values: \"a\", \"null\""},
        {I("'enum':[1,2]"), "3", "spec: Unsupported value: 3: supported values: \"1\", \"2\""},
        {S("'format':'date'"), "'2026-02-29'",
         "spec: Invalid value: \"2026-02-29\": spec in body must be of type date: \"2026-02-29\""},
        {S("'format':'date-time'"), "5",
         "spec: Invalid value: \"int64\": spec in body must be of type date-time: \"int64\""},
        {S("'format':'unheard-of'"), "'x'", ""},
        {S("'format':'int32'"), "'x'", ""},
        {"{'x-kubernetes-int-or-string':true,'pattern':'^[0-9]+%$'}", "'5%'", ""},
        {"{'x-kubernetes-int-or-string':true,'pattern':'^[0-9]+%$'}", "'5'",
         "spec: Invalid value: \"5\": spec in body should match '^[0-9]+%$'"},
        {"{'x-kubernetes-int-or-string':true,'pattern':'^[0-9]+%$'}", "5", ""},
};

static void test_texts(void **state) {
        (void)state;
        CHECK(texts);
}

static const struct row numbers[] = {
        {I("'minimum':1"), "1", ""},
        {I("'minimum':1"), "0",
         "spec: Invalid value: 0: spec in body should be greater than or equal to 1"},
        {I("'minimum':1,'exclusiveMinimum':true"), "1",
         "spec: Invalid value: 1: spec in body should be greater than 1"},
        {I("'maximum':9"), "10",
         "spec: Invalid value: 10: spec in body should be less than or equal to 9"},
        {I("'maximum':9,'exclusiveMaximum':true"), "9",
         "spec: Invalid value: 9: spec in body should be less than 9"},
        {N("'minimum':0.5"), "0.25",
         "spec: Invalid value: 0.25: spec in body should be greater than or equal to 0.5"},
        {N("'maximum':1000000"), "1000000.5",
         "spec: Invalid value: 1000000.5: spec in body should be less than or equal to 1e+06"},
        {I("'multipleOf':5"), "15", ""},
        {I("'multipleOf':5"), "16",
         "spec: Invalid value: 16: spec in body should be a multiple of 5"},
        {N("'multipleOf':0.1"), "0.7", ""},
        {N("'multipleOf':0.5"), "0.7",
         "spec: Invalid value: 0.7: spec in body should be a multiple of 0.5"},
        /* the quotient is above 2^53, where all are whole */
        {N("'multipleOf':0.1"), "1000000000000000.5",
         "spec: Invalid value: 1000000000000000.5: spec in body should be a multiple of 0.1"},
        {N("'multipleOf':0.1"), "100000000000000.5", ""},
        {I("'multipleOf':0"), "16",
         "spec: Invalid value: 0: factor MultipleOf declared for spec must be positive: 0"},
        {I("'format':'int32'"), "2147483647", ""},
        {I("'format':'int32'"), "2147483648",
         "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in "
         "spec"},
        {I("'format':'int64'"), "9223372036854775807", ""},
        {I("'format':'int64'"), "1e20",
         "<nil>: Invalid value: \"\": Checked value must be of type integer with format int64 in "
         "spec"},
        {N("'format':'float'"), "1e300",
         "<nil>: Invalid value: \"\": Checked value must be of type number with format float in "
         "spec"},
        {N("'format':'double'"), "1e300", ""},
        {I("'maximum':1.5"), "1",
         "<nil>: Invalid value: \"\": Maximum boundary value must be of type integer (default "
         "format) in spec"},
        {"{'type':'integer'}", "1.5",
         "spec: Invalid value: \"number\": spec in body must be of type integer: \"number\"\n"
         "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in "
         "spec"},
};

static void test_numbers(void **state) {
        (void)state;
        CHECK(numbers);
}

static const struct row containers[] = {
        {"{'type':'array','maxItems':1,'items':{'type':'string'}}", "['a','b']",
         "spec: Too many: 2: must have at most 1 item"},
        {"{'type':'array','minItems':2,'items':{'type':'string'}}", "['a']",
         "spec: Invalid value: 1: spec in body should have at least 2 items"},
        {"{'type':'object','maxProperties':0,'additionalProperties':{'type':'string'}}",
         "{'a':'b'}", "spec: Too many: 1: must have at most 0 items"},
        {"{'type':'object','minProperties':1}", "{}",
         "spec: Invalid value: 0: spec in body should have at least 1 properties"},
        {"{'type':'object','required':['a','b'],'properties':{'a':{'type':'string'},"
         "'b':{'type':'string'}}}",
         "{'b':'c'}", "spec.a: Required value"},
        {"{'type':'object','required':['a','b','c','d','e','f','g','h','i'],"
         "'x-kubernetes-preserve-unknown-fields':true}",
         "{'a':1,'b':1,'c':1,'d':1,'f':1,'g':1,'h':1}",
         "spec.e: Required value\nspec.i: Required value"},
        {"{'type':'object','additionalProperties':false}", "{'a':1}",
         "spec: Invalid value: \"a\": spec.a in body is a forbidden property"},
        {"{'type':'object','required':['a'],'properties':{'a':{'type':'string'}}}", "{'a':null}",
         "spec.a: Invalid value: \"null\": spec.a in body must be of type string: \"null\""},
};

static void test_arrays_and_objects(void **state) {
        (void)state;
        CHECK(containers);
}

static const struct row combinations[] = {
        {S("'anyOf':[{'pattern':'^a'},{'pattern':'^b'}]"), "'bc'", ""},
        {S("'anyOf':[{'pattern':'^a'},{'pattern':'^b'}]"), "'c'",
         "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)\n"
         "spec: Invalid value: \"c\": spec in body should match '^a'"},
        {S("'oneOf':[{'pattern':'^a'},{'pattern':'b'}]"), "'ac'", ""},
        {S("'oneOf':[{'pattern':'^a'},{'pattern':'b'}]"), "'ab'",
         "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). "
         "Found 2 valid alternatives"},
        {S("'oneOf':[{'pattern':'^a'},{'pattern':'b'}]"), "'c'",
         "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). "
         "Found none valid\nspec: Invalid value: \"c\": spec in body should match '^a'"},
        {S("'allOf':[{'pattern':'^a'},{'maxLength':2}]"), "'ab'", ""},
        {S("'allOf':[{'pattern':'^a'},{'maxLength':2}]"), "'abc'",
         "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf)\n"
         "spec: Too long: may not be more than 2 bytes"},
        {S("'allOf':[{'pattern':'^a'},{'maxLength':2}]"), "'cba'",
         "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None "
         "validated\nspec: Too long: may not be more than 2 bytes\n"
         "spec: Invalid value: \"cba\": spec in body should match '^a'"},
        {S("'not':{'enum':['x']}"), "'y'", ""},
        {S("'not':{'enum':['x']}"), "'x'",
         "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"},
        {"{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
         "'oneOf':[{'required':['a']},{'required':['b']}]}",
         "{'b':'x'}", ""},
        /* The alternative that has more in common with the value is reported. */
        {"{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
         "'anyOf':[{'required':['a']},{'required':['a'],'properties':{'b':{'minLength':1}}}]}",
         "{'b':'x'}",
         "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)\n"
         "spec.a: Required value"},
        /* What several schemas refuse for one reason is reported once. */
        {S("'pattern':'^a','allOf':[{'pattern':'^a'}]"), "'b'",
         "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None "
         "validated\nspec: Invalid value: \"b\": spec in body should match '^a'"},
        {"{'x-kubernetes-int-or-string':true,'anyOf':[{'type':'integer'},{'type':'string'}]}", "7",
         ""},
};

static void test_combinations(void **state) {
        (void)state;
        CHECK(combinations);
}

/* The linker redirects the function. */
static size_t n_strcmp;
int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b) {
        n_strcmp++;
        return __real_strcmp(a, b);
}

/* Appends [{"k0":0,...},{...}]: n_elements with n keys. */
static void put_elements(struct hf__strbuf *out, unsigned n_elements, unsigned n) {
        hf__strbuf_putc(out, '[');
        for (unsigned e = 0; e < n_elements; e++) {
                hf__strbuf_puts(out, e > 0 ? ",{" : "{");
                for (unsigned i = n; i > 0; i--)
                        hf__strbuf_printf(out, "%s'k%u':%u", i < n ? "," : "", i, e);
                hf__strbuf_putc(out, '}');
        }
        hf__strbuf_putc(out, ']');
}

/* Validates a list of 20 elements with n keys. Returns how many texts were compared. */
static size_t compares_of_keys(unsigned n) {
        struct hf__strbuf schema = {0}, list = {0};

        hf__strbuf_puts(&schema, "{'type':'array','x-kubernetes-list-type':'map',"
                                 "'x-kubernetes-list-map-keys':[");
        for (unsigned i = 1; i <= n; i++)
                hf__strbuf_printf(&schema, "%s'k%u'", i > 1 ? "," : "", i);
        hf__strbuf_puts(&schema, "],'items':{'type':'object',"
                                 "'x-kubernetes-preserve-unknown-fields':true}}");
        put_elements(&list, 20, n);
        struct hfd_custom_schema *compiled = schema_of_spec(schema.data);
        struct hf__json *spec = json_of(list.data), *object = json_of("{}");
        struct hfd_causes causes;
        hfd_causes_init(&causes);
        assert_int_equal(hf__json_add(object, "spec", spec), 0);
        n_strcmp = 0;
        hfd_custom_schema_validate(compiled, object, object, &causes);
        expect_causes(&causes, "");
        const size_t n_done = n_strcmp;
        hf__json_free(object);
        hfd_custom_schema_free(compiled);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&list);
        return n_done;
}

static void test_the_keys_of_elements_are_not_searched_one_by_one(void **state) {
        (void)state;
        assert_in_range(compares_of_keys(800), 800 * 20, 16 * compares_of_keys(100));
}

/* Appends ["v0","v1",...]: n texts. */
static void put_texts(struct hf__strbuf *out, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s'v%u'", i > 0 ? "," : "[", i);
        hf__strbuf_putc(out, ']');
}

/* How often two values were compared. */
static size_t n_compared;

bool __real_hfd_causes_equal(struct hfd_causes *causes, const struct hf__json *a,
                             const struct hf__json *b);
bool __wrap_hfd_causes_equal(struct hfd_causes *causes, const struct hf__json *a,
                             const struct hf__json *b);
bool __wrap_hfd_causes_equal(struct hfd_causes *causes, const struct hf__json *a,
                             const struct hf__json *b) {
        n_compared++;
        return __real_hfd_causes_equal(causes, a, b);
}

bool __real_hfd_compared_equal(struct hfd_compared *compared, struct hfd_causes *causes,
                               const struct hf__json *value, const struct hf__json *old);
bool __wrap_hfd_compared_equal(struct hfd_compared *compared, struct hfd_causes *causes,
                               const struct hf__json *value, const struct hf__json *old);
bool __wrap_hfd_compared_equal(struct hfd_compared *compared, struct hfd_causes *causes,
                               const struct hf__json *value, const struct hf__json *old) {
        n_compared++;
        return __real_hfd_compared_equal(compared, causes, value, old);
}

/* How many values were printed, each with all that is in it or as a scalar of one. */
static size_t n_printed;

void __real_hf__json_print(const struct hf__json *json, struct hf__strbuf *out);
void __wrap_hf__json_print(const struct hf__json *json, struct hf__strbuf *out);
void __wrap_hf__json_print(const struct hf__json *json, struct hf__strbuf *out) {
        n_printed++;
        __real_hf__json_print(json, out);
}

static void test_an_enum_of_many_values_is_not_searched_one_by_one(void **state) {
        enum { N = 2000, LOG_N = 11 };
        struct hf__strbuf schema = {0}, list = {0};

        (void)state;
        hf__strbuf_puts(&schema, "{'type':'array','items':{'type':'string','enum':");
        put_texts(&schema, N);
        hf__strbuf_puts(&schema, "}}");
        put_texts(&list, N);
        n_strcmp = 0;
        expect_validation(schema.data, list.data, NULL, "");
        assert_in_range(n_strcmp, N, 10 * N * LOG_N);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&list);
}

/* A list of empty lists, which are not among the texts, and are compared with the list only. */
static void test_other_values_are_not_searched_among_the_texts_of_an_enum(void **state) {
        enum { N = 100 };
        struct hf__strbuf schema = {0}, list = {0};

        (void)state;
        hf__strbuf_puts(&schema, "{'type':'array','items':{'x-kubernetes-preserve-unknown-fields':"
                                 "true,'enum':");
        put_texts(&schema, N);
        schema.data[schema.n - 1] = ','; /* for the bracket */
        hf__strbuf_puts(&schema, "null,[]]}}");
        for (unsigned i = 0; i < N; i++)
                hf__strbuf_puts(&list, i > 0 ? ",[]" : "[[]");
        hf__strbuf_putc(&list, ']');
        n_compared = 0;
        expect_validation(schema.data, list.data, NULL, "");
        assert_int_equal(n_compared, 0);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&list);
}

/* Appends [{"o":[0]},{"o":[1]},...]: n objects. */
static void put_objects(struct hf__strbuf *out, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s{'o':[%u]}", i > 0 ? "," : "[", i);
        hf__strbuf_putc(out, ']');
}

/* How often a text was compared with one of ENUM_OTHERS to find it. */
static size_t n_text_compares;

int __real_hfd_custom_text_compare(const void *a, const void *b);
int __wrap_hfd_custom_text_compare(const void *a, const void *b);
int __wrap_hfd_custom_text_compare(const void *a, const void *b) {
        n_text_compares++;
        return __real_hfd_custom_text_compare(a, b);
}

/* The time for an element is not in proportion to the number of values. */
static void test_an_enum_of_many_objects_is_not_searched_one_by_one(void **state) {
        enum { N = 1000, LOG_N = 10 };
        struct hf__strbuf schema = {0}, list = {0};

        (void)state;
        hf__strbuf_puts(&schema, "{'type':'array','items':{'x-kubernetes-preserve-unknown-fields':"
                                 "true,'enum':");
        put_objects(&schema, N);
        hf__strbuf_puts(&schema, "}}");
        put_objects(&list, N);
        n_compared = n_text_compares = 0;
        expect_validation(schema.data, list.data, NULL, "");
        assert_int_equal(n_compared, 0);
        assert_in_range(n_text_compares, N, 2 * N * LOG_N);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&list);
}

/* Validates {"spec":SPEC} with an enum of 20 objects, which does not have the value. */
static void validate_with_enum(const char *spec) {
        struct hf__strbuf schema = {0};
        struct hf__json *object = json_of("{}");
        struct hfd_causes causes = {0};

        hf__strbuf_puts(&schema, "{'x-kubernetes-preserve-unknown-fields':true,'enum':");
        put_objects(&schema, 20);
        hf__strbuf_puts(&schema, "}");
        struct hfd_custom_schema *compiled = schema_of_spec(schema.data);
        assert_int_equal(hf__json_add(object, "spec", json_of(spec)), 0);
        n_printed = n_strcmp = 0;
        hfd_custom_schema_validate(compiled, object, NULL, &causes);
        assert_int_equal(causes.n, 1);
        hf__json_free(object);
        hfd_custom_schema_free(compiled);
        hf__strbuf_done(&schema);
}

/* Of a value that is larger than those of the enum no more is printed or sorted than they have:
 * another enum may be at each of its levels. */
static void test_values_larger_than_those_of_an_enum_are_passed_over(void **state) {
        enum { N = 10000 };
        struct hf__strbuf list = {0}, object = {0}, text = {0};

        (void)state;
        hf__strbuf_puts(&text, "{'o':'");
        for (unsigned i = 0; i < N; i++) {
                hf__strbuf_putc(&text, 'x');
                hf__strbuf_printf(&list, "%s[7]", i > 0 ? "," : "[");
                hf__strbuf_printf(&object, "%s'k%u':7", i > 0 ? "," : "{", i);
        }
        hf__strbuf_putc(&list, ']');
        hf__strbuf_putc(&object, '}');
        hf__strbuf_puts(&text, "'}");
        validate_with_enum(list.data);
        assert_in_range(n_printed, 1, 100);
        validate_with_enum(object.data);
        assert_in_range(n_printed, 0, 100);
        assert_in_range(n_strcmp, 0, 1000);
        validate_with_enum(text.data);
        assert_int_equal(n_printed, 20 + 1); /* for the message */
        hf__strbuf_done(&text);
        hf__strbuf_done(&list);
        hf__strbuf_done(&object);
}

/* null never matches, so such an enum has no values to search. */
static void test_an_enum_of_many_nulls_is_not_searched_one_by_one(void **state) {
        struct hf__json *object = json_of("{'spec':[[],{},'a',1,true,null]}");
        struct hfd_causes causes = {0};
        struct hf__strbuf schema = {0};

        (void)state;
        hf__strbuf_puts(&schema, "{'type':'array','items':{'x-kubernetes-preserve-unknown-fields':"
                                 "true,'enum':[null");
        for (int i = 0; i < 20; i++)
                hf__strbuf_puts(&schema, ",null");
        hf__strbuf_puts(&schema, "]}}");
        struct hfd_custom_schema *compiled = schema_of_spec(schema.data);
        n_compared = 0;
        hfd_custom_schema_validate(compiled, object, NULL, &causes);
        assert_int_equal(causes.n, 6);
        assert_int_equal(n_compared, 0);
        hf__json_free(object);
        hfd_custom_schema_free(compiled);
        hf__strbuf_done(&schema);
}

/* Appends [4611686018427387904,4611686018427387905,...]: n integers. */
static void put_integers(struct hf__strbuf *out, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s%lld", i > 0 ? "," : "[", (1LL << 62) + i);
        hf__strbuf_putc(out, ']');
}

/* Also those that have the same double. */
static void test_an_enum_of_many_integers_is_not_searched_one_by_one(void **state) {
        enum { N = 500 };
        struct hf__strbuf schema = {0}, list = {0};

        (void)state;
        hf__strbuf_puts(&schema, "{'type':'array','items':{'type':'integer','enum':");
        put_integers(&schema, N);
        hf__strbuf_puts(&schema, "}}");
        put_integers(&list, N);
        n_compared = 0;
        expect_validation(schema.data, list.data, NULL, "");
        assert_int_equal(n_compared, 0);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&list);
}

/* Equal doubles may be different numbers. */
static void test_an_enum_of_many_values_has_each_of_them(void **state) {
#define MANY                                                                                       \
        "{'x-kubernetes-preserve-unknown-fields':true,'enum':['a','b','c','d','e','f','g','h',"    \
        "'i',1,2.5,-3,0,9007199254740993,9007199254740992,9007199254740994,true,{'o':1},"          \
        "[1],null,'1','',-9223372036854775808,1e300,[1,1.5],[-0.0,1e3],{'a':1,'b':{'c':2,'d':"     \
        "null}}]}"
        static const char *const values[] = {"'a'",
                                             "'i'",
                                             "''",
                                             "'1'",
                                             "1",
                                             "1.0",
                                             "2.5",
                                             "-3",
                                             "-0.0",
                                             "9007199254740993",
                                             "9007199254740992",
                                             "9007199254740994",
                                             "-9223372036854775808",
                                             "-9223372036854775808.0",
                                             "1e300",
                                             "true",
                                             "{'o':1}",
                                             "[1]",
                                             "[1.0,15e-1]",
                                             "[0,1000.0]",
                                             "{'b':{'d':null,'c':2},'a':1}"},
                                 *const others[] = {"'j'",
                                                    "'2.5'",
                                                    "3",
                                                    "9007199254740995",
                                                    "-9223372036854775807",
                                                    "9223372036854775807",
                                                    "false",
                                                    "{'o':2}",
                                                    "[]",
                                                    "[1,1]",
                                                    "['1']",
                                                    "{'a':1,'b':{'c':2}}",
                                                    "{'a':1,'b':{'c':2,'d':null},'e':3}"};

        (void)state;
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
                expect_validation(MANY, values[i], NULL, "");
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                struct hfd_custom_schema *schema = schema_of_spec(MANY);
                struct hf__json *object = json_of("{}");
                struct hfd_causes causes;
                hfd_causes_init(&causes);
                assert_int_equal(hf__json_add(object, "spec", json_of(others[i])), 0);
                hfd_custom_schema_validate(schema, object, NULL, &causes);
                assert_int_equal(causes.n, 1);
                assert_string_equal(causes.items[0].reason, "FieldValueNotSupported");
                hf__json_free(object);
                hfd_custom_schema_free(schema);
        }
#undef MANY
}

#define SET "{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}}"
#define MAP(keys)                                                                                  \
        "{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':[" keys       \
        "],'items':{'type':'object','x-kubernetes-preserve-unknown-fields':true,'properties':{"    \
        "'name':{'type':'string'},'port':{'type':'integer'}}}}"

static const struct row lists[] = {
        {SET, "['a','b']", ""},
        {SET, "['a','b','a','b','a']",
         "spec[2]: Duplicate value: \"a\"\nspec[3]: Duplicate value: \"b\""},
        {"{'type':'array','x-kubernetes-list-type':'set','items':{'type':'object',"
         "'x-kubernetes-map-type':'atomic','additionalProperties':{'type':'integer'}}}",
         "[{'a':1,'b':2},{'b':2,'a':1}]", "spec[1]: Duplicate value: {\"a\":1,\"b\":2}"},
        {MAP("'name'"), "[{'name':'a'},{'name':'b'},{'name':'a','x':1}]",
         "spec[2]: Duplicate value: {\"name\":\"a\"}"},
        {MAP("'port','name'"), "[{'name':'a','port':1},{'name':'a','port':2}]", ""},
        {MAP("'port','name'"), "[{'name':'a','port':1},{'port':1,'name':'a'}]",
         "spec[1]: Duplicate value: {\"name\":\"a\",\"port\":1}"},
        {MAP("'name'"), "[{'x':1},{'x':2}]", "spec[1]: Duplicate value: {}"},
        {"{'type':'object','additionalProperties':" SET "}", "{'k':['a','a']}",
         "spec[k][1]: Duplicate value: \"a\""},
};

static void test_lists_have_no_element_twice(void **state) {
        (void)state;
        CHECK(lists);
}

#define EMBEDDED                                                                                   \
        "{'type':'object','x-kubernetes-embedded-resource':true,"                                  \
        "'x-kubernetes-preserve-unknown-fields':true}"

#define X_50  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X_300 X_50 X_50 X_50 X_50 X_50 X_50

static const struct row embedded[] = {
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod'}", ""},
        {EMBEDDED, "{'apiVersion':'apps/v1','kind':'Pod','metadata':{'name':'a:b'}}", ""},
        {EMBEDDED, "{}", "spec.apiVersion: Required value\nspec.kind: Required value"},
        {EMBEDDED, "{'apiVersion':'a/b/c','kind':''}",
         "spec.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c\n"
         "spec.kind: Invalid value: \"\": must not be empty"},
        {EMBEDDED, "{'apiVersion':'v1','kind':'1x'}",
         "spec.kind: Invalid value: \"1x\": may have mixed case, but should otherwise match: a "
         "DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
         "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
         "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"},
        {EMBEDDED, "{'apiVersion':'v1','kind':'" X_50 "xxxxxxxxxxxxx'}", ""},
        {EMBEDDED, "{'apiVersion':'v1','kind':'" X_50 "xxxxxxxxxxxxxx'}",
         "spec.kind: Invalid value: \"" X_50 "xxxxxxxxxxxxxx\": may have mixed case, but should "
         "otherwise match: must be no more than 63 characters"},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a/b'}}",
         "spec.metadata.name: Invalid value: \"a/b\": may not contain '/'"},
        /* The name is no part of a key, so it may be long. */
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':''}}", ""},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'" X_300 "'}}", ""},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'generateName':'" X_300 "'}}", ""},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'generateName':'..'}}", ""},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'generateName':'a/'}}",
         "spec.metadata.generateName: Invalid value: \"a/\": may not contain '/'"},
        {EMBEDDED, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%/','generateName':'a%/'}}",
         "spec.metadata.generateName: Invalid value: \"a%/\": may not contain '/'\n"
         "spec.metadata.generateName: Invalid value: \"a%/\": may not contain '%'\n"
         "spec.metadata.name: Invalid value: \"%/\": may not contain '/'\n"
         "spec.metadata.name: Invalid value: \"%/\": may not contain '%'"},
};

static void test_embedded_resources(void **state) {
        (void)state;
        CHECK(embedded);
}

static void test_metadata_of_a_wrong_type_is_refused(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(EMBEDDED);
        struct hf__json *object =
                json_of("{'spec':{'apiVersion':'v1','kind':'Pod','metadata':{'labels':{'a':1}}}}");
        struct hfd_causes causes = {.n = 0};

        (void)state;
        hfd_custom_schema_validate(schema, object, NULL, &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].field, "spec.metadata");
        hf__json_free(object);
        hfd_custom_schema_free(schema);
}

/* ---- ratcheting ---- */

static void test_unchanged_parts_may_stay_invalid(void **state) {
        static const char object[] =
                "{'type':'object','properties':{'a':{'type':'string','maxLength':1},'b':{"
                "'type':'string','maxLength':1},'l':{'type':'array','items':{'type':'string',"
                "'maxLength':1}},'m':{'type':'array','x-kubernetes-list-type':'map',"
                "'x-kubernetes-list-map-keys':['name'],'items':{'type':'object','properties':{"
                "'name':{'type':'string'},'v':{'type':'string','maxLength':1}}}},'s':" SET "}}";
        static const struct {
                const char *spec, *old, *causes;
        } rows[] = {
                {"{'a':'xx','b':'y'}", "{'a':'xx','b':'z'}", ""},
                {"{'a':'xx','b':'yy'}", "{'a':'xx','b':'z'}",
                 "spec.b: Too long: may not be more than 1 byte"},
                {"{'a':'xx'}", "{}", "spec.a: Too long: may not be more than 1 byte"},
                /* The elements of an atomic list are one part. */
                {"{'l':['xx'],'b':'y'}", "{'l':['xx']}", ""},
                {"{'l':['xx','y']}", "{'l':['xx']}",
                 "spec.l[0]: Too long: may not be more than 1 byte"},
                /* The elements of a list of type map are found by their keys. */
                {"{'m':[{'name':'q','v':'y'},{'name':'p','v':'xx'}]}",
                 "{'m':[{'name':'p','v':'xx'}]}", ""},
                {"{'m':[{'name':'q','v':'xx'}]}", "{'m':[{'name':'p','v':'xx'}]}",
                 "spec.m[0].v: Too long: may not be more than 1 byte"},
                {"{'s':['x','x'],'a':'y'}", "{'s':['x','x']}", ""},
                {"{'s':['x','x']}", "{'s':['x']}", "spec.s[1]: Duplicate value: \"x\""},
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                expect_validation(object, rows[i].spec, rows[i].old, rows[i].causes);
}

static void test_combinations_ratchet_with_their_part(void **state) {
        static const char object[] =
                "{'type':'object','properties':{'a':{'type':'string'},'b':{'type':'string'}},"
                "'allOf':[{'properties':{'a':{'maxLength':1}}}],'not':{'required':['b']}}";

        (void)state;
        expect_validation(object, "{'a':'xx','b':'y'}", "{'a':'xx','b':'y'}", "");
        expect_validation(object, "{'a':'xx','b':'z'}", "{'a':'xx','b':'y'}",
                          "<nil>: Invalid value: \"\": \"spec\" must not validate the schema "
                          "(not)");
}

/* ---- the size of values ---- */

static void test_causes_are_limited_and_duplicates_found_in_long_lists(void **state) {
        struct hfd_custom_schema *schema = schema_of_spec(SET);
        struct hf__json *object = json_of("{'spec':[]}");
        struct hf__json *list = hf__json_get(object, "spec");
        struct hfd_causes causes = {.n = 0};
        char text[16];

        (void)state;
        for (int i = 0; i < 40000; i++) {
                (void)snprintf(text, sizeof text, "%d", i % 20000);
                assert_int_equal(hf__json_append_string(list, text), 0);
        }
        hfd_custom_schema_validate(schema, object, NULL, &causes);
        assert_int_equal(causes.n, HFD_CAUSES_MAX);
        assert_string_equal(causes.items[0].field, "spec[20000]");
        assert_string_equal(causes.items[0].text, "Duplicate value: \"0\"");
        hf__json_free(object);
        hfd_custom_schema_free(schema);
}

/* The invalid leaf of a deep object has changed, and so has every part above it. */
static void test_parts_above_a_changed_part_are_not_compared(void **state) {
        struct hf__strbuf schema = {0}, spec = {0}, old = {0};

        (void)state;
        for (int i = 0; i < 30; i++) {
                hf__strbuf_puts(&schema, "{'type':'object','properties':{'f':");
                hf__strbuf_puts(&spec, "{'f':");
                hf__strbuf_puts(&old, "{'f':");
        }
        hf__strbuf_puts(&schema, "{'type':'integer','maximum':1}");
        hf__strbuf_puts(&spec, "3");
        hf__strbuf_puts(&old, "2");
        for (int i = 0; i < 30; i++) {
                hf__strbuf_puts(&schema, "}}");
                hf__strbuf_puts(&spec, "}");
                hf__strbuf_puts(&old, "}");
        }
        struct hfd_custom_schema *compiled = schema_of_spec(schema.data);
        struct hf__json *object = hf__json_object(), *stored = hf__json_object();
        struct hfd_causes causes = {0};
        assert_int_equal(hf__json_set(object, "spec", json_of(spec.data)), 0);
        assert_int_equal(hf__json_set(stored, "spec", json_of(old.data)), 0);
        n_compared = 0;
        hfd_custom_schema_validate(compiled, object, stored, &causes);
        assert_int_equal(causes.n, 1);
        assert_int_equal(n_compared, 1);
        hfd_custom_schema_free(compiled);
        hf__json_free(object);
        hf__json_free(stored);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&spec);
        hf__strbuf_done(&old);
}

/* Validates an update that changes nothing; schema: of spec. Returns how many texts were compared.
 */
static size_t compares_of_update(const char *schema, const char *spec) {
        struct hfd_custom_schema *compiled = schema_of_spec(schema);
        struct hf__json *object = hf__json_object(), *stored = hf__json_object();
        struct hfd_causes causes = {0};

        assert_int_equal(hf__json_set(object, "spec", json_of(spec)), 0);
        assert_int_equal(hf__json_set(stored, "spec", json_of(spec)), 0);
        n_strcmp = 0;
        hfd_custom_schema_validate(compiled, object, stored, &causes);
        assert_int_equal(causes.error, 0);
        assert_int_equal(causes.n, 0);
        const size_t n = n_strcmp;
        hfd_custom_schema_free(compiled);
        hf__json_free(object);
        hf__json_free(stored);
        return n;
}

/* An object that breaks a rule at each of its levels, and has not changed. */
static size_t compares_of_unchanged(unsigned n_levels) {
        struct hf__strbuf schema = {0}, spec = {0};

        for (unsigned i = 0; i < n_levels; i++) {
                hf__strbuf_puts(&schema, "{'type':'object','maxProperties':1,'properties':{"
                                         "'a':{'type':'string'},'f':");
                hf__strbuf_puts(&spec, "{'a':'x','f':");
        }
        hf__strbuf_puts(&schema, "{'type':'string'}");
        hf__strbuf_puts(&spec, "'x'");
        for (unsigned i = 0; i < n_levels; i++) {
                hf__strbuf_puts(&schema, "}}");
                hf__strbuf_puts(&spec, "}");
        }
        const size_t n = compares_of_update(schema.data, spec.data);
        hf__strbuf_done(&schema);
        hf__strbuf_done(&spec);
        return n;
}

static void test_an_unchanged_object_is_compared_once(void **state) {
        (void)state;
        assert_in_range(compares_of_unchanged(200), 200, 12 * compares_of_unchanged(20));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_arrays_and_objects),
                cmocka_unit_test(test_combinations),
                cmocka_unit_test(test_the_keys_of_elements_are_not_searched_one_by_one),
                cmocka_unit_test(test_an_enum_of_many_values_is_not_searched_one_by_one),
                cmocka_unit_test(test_other_values_are_not_searched_among_the_texts_of_an_enum),
                cmocka_unit_test(test_an_enum_of_many_objects_is_not_searched_one_by_one),
                cmocka_unit_test(test_values_larger_than_those_of_an_enum_are_passed_over),
                cmocka_unit_test(test_an_enum_of_many_nulls_is_not_searched_one_by_one),
                cmocka_unit_test(test_an_enum_of_many_integers_is_not_searched_one_by_one),
                cmocka_unit_test(test_an_enum_of_many_values_has_each_of_them),
                cmocka_unit_test(test_lists_have_no_element_twice),
                cmocka_unit_test(test_embedded_resources),
                cmocka_unit_test(test_metadata_of_a_wrong_type_is_refused),
                cmocka_unit_test(test_unchanged_parts_may_stay_invalid),
                cmocka_unit_test(test_combinations_ratchet_with_their_part),
                cmocka_unit_test(test_parts_above_a_changed_part_are_not_compared),
                cmocka_unit_test(test_an_unchanged_object_is_compared_once),
                cmocka_unit_test(test_causes_are_limited_and_duplicates_found_in_long_lists),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
