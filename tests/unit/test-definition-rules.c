/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of CustomResourceDefinitions, with the fields and messages of Kubernetes. Each case is
 * a merge patch of a good definition, and the causes of the refusal.
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

#include "base/json.h"
#include "base/strbuf.h"
#include "server/patch/merge_patch.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"

/* For legibility, JSON in the cases has ' in place of ". */
static const char good[] =
        "{'metadata':{'name':'crontabs.x.org'},'spec':{'group':'x.org','scope':'Namespaced',"
        "'names':{'plural':'crontabs','kind':'CronTab'},'versions':[{'name':'v1','served':true,"
        "'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}";

/* A version; more: further members, after a comma. */
#define VERSION(name, storage, more) "{'name':'" name "','served':true,'storage':" storage more "}"
#define SCHEMA(props)                ",'schema':{'openAPIV3Schema':" props "}"
#define VERSIONS(...)                "{'spec':{'versions':[" __VA_ARGS__ "]}}"
#define OBJECT                       SCHEMA("{'type':'object'}")
#define ONE(more)                    VERSIONS(VERSION("v1", "true", OBJECT more))

#define LABEL                                                                                      \
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "  \
        "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "    \
        "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is "                                                            \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

static struct hf__json *parse(const char *text) {
        char *copy = strdup(text);
        struct hf__json *json = NULL;

        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        if (hf__json_parse(copy, strlen(copy), &json, NULL) != 0)
                fail_msg("no JSON: %s", text);
        free(copy);
        return json;
}

/* Patches *object with a text, which may be NULL. */
static void patch(struct hf__json **object, const char *text) {
        struct hfd_patch_outcome outcome = {0};

        if (!text)
                return;
        struct hf__json *json = parse(text);
        assert_int_equal(hfd_merge_patch_apply(object, json, &outcome), 0);
        hf__json_free(json);
}

/* Asserts that the causes are these: "field: text", each in a line. */
static void expect(const struct hfd_causes *causes, const char *patched, const char *wanted) {
        struct hf__strbuf found = {0};

        for (size_t i = 0; i < causes->n; i++)
                hf__strbuf_printf(&found, "%s%s: %s", i > 0 ? "\n" : "", causes->items[i].field,
                                  causes->items[i].text);
        if (strcmp(found.data ? found.data : "", wanted) != 0)
                fail_msg("%s\nfound:  %s\nwanted: %s", patched, found.data ? found.data : "",
                         wanted);
        hf__strbuf_done(&found);
}

struct rule_case {
        const char *patch, *causes;
};

static void check_creates(const struct rule_case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct hf__json *object = parse(good);
                struct hfd_causes causes = {0};

                patch(&object, cases[i].patch);
                assert_int_equal(hfd_definition_prepare(object, NULL), 0);
                hfd_definition_validate(object, NULL, &causes);
                expect(&causes, cases[i].patch, cases[i].causes);
                hf__json_free(object);
        }
}
#define CHECK_CREATES(cases) check_creates(cases, sizeof cases / sizeof cases[0])

