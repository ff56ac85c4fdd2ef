/* SPDX-License-Identifier: Apache-2.0 */
/* Audit events: the exact lines, the values that are left out of them, and their size limits. */
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

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "server/audit/audit.h"
#include "server/audit/event_json.h"
#include "server/audit/source_ips.h"

#define AT     INT64_C(1795423087123456) /* 2026-11-23T08:38:07.123456Z */
#define EMPTY  "{\"a\":1}"
#define PREFIX "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":"

static struct hfd_audit_budget budget = {.max = 1 << 20};

static const struct hfd_attributes create_attributes = {.verb = "create",
                                                        .group = "apps",
                                                        .resource = "things",
                                                        .subresource = "",
                                                        .ns = "shop",
                                                        .name = "",
                                                        .path = "",
                                                        .is_resource = true};

static struct hfd_audit_head make_head(enum hfd_audit_level level, const struct hfd_user *user) {
        return (struct hfd_audit_head){.decision = {.level = level},
                                       .received_at = AT,
                                       .user = user,
                                       .id = "id-1",
                                       .path = "/apis/apps/v1/namespaces/shop/things",
                                       .query = "dryRun=All",
                                       .agent = "kubectl/1.36",
                                       .source_ips = "[\"10.0.0.1\"]",
                                       .attempts = "",
                                       .version = "v1",
                                       .attributes = &create_attributes};
}

static struct hfd_audit_record *make_record(const struct hfd_audit_head *head) {
        struct hfd_audit_record *record;

        assert_int_equal(hfd_audit_record_new(&budget, head, &record), 0);
        return record;
}

/* Returns the line of the event, which the caller frees. Consumes the reference to the record. */
static char *print(struct hfd_audit_record *record, enum hfd_audit_stage stage, int code) {
        struct hfd_audit_event *event = hfd_audit_event_new(record, stage, AT + 1, code, true);
        struct hf__strbuf out = {0};

        assert_non_null(event);
        hfd_audit_event_print(event, &out);
        assert_int_equal(out.error, 0);
        assert_int_equal(out.data[out.n - 1], '\n');
        assert_ptr_equal(strchr(out.data, '\n'), out.data + out.n - 1); /* one line */
        hfd_audit_event_free(event);
        hfd_audit_record_unref(record);
        assert_int_equal(atomic_load(&budget.held), 0);
        return out.data;
}

static void add_response(struct hfd_audit_record *record, const char *text) {
        struct hf__buf *buf = hf__buf_copy(text, strlen(text));

        hfd_audit_record_response(record, buf);
        hf__buf_unref(buf);
}

static void assert_has(const char *line, const char *part) {
        if (!strstr(line, part))
                print_message("%s is not in %s\n", part, line);
        assert_non_null(strstr(line, part));
}

static void test_a_complete_event_has_all_fields_in_order(void **state) {
        struct hfd_user user = {.uid = "7"}, other = {.n_groups = 0};
        (void)state;

        assert_true(hfd_user_set_name(&user, "ann") && hfd_user_add_group(&user, "g1") &&
                    hfd_user_add_group(&user, "g\"2") && hfd_user_add_extra(&user, "l", "2") &&
                    hfd_user_add_extra(&user, "k", "1") && hfd_user_add_extra(&user, "k", "3"));
        assert_true(hfd_user_set_name(&other, "bob"));
        struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, &user);
        struct hfd_audit_record *record = make_record(&head);
        record->impersonated = hfd_requester_new(&other);
        record->constraint = "impersonate:user-info";
        record->decided = record->allowed = true;
        record->reason = strdup("RBAC: so");
        static const char body[] = "{\n \"metadata\": {\"name\":\"x\",\"uid\":\"u\","
                                   "\"resourceVersion\":\"5\"}}";
        hfd_audit_record_request(record, body, strlen(body));
        add_response(record, "{\"a\":");
        add_response(record, "1}\n");
        char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 201);
        assert_string_equal(
                line,
                PREFIX "\"RequestResponse\",\"auditID\":\"id-1\",\"stage\":\"ResponseComplete\","
                       "\"requestURI\":\"/apis/apps/v1/namespaces/shop/things?dryRun=All\","
                       "\"verb\":\"create\",\"user\":{\"username\":\"ann\",\"uid\":\"7\","
                       "\"groups\":[\"g1\",\"g\\\"2\"],"
                       "\"extra\":{\"k\":[\"1\",\"3\"],\"l\":[\"2\"]}},"
                       "\"impersonatedUser\":{\"username\":\"bob\"},"
                       "\"authenticationMetadata\":{\"impersonationConstraint\":"
                       "\"impersonate:user-info\"},"
                       "\"sourceIPs\":[\"10.0.0.1\"],\"userAgent\":\"kubectl/1.36\","
                       "\"objectRef\":{\"resource\":\"things\",\"namespace\":\"shop\","
                       "\"name\":\"x\",\"uid\":\"u\",\"apiGroup\":\"apps\",\"apiVersion\":\"v1\","
                       "\"resourceVersion\":\"5\"},"
                       "\"responseStatus\":{\"metadata\":{},\"code\":201},"
                       "\"requestObject\":{\"metadata\":{\"name\":\"x\",\"uid\":\"u\","
                       "\"resourceVersion\":\"5\"}},\"responseObject\":{\"a\":1},"
                       "\"requestReceivedTimestamp\":\"2026-11-23T08:38:07.123456Z\","
                       "\"stageTimestamp\":\"2026-11-23T08:38:07.123457Z\","
                       "\"annotations\":{\"authorization.k8s.io/decision\":\"allow\","
                       "\"authorization.k8s.io/reason\":\"RBAC: so\"}}\n");
        free(line);
}

