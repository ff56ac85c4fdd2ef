/* SPDX-License-Identifier: Apache-2.0 */
/* Which quotas count a create, what it adds to them, the message of a refusal, and what a recount
 * writes. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/quota.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* Charges a create of group/plural to a quota q with this spec and status. Puts the message into
 * `why`, and the member `used` of the new status into `used`. */
static char why[400], used[400];

static enum hfd_quota_verdict charge(const char *group, const char *plural, const char *spec,
                                     const char *status) {
        struct hf__strbuf text = {0}, message = {0}, printed = {0};
        struct hfd_quota_names names;
        enum hfd_quota_verdict verdict;

        assert_true(hfd_quota_names(group, plural, &names));
        hf__strbuf_printf(&text, "{\"metadata\":{\"name\":\"q\"},\"spec\":%s,\"status\":%s}", spec,
                          status);
        struct hf__json *quota = parse(text.data);
        assert_int_equal(hfd_quota_charge(quota, &names, &verdict, &message), 0);
        hf__json_print(hf__json_path(quota, "status.used"), &printed);
        strcpy(why, message.data ? message.data : "");
        strcpy(used, printed.data ? printed.data : "");
        hf__json_free(quota);
        hf__strbuf_done(&text);
        hf__strbuf_done(&message);
        hf__strbuf_done(&printed);
        return verdict;
}

#define STATUS(hard, used) "{\"hard\":{" hard "},\"used\":{" used "}}"

static void a_create_within_the_limit_adds_one(void **state) {
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"configmaps\":\"3\"}}",
                                STATUS("\"configmaps\":\"3\",\"pods\":\"1\"",
                                       "\"configmaps\":\"2\",\"pods\":\"0\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"configmaps\":\"3\",\"pods\":\"0\"}");
        assert_int_equal(charge("", "configmaps", "{}",
                                STATUS("\"count/configmaps\":\"1k\",\"configmaps\":\"1k\"",
                                       "\"count/configmaps\":\"999\",\"configmaps\":\"998\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"count/configmaps\":\"1k\",\"configmaps\":\"999\"}");
        assert_int_equal(charge("example.com", "widgets", "{}",
                                STATUS("\"count/widgets.example.com\":\"1\"",
                                       "\"count/widgets.example.com\":\"0\"")),
                         HFD_QUOTA_CHARGED);
        assert_string_equal(used, "{\"count/widgets.example.com\":\"1\"}");
}

static void a_create_beyond_the_limit_is_told_what_it_exceeds(void **state) {
        assert_int_equal(charge("", "configmaps", "{}",
                                STATUS("\"configmaps\":\"3\"", "\"configmaps\":\"3\"")),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "exceeded quota: q, requested: configmaps=1, used: configmaps=3, "
                                 "limited: configmaps=3");
        assert_string_equal(used, "{\"configmaps\":\"3\"}");
        /* Both names, sorted; then only the one that is exceeded. */
        (void)charge("", "secrets", "{}",
                     STATUS("\"secrets\":\"1\",\"count/secrets\":\"0\"",
                            "\"secrets\":\"4\",\"count/secrets\":\"4\""));
        assert_string_equal(why, "exceeded quota: q, requested: count/secrets=1,secrets=1, used: "
                                 "count/secrets=4,secrets=4, limited: count/secrets=0,secrets=1");
        (void)charge("", "secrets", "{}",
                     STATUS("\"secrets\":\"1k\",\"count/secrets\":\"0\"",
                            "\"secrets\":\"4\",\"count/secrets\":\"4\""));
        assert_string_equal(why, "exceeded quota: q, requested: count/secrets=1, used: "
                                 "count/secrets=4, limited: count/secrets=0");
}

static void a_quota_without_a_known_use_refuses(void **state) {
        assert_int_equal(charge("", "configmaps", "{}", STATUS("\"configmaps\":\"3\"", "")),
                         HFD_QUOTA_REFUSED);
        assert_string_equal(why, "status unknown for quota: q, resources: configmaps");
        (void)charge("", "configmaps", "{}",
                     STATUS("\"count/configmaps\":\"3\",\"configmaps\":\"3\"",
                            "\"configmaps\":\"1\""));
        assert_string_equal(why,
                            "status unknown for quota: q, resources: configmaps,count/configmaps");
}

static void other_kinds_and_scopes_are_not_counted(void **state) {
        static const char status[] = STATUS("\"configmaps\":\"0\"", "\"configmaps\":\"0\"");
        struct hfd_quota_names names;

        assert_int_equal(charge("", "secrets", "{}", status), HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("example.com", "configmaps", "{}", status), HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "configmaps", "{\"scopes\":[\"Terminating\"]}", status),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "configmaps", "{\"scopeSelector\":{\"matchExpressions\":[{}]}}",
                                status),
                         HFD_QUOTA_UNCOUNTED);
        assert_int_equal(charge("", "serviceaccounts", "{}",
                                STATUS("\"serviceaccounts\":\"0\"", "\"serviceaccounts\":\"0\"")),
                         HFD_QUOTA_UNCOUNTED);
        assert_false(hfd_quota_names("", "events", &names));
        assert_false(hfd_quota_names("events.k8s.io", "events", &names));
}