static void test_names_follow_the_rules(void **state) {
        static const struct rule_case cases[] = {
                {"{}", ""},
                {"{'metadata':{'name':'other.x.org'}}",
                 "metadata.name: Invalid value: \"other.x.org\": must be "
                 "spec.names.plural+\".\"+spec.group"},
                {"{'metadata':{'generateName':'c'}}",
                 "metadata.generateName: Invalid value: \"c\": must be "
                 "spec.names.plural+\".\"+spec.group"},
                {"{'metadata':{'name':''},'spec':null}",
                 "spec.group: Required value\n"
                 "spec.scope: Required value\n"
                 "spec.versions: Invalid value: null: must have exactly one version marked as "
                 "storage version\n"
                 "spec.names.plural: Required value\n"
                 "spec.names.singular: Required value\n"
                 "spec.names.kind: Required value\n"
                 "spec.names.listKind: Required value\n"
                 "status.storedVersions: Invalid value: null: must have at least one stored "
                 "version"},
                {"{'metadata':{'name':'crontabs.x'},'spec':{'group':'x','scope':'All'}}",
                 "spec.group: Invalid value: \"x\": should be a domain with at least one dot\n"
                 "spec.scope: Unsupported value: \"All\": supported values: \"Cluster\", "
                 "\"Namespaced\""},
                {"{'metadata':{'name':'crontabs.X.org'},'spec':{'group':'X.org'}}",
                 "spec.group: Invalid value: \"X.org\": " SUBDOMAIN},
                {"{'spec':{'names':{'singular':'A','kind':'a_B','listKind':'C.d',"
                 "'shortNames':['ok','1'],'categories':['all','-']}}}",
                 "spec.names.singular: Invalid value: \"A\": " LABEL "\n"
                 "spec.names.kind: Invalid value: \"a_B\": may have mixed case, but should "
                 "otherwise match: " LABEL "\n"
                 "spec.names.listKind: Invalid value: \"C.d\": may have mixed case, but should "
                 "otherwise match: " LABEL "\n"
                 "spec.names.shortNames[1]: Invalid value: \"1\": " LABEL "\n"
                 "spec.names.categories[1]: Invalid value: \"-\": " LABEL},
                {"{'spec':{'names':{'listKind':'CronTab'}}}",
                 "spec.names.listKind: Invalid value: \"CronTab\": kind and listKind may not be "
                 "the same"},
                {"{'spec':{'names':{'singular':"
                 "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}}}",
                 "spec.names.singular: Invalid value: "
                 "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": must be no "
                 "more than 63 characters"},
                {"{'spec':{'names':{'singular':"
                 "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-'}}}",
                 "spec.names.singular: Invalid value: "
                 "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-\": must be no "
                 "more than 63 characters," LABEL},
        };

        CHECK_CREATES(cases);
}

#define PRINTED(name, storage)                                                                     \
        "{\"Name\":\"" name "\",\"Served\":true,\"Storage\":" storage                              \
        ",\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null," \
        "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}"

static void test_versions_follow_the_rules(void **state) {
        static const struct rule_case cases[] = {
                {VERSIONS(VERSION("v1", "true", OBJECT) "," VERSION("v2", "false", OBJECT)), ""},
                {VERSIONS(VERSION("v1", "false", OBJECT)),
                 "spec.versions: Invalid value: [" PRINTED(
                         "v1",
                         "false") "]: must have exactly one version marked as storage version\n"
                                  "status.storedVersions: Invalid value: null: must have at least "
                                  "one stored "
                                  "version"},
                {VERSIONS(""),
                 "spec.versions: Invalid value: []: must have exactly one version marked as "
                 "storage version\n"
                 "status.storedVersions: Invalid value: null: must have at least one stored "
                 "version"},
                {VERSIONS(VERSION("V1", "true", OBJECT)),
                 "spec.versions[0].name: Invalid value: \"V1\": " LABEL "\n"
                 "spec.version: Invalid value: \"V1\": " LABEL},
                {VERSIONS(VERSION("v1", "true", OBJECT) "," VERSION("v2.0", "false", "")),
                 "spec.versions[1].schema.openAPIV3Schema: Required value\n"
                 "spec.versions[1].name: Invalid value: \"v2.0\": " LABEL},
                {ONE(",'deprecationWarning':'x'"),
                 "spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for "
                 "deprecated versions"},
                {ONE(",'deprecated':true,'deprecationWarning':'gone'"), ""},
                {ONE(",'deprecated':true,'deprecationWarning':''"),
                 "spec.versions[0].deprecationWarning: Invalid value: \"\": must not be an empty "
                 "string"},
                {ONE(",'deprecated':true,'deprecationWarning':'ab\\tc'"),
                 "spec.versions[0].deprecationWarning: Invalid value: \"ab\\tc\": must only "
                 "contain printable UTF-8 characters; non-printable character found at index 2"},
        };

        CHECK_CREATES(cases);
}

static void test_two_versions_of_one_name_are_refused(void **state) {
        struct hf__json *object = parse(good);
        struct hfd_causes causes = {0};

        patch(&object, VERSIONS(VERSION("v1", "true", OBJECT) "," VERSION("v1", "false", OBJECT)));
        assert_int_equal(hfd_definition_prepare(object, NULL), 0);
        hfd_definition_validate(object, NULL, &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].field, "spec.versions");
        /* The value is cut. */
        assert_non_null(strstr(causes.items[0].text, "Invalid value: [{\"Name\":\"v1\","));
        assert_non_null(strstr(causes.items[0].text, ": must contain unique version names"));
        hf__json_free(object);
}