static void test_the_first_event_says_nothing_of_the_response(void **state) {
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        struct hfd_audit_head head = make_head(HFD_AUDIT_METADATA, &user);
        struct hfd_audit_record *record = make_record(&head);
        record->decided = true;
        char *line = print(record, HFD_AUDIT_REQUEST_RECEIVED, 0);
        assert_null(strstr(line, "responseStatus"));
        assert_null(strstr(line, "annotations"));
        assert_has(line, "\"user\":{},");
        free(line);
}

static void test_objects_depend_on_the_level(void **state) {
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        for (int level = HFD_AUDIT_METADATA; level <= HFD_AUDIT_REQUEST_RESPONSE; level++) {
                struct hfd_audit_head head = make_head((enum hfd_audit_level)level, &user);
                struct hfd_audit_record *record = make_record(&head);
                hfd_audit_record_request(record, EMPTY, strlen(EMPTY));
                add_response(record, EMPTY);
                char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 200);
                assert_int_equal(strstr(line, "requestObject") != NULL, level >= HFD_AUDIT_REQUEST);
                assert_int_equal(strstr(line, "responseObject") != NULL,
                                 level >= HFD_AUDIT_REQUEST_RESPONSE);
                free(line);
        }
}

static void test_a_status_explains_the_code(void **state) {
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        struct hfd_audit_head head = make_head(HFD_AUDIT_METADATA, &user);
        struct hfd_audit_record *record = make_record(&head);
        record->decided = true;
        add_response(record, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\","
                             "\"reason\":\"Forbidden\",\"details\":{\"kind\":\"things\"},"
                             "\"code\":403}");
        char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 403);
        assert_has(line, "\"responseStatus\":{\"metadata\":{},\"status\":\"Failure\","
                         "\"message\":\"no\",\"reason\":\"Forbidden\","
                         "\"details\":{\"kind\":\"things\"},\"code\":403}");
        assert_has(line, "\"annotations\":{\"authorization.k8s.io/decision\":\"forbid\","
                         "\"authorization.k8s.io/reason\":\"\"}");
        assert_null(strstr(line, "responseObject"));
        free(line);
        record = make_record(&head);
        line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 0);
        assert_has(line, "\"status\":\"Success\",\"message\":\"Connection closed early\","
                         "\"code\":200}");
        free(line);
}

/* Without a user a request may also have met a fault of the server, such as a shortage of memory.
 */
static void test_attempts_explain_a_401_only(void **state) {
        static const char attempts[] = "Authentication failed, attempted: bearer";
        static const char body[] = "{\"kind\":\"Status\",\"message\":\"no memory\"}";
        (void)state;

        for (int code = 401; code <= 503; code += 503 - 401) {
                struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, NULL);
                head.attempts = attempts;
                struct hfd_audit_record *record = make_record(&head);
                add_response(record, body);
                char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, code);
                assert_int_equal(strstr(line, attempts) != NULL, code == 401);
                assert_int_equal(strstr(line, "responseObject") != NULL, code == 503);
                assert_int_equal(strstr(line, "\"message\":\"no memory\",\"code\":503") != NULL,
                                 code == 503);
                free(line);
        }
}

