/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a request: each parameter of a query, repeated ones, and DeleteOptions. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/registry/base/admit.h"
#include "server/registry/base/delete_options.h"
#include "server/registry/base/request.h"
#include "server/resources/rows/resource_table.h"

static struct hfd_request request;
static struct hfd_response response;

static bool parse(enum hfd_verb verb, const char *query) {
        hfd_response_done(&response);
        hfd_options_done(&request.options);
        response = (struct hfd_response){0};
        request = (struct hfd_request){.verb = verb,
                                       .resource = hfd_resource_find("", "v1", "configmaps")};
        return hfd_options_parse(&request, query, &response);
}

static int teardown(void **state) {
        hfd_response_done(&response);
        hfd_options_done(&request.options);
        response = (struct hfd_response){0};
        return 0;
}

static void expect_refused(enum hfd_verb verb, const char *query, int code, const char *message) {
        assert_false(parse(verb, query));
        assert_int_equal(response.code, code);
        assert_string_equal(response.status.message, message);
}

static void test_each_query_parameter_is_parsed(void **state) {
        const struct hfd_options *o = &request.options;

        assert_true(parse(HFD_LIST, NULL));
        assert_false(o->has_revision);
        assert_null(o->continue_token);
        assert_true(parse(HFD_LIST, "labelSelector=a%3Db%2Cc&fieldSelector=metadata.name%3dx"));
        assert_int_equal(o->labels.n, 2);
        assert_string_equal(hfd_selector_name(&o->fields), "x");
        assert_true(parse(HFD_LIST, "resourceVersion=17&resourceVersionMatch=Exact"));
        assert_true(o->has_revision);
        assert_int_equal(o->revision, 17);
        assert_int_equal(o->match, HFD_MATCH_EXACT);
        assert_true(parse(HFD_LIST, "limit=500&continue=a%2Bb&timeoutSeconds=1000000"));
        assert_int_equal(o->limit, 500);
        assert_string_equal(o->continue_token, "a+b");
        assert_int_equal(o->timeout_s, 1000000);
        assert_true(parse(HFD_WATCH, "allowWatchBookmarks&sendInitialEvents=false"
                                     "&resourceVersionMatch=NotOlderThan"));
        assert_true(o->bookmarks);
        assert_true(o->has_send_initial);
        assert_false(o->send_initial);
        assert_true(parse(HFD_GET, "includeObject=Object&pretty=0"));
        assert_int_equal(o->include, HFD_INCLUDE_OBJECT);
        assert_false(o->pretty);
        assert_true(parse(HFD_CREATE, "dryRun=All&fieldValidation=Strict"));
        assert_true(o->dry_run);
        assert_int_equal(o->field_validation, HFD_FIELDS_STRICT);
        assert_true(parse(HFD_LIST, "resourceVersion=&limit=&continue=&fieldValidation="
                                    "&resourceVersionMatch=&timeoutSeconds=&anything=else&&"));
        assert_false(o->has_revision);
        assert_null(o->continue_token);
}

static void test_delete_parameters_count_for_deletes_only(void **state) {
        static const enum hfd_verb deletes[] = {HFD_DELETE_OBJECT, HFD_DELETE_COLLECTION};
        static const char query[] = "propagationPolicy=Foreground&gracePeriodSeconds=30";

        for (size_t i = 0; i < 2; i++) {
                assert_true(parse(deletes[i], query));
                assert_int_equal(request.options.propagation, HFD_PROPAGATE_FOREGROUND);
                assert_true(parse(deletes[i], "orphanDependents=true"));
                assert_true(request.options.has_orphan && request.options.orphan);
                assert_true(parse(deletes[i], "gracePeriodSeconds=-1"));
                expect_refused(deletes[i], "gracePeriodSeconds=x", 400,
                               "strconv.ParseInt: parsing \"x\": invalid syntax");
        }
        /* Other verbs ignore them, whatever their values. */
        assert_true(parse(HFD_LIST, "propagationPolicy=No&gracePeriodSeconds=x"));
        assert_true(parse(HFD_UPDATE, query));
        assert_int_equal(request.options.propagation, HFD_PROPAGATE_UNSET);
}

/* Admission sees the value of the query, unless there is a body. */
static void expect_grace_period(const char *query, const struct hf__json *body, int64_t wanted) {
        struct hf__json *options;
        int64_t found = -1;

        assert_true(parse(HFD_DELETE_OBJECT, query));
        options = hfd_admit_options(&request, HFD_ADMIT_DELETE, body);
        assert_non_null(options);
        (void)hf__json_i64(options, "gracePeriodSeconds", &found);
        assert_int_equal(found, wanted);
        hf__json_free(options);
}