#define SCALE(spec, status, more)                                                                  \
        ",'subresources':{'scale':{'specReplicasPath':'" spec "','statusReplicasPath':'" status    \
        "'" more "}}"

/* Settings that all versions share are in the spec. */
static void test_parts_of_versions_follow_the_rules(void **state) {
        static const struct rule_case cases[] = {
                {ONE(SCALE(".spec.n", ".status.n", ",'labelSelectorPath':'.status.s'")), ""},
                {ONE(SCALE("", "", "")),
                 "spec.subresources.scale.specReplicasPath: Required value\n"
                 "spec.subresources.scale.statusReplicasPath: Required "
                 "value"},
                {ONE(SCALE("spec.n", ".spec.n", ",'labelSelectorPath':'.metadata.x'")),
                 "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.n\": must be a "
                 "simple json path starting with .\n"
                 "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.n\": should "
                 "be a json path under .status\n"
                 "spec.subresources.scale.labelSelectorPath: Invalid value: \".metadata.x\": "
                 "should be a json path under either .spec or .status"},
                {VERSIONS(VERSION("v1", "true",
                                  OBJECT SCALE(".status.n", ".status.n",
                                               "")) "," VERSION("v2", "false", OBJECT)),
                 "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: "
                 "\".status.n\": should be a json path under .spec"},
                {ONE(",'additionalPrinterColumns':[{'name':'A','type':'date','jsonPath':'.a'},{}]"),
                 "spec.additionalPrinterColumns[1].name: Required value\n"
                 "spec.additionalPrinterColumns[1].type: Required value: must be one of "
                 "boolean,date,integer,number,string\n"
                 "spec.additionalPrinterColumns[1].JSONPath: Required value"},
                {ONE(",'additionalPrinterColumns':[{'name':'A','type':'text','jsonPath':'a',"
                     "'format':'int16'}]"),
                 "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of "
                 "boolean,date,integer,number,string\n"
                 "spec.additionalPrinterColumns[0].format: Invalid value: \"int16\": must be one "
                 "of byte,date,date-time,double,float,int32,int64,password\n"
                 "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": must be a "
                 "simple json path starting with ."},
                {ONE(",'subresources':{'status':{}}"), ""},
                {VERSIONS(VERSION("v1", "true",
                                  SCHEMA("{'type':'array'}") ",'subresources':"
                                                             "{'status':{}}")),
                 "spec.validation.openAPIV3Schema.type: Invalid value: \"array\": only \"object\" "
                 "is allowed as the type at the root of the schema if the status subresource is "
                 "enabled"
                 "\nspec.validation.openAPIV3Schema.items: Required value: must be specified\n"
                 "spec.validation.openAPIV3Schema.type: Invalid value: \"array\": must be object "
                 "at the root"},
                {VERSIONS(VERSION("v1", "true", SCHEMA("{'type':'object','nullable':true}"))),
                 "spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at "
                 "the root"},
                {"{'spec':{'preserveUnknownFields':true}}",
                 "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                 "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"},
        };

        CHECK_CREATES(cases);
}

static void test_a_status_forbids_what_concerns_it_at_the_root(void **state) {
        struct hf__json *object = parse(good);
        struct hfd_causes causes = {0};

        patch(&object,
              VERSIONS(VERSION("v1", "true",
                               SCHEMA("{'type':'object','maxProperties':3}") ",'subresources'"
                                                                             ":{'status':{}}")));
        assert_int_equal(hfd_definition_prepare(object, NULL), 0);
        hfd_definition_validate(object, NULL, &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.items[0].field, "spec.validation.openAPIV3Schema");
        assert_non_null(strstr(causes.items[0].text,
                               "Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,"
                               "\"Description\":\"\",\"Type\":\"object\",\"Nullable\":false,"));
        assert_non_null(strstr(causes.items[0].text,
                               ": only [Description Type Format Title Maximum ExclusiveMaximum "
                               "Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems "
                               "MinItems UniqueItems MultipleOf Required Items Properties "
                               "ExternalDocs Example XPreserveUnknownFields XValidations] fields "
                               "are allowed at the root of the schema if the status subresource "
                               "is enabled"));
        hf__json_free(object);
}

#define STRING(more) "{'type':'object','properties':{'a':{'type':'string'" more "}}}"
#define RULE(rule)   ",'x-kubernetes-validations':[{'rule':'" rule "'}]"

/* The causes name the schema of the version that has the mistake. */
static void test_schemas_and_their_rules_are_checked(void **state) {
        static const struct rule_case cases[] = {
                {VERSIONS(VERSION("v1", "true", SCHEMA(STRING(RULE("self.size() < 3"))))), ""},
                {VERSIONS(VERSION("v1", "true", SCHEMA("{'type':'object','properties':{'a':{}}}"))),
                 "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be "
                 "empty for specified object fields"},
                {VERSIONS(VERSION("v1", "true", OBJECT) "," VERSION(
                         "v2", "false", SCHEMA("{'type':'object','properties':{'a':{}}}"))),
                 "spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must "
                 "not be empty for specified object fields"},
                {VERSIONS(VERSION("v1", "true", SCHEMA(STRING(RULE("self.size()"))))),
                 "spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule: "
                 "Invalid value: "
                 "{\"Rule\":\"self.size()\",\"Message\":\"\",\"MessageExpression\":\"\","
                 "\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression "
                 "must evaluate to a bool"},
        };

        CHECK_CREATES(cases);
}

/* A schema that an older server accepted does not prevent other changes. */
static void test_an_unchanged_schema_is_not_checked_again(void **state) {
        struct hf__json *old = parse(good);
        struct hfd_causes causes = {0};

        patch(&old, VERSIONS(VERSION("v1", "true", SCHEMA(STRING(RULE("self.size()"))))));
        assert_int_equal(hfd_definition_prepare(old, NULL), 0);
        struct hf__json *object = hf__json_dup(old);
        patch(&object, "{'spec':{'names':{'shortNames':['ct']}}}");
        hfd_definition_validate(object, old, &causes);
        expect(&causes, "short names", "");
        patch(&object, VERSIONS(VERSION("v1", "true", SCHEMA(STRING(RULE("self.length()"))))));
        hfd_definition_validate(object, old, &causes);
        assert_int_equal(causes.n, 1);
        hf__json_free(object);
        hf__json_free(old);
}

/* A version with n patterns, each of 96 KiB. The caller frees it. */
static char *version_of_patterns(const char *name, unsigned n) {
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text,
                          "{'name':'%s','served':true,'storage':%s,'schema':{'openAPIV3Schema':"
                          "{'type':'object','properties':{",
                          name, strcmp(name, "v1") == 0 ? "true" : "false");
        for (unsigned i = 0; i < n; i++)
                hf__strbuf_printf(&text,
                                  "%s'f%u':{'type':'string','pattern':'^%ua{1000}b{1000}c{1000}d{"
                                  "1000}'}",
                                  i > 0 ? "," : "", i, i);
        hf__strbuf_puts(&text, "}}}}");
        assert_int_equal(text.error, 0);
        return text.data;
}