static void a_quota_that_was_never_counted_is_pending(void **state) {
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"configmaps\":\"3\"}}", "{}"),
                         HFD_QUOTA_PENDING);
        assert_int_equal(charge("", "configmaps", "{\"hard\":{\"count/configmaps\":\"3\"}}",
                                STATUS("\"secrets\":\"3\"", "\"secrets\":\"3\"")),
                         HFD_QUOTA_PENDING);
        assert_int_equal(charge("", "secrets", "{\"hard\":{\"configmaps\":\"3\"}}", "{}"),
                         HFD_QUOTA_UNCOUNTED);
}

/* ---- recounts ---- */

static int count(void *ctx, const char *group, const char *plural, uint64_t *ret_n,
                 bool *ret_served) {
        int *error = ctx;

        *ret_served = strcmp(plural, "configmaps") == 0 ||
                      (strcmp(plural, "leases") == 0 && strcmp(group, "coordination.k8s.io") == 0);
        *ret_n = *ret_served ? 1000 + strlen(group) : 0;
        return *error;
}

static bool recount(const char *quota_text, char status[1000]) {
        struct hf__json *quota = parse(quota_text);
        struct hf__strbuf printed = {0};
        bool changed;
        int error = 0;

        assert_int_equal(hfd_quota_recount(quota, count, &error, &changed), 0);
        hf__json_print(hf__json_get(quota, "status"), &printed);
        strcpy(status, printed.data ? printed.data : "");
        hf__strbuf_done(&printed);
        hf__json_free(quota);
        return changed;
}

static void a_recount_writes_what_there_is(void **state) {
        char status[1000], again[1000];
        struct hf__strbuf text = {0};

        assert_true(recount("{\"spec\":{\"hard\":{\"configmaps\":\"5\",\"cpu\":\"4\",\"pods\":"
                            "\"2\",\"count/"
                            "leases.coordination.k8s.io\":\"7\",\"count/x.y\":\"1\",\"count/"
                            "events\":\"1\"}},"
                            "\"status\":{\"hard\":{\"secrets\":\"1\"},\"used\":{\"secrets\":"
                            "\"1\"}}}",
                            status));
        assert_string_equal(status, "{\"hard\":{\"configmaps\":\"5\",\"cpu\":\"4\",\"pods\":\"2\","
                                    "\"count/leases.coordination.k8s.io\":\"7\",\"count/x.y\":"
                                    "\"1\",\"count/events\":\"1\"},"
                                    "\"used\":{\"configmaps\":\"1k\",\"cpu\":\"0\",\"pods\":\"0\","
                                    "\"count/leases.coordination.k8s.io\":\"1019\"}}");
        hf__strbuf_printf(&text,
                          "{\"spec\":{\"hard\":{\"count/events\":\"1\",\"cpu\":\"4\","
                          "\"configmaps\":\"5\",\"pods\":\"2\",\"count/x.y\":\"1\",\"count/"
                          "leases.coordination.k8s.io\":\"7\"}},\"status\":%s}",
                          status);
        assert_false(recount(text.data, again)); /* nothing has changed */
        assert_string_equal(again, status);
        hf__strbuf_done(&text);
        assert_true(recount("{\"spec\":{\"hard\":{\"pods\":\"5\"},\"scopes\":[\"BestEffort\"]}}",
                            status));
        assert_string_equal(status, "{\"hard\":{\"pods\":\"5\"},\"used\":{\"pods\":\"0\"}}");
        assert_true(recount("{\"spec\":{}}", status));
        assert_string_equal(status, "{\"used\":{}}");
}

static void a_count_that_fails_ends_the_recount(void **state) {
        struct hf__json *quota = parse("{\"spec\":{\"hard\":{\"configmaps\":\"5\"}}}");
        int error = HF_E_UNAVAILABLE;
        bool changed;

        assert_int_equal(hfd_quota_recount(quota, count, &error, &changed), HF_E_UNAVAILABLE);
        hf__json_free(quota);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_create_within_the_limit_adds_one),
                cmocka_unit_test(a_create_beyond_the_limit_is_told_what_it_exceeds),
                cmocka_unit_test(a_quota_without_a_known_use_refuses),
                cmocka_unit_test(other_kinds_and_scopes_are_not_counted),
                cmocka_unit_test(a_quota_that_was_never_counted_is_pending),
                cmocka_unit_test(a_recount_writes_what_there_is),
                cmocka_unit_test(a_count_that_fails_ends_the_recount),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