static void test_admission_sees_the_grace_period_of_a_delete(void **state) {
        struct hf__json *body = hf__json_object();

        expect_grace_period("gracePeriodSeconds=0", NULL, 0);
        expect_grace_period("gracePeriodSeconds=30", NULL, 30);
        expect_grace_period("gracePeriodSeconds=", NULL, -1);
        expect_grace_period(NULL, NULL, -1);
        expect_grace_period("gracePeriodSeconds=30", body, -1);
        assert_int_equal(hf__json_set_i64(body, "gracePeriodSeconds", 7), 0);
        expect_grace_period("gracePeriodSeconds=30", body, 7);
        hf__json_free(body);
}

/* The filters authorize the first value, so the first value must be used. */
static void test_the_first_of_repeated_values_counts(void **state) {
        const struct hfd_options *o = &request.options;

        assert_true(parse(HFD_LIST, "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name"
                                    "%3Db&labelSelector=&labelSelector=x&limit=1&limit=2"));
        assert_string_equal(hfd_selector_name(&o->fields), "a");
        assert_int_equal(o->labels.n, 0);
        assert_int_equal(o->limit, 1);
        assert_true(parse(HFD_LIST, "continue=&continue=x&resourceVersion=0&resourceVersion=5"));
        assert_null(o->continue_token);
        assert_int_equal(o->revision, 0);
        assert_true(parse(HFD_CREATE, "fieldValidation=Ignore&fieldValidation=Strict"));
        assert_int_equal(o->field_validation, HFD_FIELDS_IGNORE);
        /* A percent-encoded name is the same parameter, and later values are not checked. */
        assert_true(parse(HFD_LIST, "limit=3&limi%74=4&limit=x"));
        assert_int_equal(o->limit, 3);
        assert_true(
                parse(HFD_DELETE_OBJECT, "propagationPolicy=Orphan&propagationPolicy=Background"));
        assert_int_equal(o->propagation, HFD_PROPAGATE_ORPHAN);
}