static void test_tokens_are_never_logged(void **state) {
        static const struct {
                const char *resource, *subresource;
        } kinds[] = {{"tokenreviews", ""}, {"serviceaccounts", "token"}};
        static const char body[] = "{\"spec\":{\"token\":\"geheim\",\"audiences\":[\"a\"]},"
                                   "\"status\":{\"token\":\"geheim\",\"b\":1}}";
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                struct hfd_attributes attributes = create_attributes;
                attributes.resource = kinds[i].resource;
                attributes.subresource = kinds[i].subresource;
                struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, &user);
                head.attributes = &attributes;
                struct hfd_audit_record *record = make_record(&head);
                hfd_audit_record_request(record, body, strlen(body));
                add_response(record, body);
                char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 201);
                assert_null(strstr(line, "geheim"));
                assert_has(line, "\"requestObject\":{\"spec\":{\"audiences\":[\"a\"]},"
                                 "\"status\":{\"b\":1}}");
                free(line);
        }
}

/* The log contains the body as it was sent, and the server accepts a duplicate key. */
static void test_a_token_is_not_logged_where_it_occurs_twice(void **state) {
        static const char *const bodies[] = {
                "{\"spec\":{\"token\":\"geheim\",\"a\":1,\"token\":\"geheim\"}}",
                "{\"spec\":{\"token\":\"geheim\"},\"spec\":{\"a\":1,\"token\":\"geheim\"}}",
                "{\"spec\":7,\"spec\":{\"a\":1,\"token\":\"geheim\"}}",
                "{\"a\":1,\"status\":{},\"status\":{\"token\":\"geheim\"}}",
        };
        struct hfd_attributes attributes = create_attributes;
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        attributes.resource = "tokenreviews";
        for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
                struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, &user);
                head.attributes = &attributes;
                struct hfd_audit_record *record = make_record(&head);
                hfd_audit_record_request(record, bodies[i], strlen(bodies[i]));
                add_response(record, bodies[i]);
                char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 201);
                assert_null(strstr(line, "geheim"));
                assert_has(line, "\"a\":1");
                free(line);
        }
}

static void test_managed_fields_are_left_out_of_objects_lists_and_tables(void **state) {
        static const char *const bodies[] =
                {"{\"metadata\":{\"name\":\"x\",\"managedFields\":[1]}}",
                 "{\"items\":[{\"metadata\":{\"managedFields\":[1]}},{\"metadata\":{}}]}",
                 "{\"rows\":[{\"object\":{\"metadata\":{\"managedFields\":[1]}}}]}"};
        struct hfd_user user = {.n_groups = 0};
        (void)state;

        for (size_t i = 0; i < 3; i++)
                for (int omit = 0; omit < 2; omit++) {
                        struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, &user);
                        head.decision.omit_managed_fields = omit;
                        struct hfd_audit_record *record = make_record(&head);
                        add_response(record, bodies[i]);
                        char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 200);
                        assert_int_equal(strstr(line, "managedFields") != NULL, !omit);
                        free(line);
                }
}

static void test_what_is_too_large_or_no_json_is_left_out(void **state) {
        struct hfd_user user = {.n_groups = 0};
        size_t n = budget.max + 1;
        char *large = calloc(1, n);
        (void)state;

        assert_non_null(large);
        memset(large, ' ', n);
        struct hfd_audit_head head = make_head(HFD_AUDIT_REQUEST_RESPONSE, &user);
        struct hfd_audit_record *record = make_record(&head);
        hfd_audit_record_request(record, large, n);
        add_response(record, "{\"a\":");
        char *line = print(record, HFD_AUDIT_RESPONSE_COMPLETE, 200);
        assert_has(line, "\"annotations\":{\"audit.k8s.io/truncated\":\"true\"}");
        assert_null(strstr(line, "Object\":"));
        free(line);
        /* The body arrives in many small pieces, one of them after the last event. */
        record = make_record(&head);
        for (int i = 0; i <= HFD_AUDIT_PIECES_MAX; i++)
                add_response(record, " ");
        line = print(hfd_audit_record_ref(record), HFD_AUDIT_RESPONSE_COMPLETE, 200);
        assert_has(line, "truncated");
        free(line);
        add_response(record, EMPTY);
        assert_int_equal(atomic_load(&budget.held), 0);
        hfd_audit_record_unref(record);
        free(large);
}

static void test_events_are_limited_by_the_budget(void **state) {
        struct hfd_user user = {.n_groups = 0};
        struct hfd_audit_budget small = {.max = 3000};
        struct hfd_audit_head head = make_head(HFD_AUDIT_METADATA, &user);
        struct hfd_audit_record *record;
        struct hfd_audit_event *events[10] = {NULL};
        size_t n = 0;
        (void)state;

        assert_int_equal(hfd_audit_record_new(&small, &head, &record), 0);
        while ((events[n] = hfd_audit_event_new(record, HFD_AUDIT_RESPONSE_STARTED, AT, 0, false)))
                assert_true(++n < 10);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++)
                hfd_audit_event_free(events[i]);
        hfd_audit_record_unref(record);
        assert_int_equal(atomic_load(&small.held), 0);
}