/* Patches *object so that it has these versions; b NULL = only a. */
static void set_versions(struct hf__json **object, const char *a, const char *b) {
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text, "{'spec':{'versions':[%s%s%s]}}", a, b ? "," : "", b ? b : "");
        assert_int_equal(text.error, 0);
        patch(object, text.data);
        hf__strbuf_done(&text);
}

#define TOO_LARGE "the compiled patterns of the definition take more than 8 MiB in all"
#define SECOND    "spec.versions[1].schema.openAPIV3Schema: Forbidden: "

/* The limit is for all versions together, also if one of them is as it was. A stored definition
 * beyond the limit can be changed as long as its schemas stay. */
static void test_what_the_schemas_take_is_limited(void **state) {
        char *v1 = version_of_patterns("v1", 50), *v2 = version_of_patterns("v2", 51);
        char *copy = version_of_patterns("v2", 50);
        struct hf__json *old = parse(good), *object = parse(good);
        struct hfd_causes causes = {0};

        set_versions(&old, v1, NULL);
        assert_int_equal(hfd_definition_prepare(old, NULL), 0);
        hfd_definition_validate(old, NULL, &causes);
        expect(&causes, "one version", "");
        set_versions(&object, v1, v2);
        assert_int_equal(hfd_definition_prepare(object, NULL), 0);
        hfd_definition_validate(object, NULL, &causes);
        expect(&causes, "create", SECOND TOO_LARGE);
        causes.n = 0;
        hfd_definition_validate(object, old, &causes);
        expect(&causes, "a second version", SECOND TOO_LARGE);
        causes.n = 0;
        set_versions(&object, v2, v1);
        hfd_definition_validate(object, old, &causes);
        expect(&causes, "a second version before the first", SECOND TOO_LARGE);
        causes.n = 0;
        set_versions(&object, v1, copy);
        hfd_definition_validate(object, old, &causes);
        expect(&causes, "the same schema twice",
               "spec.validation.openAPIV3Schema: Forbidden: " TOO_LARGE);
        causes.n = 0;
        hf__json_free(old);
        old = hf__json_dup(object);
        patch(&object, "{'spec':{'names':{'shortNames':['ct']}}}");
        hfd_definition_validate(object, old, &causes);
        expect(&causes, "short names", "");
        hf__json_free(object);
        hf__json_free(old);
        free(v1);
        free(v2);
        free(copy);
}