static void test_bad_values_are_refused_by_name(void **state) {
        expect_refused(HFD_LIST, "limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax");
        expect_refused(HFD_LIST, "resourceVersion=18446744073709551616", 400,
                       "invalid resource version: resourceVersion: Invalid value: "
                       "\"18446744073709551616\": strconv.ParseUint: parsing "
                       "\"18446744073709551616\": value out of range");
        expect_refused(HFD_WATCH, "resourceVersion=new", 422,
                       "configmaps \"\" is invalid: resourceVersion: Invalid value: \"new\": "
                       "strconv.ParseUint: parsing "
                       "\"new\": invalid syntax");
        expect_refused(HFD_LIST, "timeoutSeconds=9223372036854775808", 400,
                       "strconv.ParseInt: parsing \"9223372036854775808\": value out of range");
        expect_refused(HFD_LIST, "resourceVersion=1&resourceVersionMatch=Newest", 422,
                       "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported "
                       "value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
        expect_refused(HFD_WATCH, "sendInitialEvents=1&resourceVersionMatch=Newest", 422,
                       "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: "
                       "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, "
                       "resourceVersionMatch: Unsupported value: \"Newest\": supported values: "
                       "\"NotOlderThan\"]");
        expect_refused(HFD_DELETE_OBJECT, "propagationPolicy=orphan", 422,
                       "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
                       "value: \"orphan\": supported values: \"Foreground\", \"Background\", "
                       "\"Orphan\", \"nil\"");
        expect_refused(HFD_GET, "a=%zz", 400, "malformed query");
        expect_refused(HFD_GET, "%ff", 400, "malformed query");
        expect_refused(HFD_GET, "pretty=%00", 400, "malformed query");
}

/* The options of a write are validated together, as CreateOptions, UpdateOptions or
 * PatchOptions. */
static void test_bad_options_of_writes_are_refused_together(void **state) {
        static const char many[] = "fieldManager=0123456789012345678901234567890123456789012345678"
                                   "90123456789012345678901234567890123456789012345678901234567890"
                                   "123456789012345678";
        char query[256];

        expect_refused(HFD_CREATE, "dryRun=", 422,
                       "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                       "[\"\"]: supported values: \"All\"");
        expect_refused(HFD_UPDATE, "dryRun=All&dryRun=Foo", 422,
                       "UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                       "[\"All\",\"Foo\"]: supported values: \"All\"");
        expect_refused(HFD_DELETE_OBJECT, "dryRun=Foo", 422,
                       "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                       "[\"Foo\"]: supported values: \"All\"");
        expect_refused(HFD_CREATE, "fieldValidation=strict", 422,
                       "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported "
                       "value: \"strict\": supported values: \"\", \"Ignore\", "
                       "\"Strict\", \"Warn\"");
        expect_refused(HFD_PATCH, "force=true", 422,
                       "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be "
                       "specified for non-apply patch");
        expect_refused(HFD_CREATE, "fieldManager=a%01", 422,
                       "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: "
                       "\"a\\x01\": invalid character U+0001 (at position 1)");
        expect_refused(HFD_PATCH, "fieldManager=%C2%A0&dryRun=x&fieldValidation=y", 422,
                       "PatchOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: "
                       "\"\\u00a0\": invalid character U+00A0 (at position 0), dryRun: Unsupported "
                       "value: [\"x\"]: supported values: \"All\", fieldValidation: Unsupported "
                       "value: \"y\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]");
        assert_int_equal(strlen(many), sizeof "fieldManager=" - 1 + 129);
        expect_refused(HFD_CREATE, many, 422,
                       "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not "
                       "be more than 128 bytes");
        (void)snprintf(query, sizeof query, "%.*s", (int)strlen(many) - 1, many);
        assert_true(parse(HFD_CREATE, query));
        assert_true(parse(HFD_CREATE, "fieldManager=k%C3%BCbe%20%E2%82%AC"));
        /* Reads ignore the options of writes. */
        assert_true(parse(HFD_LIST, "dryRun=Foo&fieldValidation=Foo&force=1"));
        assert_true(parse(HFD_GET, many));
}

static void test_invalid_combinations_are_refused(void **state) {
        static const struct {
                enum hfd_verb verb;
                const char *query;
                int code; /* 0 = accepted */
        } cases[] = {
                {HFD_LIST, "resourceVersionMatch=Exact", 422},
                {HFD_DELETE_COLLECTION, "resourceVersionMatch=Exact", 422},
                {HFD_GET, "resourceVersionMatch=Exact", 0},
                {HFD_LIST, "resourceVersionMatch=Exact&resourceVersion=0", 422},
                {HFD_LIST, "resourceVersionMatch=NotOlderThan&resourceVersion=0", 0},
                {HFD_LIST, "resourceVersionMatch=Exact&resourceVersion=3&continue=x", 422},
                {HFD_LIST, "resourceVersion=3&continue=x", 400},
                {HFD_LIST, "resourceVersion=0&continue=x", 0},
                {HFD_LIST, "sendInitialEvents=true", 422},
                {HFD_WATCH, "resourceVersionMatch=NotOlderThan", 422},
                {HFD_WATCH, "sendInitialEvents=true", 422},
                {HFD_WATCH, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 0},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_int_equal(parse(cases[i].verb, cases[i].query), cases[i].code == 0);
                assert_int_equal(response.code, cases[i].code);
        }
}

static bool read_body(const char *query, const char *body) {
        struct hf__json *sent = NULL;
        bool good;

        assert_true(parse(HFD_DELETE_OBJECT, query));
        assert_int_equal(hf__json_parse(body, strlen(body), &sent, NULL), 0);
        good = hfd_delete_options_read(&request.options, sent, &response);
        hf__json_free(sent);
        return good;
}

static void test_delete_options_in_the_body_replace_the_query(void **state) {
        const struct hfd_options *o = &request.options;

        assert_true(read_body("propagationPolicy=Orphan", "{\"kind\":\"DeleteOptions\"}"));
        assert_int_equal(o->propagation, HFD_PROPAGATE_UNSET); /* the body replaces the query's */
        assert_true(read_body("", "{\"propagationPolicy\":\"Background\",\"dryRun\":[\"All\"]}"));
        assert_int_equal(o->propagation, HFD_PROPAGATE_BACKGROUND);
        assert_true(o->dry_run);
        assert_true(read_body("dryRun=All", "{\"orphanDependents\":false}"));
        assert_true(o->dry_run && o->has_orphan && !o->orphan);
        assert_false(read_body("", "{\"kind\":\"Pod\"}"));
        assert_int_equal(response.code, 400);
        assert_false(read_body("", "{\"preconditions\":{\"uid\":1}}"));
        assert_string_equal(response.status.message,
                            "DeleteOptions in version \"v1\" cannot be handled: the field "
                            "preconditions.uid cannot be read");
        assert_false(read_body("", "{\"dryRun\":[\"None\"]}"));
        assert_int_equal(response.code, 422);
        assert_false(read_body("", "{\"orphanDependents\":true,\"propagationPolicy\":\"Orphan\"}"));
        assert_int_equal(response.code, 422);
        /* Without a body the query's combination is checked all the same. */
        assert_true(parse(HFD_DELETE_OBJECT, "orphanDependents=true&propagationPolicy=Orphan"));
        assert_false(hfd_delete_options_read(&request.options, NULL, &response));
        assert_int_equal(response.code, 422);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_each_query_parameter_is_parsed, teardown),
                cmocka_unit_test_teardown(test_delete_parameters_count_for_deletes_only, teardown),
                cmocka_unit_test_teardown(test_admission_sees_the_grace_period_of_a_delete,
                                          teardown),
                cmocka_unit_test_teardown(test_the_first_of_repeated_values_counts, teardown),
                cmocka_unit_test_teardown(test_bad_values_are_refused_by_name, teardown),
                cmocka_unit_test_teardown(test_bad_options_of_writes_are_refused_together,
                                          teardown),
                cmocka_unit_test_teardown(test_invalid_combinations_are_refused, teardown),
                cmocka_unit_test_teardown(test_delete_options_in_the_body_replace_the_query,
                                          teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