static void test_long_agents_are_cut(void **state) {
        struct hfd_user user = {.n_groups = 0};
        char agent[3000];
        (void)state;

        memset(agent, 'x', sizeof agent - 1);
        agent[sizeof agent - 1] = '\0';
        struct hfd_audit_head head = make_head(HFD_AUDIT_METADATA, &user);
        head.agent = agent;
        char *line = print(make_record(&head), HFD_AUDIT_REQUEST_RECEIVED, 0);
        assert_has(line, "xx...TRUNCATED\"");
        assert_true(strlen(line) < 2000);
        free(line);
}

static void test_source_addresses_are_those_of_proxies_and_the_connection(void **state) {
        static const struct {
                const char *forwarded, *real, *remote, *expected;
        } rows[] = {
                {NULL, NULL, "127.0.0.1:40112", "[\"127.0.0.1\"]"},
                {NULL, NULL, "[::1]:40112", "[\"::1\"]"},
                {NULL, NULL, "local", ""},
                {"10.0.0.1, 10.0.0.2", NULL, "10.0.0.2:1", "[\"10.0.0.1\",\"10.0.0.2\"]"},
                {"10.0.0.1", "10.0.0.1", "10.0.0.9:1", "[\"10.0.0.1\",\"10.0.0.9\"]"},
                {"x\",\"y", "2001:DB8::1", "local", "[\"2001:db8::1\"]"},
                {",,, ,", "", "10.0.0.9:1", "[\"10.0.0.9\"]"},
                {"::ffff:10.0.0.1", NULL, "[::ffff:10.0.0.2]:1", "[\"10.0.0.1\",\"10.0.0.2\"]"},
                {"10.0.0.1 10.0.0.2,\t10.0.0.3 ,", NULL, "local", "[\"10.0.0.3\"]"},
                {"010.000.0.01,::ffff:10.0.0.02,0a.0.0.1,::10.0.0.3,0002001:db8::0",
                 "2001:0db8:0000::1", "local",
                 "[\"10.0.0.1\",\"10.0.0.2\",\"::a00:3\",\"2001:db8::\",\"2001:db8::1\"]"},
        };
        (void)state;

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hf__strbuf out = {0};
                hf__strbuf_puts(&out, "");
                hfd_audit_source_ips(rows[i].forwarded, rows[i].real, rows[i].remote, &out);
                assert_string_equal(out.data ? out.data : "", rows[i].expected);
                hf__strbuf_done(&out);
        }
        char many[100 * 9 + 1] = "";
        for (int i = 0; i < 100; i++)
                (void)snprintf(many + 9 * i, sizeof many - 9 * (size_t)i, "10.0.0.%d,", 1 + i % 9);
        struct hf__strbuf out = {0};
        hfd_audit_source_ips(many, "1.1.1.1", "2.2.2.2:1", &out);
        assert_true(out.n < 32 * 20);
        assert_has(out.data, "\"1.1.1.1\",\"2.2.2.2\"]");
        hf__strbuf_done(&out);
}

static void test_only_sane_ids_of_clients_are_taken(void **state) {
        (void)state;
        assert_true(hfd_audit_is_id("a3f1c2d4-0000-4000-8000-000000000000"));
        assert_false(hfd_audit_is_id(""));
        assert_false(hfd_audit_is_id("a b"));
        assert_false(hfd_audit_is_id("a\tb"));
        assert_false(hfd_audit_is_id("\xc3\xa4"));
        assert_true(hfd_audit_is_id(
                "0123456789012345678901234567890123456789012345678901234567890123"));
        assert_false(hfd_audit_is_id(
                "01234567890123456789012345678901234567890123456789012345678901234"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_complete_event_has_all_fields_in_order),
                cmocka_unit_test(test_the_first_event_says_nothing_of_the_response),
                cmocka_unit_test(test_objects_depend_on_the_level),
                cmocka_unit_test(test_a_status_explains_the_code),
                cmocka_unit_test(test_attempts_explain_a_401_only),
                cmocka_unit_test(test_tokens_are_never_logged),
                cmocka_unit_test(test_a_token_is_not_logged_where_it_occurs_twice),
                cmocka_unit_test(test_managed_fields_are_left_out_of_objects_lists_and_tables),
                cmocka_unit_test(test_what_is_too_large_or_no_json_is_left_out),
                cmocka_unit_test(test_events_are_limited_by_the_budget),
                cmocka_unit_test(test_long_agents_are_cut),
                cmocka_unit_test(test_source_addresses_are_those_of_proxies_and_the_connection),
                cmocka_unit_test(test_only_sane_ids_of_clients_are_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