#define SELECTED                                                                                   \
        "{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{'type':"        \
        "'string'},'b':{'type':'array','items':{'type':'string'}},'m':{'type':'object',"           \
        "'additionalProperties':{'type':'integer'}}}},'metadata':{'type':'object','properties':{"  \
        "'name':{'type':'string'}}}}}"
#define SELECT(paths)                                                                              \
        VERSIONS(VERSION("v1", "true", SCHEMA(SELECTED) ",'selectableFields':[" paths "]"))
#define PATH(path) "{'jsonPath':'" path "'}"

#define M(n) PATH(".spec.m." n) ","
#define NINE M("1") M("2") M("3") M("4") M("5") M("6") M("7") M("8") PATH(".spec.m.9")

static void test_selectable_fields_follow_the_rules(void **state) {
        static const struct rule_case cases[] = {
                {SELECT(PATH(".spec.a") "," PATH(".spec.m.x")), ""},
                {SELECT(PATH("") "," PATH("spec.a") "," PATH(".spec.c") "," PATH(
                         ".spec[a]") "," PATH(".spec.")),
                 "spec.selectableFields[0].jsonPath: Required value\n"
                 "spec.selectableFields[1].jsonPath: Invalid value: \"spec.a\": is an invalid "
                 "path: expected [ or . but got: spec\n"
                 "spec.selectableFields[2].jsonPath: Invalid value: \".spec.c\": is an invalid "
                 "path: does not refer to a valid field\n"
                 "spec.selectableFields[3].jsonPath: Invalid value: \".spec[a]\": is an invalid "
                 "path: array notation is not allowed\n"
                 "spec.selectableFields[4].jsonPath: Invalid value: \".spec.\": is an invalid "
                 "path: unexpected end of JSON path"},
                {SELECT(PATH(".spec.b") "," PATH(".metadata.name") "," PATH(".spec.a") "," PATH(
                         ".spec.a")),
                 "spec.selectableFields[0].jsonPath: Invalid value: \".spec.b\": must point to a "
                 "field of type string, boolean or integer. Enum string fields and strings with "
                 "formats are allowed.\n"
                 "spec.selectableFields[1].jsonPath: Invalid value: \".metadata.name\": must not "
                 "point to fields in metadata\n"
                 "spec.selectableFields[3].jsonPath: Duplicate value: \".spec.a\""},
                {SELECT(NINE), "spec.selectableFields: Too many: 9: must have at most 8 items"},
        };

        CHECK_CREATES(cases);
}

#define WEBHOOK(client)                                                                            \
        "{'spec':{'conversion':{'strategy':'Webhook','webhook':{'conversionReviewVersions':['v1']" \
        ",'clientConfig':{" client "}}}}}"
#define CLIENT "spec.conversion.webhookClientConfig"
#define FORM   "; desired format: https://host[/path]"

