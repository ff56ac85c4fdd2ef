/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of metadata. Those of a write to a subresource come from the store, where another
 * program may have put values of any type. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/validation/meta_validation.h"

#include "rule_cases.h"

static void of_configmap(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes) {
        hfd_meta_validate(hfd_resource_find("", "v1", "configmaps"), object, old, causes);
}

static void of_namespace(const struct hf__json *object, const struct hf__json *old,
                         struct hfd_causes *causes) {
        hfd_meta_validate(hfd_resource_find("", "v1", "namespaces"), object, old, causes);
}

#define META(members) "{'metadata':{" members "}}"
#define EMPTY_NAME                                                                                 \
        "metadata.finalizers: Invalid value: \"\": name part must be non-empty\n"                  \
        "metadata.finalizers: Invalid value: \"\": name part must consist of alphanumeric "        \
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character "      \
        "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "              \
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\n"                                            \
        "metadata.finalizers[0]: Invalid value: \"\": name is neither a standard finalizer name "  \
        "nor is it fully qualified\n"
#define DELETED "'deletionTimestamp':'2026-01-01T00:00:00Z'"
#define NEW_FINALIZER                                                                              \
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "   \
        "deleted, found new finalizers []string{\"\"}\n"

static void test_stored_metadata_may_have_any_form(void **state) {
        static const struct rule_case cases[] = {
                {of_configmap, META("'labels':{'a':1,'b':null}"), META(""), NULL},
                {of_configmap, META("'labels':['a',1]"), META(""), NULL},
                {of_configmap, META("'labels':'a'"), META(""), NULL},
                {of_configmap, META("'annotations':{'a':{'b':'c'}}"), META(""), NULL},
                {of_configmap, META("'annotations':[{}]"), META(""), NULL},
                {of_configmap, META("'finalizers':[1]"), META(""), EMPTY_NAME},
                {of_configmap, META("'finalizers':[1]," DELETED), META(DELETED),
                 EMPTY_NAME NEW_FINALIZER},
                {of_configmap, META("'finalizers':'a'"), META(""), NULL},
        };

        check_rule_cases(cases, sizeof cases / sizeof cases[0]);
}

static void test_a_name_says_that_it_has_dots(void **state) {
        static const struct rule_case cases[] = {
                {of_configmap, META("'name':'a.b','namespace':'n'"), NULL, NULL},
                {of_configmap, META("'name':'a','namespace':'n.s'"), NULL,
                 "metadata.namespace: Invalid value: \"n.s\": must not contain dots\n"},
                {of_namespace, META("'name':'a-b'"), NULL, NULL},
                {of_namespace, META("'name':'a.b'"), NULL,
                 "metadata.name: Invalid value: \"a.b\": must not contain dots\n"},
        };

        check_rule_cases(cases, sizeof cases / sizeof cases[0]);
}

#define X16  "xxxxxxxxxxxxxxxx"
#define X64  X16 X16 X16 X16
#define X250 X64 X64 X64 X16 X16 X16 "xxxxxxxxxx" /* what a cause shows of a longer text */
#define SUBDOMAIN                                                                                  \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "  \
        "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "      \
        "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"       \
        "[a-z0-9])?)*')\n"

static void test_a_name_can_break_both_rules(void **state) {
        static const struct rule_case cases[] = {
                {of_namespace, META("'name':'" X64 "'"), NULL,
                 "metadata.name: Invalid value: \"" X64 "\": must be no more than 63 characters\n"},
                {of_namespace, META("'name':'" X64 ".a'"), NULL,
                 "metadata.name: Invalid value: \"" X64 ".a\": must be no more than 63 characters\n"
                 "metadata.name: Invalid value: \"" X64 ".a\": must not contain dots\n"},
                {of_configmap, META("'name':'" X64 X64 X64 X64 "-','namespace':'" X64 ".'"), NULL,
                 "metadata.name: Invalid value: \"" X250 "\": must be no more than 253 characters\n"
                 "metadata.name: Invalid value: \"" X250 "\": " SUBDOMAIN
                 "metadata.namespace: Invalid value: \"" X64
                 ".\": must be no more than 63 characters\n"
                 "metadata.namespace: Invalid value: \"" X64
                 ".\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
                 "characters or '-', and must start and end with an alphanumeric character (e.g. "
                 "'my-name',  or '123-abc', regex used for validation is "
                 "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"},
                /* A hyphen at the end of a prefix is valid, also behind what fits. */
                {of_configmap,
                 META("'name':'a','namespace':'n','generateName':'" X64 X64 X64 X64 "-'"), NULL,
                 "metadata.generateName: Invalid value: \"" X250
                 "\": must be no more than 253 characters\n"},
                {of_configmap,
                 META("'name':'a','namespace':'n','generateName':'" X64 X64 X64 X64 "A'"), NULL,
                 "metadata.generateName: Invalid value: \"" X250
                 "\": must be no more than 253 characters\n"
                 "metadata.generateName: Invalid value: \"" X250 "\": " SUBDOMAIN},
        };

        check_rule_cases(cases, sizeof cases / sizeof cases[0]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stored_metadata_may_have_any_form),
                cmocka_unit_test(test_a_name_says_that_it_has_dots),
                cmocka_unit_test(test_a_name_can_break_both_rules),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