static void test_conversions_follow_the_rules(void **state) {
        static const struct rule_case cases[] = {
                {WEBHOOK("'url':'https://a.b:80/c'"), ""},
                {WEBHOOK("'service':{'name':'a','namespace':'b','path':'/c/d/'}"), ""},
                {"{'spec':{'conversion':{'strategy':'Hope'}}}",
                 "spec.conversion.strategy: Unsupported value: \"Hope\": supported values: "
                 "\"None\", \"Webhook\""},
                {"{'spec':{'conversion':{}}}", "spec.conversion.strategy: Required value"},
                {"{'spec':{'conversion':{'strategy':'None','webhook':{'clientConfig':{},"
                 "'conversionReviewVersions':['v1']}}}}",
                 CLIENT ": Forbidden: should not be set when strategy is not set to Webhook\n"
                        "spec.conversion.conversionReviewVersions: Forbidden: should not be set "
                        "when strategy is not set to Webhook"},
                {"{'spec':{'conversion':{'strategy':'Webhook'}}}",
                 CLIENT ": Required value: required when strategy is set to Webhook\n"
                        "spec.conversion.conversionReviewVersions: Required value"},
                {WEBHOOK(""), CLIENT ": Required value: exactly one of url or service is required"},
                {"{'spec':{'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':"
                 "'https://a'},'conversionReviewVersions':['v2','v2','X']}}}}",
                 "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v2\": duplicate "
                 "version\n"
                 "spec.conversion.conversionReviewVersions[2]: Invalid value: \"X\": " LABEL "\n"
                 "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\",\"v2\",\"X\"]: "
                 "must include at least one of v1, v1beta1"},
                {WEBHOOK("'url':'http://u:p@/x?a=b#c'"), CLIENT
                 ".url: Invalid value: \"http\": 'https' is the only allowed URL "
                 "scheme" FORM "\n" CLIENT ".url: Invalid value: \"\": host must be specified" FORM
                 "\n" CLIENT
                 ".url: Invalid value: \"u:p\": user information is not permitted in the "
                 "URL\n" CLIENT
                 ".url: Invalid value: \"c\": fragments are not permitted in the URL\n" CLIENT
                 ".url: Invalid value: \"a=b\": query parameters are not permitted in the "
                 "URL"},
                {WEBHOOK("'url':'https://a:x'"),
                 CLIENT ".url: Required value: url must be a valid URL: parse \"https://a:x\": "
                        "invalid port \":x\" after host" FORM},
                {WEBHOOK("'url':':a'"),
                 CLIENT ".url: Required value: url must be a valid URL: parse \":a\": missing "
                        "protocol scheme" FORM},
                {WEBHOOK("'service':{'path':'a//B','port':70000}"), CLIENT
                 ".service.name: Required value\n" CLIENT
                 ".service.namespace: Required value\n" CLIENT
                 ".service.port: Invalid value: 70000: port is not valid: must be between "
                 "1 and 65535, inclusive\n" CLIENT
                 ".service.path: Invalid value: \"a//B\": must start with a '/'\n" CLIENT
                 ".service.path: Invalid value: \"a//B\": segment[0] may not be empty\n" CLIENT
                 ".service.path: Invalid value: \"a//B\": segment[1] may not be empty\n" CLIENT
                 ".service.path: Invalid value: \"a//B\": segment[2]: " SUBDOMAIN},
        };

        CHECK_CREATES(cases);
}

#define KUBERNETES(annotations)                                                                    \
        "{'metadata':{'name':'crontabs.x.k8s.io'" annotations "},'spec':{'group':'x.k8s.io'}}"
#define APPROVAL "metadata.annotations[api-approved.kubernetes.io]"

static void test_groups_of_kubernetes_need_an_approval(void **state) {
        static const struct rule_case cases[] = {
                {KUBERNETES(",'annotations':{'api-approved.kubernetes.io':'https://a.b/c'}"), ""},
                {KUBERNETES(",'annotations':{'api-approved.kubernetes.io':'unapproved, test'}"),
                 ""},
                {KUBERNETES(""), APPROVAL ": Required value: protected groups must have approval "
                                          "annotation \"api-approved.kubernetes.io\", see "
                                          "https://github.com/kubernetes/enhancements/pull/1111"},
                {KUBERNETES(",'annotations':{'api-approved.kubernetes.io':'yes'}"),
                 APPROVAL ": Invalid value: \"yes\": protected groups must have approval "
                          "annotation \"api-approved.kubernetes.io\" with either a URL or a "
                          "reason starting with \"unapproved\", see "
                          "https://github.com/kubernetes/enhancements/pull/1111"},
        };

        CHECK_CREATES(cases);
}

/* ---- updates ---- */

#define ESTABLISHED                                                                                \
        "{'status':{'conditions':[{'type':'Established','status':'True'}],'storedVersions':['v1']" \
        "}}"
#define FIRST_SEEN "{'status':{'conditions':null,'storedVersions':['v1']}}"

static void test_updates_follow_the_rules(void **state) {
        static const struct {
                const char *old, *patch, *causes;
        } cases[] = {
                {ESTABLISHED, "{'spec':{'names':{'shortNames':['ct']}}}", ""},
                {FIRST_SEEN, "{'spec':{'scope':'Cluster','names':{'kind':'Other'}}}", ""},
                {ESTABLISHED, "{'spec':{'scope':'Cluster','names':{'kind':'Other'}}}",
                 "spec.scope: Invalid value: \"Cluster\": field is immutable\n"
                 "spec.names.kind: Invalid value: \"Other\": field is immutable"},
                {FIRST_SEEN, "{'spec':{'group':'y.org','names':{'plural':'other'}}}",
                 "spec.group: Invalid value: \"y.org\": field is immutable\n"
                 "spec.names.plural: Invalid value: \"other\": field is immutable"},
                {ESTABLISHED, VERSIONS(VERSION("v2", "true", OBJECT)),
                 "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 "
                 "was previously a storage version, and must remain in spec.versions until a "
                 "storage migration ensures no data remains persisted in v1 and removes v1 from "
                 "status.storedVersions"},
                {"{'spec':{'versions':[" VERSION("v1", "true", "") "]}}",
                 VERSIONS(VERSION("v1", "true", "")),
                 "spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all "
                 "fields are pruned"},
                {"{'spec':{'preserveUnknownFields':true}}", "{}", ""},
                {"{'metadata':{'name':'crontabs.x.k8s.io'},'spec':{'group':'x.k8s.io'}}", "{}", ""},
                {"{'spec':{'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':"
                 "'https://a','caBundle':'YQ=='},'conversionReviewVersions':['v9']}}},'status':"
                 "{'conditions':[{'type':'Established','status':'True'}]}}",
                 "{}", ""},
                /* A definition in the store may have any content. */
                {"{'spec':{'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':"
                 "'https://a'},'conversionReviewVersions':[1]}}}}",
                 "{'spec':{'conversion':{'webhook':{'conversionReviewVersions':['v9']}}}}", ""},
                {ESTABLISHED, WEBHOOK("'url':'https://a','caBundle':'YQ=='"),
                 CLIENT ".caBundle: Invalid value: \"YQ==\": unable to load root certificates: "
                        "unable to parse bytes as PEM block"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *old = parse(good);
                struct hfd_causes causes = {0};

                assert_int_equal(hfd_definition_prepare(old, NULL), 0);
                patch(&old, cases[i].old);
                struct hf__json *object = hf__json_dup(old);
                patch(&object, cases[i].patch);
                assert_int_equal(hfd_definition_prepare(object, old), 0);
                hfd_definition_validate(object, old, &causes);
                expect(&causes, cases[i].patch, cases[i].causes);
                hf__json_free(object);
                hf__json_free(old);
        }
}

static void test_a_status_has_good_names(void **state) {
        struct hf__json *object = parse(good);
        struct hfd_causes causes = {0};

        patch(&object, "{'spec':null,'status':{'acceptedNames':{'plural':'A','kind':''}}}");
        hfd_definition_validate_status(object, object, &causes);
        expect(&causes, "status", "status.acceptedNames.plural: Invalid value: \"A\": " LABEL);
        hf__json_free(object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_follow_the_rules),
                cmocka_unit_test(test_versions_follow_the_rules),
                cmocka_unit_test(test_two_versions_of_one_name_are_refused),
                cmocka_unit_test(test_parts_of_versions_follow_the_rules),
                cmocka_unit_test(test_a_status_forbids_what_concerns_it_at_the_root),
                cmocka_unit_test(test_schemas_and_their_rules_are_checked),
                cmocka_unit_test(test_an_unchanged_schema_is_not_checked_again),
                cmocka_unit_test(test_what_the_schemas_take_is_limited),
                cmocka_unit_test(test_selectable_fields_follow_the_rules),
                cmocka_unit_test(test_conversions_follow_the_rules),
                cmocka_unit_test(test_groups_of_kubernetes_need_an_approval),
                cmocka_unit_test(test_updates_follow_the_rules),
                cmocka_unit_test(test_a_status_has_good_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
